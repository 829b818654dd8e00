//! `hermes -z` and `hermes chat -q`: one question, one answer, an exit code.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::json_lines::JsonLines;
use hermes_core::report::Report;
use hermes_core::text::printable;
use hermes_core::{Part, RunningSession, UserMessage, WarningAbout};

use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::image;
use crate::output::{note, println};
use crate::piped;
use crate::prepare::Place;
use crate::render::{Live, Renderer};
use crate::style::Style;
use crate::turn::{self, Asked};
use crate::usage_file;
use hermes_core::Audience;
use hermes_runtime::piped::{Piped, Shown};

pub use hermes_runtime::commands::ONE_SHOT_SOURCE;

/// What is asked, and how the answer is shown.
pub struct OneShot {
    pub prompt: String,
    pub images: Vec<PathBuf>,
    pub source: String,
    pub audience: Audience,
    pub manner: Manner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// `-z`: the answer on standard output, and on standard error what did not run for want of somebody to allow it.
    AnswerOnly,
    /// `chat -q -Q`: the answer, and the session's id on standard error.
    AnswerAndSession,
    /// `chat -q`: text as it comes, tools on standard error.
    Live,
}

/// Answers a question. The usage report is written whatever happens.
pub async fn run(base: &Arc<Base>, flags: &RunFlags, one_shot: OneShot) -> Outcome<()> {
    let asked = answer(base, flags, &one_shot).await;
    if let Some(path) = &flags.usage_file {
        match &asked {
            Ok(asked) => usage_file::write(path, &asked.report)?,
            Err(failure) => usage_file::write_failure(path, failure)?,
        }
    }
    let asked = asked?;
    let report = &asked.report;
    if report.refused > 0 {
        note(&unattended(report.refused));
    }
    if one_shot.manner == Manner::AnswerAndSession {
        note(&format!("\nsession_id: {}", report.session));
    }
    match asked.failure() {
        Some(failure) if one_shot.manner == Manner::Live && !flags.json => {
            // It was shown as it happened; only the exit code is left to tell.
            Err(Failure {
                message: String::new(),
                hint: None,
                ..failure
            })
        }
        Some(failure) => Err(failure),
        None if report.text.trim().is_empty() => {
            Err(Failure::new("the model gave no answer")
                .hint("try again, or another model with -m"))
        }
        None => Ok(()),
    }
}

async fn answer(base: &Arc<Base>, flags: &RunFlags, one_shot: &OneShot) -> Outcome<Asked> {
    let asked = OneShotPrompt::read(base, one_shot).await?;
    let place = Place::choose(base, flags, one_shot.audience, &one_shot.source).await?;
    let mut renderer = Renderer::Quiet;
    let asked = match place.open().await {
        Ok(opened) => {
            renderer = self::renderer(base, flags, one_shot.manner, &opened);
            for warning in warnings(&opened, one_shot.manner, flags.json) {
                note(&format!("warning: {warning}"));
            }
            let message = asked.message(opened.facts.context_window);
            turn::run(&place.runtime, opened, Some(message), &mut renderer).await
        }
        Err(failure) => Err(failure),
    };
    place.leave().await;
    let asked = asked?;
    let report = &asked.report;
    if matches!(renderer, Renderer::Quiet) && !report.text.trim().is_empty() {
        print_answer(report.text.trim_end()).map_err(|failure| unread(failure, report))?;
    }
    Ok(asked)
}

/// What is told before the answer. Who wants only that, still wants to know what it is worth; a program reads events.
fn warnings(opened: &RunningSession, manner: Manner, is_json: bool) -> impl Iterator<Item = &str> {
    let is_told = move |about: WarningAbout| match about {
        WarningAbout::Skills => true,
        WarningAbout::Servers => !is_json,
        WarningAbout::Settings => !is_json && manner == Manner::Live,
    };
    let warnings = opened.warnings.iter();
    let told = warnings.filter(move |warning| is_told(warning.about));
    told.map(|warning| warning.text.as_str())
}

/// A terminal gets nothing it would obey; a program gets the answer as it is.
fn print_answer(text: &str) -> Outcome<()> {
    if std::io::stdout().is_terminal() {
        return println(&printable(text));
    }
    println(text)
}

/// What the user should know of calls that nobody was there to allow.
fn unattended(refused: u32) -> String {
    let calls = match refused {
        1 => "1 call was".to_owned(),
        count => format!("{count} calls were"),
    };
    format!(
        "note: {calls} not run, because nobody is here to allow what needs consent; --yolo, or `approvals.headless: allow` in \
         the settings, lets it run"
    )
}

/// An answer that nobody read is not lost.
fn unread(failure: Failure, report: &Report) -> Failure {
    let message = match failure.message.as_str() {
        "" => "cannot write the answer: standard output is closed".to_owned(),
        _ => failure.message,
    };
    Failure::new(message).hint(format!(
        "the answer is saved: hermes sessions show {}",
        report.session
    ))
}

fn renderer(base: &Base, flags: &RunFlags, manner: Manner, opened: &RunningSession) -> Renderer {
    match manner {
        _ if flags.json => Renderer::Json(JsonLines::hiding(opened.facts.hidden_keys.clone())),
        Manner::AnswerOnly | Manner::AnswerAndSession => Renderer::Quiet,
        Manner::Live => {
            let style = Style::of(&std::io::stderr(), &base.environment);
            let show_reasoning =
                style.is_coloured() && base.settings.bool("display.show_reasoning").unwrap_or(true);
            Renderer::Live(Live::new(style, show_reasoning))
        }
    }
}

/// What is asked: the prompt, what belongs to it, and what was piped in.
struct OneShotPrompt {
    prompt: String,
    images: Vec<Part>,
    piped: Option<Piped>,
}

impl OneShotPrompt {
    async fn read(base: &Base, one_shot: &OneShot) -> Outcome<Self> {
        let (prompt, piped) = if one_shot.prompt == "-" {
            (read_stdin()?, None)
        } else {
            (one_shot.prompt.clone(), piped::read(base).await?)
        };
        let is_piped = piped.as_ref().is_some_and(|piped| !piped.bytes.is_empty());
        if prompt.trim().is_empty() && !is_piped {
            return Err(Failure::usage("the prompt is empty")
                .hint("write what you want: hermes -z \"list the open tasks\""));
        }
        let images = one_shot.images.iter().map(|path| image::read(path));
        Ok(Self {
            prompt,
            images: images.collect::<hermes_runtime::Result<_>>()?,
            piped,
        })
    }

    /// Puts it together for a model with this window, and says what of the input is left out.
    fn message(self, window_tokens: Option<u64>) -> UserMessage {
        let mut parts = vec![Part::text(self.prompt)];
        if let Some(piped) = self.piped {
            let shown = Shown::of(&piped, window_tokens);
            parts.extend(shown.part);
            for notice in shown.notices {
                note(&format!("note: {notice}"));
            }
        }
        parts.extend(self.images);
        UserMessage::of(parts)
    }
}

fn read_stdin() -> Outcome<String> {
    /// A prompt larger than any context window.
    const PROMPT_BYTES_MAX: u64 = 16 * 1024 * 1024;
    if std::io::stdin().is_terminal() {
        note("reading the prompt from the keyboard; end it with Ctrl-D");
    }
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(PROMPT_BYTES_MAX + 1);
    stdin.read_to_end(&mut bytes).map_err(|error| {
        Failure::new(format!(
            "cannot read the prompt from standard input: {error}"
        ))
    })?;
    if bytes.len() as u64 > PROMPT_BYTES_MAX {
        return Err(Failure::usage("the prompt has more than 16 MiB")
            .hint("save it to a file, and ask hermes to read the parts it needs"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
