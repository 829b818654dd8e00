//! An MCP server that fails on command, to prove what a client does about it.
//!
//! [`FaultyMcp`] speaks streamable HTTP, and beside it the older HTTP+SSE, over real TCP on loopback;
//! the program `hermes-faulty-mcp` speaks the same, or stdio (see [`StdioMcp`]). It is a strict peer while nothing fails: it checks
//! headers, keeps sessions, and counts in a ledger how often `append`, which must not be repeated,
//! was executed. A [`Fault`] strikes the next request, or whatever its [`Rule`] says.
//!
//! With [`Settings::has_asking_tools`] its tools also ask the client for things, in the way of its era.
//!
//! Left out on purpose: TLS and HTTP/2.

mod admit;
mod ask;
mod bomb;
mod catalogue;
mod control;
mod fault;
mod host;
mod ledger;
mod listen;
mod peer;
mod program;
mod relay;
mod reply;
mod rpc;
mod rule;
mod seen;
mod settings;
mod sse;
mod stdio;
mod stdio_fault;
mod stream;
mod subscription;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::Arc,
    thread,
};

use serde_json::Value;

pub use fault::{Endless, Fault, OddId, SessionLoss, WrongId};
pub use program::run as run_program;
pub use relay::Relay;
pub use rule::{On, Rule, START};
pub use seen::Seen;
pub use settings::{Answers, Era, Settings};
pub use stdio_fault::{StdioFault, StdioMcp};

use crate::oauth::AuthServer;

use self::{host::Host, ledger::Ledger, listen::Orders, peer::Peer};

/// A running server; dropping it closes every connection.
///
/// It lives on a thread of its own, so tests may block or pause their clock.
pub struct FaultyMcp {
    address: SocketAddr,
    host: Arc<Host>,
    orders: Orders,
    thread: Option<thread::JoinHandle<()>>,
}

/// How to serve.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port on loopback; 0 takes a free one.
    pub port: u16,
    /// A file that gets one line per execution of `append`.
    pub ledger: Option<PathBuf>,
    pub settings: Settings,
}

impl FaultyMcp {
    /// Serves on a free port.
    ///
    /// # Panics
    /// If loopback gives no port.
    pub async fn start() -> Self {
        Self::start_with(&Options::default()).expect("a faulty MCP server needs a free port")
    }

    /// Serves as `options` say.
    pub fn start_with(options: &Options) -> io::Result<Self> {
        let ledger = options.ledger.as_deref().map(Ledger::open).transpose()?;
        let peer = Peer::new(options.settings.clone(), ledger.unwrap_or_default());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let address = listener.local_addr()?;
        let host = Arc::new(Host::new(peer, address.port()));
        let (orders, thread) = listen::spawn(Arc::clone(&host), listener)?;
        Ok(Self {
            address,
            host,
            orders,
            thread: Some(thread),
        })
    }

    /// Returns the address of the MCP endpoint, such as `http://127.0.0.1:4000/mcp`.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns where the older HTTP+SSE transport has its stream, such as `http://127.0.0.1:4000/sse`.
    pub fn sse_url(&self) -> String {
        format!("http://{}/sse", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Makes the next request fail, or those that the rule names.
    pub fn fail(&self, rule: impl Into<Rule<Fault>>) {
        self.host.fail(rule.into());
    }

    /// Makes the next `times` requests fail.
    pub fn fail_times(&self, times: usize, fault: Fault) {
        self.fail(Rule::once(fault).times(times));
    }

    /// Takes back every fault that has not struck yet.
    pub fn clear(&self) {
        self.host.clear();
    }

    /// Takes only requests with a token of this authorisation server from now on.
    pub fn protect(&self, auth: &AuthServer) {
        let gate = auth.shared();
        gate.protects(&self.url());
        self.host.set_gate(gate);
    }

    /// Changes what kind of server it is. Tells nobody: see [`Self::notify_list_changed`].
    pub fn change(&self, change: impl FnOnce(&mut Settings)) {
        self.host.peer.change(change);
    }

    /// Returns how often `append` was executed with this word.
    pub fn executions(&self, word: &str) -> usize {
        self.host.peer.executions(word)
    }

    /// Returns every message so far, in the order they arrived, those that failed too.
    pub fn requests(&self) -> Vec<Seen> {
        self.host.seen()
    }

    /// Returns how many messages of this method arrived.
    pub fn count(&self, method: &str) -> usize {
        let seen = self.host.seen();
        seen.iter().filter(|seen| seen.method == method).count()
    }

    /// Returns the request ids that clients have cancelled.
    pub fn cancelled(&self) -> Vec<Value> {
        self.host.peer.cancelled()
    }

    pub fn session_count(&self) -> usize {
        self.host.session_count()
    }

    /// Forgets every session, as a restart does. The ledger is kept.
    pub fn drop_sessions(&self) {
        self.host.drop_sessions();
    }

    /// Tells every open GET stream and every subscription so many times that the tools have changed.
    ///
    /// Returns how many streams that are.
    pub fn notify_list_changed(&self, times: usize) -> usize {
        self.host.notify_list_changed(times)
    }

    /// Ends every subscription of the modern era, as a server does that is about to restart.
    pub fn end_subscriptions(&self) {
        self.host.end_subscriptions();
    }

    /// Sends a notification on every open GET stream. Returns how many streams that are.
    pub fn notify(&self, method: &str, params: &Value) -> usize {
        self.host.notify(&rpc::notification(method, params), 1)
    }

    /// Refuses connections and drops those that are open. Sessions are kept.
    pub fn stop_listening(&self) {
        self.orders.go_down();
    }

    /// Listens again on the same port.
    ///
    /// # Panics
    /// If someone else has taken the port.
    pub fn listen_again(&self) {
        self.orders
            .go_up()
            .expect("the port is free, as it was ours");
    }
}

impl Drop for FaultyMcp {
    fn drop(&mut self) {
        self.orders.quit();
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been printed by its thread; do not panic twice.
            thread.join().ok();
        }
    }
}
