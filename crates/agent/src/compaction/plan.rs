//! What to leave out of a conversation so that it fits its model: pure, from the messages, their sizes and the window.
//!
//! First what needs no model: old results, pictures and arguments are shortened, and results that came again. When that is
//! not enough, a summary stands for everything up to the tail. The tail is kept whole as far as it fits: it holds the last
//! reply with all its results.

use std::collections::HashSet;

use hermes_core::{Message, Origin, Role, Shortened};

use super::CompactionSettings;
use super::shorten::{Size, shorten_old, shorten_repeated, shorten_to};

/// Below this the conversation itself has no room at all, whatever is left out.
const ROOM_MIN: u64 = 256;
/// Windows below this get the higher threshold: what is left above it is enough for an answer.
const LARGE_WINDOW: u64 = 512_000;
const THRESHOLD_OF_SMALL: f64 = 0.75;
/// What is left for the answer in any window, as a part of it, and at most.
const ANSWER_PART: u64 = 8;
const ANSWER_TOKENS_MAX: u64 = 8_192;
/// Tokens of a summary, whatever the window: more is not read with care.
const SUMMARY_TOKENS_MAX: u64 = 10_000;
const SUMMARY_TOKENS_MIN: u64 = 150;
/// Fewer messages than this are no tail, unless they are long.
const TAIL_MESSAGES_MIN: usize = 3;
/// More messages than this are not protected by their number alone.
const TAIL_MESSAGES_MAX: usize = 8;
/// A compaction that frees less than this part is worth a word.
const WORTHWHILE_PART: u64 = 4;

/// How many tokens each part of a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) window: u64,
    /// What prompt and tools take. Nothing can be left out of them.
    pub(crate) prefix: u64,
    /// From here on something is left out.
    pub(crate) trigger: u64,
    /// What fits beside an answer.
    pub(crate) full: u64,
    pub(crate) tail: u64,
    pub(crate) summary: u64,
    /// What the last reply with its results may take, and other long messages: more of them is cut out.
    fit: u64,
    /// What the tail may take at all. The user's own words may take it up.
    whole: u64,
}

impl Budget {
    pub(crate) fn new(window: u64, prefix: u64, settings: &CompactionSettings) -> Self {
        let full = window - (window / ANSWER_PART).min(ANSWER_TOKENS_MAX);
        let threshold = match window {
            0..LARGE_WINDOW => settings.threshold.max(THRESHOLD_OF_SMALL),
            _ => settings.threshold,
        };
        let trigger = part(window, threshold).min(full);
        // Where the prefix takes most of the window, the conversation gets what is left up to the very end.
        let trigger = trigger.max(prefix.saturating_add(ROOM_MIN)).min(full);
        let room = trigger.saturating_sub(prefix).max(ROOM_MIN);
        let tail = part(trigger, settings.target_ratio);
        let summary = (room / 4)
            .min((window / 20).max(1_000))
            .clamp(SUMMARY_TOKENS_MIN, SUMMARY_TOKENS_MAX);
        let tail = tail.min(room * 2 / 5).max(room / 4);
        Self {
            window,
            prefix,
            trigger,
            full,
            tail,
            summary,
            fit: tail * 2,
            whole: full.saturating_sub(prefix + 2 * summary),
        }
    }

    /// A budget for less and less, for a provider that goes on to say "too long".
    pub(crate) fn tightened(self, times: u32) -> Self {
        let tighter = |tokens: u64| tokens >> times.min(8);
        Self {
            tail: tighter(self.tail),
            fit: tighter(self.fit),
            whole: tighter(self.whole),
            summary: tighter(self.summary).max(SUMMARY_TOKENS_MIN),
            ..self
        }
    }

    /// A budget for a conversation that need not be shorter, and is to be all the same. What fits is not cut for that.
    pub(crate) fn of_a_part(self, tokens: u64, ratio: f64) -> Self {
        let said = tokens.saturating_sub(self.prefix);
        Self {
            tail: self.tail.min(part(said, ratio)),
            ..self
        }
    }

    /// Where a request should be after something was left out, so that there is room for a while.
    fn low(&self) -> u64 {
        self.prefix + self.trigger.saturating_sub(self.prefix) * 3 / 5
    }
}

fn part(tokens: u64, ratio: f64) -> u64 {
    (tokens as f64 * ratio.clamp(0.0, 1.0)) as u64
}

/// Returns whether going from one size to another frees enough to be worth it.
pub(crate) fn is_worthwhile(before: u64, after: u64) -> bool {
    before.saturating_sub(after) * WORTHWHILE_PART >= before
}

/// What is seen instead.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plan {
    /// Nothing can be left out.
    Nothing,
    /// Everything stays, some of it shortened: places among all messages, the summary not counted.
    Shorten(Vec<Shortened>),
    Summarise(Split),
}

/// A summary for what comes before the tail.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Split {
    /// Where the tail begins, among all messages.
    pub(crate) cut: usize,
    /// Places in the tail.
    pub(crate) shortened: Vec<Shortened>,
    /// The user's words in the tail are among those.
    pub(crate) cuts_users_words: bool,
}

/// What a plan is made for.
pub(crate) struct Situation<'a> {
    pub(crate) messages: &'a [Message],
    pub(crate) budget: Budget,
    /// Counts a message.
    pub(crate) size: &'a Size<'a>,
    pub(crate) protect_last: usize,
    /// A summary is wanted even where shortening would do.
    pub(crate) wants_summary: bool,
}

/// Decides what to leave out.
pub(crate) fn plan(situation: &Situation<'_>) -> Plan {
    let Situation {
        messages,
        budget,
        size,
        ..
    } = situation;
    let sizes: Vec<u64> = messages.iter().map(size).collect();
    let first = usize::from(messages.first().is_some_and(is_summary));
    let cut = tail_start(situation, &sizes, first);
    let repeated = repeated(messages, cut, size);
    if !situation.wants_summary {
        let old = (first..cut).filter_map(|at| Some((at, shorten_old(&messages[at])?)));
        let shorter: Vec<_> = old.chain(repeated.iter().cloned()).collect();
        let before: u64 = sizes.iter().sum();
        let freed: u64 = shorter
            .iter()
            .map(|(at, message)| sizes[*at].saturating_sub(size(message)))
            .sum();
        let (before, after) = (budget.prefix + before, budget.prefix + before - freed);
        if after <= budget.low() && is_worthwhile(before, after) {
            return Plan::Shorten(places(shorter, first));
        }
    }
    let (fitted, cuts_users_words) = fit_tail(situation, &sizes, cut, repeated);
    if cut <= first {
        return if fitted.is_empty() {
            Plan::Nothing
        } else {
            Plan::Shorten(places(fitted, first))
        };
    }
    Plan::Summarise(Split {
        cut,
        shortened: places(fitted, cut),
        cuts_users_words,
    })
}

fn is_summary(message: &Message) -> bool {
    message.origin == Some(Origin::Summary)
}

fn places(shorter: Vec<(usize, Message)>, from: usize) -> Vec<Shortened> {
    let shorter = shorter.into_iter().map(|(at, message)| Shortened {
        at: (at - from) as u32,
        message,
    });
    shorter.collect()
}

/// Finds where the tail begins: as much as fits, never between a call and its result, never behind the last reply.
fn tail_start(situation: &Situation<'_>, sizes: &[u64], first: usize) -> usize {
    let messages = situation.messages;
    let tail = situation.budget.tail;
    let protected = situation
        .protect_last
        .clamp(TAIL_MESSAGES_MIN, TAIL_MESSAGES_MAX);
    let mut start = messages.len();
    let mut tokens = 0;
    while start > first {
        tokens += sizes[start - 1];
        let is_protected = messages.len() - start < protected;
        let limit = if is_protected { tail * 3 / 2 } else { tail };
        if tokens > limit {
            break;
        }
        start -= 1;
    }
    while messages
        .get(start)
        .is_some_and(|message| message.role == Role::Tool)
    {
        start += 1;
    }
    let start = start.min(last_block(messages)).max(first);
    // Some local servers insist that user and assistant take turns, and the summary is in the user's role.
    let answers = |at: usize| {
        messages
            .get(at)
            .is_some_and(|one| one.role == Role::Assistant)
    };
    let is_said_by_user = messages
        .get(start)
        .is_some_and(|one| one.role == Role::User);
    if is_said_by_user && start > first + 1 && answers(start - 1) {
        start - 1
    } else {
        start
    }
}

/// Where the last reply begins with all that belongs to it, or the last words of the user.
fn last_block(messages: &[Message]) -> usize {
    let last = messages
        .iter()
        .rposition(|message| message.role != Role::Tool);
    last.unwrap_or(0)
}

/// Finds results in the tail that say the same as a later one.
fn repeated(messages: &[Message], cut: usize, size: &Size<'_>) -> Vec<(usize, Message)> {
    let mut later: HashSet<(&str, &str)> = HashSet::new();
    let mut repeated = Vec::new();
    for (at, message) in messages.iter().enumerate().skip(cut).rev() {
        let Some(result) = message.tool_result() else {
            continue;
        };
        if later.insert((&result.tool, &result.text)) {
            continue;
        }
        if let Some(shorter) = shorten_repeated(message)
            && size(&shorter) < size(message)
        {
            repeated.push((at, shorter));
        }
    }
    repeated.reverse();
    repeated
}

/// What is left of each message that is cut.
enum AtLeast {
    /// So much of the limit, as its divisor.
    Part(u64),
    /// What each would get if all got the same.
    Share,
}

/// Shortens what is too long for the tail: the longest first, the user's own words last.
fn fit_tail(
    situation: &Situation<'_>,
    sizes: &[u64],
    cut: usize,
    repeated: Vec<(usize, Message)>,
) -> (Vec<(usize, Message)>, bool) {
    let Situation {
        messages,
        budget,
        size,
        ..
    } = situation;
    let mut tail: Vec<(usize, u64, Option<Message>)> = (cut..messages.len())
        .map(|at| (at, sizes[at], None))
        .collect();
    for (at, shorter) in repeated {
        tail[at - cut] = (at, size(&shorter), Some(shorter));
    }
    let limit = budget.fit.max(ROOM_MIN);
    let whole = limit.max(budget.whole);
    let mut cuts_users_words = false;
    for (of_users, limit, at_least) in [
        (false, limit, AtLeast::Part(4)),
        // So many that each is short: all of them give up something.
        (false, whole, AtLeast::Share),
        (true, whole, AtLeast::Part(4)),
    ] {
        let mut longest: Vec<usize> = (0..tail.len())
            .filter(|at| messages[cut + at].begins_turn() == of_users)
            .collect();
        longest.sort_by_key(|at| std::cmp::Reverse(tail[*at].1));
        let at_least = match at_least {
            AtLeast::Part(part) => limit / part,
            AtLeast::Share => limit / (longest.len() as u64).max(4),
        };
        for at in longest {
            let total: u64 = tail.iter().map(|(_, tokens, _)| tokens).sum();
            if total <= limit {
                break;
            }
            let others = total - tail[at].1;
            // What all others leave of the limit, but something in any case.
            let allowed = limit.saturating_sub(others).max(at_least);
            if let Some(shorter) = shorten_to(&messages[cut + at], allowed, size) {
                let tokens = size(&shorter);
                if tokens < tail[at].1 {
                    cuts_users_words |= of_users;
                    tail[at] = (cut + at, tokens, Some(shorter));
                }
            }
        }
    }
    let changed = tail
        .into_iter()
        .filter_map(|(at, _, message)| Some((at, message?)));
    (changed.collect(), cuts_users_words)
}
