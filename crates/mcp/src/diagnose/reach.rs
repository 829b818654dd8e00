//! Whether a server can be reached at all, before a word is said.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::Secret;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::{Fault, Phase, Step};
use crate::client::McpPorts;
use crate::stdio::child_environment;

const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Variables that name a proxy. Behind one, names and connections are its business.
const PROXY_VARIABLES: &[&str] = &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// Looks for the program of a server. Returns whether it is worth going on.
pub(super) fn program(
    command: &str,
    env: &BTreeMap<String, Secret>,
    cwd: Option<&Path>,
    ports: &McpPorts,
    tell: &mut impl FnMut(Step),
) -> bool {
    let started = Instant::now();
    let environment = child_environment(&ports.environment, env);
    let path = environment.get("PATH").map_or("", Secret::expose);
    let found = find_program(command, path, cwd);
    let outcome = match &found {
        Some(file) => Ok(file.display().to_string()),
        None => Err(Fault {
            cause: format!("there is no program `{command}`"),
            advice: "install it, or write its full path; it is looked for in PATH, which is that of this shell \
                     unless `env` sets another"
                .to_owned(),
        }),
    };
    tell(Step {
        phase: Phase::Program,
        outcome,
        elapsed: started.elapsed(),
    });
    found.is_some()
}

fn find_program(command: &str, path: &str, cwd: Option<&Path>) -> Option<PathBuf> {
    if command.contains('/') {
        let file = cwd.map_or_else(|| PathBuf::from(command), |cwd| cwd.join(command));
        return Some(file).filter(|file| is_program(file));
    }
    std::env::split_paths(path)
        .map(|folder| folder.join(command))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    let metadata = file.metadata();
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Looks up the host of a server and connects to it. Returns whether it is worth going on.
pub(super) async fn host(url: &str, ports: &McpPorts, tell: &mut impl FnMut(Step)) -> bool {
    let Some((host, port)) = authority(url) else {
        tell(Step {
            phase: Phase::Address,
            outcome: Err(Fault {
                // The address itself may hold a key.
                cause: "its `url` is not an http or https address".to_owned(),
                advice: "write it with its scheme, such as https://example.org/mcp".to_owned(),
            }),
            elapsed: Duration::ZERO,
        });
        return false;
    };
    if is_proxied(ports) {
        return true;
    }
    match look_up(&host, port, tell).await {
        Some(addresses) => connect(&addresses, tell).await,
        None => false,
    }
}

fn authority(url: &str) -> Option<(String, u16)> {
    let url = reqwest::Url::parse(url).ok()?;
    let is_web = matches!(url.scheme(), "http" | "https");
    let host = url.host_str().filter(|_| is_web)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), url.port_or_known_default()?))
}

fn is_proxied(ports: &McpPorts) -> bool {
    ports.environment.iter().any(|(name, value)| {
        PROXY_VARIABLES.contains(&name.to_ascii_uppercase().as_str()) && !value.is_empty()
    })
}

async fn look_up(host: &str, port: u16, tell: &mut impl FnMut(Step)) -> Option<Vec<SocketAddr>> {
    let started = Instant::now();
    let looked_up = timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, port))).await;
    let addresses = match looked_up {
        Ok(Ok(addresses)) => Ok(addresses.collect::<Vec<_>>()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", LOOKUP_TIMEOUT.as_secs())),
    };
    let outcome = match &addresses {
        Ok(addresses) => {
            let ips: Vec<String> = addresses
                .iter()
                .map(|address| address.ip().to_string())
                .collect();
            Ok(format!("{host} is {}", ips.join(", ")))
        }
        Err(error) => Err(Fault {
            cause: format!("the name `{host}` has no address: {error}"),
            advice: "check the name in `url`, and whether this machine is on the network"
                .to_owned(),
        }),
    };
    tell(Step {
        phase: Phase::Address,
        outcome,
        elapsed: started.elapsed(),
    });
    addresses.ok()
}

async fn connect(addresses: &[SocketAddr], tell: &mut impl FnMut(Step)) -> bool {
    let started = Instant::now();
    let outcome = match timeout(CONNECT_TIMEOUT, TcpStream::connect(addresses)).await {
        Ok(Ok(stream)) => Ok(match stream.peer_addr() {
            Ok(address) => format!("{address} takes connections"),
            Err(_) => "it takes connections".to_owned(),
        }),
        Ok(Err(error)) => Err(Fault {
            cause: error.to_string(),
            advice: "nothing listens there: start the server, or correct the port in `url`"
                .to_owned(),
        }),
        Err(_) => Err(Fault {
            cause: format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()),
            advice: "a firewall is in the way, or the machine is off, or the address is wrong"
                .to_owned(),
        }),
    };
    let is_connected = outcome.is_ok();
    tell(Step {
        phase: Phase::Connection,
        outcome,
        elapsed: started.elapsed(),
    });
    is_connected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_as_the_system_finds_it() {
        let found = find_program("sh", "/nowhere:/bin:/usr/bin", None);
        assert!(found.is_some_and(|file| file.ends_with("sh")));
        assert_eq!(find_program("no-such-program", "/bin", None), None);
        assert!(find_program("/bin/sh", "", None).is_some());
        assert!(find_program("./sh", "", Some(Path::new("/bin"))).is_some());
        assert_eq!(find_program("/etc/passwd", "", None), None, "not a program");
        assert_eq!(find_program("/bin", "", None), None, "a folder");
    }

    #[test]
    fn hosts_are_read_from_addresses() {
        let read = |url: &str| authority(url).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(
            read("https://example.org/mcp").as_deref(),
            Some("example.org 443")
        );
        assert_eq!(read("http://[::1]:8080/").as_deref(), Some("::1 8080"));
        assert_eq!(read("ftp://example.org"), None);
        assert_eq!(read("example.org"), None);
    }
}
