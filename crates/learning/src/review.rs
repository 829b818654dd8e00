//! The review: after a conversation has rested, a model looks through it once more and keeps what is worth keeping.
//!
//! It is no part of the conversation. It is asked with the conversation's own prefix and messages, so that a provider's cache
//! serves it, and one message behind them ([`instruction`]); it may change notes and skills and nothing else; what it writes
//! must come from the person or from the agent's own steps, which its tools see to ([`crate::grounding`]). Which reviews are
//! due, and what they use, is in the store: a crash loses neither, and a day's budget holds.
//!
//! Start at [`Reviewer::review`]; when one is due, [`Counts`] knows. Who runs it, and stops it when somebody speaks, is the
//! runtime's.

mod counts;
mod instruction;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::text::shorten;
use hermes_core::{
    Arguments, Author, CancellationToken, ChangeFilter, Clock, Consent, Delta, DueReview, Finished,
    LearnedChange, LearningLedger, LearningLog, LearningUse, LoadedSession, Message, Model,
    ModelError, ModelErrorKind, ModelRequest, NewLearningUse, Part, Plan, PlanContext,
    ReplyBuilder, ResultStatus, Reviews, Role, SessionId, Store, StoreError, Subject, Tool,
    ToolCall, ToolContext, ToolError, ToolResult, ToolSpec, TurnId,
};
use serde_json::Value;

pub use counts::{Counts, Intervals, SkillOutcome, Wanted};

use crate::asking::{ANSWER_TOKENS_MAX, reserved_money};
use crate::notes::Notes;

/// Requests of one review. What is not kept by then is not worth more.
pub const STEPS_MAX: usize = 16;

/// How long a review may take; then somebody else may take it. Longer than all its requests together usually last.
const LEASE: Duration = Duration::from_secs(10 * 60);

/// How long a provider is left alone that does not answer, and what is due here lets others go first.
const OUTAGE: Duration = Duration::from_secs(10 * 60);

/// A review that died this often is not tried again.
const TRIES_MAX: u32 = 3;

/// Bytes of one answer. A token has at least one, so that this bounds the tokens, too.
const ANSWER_BYTES_MAX: usize = 32 * 1024;

/// Tokens of a picture, at most, with those who count most for it.
const PICTURE_TOKENS_MAX: u64 = 5_000;

/// Of what was learned, this much is told in a line.
const TOLD_CHARS_MAX: usize = 160;

/// What the budget calls it.
const PURPOSE: &str = "review";

/// What a review works with.
#[derive(Clone)]
pub struct Reviewer {
    pub store: Arc<dyn Store>,
    pub reviews: Arc<dyn Reviews>,
    pub ledger: Arc<dyn LearningLedger>,
    pub log: Arc<dyn LearningLog>,
    pub clock: Arc<dyn Clock>,
    pub model: ReviewModel,
    /// The tools it may use: those that keep notes and skills.
    pub tools: Vec<Arc<dyn Tool>>,
    pub notes: Option<Notes>,
    pub settings: ReviewSettings,
}

/// Who looks through conversations.
#[derive(Clone)]
pub enum ReviewModel {
    /// The model that answers conversations.
    Main(Arc<dyn Model>),
    /// Another one. It has no cache of the conversation, so that it is shown a digest.
    Other(Arc<dyn Model>),
}

#[derive(Debug, Clone)]
pub struct ReviewSettings {
    /// What all reviews of a day may use.
    pub budget: LearningUse,
    /// How long one answer may take.
    pub answer_timeout: Duration,
    /// Whose conversations it looks through.
    pub person: Option<String>,
    pub cwd: PathBuf,
}

/// What came of a review.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Learned {
    pub changes: Vec<LearnedChange>,
    /// What waits for somebody's consent.
    pub proposed: Vec<Proposed>,
}

/// A change that a review wants made and may not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    pub summary: String,
    /// The command that shows it.
    pub see: String,
}

impl Proposed {
    /// Reads what a tool says of a change that it did not make.
    fn read(output: &str) -> Option<Self> {
        let output: Value = serde_json::from_str(output).ok()?;
        output.get("proposed").filter(|number| number.is_u64())?;
        let text = |name: &str| Some(output[name].as_str()?.to_owned());
        Some(Self {
            summary: text("summary")?,
            see: text("see")?,
        })
    }
}

/// How a review ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Reviewed {
    /// Nothing was due, or somebody else is at it.
    NotDue,
    /// It came to its end, and changed this.
    Done(Learned),
    /// It stays due: somebody spoke, or the process ends. What it has changed so far stays.
    PutOff(Learned),
    /// It stays due: today's budget does not allow another request.
    OutOfBudget(Learned),
    /// The model did not answer. It is tried again later.
    Failed(String),
    /// It died too often.
    GivenUp,
}

impl Reviewed {
    /// What was changed.
    pub fn changes(&self) -> &[LearnedChange] {
        self.learned().map_or(&[], |learned| &learned.changes)
    }

    fn learned(&self) -> Option<&Learned> {
        match self {
            Self::Done(learned) | Self::PutOff(learned) | Self::OutOfBudget(learned) => {
                Some(learned)
            }
            Self::NotDue | Self::Failed(_) | Self::GivenUp => None,
        }
    }

    /// What was learned and how to take it back, and what waits for consent, as one line; `None` when nothing is to be told.
    pub fn told(&self) -> Option<String> {
        let learned = self.learned()?;
        let told = [
            told_changes(&learned.changes),
            told_proposed(&learned.proposed),
        ];
        let told: Vec<String> = told.into_iter().flatten().collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

fn told_changes(changes: &[LearnedChange]) -> Option<String> {
    let last = changes.last()?;
    let all: Vec<&str> = changes
        .iter()
        .map(|change| change.change.summary.as_str())
        .collect();
    let undo = match changes.len() {
        1 => format!("`hermes learning undo {}`", last.id),
        _ => {
            let ids: Vec<String> = changes.iter().map(|change| change.id.to_string()).collect();
            format!("`hermes learning undo N` ({})", ids.join(", "))
        }
    };
    let all = shorten(&all.join("; "), TOLD_CHARS_MAX);
    Some(format!("{all}; undo with {undo}"))
}

fn told_proposed(proposed: &[Proposed]) -> Option<String> {
    let mut places: Vec<&str> = proposed.iter().map(|one| one.see.as_str()).collect();
    places.dedup();
    let all: Vec<&str> = proposed.iter().map(|one| one.summary.as_str()).collect();
    let all = shorten(&all.join("; "), TOLD_CHARS_MAX);
    (!proposed.is_empty()).then(|| format!("proposed: {all}, see `{}`", places.join("`, `")))
}

/// How the looking through ended.
enum End {
    Done,
    Stopped,
    OutOfBudget,
    /// The provider was at fault, and no try of ours.
    Unavailable(String),
    Failed(String),
}

impl Reviewer {
    /// Looks through a conversation, if that is due. Returns soon after `stop` is cancelled; a change that is being made is
    /// made first.
    pub async fn review(
        &self,
        session: &SessionId,
        stop: &CancellationToken,
    ) -> Result<Reviewed, StoreError> {
        let began = self.clock.now();
        let taken = self
            .reviews
            .take_review(session, began, began.plus(LEASE))
            .await?;
        let Some(taken) = taken else {
            return Ok(Reviewed::NotDue);
        };
        let loaded = match self.store.load(session).await {
            Ok(loaded) => loaded,
            Err(StoreError::NotFound { .. }) => return Ok(Reviewed::NotDue),
            Err(error) => return Err(error),
        };
        let messages = loaded.record.messages;
        if taken.tries > TRIES_MAX {
            self.reviews.finish_review(session, messages).await?;
            return Ok(Reviewed::GivenUp);
        }
        // After a crash it may have kept something already.
        let before = self.changes(session).await?;
        let mut proposed = Vec::new();
        let end = if loaded.open_turn.is_some() {
            End::Stopped
        } else {
            self.look_through(&taken.due, &loaded, &before, &mut proposed, stop)
                .await?
        };
        match end {
            End::Done => self.reviews.finish_review(session, messages).await?,
            End::Stopped | End::OutOfBudget => self.reviews.put_off_review(session, began).await?,
            // An outage ends, and what is due outlasts it.
            End::Unavailable(_) => {
                let later = self.clock.now().plus(OUTAGE);
                self.reviews.put_off_review(session, later).await?;
            }
            // Nobody takes it before its time is up.
            End::Failed(_) => {}
        }
        let mut changes = self.changes(session).await?;
        changes.retain(|change| before.iter().all(|known| known.id != change.id));
        let learned = Learned { changes, proposed };
        Ok(match end {
            End::Done => Reviewed::Done(learned),
            End::Stopped => Reviewed::PutOff(learned),
            End::OutOfBudget => Reviewed::OutOfBudget(learned),
            End::Unavailable(why) | End::Failed(why) => Reviewed::Failed(why),
        })
    }

    /// What reviews of a conversation changed, in order.
    async fn changes(&self, session: &SessionId) -> Result<Vec<LearnedChange>, StoreError> {
        let filter = ChangeFilter {
            session: Some(session.clone()),
            author: Some(Author::Review),
            ..ChangeFilter::default()
        };
        let mut changes = self.log.changes(filter).await?;
        // What is heard of the user meanwhile tells itself.
        let is_of_user =
            |change: &LearnedChange| matches!(change.change.subject, Subject::UserModel { .. });
        changes.retain(|change| {
            change.is_finished && change.undone_by.is_none() && !is_of_user(change)
        });
        changes.reverse();
        Ok(changes)
    }

    async fn look_through(
        &self,
        due: &DueReview,
        loaded: &LoadedSession,
        learned: &[LearnedChange],
        proposed: &mut Vec<Proposed>,
        stop: &CancellationToken,
    ) -> Result<End, StoreError> {
        if loaded.messages.is_empty() {
            return Ok(End::Done);
        }
        let mut asking = self.asking(due, loaded, learned);
        for _ in 0..STEPS_MAX {
            let reply = match self.ask(&due.session, &asking, stop).await? {
                Answer::Said(reply) => reply,
                Answer::End(end) => return Ok(end),
            };
            let calls: Vec<ToolCall> = reply.calls().cloned().collect();
            if calls.is_empty() {
                return Ok(End::Done);
            }
            asking.messages.push(reply);
            for call in calls {
                let result = self.answer(&due.session, &call, stop).await;
                let new = Proposed::read(&result.text);
                proposed.extend(new.filter(|new| !proposed.contains(new)));
                asking.messages.push(Message::result(result));
            }
            if stop.is_cancelled() {
                return Ok(End::Stopped);
            }
        }
        Ok(End::Done)
    }

    /// The first request: the conversation as it is with one message more, or a digest for a model that has not seen it, or
    /// where the whole is too much.
    fn asking(&self, due: &DueReview, loaded: &LoadedSession, learned: &[LearnedChange]) -> Asking {
        let remembered = self.notes.as_ref().map(Notes::prompt).unwrap_or_default();
        let wanted = Wanted {
            notes: due.notes,
            skills: due.skills,
        };
        let told = instruction::told(wanted, &remembered, learned, &self.tool_names());
        let model = match &self.model {
            ReviewModel::Main(model) => {
                let whole = Asking {
                    model: Arc::clone(model),
                    system: loaded.prefix.system.clone(),
                    tools: loaded.prefix.tools.clone(),
                    messages: [loaded.messages.as_slice(), std::slice::from_ref(&told)].concat(),
                };
                // One that no day's budget has room for would wait for ever.
                let fits =
                    whole.at_most(self.settings.budget).tokens <= self.settings.budget.tokens;
                if model.name() == loaded.record.model && fits {
                    return whole;
                }
                model
            }
            ReviewModel::Other(model) => model,
        };
        Asking {
            model: Arc::clone(model),
            system: instruction::SYSTEM.to_owned(),
            tools: self.tools.iter().map(|tool| tool.spec().clone()).collect(),
            messages: vec![instruction::digest(&loaded.messages), told],
        }
    }

    fn tool_names(&self) -> Vec<&str> {
        self.tools
            .iter()
            .map(|tool| tool.spec().name.as_str())
            .collect()
    }

    /// Asks once, within the budget.
    async fn ask(
        &self,
        session: &SessionId,
        asking: &Asking,
        stop: &CancellationToken,
    ) -> Result<Answer, StoreError> {
        if stop.is_cancelled() {
            return Ok(Answer::End(End::Stopped));
        }
        let at_most = asking.at_most(self.settings.budget);
        let wanted = NewLearningUse {
            day: self.clock.now().date_text(),
            purpose: PURPOSE.to_owned(),
            session: Some(session.clone()),
            at_most,
        };
        let reserved = self
            .ledger
            .reserve_use(wanted, self.settings.budget)
            .await?;
        let Some(reserved) = reserved else {
            return Ok(Answer::End(End::OutOfBudget));
        };
        let turn = TurnId::from(PURPOSE);
        let asked = asking.collect(session, &turn);
        let asked = tokio::select! {
            asked = tokio::time::timeout(self.settings.answer_timeout, asked) => asked,
            // What was asked may be paid for: it stays reserved.
            () = stop.cancelled() => return Ok(Answer::End(End::Stopped)),
        };
        match asked {
            Ok(Ok((reply, finished))) => {
                let used = LearningUse::of(&finished.usage, finished.cost.micro_usd());
                self.ledger.settle_use(reserved, used).await?;
                Ok(Answer::Said(reply))
            }
            Ok(Err(Unanswered::Provider(error))) => {
                if is_refusal(error.kind) {
                    // Nothing was asked of a model.
                    self.ledger
                        .settle_use(reserved, LearningUse::default())
                        .await?;
                }
                let end = if is_passing(error.kind) {
                    End::Unavailable(error.to_string())
                } else {
                    End::Failed(error.to_string())
                };
                Ok(Answer::End(end))
            }
            Ok(Err(Unanswered::Odd(why))) => Ok(Answer::End(End::Failed(why))),
            Err(_) => Ok(Answer::End(End::Failed("no answer in time".to_owned()))),
        }
    }

    /// Answers one call: runs it if a review may, and says why not otherwise.
    async fn answer(
        &self,
        session: &SessionId,
        call: &ToolCall,
        stop: &CancellationToken,
    ) -> ToolResult {
        let outcome = match self.permitted(session, call).await {
            Err(why) => Err(why),
            Ok(plan) => {
                let cx = ToolContext {
                    author: Author::Review,
                    stop: stop.child_token(),
                    ..ToolContext::alone(session.clone(), call.id.clone(), &self.settings.cwd)
                };
                let ran = plan.action.run(&cx).await;
                ran.map(|output| output.text).map_err(|error| match error {
                    ToolError::Answer(text)
                    | ToolError::OutcomeUnknown(text)
                    | ToolError::Stopped(text) => text,
                })
            }
        };
        match outcome {
            Ok(text) => ToolResult::new(call, ResultStatus::Ok, text),
            Err(text) => ToolResult::new(call, ResultStatus::Failed, text),
        }
    }

    /// The plan of a call that a review may make.
    async fn permitted(&self, session: &SessionId, call: &ToolCall) -> Result<Plan, String> {
        let tool = self.tools.iter().find(|tool| tool.spec().name == call.name);
        let tool = tool.ok_or_else(|| {
            format!(
                "`{}` is not run: a review uses only {}",
                call.name,
                self.tool_names().join(", ")
            )
        })?;
        let Arguments::Json(arguments) = &call.arguments else {
            return Err("the arguments are not a JSON object".to_owned());
        };
        let plan = prepare(
            Arc::clone(tool),
            arguments.clone(),
            session.clone(),
            self.settings.cwd.clone(),
        )
        .await?;
        match &plan.consent {
            Consent::NotNeeded => Ok(plan),
            Consent::Needed(_) | Consent::Review(_) => Err(
                "not done: somebody has to agree to this, and a review asks nobody; leave it to a conversation".to_owned(),
            ),
            Consent::Forbidden { reason } => Err(format!("not done: this {reason}")),
        }
    }
}

/// Prepares a call on a thread that may wait for the disk.
async fn prepare(
    tool: Arc<dyn Tool>,
    arguments: Value,
    session: SessionId,
    cwd: PathBuf,
) -> Result<Plan, String> {
    let work = move || {
        let cx = PlanContext {
            session: &session,
            cwd: &cwd,
        };
        tool.prepare(&arguments, cx)
    };
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| format!("not done: {error}"))
}

/// Why there is no answer.
enum Unanswered {
    Provider(ModelError),
    Odd(String),
}

/// Whether the provider said no before a model was asked.
fn is_refusal(kind: ModelErrorKind) -> bool {
    matches!(
        kind,
        ModelErrorKind::Auth
            | ModelErrorKind::Billing
            | ModelErrorKind::RateLimit
            | ModelErrorKind::Overloaded
            | ModelErrorKind::UnknownModel
    )
}

/// Whether the same request may be answered another time, once what is wrong with the provider is mended.
fn is_passing(kind: ModelErrorKind) -> bool {
    is_refusal(kind)
        || matches!(
            kind,
            ModelErrorKind::Network | ModelErrorKind::Broken | ModelErrorKind::Silent
        )
}

enum Answer {
    Said(Message),
    End(End),
}

/// A request, growing from step to step.
struct Asking {
    model: Arc<dyn Model>,
    system: String,
    tools: Arc<[ToolSpec]>,
    messages: Vec<Message>,
}

impl Asking {
    /// The most that asking can use: a token has at least one byte.
    fn at_most(&self, budget: LearningUse) -> LearningUse {
        let tools = serde_json::to_string(&self.tools).map_or(0, |text| text.len());
        let messages: u64 = self.messages.iter().map(tokens_at_most).sum();
        let input = (self.system.len() + tools) as u64 + messages;
        let output = ANSWER_BYTES_MAX as u64;
        let cost = self.model.cost_at_most(input, output);
        LearningUse {
            tokens: input + output,
            micro_usd: reserved_money(cost, input, output, budget),
        }
    }

    /// Asks and collects the answer.
    async fn collect(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> Result<(Message, Finished), Unanswered> {
        let mut stream = self.model.stream(ModelRequest {
            session,
            turn,
            system: &self.system,
            tools: &self.tools,
            messages: &self.messages,
            output_tokens_max: Some(ANSWER_TOKENS_MAX),
        });
        let mut reply = ReplyBuilder::new();
        let mut bytes = 0;
        while let Some(delta) = stream.next().await {
            match delta.map_err(Unanswered::Provider)? {
                Delta::Finished(finished) => return Ok((reply.finish(), finished)),
                delta => {
                    bytes += bytes_of(&delta);
                    if bytes > ANSWER_BYTES_MAX {
                        return Err(Unanswered::Odd(format!(
                            "the answer was longer than {ANSWER_BYTES_MAX} bytes"
                        )));
                    }
                    reply.push(&delta);
                }
            }
        }
        Err(Unanswered::Odd("the answer broke off".to_owned()))
    }
}

fn bytes_of(delta: &Delta) -> usize {
    match delta {
        Delta::Text(text) | Delta::Reasoning(text) => text.len(),
        Delta::CallArguments { json, .. } => json.len(),
        Delta::CallStarted { id, name, .. } => id.len() + name.len(),
        _ => 0,
    }
}

/// The most tokens that a message can have, with what wires put around it.
fn tokens_at_most(message: &Message) -> u64 {
    const AROUND: usize = 64;
    let part = |part: &Part| match part {
        Part::Text { text } => text.len() as u64,
        Part::Image(_) | Part::Audio(_) => PICTURE_TOKENS_MAX,
        Part::Reasoning(reasoning) => {
            (reasoning.text.len() + reasoning.signature.as_ref().map_or(0, String::len)) as u64
        }
        Part::ToolCall(call) => {
            let signatures: usize = call.signatures.iter().map(String::len).sum();
            let arguments = serde_json::to_string(&call.arguments).map_or(0, |text| text.len());
            (call.name.len() + arguments + signatures + AROUND) as u64
        }
        Part::ToolResult(result) => {
            result.text.len() as u64 + result.images.len() as u64 * PICTURE_TOKENS_MAX
        }
    };
    let parts: u64 = message.parts.iter().map(part).sum();
    parts + (message.parts.len() * AROUND) as u64
}

/// Whether a message has the words of the person that a conversation is held with.
pub(crate) fn is_of_person(message: &Message, person: Option<&str>) -> bool {
    let origin = message.origin.as_ref();
    message.role == Role::User && origin.is_none_or(|origin| origin.is_of(person))
}
