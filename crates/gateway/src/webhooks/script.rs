//! The script of a route: it reads an event before anybody else does, and may drop it, change it or put it into words.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::text::shorten;
use hermes_core::{CancellationToken, SessionId, Terminal};
use serde_json::Value;

use crate::schedules::script::{Printed, Scripts};

/// Senders wait for it, and GitHub for ten seconds.
const TIME_MAX: Duration = Duration::from_secs(8);
/// As many words as a whole event and its prompt have.
const WORDS_CHARS_MAX: usize = 16_000;

/// Where scripts lie and run.
#[derive(Clone)]
pub struct ScriptParts {
    pub terminal: Arc<dyn Terminal>,
    pub folder: PathBuf,
    pub cwd: PathBuf,
}

/// What a script made of an event.
#[derive(Debug, PartialEq)]
pub(super) enum Scripted {
    /// This counts in its place.
    Event(Value),
    /// The agent, or the chat, is told this.
    Words(String),
    /// It does not count.
    Unwanted,
}

/// Runs a script, which reads the event as JSON. The error is for whoever wrote it.
pub(super) async fn run(
    parts: &ScriptParts,
    script: &str,
    event: &Value,
    session: &SessionId,
) -> Result<Scripted, String> {
    let scripts = Scripts {
        terminal: Arc::clone(&parts.terminal),
        folder: parts.folder.clone(),
        time_max: TIME_MAX,
    };
    let session = SessionId::from(format!("{session}_script"));
    let (stdin, stop) = (event.to_string().into_bytes(), CancellationToken::new());
    let printed = scripts.run_with(script, session, stdin, &parts.cwd, &stop);
    match printed.await {
        Printed::Text(text) => Ok(read(text.trim())),
        Printed::NothingToDo => Ok(Scripted::Unwanted),
        Printed::Failed { error, text } => Err(format!("{error}: {text}")),
        Printed::Stopped => Err(format!("the script `{script}` was stopped")),
    }
}

fn read(printed: &str) -> Scripted {
    if printed.is_empty() {
        return Scripted::Unwanted;
    }
    match serde_json::from_str(printed) {
        Ok(event @ Value::Object(_)) => Scripted::Event(event),
        _ => Scripted::Words(shorten(printed, WORDS_CHARS_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_script_prints_is_an_event_or_words_or_nothing() {
        assert_eq!(read(""), Scripted::Unwanted);
        assert_eq!(read("{\"a\": 1}"), Scripted::Event(json!({"a": 1})));
        assert_eq!(read("[1]"), Scripted::Words("[1]".to_owned()));
        assert_eq!(read("look: 1"), Scripted::Words("look: 1".to_owned()));
    }
}
