//! Lets the curator of skills run by itself: beside a conversation that rests, once in a while for the whole home.
//!
//! One task per session of the owner's, beside it. It asks no model and takes a moment; what it did is told in a line and
//! stands in the learning log.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{Follower, WeakSession};
use hermes_core::{Clock, Event, Followed, Notice, Schedules, SessionOptions, Timestamp};
use hermes_learning::skills::{CuratorSettings, Skills};
use tokio::time::timeout;

use crate::base::Base;
use crate::error::Result;
use crate::runtime::Runtime;
use crate::skills;

const HOUR: Duration = Duration::from_secs(60 * 60);
/// `curator.interval_hours` is at least this: skills do not change faster than people look at them.
const INTERVAL_HOURS_MIN: u64 = 24;
/// Whether it is time is looked up in a file, and not after every word.
const LOOKED_UP_EVERY: Duration = HOUR;
/// A hundred years, which is as good as never.
const DAYS_MAX: u64 = 36_500;

/// What looking after skills goes by. Clones share everything.
#[derive(Clone)]
pub(crate) struct CuratingPlan(Arc<Plan>);

struct Plan {
    skills: Skills,
    jobs: Arc<dyn Schedules>,
    clock: Arc<dyn Clock>,
    settings: CuratorSettings,
    interval: Duration,
    /// `learning.rest`
    rest: Duration,
    is_told: bool,
}

/// `curator`, and the skills that jobs refer to.
pub async fn settings(base: &Base, jobs: &dyn Schedules) -> Result<CuratorSettings> {
    Ok(CuratorSettings {
        in_use: of_jobs(jobs).await?,
        ..read(base)?
    })
}

fn read(base: &Base) -> Result<CuratorSettings> {
    let days = |key: &str| -> Result<Duration> {
        let days = base.settings.u64(key)?.clamp(1, DAYS_MAX);
        Ok(HOUR.saturating_mul(24).saturating_mul(days as u32))
    };
    Ok(CuratorSettings {
        stale_after: days("curator.stale_after_days")?,
        archived_after: days("curator.archive_after_days")?,
        in_use: BTreeSet::new(),
    })
}

async fn of_jobs(jobs: &dyn Schedules) -> Result<BTreeSet<String>> {
    let jobs = jobs.jobs().await?;
    let named = jobs.into_iter().flat_map(|job| job.spec.skills);
    Ok(named.collect())
}

impl CuratingPlan {
    /// As the settings want it; `None` when it is off, or the session is somebody else's than the owner's.
    pub(crate) fn of(
        runtime: &Runtime,
        base: &Base,
        options: &SessionOptions,
    ) -> Result<Option<Self>> {
        let is_on = base.settings.bool("learning.enabled")?
            && base.settings.bool("curator.enabled")?
            && !options.leaves_out.rules
            && options.person.is_none();
        if !is_on {
            return Ok(None);
        }
        let hours = base.settings.u64("curator.interval_hours")?;
        let hours = hours.clamp(INTERVAL_HOURS_MIN, DAYS_MAX * 24);
        let mut skills = skills::skills(base, Some(runtime.store().clone()))?;
        skills.clock = Arc::clone(runtime.clock());
        Ok(Some(Self(Arc::new(Plan {
            skills,
            jobs: runtime.store().clone(),
            clock: Arc::clone(runtime.clock()),
            settings: read(base)?,
            interval: HOUR.saturating_mul(hours as u32),
            rest: base.settings.seconds("learning.rest")?,
            is_told: crate::reviews::is_told(base),
        }))))
    }

    /// Follows a session until it is closed.
    pub(crate) async fn follow(self, session: WeakSession, mut events: Follower) {
        let plan = self.0;
        let mut looked_up: Option<Timestamp> = None;
        let mut rests = false;
        loop {
            let next = if rests {
                timeout(plan.rest, events.next()).await
            } else {
                Ok(events.next().await)
            };
            match next {
                Ok(None) => return,
                Ok(Some(Followed::Event(numbered))) => match numbered.event {
                    Event::Idle => rests = true,
                    Event::TurnStarted { .. } | Event::TurnResumed { .. } => rests = false,
                    _ => {}
                },
                Ok(Some(_)) => {}
                Err(_) => {
                    rests = false;
                    let now = plan.clock.now();
                    if looked_up.is_none_or(|last| now >= last.plus(LOOKED_UP_EVERY)) {
                        looked_up = Some(now);
                        plan.curate(&session).await;
                    }
                }
            }
        }
    }
}

impl Plan {
    async fn curate(&self, session: &WeakSession) {
        let told = match self.curate_if_due().await {
            Ok(told) => told,
            Err(error) => {
                tracing::warn!("skills were not looked after: {error}");
                return;
            }
        };
        if let Some(text) = told {
            tracing::info!("skills: {text}");
            if self.is_told {
                session.tell(Notice::Learned { text });
            }
        }
    }

    async fn curate_if_due(&self) -> Result<Option<String>> {
        let settings = CuratorSettings {
            in_use: of_jobs(self.jobs.as_ref()).await?,
            ..self.settings.clone()
        };
        let curated = self.skills.curate_if_due(self.interval, &settings).await?;
        Ok(curated.and_then(|curated| curated.told()))
    }
}
