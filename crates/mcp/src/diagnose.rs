//! Walks the way to a server step by step, and says which step fails, why, and what to do.
//!
//! The connection itself is made by the code that makes all others: what is found here is what happens there. Start at
//! [`diagnose`].

mod reach;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::CancellationToken;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::auth::ServerToken;
use crate::client::McpPorts;
use crate::dial::{Connection, Dial as _, Dialer, Wires};
use crate::failure::{Failure, HttpAnswer};
use crate::respond::Respondent;
use crate::settings::{ServerSettings, TransportSettings};
use crate::signal::Reporter;
use crate::supervisor::probe::{ProbeKind, fetch_offer, probe};

/// For one ping.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// For a dialer that is late, to say why.
const LATE_ANSWER_WAIT: Duration = Duration::from_millis(500);

/// The steps on the way to a server, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The program is there.
    Program,
    /// The name of the host has an address.
    Address,
    /// The host takes a connection.
    Connection,
    /// Certificates are in order.
    Encryption,
    /// There is a token to send.
    Login,
    /// It answers as a server of this kind does.
    Http,
    /// It speaks MCP.
    Handshake,
    Tools,
    Ping,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "program",
            Self::Address => "address",
            Self::Connection => "connection",
            Self::Encryption => "encryption",
            Self::Login => "login",
            Self::Http => "http",
            Self::Handshake => "handshake",
            Self::Tools => "tools",
            Self::Ping => "ping",
        })
    }
}

/// How one step went.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub phase: Phase,
    /// What was found.
    pub outcome: Result<String, Fault>,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub cause: String,
    /// What to do about it.
    pub advice: String,
}

/// Tries to reach a server, and tells every step as it is done. The last one told is the one that failed, if any did.
pub async fn diagnose(settings: ServerSettings, ports: McpPorts, mut tell: impl FnMut(Step)) {
    let is_reachable = match &settings.transport {
        TransportSettings::Stdio {
            command, env, cwd, ..
        } => reach::program(command, env, cwd.as_deref(), &ports, &mut tell),
        TransportSettings::Http { url, .. } => reach::host(url, &ports, &mut tell).await,
    };
    if is_reachable {
        talk(settings, ports, &mut tell).await;
    }
}

/// Shakes hands, lists and pings.
async fn talk(settings: ServerSettings, ports: McpPorts, tell: &mut impl FnMut(Step)) {
    let settings = Arc::new(settings);
    let stop = CancellationToken::new();
    let started = Instant::now();
    let connection = match connect(&settings, &ports, &stop).await {
        Ok(connection) => connection,
        Err(failure) => {
            tell(Step {
                phase: phase_of(&failure, &settings),
                outcome: Err(fault(&failure, &settings)),
                elapsed: started.elapsed(),
            });
            return;
        }
    };
    tell(Step {
        phase: Phase::Handshake,
        outcome: Ok(introduction(&connection)),
        elapsed: started.elapsed(),
    });
    let peer = connection.service.peer().clone();
    let started = Instant::now();
    let offer = fetch_offer(peer.clone()).await;
    let outcome = match &offer {
        Ok(offer) => {
            let wanted = offer
                .tools
                .iter()
                .filter(|tool| settings.offers(&tool.name));
            Ok(format!(
                "{} listed, {} wanted",
                offer.tools.len(),
                wanted.count()
            ))
        }
        Err(failure) => Err(fault(failure, &settings)),
    };
    tell(Step {
        phase: Phase::Tools,
        outcome,
        elapsed: started.elapsed(),
    });
    if offer.is_ok() {
        let started = Instant::now();
        let probed = probe(peer.clone(), ProbeKind::of(&peer), PING_TIMEOUT).await;
        tell(Step {
            phase: Phase::Ping,
            outcome: match probed.result {
                Ok(_) => Ok("answered".to_owned()),
                Err(failure) => Err(fault(&failure, &settings)),
            },
            elapsed: started.elapsed(),
        });
    }
    // An error means that it is gone already.
    let _ = connection.service.cancel().await;
}

async fn connect(
    settings: &Arc<ServerSettings>,
    ports: &McpPorts,
    stop: &CancellationToken,
) -> Result<Connection, Failure> {
    let respondent = Arc::new(Respondent::new(settings, ports.respondent_options()));
    let renewals = TaskTracker::new();
    let tokens = ServerToken::of(settings, ports, &renewals).map(Arc::new);
    let dialer = Dialer::new(Arc::clone(settings), respondent, ports, tokens);
    // Nobody supervises this connection.
    let (signals, _) = mpsc::channel(1);
    let after = settings.connect_timeout;
    let wires = Wires {
        reporter: Reporter::new(0, signals),
        stop: stop.clone(),
        deadline: Instant::now() + after,
    };
    // The dialer knows best why it is late.
    let dialled = timeout(after + LATE_ANSWER_WAIT, dialer.dial(wires)).await;
    // A token that is being renewed must not be lost with us; this has a deadline of its own.
    renewals.close();
    renewals.wait().await;
    dialled.unwrap_or(Err(Failure::Timeout { after }))
}

fn introduction(connection: &Connection) -> String {
    let Some(info) = connection.service.peer_info() else {
        return "done".to_owned();
    };
    let version = info.protocol_version.to_string();
    match &info.server_info {
        Some(server) => format!("{} {}, protocol {version}", server.name, server.version),
        None => format!("protocol {version}"),
    }
}

/// Tells how far a connection came that failed.
fn phase_of(failure: &Failure, settings: &ServerSettings) -> Phase {
    let is_program = matches!(settings.transport, TransportSettings::Stdio { .. });
    match failure {
        Failure::NeedsLogin { .. } => Phase::Login,
        Failure::Unreachable { .. } if !is_program => Phase::Connection,
        Failure::Misconfigured { cause } if cause.contains("certificate") => Phase::Encryption,
        Failure::Http(_) | Failure::NotMcp { .. } => Phase::Http,
        _ => Phase::Handshake,
    }
}

fn fault(failure: &Failure, settings: &ServerSettings) -> Fault {
    Fault {
        cause: failure.to_string(),
        advice: advice(failure, settings),
    }
}

fn advice(failure: &Failure, settings: &ServerSettings) -> String {
    let name = &settings.name;
    let is_program = matches!(settings.transport, TransportSettings::Stdio { .. });
    match failure {
        Failure::NeedsLogin { .. } => format!("run `hermes mcp login {name}`"),
        Failure::Http(HttpAnswer { status: 401, .. }) if settings.oauth.is_some() => {
            format!("it refuses a fresh token; run `hermes mcp reauth {name}`")
        }
        Failure::Http(HttpAnswer {
            status: 401 | 403, ..
        }) => format!(
            "give it credentials it accepts: `mcp_servers.{name}.headers`, such as `Authorization: Bearer ${{TOKEN}}`; \
             or, if it uses OAuth, set `mcp_servers.{name}.auth: oauth` and run `hermes mcp login {name}`"
        ),
        Failure::Http(HttpAnswer {
            status: 404..=406, ..
        })
        | Failure::NotMcp { .. } => format!(
            "`mcp_servers.{name}.url` leads to something else; the path is often /mcp or /sse"
        ),
        Failure::Http(HttpAnswer {
            status: 300..=399, ..
        }) => format!(
            "it has moved: put the address it points to into `mcp_servers.{name}.url`; or, if that is the sign-in page \
             of a network or of a company, sign in there with a browser first"
        ),
        Failure::Http(HttpAnswer { status: 429, .. }) => "wait a little; it is asked too often".to_owned(),
        Failure::Http(_) => "the server itself fails; its own log says why".to_owned(),
        Failure::Misconfigured { cause } if cause.contains("certificate") => {
            "this machine does not trust its certificate: have it renewed, or name its authority in the settings"
                .to_owned()
        }
        Failure::Misconfigured { cause } if cause.contains("of the protocol") => {
            "update the server, or Hermes".to_owned()
        }
        Failure::Misconfigured { .. } => format!("put `mcp_servers.{name}` right: `hermes config edit`"),
        Failure::Timeout { .. } => format!(
            "it is slow or stuck; when it is only slow, raise `mcp_servers.{name}.connect_timeout`"
        ),
        _ if is_program => format!(
            "run its command by hand: it must speak MCP on its standard output; what it complains of is kept in \
             logs/mcp-{name}.log"
        ),
        Failure::Unreachable { .. } => "see that the server runs and takes connections".to_owned(),
        _ => "see that it is an MCP server of a version we speak; its own log may say more".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_failure_has_a_phase_and_advice() {
        let settings =
            ServerSettings::parse("s", &json!({"url": "https://example.org/mcp"})).unwrap();
        let http = |status| {
            Failure::Http(HttpAnswer {
                status,
                ..HttpAnswer::default()
            })
        };
        let untrusted = Failure::Misconfigured {
            cause: "invalid peer certificate: Expired".into(),
        };
        let late = Failure::Timeout {
            after: Duration::from_secs(60),
        };
        for (failure, phase, advised) in [
            (http(401), Phase::Http, "headers"),
            (http(404), Phase::Http, "path"),
            (http(500), Phase::Http, "its own log"),
            (http(302), Phase::Http, "it has moved"),
            (http(308), Phase::Http, "mcp_servers.s.url"),
            (untrusted, Phase::Encryption, "certificate"),
            (late, Phase::Handshake, "connect_timeout"),
        ] {
            assert_eq!(phase_of(&failure, &settings), phase, "{failure:?}");
            let advice = advice(&failure, &settings);
            assert!(advice.contains(advised), "{failure:?}: {advice}");
        }
    }
}
