//! The road between a client and a server: the faults that no server makes, because they happen on the way.

use std::{
    io,
    net::{self, SocketAddr},
    thread,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime,
    sync::{oneshot, watch},
    task::JoinSet,
};

/// Forwards TCP connections as long as nothing happens to them; dropping it ends them all.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    road: watch::Sender<Road>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What becomes of connections, which are counted as they come.
#[derive(Debug, Clone, Copy, Default)]
struct Road {
    opened: usize,
    /// Those before this one were reset.
    reset_before: usize,
    /// Those before this one carry nothing any more, and nobody is told.
    lost_before: usize,
    /// No connection carries anything.
    is_blocked: bool,
}

impl Road {
    fn swallows(&self, connection: usize) -> bool {
        self.is_blocked || connection < self.lost_before
    }
}

impl Relay {
    /// Forwards from `from`, whose port may be 0 for a free one, to a server.
    pub fn start(from: SocketAddr, to: SocketAddr) -> io::Result<Self> {
        let listener = net::TcpListener::bind(from)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let road = watch::Sender::new(Road::default());
        let (stop, stopped) = oneshot::channel();
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = thread::spawn({
            let road = road.clone();
            move || {
                runtime.block_on(async {
                    tokio::select! {
                        result = forward_all(listener, to, road) => result.expect("a listener that works"),
                        _ = stopped => {}
                    }
                });
            }
        });
        Ok(Self {
            address,
            road,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the MCP endpoint behind it.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Resets every connection there is, as a firewall does that has lost track of them.
    pub fn reset_connections(&self) {
        self.road
            .send_modify(|road| road.reset_before = road.opened);
    }

    /// Drops whatever the present connections carry, in silence. New ones work.
    pub fn lose_connections(&self) {
        self.road.send_modify(|road| road.lost_before = road.opened);
    }

    /// Takes connections and carries nothing, as a proxy does whose server is dead.
    pub fn block(&self) {
        self.road.send_modify(|road| road.is_blocked = true);
    }

    /// Carries new connections again. What was swallowed does not come back, and neither do its connections.
    pub fn unblock(&self) {
        self.road.send_modify(|road| {
            road.is_blocked = false;
            road.lost_before = road.opened;
        });
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been printed by the thread; do not panic twice.
            thread.join().ok();
        }
    }
}

async fn forward_all(
    listener: net::TcpListener,
    to: SocketAddr,
    road: watch::Sender<Road>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let number = road.borrow().opened;
                road.send_modify(|road| road.opened += 1);
                connections.spawn(forward(accepted?.0, to, number, road.subscribe()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Forwards one connection. That a side leaves is part of the game, so errors end it quietly.
async fn forward(
    mut client: TcpStream,
    to: SocketAddr,
    number: usize,
    mut road: watch::Receiver<Road>,
) -> io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let swallows = |road: &watch::Receiver<Road>| road.borrow().swallows(number);
    let (mut up, mut down) = ([0; 16 * 1024], [0; 16 * 1024]);
    while number >= road.borrow().reset_before {
        tokio::select! {
            changed = road.changed() => changed.map_err(io::Error::other)?,
            count = client.read(&mut up) => match (count?, swallows(&road)) {
                (0, _) => return Ok(()),
                (_, true) => {}
                (count, false) => server.write_all(&up[..count]).await?,
            },
            count = server.read(&mut down) => match (count?, swallows(&road)) {
                // The end is a message too.
                (0, true) => return park(client).await,
                (0, false) => return Ok(()),
                (_, true) => {}
                (count, false) => client.write_all(&down[..count]).await?,
            },
        }
    }
    client.set_zero_linger()?;
    server.set_zero_linger()
}

/// Keeps a connection that leads nowhere until the client leaves it.
async fn park(mut client: TcpStream) -> io::Result<()> {
    let mut ignored = [0; 1024];
    while client.read(&mut ignored).await? > 0 {}
    Ok(())
}
