//! What the user wrote under `mcp_servers.<name>`, checked and with every default filled in.
//!
//! Reads plain JSON values: files, layers and `${VAR}` are the business of `hermes-config`. Start at
//! [`ServerSettings::parse`].

mod answers;
mod oauth;
mod section;
mod tls;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hermes_core::Secret;
use hermes_core::backoff::Backoff;
use hermes_core::breaker::BreakerLimits;
use serde_json::Value;

use crate::supervisor::RestSettings;
use crate::supervisor::keepalive::INTERVAL_MIN;
use section::Section;

pub use answers::{ElicitationSettings, LogLevel, SamplingSettings};

pub use oauth::OAuthSettings;
pub use tls::{ClientIdentity, TlsSettings, Verify};

/// Long enough for a slow tool; a tool that reports progress may take longer.
const CALL_TIMEOUT: Duration = Duration::from_secs(300);
/// However much progress a tool reports, this ends it.
const CALL_TOTAL_FACTOR: u32 = 6;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// Below the idle limits of most proxies and session stores, and rare enough to cost nothing.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(180);
/// Enough for what a model asks for at once, and no burden for a server.
const CONCURRENCY: usize = 8;
const BREAKER: BreakerLimits = BreakerLimits {
    strikes_max: 3,
    cooldown: Duration::from_secs(60),
};
const BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(500),
    cap: Duration::from_secs(30),
};

/// Keys that other versions of the file may hold and that nothing here reads yet.
const NOT_READ_YET: &[&str] = &["on_outage", "skip_preflight"];

/// One server, ready to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSettings {
    pub name: String,
    pub enabled: bool,
    pub transport: TransportSettings,
    /// `None`: the server wants no login, or its headers are enough.
    pub oauth: Option<OAuthSettings>,
    pub protocol: Protocol,
    /// How long a call may go without an answer or progress.
    pub call_timeout: Duration,
    /// How long a call may take in all.
    pub call_total_max: Duration,
    /// From the first packet, or the start of the process, to the end of the handshake.
    pub connect_timeout: Duration,
    /// `None`: no probes.
    pub keepalive_interval: Option<Duration>,
    /// When its program is ended, to be started again by the next call.
    pub rest: RestSettings,
    pub tools: ToolSettings,
    /// Whether the model's calls to this server may run beside each other.
    pub supports_parallel_tool_calls: bool,
    /// Calls in flight at once; further ones wait.
    pub concurrency_max: usize,
    pub retry: Retry,
    pub sharing: Sharing,
    /// Whether `readOnlyHint` and `idempotentHint` are believed.
    pub trust_annotations: bool,
    /// Whether people who are not the owner of the home have its tools in chats.
    pub guests: bool,
    pub breaker: BreakerLimits,
    pub backoff: Backoff,
    pub elicitation: ElicitationSettings,
    pub sampling: SamplingSettings,
    /// How much the server is asked to log; `None` leaves it to the server.
    pub log_level: Option<LogLevel>,
    /// What the user should know about the section: unknown keys and values that were corrected.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TransportSettings {
    Stdio {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, Secret>,
        cwd: Option<PathBuf>,
    },
    Http {
        url: String,
        headers: BTreeMap<String, Secret>,
        wire: HttpWire,
        tls: TlsSettings,
    },
}

/// How messages travel over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpWire {
    /// Streamable HTTP; the older transport for a server that turns out to speak only that.
    Auto,
    /// One address for everything (from 2025-03-26).
    Streamable,
    /// A stream down and POSTs up, at two addresses (2024-11-05).
    Sse,
}

/// Who uses a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// All conversations.
    Shared,
    /// Each conversation has one of its own, for servers that keep something in their sessions.
    PerConversation,
}

const SHARINGS: &[(&str, Sharing)] = &[
    ("shared", Sharing::Shared),
    ("per_conversation", Sharing::PerConversation),
];

/// Which era of the protocol to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Asks the server.
    Auto,
    /// `initialize` and sessions (up to 2025-11-25).
    Legacy,
    /// `server/discover` and no sessions (from 2026-07-28).
    Modern,
}

/// Whether a call may be sent again after it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// When it certainly did not run, or when running it twice does no harm.
    Safe,
    Never,
    /// Also when it may have run: the user vouches for it.
    Always,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSettings {
    /// When not empty, only these are offered.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Whether tools to list and read resources are offered.
    pub resources: bool,
    /// Whether tools to list and get prompts are offered.
    pub prompts: bool,
    /// Exceptions from [`ServerSettings::retry`], by the server's name of the tool.
    pub retry: BTreeMap<String, Retry>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SettingsError {
    #[error("MCP server `{server}` has both `url` and `command`; keep the one it is reached by")]
    BothTransports { server: String },
    #[error(
        "MCP server `{server}` has neither `url` (a server on the network) nor `command` (a program to start)"
    )]
    NoTransport { server: String },
    #[error(
        "`mcp_servers.{server}.{key}` needs the variable `{variable}`, which is not set; set it in the environment, or as `{variable}=…` in the `.env` file beside the settings"
    )]
    MissingVariable {
        server: String,
        key: String,
        variable: String,
    },
    #[error("`mcp_servers.{server}` must be a section of settings, but it is {found}")]
    NotASection { server: String, found: String },
    #[error("`mcp_servers.{server}.{key}` must be {expected}, but it is {found}")]
    WrongValue {
        server: String,
        key: String,
        expected: &'static str,
        found: String,
    },
    #[error("`mcp_servers.{server}.{key}` must be one of `{expected}`, but it is {found}")]
    WrongWord {
        server: String,
        key: String,
        expected: String,
        found: String,
    },
}

impl ServerSettings {
    /// Reads the section of one server.
    pub fn parse(name: &str, section: &Value) -> Result<Self, SettingsError> {
        let mut section = Section::new(name, section)?;
        let mut transport = transport(&mut section)?;
        let oauth = oauth::oauth(&mut section, &mut transport)?;
        let call_timeout = section.seconds("timeout")?.unwrap_or(CALL_TIMEOUT);
        let call_total_max = section
            .seconds("max_total_timeout")?
            .unwrap_or(call_timeout * CALL_TOTAL_FACTOR);
        Ok(Self {
            name: name.to_owned(),
            enabled: section.switch("enabled")?.unwrap_or(true),
            transport,
            oauth,
            protocol: protocol(&mut section)?,
            call_timeout,
            call_total_max,
            connect_timeout: section
                .seconds("connect_timeout")?
                .unwrap_or(CONNECT_TIMEOUT),
            keepalive_interval: keepalive_interval(&mut section)?,
            rest: rest(&mut section)?,
            tools: tools(&mut section)?,
            supports_parallel_tool_calls: section
                .switch("supports_parallel_tool_calls")?
                .unwrap_or(true),
            concurrency_max: section.count("max_concurrency")?.unwrap_or(CONCURRENCY),
            retry: section.word("retry", RETRIES)?.unwrap_or(Retry::Safe),
            sharing: section
                .word("sessions", SHARINGS)?
                .unwrap_or(Sharing::Shared),
            trust_annotations: section.switch("trust_annotations")?.unwrap_or(false),
            guests: section.switch("guests")?.unwrap_or(false),
            breaker: breaker(&mut section)?,
            backoff: backoff(&mut section)?,
            elicitation: answers::elicitation(&mut section)?,
            sampling: answers::sampling(&mut section)?,
            log_level: answers::log_level(&mut section)?,
            warnings: section.finish(NOT_READ_YET),
        })
    }

    /// Returns whether the user wants a tool of this server.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let names = |list: &[String]| list.iter().any(|name| name == tool);
        if self.tools.include.is_empty() {
            !names(&self.tools.exclude)
        } else {
            names(&self.tools.include)
        }
    }

    pub(crate) fn retry_of(&self, tool: &str) -> Retry {
        self.tools.retry.get(tool).copied().unwrap_or(self.retry)
    }
}

const RETRIES: &[(&str, Retry)] = &[
    ("safe", Retry::Safe),
    ("never", Retry::Never),
    ("always", Retry::Always),
];

/// The words of this file's other readers for the same things are understood too.
const TRANSPORTS: &[(&str, Option<HttpWire>)] = &[
    ("sse", Some(HttpWire::Sse)),
    ("http", Some(HttpWire::Streamable)),
    ("streamable_http", Some(HttpWire::Streamable)),
    ("streamable-http", Some(HttpWire::Streamable)),
    ("stdio", None),
];

fn transport(section: &mut Section<'_>) -> Result<TransportSettings, SettingsError> {
    let server = section.server().to_owned();
    let (url, command) = (section.text("url")?, section.text("command")?);
    let (args, env) = (section.texts("args")?, section.secrets("env")?);
    let (cwd, headers) = (section.text("cwd")?, section.secrets("headers")?);
    let wire = section.word("transport", TRANSPORTS)?;
    let tls = tls::tls(section)?;
    let is_out_of_place = match wire {
        Some(Some(_)) => command.is_some(),
        Some(None) => url.is_some(),
        None => false,
    };
    if is_out_of_place {
        section.warn(format!(
            "`mcp_servers.{server}.transport` has no effect: it does not fit how the server is reached"
        ));
    }
    for (part, secrets) in [("headers", &headers), ("env", &env)] {
        for (name, value) in secrets {
            all_variables_set(&server, &format!("{part}.{name}"), value.expose())?;
        }
    }
    all_variables_set(&server, "url", url.as_deref().unwrap_or_default())?;
    match (url, command) {
        (Some(_), Some(_)) => Err(SettingsError::BothTransports { server }),
        (None, None) => Err(SettingsError::NoTransport { server }),
        (Some(url), None) => Ok(TransportSettings::Http {
            url,
            headers,
            wire: wire.flatten().unwrap_or(HttpWire::Auto),
            tls,
        }),
        (None, Some(command)) => Ok(TransportSettings::Stdio {
            command,
            args: args.unwrap_or_default(),
            env,
            cwd: cwd.map(PathBuf::from),
        }),
    }
}

/// Refuses a value in which a `${VARIABLE}` is still to be seen. Arguments are not looked at: a shell may know it.
fn all_variables_set(server: &str, key: &str, value: &str) -> Result<(), SettingsError> {
    let reference = value
        .split_once("${")
        .and_then(|(_, rest)| rest.split_once('}'));
    match reference {
        None => Ok(()),
        Some((variable, _)) => Err(SettingsError::MissingVariable {
            server: server.to_owned(),
            key: key.to_owned(),
            variable: variable.strip_prefix("env:").unwrap_or(variable).to_owned(),
        }),
    }
}

fn protocol(section: &mut Section<'_>) -> Result<Protocol, SettingsError> {
    const PROTOCOLS: &[(&str, Protocol)] = &[
        ("auto", Protocol::Auto),
        ("legacy", Protocol::Legacy),
        ("modern", Protocol::Modern),
    ];
    Ok(section
        .word("protocol", PROTOCOLS)?
        .unwrap_or(Protocol::Auto))
}

fn keepalive_interval(section: &mut Section<'_>) -> Result<Option<Duration>, SettingsError> {
    let interval = section
        .seconds_or_zero("keepalive_interval")?
        .unwrap_or(KEEPALIVE_INTERVAL);
    if interval.is_zero() {
        return Ok(None);
    }
    if interval < INTERVAL_MIN {
        section.warn(format!(
            "`keepalive_interval` was raised to {} seconds, the least; 0 switches it off",
            INTERVAL_MIN.as_secs()
        ));
    }
    Ok(Some(interval.max(INTERVAL_MIN)))
}

/// Reads how long a program may go on; both keys may also stand in a section of their own.
fn rest(section: &mut Section<'_>) -> Result<RestSettings, SettingsError> {
    fn limits(section: &mut Section<'_>) -> Result<RestSettings, SettingsError> {
        let mut limit = |key| {
            let seconds = section.seconds_or_zero(key)?;
            Ok(seconds.filter(|seconds| !seconds.is_zero()))
        };
        Ok(RestSettings {
            idle_max: limit("idle_timeout_seconds")?,
            lifetime_max: limit("max_lifetime_seconds")?,
        })
    }
    let inner = section.inside("lifecycle", limits)?;
    let outer = limits(section)?;
    Ok(RestSettings {
        idle_max: outer.idle_max.or(inner.idle_max),
        lifetime_max: outer.lifetime_max.or(inner.lifetime_max),
    })
}

fn tools(section: &mut Section<'_>) -> Result<ToolSettings, SettingsError> {
    section.inside("tools", |tools| {
        Ok(ToolSettings {
            include: tools.texts("include")?.unwrap_or_default(),
            exclude: tools.texts("exclude")?.unwrap_or_default(),
            resources: tools.switch("resources")?.unwrap_or(true),
            prompts: tools.switch("prompts")?.unwrap_or(true),
            retry: tools.words("retry", RETRIES)?,
        })
    })
}

fn breaker(section: &mut Section<'_>) -> Result<BreakerLimits, SettingsError> {
    section.inside("breaker", |breaker| {
        let strikes_max = breaker.count_or_zero("threshold")?;
        Ok(BreakerLimits {
            strikes_max: strikes_max.map_or(BREAKER.strikes_max, |count| count as u32),
            cooldown: breaker.seconds("cooldown")?.unwrap_or(BREAKER.cooldown),
        })
    })
}

fn backoff(section: &mut Section<'_>) -> Result<Backoff, SettingsError> {
    section.inside("backoff", |backoff| {
        Ok(Backoff {
            base: backoff.seconds("base")?.unwrap_or(BACKOFF.base),
            cap: backoff.seconds("cap")?.unwrap_or(BACKOFF.cap),
        })
    })
}

#[cfg(test)]
mod tests;
