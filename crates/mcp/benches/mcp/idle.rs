//! What twenty connected servers cost while nobody calls them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::{figure, program, start};

const SERVERS: usize = 20;

/// Clock ticks per second, as the kernel counts a process's time on every common machine.
const TICKS: f64 = 100.0;

pub(crate) async fn twenty_servers(time: Duration) {
    // In a process of its own, so that its cost is not ours.
    let (mut server, url) = serve();
    let before = rss_mb();
    let section = json!({ "url": url });
    let names = (0..SERVERS).map(|number| format!("s{number}"));
    let sections: Vec<_> = names.map(|name| (name, section.clone())).collect();
    let mcp = start(&sections).await;
    let cpu = cpu_seconds();
    tokio::time::sleep(time).await;
    let share = (cpu_seconds() - cpu) / time.as_secs_f64() * 100.0;
    let cost = rss_mb() - before;
    mcp.shutdown().await;
    server.kill().unwrap();
    server.wait().unwrap();
    figure("MCP: memory of 20 idle servers", cost, "MB", None);
    figure("MCP: CPU of 20 idle servers", share, "%", Some(0.1));
}

#[expect(clippy::disallowed_methods, reason = "a server that is not ours")]
fn serve() -> (Child, String) {
    let mut child = Command::new(program())
        .args(["--port", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let url = line.split_whitespace().last().unwrap().to_owned();
    (child, url)
}

fn rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    kilobytes.unwrap().parse::<f64>().unwrap() / 1024.0
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS
}
