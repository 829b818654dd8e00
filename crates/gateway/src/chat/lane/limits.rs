//! What one person may have of us: turns in an hour, money in a day. It is kept, so that a restart forgives nothing.

use std::time::Duration;

use hermes_core::{Had, StoreError};

use super::Lane;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Lane {
    /// Whose limits words count for, by whose they are as their origin says it. Where several talk, that is an account of one
    /// of them.
    pub(super) async fn payer(&self, speaker: Option<&str>) -> Result<Option<String>, StoreError> {
        match speaker.filter(|_| self.is_shared()) {
            Some(account) => {
                let linked = self.ports().people.linked_person(account).await?;
                Ok(Some(linked.unwrap_or_else(|| account.to_owned())))
            }
            None => Ok(self.chat.as_ref().and_then(|chat| chat.person.clone())),
        }
    }

    /// Words for whoever wrote the entry that was met last, and has had enough for now.
    pub(super) async fn over_limit(&self) -> Result<Option<String>, StoreError> {
        let (ports, Some(met)) = (self.ports(), &self.met) else {
            return Ok(None);
        };
        let person = met.person.as_str();
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

    pub(super) async fn note_turn(&self, payer: Option<&str>) -> Result<(), StoreError> {
        let had = Had {
            turns: 1,
            micro_usd: 0,
        };
        self.note_use(payer, had).await
    }

    pub(super) async fn note_cost(
        &self,
        payer: Option<&str>,
        micro_usd: u64,
    ) -> Result<(), StoreError> {
        let had = Had {
            turns: 0,
            micro_usd,
        };
        self.note_use(payer, had).await
    }

    /// Only what a limit counts is written down.
    async fn note_use(&self, payer: Option<&str>, had: Had) -> Result<(), StoreError> {
        let (ports, Some(person)) = (self.ports(), payer) else {
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
