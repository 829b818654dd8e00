//! Runs reviews: follows a session, knows when one is due, and lets it run only while nobody waits for anything.
//!
//! One task per session, beside it. Whoever speaks stops a review, which stays due; so does the end of the process.

use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{Follower, WeakSession};
use hermes_core::{
    CancellationToken, DueReview, Event, Followed, LearningUse, Message, Model, Notice, Origin,
    Reviews as _, SessionId, SessionOptions, StoreError, Tool, TurnEnd,
};
use hermes_learning::notes::Notes;
use hermes_learning::review::{
    Counts, Intervals, ReviewModel, ReviewSettings, Reviewed, Reviewer, SkillOutcome,
};
use hermes_learning::skills::{Happened, Skills, TurnSkills, misled};
use hermes_store::SqliteStore;
use serde_json::Value;

use crate::base::Base;
use crate::error::Result;
use crate::models::Purpose;
use crate::runtime::Runtime;

/// Messages that are counted of a conversation that goes on: after fewer something is due, however the settings are.
const UNREVIEWED_MAX: usize = 2_000;

/// What the reviews of one conversation go by.
#[derive(Clone)]
pub struct ReviewPlan {
    reviewer: Arc<Reviewer>,
    intervals: Intervals,
    store: Arc<SqliteStore>,
    /// The skills that the whole conversation goes by (`-s`).
    preloaded: Arc<[String]>,
    /// Where it is counted how skills come out.
    skills: Arc<Skills>,
    /// `learning.rest`: whoever is in the middle of a talk speaks again sooner, and a script has ended by then.
    rest: Duration,
    /// `display.memory_notifications`: whether the conversation is told.
    is_told: bool,
}

impl ReviewPlan {
    /// As the settings want it; `None` when nothing is learned by itself, or there is nothing to learn with.
    pub fn of(
        runtime: &Runtime,
        base: &Base,
        options: &SessionOptions,
        model: &Arc<dyn Model>,
        notes: Option<&Notes>,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Result<Option<Self>> {
        if !base.settings.bool("learning.enabled")? || options.leaves_out.rules {
            return Ok(None);
        }
        let model = match runtime.models().get(base, Purpose::Review)? {
            Some(other) => ReviewModel::Other(other),
            None => ReviewModel::Main(Arc::clone(model)),
        };
        let store = Arc::clone(runtime.store());
        let turns = base.settings.u64("memory.nudge_interval")?;
        Ok(Some(Self {
            reviewer: Arc::new(Reviewer {
                store: store.clone(),
                reviews: store.clone(),
                ledger: store.clone(),
                log: store.clone(),
                clock: Arc::clone(runtime.clock()),
                model,
                tools,
                notes: notes.cloned(),
                settings: ReviewSettings {
                    budget: budget(base)?,
                    answer_timeout: base
                        .settings
                        .seconds("auxiliary.background_review.timeout")?,
                    person: options.person.clone(),
                    cwd: base.cwd.clone(),
                },
            }),
            intervals: Intervals {
                turns,
                // Only the owner's conversations change skills.
                steps: match options.person {
                    None => base.settings.u64("skills.creation_nudge_interval")?,
                    Some(_) => 0,
                },
            },
            store,
            preloaded: options.skills.as_slice().into(),
            skills: Arc::new(crate::skills::skills(base, None)?),
            rest: base.settings.seconds("learning.rest")?,
            is_told: is_told(base),
        }))
    }

    /// Follows a session until it is closed. `earlier` is what was said in it before, as its model sees it.
    pub(crate) async fn follow(
        self,
        session: WeakSession,
        events: Follower,
        earlier: Arc<Vec<Message>>,
    ) {
        let mut watch = Watch {
            counts: self.earlier_counts(session.id(), &earlier).await,
            plan: self,
            session,
            events,
            turn_skills: TurnSkills::default(),
            went_by: Vec::new(),
            answered: Vec::new(),
            budget_told: None,
        };
        drop(earlier);
        watch.run().await;
    }

    /// What has happened since a conversation was last reviewed. Models do not see all of it.
    async fn earlier_counts(&self, session: &SessionId, earlier: &[Message]) -> Counts {
        if earlier.is_empty() {
            return Counts::default();
        }
        match self.store.unreviewed(session, UNREVIEWED_MAX).await {
            Ok(unreviewed) => Counts::of(&unreviewed),
            // Nothing of it is in the store yet.
            Err(_) => Counts::of(earlier),
        }
    }
}

/// `display.memory_notifications`: `off`, however it was written; everything else is on.
pub(crate) fn is_told(base: &Base) -> bool {
    match base.settings.get("display.memory_notifications") {
        Some(Value::Bool(is_on)) => *is_on,
        Some(Value::String(word)) => word != "off",
        _ => true,
    }
}

/// `learning.budget`
pub(crate) fn budget(base: &Base) -> Result<LearningUse> {
    const MICRO: f64 = 1e6;
    let usd = base.settings.f64("learning.budget.usd_per_day")?.max(0.0);
    Ok(LearningUse {
        tokens: base.settings.u64("learning.budget.tokens_per_day")?,
        micro_usd: (usd * MICRO) as u64,
    })
}

/// How a turn that ended so came out for the skills it went by. Who stops a turn did not like where it went.
fn skill_outcome(end: &TurnEnd) -> SkillOutcome {
    match end {
        TurnEnd::OutOfSteps { .. } | TurnEnd::Stuck { .. } | TurnEnd::Interrupted => {
            SkillOutcome::Misled
        }
        _ => SkillOutcome::Fine,
    }
}

struct Watch {
    plan: ReviewPlan,
    session: WeakSession,
    events: Follower,
    counts: Counts,
    turn_skills: TurnSkills,
    /// The skills that the last turn went by.
    went_by: Vec<String>,
    /// Those after whose turn the person spoke again: it may be that they were told what was wrong.
    answered: Vec<String>,
    /// On which day the log says already that the budget is used up.
    budget_told: Option<String>,
}

/// What the events of a session mean for its reviews.
enum Heard {
    Rests,
    Works,
    /// A turn is over, and this is how it came out for the skills it went by.
    Ended(Vec<(String, Happened)>),
    Nothing,
}

/// What became of a session while a review ran.
enum Meanwhile {
    /// Nothing, or a turn that runs still.
    Quiet,
    RestsAgain,
    Closed,
}

impl Watch {
    async fn run(&mut self) {
        let mut rests = false;
        loop {
            let next = if rests {
                let rest = self.plan.rest;
                match tokio::time::timeout(rest, self.events.next()).await {
                    Ok(next) => next,
                    Err(_) => match self.review_while_it_rests().await {
                        Meanwhile::Quiet => {
                            rests = false;
                            continue;
                        }
                        // It was spoken in, and rests again.
                        Meanwhile::RestsAgain => continue,
                        Meanwhile::Closed => return,
                    },
                }
            } else {
                self.events.next().await
            };
            let Some(next) = next else {
                return;
            };
            match self.hear(next) {
                Heard::Rests => {
                    self.note_due().await;
                    rests = true;
                }
                Heard::Works => rests = false,
                Heard::Ended(outcomes) => self.plan.skills.count_outcomes(outcomes).await,
                Heard::Nothing => {}
            }
        }
    }

    fn hear(&mut self, followed: Followed) -> Heard {
        let Followed::Event(numbered) = followed else {
            return Heard::Nothing;
        };
        match numbered.event {
            Event::TurnStarted { origin, text, .. } => {
                if matches!(origin, Origin::Person { .. }) {
                    self.counts.count_turn();
                    self.answered.append(&mut self.went_by);
                }
                let named = hermes_learning::skills::slash_names(&text);
                let all = self.plan.preloaded.iter().cloned().chain(named);
                self.turn_skills.begin(all);
                Heard::Works
            }
            Event::TurnResumed { .. } => Heard::Works,
            Event::ReplyFinished { .. } => {
                self.counts.count_step();
                Heard::Nothing
            }
            Event::CallStarted {
                tool, arguments, ..
            } => {
                self.counts.count_call(&tool);
                self.turn_skills.hear(&tool, &arguments);
                Heard::Nothing
            }
            Event::TurnEnded { end, .. } => {
                if self.turn_skills.is_any() {
                    self.counts.count_skills(skill_outcome(&end));
                }
                self.went_by = self.turn_skills.names();
                Heard::Ended(self.turn_skills.end(&end))
            }
            Event::Idle => Heard::Rests,
            _ => Heard::Nothing,
        }
    }

    /// Writes down that a review is due, if it is: from now on nothing loses it.
    async fn note_due(&mut self) {
        let answered = std::mem::take(&mut self.answered);
        let looks_at_skills = self.plan.intervals.steps > 0 && !answered.is_empty();
        if looks_at_skills && self.plan.skills.look_once_a_day(&answered).await {
            self.counts.count_answer();
        }
        let Some(wanted) = self.counts.take_due(self.plan.intervals) else {
            return;
        };
        let reviewer = &self.plan.reviewer;
        let due = DueReview {
            session: self.session.id().clone(),
            person: reviewer.settings.person.clone(),
            at: reviewer.clock.now(),
            notes: wanted.notes,
            skills: wanted.skills,
        };
        if let Err(error) = self.plan.store.set_review_due(due).await {
            tracing::warn!("a review was not noted: {error}");
        }
    }

    /// Does what is due while nobody speaks.
    async fn review_while_it_rests(&mut self) -> Meanwhile {
        let due = match self.next_due().await {
            Ok(Some(due)) => due,
            Ok(None) => return Meanwhile::Quiet,
            Err(error) => {
                tracing::warn!("reviews were not read: {error}");
                return Meanwhile::Quiet;
            }
        };
        let stop = CancellationToken::new();
        let reviewer = Arc::clone(&self.plan.reviewer);
        // On the heap: most of its life a session is not reviewed.
        let mut review = Box::pin(reviewer.review(&due, &stop));
        let mut meanwhile = Meanwhile::Quiet;
        let mut outcomes = Vec::new();
        let reviewed = loop {
            let is_open = !matches!(meanwhile, Meanwhile::Closed);
            tokio::select! {
                reviewed = &mut review => break reviewed,
                next = self.events.next(), if is_open => match next.map(|next| self.hear(next)) {
                    Some(Heard::Works) => {
                        meanwhile = Meanwhile::Quiet;
                        stop.cancel();
                    }
                    Some(Heard::Rests) => meanwhile = Meanwhile::RestsAgain,
                    Some(Heard::Ended(more)) => outcomes.extend(more),
                    Some(Heard::Nothing) => {}
                    None => {
                        meanwhile = Meanwhile::Closed;
                        stop.cancel();
                    }
                },
            }
        };
        match reviewed {
            Ok(reviewed) => {
                self.tell(&reviewed);
                let misled = misled(reviewed.changes());
                self.plan.skills.count_outcomes(misled).await;
            }
            Err(error) => tracing::warn!("a review failed: {error}"),
        }
        self.plan.skills.count_outcomes(outcomes).await;
        if matches!(meanwhile, Meanwhile::RestsAgain) {
            self.note_due().await;
        }
        meanwhile
    }

    /// This session if it is due, else one of the same person that nobody is at.
    async fn next_due(&self) -> Result<Option<SessionId>, StoreError> {
        let reviewer = &self.plan.reviewer;
        let mut due = self.plan.store.due_reviews(reviewer.clock.now()).await?;
        due.retain(|due| due.person == reviewer.settings.person);
        let own = due.iter().position(|due| due.session == *self.session.id());
        let at = own.unwrap_or(0);
        Ok((at < due.len()).then(|| due.swap_remove(at).session))
    }

    fn tell(&mut self, reviewed: &Reviewed) {
        if let Some(text) = reviewed.told().filter(|_| self.plan.is_told) {
            self.session.tell(Notice::Learned { text });
        }
        match reviewed {
            Reviewed::Failed(why) => tracing::warn!("a review got no answer: {why}"),
            Reviewed::GivenUp => tracing::warn!("a review was given up after several crashes"),
            Reviewed::OutOfBudget(_) => {
                let today = self.plan.reviewer.clock.now().date_text();
                if self.budget_told.replace(today.clone()) != Some(today) {
                    tracing::info!("today's budget for learning is used up (learning.budget)");
                }
            }
            _ => {}
        }
    }
}
