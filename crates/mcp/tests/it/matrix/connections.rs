//! Rows 1 to 3, 18 to 20 and 30: the road to the server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use hermes_mcp::{BreakerStatus, ServerState, ServerStatus};
use hermes_testkit::mcp::{FaultyMcp, Options, Relay, Settings};
use serde_json::{Value, json};

use super::{Record, SECOND, ends_unknown, succeeds};
use crate::client::Client;
use crate::tls::{Authority, TlsFront};

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server behind a relay, without a stream of its own that would notice things first.
async fn behind_a_relay(settings: &Value) -> (FaultyMcp, Relay, Client) {
    let options = Options {
        settings: Settings {
            has_get_stream: false,
            ..Settings::default()
        },
        ..Options::default()
    };
    let server = FaultyMcp::start_with(&options).unwrap();
    let relay = Relay::start(ANY_PORT, server.address()).unwrap();
    let mut section = settings.clone();
    section["url"] = json!(relay.url());
    let client = Client::new(&section);
    client.until_ready().await;
    client.tools().await;
    (server, relay, client)
}

#[tokio::test(flavor = "multi_thread")]
async fn row_01_an_idle_connection_is_reset() {
    let (server, relay, client) = behind_a_relay(&json!({ "keepalive_interval": 0 })).await;
    client.append("before").await.unwrap();
    relay.reset_connections();
    // The reset arrives before anybody calls; one that crosses a call is row 13's business.
    tokio::time::sleep(SECOND / 10).await;
    let took = succeeds(&client, "word").await;
    assert!(took < SECOND, "{took:?}");
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 1,
        fault: "idle connection dropped with a reset (NAT, load balancer)",
        detected: "the pool throws the connection away",
        outcome: "call on a new connection",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_02_one_path_swallows_everything() {
    let settings = json!({ "keepalive_interval": 5 });
    let (server, relay, client) = behind_a_relay(&settings).await;
    client.append("before").await.unwrap();
    relay.lose_connections();
    let lost = Instant::now();
    client
        .until("probed", |status| {
            let answered = status.last_success.unwrap_or_default();
            lost.elapsed() > 5 * SECOND && answered < SECOND
        })
        .await;
    let healed = lost.elapsed();
    let took = succeeds(&client, "word").await;
    assert!(took < SECOND && healed < 11 * SECOND, "{took:?} {healed:?}");
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 2,
        fault: "silent blackhole of the connections there are",
        detected: "keepalive probe (interval 5 s here)",
        outcome: "healed before anybody called",
        healed: Some(healed),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_03_a_proxy_holds_connections_to_a_dead_server() {
    let settings = json!({ "keepalive_interval": 5, "timeout": 2 });
    let (server, relay, client) = behind_a_relay(&settings).await;
    relay.block();
    ends_unknown(&client, "lost").await;
    client
        .until("given up", |status| status.last_error.is_some())
        .await;
    relay.unblock();
    let back = Instant::now();
    client
        .until("back", |status| {
            status.reconnects > 0 && status.breaker == BreakerStatus::Closed
        })
        .await;
    let healed = back.elapsed();
    succeeds(&client, "word").await;
    assert_eq!(server.executions("lost"), 0);
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 3,
        fault: "proxy holds connections, server behind it dead",
        detected: "a call's deadline, then a probe without an answer within 5 s",
        outcome: "`outcome_unknown` for the call in flight; connection rebuilt",
        healed: Some(healed),
        executions: Some(0),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_18_a_half_open_connection_loses_a_call_and_no_more() {
    let settings = json!({ "keepalive_interval": 0, "timeout": 1 });
    let (server, relay, client) = behind_a_relay(&settings).await;
    client.append("before").await.unwrap();
    // Whichever connection the call takes is lost: the pool may not have the last one back yet, and open another.
    relay.block();
    let reopened = async {
        tokio::time::sleep(SECOND / 2).await;
        relay.unblock();
    };
    tokio::join!(ends_unknown(&client, "lost"), reopened);
    let took = succeeds(&client, "word").await;
    assert!(took < 6 * SECOND, "{took:?}");
    assert_eq!(server.executions("lost"), 0);
    assert_eq!(server.executions("word"), 1);
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    Record {
        row: 18,
        fault: "half-open TCP under a call",
        detected: "the call's deadline (1 s here), then a probe on a new connection; at the latest the system, 30 s after \
                   something was sent and not acknowledged (`TCP_USER_TIMEOUT`)",
        outcome: "`outcome_unknown` for that call, the next succeeds",
        healed: Some(took),
        executions: Some(0),
    }
    .keep();
}

/// Runs the row in a world of its own, where a file of ours says what names mean.
#[test]
fn row_19_the_name_points_to_another_address() {
    let names = tempfile::NamedTempFile::new().unwrap();
    let ended = unshare()
        .args(["--map-root-user", "--mount", "/bin/sh", "-c"])
        .arg(r#"mount --bind "$HOSTS_FILE" /etc/hosts && exec "$0" "$@""#)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "matrix::connections::be_behind_a_name"])
        .args(["--ignored", "--nocapture"])
        .env("HOSTS_FILE", names.path())
        .env_remove("http_proxy")
        .env_remove("HTTP_PROXY")
        .status()
        .expect("`unshare` of util-linux");
    assert!(ended.success(), "{ended}; are user namespaces allowed?");
}

#[expect(clippy::disallowed_methods, reason = "a world of its own for a test")]
fn unshare() -> std::process::Command {
    std::process::Command::new("unshare")
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "another test runs it where names can be changed"]
async fn be_behind_a_name() {
    let point_to = |address: &str| {
        std::fs::write("/etc/hosts", format!("{address} moving.test\n")).unwrap();
    };
    let (old, new) = (FaultyMcp::start().await, FaultyMcp::start().await);
    let port = old.address().port();
    point_to("127.0.0.1");
    let url = format!("http://moving.test:{port}/mcp");
    let client = Client::new(&json!({ "url": url, "keepalive_interval": 0 }));
    client.until_ready().await;
    client.append("before").await.unwrap();
    drop(old);
    let _moved = Relay::start(([127, 0, 0, 2], port).into(), new.address()).unwrap();
    point_to("127.0.0.2");
    // Until the end of the old connection has arrived.
    tokio::time::sleep(SECOND / 10).await;
    let took = succeeds(&client, "word").await;
    assert!(took < 3 * SECOND, "{took:?}");
    assert_eq!(new.executions("word"), 1);
    Record {
        row: 19,
        fault: "the server moves to another address under the same name",
        detected: "connection refused at the old one",
        outcome: "name looked up again, call made at the new address",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_20_a_certificate_is_not_trusted_until_it_is_renewed() {
    let authority = Authority::new();
    let front = TlsFront::start(authority.acceptor(&["localhost"], None)).await;
    let file = authority.write("ca.pem", &Authority::new().issuer.pem());
    let client = Client::new(&front.section(json!({ "ssl_verify": file })));
    let is_told = |status: &ServerStatus| matches!(status.state, ServerState::Misconfigured { .. });
    client.until("misconfigured", is_told).await;
    let error = client.status().last_error.unwrap();
    assert!(error.contains("ssl_verify"), "{error}");
    authority.write("ca.pem", &authority.issuer.pem());
    let renewed = Instant::now();
    client.mcp.reconnect("test").await.unwrap();
    client.until_ready().await;
    succeeds(&client, "word").await;
    assert_eq!(front.server.executions("word"), 1);
    Record {
        row: 20,
        fault: "certificate not trusted, then the file of authorities renewed",
        detected: "the handshake",
        outcome: "misconfigured, with the setting to look at; files are read at every attempt",
        healed: Some(renewed.elapsed()),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_30_the_machine_sleeps_and_its_connections_die() {
    let (server, relay, client) = behind_a_relay(&json!({ "keepalive_interval": 0 })).await;
    client.append("before").await.unwrap();
    relay.lose_connections();
    client.clock.advance(Duration::from_secs(3600));
    let took = succeeds(&client, "word").await;
    assert!(took < 6 * SECOND, "{took:?}");
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 30,
        fault: "the machine sleeps for an hour, its connections die silently",
        detected: "the wall clock ran ahead of the timers",
        outcome: "probed before the call is sent; a dead connection is replaced",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}
