//! What benchmarks of the gateway share: the process, its settings, a model that answers at once, and figures as
//! `scripts/bench` reads them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(super) const KEY: &str = "bench-key-0123456789";
/// A message with this word is answered in pieces, for a while.
pub(super) const SLOWLY: &str = "slowly";
/// A message with this word is never answered.
pub(super) const NEVER: &str = "never";

/// Pieces of a slow answer, and what lies between them: long enough for a hundred to be under way together.
const PIECES: usize = 100;
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn tell(what: &str, value: f64, unit: &str, budget: f64) {
    println!(
        "{}",
        json!({"what": what, "value": value, "unit": unit, "budget": budget})
    );
}

pub(super) fn write_settings(home: &Path, model: &str, more: &str) {
    let settings = format!(
        "model:\n  provider: custom\n  default: m\n  base_url: {model}\n  api_key: sk-bench-0123456789abcdef\n\
         learning: {{enabled: false}}\nauxiliary:\n  title_generation: {{enabled: false}}\n{more}\
         platforms:\n  api_server: {{enabled: true, key: {KEY}, port: 0, max_concurrent_runs: 128}}\n"
    );
    std::fs::write(home.join("config.yaml"), settings).unwrap();
}

/// A gateway of its own home. Dropping it kills it.
pub(super) struct Gateway {
    child: Child,
    pub(super) address: String,
    pub(super) ready_ms: f64,
}

impl Gateway {
    /// Starts it and waits for the line that says it is ready.
    pub(super) fn start(home: &Path) -> Self {
        let began = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_hermes"))
            .args(["gateway", "run"])
            .env_clear()
            .env("HERMES_HOME", home)
            .env("HOME", home)
            .env("PATH", "/usr/bin:/bin")
            .current_dir(home)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
        let ready_ms = began.elapsed().as_secs_f64() * 1_000.0;
        let url = line.split("http://").nth(1);
        let url = url.unwrap_or_else(|| panic!("{line}"));
        let address = url.split([',', '\n', ' ']).next().unwrap().to_owned();
        Self {
            child,
            address,
            ready_ms,
        }
    }

    pub(super) fn resident_mb(&self) -> f64 {
        let status = self.proc("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
        kilobytes.parse::<f64>().unwrap() / 1_000.0
    }

    /// How much of one processor it used meanwhile, in per cent.
    pub(super) async fn processor_percent(&self, time: Duration) -> f64 {
        let began = (Instant::now(), self.ticks());
        tokio::time::sleep(time).await;
        let seconds = (self.ticks() - began.1) / TICKS_PER_SECOND;
        seconds / began.0.elapsed().as_secs_f64() * 100.0
    }

    /// What it used in user and in kernel mode.
    fn ticks(&self) -> f64 {
        let stat = self.proc("stat");
        let behind_name = stat.rsplit_once(") ").unwrap().1;
        let fields: Vec<&str> = behind_name.split(' ').collect();
        fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }
}

/// What Linux counts processor time in, on every machine we know.
const TICKS_PER_SECOND: f64 = 100.0;

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the head of a request or an answer, and a body of a stated length.
pub(super) async fn read_message(stream: &mut BufReader<TcpStream>) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    loop {
        let start = head.len();
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
        if head[start..].trim().is_empty() {
            break;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

/// A model that says one word at once, or what [`SLOWLY`] and [`NEVER`] say.
pub(super) struct Model {
    pub(super) url: String,
    /// When a question came in.
    pub(super) asked: mpsc::UnboundedReceiver<Instant>,
}

impl Model {
    pub(super) async fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tell, asked) = mpsc::unbounded_channel();
        let tell = Arc::new(tell);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::spawn(answer_all(stream, Arc::clone(&tell)));
            }
        });
        Self { url, asked }
    }
}

async fn answer_all(stream: TcpStream, asked: Arc<mpsc::UnboundedSender<Instant>>) {
    let mut stream = BufReader::new(stream);
    while let Some((head, body)) = read_message(&mut stream).await {
        let _ = asked.send(Instant::now());
        let last = String::from_utf8_lossy(&body);
        let last = last
            .rsplit("\"role\":\"user\"")
            .next()
            .unwrap_or_default()
            .to_owned();
        let stream = stream.get_mut();
        let sent = if head.starts_with("GET") {
            let none = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(none.as_bytes()).await
        } else if last.contains(NEVER) {
            std::future::pending().await
        } else if last.contains(SLOWLY) {
            answer_slowly(stream).await
        } else {
            answer_at_once(stream).await
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn answer_at_once(stream: &mut TcpStream) -> std::io::Result<()> {
    let body = format!("{}{}", piece("ok"), end());
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await
}

async fn answer_slowly(stream: &mut TcpStream) -> std::io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    for _ in 0..PIECES {
        stream
            .write_all(piece("some more words ").as_bytes())
            .await?;
        tokio::time::sleep(PAUSE).await;
    }
    stream.write_all(end().as_bytes()).await?;
    stream.shutdown().await
}

fn piece(words: &str) -> String {
    let delta = json!({"role": "assistant", "content": words});
    chunk(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

fn end() -> String {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11});
    let last =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage});
    format!("{}data: [DONE]\n\n", chunk(&last))
}

fn chunk(content: &serde_json::Value) -> String {
    let mut whole =
        json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"});
    let fields = content.as_object().unwrap().clone();
    whole.as_object_mut().unwrap().extend(fields);
    format!("data: {whole}\n\n")
}
