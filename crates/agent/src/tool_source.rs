//! The port for tools that come and go while a session runs: those of MCP servers.

use std::sync::Arc;

use hermes_core::{BoxFuture, Prefix, Tool};

use crate::events::EventLog;
use crate::prompt::PromptInputs;

/// The prompt prefix and the tools of a session that begins now.
pub struct SessionTools {
    /// What its model is told before all else. It is frozen with the first message.
    pub prefix: Prefix,
    /// The tools of the prefix.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What can be called besides.
    pub unlisted: Vec<Arc<dyn Tool>>,
    /// Those of either that come from servers: a session that runs is told of the ones it does not know.
    pub late: Vec<Arc<dyn Tool>>,
}

/// Where a session gets its tools from.
///
/// A session asks before its first message, and again before each further one. What its prefix says never changes; what
/// comes later is told in a message; it can be called by its name as soon as it is there.
pub trait ToolSource: Send + Sync {
    /// Waits for what is worth waiting for before a session says its first word, and tells the person what that is.
    /// Dropping the future ends the waiting; the session goes on with what there is.
    fn ready<'a>(&'a self, events: &'a EventLog) -> BoxFuture<'a, ()>;

    /// Returns a number that changes whenever [`ToolSource::session_tools`] does. Cheap.
    fn version(&self) -> u64;

    fn session_tools(&self) -> SessionTools;

    /// Returns what a prompt would be made of now: with the notes and the skills that there are by now. A compaction begins
    /// with it where those have changed.
    fn prompt_inputs(&self) -> BoxFuture<'_, PromptInputs>;

    /// Returns what a session that begins now would begin with. A conversation whose prefix does not fit into another model
    /// goes on with it.
    fn prefix_now(&self) -> BoxFuture<'_, Prefix>;

    /// Returns the tools of servers as they are this moment: a model may learn of one in the middle of a turn, from what
    /// a tool says or from the person, and calls it before it was told. Cheap.
    fn late(&self) -> Vec<Arc<dyn Tool>>;
}
