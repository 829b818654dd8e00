//! Watches what goes on beside a conversation, for who shows it: MCP servers and background processes.

use std::sync::Arc;
use std::time::Duration;

use hermes_core::around::Around;
use hermes_core::{ProcessState, Processes, SessionId};
use hermes_mcp::{ServerState, ServerStatus};
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::setup::Setup;

/// How old what is shown may be. Looking at a background process may start a shell on another machine.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Tells how things are, whenever that has changed.
pub struct Watch {
    tick: Interval,
    counting: JoinSet<Option<usize>>,
    processes: usize,
    told: Around,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Watch {
    pub fn new() -> Self {
        let mut tick = interval(LOOK_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            tick,
            counting: JoinSet::new(),
            processes: 0,
            told: Around::default(),
        }
    }

    /// Waits until something is not as it was last told. Dropping the future loses nothing.
    pub async fn changed(&mut self, setup: &Setup, session: &SessionId) -> Around {
        loop {
            tokio::select! {
                Some(counted) = self.counting.join_next() => {
                    self.processes = counted.ok().flatten().unwrap_or(self.processes);
                }
                _ = self.tick.tick() => {
                    if self.counting.is_empty() {
                        let count = count(Arc::clone(setup.processes()), session.clone());
                        self.counting.spawn(count);
                    }
                }
            }
            let now = Around {
                processes: self.processes,
                fence: setup.fence(),
                ..health(&setup.servers().status())
            };
            if std::mem::replace(&mut self.told, now) != now {
                return now;
            }
        }
    }
}

/// How many processes of a session run; nothing when it cannot be found out.
async fn count(processes: Arc<dyn Processes>, session: SessionId) -> Option<usize> {
    let listed = processes.list(&session).await.ok()?;
    let running = listed
        .iter()
        .filter(|process| process.state == ProcessState::Running);
    Some(running.count())
}

/// Servers that nobody wants are not counted; those that rest come when they are called.
fn health(servers: &[ServerStatus]) -> Around {
    let mut around = Around::default();
    for server in servers {
        match server.state {
            ServerState::Disabled | ServerState::Stopped => continue,
            ServerState::Ready | ServerState::Resting => around.servers_ready += 1,
            _ => {}
        }
        around.servers += 1;
    }
    around
}
