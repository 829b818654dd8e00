//! The last advice of each session, and what it took while nobody has been told.
//!
//! A request that is sent again needs no new advice; and what references used is not lost when the aggregator fails
//! after them: the next answer is told it.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::AddAssign;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hermes_core::{Cost, SessionId, Usage};

/// Sessions whose advice is remembered. A forgotten one is advised again.
const SESSIONS_MAX: usize = 64;

#[derive(Default)]
pub(super) struct Memory {
    sessions: Mutex<VecDeque<Advised>>,
}

struct Advised {
    session: SessionId,
    /// The hash of what was advised on.
    about: u64,
    advice: String,
    bill: Bill,
}

/// What was used, in tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bill {
    usage: Usage,
    /// `None` while nobody was paid.
    cost: Option<Cost>,
}

impl Memory {
    pub(super) fn advice(&self, session: &SessionId, transcript: &str) -> Option<String> {
        let about = hash(transcript);
        let sessions = self.sessions();
        let known = sessions
            .iter()
            .find(|advised| advised.session == *session && advised.about == about)?;
        Some(known.advice.clone())
    }

    /// Keeps new advice, and adds its bill to what is still open.
    pub(super) fn keep(&self, session: &SessionId, transcript: &str, advice: String, bill: Bill) {
        let mut sessions = self.sessions();
        let last = sessions
            .iter()
            .position(|advised| advised.session == *session)
            .and_then(|at| sessions.remove(at));
        let mut open = last.map_or_else(Bill::default, |advised| advised.bill);
        open += bill;
        if sessions.len() == SESSIONS_MAX {
            sessions.pop_front();
        }
        sessions.push_back(Advised {
            session: session.clone(),
            about: hash(transcript),
            advice,
            bill: open,
        });
    }

    /// Returns what a session has used since the last time.
    pub(super) fn take_bill(&self, session: &SessionId) -> Bill {
        let mut sessions = self.sessions();
        let advised = sessions
            .iter_mut()
            .find(|advised| advised.session == *session);
        advised.map_or_else(Bill::default, |advised| std::mem::take(&mut advised.bill))
    }

    fn sessions(&self) -> MutexGuard<'_, VecDeque<Advised>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bill {
    pub(super) fn add(&mut self, usage: Usage, cost: Cost) {
        *self += Self {
            usage,
            cost: Some(cost),
        };
    }

    pub(super) fn total(self) -> (Usage, Cost) {
        (self.usage, self.cost.unwrap_or(Cost::Included))
    }
}

impl AddAssign for Bill {
    fn add_assign(&mut self, more: Self) {
        self.usage += more.usage;
        self.cost = match (self.cost, more.cost) {
            (None | Some(Cost::Included), Some(cost)) => Some(cost),
            (cost, None | Some(Cost::Included)) => cost,
            (Some(Cost::Estimated(sum)), Some(Cost::Estimated(more))) => {
                Some(Cost::Estimated(sum.saturating_add(more)))
            }
            // A sum with an unknown part is unknown.
            (Some(Cost::Unknown), _) | (_, Some(Cost::Unknown)) => Some(Cost::Unknown),
        };
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bill(output: u64, cost: Cost) -> Bill {
        let mut bill = Bill::default();
        let usage = Usage {
            output,
            ..Usage::default()
        };
        bill.add(usage, cost);
        bill
    }

    #[test]
    fn costs_add_up_and_an_unknown_part_makes_the_sum_unknown() {
        use Cost::{Estimated, Included, Unknown};
        for (costs, sum) in [
            (&[][..], Included),
            (&[Included, Included], Included),
            (&[Estimated(2), Included, Estimated(3)], Estimated(5)),
            (&[Estimated(2), Unknown, Included], Unknown),
            (&[Included, Unknown, Estimated(1)], Unknown),
        ] {
            let mut total = Bill::default();
            costs.iter().for_each(|cost| total += bill(1, *cost));
            assert_eq!(total.total().1, sum, "{costs:?}");
            assert_eq!(total.total().0.output, costs.len() as u64);
        }
    }

    #[test]
    fn what_was_used_is_told_once_and_lives_on_until_then() {
        let (memory, session) = (Memory::default(), SessionId::from("s"));
        memory.keep(&session, "a", "left".into(), bill(1, Cost::Included));
        memory.keep(&session, "b", "right".into(), bill(2, Cost::Included));
        assert_eq!(memory.take_bill(&session).usage.output, 3);
        assert_eq!(memory.take_bill(&session), Bill::default());
        assert_eq!(memory.advice(&session, "a"), None);
        assert_eq!(memory.advice(&session, "b").as_deref(), Some("right"));
        assert_eq!(memory.advice(&SessionId::from("other"), "b"), None);
    }

    #[test]
    fn only_so_many_sessions_are_remembered() {
        let memory = Memory::default();
        let session = |number: usize| SessionId::from(format!("s{number}").as_str());
        for number in 0..=SESSIONS_MAX {
            memory.keep(&session(number), "a", String::new(), Bill::default());
        }
        assert_eq!(memory.advice(&session(0), "a"), None);
        assert!(memory.advice(&session(1), "a").is_some());
    }
}
