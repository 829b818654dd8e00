//! Makes connections: a transport of the configured kind, and the handshake in the era the server speaks.

mod found;

use std::sync::Arc;
use std::time::Duration;

use hermes_core::CancellationToken;
use hermes_core::text::shorten;
use hermes_core::tool::BoxFuture;
use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
#[expect(deprecated, reason = "servers of today's era send log lines")]
use rmcp::model::{LoggingLevel, SetLevelRequestParams};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, RunningService, serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::Transport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::auth::ServerToken;
use crate::classify::SessionUse;
use crate::client::McpPorts;
use crate::expected::Expected;
use crate::failure::Failure;
use crate::handler::Handler;
use crate::http::{Address, Drained, HttpClient, SseTransport};
use crate::in_flight::InFlight;
use crate::log::ServerLog;
use crate::respond::Respondent;
use crate::settings::{HttpWire, LogLevel, Protocol, ServerSettings, TransportSettings};
use crate::signal::Reporter;
use crate::stdio::{
    Effort, Lines, MalwareCheck, Pipes, Process, Program, Written, child_environment,
};
use found::{Era, WireFound};

/// Requests of our own (probes, lists) that must not wait behind the calls.
const OWN_REQUESTS_MAX: usize = 4;

/// For the end of what a program wrote, after it has ended.
const LAST_WORDS_WAIT: Duration = Duration::from_millis(100);

/// Of a version that is none, this much is shown.
const VERSION_CHARS_MAX: usize = 40;

/// How long a server may take to change how much it logs.
const LOG_LEVEL_WAIT: Duration = Duration::from_secs(5);

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

    /// How many programs an attempt may start.
    fn starts(&self) -> usize {
        usize::from(self.is_exclusive())
    }
}

/// What ties a connection to its supervisor.
#[derive(Debug, Clone)]
pub(crate) struct Wires {
    pub(crate) reporter: Reporter,
    /// Ends the connection.
    pub(crate) stop: CancellationToken,
    /// Whoever has no connection by then should say why not; a little later he is not asked any more.
    pub(crate) deadline: Instant,
}

pub(crate) struct Connection {
    pub(crate) service: RunningService<RoleClient, Handler>,
    pub(crate) session: SessionUse,
    pub(crate) in_flight: InFlight,
    /// What went into the pipe, if it is one.
    pub(crate) written: Option<Written>,
    /// How much a program has worked so far, if it is one.
    pub(crate) effort: Option<Effort>,
    /// Keeps what a program writes to standard error while the connection lasts.
    pub(crate) copier: JoinSet<()>,
}

/// Dials as the settings say.
pub(crate) struct Dialer {
    settings: Arc<ServerSettings>,
    era: Era,
    wire_found: WireFound,
    malware: MalwareCheck,
    environment: Vec<(String, String)>,
    respondent: Arc<Respondent>,
    log: ServerLog,
    tokens: Option<Arc<ServerToken>>,
    /// Whose turn it is to start a program.
    starts: Arc<Semaphore>,
}

impl Dialer {
    pub(crate) fn new(
        settings: Arc<ServerSettings>,
        respondent: Arc<Respondent>,
        ports: &McpPorts,
        tokens: Option<Arc<ServerToken>>,
    ) -> Self {
        Self {
            malware: MalwareCheck::new(
                &settings.name,
                ports.environment.clone(),
                ports.cache_folder.clone(),
                Arc::clone(&ports.clock),
                settings.connect_timeout,
            ),
            era: Era::new(settings.protocol),
            log: ServerLog::new(ports.log_folder.join(log_name(&settings.name))),
            wire_found: WireFound::default(),
            tokens,
            settings,
            environment: ports.environment.clone(),
            respondent,
            starts: Arc::clone(&ports.starts),
        }
    }

    fn handler(&self, wires: &Wires) -> Handler {
        let respondent = Arc::clone(&self.respondent);
        Handler::new(respondent, wires.reporter.clone(), self.log.clone())
    }

    async fn connect(&self, wires: &Wires, era: Protocol) -> Result<Connection, Failure> {
        match &self.settings.transport {
            TransportSettings::Http {
                url,
                headers,
                wire,
                tls,
            } => {
                let address = Address {
                    url,
                    headers,
                    tls,
                    environment: &self.environment,
                };
                let (reporter, tokens) = (wires.reporter.clone(), self.tokens.clone());
                let client = HttpClient::new(address, reporter, tokens).await?;
                self.connect_http(client, url, *wire, wires, era).await
            }
            TransportSettings::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                self.malware.check(command, args).await?;
                let program = Program {
                    command: command.clone(),
                    args: args.clone(),
                    environment: child_environment(&self.environment, env),
                    cwd: cwd.clone(),
                };
                self.connect_program(program, wires, era).await
            }
        }
    }

    async fn connect_program(
        &self,
        program: Program,
        wires: &Wires,
        era: Protocol,
    ) -> Result<Connection, Failure> {
        let log = self.log.afresh();
        let (process, pipes) = self.start(program).await?;
        let mut copier = JoinSet::new();
        copier.spawn(log.clone().copy(pipes.stderr));
        let effort = process.effort();
        let transport = Lines::new(pipes.stdout, pipes.stdin, Some(process));
        let (noise, written) = (transport.noise(), transport.written());
        let greeted = handshake(self.handler(wires), transport, wires, era);
        let greeted = timeout_at(wires.deadline, greeted).await;
        match greeted.unwrap_or_else(|_| Err(self.too_late())) {
            Ok(mut connection) => {
                connection.copier = copier;
                connection.written = Some(written);
                connection.effort = Some(effort);
                Ok(connection)
            }
            Err(failure) => {
                // The process is gone; what it wrote at last may still be on its way.
                let _ = timeout(LAST_WORDS_WAIT, copier.join_next()).await;
                let failure = with_words(failure, "it wrote", &log.last_words());
                Err(with_words(failure, "it printed", noise.first()))
            }
        }
    }

    /// Starts a program on another thread, and one after the other: twenty at once would keep a screen from being drawn.
    async fn start(&self, program: Program) -> Result<(Process, Pipes), Failure> {
        let _turn = self.starts.acquire().await;
        let started = tokio::task::spawn_blocking(move || Process::start(&program)).await;
        started.unwrap_or_else(|stopped| {
            Err(Failure::Unreachable {
                cause: format!("the start was cut off: {stopped}"),
            })
        })
    }

    fn too_late(&self) -> Failure {
        Failure::Timeout {
            after: self.settings.connect_timeout,
        }
    }

    async fn connect_http(
        &self,
        client: HttpClient,
        url: &str,
        wire: HttpWire,
        wires: &Wires,
        era: Protocol,
    ) -> Result<Connection, Failure> {
        let known = match wire {
            HttpWire::Auto => self.wire_found.get(),
            named => named,
        };
        if known == HttpWire::Sse {
            let connected = self.connect_sse(client, url, wires).await;
            if connected.is_err() {
                // It may have been renewed; the next attempt finds out.
                self.wire_found.set(HttpWire::Auto);
            }
            return connected;
        }
        let connected = self
            .connect_streamable(client.clone(), url, wires, era)
            .await;
        match connected {
            Ok(connection) => {
                self.wire_found.set(HttpWire::Streamable);
                Ok(connection)
            }
            Err(failure) if known == HttpWire::Auto && may_be_older(&failure) => {
                let Ok(connection) = self.connect_sse(client, url, wires).await else {
                    return Err(failure);
                };
                let server = &self.settings.name;
                tracing::info!(server, "it speaks the older HTTP+SSE transport");
                self.wire_found.set(HttpWire::Sse);
                Ok(connection)
            }
            Err(failure) => Err(failure),
        }
    }

    async fn connect_streamable(
        &self,
        client: HttpClient,
        url: &str,
        wires: &Wires,
        era: Protocol,
    ) -> Result<Connection, Failure> {
        let config = self.http_config(url);
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
        let transport = Drained(transport);
        let mut connection = handshake(self.handler(wires), transport, wires, era).await?;
        connection.session = client.session_use();
        Ok(connection)
    }

    async fn connect_sse(
        &self,
        client: HttpClient,
        url: &str,
        wires: &Wires,
    ) -> Result<Connection, Failure> {
        let post_timeout = self.settings.call_total_max;
        let transport = SseTransport::open(client, url, post_timeout).await?;
        // The transport is older than the other era.
        let era = Protocol::Legacy;
        let mut connection = handshake(self.handler(wires), transport, wires, era).await?;
        connection.session = SessionUse::Session;
        Ok(connection)
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

    /// Asks the server for the log lines that the user wants. One that will not is fine all the same.
    #[expect(deprecated, reason = "servers of today's era send log lines")]
    async fn set_log_level(&self, connection: &Connection) {
        let info = connection.service.peer_info();
        let has_log = info.is_some_and(|info| {
            info.capabilities.logging.is_some() && info.protocol_version.has_initialize()
        });
        if let Some(level) = self.settings.log_level.filter(|_| has_log) {
            let parameters = SetLevelRequestParams::new(level.into());
            let asked = connection.service.peer().set_level(parameters);
            let _ = timeout(LOG_LEVEL_WAIT, asked).await;
        }
    }
}

fn log_name(server: &str) -> String {
    let file: String = server
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '_' })
        .collect();
    format!("mcp-{file}.log")
}

#[expect(deprecated, reason = "servers of today's era send log lines")]
impl From<LogLevel> for LoggingLevel {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warning => Self::Warning,
            LogLevel::Error => Self::Error,
        }
    }
}

impl Dial for Dialer {
    fn dial(&self, wires: Wires) -> BoxFuture<'_, Result<Connection, Failure>> {
        Box::pin(async move {
            let era = self.era.known();
            let result = match self.connect(&wires, era).await {
                // Some servers choke on a question they do not know. Without it they are perfectly well.
                Err(failure)
                    if era == Protocol::Auto
                        && may_be_choked(&failure)
                        && Instant::now() < wires.deadline =>
                {
                    self.connect(&wires, Protocol::Legacy).await
                }
                result => result,
            };
            self.era.learn(result.as_ref().ok());
            if let Ok(connection) = &result {
                self.set_log_level(connection).await;
            }
            result
        })
    }

    fn logged_in(&self) -> BoxFuture<'_, ()> {
        match &self.tokens {
            Some(server_token) => Box::pin(server_token.changed()),
            None => Box::pin(std::future::pending()),
        }
    }

    fn is_exclusive(&self) -> bool {
        matches!(self.settings.transport, TransportSettings::Stdio { .. })
    }

    fn starts(&self) -> usize {
        match (self.is_exclusive(), self.era.known()) {
            (false, _) => 0,
            // The second is asked without the question that the first may have choked on.
            (true, Protocol::Auto) => 2,
            (true, _) => 1,
        }
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

/// Returns whether a server refused our messages as those of the older transport do, which take them elsewhere.
fn may_be_older(failure: &Failure) -> bool {
    matches!(failure, Failure::Http(answer) if matches!(answer.status, 400 | 404 | 405))
}

pub(crate) async fn handshake(
    handler: Handler,
    transport: impl Transport<RoleClient> + 'static,
    wires: &Wires,
    era: Protocol,
) -> Result<Connection, Failure> {
    let in_flight = handler.in_flight();
    let service = serve_client_with_lifecycle_and_ct(
        handler,
        Expected::new(transport),
        lifecycle(era),
        wires.stop.clone(),
    )
    .await
    .map_err(Failure::from_handshake)?;
    if let Some(info) = service.peer_info() {
        refuse_unknown(&info.protocol_version)?;
    }
    // A cached answer would make a dead server look alive.
    let no_cache = ClientCacheConfig::disabled();
    service.set_response_cache_config(no_cache).await;
    Ok(Connection {
        service,
        session: SessionUse::Sessionless,
        in_flight,
        written: None,
        effort: None,
        copier: JoinSet::new(),
    })
}

/// Fails for a version of the protocol that nobody here has read.
fn refuse_unknown(version: &ProtocolVersion) -> Result<(), Failure> {
    if ProtocolVersion::KNOWN_VERSIONS.contains(version) {
        return Ok(());
    }
    let known: Vec<&str> = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .map(ProtocolVersion::as_str)
        .collect();
    let version = shorten(version.as_str(), VERSION_CHARS_MAX);
    Err(Failure::Misconfigured {
        cause: format!(
            "it answers with version `{version}` of the protocol, which we do not speak (we speak {}); update whichever \
             of the two is older",
            known.join(", ")
        ),
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

/// Adds what a program said before it failed: that is usually the reason.
fn with_words(failure: Failure, how: &str, words: &str) -> Failure {
    match failure {
        failure if words.is_empty() => failure,
        Failure::Unreachable { cause } => Failure::Unreachable {
            cause: format!("{cause}; {how}: {words}"),
        },
        failure @ (Failure::Cut { .. } | Failure::Timeout { .. }) => Failure::Cut {
            cause: format!("{failure}; {how}: {words}"),
        },
        failure => failure,
    }
}
