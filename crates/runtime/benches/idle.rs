//! What an idle conversation costs, beyond what all of them share. Prints one figure per line, as `scripts/bench` reads
//! them.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it found")]
#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run says so by ending"
)]

#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "tests use the rest")]
mod support;

use std::fs;

use hermes_core::Sessions as _;
use serde_json::json;
use support::{Process, options};

const SESSIONS: usize = 1_000;
/// Enough for everything that is shared to be there.
const FIRST: usize = 50;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let bytes = runtime.block_on(idle_bytes());
    let kilobytes = bytes as f64 / 1_000.0;
    let what = "memory of one idle session";
    println!(
        "{}",
        json!({ "what": what, "value": kilobytes, "unit": "KB", "budget": 30 })
    );
}

async fn idle_bytes() -> usize {
    let process = Process::start().await;
    let mut sessions = Vec::new();
    for _ in 0..FIRST {
        sessions.push(process.runtime.open(options("bench")).await.unwrap());
    }
    let before = resident_bytes();
    for _ in 0..SESSIONS {
        sessions.push(process.runtime.open(options("bench")).await.unwrap());
    }
    resident_bytes().saturating_sub(before) / SESSIONS
}

fn resident_bytes() -> usize {
    const PAGE: usize = 4_096;
    let told = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = told.split_whitespace().nth(1).unwrap();
    pages.parse::<usize>().unwrap() * PAGE
}
