//! A thousand calls that must not be repeated, under faults chosen at random.

use std::time::Duration;

use hermes_core::{Random, ToolError};
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule, SessionLoss};
use serde_json::json;

use crate::client::Client;

const CALLS: usize = 1000;
const SEED: u64 = 20_261_115;

fn random_fault(random: &Random) -> Rule<Fault> {
    let losses = SessionLoss::ALL;
    let loss = losses[random.below(losses.len() as u64) as usize];
    let fault = match random.below(12) {
        0..=3 => Fault::SessionLost(loss),
        4 => Fault::Reset,
        5 => Fault::status(500),
        6 => Fault::status(503),
        7 => Fault::Truncated,
        8 => Fault::SseEmpty,
        9 => Fault::Html,
        10 => Fault::retry_after(429, "0"),
        _ => Fault::SseResumable,
    };
    // A refusal says that nothing ran; no server is so broken that this would be a lie.
    let is_refusal = matches!(
        &fault,
        Fault::SessionLost(_) | Fault::Status { status: 429, .. }
    );
    let rule = Rule::once(fault).on("tools/call");
    if is_refusal || random.below(2) == 0 {
        rule
    } else {
        rule.after_executing()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_runs_twice_and_every_call_ends() {
    println!("seed {SEED}");
    let random = Random::seeded(SEED);
    let server = FaultyMcp::start().await;
    // Without the pauses that protect a server from us, so that every call meets its fault.
    let settings =
        json!({ "breaker": { "threshold": 0 }, "backoff": { "base": 0.01, "cap": 0.05 } });
    let client = Client::of(&server, settings).await;
    let (mut done, mut refused, mut unknown) = (0, 0, 0);
    for call in 0..CALLS {
        let word = format!("word{call}");
        if random.below(3) == 0 {
            server.fail(random_fault(&random));
        }
        let append = tokio::time::timeout(Duration::from_secs(20), client.append(&word));
        let answer = append.await.expect("every call ends");
        let executions = server.executions(&word);
        match answer {
            Ok(_) => {
                done += 1;
                assert_eq!(executions, 1, "{word} succeeded");
            }
            Err(ToolError::OutcomeUnknown(text)) => {
                unknown += 1;
                assert!(
                    executions <= 1 && text.contains("outcome unknown"),
                    "{word}: {text}"
                );
            }
            Err(error) => {
                refused += 1;
                assert_eq!(executions, 0, "{word} did not run: {error}");
                assert!(!error.to_string().is_empty());
            }
        }
    }
    println!("{done} done, {refused} not run, {unknown} unknown");
    assert!(done > CALLS * 8 / 10);
}
