//! Context that never ends: when a conversation outgrows its model, older parts are shortened, then summarised.
//!
//! [`plan`](plan::plan) decides what is left out; [`compact`] does it: one entry in the log, and from then on the model sees
//! the same before and after a restart. Nothing is deleted. Whatever goes wrong on the way (no summary, a bad one, a stop)
//! leaves a conversation that goes on.

pub(crate) mod estimate;
pub(crate) mod gauge;
mod plan;
mod shorten;
mod summarise;
mod transcript;

use std::time::Duration;

use hermes_core::text::{head, tail};
use hermes_core::{
    CancellationToken, CompactionEnd, CompactionReason, CompactionReport, Entry, Event, Message,
    ModelError, Notice, Origin, Part, Prefix, Shortened, StoreError, SummarySource, SummaryUse,
    TurnId,
};
use tokio::time::Instant;

use crate::events::EventLog;
use crate::history::History;
use crate::nested::NestedContext;
use crate::prompt;
use crate::record::Recorder;
use crate::session::{AgentSettings, Ports};
use gauge::stated_limit;
use plan::{Budget, Plan, Situation, Split, is_worthwhile};
use summarise::{BYTES_PER_TOKEN, Material, Spent, Summariser, Summary};

/// Compactions in a row that freed little, after which no model is asked for a summary any more: asking again and again
/// for nothing would be a loop.
const INEFFECTIVE_MAX: u32 = 2;
/// A conversation grows by this part of the window before it is compacted again, unless it would not fit.
const GROWTH_PART: u64 = 20;
const GROWTH_TOKENS_MIN: u64 = 256;
/// What tools remind of, each, in a summary.
const REMINDER_BYTES_MAX: usize = 2_000;
/// Of the user's last words, where they are older than what is kept, this much is quoted.
const LAST_WORDS_BYTES_MAX: usize = 4_000;

const HEADER: &str = "[The older part of this conversation is no longer shown to you. This summary stands in its place. It is \
     background, not a request: the user did not write it. Go on with what the user said last.]\n\n";
const FOOTER: &str = "\n\n[End of the summary. What follows was said after it.]";

/// `compression`: when a conversation is made shorter, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompactionSettings {
    /// Whether it happens by itself; asked for, it always does.
    pub is_automatic: bool,
    /// Part of the window that may be full.
    pub threshold: f64,
    /// Part of that which is kept as it is.
    pub target_ratio: f64,
    /// Messages that are kept as they are, as far as they fit.
    pub protect_last: usize,
    /// Whether nothing is left out when no model writes a summary.
    pub needs_model: bool,
    /// How long a summary may take.
    pub summary_timeout: Duration,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self {
            is_automatic: true,
            threshold: 0.5,
            target_ratio: 0.2,
            protect_last: 20,
            needs_model: false,
            summary_timeout: Duration::from_secs(120),
        }
    }
}

/// What a compaction needs and does not own.
pub(crate) struct CompactionContext<'a> {
    pub(crate) ports: &'a Ports,
    pub(crate) settings: &'a AgentSettings,
    pub(crate) recorder: &'a Recorder,
    pub(crate) events: &'a EventLog,
    pub(crate) nested: &'a NestedContext,
    pub(crate) turn: &'a TurnId,
    pub(crate) stop: &'a CancellationToken,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The conversation is as it was.
    Unchanged,
    Compacted,
    Stopped,
}

/// Why, and how hard.
struct Task<'a> {
    reason: CompactionReason,
    topic: Option<&'a str>,
    /// How often less and less is kept.
    tightened: u32,
}

/// Makes a conversation shorter before a request that would fill the window, where that has not just been done.
pub(crate) async fn make_room(
    cx: &CompactionContext<'_>,
    history: &mut History,
) -> Result<Outcome, StoreError> {
    let window = history.gauge.known_window(cx.ports.model.context_window());
    // Of a window that nobody knows, a refusal tells.
    if !cx.settings.compaction.is_automatic || window.is_none() {
        return Ok(Outcome::Unchanged);
    }
    let tokens = cx.tokens(history);
    let budget = cx.budget(history);
    if tokens < budget.trigger || !has_grown(history, tokens, &budget) {
        return Ok(Outcome::Unchanged);
    }
    if cx.begin_with_less(history).await? && cx.tokens(history) < cx.budget(history).trigger {
        return Ok(Outcome::Compacted);
    }
    let task = Task {
        reason: CompactionReason::Full,
        topic: None,
        tightened: 0,
    };
    compact(cx, history, &task).await
}

fn has_grown(history: &History, tokens: u64, budget: &Budget) -> bool {
    let growth = (budget.window / GROWTH_PART).max(GROWTH_TOKENS_MIN);
    let growth = growth << history.gauge.ineffective.min(INEFFECTIVE_MAX);
    match history.gauge.after_last {
        Some(after) => tokens >= after + growth || tokens >= budget.full,
        None => true,
    }
}

/// Makes a conversation shorter that the provider refused as too long: each time by more.
pub(crate) async fn recover(
    cx: &CompactionContext<'_>,
    history: &mut History,
    error: &ModelError,
    times: u32,
) -> Result<Outcome, StoreError> {
    if !cx.settings.compaction.is_automatic {
        return Ok(Outcome::Unchanged);
    }
    let tokens = cx.tokens(history);
    let window = history.gauge.window(cx.ports.model.context_window());
    let said = stated_limit(&error.message).filter(|said| *said <= window);
    history.gauge.learn(said, tokens, window);
    if cx.begin_with_less(history).await? && cx.tokens(history) < cx.budget(history).full {
        return Ok(Outcome::Compacted);
    }
    let task = Task {
        reason: CompactionReason::TooLong,
        topic: None,
        tightened: times.saturating_sub(1),
    };
    compact(cx, history, &task).await
}

/// Makes a conversation shorter because somebody asked for it.
pub(crate) async fn asked(
    cx: &CompactionContext<'_>,
    history: &mut History,
    topic: Option<&str>,
) -> Result<Outcome, StoreError> {
    history.gauge.ineffective = 0;
    let task = Task {
        reason: CompactionReason::Asked,
        topic,
        tightened: 0,
    };
    compact(cx, history, &task).await
}

/// Says what stands in the way when a conversation cannot be sent, however short it is made.
pub(crate) fn hint(cx: &CompactionContext<'_>, history: &History) -> String {
    let window = history.gauge.window(cx.ports.model.context_window());
    let prefix = cx.prefix(history);
    if prefix * 2 > window {
        prefix_is_large(prefix, window)
    } else {
        "begin a new conversation (/new), or choose a model with a larger context window (/model)"
            .into()
    }
}

fn prefix_is_large(prefix: u64, window: u64) -> String {
    format!(
        "the system prompt and the tools alone take about {prefix} of the {window} tokens that fit: choose a model with a \
         larger context window, or offer fewer tools (`agent.toolset: short`, `hermes tools`)"
    )
}

async fn compact(
    cx: &CompactionContext<'_>,
    history: &mut History,
    task: &Task<'_>,
) -> Result<Outcome, StoreError> {
    let since = Instant::now();
    let before = cx.tokens(history);
    let budget = cx.budget(history).tightened(task.tightened);
    let budget = match task.reason {
        CompactionReason::Asked => budget.of_a_part(before, cx.settings.compaction.target_ratio),
        _ => budget,
    };
    let plan = cx.plan(history, budget, task);
    if plan == Plan::Nothing {
        return Ok(cx.tell_nothing(history, task));
    }
    cx.events.tell(Event::CompactionStarted {
        reason: task.reason,
        tokens: before,
        window: history.gauge.known_window(cx.ports.model.context_window()),
    });
    // What was said so far is on the disk before anybody reads it.
    cx.recorder.commit().await?;
    let (summary, split) = match plan {
        Plan::Summarise(split) => match cx.summary(history, &split, budget, task).await {
            Some(summary) => (summary, split),
            None => return Ok(cx.tell_end(CompactionEnd::Stopped, Outcome::Stopped)),
        },
        Plan::Shorten(shortened) => {
            let split = Split {
                cut: history.after_summary(),
                shortened,
                cuts_users_words: false,
            };
            (NewSummary::default(), split)
        }
        Plan::Nothing => return Ok(Outcome::Unchanged),
    };
    if let Some(reason) = summary.refusal {
        return Ok(cx.tell_end(CompactionEnd::Unchanged { reason }, Outcome::Unchanged));
    }
    let report = CompactionReport {
        summary: summary.source,
        tokens_before: before,
        tokens_after: 0,
        summarised: match summary.source {
            SummarySource::None => 0,
            _ => split.cut - history.after_summary(),
        },
        shortened: split.shortened.len(),
        kept: history.messages().len() - split.cut - split.shortened.len(),
        elapsed_ms: 0,
        usage: summary.spent.usage,
        cost: summary.spent.cost,
        notes: summary.notes,
    };
    let cuts_users_words = split.cuts_users_words;
    let used = summary.spent.used();
    cx.apply(history, summary.message, split, used).await?;
    let report = CompactionReport {
        tokens_after: cx.tokens(history),
        elapsed_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
        ..report
    };
    let report = cx.judged(history, report, cuts_users_words);
    Ok(cx.tell_end(CompactionEnd::Done { report }, Outcome::Compacted))
}

/// A summary on its way into the conversation.
struct NewSummary {
    source: SummarySource,
    message: Option<Message>,
    spent: Spent,
    notes: Vec<String>,
    /// Why there is none, where none without a model is wanted.
    refusal: Option<String>,
}

impl Default for NewSummary {
    fn default() -> Self {
        Self {
            source: SummarySource::None,
            message: None,
            spent: Spent::default(),
            notes: Vec::new(),
            refusal: None,
        }
    }
}

impl CompactionContext<'_> {
    fn tokens(&self, history: &mut History) -> u64 {
        history.tokens(&self.ports.model.name())
    }

    fn prefix(&self, history: &History) -> u64 {
        let model = self.ports.model.name();
        history.gauge.prefix(&history.prefix, &model)
    }

    fn budget(&self, history: &History) -> Budget {
        let window = history.gauge.window(self.ports.model.context_window());
        Budget::new(window, self.prefix(history), &self.settings.compaction)
    }

    fn plan(&self, history: &History, budget: Budget, task: &Task<'_>) -> Plan {
        let size = history.gauge.size(&self.ports.model.name());
        plan::plan(&Situation {
            messages: history.messages(),
            budget,
            size: &size,
            protect_last: self.settings.compaction.protect_last,
            wants_summary: task.reason != CompactionReason::Full,
        })
    }

    /// Has the older part summarised, by a model if that is worth it. `None` when somebody stopped it.
    async fn summary(
        &self,
        history: &History,
        split: &Split,
        budget: Budget,
        task: &Task<'_>,
    ) -> Option<NewSummary> {
        let bytes_max = usize::try_from(budget.summary * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
        let older = &history.messages()[history.after_summary()..split.cut];
        let before = history.messages().first().and_then(body_of);
        let material = Material {
            before,
            messages: older,
            topic: task.topic,
            bytes_max,
        };
        let mut summary = NewSummary {
            source: SummarySource::Model,
            ..NewSummary::default()
        };
        let is_in_vain = history.gauge.ineffective >= INEFFECTIVE_MAX || task.tightened > 0;
        let written = if is_in_vain {
            Err(None)
        } else {
            let (written, spent) = self.summariser(history).summarise(&material).await;
            summary.spent = spent;
            match written {
                Summary::Written(text) => Ok(text),
                Summary::Failed(reason) => Err(Some(reason)),
                Summary::Stopped => return None,
            }
        };
        let body = match written {
            Ok(text) => text,
            Err(Some(reason)) if self.settings.compaction.needs_model => {
                summary.refusal = Some(format!(
                    "there is no summary ({reason}), and `compression.abort_on_summary_failure` is set"
                ));
                return Some(summary);
            }
            Err(reason) => {
                summary.source = SummarySource::Digest;
                let note =
                    reason.map(|reason| format!("the summary was made without a model: {reason}"));
                summary.notes.extend(note);
                transcript::digest(before, older, bytes_max)
            }
        };
        // Keys are hidden from models; what a model wrote of them would be stored.
        let body = self.ports.safety.hide_keys(body);
        summary.message = Some(self.compose(history, split, body, bytes_max));
        Some(summary)
    }

    fn summariser<'b>(&'b self, history: &History) -> Summariser<'b> {
        let main = &self.ports.model;
        let model = self.ports.compression_model.as_ref().unwrap_or(main);
        let stated = model.context_window();
        Summariser {
            model: model.as_ref(),
            window: match &self.ports.compression_model {
                Some(_) => stated.unwrap_or(history.gauge.window(main.context_window())),
                None => history.gauge.window(stated),
            },
            timeout: self.settings.compaction.summary_timeout,
            session: self.recorder.session(),
            turn: self.turn,
            events: self.events,
            stop: self.stop,
        }
    }

    /// Puts together what the model sees in place of what is summarised. The summary itself is a part of its own: the next
    /// one is made from it.
    fn compose(&self, history: &History, split: &Split, body: String, bytes_max: usize) -> Message {
        let mut rest = String::new();
        let kept = &history.messages()[split.cut..];
        if !kept.iter().any(is_from_person) {
            let older = history.messages()[..split.cut].iter();
            let last = older.rev().find(|message| is_from_person(message));
            // They may be in the summary before already.
            let words = match last {
                Some(last) => Some(last.said()),
                None => history.messages().first().and_then(last_words_of),
            };
            if let Some(words) = words.filter(|words| !words.trim().is_empty()) {
                let words = ends(words.trim(), LAST_WORDS_BYTES_MAX.min(bytes_max));
                rest.push_str(&format!("{LAST_WORDS}{words}\n{LAST_WORDS_END}"));
            }
        }
        for (tool, state) in history.states() {
            let all = self.ports.tools.iter().chain(&self.ports.unlisted);
            let tool = all.into_iter().find(|other| other.spec().name == *tool);
            if let Some(reminder) = tool.and_then(|tool| tool.reminder(state)) {
                rest.push_str("\n\n");
                rest.push_str(head(reminder.trim(), REMINDER_BYTES_MAX.min(bytes_max)));
            }
        }
        rest.push_str(FOOTER);
        let parts = [HEADER.to_owned(), body, rest];
        Message {
            origin: Some(Origin::Summary),
            parts: parts.into_iter().map(Part::text).collect(),
            ..Message::user("")
        }
    }

    /// Makes it so: in the store first.
    async fn apply(
        &self,
        history: &mut History,
        summary: Option<Message>,
        split: Split,
        used: Option<SummaryUse>,
    ) -> Result<(), StoreError> {
        let prefix = self.renewed_prefix(history).await;
        self.recorder.add(Entry::Compacted {
            summary: summary.clone(),
            kept: (history.messages().len() - split.cut) as u32,
            shortened: split.shortened.clone(),
            prefix: prefix.clone(),
            used,
        });
        self.recorder.commit().await?;
        history.compact(summary, split.cut, split.shortened, prefix);
        self.nested.forget();
        for tool in self.ports.tools.iter().chain(&self.ports.unlisted) {
            tool.forget_shown(self.recorder.session());
        }
        Ok(())
    }

    /// Begins requests with less where they begin with most of what fits: with what a new session with this model is told. Says
    /// whether it did.
    async fn begin_with_less(&self, history: &mut History) -> Result<bool, StoreError> {
        let window = history.gauge.window(self.ports.model.context_window());
        let told = self.prefix(history);
        let (Some(source), true) = (&self.ports.tool_source, told * 2 > window) else {
            return Ok(false);
        };
        let prefix = source.prefix_now().await;
        let less = history
            .gauge
            .other_prefix(&prefix, &self.ports.model.name());
        if !is_worthwhile(told, less) {
            return Ok(false);
        }
        let cut = history.after_summary();
        self.recorder.add(Entry::Compacted {
            summary: None,
            kept: (history.messages().len() - cut) as u32,
            shortened: Vec::new(),
            prefix: Some(prefix.clone()),
            used: None,
        });
        self.recorder.commit().await?;
        history.compact(None, cut, Vec::new(), Some(prefix));
        let text = format!(
            "{} has a small context window: from here on it is told less, and of fewer tools",
            self.ports.model.name()
        );
        let notice = Notice::Context { text };
        self.events.tell(Event::Notice { notice });
        Ok(true)
    }

    /// What requests begin with from now on, where what was learned is not what the prefix tells of it. Otherwise the bytes
    /// stay, and caches go on to serve them.
    async fn renewed_prefix(&self, history: &History) -> Option<Prefix> {
        let inputs = self.ports.tool_source.as_ref()?.prompt_inputs().await;
        let (model, now) = (self.ports.model.name(), self.ports.clock.now());
        let tools = self.ports.tools.iter().chain(&self.ports.unlisted);
        prompt::renewed(&history.prefix, &inputs, tools, &model, now)
    }

    /// Notes how much it freed, and tells what to do where that is little.
    fn judged(
        &self,
        history: &mut History,
        mut report: CompactionReport,
        cuts_users_words: bool,
    ) -> CompactionReport {
        let (before, after) = (report.tokens_before, report.tokens_after);
        history.gauge.after_last = Some(after);
        if cuts_users_words {
            report.notes.push(
                "the last message is too long for this model: it sees the beginning and the end of it".into(),
            );
        }
        if is_worthwhile(before, after) {
            history.gauge.ineffective = 0;
            return report;
        }
        history.gauge.ineffective += 1;
        let window = history.gauge.window(self.ports.model.context_window());
        let prefix = self.prefix(history);
        report.notes.push(if prefix * 2 > after {
            format!("that freed little: {}", prefix_is_large(prefix, window))
        } else {
            "that freed little: what was said last is long by itself; /new begins an empty conversation, /model chooses a \
             model with a larger context window"
                .into()
        });
        report
    }

    /// Tells that nothing can be left out: once, unless somebody asked.
    fn tell_nothing(&self, history: &mut History, task: &Task<'_>) -> Outcome {
        let was_told = std::mem::replace(&mut history.gauge.is_told, true);
        let reason = match task.reason {
            CompactionReason::Asked => {
                "there is nothing to compress yet: everything is recent".into()
            }
            _ if was_told => return Outcome::Unchanged,
            _ => format!(
                "nothing can be left out of this conversation; {}",
                hint(self, history)
            ),
        };
        self.tell_end(CompactionEnd::Unchanged { reason }, Outcome::Unchanged)
    }

    fn tell_end(&self, end: CompactionEnd, outcome: Outcome) -> Outcome {
        self.events.tell(Event::CompactionEnded { end });
        outcome
    }
}

const LAST_WORDS: &str = "\n\n## The user's last words, as they were written\n";
const LAST_WORDS_END: &str = "[End of the user's last words.]";

fn is_from_person(message: &Message) -> bool {
    message.begins_turn() && !matches!(message.origin, Some(Origin::Notice))
}

/// The summary in a message that is one, without what stands around it.
fn body_of(message: &Message) -> Option<&str> {
    if message.origin != Some(Origin::Summary) {
        return None;
    }
    match message.parts.as_slice() {
        [Part::Text { .. }, Part::Text { text }, ..] => Some(text),
        [Part::Text { text }] => Some(text),
        _ => None,
    }
}

/// The user's last words that a summary quotes.
fn last_words_of(message: &Message) -> Option<String> {
    body_of(message)?;
    let Some(Part::Text { text }) = message.parts.get(2) else {
        return None;
    };
    let (_, words) = text.split_once(LAST_WORDS)?;
    let (words, _) = words.split_once(LAST_WORDS_END)?;
    Some(words.trim().to_owned())
}

fn ends(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = tail(text, bytes_max / 3);
    format!("{}\n[…]\n{end}", head(text, bytes_max - bytes_max / 3))
}

/// What of a conversation is seen from now on.
pub(crate) fn seen(
    messages: &[Message],
    summary: Option<Message>,
    cut: usize,
    shortened: Vec<Shortened>,
) -> Vec<Message> {
    let mut kept = messages[cut..].to_vec();
    for one in shortened {
        kept[one.at as usize] = one.message;
    }
    let first = summary.or_else(|| {
        let first = messages.first()?;
        (cut > 0).then(|| first.clone())
    });
    first.into_iter().chain(kept).collect()
}
