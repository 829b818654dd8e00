//! TLS and proxies, over real sockets: whom we trust, who we are, and which way requests take.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hermes_mcp::{ServerState, ServerStatus};
use hermes_testkit::mcp::FaultyMcp;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::client::Client;

/// The name that the test server's certificate is for, besides `localhost`.
const NAME: &str = "mcp.example";

/// An authority, and a folder with the files it makes.
pub(crate) struct Authority {
    pub(crate) issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes the authority's own certificate.
    fn file(&self) -> PathBuf {
        self.write("ca.pem", &self.issuer.pem())
    }

    /// Writes a client's certificate and its key.
    fn client_files(&self) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let certificate = self.write("client.pem", &certificate.pem());
        (certificate, self.write("client.key", &key.serialize_pem()))
    }

    pub(crate) fn acceptor(&self, names: &[&str], clients: Option<&Self>) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.issuer.der().clone()).unwrap();
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = config.with_single_cert(vec![certificate.der().clone()], key);
        TlsAcceptor::from(Arc::new(config.unwrap()))
    }
}

/// A server that speaks TLS, in front of one that does not.
pub(crate) struct TlsFront {
    address: SocketAddr,
    pub(crate) server: FaultyMcp,
    _tasks: JoinSet<()>,
}

impl TlsFront {
    pub(crate) async fn start(acceptor: TlsAcceptor) -> Self {
        let server = FaultyMcp::start().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, behind) = (listener.local_addr().unwrap(), server.address());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    let mut inside = TcpStream::connect(behind).await.unwrap();
                    if let Ok(mut outside) = acceptor.accept(stream).await {
                        let _ = copy_bidirectional(&mut outside, &mut inside).await;
                    }
                });
            }
        });
        Self {
            address,
            server,
            _tasks: tasks,
        }
    }

    pub(crate) fn section(&self, more: Value) -> Value {
        let url = format!("https://localhost:{}/mcp", self.address.port());
        let mut section = json!({ "url": url, "keepalive_interval": 0 });
        section
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        section
    }
}

async fn connects(section: &Value) {
    let client = Client::new(section);
    client.until_ready().await;
    client.append("word").await.unwrap();
}

/// Returns why a server is misconfigured.
async fn misconfigured(section: &Value) -> String {
    let client = Client::new(section);
    let is_so = |status: &ServerStatus| matches!(status.state, ServerState::Misconfigured { .. });
    client.until("misconfigured", is_so).await;
    client.status().last_error.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_our_own_authority_is_trusted_when_the_settings_name_it() {
    let authority = Authority::new();
    let front = TlsFront::start(authority.acceptor(&["localhost"], None)).await;
    connects(&front.section(json!({ "ssl_verify": authority.file() }))).await;
    assert_eq!(front.server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_server_is_refused_and_the_error_says_what_to_set() {
    let (authority, other) = (Authority::new(), Authority::new());
    let front = TlsFront::start(authority.acceptor(&["localhost"], None)).await;
    for section in [json!({}), json!({ "ssl_verify": other.file() })] {
        let error = misconfigured(&front.section(section)).await;
        assert!(error.contains("set `ssl_verify`"), "{error}");
    }
    assert!(front.server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let front = TlsFront::start(authority.acceptor(&[NAME], None)).await;
    let error = misconfigured(&front.section(json!({ "ssl_verify": authority.file() }))).await;
    assert!(error.contains("for another name"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_can_be_switched_off() {
    let authority = Authority::new();
    let front = TlsFront::start(authority.acceptor(&["localhost"], None)).await;
    connects(&front.section(json!({ "ssl_verify": false }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_used_is_named() {
    let authority = Authority::new();
    let front = TlsFront::start(authority.acceptor(&["localhost"], None)).await;
    let empty = authority.write("empty.pem", "not a certificate");
    for (section, key) in [
        (json!({ "ssl_verify": "/nowhere/ca.pem" }), "ssl_verify"),
        (json!({ "ssl_verify": empty }), "ssl_verify"),
        (json!({ "client_cert": "/nowhere/me.pem" }), "client_cert"),
        (json!({ "client_cert": empty }), "client_cert"),
    ] {
        let error = misconfigured(&front.section(section)).await;
        assert!(error.contains(key) && error.contains(".pem"), "{error}");
    }
}

fn joined(folder: &Path, (certificate, key): &(PathBuf, PathBuf)) -> PathBuf {
    let read = |path| std::fs::read_to_string(path).unwrap();
    let path = folder.join("both.pem");
    std::fs::write(&path, read(certificate) + &read(key)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_is_shown_as_a_pair_or_as_one_file() {
    let authority = Authority::new();
    let front = TlsFront::start(authority.acceptor(&["localhost"], Some(&authority))).await;
    let (ca, pair) = (authority.file(), authority.client_files());
    let both = joined(authority.folder.path(), &pair);
    for identity in [
        json!({ "ssl_verify": ca, "client_cert": pair.0, "client_key": pair.1 }),
        json!({ "ssl_verify": ca, "client_cert": [pair.0, pair.1] }),
        json!({ "ssl_verify": ca, "client_cert": both }),
    ] {
        connects(&front.section(identity)).await;
    }
    assert_eq!(front.server.executions("word"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_or_wrong_client_certificate_is_told_from_other_trouble() {
    let (authority, other) = (Authority::new(), Authority::new());
    let front = TlsFront::start(authority.acceptor(&["localhost"], Some(&authority))).await;
    let ca = authority.file();
    let error = misconfigured(&front.section(json!({ "ssl_verify": ca }))).await;
    assert!(error.contains("set `client_cert`"), "{error}");
    let (certificate, key) = other.client_files();
    let wrong = json!({ "ssl_verify": ca, "client_cert": [certificate, key] });
    let error = misconfigured(&front.section(wrong)).await;
    assert!(error.contains("client_cert"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let authority = Authority::new();
    let front = TlsFront::start(authority.acceptor(&["localhost"], None)).await;
    let file = authority.write("renewed.pem", &Authority::new().issuer.pem());
    let client = Client::new(&front.section(json!({ "ssl_verify": file })));
    assert!(client.error().await.contains("ssl_verify"));
    authority.write("renewed.pem", &authority.issuer.pem());
    client.mcp.reconnect("test").await.unwrap();
    client.until_ready().await;
}

/// A proxy that lets everything through to one address, whatever it was asked for.
async fn proxy(target: SocketAddr, asked: Arc<AtomicUsize>, tasks: &mut JoinSet<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let asked = Arc::clone(&asked);
            connections.spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                assert!(head.starts_with(format!("CONNECT {NAME}:443").as_bytes()));
                asked.fetch_add(1, Ordering::SeqCst);
                let mut inside = TcpStream::connect(target).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut inside).await;
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_names_the_proxy_and_its_exceptions() {
    let authority = Authority::new();
    let front = TlsFront::start(authority.acceptor(&[NAME], None)).await;
    let (asked, mut tasks) = (Arc::new(AtomicUsize::new(0)), JoinSet::new());
    let proxy = proxy(front.address, Arc::clone(&asked), &mut tasks).await;
    let section = json!({
        "url": format!("https://{NAME}/mcp"), "ssl_verify": authority.file(), "keepalive_interval": 0,
    });
    let proxy = format!("http://{proxy}");
    let sections = [("test", &section)];
    let client = Client::in_environment(&sections, &[("HTTPS_PROXY", &proxy)]);
    client.until_ready().await;
    client.append("word").await.unwrap();
    let asked_before = asked.load(Ordering::SeqCst);
    assert!(asked_before > 0);
    let around = [
        ("HTTPS_PROXY", proxy.as_str()),
        ("NO_PROXY", "example,other.test"),
    ];
    let client = Client::in_environment(&sections, &around);
    client.error().await;
    assert_eq!(
        asked.load(Ordering::SeqCst),
        asked_before,
        "not through the proxy"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_machine_is_reached_without_the_proxy() {
    let server = FaultyMcp::start().await;
    let section = json!({ "url": server.url(), "keepalive_interval": 0 });
    let nowhere = [
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("ALL_PROXY", "http://127.0.0.1:9"),
    ];
    let client = Client::in_environment(&[("test", &section)], &nowhere);
    client.until_ready().await;
}
