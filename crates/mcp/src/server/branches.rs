//! Connections of single conversations, for servers that keep something in a session that others must not see.
//!
//! The server of the settings lists the tools. What a conversation calls goes over a connection of its own, which its
//! first call makes, and which ends when it has not called for a while.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::{CancellationToken, SessionId};
use tokio::sync::broadcast;
use tokio::time::{Instant, sleep};

use crate::roster::{McpShared, assemble};
use crate::server::Server;
use crate::settings::{ServerSettings, Sharing};

/// A conversation that has not called for this long starts afresh; what it had at the server is lost.
const IDLE_MAX: Duration = Duration::from_secs(30 * 60);
/// How often we look whether one has.
const IDLE_LOOK: Duration = Duration::from_secs(60);
/// More connections would be a burden on the server: the one that has been idle for longest goes first.
const BRANCHES_MAX: usize = 64;

pub(crate) struct Branches {
    settings: Arc<ServerSettings>,
    shared: McpShared,
    stop: CancellationToken,
    open: Mutex<HashMap<SessionId, Branch>>,
}

struct Branch {
    server: Arc<Server>,
    stop: CancellationToken,
    used: Instant,
}

impl Branches {
    /// Makes those of a server whose settings want them. They end with `stop`.
    pub(crate) fn of(
        settings: &Arc<ServerSettings>,
        shared: &McpShared,
        stop: &CancellationToken,
    ) -> Option<Arc<Self>> {
        let shared = McpShared {
            // What happens to the connection of one conversation is no news about the server.
            events: broadcast::Sender::new(1),
            ..shared.clone()
        };
        (settings.sharing == Sharing::PerConversation && settings.enabled).then(|| {
            Arc::new(Self {
                settings: Arc::clone(settings),
                shared,
                stop: stop.clone(),
                open: Mutex::default(),
            })
        })
    }

    /// Returns the server as one conversation has it.
    pub(crate) fn for_conversation(self: &Arc<Self>, conversation: &SessionId) -> Arc<Server> {
        let mut open = self.open();
        if let Some(branch) = open.get_mut(conversation) {
            branch.used = Instant::now();
            return Arc::clone(&branch.server);
        }
        if open.len() >= BRANCHES_MAX {
            end_longest_idle(&mut open);
        }
        let branch = self.launch(conversation.clone());
        let server = Arc::clone(&branch.server);
        open.insert(conversation.clone(), branch);
        server
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.open().values().any(|branch| branch.server.is_busy())
    }

    fn launch(self: &Arc<Self>, conversation: SessionId) -> Branch {
        let stop = self.stop.child_token();
        let (server, supervisor) = assemble(&self.settings, &self.shared, &stop);
        let tasks = &self.shared.branches;
        if let Some(supervisor) = supervisor {
            tasks.spawn(supervisor.run());
        }
        let (branches, ended) = (Arc::clone(self), stop.clone());
        tasks.spawn(ended.run_until_cancelled_owned(async move {
            while !branches.end_if_idle(&conversation) {
                sleep(IDLE_LOOK).await;
            }
        }));
        Branch {
            server: Arc::new(server),
            stop,
            used: Instant::now(),
        }
    }

    /// Ends the connection of a conversation that does not call any more. Returns whether it has ended.
    fn end_if_idle(&self, conversation: &SessionId) -> bool {
        let mut open = self.open();
        let is_idle =
            |branch: &Branch| !branch.server.is_busy() && branch.used.elapsed() >= IDLE_MAX;
        if !open.get(conversation).is_some_and(is_idle) {
            return false;
        }
        if let Some(branch) = open.remove(conversation) {
            branch.stop.cancel();
        }
        true
    }

    fn open(&self) -> MutexGuard<'_, HashMap<SessionId, Branch>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for another, unless all are at work.
fn end_longest_idle(open: &mut HashMap<SessionId, Branch>) {
    let idle = open.iter().filter(|(_, branch)| !branch.server.is_busy());
    let longest = idle.min_by_key(|(_, branch)| branch.used);
    if let Some(conversation) = longest.map(|(conversation, _)| conversation.clone())
        && let Some(branch) = open.remove(&conversation)
    {
        branch.stop.cancel();
    }
}

impl fmt::Debug for Branches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Branches({})", self.open().len())
    }
}
