//! How many turns a process has seen, by the surface that they were asked on: for whoever watches over it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::model::Usage;
use crate::session::{Event, TurnEnd};

/// Surfaces that are told apart; there are a few dozen. What comes beyond is counted as one.
const SURFACES_MAX: usize = 64;
const OTHERS: &str = "other";

#[derive(Debug, Default)]
pub struct TurnCounts(Mutex<BTreeMap<String, SurfaceCounts>>);

/// What there was on one surface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SurfaceCounts {
    pub finished: u64,
    pub interrupted: u64,
    pub failed: u64,
    pub calls: u64,
    pub tokens_in: u64,
    pub tokens_out: u64,
}

impl TurnCounts {
    /// Adds what an event tells.
    pub fn hear(&self, surface: &str, event: &Event) {
        match event {
            Event::TurnEnded { end, .. } => self.change(surface, |counts| match end {
                TurnEnd::Finished => counts.finished += 1,
                TurnEnd::Interrupted => counts.interrupted += 1,
                _ => counts.failed += 1,
            }),
            Event::CallStarted { .. } => self.change(surface, |counts| counts.calls += 1),
            Event::ReplyFinished { usage, .. } | Event::CallSpent { usage, .. } => {
                self.change(surface, |counts| counts.spend(usage));
            }
            _ => {}
        }
    }

    pub fn by_surface(&self) -> BTreeMap<String, SurfaceCounts> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn change(&self, surface: &str, change: impl FnOnce(&mut SurfaceCounts)) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_room = counts.len() < SURFACES_MAX || counts.contains_key(surface);
        let surface = if is_room { surface } else { OTHERS };
        change(counts.entry(surface.to_owned()).or_default());
    }
}

impl SurfaceCounts {
    fn spend(&mut self, usage: &Usage) {
        self.tokens_out += usage.output;
        self.tokens_in += usage.total() - usage.output;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surfaces_are_counted_apart_and_not_without_end() {
        let counts = TurnCounts::default();
        let ended = Event::TurnEnded {
            turn: "t".into(),
            end: TurnEnd::Finished,
        };
        counts.hear("cron", &ended);
        for number in 0..1_000 {
            counts.hear(&format!("s{number}"), &ended);
        }
        let counted = counts.by_surface();
        assert_eq!(counted["cron"].finished, 1);
        assert!(counted.len() <= SURFACES_MAX + 1);
        assert_eq!(counted.values().map(|one| one.finished).sum::<u64>(), 1_001);
    }
}
