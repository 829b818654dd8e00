//! TLS against a peer that is not ours: a server of Python's, with a certificate made by `openssl`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hermes_core::{Message, ModelErrorKind};
use hermes_llm::{Client, ModelChoice};
use hermes_testkit::contract::model::tell;

use crate::world::{client, settings};

/// Where the peer is, for the process that trusts it.
const PEER_URL: &str = "HERMES_TLS_PEER_URL";

/// Answers every request with the same words. Arguments: certificate, key. Says its port when it is ready.
const PEER: &str = r#"
import http.server, ssl, sys

class Peer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for word in ["hello ", "over ", "TLS"]:
            frame = '{"choices": [{"delta": {"content": "%s"}}]}' % word
            self.wfile.write(("data: %s\n\n" % frame).encode())
            self.wfile.flush()
        end = '{"choices": [{"delta": {}, "finish_reason": "stop"}]}'
        self.wfile.write(("data: %s\n\ndata: [DONE]\n\n" % end).encode())

server = http.server.HTTPServer(("127.0.0.1", 0), Peer)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[expect(
    clippy::disallowed_methods,
    reason = "the peer, and this program itself in another environment, are children of the test"
)]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// A running server with a certificate of its own.
struct Peer {
    process: Child,
    url: String,
    directory: tempfile::TempDir,
}

impl Peer {
    #[expect(clippy::print_stderr, reason = "a test that did not run has to say so")]
    fn start() -> Option<Self> {
        for (program, argument) in [("openssl", "version"), ("python3", "--version")] {
            let run = command(program).arg(argument).output();
            if !run.is_ok_and(|output| output.status.success()) {
                eprintln!(
                    "skipped: `{program}` is missing, so TLS WAS NOT TESTED with a real peer"
                );
                return None;
            }
        }
        let directory = tempfile::tempdir().unwrap();
        make_certificate(directory.path());
        let mut process = command("python3")
            .args(["-c", PEER, "certificate.pem", "key.pem"])
            .current_dir(directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        stdout.read_line(&mut port).unwrap();
        Some(Self {
            process,
            url: format!("https://127.0.0.1:{}/v1", port.trim()),
            directory,
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn make_certificate(directory: &Path) {
    let made = command("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .args(["-subj", "/CN=a peer of the tests of Hermes"])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .current_dir(directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
}

fn client_of(url: &str) -> Client {
    let mut settings = settings(ModelChoice {
        provider: Some("custom".into()),
        model: Some("m".into()),
        base_url: Some(url.to_owned()),
        ..ModelChoice::default()
    });
    // Room for a slow start of the peer's.
    settings.deadlines.connect = Some(Duration::from_secs(10));
    settings.deadlines.first_byte = Some(Duration::from_secs(10));
    settings.deadlines.idle = Some(Duration::from_secs(10));
    client(&settings)
}

#[tokio::test]
async fn a_certificate_nobody_vouches_for_is_refused_in_so_many_words() {
    let Some(peer) = Peer::start() else { return };
    let told = tell(&client_of(&peer.url), &[Message::user("hello")]).await;
    let error = told.end.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert!(error.message.contains("is not trusted"), "{error}");
    assert!(error.message.contains("UnknownIssuer"), "{error}");
    assert!(error.hint.contains("SSL_CERT_FILE"), "{}", error.hint);
    // The certificate will be the same the next time.
    assert!(told.notices.is_empty(), "{:?}", told.notices);
}

/// Runs in two processes: roots of trust are read from the environment, which a test must not change for others.
#[tokio::test]
async fn a_trusted_certificate_lets_the_answer_through() {
    #[expect(
        clippy::disallowed_methods,
        reason = "the parent says where the peer is"
    )]
    if let Ok(url) = std::env::var(PEER_URL) {
        let told = tell(&client_of(&url), &[Message::user("hello")]).await;
        told.end.unwrap();
        assert_eq!(told.message.text(), "hello over TLS");
        return;
    }
    let Some(peer) = Peer::start() else { return };
    let test = "tls::a_trusted_certificate_lets_the_answer_through";
    let run = command(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(PEER_URL, &peer.url)
        .env(
            "SSL_CERT_FILE",
            peer.directory.path().join("certificate.pem"),
        )
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}
