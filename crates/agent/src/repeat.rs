//! Notices a model that makes the same call over and over.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hermes_core::{Arguments, ToolCall, ToolResult};

/// From this repetition on the result tells the model that it repeats itself.
const WARN_AT: u32 = 3;
/// At this one the turn ends: the model is going in circles.
const STOP_AT: u32 = 6;
/// Calls remembered. A loop longer than this is caught by the step budget.
const REMEMBERED_MAX: usize = 32;

#[derive(Default)]
pub(crate) struct RepeatGuard {
    seen: VecDeque<Seen>,
    /// Replies in a row in which no call could be run as written.
    fruitless: u32,
    /// Why the turn should end, once it should.
    stuck: Option<String>,
}

struct Seen {
    name: String,
    arguments: Arguments,
    result: String,
    /// The pictures of the result, as a number: they are too large to be kept for this.
    pictures: u64,
    times: u32,
}

impl RepeatGuard {
    /// Counts a call that gave the same result as before, and returns a warning for the model when it is time for one.
    /// A result that changed starts anew: polling is not looping.
    pub(crate) fn note(&mut self, call: &ToolCall, result: &ToolResult) -> Option<String> {
        let same = |seen: &&mut Seen| seen.name == call.name && seen.arguments == call.arguments;
        let Some(seen) = self.seen.iter_mut().find(same) else {
            self.remember(call, result);
            return None;
        };
        let pictures = pictures(result);
        if seen.result != result.text || seen.pictures != pictures {
            seen.result.clone_from(&result.text);
            seen.pictures = pictures;
            seen.times = 1;
            return None;
        }
        seen.times += 1;
        let (name, times) = (&call.name, seen.times);
        if times >= STOP_AT {
            self.stuck = Some(format!(
                "`{name}` was called {times} times with the same arguments and result"
            ));
        }
        (times >= WARN_AT).then(|| {
            format!(
                "[This is call {times} of `{name}` with these arguments, and the result is always the same. Do \
                 something else, or tell the user what stands in the way.]"
            )
        })
    }

    /// Counts replies whose calls all failed before they could run.
    pub(crate) fn note_reply(&mut self, any_call_ran: bool) {
        const FRUITLESS_MAX: u32 = 4;
        self.fruitless = if any_call_ran { 0 } else { self.fruitless + 1 };
        if self.fruitless >= FRUITLESS_MAX {
            self.stuck = Some(format!(
                "{FRUITLESS_MAX} replies in a row had only calls that cannot be run"
            ));
        }
    }

    pub(crate) fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }

    fn remember(&mut self, call: &ToolCall, result: &ToolResult) {
        if self.seen.len() == REMEMBERED_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(Seen {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            result: result.text.clone(),
            pictures: pictures(result),
            times: 1,
        });
    }
}

/// A number that changes with the pictures of a result: the words about two screenshots may well be the same.
fn pictures(result: &ToolResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    result.images.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::{Media, MediaSource, ResultStatus};

    fn call(arguments: &str) -> ToolCall {
        ToolCall {
            id: "c".into(),
            name: "t".into(),
            arguments: Arguments::parse(arguments),
            signatures: vec![],
        }
    }

    fn noted(guard: &mut RepeatGuard, arguments: &str, result: &str) -> Option<String> {
        let call = call(arguments);
        guard.note(&call, &ToolResult::new(&call, ResultStatus::Ok, result))
    }

    #[test]
    fn the_same_call_and_result_is_warned_about_then_stopped() {
        let mut guard = RepeatGuard::default();
        for time in 1..=STOP_AT {
            assert!(guard.stuck().is_none());
            assert_eq!(
                noted(&mut guard, "{}", "same").is_some(),
                time >= WARN_AT,
                "time {time}"
            );
        }
        assert!(guard.stuck().is_some());
    }

    #[test]
    fn polling_something_that_changes_is_fine() {
        let mut guard = RepeatGuard::default();
        for number in 0..50 {
            assert_eq!(noted(&mut guard, "{}", &format!("{number}")), None);
        }
        let screenshot = |number: u32| Media {
            mime: "image/png".into(),
            source: MediaSource::Base64(format!("{number:04}")),
        };
        for number in 0..50 {
            let call = call("{}");
            let result = ToolResult::new(&call, ResultStatus::Ok, "screen.png");
            let result = result.with_images(vec![screenshot(number)]);
            assert_eq!(guard.note(&call, &result), None);
        }
    }

    #[test]
    fn other_arguments_are_another_call() {
        let mut guard = RepeatGuard::default();
        for number in 0..50 {
            assert_eq!(
                noted(&mut guard, &format!("{{\"n\":{number}}}"), "same"),
                None
            );
        }
    }

    #[test]
    fn replies_that_cannot_be_run_end_the_turn() {
        let mut guard = RepeatGuard::default();
        for ran in [false, false, true, false, false, false] {
            guard.note_reply(ran);
            assert!(guard.stuck().is_none());
        }
        guard.note_reply(false);
        assert!(guard.stuck().is_some());
    }
}
