//! Which servers there are, and how one set of them becomes another without touching those that stay the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::CancellationToken;
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::auth::{ServerToken, StepUp};
use crate::client::McpPorts;
use crate::dial::Dialer;
use crate::media::MediaFolder;
use crate::respond::Respondent;
use crate::server::{Branches, Server};
use crate::settings::{ServerSettings, TransportSettings};
use crate::signal::QUEUE_MAX;
use crate::status::{ServerEvent, ServerState};
use crate::supervisor::wake::Wake;
use crate::supervisor::{Supervisor, SupervisorContext};
use crate::view::View;

/// Calls on a server that is replaced or removed may take this long to finish.
const DRAIN_WAIT: Duration = Duration::from_secs(10);
/// How often we look whether they have.
const DRAIN_INTERVAL: Duration = Duration::from_millis(50);

/// What a new set of settings did to the servers, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// New ones.
    pub started: Vec<String>,
    /// Those whose settings have changed.
    pub restarted: Vec<String>,
    /// Those that are not there any more.
    pub stopped: Vec<String>,
    /// Those that were left alone.
    pub kept: Vec<String>,
}

/// What all servers of a process share.
#[derive(Clone)]
pub(crate) struct McpShared {
    pub(crate) ports: McpPorts,
    /// How many connect at the same time.
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) events: broadcast::Sender<ServerEvent>,
    pub(crate) wake: Arc<Wake>,
    /// Tokens that are being renewed. These are not stopped half-way: the old token may be void already.
    pub(crate) renewals: TaskTracker,
    /// Connections of single conversations.
    pub(crate) branches: TaskTracker,
    pub(crate) stop: CancellationToken,
}

#[derive(Default)]
pub(crate) struct Roster {
    /// In the order of the settings.
    entries: Vec<Entry>,
    /// Servers that were removed: sessions may still hold their tools, which work again should they come back.
    removed: HashMap<String, Arc<Server>>,
}

struct Entry {
    server: Arc<Server>,
    stop: CancellationToken,
    /// Cancelled when nothing of it is left.
    ended: CancellationToken,
}

impl Roster {
    pub(crate) fn servers(&self) -> Vec<Arc<Server>> {
        let server = |entry: &Entry| Arc::clone(&entry.server);
        self.entries.iter().map(server).collect()
    }

    /// Makes the servers those of `settings`. Starts and ends go on in `tasks`.
    pub(crate) fn replace(
        &mut self,
        settings: Vec<ServerSettings>,
        shared: &McpShared,
        tasks: &mut JoinSet<()>,
    ) -> Reloaded {
        let mut reloaded = Reloaded::default();
        let mut old = std::mem::take(&mut self.entries);
        for settings in settings {
            let name = settings.name.clone();
            let at = old
                .iter()
                .position(|entry| entry.server.settings.name == name);
            let before = at.map(|at| old.remove(at));
            match before {
                Some(entry) if *entry.server.settings == settings => {
                    self.entries.push(entry);
                    reloaded.kept.push(name);
                }
                Some(entry) => {
                    let next = launch(settings, shared, entry.must_end_first(), tasks);
                    entry.server.succeed_with(&next.server);
                    tasks.spawn(retire(entry));
                    self.entries.push(next);
                    reloaded.restarted.push(name);
                }
                None => {
                    let next = launch(settings, shared, None, tasks);
                    if let Some(removed) = self.removed.remove(&name) {
                        removed.succeed_with(&next.server);
                    }
                    self.entries.push(next);
                    reloaded.started.push(name);
                }
            }
        }
        for entry in old {
            let name = entry.server.settings.name.clone();
            entry.server.remove();
            self.removed.insert(name.clone(), Arc::clone(&entry.server));
            tasks.spawn(retire(entry));
            reloaded.stopped.push(name);
        }
        reloaded
    }
}

impl Entry {
    /// Returns what to wait for before a successor is started: two of a program might get in each other's way.
    fn must_end_first(&self) -> Option<CancellationToken> {
        match self.server.settings.transport {
            TransportSettings::Stdio { .. } => Some(self.ended.clone()),
            TransportSettings::Http { .. } => None,
        }
    }
}

/// Ends a server once its calls are over, or have had their time.
async fn retire(entry: Entry) {
    let idle = async {
        while entry.server.is_busy() {
            sleep(DRAIN_INTERVAL).await;
        }
    };
    // Whoever is still at it then loses the connection, and is told so.
    let _ = timeout(DRAIN_WAIT, idle).await;
    entry.stop.cancel();
}

/// Starts a server, once the one it replaces has ended.
fn launch(
    settings: ServerSettings,
    shared: &McpShared,
    replaced: Option<CancellationToken>,
    tasks: &mut JoinSet<()>,
) -> Entry {
    let settings = Arc::new(settings);
    for warning in &settings.warnings {
        tracing::warn!("{warning}");
    }
    let (stop, ended) = (shared.stop.child_token(), CancellationToken::new());
    let end_is_told = ended.clone().drop_guard();
    let (mut server, supervisor) = assemble(&settings, shared, &stop);
    server.branches = Branches::of(&settings, shared, &stop);
    if let Some(remembered) = &shared.ports.remembered {
        let remembered = Arc::clone(remembered);
        tasks.spawn(remembered.follow(Arc::clone(&settings), server.watch(), stop.clone()));
    }
    if let Some(supervisor) = supervisor {
        tasks.spawn(async move {
            if let Some(replaced) = replaced {
                replaced.cancelled().await;
            }
            supervisor.run().await;
            drop(end_is_told);
        });
    }
    Entry {
        server: Arc::new(server),
        stop,
        ended,
    }
}

/// Puts a server together, and who keeps it connected; nobody does if it is switched off.
pub(crate) fn assemble(
    settings: &Arc<ServerSettings>,
    shared: &McpShared,
    stop: &CancellationToken,
) -> (Server, Option<Supervisor>) {
    let state = if settings.enabled {
        ServerState::Connecting
    } else {
        ServerState::Disabled
    };
    let remembered = shared.ports.remembered.as_ref();
    let offer = remembered.and_then(|remembered| remembered.of(settings));
    let (view, watched) = watch::channel(View {
        offer: offer.filter(|_| settings.enabled),
        ..View::new(state)
    });
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    let respondent = Arc::new(Respondent::new(settings, shared.ports.respondent_options()));
    // Renewals of its tokens outlive the connections that need them.
    let tokens = ServerToken::of(settings, &shared.ports, &shared.renewals).map(Arc::new);
    let server = Server::new(
        Arc::clone(settings),
        watched,
        sender.clone(),
        Arc::clone(&shared.wake),
        Arc::clone(&respondent),
        StepUp::of(settings, &shared.ports, tokens.as_ref()),
        MediaFolder::new(shared.ports.media_folder.clone()),
    );
    let supervisor = settings.enabled.then(|| {
        Supervisor::new(SupervisorContext {
            dial: Arc::new(Dialer::new(
                Arc::clone(settings),
                respondent,
                &shared.ports,
                tokens,
            )),
            settings: Arc::clone(settings),
            gate: Arc::clone(&shared.gate),
            random: Arc::clone(&shared.ports.random),
            signals: (sender, receiver),
            view,
            events: shared.events.clone(),
            wake: Arc::clone(&shared.wake),
            stop: stop.clone(),
        })
    });
    (server, supervisor)
}
