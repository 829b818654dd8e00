//! Shows events: as text for people, as lines of JSON for programs, or not at all.

use hermes_core::text::{self, printable};
use hermes_core::{Event, ResultStatus, wording};

use crate::failure::Outcome;
use crate::output::{print, println};
use crate::style::Style;

/// Where everything but the answer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aside {
    StandardError,
    StandardOutput,
}

/// How a run is shown while it runs.
pub enum Renderer {
    /// Nothing; the answer is printed when it is complete.
    Quiet,
    /// Text on standard output as it comes, everything else on standard error.
    Live(Live),
    Json,
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
    pub fn show(&mut self, event: &Event) -> Outcome<()> {
        match self {
            Self::Quiet => Ok(()),
            Self::Json => println(&serde_json::to_string(event).unwrap_or_default()),
            Self::Live(live) => live.show(event),
        }
    }
}

impl Live {
    fn show(&mut self, event: &Event) -> Outcome<()> {
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
                self.note(
                    &self
                        .style
                        .dim(format!("  │ {}", printable(text.trim_end()))),
                );
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
                self.note(&self.style.dim("  (that was a tool call)"));
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
            | Event::Asked(_)
            | Event::QuestionClosed { .. }
            | Event::Enquired(_)
            | Event::EnquiryClosed { .. }
            | Event::Idle => {}
        }
        Ok(())
    }

    fn outcome(&self, status: ResultStatus, text: &str, elapsed_ms: u64) -> String {
        let mut lines = text.lines().rev().filter(|line| !line.trim().is_empty());
        let last_line = text::shorten(&printable(lines.next().unwrap_or_default()), 160);
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
