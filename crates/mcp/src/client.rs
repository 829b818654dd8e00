//! All servers together: start, look, stop.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{CancellationToken, Clock, Random, Tool};
use tokio::sync::{Mutex, Semaphore, broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use crate::dial::Dialer;
use crate::server::Server;
use crate::settings::ServerSettings;
use crate::signal::QUEUE_MAX;
use crate::status::{ServerEvent, ServerState, ServerStatus};
use crate::supervisor::{Supervisor, Supplies};
use crate::tool::tools_of;
use crate::view::View;

/// After a network outage every server is lost at once; so many may be dialled at the same time.
const CONNECTING_MAX: usize = 4;

/// For renewals of tokens that are under way when we stop.
const RENEWALS_WAIT: Duration = Duration::from_secs(10);

/// Events that a slow listener may leave unread before it misses some.
const EVENTS_MAX: usize = 64;

/// What the servers need from the world.
#[derive(Clone)]
pub struct McpPorts {
    /// Where the servers' standard error goes, one file each.
    pub log_folder: PathBuf,
    /// Where the tokens of servers with OAuth are kept. Shared with other processes.
    pub token_folder: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    /// Our own environment; servers get the few harmless variables of it.
    pub environment: Vec<(String, String)>,
}

/// The MCP servers of this process. Dropping it stops them at once; [`Mcp::shutdown`] stops them properly.
pub struct Mcp {
    servers: Vec<Arc<Server>>,
    events: broadcast::Sender<ServerEvent>,
    stop: CancellationToken,
    /// Tokens that are being renewed. These are not stopped half-way: the old token may be void already.
    renewals: TaskTracker,
    supervisors: Mutex<JoinSet<()>>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there is no MCP server `{name}`; there are: {known}")]
pub struct UnknownServer {
    pub name: String,
    pub known: String,
}

impl Mcp {
    /// Starts to connect to every server, and returns without waiting for any.
    pub fn start(settings: Vec<ServerSettings>, ports: McpPorts) -> Self {
        let (events, _) = broadcast::channel(EVENTS_MAX);
        let stop = CancellationToken::new();
        let gate = Arc::new(Semaphore::new(CONNECTING_MAX));
        let renewals = TaskTracker::new();
        let mut supervisors = JoinSet::new();
        let mut servers = Vec::new();
        for settings in settings {
            let settings = Arc::new(settings);
            for warning in &settings.warnings {
                tracing::warn!("{warning}");
            }
            let state = match settings.enabled {
                true => ServerState::Connecting,
                false => ServerState::Disabled,
            };
            let (view, watched) = watch::channel(View::new(state));
            let (sender, receiver) = mpsc::channel(QUEUE_MAX);
            let server = Server::new(Arc::clone(&settings), watched, sender.clone());
            servers.push(Arc::new(server));
            if settings.enabled {
                let dialer = Dialer::new(Arc::clone(&settings), &ports, &renewals);
                let supervisor = Supervisor::new(Supplies {
                    settings,
                    dial: Arc::new(dialer),
                    gate: Arc::clone(&gate),
                    random: Arc::clone(&ports.random),
                    signals: (sender, receiver),
                    view,
                    events: events.clone(),
                    stop: stop.clone(),
                });
                supervisors.spawn(supervisor.run());
            }
        }
        Self {
            servers,
            events,
            stop,
            renewals,
            supervisors: Mutex::new(supervisors),
        }
    }

    /// Returns the tools of all servers, waiting at most `wait_max` for those that have not been listed yet.
    ///
    /// A server that is away keeps the tools it had; one that was never reached has none.
    pub async fn tools(&self, wait_max: Duration) -> Vec<Arc<dyn Tool>> {
        let deadline = Instant::now() + wait_max;
        let mut taken = HashSet::new();
        let mut tools = Vec::new();
        for server in &self.servers {
            let mut view = server.watch();
            let is_known = |view: &View| view.offer.is_some() || view.state.is_hopeless();
            // Late servers are simply not there yet.
            let _ = timeout_at(deadline, view.wait_for(is_known)).await;
            let offer = server.view().offer.clone();
            if let Some(offer) = offer {
                tools.extend(tools_of(server, &offer, &mut taken));
            }
        }
        tools
    }

    pub fn status(&self) -> Vec<ServerStatus> {
        let status = |server: &Arc<Server>| server.view().status(&server.settings.name);
        self.servers.iter().map(status).collect()
    }

    /// Follows the states of all servers from now on. A listener that is too slow misses some.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.events.subscribe()
    }

    /// Gives up a server's connection, if it has one, and makes a new one now.
    pub async fn reconnect(&self, name: &str) -> Result<(), UnknownServer> {
        let names = || {
            self.servers
                .iter()
                .map(|server| server.settings.name.as_str())
        };
        let server = self
            .servers
            .iter()
            .find(|server| server.settings.name == name);
        match server {
            Some(server) => {
                server.reconnect().await;
                Ok(())
            }
            None => Err(UnknownServer {
                name: name.to_owned(),
                known: names().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Ends all connections and processes. Calls that are under way fail.
    pub async fn shutdown(&self) {
        self.stop.cancel();
        let mut supervisors = self.supervisors.lock().await;
        while supervisors.join_next().await.is_some() {}
        self.renewals.close();
        // One that still hangs after this has lost its token, if it had been given one, in any case.
        let _ = timeout(RENEWALS_WAIT, self.renewals.wait()).await;
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
