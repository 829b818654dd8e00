//! What stands between a mail server and us, and breaks when it is told to.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::MailServer;

/// What goes wrong with the next mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmtpFault {
    /// It is taken, and nobody is told.
    LoseAnswer,
    /// The connection ends before its text.
    LoseCall,
    /// Something else answers.
    Garbage,
    /// Its text breaks off.
    LoseText,
}

pub struct MailWire {
    pub imap_port: u16,
    pub smtp_port: u16,
    state: Arc<State>,
    /// Ends with the wire.
    _listeners: JoinSet<()>,
}

#[derive(Default)]
struct State {
    fault: Mutex<Option<SmtpFault>>,
    /// Mail for this address is refused.
    blocked: Mutex<Option<String>>,
    imap: Mutex<JoinSet<()>>,
    hides_idle: AtomicBool,
    /// Who asks for the text of this mail loses the connection.
    poisoned: AtomicU32,
}

impl State {
    fn take(&self, fault: SmtpFault) -> bool {
        let mut armed = lock(&self.fault);
        let is_it = *armed == Some(fault);
        if is_it {
            *armed = None;
        }
        is_it
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MailWire {
    pub async fn before(server: &MailServer) -> Self {
        let state = Arc::<State>::default();
        let mut listeners = JoinSet::new();
        let (imap, imap_port) = listen().await;
        let (smtp, smtp_port) = listen().await;
        let (imap_server, smtp_server) = (server.imap_port, server.smtp_port);
        let imap_state = Arc::clone(&state);
        listeners.spawn(async move {
            while let Ok((client, _)) = imap.accept().await {
                let hides_idle = imap_state.hides_idle.load(Ordering::Relaxed);
                let state = Arc::clone(&imap_state);
                lock(&imap_state.imap).spawn(pass_imap(client, imap_server, hides_idle, state));
            }
        });
        let smtp_state = Arc::clone(&state);
        listeners.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = smtp.accept().await {
                let state = Arc::clone(&smtp_state);
                open.spawn(async move {
                    // A connection that ends is what this is about.
                    let _ = pass_smtp(client, smtp_server, &state).await;
                });
            }
        });
        Self {
            imap_port,
            smtp_port,
            state,
            _listeners: listeners,
        }
    }

    /// Ends all connections to mailboxes.
    pub fn cut_imap(&self) {
        lock(&self.state.imap).abort_all();
    }

    /// From now on, servers do not say that they can tell of new mail by themselves.
    pub fn hide_idle(&self) {
        self.state.hides_idle.store(true, Ordering::Relaxed);
    }

    /// From now on, this mail cannot be fetched.
    pub fn poison(&self, uid: u32) {
        self.state.poisoned.store(uid, Ordering::Relaxed);
    }

    pub fn fail_next(&self, fault: SmtpFault) {
        *lock(&self.state.fault) = Some(fault);
    }

    pub fn block(&self, address: &str) {
        *lock(&self.state.blocked) = Some(address.to_owned());
    }
}

async fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

async fn pass_imap(client: TcpStream, server: u16, hides_idle: bool, state: Arc<State>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else {
        return;
    };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = from_client.read(&mut buffer).await?;
            let asked = String::from_utf8_lossy(&buffer[..count]);
            let poisoned = format!(" FETCH {} ", state.poisoned.load(Ordering::Relaxed));
            let is_poisoned = asked.contains(&poisoned) && asked.contains("BODY");
            if count == 0 || is_poisoned {
                return Ok::<(), std::io::Error>(());
            }
            to_server.write_all(&buffer[..count]).await?;
        }
    };
    let answering = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = from_server.read(&mut buffer).await?;
            if count == 0 {
                return Ok::<(), std::io::Error>(());
            }
            let answer = &mut buffer[..count];
            if let Some(at) = answer
                .windows(6)
                .position(|word| word == b" IDLE ")
                .filter(|_| hides_idle)
            {
                answer[at + 1] = b'X';
            }
            to_client.write_all(answer).await?;
        }
    };
    // Whoever ends first ends both.
    tokio::select! {
        _ = asking => {}
        _ = answering => {}
    }
}

struct Line {
    lines: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
}

impl Line {
    fn new(stream: TcpStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self {
            lines: BufReader::new(reader),
            writer,
        }
    }

    async fn read(&mut self) -> std::io::Result<Vec<u8>> {
        let mut line = Vec::new();
        match self.lines.read_until(b'\n', &mut line).await? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    }

    /// An answer, over one line or several.
    async fn read_answer(&mut self) -> std::io::Result<Vec<u8>> {
        let mut answer = Vec::new();
        loop {
            let line = self.read().await?;
            answer.extend_from_slice(&line);
            if line.get(3) != Some(&b'-') {
                return Ok(answer);
            }
        }
    }
}

/// SMTP goes to and fro: an answer, a command, an answer.
async fn pass_smtp(client: TcpStream, server: u16, state: &State) -> std::io::Result<()> {
    let mut client = Line::new(client);
    if state.take(SmtpFault::Garbage) {
        client
            .writer
            .write_all(b"<html>It works!</html>\r\n")
            .await?;
        return Ok(());
    }
    let mut server = Line::new(TcpStream::connect(("127.0.0.1", server)).await?);
    client
        .writer
        .write_all(&server.read_answer().await?)
        .await?;
    loop {
        let command = client.read().await?;
        let word = String::from_utf8_lossy(&command).to_uppercase();
        let blocked = lock(&state.blocked)
            .clone()
            .map(|address| address.to_uppercase());
        if blocked.is_some_and(|address| word.starts_with("RCPT") && word.contains(&address)) {
            client
                .writer
                .write_all(b"550 5.7.1 You are not wanted here\r\n")
                .await?;
            continue;
        }
        if word.starts_with("DATA") && state.take(SmtpFault::LoseCall) {
            return Ok(());
        }
        server.writer.write_all(&command).await?;
        let answer = server.read_answer().await?;
        client.writer.write_all(&answer).await?;
        if word.starts_with("DATA")
            && answer.starts_with(b"3")
            && !pass_text(&mut client, &mut server, state).await?
        {
            return Ok(());
        }
    }
}

/// Passes a mail's text on; whether the connection goes on.
async fn pass_text(client: &mut Line, server: &mut Line, state: &State) -> std::io::Result<bool> {
    loop {
        let line = client.read().await?;
        if state.take(SmtpFault::LoseText) {
            return Ok(false);
        }
        server.writer.write_all(&line).await?;
        if line == b".\r\n" {
            break;
        }
    }
    let answer = server.read_answer().await?;
    if state.take(SmtpFault::LoseAnswer) {
        return Ok(false);
    }
    client.writer.write_all(&answer).await?;
    Ok(true)
}
