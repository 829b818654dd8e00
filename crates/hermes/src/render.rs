//! Shows events: as text for people, as lines of JSON for programs, or not at all.

use hermes_core::json_lines::JsonLines;
use hermes_core::text::{self, printable};
use hermes_core::{Event, Followed, Notice, ResultStatus, SessionId, WaitsFor, wording};

use crate::failure::{Failure, Outcome};
use crate::output::{note, print, println};
use crate::style::Style;

/// Where everything but the answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aside {
    StandardError,
    StandardOutput,
}

/// How a run is shown while it runs.
pub enum Renderer {
    /// Nothing but what is waited for; the answer is printed when it is complete.
    Quiet,
    /// Text on standard output as it comes, everything else on standard error.
    Live(Live),
    /// One event a line.
    Json(JsonLines),
}

#[derive(Debug)]
pub struct Live {
    style: Style,
    aside: Aside,
    show_reasoning: bool,
    /// Whether the cursor stands behind unfinished text.
    in_text: bool,
    in_reasoning: bool,
}

impl Live {
    pub fn show_reasoning(&mut self, shows: bool) {
        self.show_reasoning = shows;
    }

    /// The answer on standard output, the rest on standard error, in that stream's style.
    pub fn new(style: Style, show_reasoning: bool) -> Self {
        Self {
            style,
            aside: Aside::StandardError,
            show_reasoning,
            in_text: false,
            in_reasoning: false,
        }
    }

    /// Everything on standard output, in order: for the demo, which is read as a whole.
    pub fn on_one_stream(style: Style) -> Self {
        Self {
            aside: Aside::StandardOutput,
            ..Self::new(style, true)
        }
    }
}

impl Renderer {
    /// Tells programs which session it is, before anything else.
    pub fn begin(&mut self, session: &SessionId) -> Outcome<()> {
        match self {
            Self::Json(_) => println(&JsonLines::beginning(session)),
            Self::Quiet | Self::Live(_) => Ok(()),
        }
    }

    pub fn show(&mut self, followed: &Followed) -> Outcome<()> {
        match self {
            Self::Quiet => {
                // What was not attached as the person wrote it, and which tools are waited for, changes what is asked.
                if let Some(Event::Notice { notice }) = followed.event()
                    && matches!(notice, Notice::Context { .. } | Notice::Tools { .. })
                {
                    note(&printable(&wording::notice(notice)));
                }
                Ok(())
            }
            Self::Json(json) => {
                let unwritten =
                    |error| Failure::new(format!("cannot write an event as JSON: {error}"));
                let lines = json.lines(followed).map_err(unwritten)?;
                lines.iter().try_for_each(|line| println(line))
            }
            Self::Live(live) => live.show(followed),
        }
    }
}

impl Live {
    fn show(&mut self, followed: &Followed) -> Outcome<()> {
        match followed {
            Followed::Event(numbered) => self.show_event(&numbered.event),
            Followed::Missed { events } => {
                self.end_line()?;
                self.note(&self.style.yellow(format!("  {}", wording::missed(*events))));
                Ok(())
            }
        }
    }

    fn show_event(&mut self, event: &Event) -> Outcome<()> {
        match event {
            Event::Text { text } => {
                self.end_reasoning();
                self.in_text = true;
                return print(&printable(text));
            }
            Event::Reasoning { text } if self.show_reasoning => {
                self.in_reasoning = true;
                self.write(&self.style.dim(printable(text)));
            }
            Event::CallStarted {
                tool, arguments, ..
            } => {
                self.end_line()?;
                self.note(&format!(
                    "{} {}",
                    self.style.cyan(format!("• {}", printable(tool))),
                    self.style.dim(wording::brief(arguments))
                ));
            }
            Event::CallFinished {
                status,
                text,
                elapsed_ms,
                images,
                ..
            } => {
                let mut outcome = self.outcome(*status, text, *elapsed_ms);
                if let Some(pictures) = wording::pictures(*images) {
                    outcome.push_str(&self.style.dim(format!(", {pictures}")));
                }
                self.note(&format!("  {outcome}"));
            }
            Event::CallProgress { text, .. } => {
                for line in text.trim_end().lines() {
                    self.note(&self.style.dim(format!("  │ {}", printable(line))));
                }
            }
            Event::SubagentProgress { subagent, text, .. } => {
                self.note(
                    &self
                        .style
                        .dim(format!("  │ [{subagent}] {}", printable(text))),
                );
            }
            Event::TextDiscarded => {
                self.end_line()?;
                self.note(&self.style.dim("  (that was not the answer)"));
            }
            Event::Notice { notice } => {
                self.end_line()?;
                self.note(
                    &self
                        .style
                        .yellow(format!("  {}", printable(&wording::notice(notice)))),
                );
            }
            Event::TurnResumed { attempt, .. } => {
                self.note(&self.style.yellow(format!(
                    "going on where a crash cut this turn short (attempt {attempt})"
                )));
            }
            Event::Queued {
                waits_for, text, ..
            } => {
                let fate = match waits_for {
                    WaitsFor::NextTurn => "waits for the end of this turn",
                    WaitsFor::ToolResult => "goes along with the next result",
                };
                let words = text::shorten(&printable(text), 60);
                self.note(&self.style.dim(format!("  ({fate}: {words})")));
            }
            Event::Rewound { turns, said } => {
                let turns = match turns {
                    1 => "your last message".to_owned(),
                    turns => format!("your last {turns} messages"),
                };
                let said = text::shorten(&printable(said), 60);
                self.note(
                    &self
                        .style
                        .dim(format!("taken back: {turns}, from “{said}”")),
                );
            }
            Event::CompactionStarted {
                reason,
                tokens,
                window,
            } => {
                self.end_line()?;
                let words = wording::compaction_started(*reason, *tokens, *window);
                self.note(&self.style.dim(format!("  {words}")));
            }
            Event::CompactionEnded { end } => {
                self.end_line()?;
                for line in wording::compaction_ended(end) {
                    self.note(&self.style.yellow(format!("  {}", printable(&line))));
                }
            }
            Event::TurnEnded { end, .. } => {
                self.end_line()?;
                if let Some(words) = wording::turn_end(end) {
                    self.note(&self.style.red(printable(&words)));
                }
            }
            Event::Reasoning { .. }
            | Event::TurnStarted { .. }
            | Event::ReplyFinished { .. }
            | Event::CallSpent { .. }
            // The line before says what happens; the next one what came of it.
            | Event::CompactionProgress { .. }
            | Event::ApprovalRequested(_)
            | Event::ApprovalClosed { .. }
            | Event::ElicitationRequested(_)
            | Event::ElicitationClosed { .. }
            | Event::Steered { .. }
            | Event::Idle => {}
        }
        Ok(())
    }

    fn outcome(&self, status: ResultStatus, text: &str, elapsed_ms: u64) -> String {
        let last_line = text::shorten(&printable(&wording::reason(text).join("  ")), 160);
        match status {
            ResultStatus::Ok => self.style.green(format!("✓ {elapsed_ms} ms")),
            ResultStatus::Failed => self.style.red(format!("✗ {last_line}")),
            ResultStatus::NotRun => self.style.yellow(format!("– not run: {last_line}")),
            ResultStatus::OutcomeUnknown => self.style.yellow(format!("? {last_line}")),
        }
    }

    fn note(&self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    /// Writes beside the answer. When that is lost, so is nothing that matters.
    fn write(&self, text: &str) {
        use std::io::Write as _;
        let _ = match self.aside {
            Aside::StandardError => std::io::stderr().lock().write_all(text.as_bytes()),
            Aside::StandardOutput => std::io::stdout().lock().write_all(text.as_bytes()),
        };
    }

    fn end_line(&mut self) -> Outcome<()> {
        self.end_reasoning();
        if std::mem::take(&mut self.in_text) {
            print("\n")
        } else {
            Ok(())
        }
    }

    fn end_reasoning(&mut self) {
        if std::mem::take(&mut self.in_reasoning) {
            self.note("");
        }
    }
}
