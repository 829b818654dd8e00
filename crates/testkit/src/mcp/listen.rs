//! The thread that listens, stops listening, and listens again on the same port.

use std::{
    io,
    net::{self, SocketAddr},
    sync::{Arc, mpsc as blocking},
    thread,
    time::Duration,
};

use tokio::{
    io::BufReader,
    net::{TcpListener, TcpStream},
    runtime,
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{control, host::Host, reply::Reply, seen::Seen, sse};
use crate::server::{
    http::{self, Connection, Request},
    play::After,
};

/// Tells the listening thread what to do.
#[derive(Clone)]
pub(crate) struct Orders(mpsc::UnboundedSender<Order>);

enum Order {
    /// Stops listening and drops every connection; for some time, or until told otherwise.
    Down(Option<Duration>, blocking::Sender<()>),
    Up(blocking::Sender<io::Result<()>>),
    Quit,
}

impl Orders {
    /// Stops listening; returns when no connection is left.
    pub(crate) fn go_down(&self) {
        let (done, wait) = blocking::channel();
        self.send(Order::Down(None, done));
        wait.recv().expect("the server's thread has panicked");
    }

    /// Stops listening for some time. Does not wait, as the caller may be one of the connections.
    pub(crate) fn go_down_for(&self, time: Duration) {
        let (done, _nobody) = blocking::channel();
        self.send(Order::Down(Some(time), done));
    }

    /// Listens again on the same port; returns when it does.
    pub(crate) fn go_up(&self) -> io::Result<()> {
        let (done, wait) = blocking::channel();
        self.send(Order::Up(done));
        wait.recv().map_err(io::Error::other)?
    }

    pub(crate) fn quit(&self) {
        self.send(Order::Quit);
    }

    fn send(&self, order: Order) {
        // Nobody takes orders after `Quit`, or after a panic that its thread has printed.
        self.0.send(order).ok();
    }
}

/// Starts the thread, with a runtime of its own so that tests may block or pause their clock.
pub(crate) fn spawn(
    host: Arc<Host>,
    listener: net::TcpListener,
) -> io::Result<(Orders, thread::JoinHandle<()>)> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let address = listener.local_addr()?;
    let listener = {
        let _inside = runtime.enter();
        registered(listener)?
    };
    let (sender, receiver) = mpsc::unbounded_channel();
    let orders = Orders(sender);
    let worker = Worker {
        host,
        address,
        orders: orders.clone(),
        listener: Some(listener),
        up_again: None,
        connections: JoinSet::new(),
    };
    let thread = thread::spawn(move || runtime.block_on(worker.run(receiver)));
    Ok((orders, thread))
}

struct Worker {
    host: Arc<Host>,
    address: SocketAddr,
    orders: Orders,
    listener: Option<TcpListener>,
    /// When to listen again by itself.
    up_again: Option<Instant>,
    connections: JoinSet<()>,
}

impl Worker {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                Ok(stream) = accept(self.listener.as_ref()) => {
                    let (host, orders) = (Arc::clone(&self.host), self.orders.clone());
                    self.connections.spawn(serve(stream, host, orders));
                }
                Some(_) = self.connections.join_next() => {}
                () = until(self.up_again) => self.go_up().expect("the port is still free"),
                order = orders.recv() => match order {
                    Some(Order::Down(time, done)) => {
                        self.go_down(time).await;
                        done.send(()).ok();
                    }
                    Some(Order::Up(done)) => {
                        done.send(self.go_up()).ok();
                    }
                    Some(Order::Quit) | None => return,
                },
            }
        }
    }

    async fn go_down(&mut self, time: Option<Duration>) {
        self.listener = None;
        self.up_again = time.map(|time| Instant::now() + time);
        self.connections.shutdown().await;
    }

    fn go_up(&mut self) -> io::Result<()> {
        self.up_again = None;
        if self.listener.is_none() {
            self.listener = Some(registered(net::TcpListener::bind(self.address)?)?);
        }
        Ok(())
    }
}

fn registered(listener: net::TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Returns the next connection; never, while nobody listens.
async fn accept(listener: Option<&TcpListener>) -> io::Result<TcpStream> {
    match listener {
        Some(listener) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Serves one connection. A client that leaves early is part of the game, so errors end it quietly.
async fn serve(stream: TcpStream, host: Arc<Host>, orders: Orders) {
    stream.set_nodelay(true).ok();
    let mut connection = BufReader::new(stream);
    if let Ok(After::Reset) = converse(&mut connection, &host, &orders).await {
        connection.get_ref().set_zero_linger().ok();
    }
}

async fn converse(connection: &mut Connection, host: &Host, orders: &Orders) -> io::Result<After> {
    while let Some(request) = http::read_request(connection).await? {
        let after = respond(connection, host, orders, &request).await?;
        if after != After::KeepAlive || request.wants_close() {
            return Ok(after);
        }
    }
    Ok(After::Close)
}

async fn respond(
    connection: &mut Connection,
    host: &Host,
    orders: &Orders,
    request: &Request,
) -> io::Result<After> {
    match request.route() {
        "/control" => return control::serve(host, orders, connection, request).await,
        "/mcp" | "/mcp/" => host.record(Seen::of(request)),
        sse::STREAM | sse::MESSAGES => {
            host.record(Seen::of(request));
            return host.serve_sse(connection, request).await;
        }
        route => {
            let text = format!("no such route: {route}");
            return Reply::text(404, &text).send(connection).await;
        }
    }
    match request.method.as_str() {
        "POST" => host.post(connection, request).await,
        "GET" => host.get(connection, request).await,
        "DELETE" => host.delete(connection, request).await,
        _ => {
            Reply::text(405, "Method Not Allowed")
                .send(connection)
                .await
        }
    }
}
