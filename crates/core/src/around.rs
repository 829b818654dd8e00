//! What goes on beside a conversation.

/// What goes on beside the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Around {
    /// MCP servers that should work, and those that do.
    pub servers: usize,
    pub servers_ready: usize,
    /// Processes that this conversation left running in the background.
    pub processes: usize,
    /// Which fence holds commands, in a short word.
    pub fence: Option<&'static str>,
}
