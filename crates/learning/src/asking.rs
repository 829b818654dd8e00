//! One question to a cheap model, and its answer in words. Bounded in time and length; what is no answer is an error in words.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::{
    Clock, Cost, Delta, Finished, LearningLedger, LearningUse, Message, Model, ModelRequest,
    NewLearningUse, SessionId, TurnId,
};

/// Tokens of one answer, with what a model thinks before it. Nearly every model takes such a limit, and what is kept is short.
pub(crate) const ANSWER_TOKENS_MAX: u32 = 8_192;

/// What a token is taken to cost where no price is known, in millionths of a dollar: what good models cost.
const INPUT_MICRO_USD: u64 = 3;
const OUTPUT_MICRO_USD: u64 = 15;

/// Of a day's money, one request of a model whose price is not known reserves this part at most: models that cost nothing have
/// no price either, and are to learn as well.
const UNKNOWN_PART: u64 = 3;

/// What is reserved of a day's money for a request.
pub(crate) fn reserved_money(cost: Cost, input: u64, output: u64, budget: LearningUse) -> u64 {
    match cost {
        Cost::Estimated(micro_usd) => micro_usd,
        Cost::Included => 0,
        Cost::Unknown => {
            let input = input.saturating_mul(INPUT_MICRO_USD);
            let supposed = input.saturating_add(output.saturating_mul(OUTPUT_MICRO_USD));
            supposed.min(budget.micro_usd / UNKNOWN_PART).max(1)
        }
    }
}

/// A model for questions beside conversations.
#[derive(Clone)]
pub struct Asking {
    pub model: Arc<dyn Model>,
    /// How long one answer may take, from the question to its end.
    pub timeout: Duration,
    /// Where it is noted what answers took; `None` where nothing can be written.
    pub books: Option<Books>,
}

/// The account of what learning used, and the clock that it goes by.
#[derive(Clone)]
pub struct Books {
    pub ledger: Arc<dyn LearningLedger>,
    pub clock: Arc<dyn Clock>,
}

impl Books {
    /// Notes a use that nothing was reserved for: it leaves less to the budget of the day, and is not refused by it.
    async fn note(&self, purpose: &str, session: &SessionId, finished: &Finished) {
        const UNLIMITED: LearningUse = LearningUse {
            tokens: u64::MAX,
            micro_usd: u64::MAX,
        };
        let used = LearningUse::of(&finished.usage, finished.cost.micro_usd());
        let noted = NewLearningUse {
            day: self.clock.now().date_text(),
            purpose: purpose.to_owned(),
            session: Some(session.clone()),
            at_most: used,
        };
        let noted = match self.ledger.reserve_use(noted, UNLIMITED).await {
            Ok(Some(noted)) => self.ledger.settle_use(noted, used).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = noted {
            tracing::warn!("what an answer took is not in the account of {purpose}: {error}");
        }
    }
}

/// What is asked.
pub struct Question<'a> {
    /// The conversation that it is about, for the accounts of the provider.
    pub session: &'a SessionId,
    /// What it is for, in a word.
    pub purpose: &'a str,
    pub system: &'a str,
    pub text: String,
    /// Longer answers are cut: nobody waits for a model that does not stop.
    pub answer_chars_max: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub text: String,
    /// What it took; `None` where the answer was cut.
    pub finished: Option<Finished>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    #[error("the model could not be asked: {0}")]
    Model(String),
    #[error("the model did not answer within {} seconds", .0.as_secs())]
    TookTooLong(Duration),
    #[error("the model answered nothing")]
    Nothing,
    #[error("the model called a tool instead of answering")]
    CalledTool,
}

impl Asking {
    /// The most that asking can use: a token has at least one byte.
    pub fn at_most(&self, question: &Question<'_>, budget: LearningUse) -> LearningUse {
        const AROUND: usize = 64;
        // A character has up to four bytes.
        let output = question.answer_chars_max.saturating_mul(4) as u64;
        let output = output.max(u64::from(ANSWER_TOKENS_MAX));
        let input = (question.system.len() + question.text.len() + AROUND) as u64;
        let cost = self.model.cost_at_most(input, output);
        LearningUse {
            tokens: input + output,
            micro_usd: reserved_money(cost, input, output, budget),
        }
    }

    /// Asks, and notes in the books what the answer took.
    pub async fn ask(&self, question: Question<'_>) -> Result<Answer, AskError> {
        let (purpose, session) = (question.purpose, question.session);
        let answer = self.ask_reserved(question).await?;
        if let (Some(books), Some(finished)) = (&self.books, &answer.finished) {
            books.note(purpose, session, finished).await;
        }
        Ok(answer)
    }

    /// The same for whoever has reserved it in the books, and settles it there.
    pub(crate) async fn ask_reserved(&self, question: Question<'_>) -> Result<Answer, AskError> {
        let answer = tokio::time::timeout(self.timeout, self.answer(question));
        answer
            .await
            .map_err(|_| AskError::TookTooLong(self.timeout))?
    }

    async fn answer(&self, question: Question<'_>) -> Result<Answer, AskError> {
        let messages = [Message::user(question.text)];
        let turn = TurnId::from(question.purpose);
        let mut stream = self.model.stream(ModelRequest {
            session: question.session,
            turn: &turn,
            system: question.system,
            tools: &[],
            messages: &messages,
            output_tokens_max: Some(ANSWER_TOKENS_MAX),
        });
        let (mut text, mut finished) = (String::new(), None);
        // A character has up to four bytes.
        let bytes_max = question.answer_chars_max.saturating_mul(4);
        while let Some(delta) = stream.next().await {
            match delta.map_err(|error| AskError::Model(error.to_string()))? {
                Delta::Text(more) => text.push_str(&more),
                Delta::Finished(end) => finished = Some(end),
                Delta::CallStarted { .. } => return Err(AskError::CalledTool),
                _ => {}
            }
            if text.len() > bytes_max {
                break;
            }
        }
        let text: String = text
            .trim()
            .chars()
            .take(question.answer_chars_max)
            .collect();
        if text.is_empty() {
            return Err(AskError::Nothing);
        }
        Ok(Answer { text, finished })
    }
}
