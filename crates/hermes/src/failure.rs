//! The one error a user sees: what happened, where, what to do next. Printed once, in `main`.

use std::fmt;

use hermes_core::redact::redact;
use hermes_core::text::printable;
use hermes_runtime::ErrorKind;

/// Exit codes scripts rely on.
pub mod code {
    /// The agent failed or gave no answer.
    pub const FAILED: u8 = 1;
    /// The command line was wrong, or nothing could be started.
    pub const USAGE: u8 = 2;
    /// Nothing is there that could be asked; as service managers have it.
    pub const NOT_RUNNING: u8 = 3;
    /// Whoever started this is to start it again: `EX_TEMPFAIL` of sysexits.
    pub const RESTART: u8 = 75;
    /// The settings keep a service from starting, and starting it again changes nothing: `EX_CONFIG` of sysexits.
    pub const SETTINGS: u8 = 78;
    /// Ctrl-C.
    pub const INTERRUPTED: u8 = 130;
    /// A terminal that hung up.
    pub const HUNG_UP: u8 = 129;
    /// SIGTERM.
    pub const TERMINATED: u8 = 143;
}

#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub place: Option<String>,
    pub hint: Option<String>,
    pub code: u8,
}

pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: None,
            hint: None,
            code: code::FAILED,
        }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            code: code::USAGE,
            ..Self::new(message)
        }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("error: {}", self.message);
        if let Some(place) = &self.place {
            text.push_str(&format!("\n   at: {place}"));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n hint: {hint}"));
        }
        // Part of it may be a provider's words: no secrets, nothing that steers the terminal.
        f.write_str(&printable(&redact(&text)))
    }
}

impl From<hermes_runtime::Error> for Failure {
    fn from(error: hermes_runtime::Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Asked => code::USAGE,
            ErrorKind::Failed => code::FAILED,
        };
        Self {
            place: error.place().map(str::to_owned),
            hint: error.hint(),
            code,
            ..Self::new(error.to_string())
        }
    }
}

impl From<hermes_core::OpenError> for Failure {
    fn from(error: hermes_core::OpenError) -> Self {
        Self {
            place: error.place,
            hint: error.hint,
            code: if error.is_asked {
                code::USAGE
            } else {
                code::FAILED
            },
            ..Self::new(error.message)
        }
    }
}

/// Errors that bring their own hint.
macro_rules! failure_from {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let hint = error.hint().to_string();
                Self::new(error.to_string()).hint(hint)
            }
        })*
    };
}

failure_from!(
    hermes_core::CheckpointError,
    hermes_core::StoreError,
    hermes_config::AuthError,
    hermes_config::HomeError,
    hermes_config::LoadError,
    hermes_config::ReadError,
    hermes_config::WriteError,
    hermes_config::ChangeError,
    hermes_config::KeyError,
    hermes_config::ValueError,
    hermes_llm::LoginError,
    hermes_llm::ResolveError,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_where_and_what_next_and_no_secret() {
        let failure = Failure {
            place: Some("config.yaml:3".to_owned()),
            ..Failure::new("key sk-proj-abc123def456ghi789jkl was refused").hint("set another key")
        };
        assert_eq!(
            failure.to_string(),
            "error: key *** was refused\n   at: config.yaml:3\n hint: set another key"
        );
    }
}
