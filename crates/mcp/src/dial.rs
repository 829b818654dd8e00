//! Makes connections: a transport of the configured kind, and the handshake in the era the server speaks.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use hermes_core::CancellationToken;
use hermes_core::tool::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::auth::Keeper;
use crate::classify::SessionUse;
use crate::client::McpPorts;
use crate::failure::Failure;
use crate::handler::{Handler, Watchers};
use crate::http::HttpClient;
use crate::settings::{Protocol, ServerSettings, TransportSettings};
use crate::signal::Reporter;
use crate::stdio::{ErrorLog, Lines, Process, Program, child_environment};

/// Requests of our own (probes, lists) that must not wait behind the calls.
const OWN_REQUESTS_MAX: usize = 4;

/// For the end of what a program wrote, after it has ended.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(100);

/// Between attempts to reopen a stream. The supervisor probes meanwhile, so patience costs nothing.
const STREAM_RETRY_MAX: Duration = Duration::from_secs(30);

/// Makes connections to one server.
pub(crate) trait Dial: Send + Sync {
    /// Connects and shakes hands. Dropping the future leaves nothing behind: no connection and no process.
    fn dial(&self, wires: Wires) -> BoxFuture<'_, Result<Connection, Failure>>;

    /// Resolves when somebody has logged in, after it turned out that somebody must.
    fn logged_in(&self) -> BoxFuture<'_, ()>;

    /// Whether the old connection must be gone before a new one is made.
    fn is_exclusive(&self) -> bool;
}

/// What ties a connection to its supervisor.
#[derive(Debug, Clone)]
pub(crate) struct Wires {
    pub(crate) reporter: Reporter,
    /// Ends the connection.
    pub(crate) stop: CancellationToken,
}

pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Handler>,
    pub(crate) session: SessionUse,
    pub(crate) watchers: Watchers,
    /// Keeps what a program writes to standard error while the connection lasts.
    pub(crate) copier: JoinSet<()>,
}

/// Dials as the settings say.
pub(crate) struct Dialer {
    settings: Arc<ServerSettings>,
    era: Era,
    environment: Vec<(String, String)>,
    log_folder: PathBuf,
    tokens: Option<Arc<Keeper>>,
}

impl Dialer {
    /// `renewals` outlive the connections that need them.
    pub(crate) fn new(
        settings: Arc<ServerSettings>,
        ports: &McpPorts,
        renewals: &TaskTracker,
    ) -> Self {
        Self {
            era: Era::new(settings.protocol),
            environment: ports.environment.clone(),
            log_folder: ports.log_folder.clone(),
            tokens: Keeper::of(&settings, ports, renewals).map(Arc::new),
            settings,
        }
    }

    async fn connect(&self, wires: &Wires, era: Protocol) -> Result<Connection, Failure> {
        match &self.settings.transport {
            TransportSettings::Http { url, headers } => {
                let client =
                    HttpClient::new(url, headers, wires.reporter.clone(), self.tokens.clone())?;
                let transport = StreamableHttpClientTransport::with_client(
                    client.clone(),
                    self.http_config(url),
                );
                let mut connection = handshake(&self.settings.name, transport, wires, era).await?;
                connection.session = client.session_use();
                Ok(connection)
            }
            TransportSettings::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                let program = Program {
                    command: command.clone(),
                    args: args.clone(),
                    environment: child_environment(&self.environment, env),
                    cwd: cwd.clone(),
                };
                let log = self.error_log();
                let (process, pipes) = Process::start(&program)?;
                let mut copier = JoinSet::new();
                copier.spawn(log.clone().copy(pipes.stderr));
                let transport = Lines::new(pipes.stdout, pipes.stdin, Some(process));
                match handshake(&self.settings.name, transport, wires, era).await {
                    Ok(mut connection) => {
                        connection.copier = copier;
                        Ok(connection)
                    }
                    Err(failure) => {
                        // The process is gone; what it wrote at last may still be on its way.
                        let _ = timeout(LAST_WORDS_WAIT, copier.join_next()).await;
                        Err(with_last_words(failure, &log.last_words()))
                    }
                }
            }
        }
    }

    fn http_config(&self, url: &str) -> StreamableHttpClientTransportConfig {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url)
            .max_concurrent_requests(self.settings.concurrency_max + OWN_REQUESTS_MAX);
        // The supervisor makes a new connection instead, which also tells us what the new session offers.
        config.reinit_on_expired_session = false;
        let mut retry = ExponentialBackoff::default();
        retry.max_delay = Some(STREAM_RETRY_MAX);
        config.retry_config = Arc::new(retry);
        config
    }

    fn error_log(&self) -> ErrorLog {
        let file: String = self
            .settings
            .name
            .chars()
            .map(|c| if c.is_alphanumeric() { c } else { '_' })
            .collect();
        ErrorLog::new(self.log_folder.join(format!("mcp-{file}.log")))
    }
}

impl Dial for Dialer {
    fn dial(&self, wires: Wires) -> BoxFuture<'_, Result<Connection, Failure>> {
        Box::pin(async move {
            let era = self.era.known();
            let result = match self.connect(&wires, era).await {
                // Some servers choke on a question they do not know. Without it they are perfectly well.
                Err(failure) if era == Protocol::Auto && may_be_choked(&failure) => {
                    self.connect(&wires, Protocol::Legacy).await
                }
                result => result,
            };
            self.era.learn(result.as_ref().ok());
            result
        })
    }

    fn logged_in(&self) -> BoxFuture<'_, ()> {
        match &self.tokens {
            Some(keeper) => Box::pin(keeper.changed()),
            None => Box::pin(std::future::pending()),
        }
    }

    fn is_exclusive(&self) -> bool {
        matches!(self.settings.transport, TransportSettings::Stdio { .. })
    }
}

/// Returns whether the handshake may have failed because the server did not understand `server/discover`.
fn may_be_choked(failure: &Failure) -> bool {
    match failure {
        Failure::Cut { .. } | Failure::Unreadable { .. } | Failure::Rpc { .. } => true,
        Failure::Http(answer) => answer.status >= 500,
        _ => false,
    }
}

pub(crate) async fn handshake(
    server: &str,
    transport: impl Transport<RoleClient> + 'static,
    wires: &Wires,
    era: Protocol,
) -> Result<Connection, Failure> {
    let watchers = Watchers::default();
    let handler = Handler::new(server, wires.reporter.clone(), watchers.clone());
    let service =
        serve_client_with_lifecycle_and_ct(handler, transport, lifecycle(era), wires.stop.clone())
            .await
            .map_err(Failure::from_handshake)?;
    // A cached answer would make a dead server look alive.
    let no_cache = ClientCacheConfig::disabled();
    service.set_response_cache_config(no_cache).await;
    Ok(Connection {
        service,
        session: SessionUse::Sessionless,
        watchers,
        copier: JoinSet::new(),
    })
}

fn lifecycle(era: Protocol) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    match era {
        Protocol::Legacy => ClientLifecycleMode::Initialize,
        Protocol::Modern => ClientLifecycleMode::Discover { preferred_versions },
        Protocol::Auto => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    }
}

/// Adds what a program wrote before it failed: that is usually the reason.
fn with_last_words(mut failure: Failure, words: &str) -> Failure {
    if let Failure::Cut { cause } | Failure::Unreachable { cause } = &mut failure
        && !words.is_empty()
    {
        *cause = format!("{cause}; it wrote: {words}");
    }
    failure
}

/// Which era the server was found to speak, so that the question is asked once and not at every reconnect.
struct Era {
    configured: Protocol,
    learnt: AtomicU8,
}

impl Era {
    const UNKNOWN: u8 = 0;
    const LEGACY: u8 = 1;
    const MODERN: u8 = 2;

    fn new(configured: Protocol) -> Self {
        Self {
            configured,
            learnt: AtomicU8::new(Self::UNKNOWN),
        }
    }

    fn known(&self) -> Protocol {
        match (self.configured, self.learnt.load(Ordering::Relaxed)) {
            (Protocol::Auto, Self::LEGACY) => Protocol::Legacy,
            (Protocol::Auto, Self::MODERN) => Protocol::Modern,
            (configured, _) => configured,
        }
    }

    /// Remembers what a connection turned out to speak; after a failure everything is open again.
    fn learn(&self, connection: Option<&Connection>) {
        let info = connection.and_then(|connection| connection.service.peer_info());
        let learnt = match info.map(|info| info.protocol_version.has_initialize()) {
            None => Self::UNKNOWN,
            Some(true) => Self::LEGACY,
            Some(false) => Self::MODERN,
        };
        self.learnt.store(learnt, Ordering::Relaxed);
    }
}
