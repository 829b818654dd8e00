//! What can go wrong when a process and its conversations are set up. Surfaces find their own words for it: an error says
//! what happened, [`Error::place`] where, [`Error::hint`] what to do next, and [`Error::kind`] who could mend it.

use std::fmt::Display;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Who could have avoided an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Whoever asked for it, or wrote the settings: nothing was begun.
    Asked,
    /// Nobody who asked: a file, a program, a server did not do its part.
    Failed,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for, or what the settings say, cannot be had.
    #[error("{problem}")]
    Asked {
        problem: String,
        place: Option<String>,
        hint: Option<String>,
    },
    /// Something of the machine or of another program did not work.
    #[error("{problem}")]
    Failed {
        problem: String,
        place: Option<String>,
        hint: Option<String>,
    },
    #[error(transparent)]
    Store(#[from] hermes_core::StoreError),
    #[error(transparent)]
    Checkpoint(#[from] hermes_core::CheckpointError),
    #[error(transparent)]
    Home(#[from] hermes_config::HomeError),
    #[error(transparent)]
    Load(#[from] hermes_config::LoadError),
    #[error(transparent)]
    Read(#[from] hermes_config::ReadError),
    #[error(transparent)]
    Write(#[from] hermes_config::WriteError),
    #[error(transparent)]
    Change(#[from] hermes_config::ChangeError),
    #[error(transparent)]
    Key(#[from] hermes_config::KeyError),
    #[error(transparent)]
    Value(#[from] hermes_config::ValueError),
    #[error(transparent)]
    Auth(#[from] hermes_config::AuthError),
    #[error(transparent)]
    Login(#[from] hermes_llm::LoginError),
    #[error(transparent)]
    Resolve(#[from] hermes_llm::ResolveError),
}

impl Error {
    /// What was asked for cannot be had.
    pub fn asked(problem: impl Into<String>) -> Self {
        Self::Asked {
            problem: problem.into(),
            place: None,
            hint: None,
        }
    }

    /// Something did not work.
    pub fn failed(problem: impl Into<String>) -> Self {
        Self::Failed {
            problem: problem.into(),
            place: None,
            hint: None,
        }
    }

    /// Says what to do next. An error of another crate has a hint of its own, which this one replaces.
    pub fn with_hint(self, text: impl Into<String>) -> Self {
        let hint = Some(text.into());
        match self {
            Self::Asked { problem, place, .. } => Self::Asked {
                problem,
                place,
                hint,
            },
            Self::Failed { problem, place, .. } => Self::Failed {
                problem,
                place,
                hint,
            },
            other => Self::Failed {
                problem: other.to_string(),
                place: None,
                hint,
            },
        }
    }

    /// Says where.
    pub fn at(mut self, where_it_is: impl Display) -> Self {
        if let Self::Asked { place, .. } | Self::Failed { place, .. } = &mut self {
            *place = Some(where_it_is.to_string());
        }
        self
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Asked { .. } => ErrorKind::Asked,
            _ => ErrorKind::Failed,
        }
    }

    pub fn place(&self) -> Option<&str> {
        match self {
            Self::Asked { place, .. } | Self::Failed { place, .. } => place.as_deref(),
            _ => None,
        }
    }

    /// What to do next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Asked { hint, .. } | Self::Failed { hint, .. } => hint.clone(),
            Self::Store(error) => Some(error.hint().to_string()),
            Self::Checkpoint(error) => Some(error.hint().to_string()),
            Self::Home(error) => Some(error.hint().to_string()),
            Self::Load(error) => Some(error.hint().to_string()),
            Self::Read(error) => Some(error.hint().to_string()),
            Self::Write(error) => Some(error.hint().to_string()),
            Self::Change(error) => Some(error.hint().to_string()),
            Self::Key(error) => Some(error.hint().to_string()),
            Self::Value(error) => Some(error.hint().to_string()),
            Self::Auth(error) => Some(error.hint().to_string()),
            Self::Login(error) => Some(error.hint().to_string()),
            Self::Resolve(error) => Some(error.hint().to_string()),
        }
    }
}

impl From<Error> for hermes_core::OpenError {
    fn from(error: Error) -> Self {
        Self {
            place: error.place().map(str::to_owned),
            hint: error.hint(),
            is_asked: error.kind() == ErrorKind::Asked,
            message: error.to_string(),
        }
    }
}
