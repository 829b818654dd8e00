//! The model of the user that is kept on this machine: what a person said of themselves, and what follows from it.
//!
//! After a conversation a cheap model is shown the person's own words and derives facts from them (`derive` has the rules of
//! what may be kept, `facts` those of how facts live together). They are one document per person in the store; every change
//! of it is in the learning log and can be taken back. Prompts have a short block of it (`prompt`), and questions are
//! answered from it, with what the answer goes by (`ask`). Start at [`LocalUserModel`]. [`honcho`] is a service that does all
//! this elsewhere.

pub mod ask;
pub mod derive;
pub mod edit;
pub mod facts;
pub mod honcho;
mod prompt;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::text::shorten;
use hermes_core::{
    Archive, Author, BoxFuture, CancellationToken, ChangeId, Clock, FactId, Heard, LearningLedger,
    LearningLog, LearningUse, MoreToHear, NewLearnedChange, NewLearningUse, Representation,
    SessionId, SpokenFrom, SpokenQuery, Store, StoreError, StoredUserModel, Subject, TakenHearing,
    Tool, UserAnswer, UserBlock, UserModel, UserModels,
};

use crate::asking::{Asking, Question};
use crate::grounding::{Conversations, Grounding};
use crate::review::is_of_person;
use derive::{HeardWords, OwnWords, own_words};

/// As `memory.provider` names it.
pub const PROVIDER: &str = "local";

/// How long a hearing may take; then somebody else may take it.
const LEASE: Duration = Duration::from_secs(10 * 60);

/// A conversation whose hearing failed this often is left out.
const TRIES_MAX: u32 = 3;

/// Characters of a person's words that are heard at once: about 4,000 tokens. The rest is heard after it.
const WORDS_CHARS_MAX: usize = 16_000;

/// Characters of one message: who writes more has pasted it.
const MESSAGE_CHARS_MAX: usize = 4_000;

/// Messages that are read from the store at once.
const PAGE: usize = 200;

/// Characters of an answer: as many facts as are taken from one.
const ANSWER_CHARS_MAX: usize = 8_000;

/// Of what was learned, this much is in the line that tells of it.
const SUMMARY_CHARS_MAX: usize = 200;

/// How often a change is planned anew because another process was faster.
const CHANGE_TRIES: usize = 50;

/// What the budget calls it.
const PURPOSE: &str = "user_model";

/// The model of one person.
#[derive(Clone)]
pub struct LocalUserModel {
    pub store: Arc<dyn Store>,
    pub archive: Arc<dyn Archive>,
    pub models: Arc<dyn UserModels>,
    pub log: Arc<dyn LearningLog>,
    pub ledger: Arc<dyn LearningLedger>,
    pub clock: Arc<dyn Clock>,
    /// Who derives and answers; nobody, where it is only looked at.
    pub asking: Option<Asking>,
    pub settings: UserModelSettings,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserModelSettings {
    /// Whose model it is, where a process serves several.
    pub person: Option<String>,
    /// Characters of the block in prompts; 0: there is none.
    pub prompt_chars_max: usize,
    /// What all learning of a day may use.
    pub budget: LearningUse,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserModelError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("what is known of the user cannot be read: {0}")]
    Unreadable(String),
    #[error("there is no fact {0}")]
    NoFact(FactId),
    #[error("{0}")]
    Refused(String),
    #[error("there is no change {0} of a model of the user")]
    NoChange(ChangeId),
    #[error("change {0} was taken back already, by change {1}")]
    UndoneAlready(ChangeId, ChangeId),
    #[error("nothing of change {0} is left to take back: the facts have changed since")]
    NothingToUndo(ChangeId),
    #[error("others keep changing what is known of the user; try again")]
    Busy,
}

/// Who makes a change, from what, and what it is.
pub struct Provenance<'a> {
    pub author: Author,
    pub session: Option<&'a SessionId>,
    pub undoes: Option<ChangeId>,
}

impl Provenance<'_> {
    /// A person, by a command.
    pub fn person() -> Self {
        Self {
            author: Author::Person,
            session: None,
            undoes: None,
        }
    }
}

/// What a person said that was not heard yet.
struct Unheard {
    words: Vec<OwnWords>,
    /// The place of the last message that was looked at.
    last: u64,
    more: MoreToHear,
}

impl LocalUserModel {
    fn person(&self) -> Option<&str> {
        self.settings.person.as_deref()
    }

    fn subject(&self) -> Subject {
        Subject::UserModel {
            person: self.settings.person.clone(),
        }
    }

    /// What is known now.
    pub async fn known(&self) -> Result<Representation, UserModelError> {
        let stored = self.models.user_model(self.person()).await?;
        read(stored.as_ref())
    }

    /// Changes what is known. `plan` says what it becomes and what that is in a line; it is asked again when another process
    /// was faster. Returns nothing when there is nothing to change.
    pub async fn change(
        &self,
        by: &Provenance<'_>,
        plan: impl Fn(&Representation) -> Result<(Representation, String), UserModelError>,
    ) -> Result<Option<(ChangeId, String)>, UserModelError> {
        for _ in 0..CHANGE_TRIES {
            let stored = self.models.user_model(self.person()).await?;
            let now = read(stored.as_ref())?;
            let (planned, summary) = plan(&now)?;
            if planned == now {
                return Ok(None);
            }
            if let Some(id) = self.replace(stored, &planned, &summary, by).await? {
                return Ok(Some((id, summary)));
            }
        }
        Err(UserModelError::Busy)
    }

    /// Replaces what is stored, unless somebody else was faster.
    async fn replace(
        &self,
        stored: Option<StoredUserModel>,
        planned: &Representation,
        summary: &str,
        by: &Provenance<'_>,
    ) -> Result<Option<ChangeId>, UserModelError> {
        let version = stored.as_ref().map_or(0, |stored| stored.version);
        let change = NewLearnedChange {
            at: self.clock.now(),
            subject: self.subject(),
            author: by.author,
            session: by.session.cloned(),
            turn: None,
            summary: summary.to_owned(),
            before: stored.map(|stored| stored.text),
            after: Some(written(planned)?),
            undoes: by.undoes,
        };
        Ok(self.models.replace_user_model(version, change).await?)
    }

    /// Forgets facts, and what was concluded from them.
    pub async fn forget(
        &self,
        ids: &[FactId],
    ) -> Result<Option<(ChangeId, String)>, UserModelError> {
        let wanted: HashSet<FactId> = ids.iter().copied().collect();
        self.change(&Provenance::person(), |now| {
            let has = |id: &FactId| {
                now.premises.iter().any(|fact| fact.id == *id)
                    || now.conclusions.iter().any(|fact| fact.id == *id)
            };
            if let Some(missing) = ids.iter().find(|id| !has(id)) {
                return Err(UserModelError::NoFact(*missing));
            }
            let mut planned = now.clone();
            let gone = facts::remove(&mut planned, &wanted);
            let names: Vec<String> = gone.iter().map(ToString::to_string).collect();
            Ok((planned, format!("forgot {}", names.join(", "))))
        })
        .await
    }

    /// Forgets everything, also what cannot be read.
    pub async fn forget_all(&self) -> Result<Option<(ChangeId, String)>, UserModelError> {
        const SUMMARY: &str = "forgot everything";
        for _ in 0..CHANGE_TRIES {
            let stored = self.models.user_model(self.person()).await?;
            let known = read(stored.as_ref()).ok();
            let is_empty =
                |known: &Representation| known.premises.is_empty() && known.conclusions.is_empty();
            if known.as_ref().is_some_and(is_empty) {
                return Ok(None);
            }
            let emptied = Representation {
                next: known.map_or(0, |known| known.next),
                ..Representation::default()
            };
            let by = Provenance::person();
            if let Some(id) = self.replace(stored, &emptied, SUMMARY, &by).await? {
                return Ok(Some((id, SUMMARY.to_owned())));
            }
        }
        Err(UserModelError::Busy)
    }

    /// Takes a change back: what it added goes, what it replaced counts again, and what came since stays.
    pub async fn undo(&self, id: ChangeId) -> Result<(ChangeId, String), UserModelError> {
        let change = self.log.change(id).await?;
        let change = change.ok_or(UserModelError::NoChange(id))?;
        if change.change.subject != self.subject() {
            return Err(UserModelError::NoChange(id));
        }
        if let Some(undoing) = change.undone_by {
            return Err(UserModelError::UndoneAlready(id, undoing));
        }
        let before = parsed(change.change.before.as_deref().unwrap_or_default())?;
        let after = parsed(change.change.after.as_deref().unwrap_or_default())?;
        let by = Provenance {
            undoes: Some(id),
            ..Provenance::person()
        };
        let made = self.change(&by, |now| {
            let undone = facts::without_change(now, &before, &after);
            let undone = undone.ok_or(UserModelError::NothingToUndo(id))?;
            Ok((
                undone,
                format!("took back change {id}: {}", change.change.summary),
            ))
        });
        made.await?.ok_or(UserModelError::NothingToUndo(id))
    }

    async fn hear_due(
        &self,
        session: &SessionId,
        stop: &CancellationToken,
    ) -> Result<Heard, StoreError> {
        let Some(asking) = &self.asking else {
            return Ok(Heard::NotDue);
        };
        let began = self.clock.now();
        let taken = self
            .models
            .take_hearing(session, began, began.plus(LEASE))
            .await?;
        let Some(taken) = taken else {
            return Ok(Heard::NotDue);
        };
        let unheard = match self.unheard(&taken).await {
            Ok(unheard) => unheard,
            Err(StoreError::NotFound { .. }) => return Ok(Heard::NotDue),
            Err(error) => return Err(error),
        };
        let end = if taken.tries > TRIES_MAX {
            Heard::GivenUp(format!("{session} failed {TRIES_MAX} times"))
        } else if unheard.words.is_empty() {
            Heard::Done { learned: None }
        } else {
            self.take_in(asking, session, &unheard.words, stop).await?
        };
        match end {
            Heard::Done { .. } | Heard::GivenUp(_) => {
                self.models
                    .finish_hearing(&taken, unheard.last, unheard.more)
                    .await?;
            }
            Heard::PutOff | Heard::OutOfBudget => self.models.put_off_hearing(session).await?,
            // Nobody takes it before its time is up.
            Heard::Failed(_) | Heard::NotDue => {}
        }
        Ok(end)
    }

    /// The person's own words behind what was heard.
    async fn unheard(&self, taken: &TakenHearing) -> Result<Unheard, StoreError> {
        let mut unheard = Unheard {
            words: Vec::new(),
            last: taken.heard,
            more: MoreToHear::No,
        };
        let mut chars = 0;
        loop {
            let spoken = self
                .archive
                .spoken(SpokenQuery {
                    session: Some(taken.due.session.clone()),
                    from: SpokenFrom::After(unheard.last),
                    with_results: false,
                    limit: PAGE,
                })
                .await?;
            let is_end = spoken.len() < PAGE;
            for one in spoken {
                let said = is_of_person(&one.message, self.person())
                    .then(|| own_words(&one.message.said()))
                    .filter(|said| !said.is_empty());
                if let Some(said) = said {
                    let text = shorten(&said, MESSAGE_CHARS_MAX);
                    let length = text.chars().count();
                    if chars + length > WORDS_CHARS_MAX && !unheard.words.is_empty() {
                        unheard.more = MoreToHear::Yes;
                        return Ok(unheard);
                    }
                    chars += length;
                    unheard.words.push(OwnWords {
                        place: one.place,
                        at: one.at,
                        text,
                    });
                }
                unheard.last = one.place;
            }
            if is_end {
                return Ok(unheard);
            }
        }
    }

    /// Asks what follows from somebody's words, and keeps what may be kept.
    async fn take_in(
        &self,
        asking: &Asking,
        session: &SessionId,
        words: &[OwnWords],
        stop: &CancellationToken,
    ) -> Result<Heard, StoreError> {
        let known = match self.known().await {
            Ok(known) => known,
            Err(UserModelError::Store(error)) => return Err(error),
            Err(error) => return Ok(Heard::Failed(error.to_string())),
        };
        let question = Question {
            session,
            purpose: PURPOSE,
            system: derive::SYSTEM,
            text: derive::question(&known, words),
            answer_chars_max: ANSWER_CHARS_MAX,
        };
        let at_most = asking.at_most(&question, self.settings.budget);
        let wanted = NewLearningUse {
            day: self.clock.now().date_text(),
            purpose: PURPOSE.to_owned(),
            session: Some(session.clone()),
            at_most,
        };
        if stop.is_cancelled() {
            return Ok(Heard::PutOff);
        }
        let reserved = self
            .ledger
            .reserve_use(wanted, self.settings.budget)
            .await?;
        let Some(reserved) = reserved else {
            return Ok(Heard::OutOfBudget);
        };
        let answer = tokio::select! {
            answer = asking.ask_reserved(question) => answer,
            // What was asked may be paid for: it stays reserved.
            () = stop.cancelled() => return Ok(Heard::PutOff),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Ok(Heard::Failed(error.to_string())),
        };
        if let Some(finished) = &answer.finished {
            let used = LearningUse::of(&finished.usage, finished.cost.micro_usd());
            self.ledger.settle_use(reserved, used).await?;
        }
        let derived = match derive::parse(&answer.text) {
            Ok(derived) => derived,
            Err(why) => return Ok(Heard::Failed(why)),
        };
        let texts = derived.texts();
        let grounding = Grounding::of(texts.iter().map(String::as_str), self.person());
        let conversations = Conversations::of(Arc::clone(&self.archive));
        let heard = HeardWords {
            session,
            words,
            grounding: &conversations.hear(session, grounding).await?,
        };
        self.keep(&derived, &heard).await
    }

    async fn keep(
        &self,
        derived: &derive::Derived,
        heard: &HeardWords<'_>,
    ) -> Result<Heard, StoreError> {
        let by = Provenance {
            author: Author::Review,
            session: Some(heard.session),
            undoes: None,
        };
        let now = self.clock.now();
        let made = self.change(&by, |known| {
            let mut planned = known.clone();
            let taken = derive::take(&mut planned, derived, heard, now);
            for why in &taken.refused {
                tracing::debug!("not kept of the user: {why}");
            }
            let what = match taken.learned.as_slice() {
                [] => "heard again what is known".to_owned(),
                learned => learned.join("; "),
            };
            Ok((
                planned,
                format!("about you: {}", shorten(&what, SUMMARY_CHARS_MAX)),
            ))
        });
        match made.await {
            Ok(learned) => Ok(Heard::Done { learned }),
            Err(UserModelError::Store(error)) => Err(error),
            Err(error) => Ok(Heard::Failed(error.to_string())),
        }
    }
}

impl UserModel for LocalUserModel {
    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn block(&self) -> BoxFuture<'_, UserBlock> {
        Box::pin(async move {
            match self.known().await {
                Ok(known) => UserBlock {
                    text: prompt::block(&known, self.settings.prompt_chars_max),
                    notice: None,
                },
                Err(error) => UserBlock {
                    text: None,
                    notice: Some(error.to_string()),
                },
            }
        })
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![ask::tool(self.clone())]
    }

    fn hear<'a>(
        &'a self,
        session: &'a SessionId,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Heard, StoreError>> {
        Box::pin(self.hear_due(session, stop))
    }

    fn ask<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Result<UserAnswer, String>> {
        Box::pin(async move {
            let session = SessionId::from(PURPOSE);
            let answered = ask::answer(self, &session, question).await;
            let answered = answered.map_err(|error| error.to_string())?;
            Ok(answered.answer)
        })
    }
}

fn read(stored: Option<&StoredUserModel>) -> Result<Representation, UserModelError> {
    parsed(stored.map_or("", |stored| stored.text.as_str()))
}

fn parsed(text: &str) -> Result<Representation, UserModelError> {
    if text.is_empty() {
        return Ok(Representation::default());
    }
    serde_json::from_str(text).map_err(|error| UserModelError::Unreadable(error.to_string()))
}

/// As the store and the log have it: a line for each thing, so that people can compare.
fn written(model: &Representation) -> Result<String, UserModelError> {
    serde_json::to_string_pretty(model)
        .map_err(|error| UserModelError::Unreadable(error.to_string()))
}
