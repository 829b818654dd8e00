//! How the API is to be, as the binary read it from the settings.

use std::time::Duration;

use hermes_core::SessionOptions;

use super::key::ApiKey;

#[derive(Debug, Clone)]
pub struct ApiSettings {
    pub key: ApiKey,
    /// Pages of these origins may ask; none may without one. `*` lets every page.
    pub cors_origins: Vec<String>,
    /// The name under which the agent stands in the list of models.
    pub model_name: String,
    /// Turns that run at a time; who asks for more is told to come back.
    pub runs_max: usize,
    /// The longest text that somebody may say at once.
    pub text_chars_max: usize,
    pub on_disconnect: OnDisconnect,
    /// How often a silent stream says that it is alive.
    pub keepalive: Duration,
    /// How conversations are that the API opens.
    pub options: SessionOptions,
}

/// What becomes of a turn whose client has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisconnect {
    /// It is stopped.
    Interrupt,
    /// It goes on; its answer is in the conversation.
    Detach,
}
