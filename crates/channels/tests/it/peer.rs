//! Programs of others that stand in for platforms.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hermes_testkit::peers;
use reqwest::Client;
use serde_json::Value;

/// A program that runs as long as this is there.
pub(crate) struct Peer {
    process: Child,
    pub(crate) url: String,
    pub(crate) folder: tempfile::TempDir,
    client: Client,
}

impl Peer {
    /// Starts a program of a peer on a free port, and waits until it answers. `None` where it is not installed.
    pub(crate) async fn start(
        name: &str,
        command: impl FnOnce(PathBuf, u16) -> Command,
    ) -> Option<Self> {
        let installed = peers::installed(name)?;
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let folder = tempfile::tempdir().unwrap();
        let process = command(installed, port)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let peer = Self {
            process,
            url: format!("http://127.0.0.1:{port}"),
            folder,
            client: hermes_os::http::without_tls(hermes_os::http::client().no_proxy())
                .build()
                .unwrap(),
        };
        for _ in 0..600 {
            if peer.client.get(&peer.url).send().await.is_ok() {
                return Some(peer);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{name} never listens");
    }

    /// Fetches something.
    pub(crate) async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut request = self.client.get(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        answer.bytes().await.unwrap().to_vec()
    }

    /// Asks it something of its own, as JSON.
    pub(crate) async fn ask(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Value {
        let mut request = self.client.post(format!("{}{path}", self.url));
        request = request.header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_string()).send().await.unwrap();
        let bytes = answer.bytes().await.unwrap();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
