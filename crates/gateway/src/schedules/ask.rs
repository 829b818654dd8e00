//! One run's conversation: opened or taken up again, asked, followed to its rest within its limits, and closed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::report::Report;
use hermes_core::{
    CancellationToken, Event, Events, Message, Op, OpenError, Origin, Role, RunningSession,
    SessionFacts, SessionHandle, SessionId, SessionOptions, Sessions, UserMessage, Warning,
    WarningAbout,
};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::outcome::{Outcome, Problem};

/// A turn that is interrupted ends within a tenth of a second; a stuck one must not hold the job.
const INTERRUPT_PATIENCE: Duration = Duration::from_secs(10);

/// Somebody who lost the run may still be leaving its conversation.
const OPEN_TRIES: u32 = 6;
const OPEN_PAUSE: Duration = Duration::from_secs(5);

/// What a run may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLimits {
    /// Without anything happening.
    pub(crate) idle_max: Duration,
    /// In all.
    pub(crate) time_max: Duration,
    pub(crate) cost_max_micro_usd: Option<u64>,
}

pub(crate) struct Asking<'a> {
    pub(crate) sessions: &'a Arc<dyn Sessions>,
    pub(crate) options: SessionOptions,
    pub(crate) limits: RunLimits,
    pub(crate) job: &'a str,
    pub(crate) stop: &'a CancellationToken,
}

impl Asking<'_> {
    /// Opens a conversation in which nothing is said yet.
    pub(crate) async fn open(&self) -> Result<RunningSession, Problem> {
        let opened = self.sessions.open(self.options.clone()).await;
        opened.map_err(not_opened)
    }

    /// Takes a conversation up again; `None` when it never began.
    pub(crate) async fn take_up(
        &self,
        session: &SessionId,
    ) -> Result<Option<RunningSession>, Problem> {
        if self.sessions.find(session.as_str()).await.is_err() {
            return Ok(None);
        }
        let mut tries = 1;
        loop {
            let options = self.options.clone();
            match self.sessions.resume(session.clone(), options).await {
                Ok(opened) => return Ok(Some(opened)),
                Err(error) if tries == OPEN_TRIES => return Err(not_opened(error)),
                Err(_) => sleep(OPEN_PAUSE).await,
            }
            tries += 1;
        }
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, opened: RunningSession, prompt: &str) -> Outcome {
        if let Some(problem) = self.unpriced(&opened.facts) {
            self.close(opened.handle.id()).await;
            return Outcome::Failed {
                problem,
                cost_micro_usd: None,
                may_retry: false,
            };
        }
        let origin = Origin::Schedule {
            job: self.job.to_owned(),
        };
        let message = UserMessage::text(prompt).with_origin(origin);
        opened.handle.send(Op::Say(message)).await;
        self.follow(opened).await
    }

    /// Waits for the answer of a conversation that was cut short, or finds it.
    pub(crate) async fn go_on(&self, mut opened: RunningSession) -> Outcome {
        let resumed = opened.resumed.take();
        let Some(resumed) = resumed.filter(|resumed| !resumed.has_open_turn) else {
            return self.follow(opened).await;
        };
        let last = resumed.messages.last();
        let answer = last.filter(|message| message.role == Role::Assistant);
        let text = answer.map(Message::text).unwrap_or_default();
        self.close(opened.handle.id()).await;
        Outcome::Answer {
            text,
            cost_micro_usd: resumed.record.cost_micro_usd,
            refused: 0,
            missing: Vec::new(),
        }
    }

    async fn follow(&self, opened: RunningSession) -> Outcome {
        let missing = missing_skills(&opened);
        let RunningSession {
            handle,
            mut events,
            facts,
            ..
        } = opened;
        let mut report = Report::new(handle.id().clone(), facts.model);
        let ended = self.watch(&mut events, &mut report).await;
        let outcome = match ended {
            Ended::Rested => outcome(&report, missing),
            Ended::Stopped => Outcome::Stopped,
            Ended::Beyond(problem) => {
                interrupt(handle.as_ref(), &mut events, &mut report).await;
                Outcome::Failed {
                    problem,
                    cost_micro_usd: cost(&report),
                    may_retry: false,
                }
            }
            Ended::Gone => Outcome::Failed {
                problem: Problem::new(
                    "the conversation of the run stopped unexpectedly",
                    "see `hermes logs`; this is a bug",
                ),
                cost_micro_usd: cost(&report),
                may_retry: true,
            },
        };
        // The turn of a process that ends is taken up by the next one.
        if outcome != Outcome::Stopped {
            self.close(handle.id()).await;
        }
        outcome
    }

    async fn watch(&self, events: &mut Events, report: &mut Report) -> Ended {
        let deadline = Instant::now() + self.limits.time_max;
        let mut quiet_until = Instant::now() + self.limits.idle_max;
        let mut has_begun = false;
        loop {
            let followed = tokio::select! {
                followed = events.next() => followed,
                () = self.stop.cancelled() => return Ended::Stopped,
                () = sleep_until(deadline) => return Ended::Beyond(took_too_long(self.limits.time_max)),
                () = sleep_until(quiet_until) => return Ended::Beyond(was_quiet(self.limits.idle_max)),
            };
            let Some(followed) = followed else {
                return Ended::Gone;
            };
            quiet_until = Instant::now() + self.limits.idle_max;
            let Some(event) = followed.event() else {
                continue;
            };
            match event {
                Event::Idle if has_begun => return Ended::Rested,
                Event::TurnStarted { .. } | Event::TurnResumed { .. } | Event::TurnEnded { .. } => {
                    has_begun = true;
                }
                _ => {}
            }
            report.add(event);
            if let Some(problem) = self.too_dear(report) {
                return Ended::Beyond(problem);
            }
        }
    }

    /// A limit that nobody can keep is none: whoever set it does not want to find out by the bill.
    fn unpriced(&self, facts: &SessionFacts) -> Option<Problem> {
        let max = self
            .limits
            .cost_max_micro_usd
            .filter(|_| !facts.is_priced)?;
        let (model, max) = (&facts.model, dollars(max));
        Some(Problem::new(
            format!(
                "nothing was asked: it is not known what {model}, or a model that stands in for it, costs, and the run may cost ${max:.4}"
            ),
            "take its limit away with `hermes cron edit JOB --max-cost 0` (and `cron.max_cost_usd` in the settings), or give it a model whose price `hermes model` shows",
        ))
    }

    fn too_dear(&self, report: &Report) -> Option<Problem> {
        let max = self.limits.cost_max_micro_usd?;
        let spent = cost(report).filter(|spent| *spent > max)?;
        Some(Problem::new(
            format!(
                "the run had cost ${:.4}, and may cost ${:.4}",
                dollars(spent),
                dollars(max)
            ),
            "raise its limit with `hermes cron edit JOB --max-cost USD`, or ask for less",
        ))
    }

    async fn close(&self, session: &SessionId) {
        if let Err(error) = self.sessions.close(session).await {
            tracing::warn!(%session, "the conversation of a run was not closed: {error}");
        }
    }
}

/// How the following of a conversation ended.
enum Ended {
    Rested,
    /// The process ends.
    Stopped,
    /// A limit was met.
    Beyond(Problem),
    /// The conversation is no longer there.
    Gone,
}

/// Ends the turn that runs, so that nothing of it goes on unseen.
async fn interrupt(handle: &dyn SessionHandle, events: &mut Events, report: &mut Report) {
    handle.interrupt().await;
    let ends = async {
        while let Some(followed) = events.next().await {
            let Some(event) = followed.event() else {
                continue;
            };
            if *event == Event::Idle {
                break;
            }
            report.add(event);
        }
    };
    _ = timeout(INTERRUPT_PATIENCE, ends).await;
}

/// What the answer has to do without, in words.
fn missing_skills(opened: &RunningSession) -> Vec<String> {
    let about = |warning: &&Warning| warning.about == WarningAbout::Skills;
    let missing = opened.warnings.iter().filter(about);
    missing.map(|warning| warning.text.clone()).collect()
}

fn outcome(report: &Report, missing: Vec<String>) -> Outcome {
    let cost_micro_usd = cost(report);
    match report.problem() {
        None => Outcome::Answer {
            text: report.text.trim().to_owned(),
            cost_micro_usd,
            refused: report.refused,
            missing,
        },
        Some((error, hint)) => Outcome::Failed {
            problem: Problem::new(error, hint),
            cost_micro_usd,
            may_retry: true,
        },
    }
}

fn cost(report: &Report) -> Option<u64> {
    report.cost.and_then(hermes_core::Cost::micro_usd)
}

fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

fn not_opened(error: OpenError) -> Problem {
    let hint = error.hint.clone();
    let hint = hint.unwrap_or_else(|| "see `hermes logs`".to_owned());
    Problem::new(error.message, hint)
}

fn took_too_long(max: Duration) -> Problem {
    Problem::new(
        format!("the run took longer than {} s", max.as_secs()),
        "raise its limit with `hermes cron edit JOB --max-time SECONDS`, or ask for less",
    )
}

fn was_quiet(max: Duration) -> Problem {
    Problem::new(
        format!("nothing happened in the run for {} s", max.as_secs()),
        "see `hermes cron history`; `cron.inactivity_timeout_seconds` in the settings is how long it waits",
    )
}
