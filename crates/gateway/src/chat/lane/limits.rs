//! What one person may have of us: turns in an hour, money in a day. It is kept, so that a restart forgives nothing.

use std::time::Duration;

use hermes_core::{Had, StoreError};

use super::Lane;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Lane {
    fn person(&self) -> Option<&str> {
        self.chat.as_ref()?.person.as_deref()
    }

    /// Words for somebody who has had enough for now.
    pub(super) async fn over_limit(&self) -> Result<Option<String>, StoreError> {
        let (ports, Some(person)) = (self.ports(), self.person()) else {
            return Ok(None);
        };
        let (limits, now) = (ports.settings.now().limits, ports.clock.now());
        if let Some(max) = limits.turns_per_hour {
            let had = ports.people.had_since(person, now.minus(HOUR)).await?;
            if had.turns >= max {
                return Ok(Some(format!(
                    "You have asked {} times within an hour, which is as often as one person may here. Please try again later.",
                    had.turns
                )));
            }
        }
        if let Some(max) = limits.micro_usd_per_day {
            let had = ports.people.had_since(person, now.minus(DAY)).await?;
            if had.micro_usd >= max {
                return Ok(Some(
                    "What one person may spend here in a day is used up. Please try again tomorrow."
                        .to_owned(),
                ));
            }
        }
        Ok(None)
    }

    pub(super) async fn note_turn(&self) -> Result<(), StoreError> {
        let had = Had {
            turns: 1,
            micro_usd: 0,
        };
        self.note_use(had).await
    }

    pub(super) async fn note_cost(&self, micro_usd: u64) -> Result<(), StoreError> {
        self.note_use(Had {
            turns: 0,
            micro_usd,
        })
        .await
    }

    /// Only what a limit counts is written down.
    async fn note_use(&self, had: Had) -> Result<(), StoreError> {
        let (ports, Some(person)) = (self.ports(), self.person()) else {
            return Ok(());
        };
        let limits = ports.settings.now().limits;
        let counts = (limits.turns_per_hour.is_some() && had.turns > 0)
            || (limits.micro_usd_per_day.is_some() && had.micro_usd > 0);
        if counts {
            let now = ports.clock.now();
            ports.people.note_use(person, now, had).await?;
        }
        Ok(())
    }
}
