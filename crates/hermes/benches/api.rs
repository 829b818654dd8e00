//! What the gateway takes over HTTP: turns of 64 clients against a model that answers at once, with every commit on disk.
//! Prints one JSON object per figure; `scripts/bench` reads them. `--quick` measures for a shorter time.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, reason = "its figures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark runs the program")]

#[path = "support/stage.rs"]
#[expect(dead_code, reason = "the benchmark of chats uses the rest")]
mod stage;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stage::{Gateway, KEY, Model, read_message, tell, write_settings};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const CLIENTS: usize = 64;
const TURNS_MIN: f64 = 1_500.0;
const P99_MS_MAX: f64 = 100.0;

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let time = Duration::from_secs(if is_quick { 3 } else { 10 });
    let home = tempfile::tempdir().unwrap();
    let model = Model::serve().await;
    write_settings(home.path(), &model.url, "");
    let gateway = Gateway::start(home.path());
    for (what, is_named) in [
        ("a conversation each time", false),
        ("64 conversations", true),
    ] {
        let (turns, p99) = load(&gateway.address, time, is_named).await;
        tell(
            &format!("API at 64 clients, {what}, per turn"),
            1_000.0 / turns,
            "ms",
            1_000.0 / TURNS_MIN,
        );
        let turns = json!({"what": format!("API at 64 clients, {what}"), "value": turns, "unit": "turns/s", "budget": null});
        println!("{turns}");
        tell(
            &format!("API at 64 clients, {what}, p99"),
            p99,
            "ms",
            P99_MS_MAX,
        );
    }
    let rss = json!({"what": "gateway after the load", "value": gateway.resident_mb(), "unit": "MB", "budget": null});
    println!("{rss}");
}

/// Asks from all clients at a time. Returns turns per second, and the time that one in a hundred takes longer than.
async fn load(address: &str, time: Duration, is_named: bool) -> (f64, f64) {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (address, is_over) = (address.to_owned(), Arc::clone(&is_over));
        clients.spawn(async move {
            let named = is_named.then(|| format!("x-hermes-session-id: bench-{number}\r\n"));
            client(&address, &named.unwrap_or_default(), &is_over).await
        });
    }
    let began = Instant::now();
    tokio::time::sleep(time).await;
    is_over.store(true, Ordering::Relaxed);
    let mut times: Vec<Duration> = clients.join_all().await.into_iter().flatten().collect();
    let turns = times.len() as f64 / began.elapsed().as_secs_f64();
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100].as_secs_f64() * 1_000.0;
    (turns, p99)
}

async fn client(address: &str, headers: &str, is_over: &AtomicBool) -> Vec<Duration> {
    let mut stream = BufReader::new(TcpStream::connect(address).await.unwrap());
    stream.get_ref().set_nodelay(true).unwrap();
    let body = json!({"model": "hermes-agent", "messages": [{"role": "user", "content": "hello"}]})
        .to_string();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut times = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        stream
            .get_mut()
            .write_all(request.as_bytes())
            .await
            .unwrap();
        let (head, body) = read_message(&mut stream).await.unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200"),
            "{head}{}",
            String::from_utf8_lossy(&body)
        );
        let answer: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(answer["choices"][0]["message"]["content"], "ok");
        times.push(began.elapsed());
    }
    times
}
