//! A model provider that follows a script, over real TCP on loopback.
//!
//! The same [`Script`] is spoken on whichever API a request comes in on: OpenAI chat completions
//! and responses, Anthropic messages, Gemini, and Ollama's own. HTTP is written by hand, because
//! the point is to do what no HTTP library would: stop in the middle of a character, fall silent,
//! reset the connection. Start at [`ScriptedServer::start`].
//!
//! Left out on purpose: TLS, HTTP/2, and checking keys; a script refuses if it wants to.

mod answer;
mod choose;
mod conversation;
mod fault;
mod host;
pub(crate) mod http;
mod ledger;
mod models;
pub(crate) mod play;
mod script;
mod wire;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    thread,
};

use tokio::{
    io::BufReader,
    net::{TcpListener, TcpStream},
    runtime::{self, Runtime},
    sync::oneshot,
    task::JoinSet,
};

pub use answer::{Answer, Finish, Part, Refusal, Split, Usage};
pub use fault::{Break, Ending, Faults, Noise, NoiseKind, Point};
pub use host::Options;
pub use http::Request;
pub use script::{Script, Select, Turn, When};

use self::{host::Host, play::After};

/// A running server; dropping it closes every connection.
///
/// It lives on a thread of its own, so tests may block or pause their clock.
pub struct ScriptedServer {
    address: SocketAddr,
    host: Arc<Host>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl ScriptedServer {
    /// Serves a script on a free port.
    ///
    /// # Panics
    /// If loopback gives no port.
    pub async fn start(script: Script) -> Self {
        let started = Self::start_with(script, &Options::default()).await;
        started.expect("a scripted server needs a free port on loopback")
    }

    /// Serves a script as `options` say.
    pub async fn start_with(script: Script, options: &Options) -> io::Result<Self> {
        let host = Arc::new(Host::new(script, options)?);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let (started, start) = oneshot::channel();
        let thread = thread::spawn({
            let host = Arc::clone(&host);
            let port = options.port;
            move || run(&runtime, host, port, started, stopped)
        });
        let address = start.await.map_err(io::Error::other)??;
        Ok(Self {
            address,
            host,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the base address of the OpenAI-compatible APIs, such as `http://127.0.0.1:4000/v1`.
    pub fn url(&self) -> String {
        format!("{}/v1", self.root_url())
    }

    /// Returns the address without a path, which is where Ollama and Gemini begin.
    pub fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns every request so far, in the order they arrived.
    pub fn requests(&self) -> Vec<Request> {
        self.host.requests()
    }

    /// Closes every connection and the port.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the server has been printed by its thread; do not panic twice.
            thread.join().ok();
        }
    }
}

/// Runs the server on this thread until `stopped` resolves, which dropping its sender does.
fn run(
    runtime: &Runtime,
    host: Arc<Host>,
    port: u16,
    started: oneshot::Sender<io::Result<SocketAddr>>,
    stopped: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let listener = match bound.and_then(|bound| Ok((bound.local_addr()?, bound))) {
            Ok((address, listener)) => {
                started.send(Ok(address)).ok();
                listener
            }
            Err(error) => {
                started.send(Err(error)).ok();
                return;
            }
        };
        tokio::select! {
            () = accept(listener, host) => {}
            _ = stopped => {}
        }
    });
}

/// Accepts connections for ever; dropping the future drops them all.
async fn accept(listener: TcpListener, host: Arc<Host>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, Arc::clone(&host)));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection. A client that leaves early is part of the game, so errors end it quietly.
async fn serve(stream: TcpStream, host: Arc<Host>) {
    stream.set_nodelay(true).ok();
    let mut connection = BufReader::new(stream);
    if let Ok(After::Reset) = host.converse(&mut connection).await {
        connection.get_ref().set_zero_linger().ok();
    }
}
