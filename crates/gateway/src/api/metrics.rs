//! Numbers for whoever watches over the gateway, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hermes_core::{SurfaceCounts, Timestamp, TurnCounts, TurnEnd};
use http::header::CONTENT_TYPE;

use super::Api;
use super::outcome::Outcome;
use crate::report::{PlatformState, QueueReport, Report};

#[derive(Default)]
pub(crate) struct Metrics {
    /// By the first digit of the status.
    requests: [AtomicU64; 6],
    turns_finished: AtomicU64,
    turns_interrupted: AtomicU64,
    turns_failed: AtomicU64,
    calls: AtomicU64,
    tokens_in: AtomicU64,
    tokens_out: AtomicU64,
}

impl Metrics {
    pub(crate) fn count(&self, outcome: &Outcome) {
        let turns = match outcome.end {
            TurnEnd::Finished => &self.turns_finished,
            TurnEnd::Interrupted => &self.turns_interrupted,
            _ => &self.turns_failed,
        };
        add(turns, 1);
        add(&self.calls, outcome.calls() as u64);
        add(&self.tokens_out, outcome.usage.output);
        add(
            &self.tokens_in,
            outcome.usage.total() - outcome.usage.output,
        );
    }
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Counts every answer.
pub(super) async fn counted(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let class = usize::from(response.status().as_u16() / 100);
    if let Some(counter) = api.metrics.requests.get(class) {
        add(counter, 1);
    }
    response
}

pub(super) async fn metrics(State(api): State<Arc<Api>>) -> Response {
    let mut text = text(&api);
    of_surfaces(&mut text, &api.parts.turns);
    of_chats(
        &mut text,
        &(api.parts.report)().await,
        api.parts.clock.now(),
    );
    (
        [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
        text,
    )
        .into_response()
}

fn text(api: &Api) -> String {
    let metrics = &api.metrics;
    let mut text = String::new();
    family(
        &mut text,
        "hermes_http_requests_total",
        "counter",
        "Answers of the HTTP API by class of status.",
    );
    for (class, counter) in metrics.requests.iter().enumerate().skip(1) {
        let _ = writeln!(
            text,
            "hermes_http_requests_total{{class=\"{class}xx\"}} {}",
            read(counter)
        );
    }
    family(
        &mut text,
        "hermes_turns_total",
        "counter",
        "Turns that were asked for over HTTP, by how they ended.",
    );
    for (end, counter) in [
        ("finished", &metrics.turns_finished),
        ("interrupted", &metrics.turns_interrupted),
        ("failed", &metrics.turns_failed),
    ] {
        let _ = writeln!(
            text,
            "hermes_turns_total{{end=\"{end}\"}} {}",
            read(counter)
        );
    }
    let open = api.parts.sessions.list_open();
    let busy = open.iter().filter(|session| session.idle.is_none()).count();
    for (name, kind, help, value) in [
        (
            "hermes_tool_calls_total",
            "counter",
            "Tool calls in these turns.",
            read(&metrics.calls),
        ),
        (
            "hermes_tokens_in_total",
            "counter",
            "Tokens that models read for them.",
            read(&metrics.tokens_in),
        ),
        (
            "hermes_tokens_out_total",
            "counter",
            "Tokens that models wrote for them.",
            read(&metrics.tokens_out),
        ),
        (
            "hermes_runs_active",
            "gauge",
            "Turns that run now for the HTTP API.",
            api.active_runs() as u64,
        ),
        (
            "hermes_sessions_open",
            "gauge",
            "Conversations that are open in the process.",
            open.len() as u64,
        ),
        (
            "hermes_sessions_busy",
            "gauge",
            "Conversations in which something runs.",
            busy as u64,
        ),
        (
            "hermes_draining",
            "gauge",
            "1 while nothing new is taken.",
            u64::from(api.shutdown.is_draining()),
        ),
    ] {
        family(&mut text, name, kind, help);
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

/// Turns, calls and tokens of every surface: chats, jobs, webhooks and the API alike.
fn of_surfaces(text: &mut String, turns: &TurnCounts) {
    let counts = turns.by_surface();
    let mut tell = |name: &str, help: &str, of: &dyn Fn(&SurfaceCounts) -> Vec<(&str, u64)>| {
        family(text, name, "counter", help);
        for (surface, counts) in &counts {
            // Quotation marks and the like would end the label.
            let is_plain = |c: &char| c.is_alphanumeric() || "_-.".contains(*c);
            let surface: String = surface.chars().filter(is_plain).collect();
            for (label, value) in of(counts) {
                let _ = writeln!(text, "{name}{{surface=\"{surface}\"{label}}} {value}");
            }
        }
    };
    tell(
        "hermes_surface_turns_total",
        "Turns by where they were asked for and how they ended.",
        &|counts| {
            vec![
                (",end=\"finished\"", counts.finished),
                (",end=\"interrupted\"", counts.interrupted),
                (",end=\"failed\"", counts.failed),
            ]
        },
    );
    tell(
        "hermes_surface_tool_calls_total",
        "Tool calls in these turns.",
        &|counts| vec![("", counts.calls)],
    );
    tell(
        "hermes_surface_tokens_total",
        "Tokens that models read and wrote for them.",
        &|counts| {
            vec![
                (",direction=\"in\"", counts.tokens_in),
                (",direction=\"out\"", counts.tokens_out),
            ]
        },
    );
}

/// How chat platforms are, and what waits for them.
fn of_chats(text: &mut String, report: &Report, now: Timestamp) {
    family(
        text,
        "hermes_platform_connected",
        "gauge",
        "1 while a chat platform has proven that it is connected.",
    );
    for platform in &report.platforms {
        let is_connected = u64::from(platform.state == PlatformState::Connected);
        let name = &platform.platform;
        let _ = writeln!(
            text,
            "hermes_platform_connected{{platform=\"{name}\"}} {is_connected}"
        );
    }
    let age = |queue: &QueueReport| queue.oldest.map_or(0, |oldest| now.since(oldest).as_secs());
    for (name, help, value) in [
        (
            "hermes_inbox_waiting",
            "Messages that are not answered yet.",
            report.inbox.waiting,
        ),
        (
            "hermes_inbox_oldest_seconds",
            "For how long the oldest of them has waited.",
            age(&report.inbox),
        ),
        (
            "hermes_outbox_waiting",
            "Messages that are not delivered yet.",
            report.outbox.waiting,
        ),
        (
            "hermes_outbox_oldest_seconds",
            "For how long the oldest of them has waited.",
            age(&report.outbox),
        ),
        (
            "hermes_outbox_failed",
            "Messages that could not be delivered at all, of the last days.",
            report.undelivered,
        ),
        (
            "hermes_start_time_seconds",
            "When the process began, in seconds since 1970.",
            u64::try_from(report.started.as_millis() / 1000).unwrap_or_default(),
        ),
    ] {
        family(text, name, "gauge", help);
        let _ = writeln!(text, "{name} {value}");
    }
}

fn family(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}
