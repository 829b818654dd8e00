//! What kind of server it is while nothing fails.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::SessionLoss;

/// The traits of a server; they can be changed while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    pub era: Era,
    /// How a POST is answered. A call with a progress token always gets an event stream.
    pub answers: Answers,
    /// Knows `ping`; the modern era never does.
    pub has_ping: bool,
    /// Offers a stream of notifications on GET; 405 if not.
    pub has_get_stream: bool,
    /// Takes `subscriptions/listen`, in the modern era.
    pub has_subscriptions: bool,
    /// Gives every client of the legacy era a session over HTTP, and wants to see it.
    pub has_sessions: bool,
    /// Answers a handshake with this version, whichever the client asked for.
    pub version: Option<String>,
    /// What it says to a session it does not know.
    pub lost_session: SessionLoss,
    /// Tools per page of the list.
    pub page_size: usize,
    /// Lists this many more tools, `extra_1` and so on, which do what `echo` does.
    pub extra_tools: usize,
    /// Lists these too, exactly as they are given.
    pub odd_tools: Vec<Value>,
    /// Gives `echo` one more parameter, `times`.
    pub is_echo_changed: bool,
    /// Lists and runs the tools that ask the client for something: `ask`, `tell`, `visit`, `draw`.
    pub has_asking_tools: bool,
    /// Neither lists nor runs these tools.
    pub removed_tools: Vec<String>,
}

/// The protocol versions it speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// Up to 2025-11-25: a handshake, and sessions over HTTP.
    #[default]
    Legacy,
    /// 2026-07-28: `server/discover` and no sessions.
    Modern,
    Both,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answers {
    #[default]
    Json,
    Sse,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            era: Era::default(),
            answers: Answers::default(),
            has_ping: true,
            has_get_stream: true,
            has_subscriptions: true,
            has_sessions: true,
            version: None,
            lost_session: SessionLoss::NotFound,
            page_size: 4,
            extra_tools: 0,
            odd_tools: Vec::new(),
            is_echo_changed: false,
            has_asking_tools: false,
            removed_tools: Vec::new(),
        }
    }
}

impl Era {
    pub(crate) fn is_modern(self) -> bool {
        matches!(self, Self::Modern | Self::Both)
    }

    pub(crate) fn is_legacy(self) -> bool {
        matches!(self, Self::Legacy | Self::Both)
    }
}
