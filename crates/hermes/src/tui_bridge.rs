//! `hermes` in a terminal: carries words between the interface, which shows and asks, and the session and the host,
//! which do.

mod bridge;
mod settings;

use std::io::IsTerminal as _;
use std::time::Duration;

use hermes_tui::Leave;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::{Failure, Outcome, code};
use crate::output::note;
use crate::signals::Signals;
use crate::style::Style;
use bridge::Bridge;
use hermes_runtime::{Conversation, Start};

/// As much as a session may be ahead of the screen.
const TOLD_WAITING_MAX: usize = 1_024;
/// Requests of one person at a keyboard.
const REQUESTS_WAITING_MAX: usize = 64;
/// How long a turn may take to come to its end when nobody watches any more.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the interface can be used here; plain lines work everywhere.
pub fn fits(base: &Base, flags: &RunFlags) -> bool {
    let terminal = base.environment.get("TERM").unwrap_or_default();
    let is_capable = !terminal.is_empty() && terminal != "dumb";
    is_capable && !flags.plain && !flags.json && std::io::stdout().is_terminal()
}

/// Talks until the person leaves.
pub async fn run(
    base: &Base,
    host: &mut Conversation,
    start: Start,
    question: Option<String>,
) -> Outcome<()> {
    let settings = settings::of(base)?;
    let mut signals = Signals::listen()?;
    let (to_interface, told) = mpsc::channel(TOLD_WAITING_MAX);
    let (to_host, requests) = mpsc::channel(REQUESTS_WAITING_MAX);
    let mut bridge = Bridge::new(base, host, to_interface, requests)?.saying(question);
    let outcome = {
        let mut serving = Box::pin(bridge.serve(start));
        let mut interface = Box::pin(hermes_tui::run(settings, told, to_host));
        tokio::select! {
            served = &mut serving => {
                // The interface prints its last words before it gives the terminal back.
                if served.is_ok() {
                    let _ = timeout(PATIENCE, interface).await;
                }
                served
            }
            left = &mut interface => {
                drop(interface);
                let served = timeout(PATIENCE, serving).await.unwrap_or(Ok(()));
                match left {
                    Ok(Leave::Asked) => served,
                    // A terminal that hangs up closes what is typed before it says so.
                    Ok(Leave::Closed) => match signals.ending_soon().await {
                        Some(_) => Err(terminated()),
                        None => served,
                    },
                    Err(error) => {
                        let hint = error.hint();
                        Err(Failure::new(with_source(&error)).hint(hint))
                    }
                }
            }
            () = signals.ended() => {
                drop(interface);
                let _ = timeout(PATIENCE, serving).await;
                Err(terminated())
            }
        }
    };
    if let Some(id) = bridge.to_go_on() {
        let err = Style::of(&std::io::stderr(), &base.environment);
        note(&err.dim(format!("hermes -r {id} goes on with this conversation")));
    }
    outcome
}

/// Ends without a word, with the code of the signal.
fn terminated() -> Failure {
    Failure {
        code: code::TERMINATED,
        ..Failure::new("")
    }
}

fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
