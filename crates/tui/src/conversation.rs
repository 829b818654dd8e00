//! What happens in the conversation: events come in, finished items go out, the rest is live.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use hermes_core::{
    ApprovalId, ApprovalRequest, CallId, CompactionEnd, Cost, Event, Mode, ModelNotice, Notice,
    Origin, QueuedId, ResultStatus, Settled, TurnEnd, WaitsFor, skill, wording,
};
use serde_json::Value;

use crate::approval_dialog::ApprovalDialog;
use crate::form::Form;
use crate::host::{Opened, ShowReasoning};
use crate::item::{FinishedCall, Greeting, Item};
use crate::markdown::Stream;
use crate::{past, theme, wrap};

/// The latest output of a running call that is kept for the screen.
const PROGRESS_LINES_MAX: usize = 8;
/// What a model thinks is kept up to here while it thinks.
const THOUGHT_BYTES_MAX: usize = 256 * 1024;
/// A turn that took longer says so when it is over.
const LONG_TURN: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) opened: Option<Opened>,
    /// Since when something runs.
    pub(crate) busy_since: Option<Duration>,
    /// When the model is asked again, while that is waited for.
    pub(crate) asks_again_at: Option<Duration>,
    /// How far the conversation is made shorter, while it is.
    pub(crate) compacting: Option<String>,
    pub(crate) reply: Stream,
    pub(crate) thought: Option<Thought>,
    pub(crate) calls: Vec<RunningCall>,
    pub(crate) approvals: VecDeque<ApprovalDialog>,
    pub(crate) forms: VecDeque<Form>,
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) spent: Spent,
    /// Said and shown, and not begun yet.
    said: Option<String>,
    /// Taken back; it is either said again at once or belongs into the input.
    rewound: Option<String>,
    printed: Vec<Item>,
    given_back: Vec<String>,
    pub(crate) reasoning: ShowReasoning,
    pub(crate) shows_output: bool,
}

#[derive(Debug)]
pub(crate) struct Thought {
    pub(crate) text: String,
    since: Duration,
}

#[derive(Debug)]
pub(crate) struct RunningCall {
    id: CallId,
    pub(crate) tool: String,
    pub(crate) brief: String,
    /// What it changed, as it told it.
    change: Option<String>,
    pub(crate) since: Duration,
    pub(crate) progress: VecDeque<String>,
    /// What each subagent is doing.
    pub(crate) subagents: BTreeMap<usize, String>,
}

/// How a call ended.
struct CallEnd {
    status: ResultStatus,
    text: String,
    elapsed: Duration,
    images: usize,
}

/// Words that wait for the turn that runs, as the session told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    queued: QueuedId,
    pub(crate) text: String,
    pub(crate) is_steering: bool,
}

/// What the conversation has cost, as far as it was watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) context_tokens: u64,
    pub(crate) micro_usd: u64,
    /// Some of it has no known price.
    pub(crate) is_partly_unknown: bool,
}

impl Conversation {
    pub(crate) fn new(reasoning: ShowReasoning) -> Self {
        Self {
            reasoning,
            ..Self::default()
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.busy_since.is_some()
    }

    pub(crate) fn print(&mut self, item: Item) {
        self.printed.push(item);
    }

    /// What is finished since the last call.
    pub(crate) fn take_printed(&mut self) -> Vec<Item> {
        let pieces = self.reply.take_finished();
        self.printed.extend(pieces.into_iter().map(Item::Reply));
        std::mem::take(&mut self.printed)
    }

    /// Texts that belong into the input again.
    pub(crate) fn take_given_back(&mut self) -> Vec<String> {
        std::mem::take(&mut self.given_back)
    }

    /// Begins a conversation. The same one again, with another model say, is no news.
    pub(crate) fn open(&mut self, mut opened: Opened, cwd: String) {
        let past = std::mem::take(&mut opened.past);
        if let Some(current) = &mut self.opened
            && current.id == opened.id
        {
            *current = opened;
            return;
        }
        *self = Self {
            reasoning: self.reasoning,
            shows_output: self.shows_output,
            printed: std::mem::take(&mut self.printed),
            given_back: std::mem::take(&mut self.given_back),
            ..Self::default()
        };
        self.printed.push(Item::Greeting(Greeting {
            model: opened.model.clone(),
            title: opened.title.clone(),
            cwd,
            goes_on: opened.earlier > 0 || !past.is_empty(),
        }));
        self.printed.extend(earlier_note(opened.earlier));
        self.printed.extend(past::items(&past));
        self.opened = Some(opened);
    }

    /// The conversation is called so from now on.
    pub(crate) fn title(&mut self, title: String) {
        if let Some(opened) = &mut self.opened {
            opened.title = Some(title);
        }
    }

    pub(crate) fn mode(&mut self, mode: Mode, is_usual: bool) {
        if let Some(opened) = &mut self.opened {
            opened.mode = (!is_usual).then_some(mode);
        }
    }

    /// The person said something. While something runs, the session tells what becomes of it.
    pub(crate) fn say(&mut self, text: &str, now: Duration) {
        if self.is_busy() {
            return;
        }
        self.busy_since = Some(now);
        self.said = Some(text.to_owned());
        self.print(Item::User(text.to_owned()));
    }

    pub(crate) fn apply(&mut self, event: Event, now: Duration) {
        if !matches!(
            event,
            Event::CallProgress { .. } | Event::SubagentProgress { .. }
        ) {
            self.asks_again_at = None;
        }
        match event {
            Event::TurnStarted {
                origin,
                text,
                queued,
                ..
            } => self.begin_turn(origin, text, queued, now),
            Event::Queued {
                queued,
                waits_for,
                text,
                ..
            } => {
                self.said.take_if(|said| *said == text);
                self.waiting.push_back(Waiting {
                    queued,
                    text,
                    is_steering: waits_for == WaitsFor::ToolResult,
                });
            }
            Event::Steered { queued } => self.waiting.retain(|one| one.queued != queued),
            Event::TurnResumed { attempt, .. } => {
                self.busy_since.get_or_insert(now);
                let text =
                    format!("going on where a crash cut this turn short (attempt {attempt})");
                self.print(Item::note(theme::WARNING, text));
            }
            Event::Text { text } => {
                self.end_thought(now);
                self.reply.push(&wrap::clean(&text));
            }
            Event::Reasoning { text } => self.think(&text, now),
            Event::TextDiscarded => self.reply.clear(),
            Event::CallStarted {
                call,
                tool,
                arguments,
            } => self.start_call(call, tool, &arguments, now),
            Event::CallProgress { call, text } => self.progress(&call, &text),
            Event::SubagentProgress {
                call,
                subagent,
                text,
            } => self.subagent_progress(&call, subagent, &text),
            Event::CallFinished {
                call,
                tool,
                status,
                text,
                elapsed_ms,
                images,
            } => {
                let elapsed = Duration::from_millis(elapsed_ms);
                let end = CallEnd {
                    status,
                    text,
                    elapsed,
                    images,
                };
                self.finish_call(&call, tool, end);
            }
            Event::ApprovalRequested(question) => self.ask(question, now),
            Event::ApprovalClosed { approval, how } => self.close_question(&approval, how),
            Event::ElicitationRequested(elicitation) => {
                self.forms.push_back(Form::new(elicitation));
                self.show_form();
            }
            Event::ElicitationClosed { elicitation } => {
                self.forms.retain(|form| *form.id() != elicitation);
                self.show_form();
            }
            Event::CallSpent { cost, .. } => self.spent.pay(cost),
            Event::Notice { notice } => self.notice(&notice, now),
            Event::ReplyFinished {
                usage,
                cost,
                requests,
                ..
            } => {
                self.end_reply(now);
                self.spent
                    .add(usage.total() / u64::from(requests.max(1)), cost);
            }
            Event::TurnEnded { end, .. } => self.end_turn(&end, now),
            Event::Rewound { turns, said } => self.rewind(turns, said),
            Event::CompactionStarted {
                reason,
                tokens,
                window,
            } => {
                self.busy_since.get_or_insert(now);
                self.compacting = Some("making room".to_owned());
                let words = wording::compaction_started(reason, tokens, window);
                self.print(Item::note(theme::DIM, words));
            }
            Event::CompactionProgress { text } => self.compacting = Some(wrap::clean(&text)),
            Event::CompactionEnded { end } => self.end_compaction(&end),
            Event::Idle => self.rest(now),
        }
    }

    fn begin_turn(
        &mut self,
        origin: Origin,
        text: String,
        queued: Option<QueuedId>,
        now: Duration,
    ) {
        self.busy_since.get_or_insert(now);
        self.rewound = None;
        self.waiting
            .retain(|one| Some(&one.queued) != queued.as_ref());
        match origin {
            Origin::Notice => self.print(Item::Told(text)),
            // A notice told it already.
            Origin::SubagentReport { .. } | Origin::Summary => {}
            Origin::Person { .. } | Origin::Steering | Origin::Schedule { .. } => {
                // What was said here is shown already.
                if self.said.take_if(|said| *said == text).is_none() {
                    self.print(Item::User(text));
                }
            }
        }
    }

    fn think(&mut self, text: &str, now: Duration) {
        let thought = self.thought.get_or_insert_with(|| Thought {
            text: String::new(),
            since: now,
        });
        if thought.text.len() < THOUGHT_BYTES_MAX {
            thought.text.push_str(&wrap::clean(text));
        }
    }

    fn end_thought(&mut self, now: Duration) {
        let Some(thought) = self.thought.take() else {
            return;
        };
        let text = match self.reasoning {
            ShowReasoning::Hidden => return,
            ShowReasoning::Collapsed => None,
            ShowReasoning::Full => Some(thought.text),
        };
        self.print(Item::Thought {
            elapsed: now.saturating_sub(thought.since),
            text,
        });
    }

    fn end_reply(&mut self, now: Duration) {
        self.end_thought(now);
        let pieces = self.reply.take_finished();
        self.printed.extend(pieces.into_iter().map(Item::Reply));
        self.printed.extend(self.reply.finish().map(Item::Reply));
    }

    fn start_call(&mut self, id: CallId, tool: String, arguments: &Value, now: Duration) {
        self.end_reply(now);
        self.calls.push(RunningCall {
            id,
            tool,
            brief: wording::brief(arguments),
            change: None,
            since: now,
            progress: VecDeque::new(),
            subagents: BTreeMap::new(),
        });
    }

    fn progress(&mut self, id: &CallId, text: &str) {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) else {
            return;
        };
        if is_diff(text) {
            call.change = Some(text.to_owned());
            return;
        }
        let text = wrap::clean(text);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if call.progress.len() == PROGRESS_LINES_MAX {
                call.progress.pop_front();
            }
            // A row shows no more, whatever the terminal.
            call.progress
                .push_back(hermes_core::text::shorten(line, 500));
        }
    }

    fn subagent_progress(&mut self, id: &CallId, subagent: usize, text: &str) {
        // One that runs in the background has outlived its call.
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
            call.subagents.insert(subagent, wrap::clean(text));
        }
    }

    fn finish_call(&mut self, id: &CallId, tool: String, end: CallEnd) {
        self.approvals.retain(|asked| asked.question.call != *id);
        self.forms.retain(|form| form.call() != id);
        let running = self.calls.iter().position(|call| call.id == *id);
        let running = running.map(|at| self.calls.remove(at));
        let (mut brief, change) = match running {
            Some(call) => (call.brief, call.change),
            None => (String::new(), None),
        };
        if let Some(pictures) = wording::pictures(end.images) {
            brief.push_str(&format!(" ({pictures})"));
        }
        self.print(Item::Call(FinishedCall {
            tool,
            brief,
            status: end.status,
            text: end.text,
            change,
            elapsed: end.elapsed,
            shows_output: self.shows_output,
        }));
        self.show_question();
        self.show_form();
    }

    fn ask(&mut self, question: ApprovalRequest, now: Duration) {
        self.approvals.push_back(ApprovalDialog::new(question, now));
        self.show_question();
    }

    /// Takes a question off the screen that is over, and says how it ended unless that is known.
    fn close_question(&mut self, approval: &ApprovalId, how: Settled) {
        self.approvals
            .retain(|asked| asked.question.approval != *approval);
        if let Some(words) = wording::approval_closed(how) {
            self.print(Item::note(theme::WARNING, words));
        }
        self.show_question();
    }

    /// Takes the question that is answered off the screen.
    pub(crate) fn answered(&mut self) -> Option<ApprovalRequest> {
        let asked = self.approvals.pop_front();
        self.show_question();
        asked.map(|asked| asked.question)
    }

    /// Prints the question that is to be answered now, as far as a person reads it at once.
    fn show_question(&mut self) {
        let Some(asked) = self.approvals.front_mut() else {
            return;
        };
        if !std::mem::replace(&mut asked.is_printed, true) {
            let question = asked.question.clone();
            self.print(Item::ApprovalRequest(question));
        }
    }

    /// Takes the form that is filled in off the screen.
    pub(crate) fn filled(&mut self) -> Option<Form> {
        let form = self.forms.pop_front();
        self.show_form();
        form
    }

    fn show_form(&mut self) {
        let Some(form) = self.forms.front_mut() else {
            return;
        };
        if !std::mem::replace(&mut form.is_printed, true) {
            let introduction = form.introduction();
            self.print(Item::note(theme::WARNING, introduction));
        }
    }

    fn notice(&mut self, notice: &Notice, now: Duration) {
        match notice {
            Notice::Model {
                notice: ModelNotice::Retrying { wait_ms, .. },
            } => self.asks_again_at = Some(now + Duration::from_millis(*wait_ms)),
            // Told while a turn is about to begin, perhaps for a while.
            Notice::Tools { .. } | Notice::SubagentsDone { .. } => {
                _ = self.busy_since.get_or_insert(now);
            }
            Notice::Forgotten { .. } => {
                let forgotten: Vec<_> = self.waiting.drain(..).map(|one| one.text).collect();
                self.given_back.push(forgotten.join("\n\n"));
                return;
            }
            Notice::NotQueued { text, .. } => {
                self.said.take_if(|said| said == text);
                self.given_back.push(text.clone());
            }
            Notice::SteeringQueued => {
                self.waiting
                    .iter_mut()
                    .for_each(|one| one.is_steering = false);
            }
            _ => {}
        }
        self.print(Item::note(theme::WARNING, wording::notice(notice)));
    }

    fn end_turn(&mut self, end: &TurnEnd, now: Duration) {
        self.end_reply(now);
        self.compacting = None;
        self.calls.clear();
        self.approvals.clear();
        self.forms.clear();
        if matches!(end, TurnEnd::Broken { .. }) {
            // It was not recorded, so it is not lost only if it is here.
            self.given_back.extend(self.said.take());
        }
        let style = match end {
            TurnEnd::Interrupted => theme::WARNING,
            _ => theme::BAD,
        };
        if let Some(words) = wording::turn_end(end) {
            self.print(Item::note(style, words));
        }
    }

    fn rewind(&mut self, turns: u32, said: String) {
        let words = match turns {
            1 => "your last message is taken back".to_owned(),
            turns => format!("your last {turns} messages are taken back"),
        };
        self.print(Item::note(theme::DIM, words));
        self.rewound = Some(skill::as_typed(&said).to_owned());
    }

    fn end_compaction(&mut self, end: &CompactionEnd) {
        self.compacting = None;
        if let CompactionEnd::Done { report } = end {
            self.spent.context_tokens = report.tokens_after;
            report
                .cost
                .into_iter()
                .for_each(|cost| self.spent.pay(cost));
        }
        let mut lines = wording::compaction_ended(end).into_iter();
        let style = match end {
            CompactionEnd::Done { .. } => theme::DIM,
            _ => theme::WARNING,
        };
        if let Some(first) = lines.next() {
            self.print(Item::note(style, first));
        }
        lines.for_each(|note| self.print(Item::note(theme::WARNING, note)));
    }

    fn rest(&mut self, now: Duration) {
        self.given_back.extend(self.rewound.take());
        let Some(since) = self.busy_since.take() else {
            return;
        };
        let elapsed = now.saturating_sub(since);
        if elapsed >= LONG_TURN {
            let text = format!("took {}", crate::item::spell(elapsed));
            self.print(Item::note(theme::DIM, text));
        }
    }
}

impl Spent {
    fn add(&mut self, context_tokens: u64, cost: Cost) {
        self.context_tokens = context_tokens;
        self.pay(cost);
    }

    fn pay(&mut self, cost: Cost) {
        match cost.micro_usd() {
            Some(micro_usd) => self.micro_usd = self.micro_usd.saturating_add(micro_usd),
            None => self.is_partly_unknown = true,
        }
    }
}

/// What a person is told of the messages that are not shown again.
fn earlier_note(earlier: usize) -> Option<Item> {
    let words = match earlier {
        0 => return None,
        1 => "1 message came before these; /history shows it".to_owned(),
        many => format!("{many} messages came before these; /history shows them"),
    };
    Some(Item::note(theme::DIM, words))
}

/// Whether a text is a change of files, line by line.
pub(crate) fn is_diff(text: &str) -> bool {
    text.starts_with("--- ") && text.contains("\n+++ ")
}
