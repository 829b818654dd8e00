//! Servers over streamable HTTP. What each says to a session it does not know is in its test's name.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::process::{HttpServer, kill_all_with};
use crate::trial::{Trial, ledger};

/// Tries a server made with a Python library: in today's era, where there are sessions to lose.
async fn python_server_heals(peer: &'static str) {
    let Some(peer) = Peer::installed(peer) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = ledger(&folder).display().to_string();
    let mut server = HttpServer::start(|port| peer.python(&[&file, port]));
    let section = section(&server, json!({ "protocol": "legacy" }));
    let trial = Trial::new(peer.name, folder, "append", &section);
    let forget = || server.send(Signal::USR1);
    trial.survives("its session forgotten", forget).await;
    trial.survives("restarted", || server.restart()).await;
}

fn section(server: &HttpServer, more: Value) -> Value {
    let mut section = json!({ "url": server.url(), "keepalive_interval": 0 });
    section
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    section
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_2_answers_404_with_a_null_id_and_heals() {
    python_server_heals("mcp-2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_1_answers_404_with_an_id_of_its_own_and_heals() {
    python_server_heals("mcp-1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_1_9_redirects_and_answers_400_in_plain_text_and_heals() {
    python_server_heals("mcp-1.9").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fastmcp_heals() {
    python_server_heals("fastmcp").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_era_without_sessions_are_restarted_without_a_failed_call() {
    for peer in ["mcp-2", "fastmcp"] {
        let Some(peer) = Peer::installed(peer) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = ledger(&folder).display().to_string();
        let mut server = HttpServer::start(|port| peer.python(&[&file, port]));
        let section = section(&server, json!({ "protocol": "modern" }));
        let name = format!("{} without sessions", peer.name);
        let trial = Trial::new(&name, folder, "append", &section);
        trial.survives("restarted", || server.restart()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_answers_400_without_an_id_and_heals() {
    let Some(peer) = Peer::installed("everything") else {
        return;
    };
    let program = "@modelcontextprotocol/server-everything/dist/index.js";
    // The port is in its environment.
    let mut server = HttpServer::start(|_| peer.node(program, &["streamableHttp"]));
    let folder = tempfile::tempdir().unwrap();
    let trial = Trial::new(peer.name, folder, "echo", &section(&server, json!({})));
    trial.survives("restarted", || server.restart()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn supergateway_over_a_program_heals() {
    let (Some(gateway), Some(python)) = (Peer::installed("supergateway"), Peer::installed("mcp-1"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = ledger(&folder).display().to_string();
    let program = python.python(&[&file, "stdio"]).join(" ");
    let arguments = ["--outputTransport", "streamableHttp", "--stateful"];
    let mut server = HttpServer::start(|port| {
        let given = ["--stdio", &program, "--port", port];
        gateway.node(
            "supergateway/dist/index.js",
            &[&given[..], &arguments[..]].concat(),
        )
    });
    let section = section(&server, json!({}));
    let trial = Trial::new(gateway.name, folder, "append", &section);
    let kill = || {
        kill_all_with(&file);
        // Until it has noticed: a call that crosses the end of the program is rightly its failure.
        server.wait_for_words("Child exited");
    };
    trial.survives("its program killed", kill).await;
    trial.survives("restarted", || server.restart()).await;
}
