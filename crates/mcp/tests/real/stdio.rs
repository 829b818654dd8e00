//! Servers that are programs of the client's own.

use serde_json::json;

use crate::peer::Peer;
use crate::process::kill_all_with;
use crate::trial::{Trial, ledger};

/// Tries a program that is killed from outside; `mark` is one of its arguments.
async fn program_heals(
    name: &str,
    folder: tempfile::TempDir,
    tool: &'static str,
    command: &[String],
) {
    let mark = ledger(&folder).display().to_string();
    let section = json!({
        "command": command[0], "args": command[1..], "keepalive_interval": 0,
    });
    let trial = Trial::new(name, folder, tool, &section);
    trial.survives("killed", || kill_all_with(&mark)).await;
    trial
        .survives("killed again", || kill_all_with(&mark))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_server_is_started_again() {
    let Some(peer) = Peer::installed("everything") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mark = ledger(&folder).display().to_string();
    let program = "@modelcontextprotocol/server-everything/dist/index.js";
    let command = peer.node(program, &["stdio", &mark]);
    program_heals("everything over stdio", folder, "echo", &command).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_in_python_are_started_again() {
    for name in ["mcp-2", "mcp-1", "mcp-1.9", "fastmcp"] {
        let Some(peer) = Peer::installed(name) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let file = ledger(&folder).display().to_string();
        let command = peer.python(&[&file, "stdio"]);
        let name = format!("{name} over stdio");
        program_heals(&name, folder, "append", &command).await;
    }
}
