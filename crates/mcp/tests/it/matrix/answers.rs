//! Rows 10 to 17 and 33 to 38: what a server answers.

use std::time::{Duration, Instant};

use hermes_mcp::{BreakerStatus, ServerState};
use hermes_testkit::mcp::{Fault, FaultyMcp, OddId, Rule, StdioFault, StdioMcp, WrongId};
use serde_json::{Value, json};

use super::{Record, SECOND, ends_unknown, is_refused, no_settings, succeeds};
use crate::client::Client;
use crate::stdio::section;

async fn world(settings: Value) -> (FaultyMcp, Client) {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, settings).await;
    (server, client)
}

fn on_call(fault: Fault) -> Rule<Fault> {
    Rule::once(fault).on("tools/call")
}

/// Answers a call with each fault after executing it: nobody can know, nobody repeats it, and the next call is fine.
/// Returns the longest time until that one had its answer.
async fn longest_after_unknown(faults: &[Fault], settings: &Value) -> Duration {
    let mut longest = Duration::ZERO;
    for fault in faults {
        let (server, client) = world(settings.clone()).await;
        server.fail(on_call(fault.clone()).after_executing());
        ends_unknown(&client, "lost").await;
        let took = succeeds(&client, "word").await;
        assert!(took < SECOND, "{fault:?}: {took:?}");
        assert_eq!(server.executions("lost"), 1, "{fault:?}");
        assert_eq!(server.executions("word"), 1, "{fault:?}");
        longest = longest.max(took);
    }
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn row_10_a_token_has_expired() {
    let (server, client) = world(json!({ "headers": { "Authorization": "Bearer old" } })).await;
    server.fail(on_call(Fault::Unauthorized));
    is_refused(&client, "word", "did not run").await;
    assert!(matches!(
        client.status().state,
        ServerState::NeedsAuth { .. }
    ));
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    let mended = Instant::now();
    client.mcp.reconnect("test").await.unwrap();
    client.until_ready().await;
    succeeds(&client, "word").await;
    Record {
        row: 10,
        fault: "401 with a challenge, credentials from the settings",
        detected: "status and challenge",
        outcome: "refused, with the setting to change; this server only",
        healed: Some(mended.elapsed()),
        executions: Some(server.executions("word")),
    }
    .keep();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_11_a_scope_is_missing() {
    let (server, client) = world(no_settings()).await;
    server.fail(on_call(Fault::InsufficientScope));
    is_refused(&client, "word", "write").await;
    let took = succeeds(&client, "next").await;
    assert_eq!(server.executions("word"), 0);
    assert_eq!(server.count("initialize"), 1);
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    Record {
        row: 11,
        fault: "403, insufficient scope",
        detected: "status and challenge",
        outcome: "refused, with the scope; other calls go on",
        healed: Some(took),
        executions: Some(0),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_12_a_rate_limit_is_waited_for() {
    let (server, client) = world(no_settings()).await;
    server.fail(on_call(Fault::retry_after(429, "1")));
    let took = succeeds(&client, "word").await;
    assert!((SECOND..2 * SECOND).contains(&took), "{took:?}");
    server.fail(on_call(Fault::retry_after(429, "50")));
    let refused = is_refused(&client, "later", "50 s").await;
    assert!(refused < SECOND, "{refused:?}");
    assert_eq!(server.executions("word"), 1);
    assert_eq!(server.executions("later"), 0);
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    Record {
        row: 12,
        fault: "429 with `Retry-After`: 1 s; 50 s",
        detected: "status and header",
        outcome: "waited for and made once more; told at once when it is long",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_13_the_server_or_its_proxy_fails() {
    let faults = [
        Fault::status(500),
        Fault::status(502),
        Fault::status(504),
        Fault::Reset,
        Fault::Truncated,
    ];
    Record {
        row: 13,
        fault: "500, 502, 504, reset or cut answer after the call was sent",
        detected: "the answer, or its end",
        outcome: "`outcome_unknown`, never repeated; the next call succeeds",
        healed: Some(longest_after_unknown(&faults, &no_settings()).await),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_14_the_server_is_unavailable() {
    longest_after_unknown(&[Fault::status(503)], &no_settings()).await;
    let (server, client) = world(no_settings()).await;
    server.fail(on_call(Fault::retry_after(503, "1")));
    let took = succeeds(&client, "word").await;
    assert!((SECOND..2 * SECOND).contains(&took), "{took:?}");
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 14,
        fault: "503 with `Retry-After: 1`; without",
        detected: "status and header",
        outcome: "waited for and made once more; `outcome_unknown`",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_15_the_server_is_slow() {
    let (server, client) = world(json!({ "timeout": 1 })).await;
    // Progress keeps it alive.
    client.call("slow", json!({ "ms": 1500 })).await.unwrap();
    server.fail(on_call(Fault::DelayMs(3000)));
    ends_unknown(&client, "late").await;
    let took = succeeds(&client, "word").await;
    assert!(took < SECOND, "{took:?}");
    assert_eq!(server.cancelled().len(), 1);
    assert_eq!(server.count("initialize"), 1, "slow is not dead");
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    Record {
        row: 15,
        fault: "slow server: 3 s with a deadline of 1 s; 1.5 s with progress",
        detected: "the deadline, reset by progress; a probe that is answered",
        outcome: "`outcome_unknown`, server told; no strike, same connection",
        healed: Some(took),
        executions: None,
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_16_a_stream_falls_silent() {
    let faults = [Fault::SseSilent, Fault::HangAfterHeaders];
    let settings = json!({ "timeout": 1 });
    Record {
        row: 16,
        fault: "an answer's stream opens and falls silent",
        detected: "the call's deadline (1 s here)",
        outcome: "`outcome_unknown`; the next call succeeds",
        healed: Some(longest_after_unknown(&faults, &settings).await),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_17_a_stream_is_cut_after_an_event_id() {
    let (server, client) = world(no_settings()).await;
    server.fail(on_call(Fault::SseResumable));
    let took = succeeds(&client, "word").await;
    assert!(took < SECOND, "{took:?}");
    assert_eq!(server.executions("word"), 1);
    Record {
        row: 17,
        fault: "stream cut after an event id",
        detected: "its end",
        outcome: "resumed with `Last-Event-ID` after the server's `retry`",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_33_the_session_lives_and_its_state_is_gone() {
    let (server, client) = world(no_settings()).await;
    let lost = json!({ "code": -32000, "message": "not logged in: the cart is empty" });
    for _ in 0..5 {
        let error = client.call("app_error", lost.clone()).await.unwrap_err();
        assert!(error.to_string().contains("the cart is empty"), "{error}");
    }
    assert_eq!(server.count("initialize"), 1);
    assert_eq!(server.count("tools/call"), 5);
    assert_eq!(client.status().breaker, BreakerStatus::Closed);
    Record {
        row: 33,
        fault: "session kept, state behind a tool lost",
        detected: "not at all: it is the tool's answer",
        outcome: "told to the model; no retry, no strike, no reconnect",
        healed: None,
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_34_answers_come_twice_to_nobody_or_with_another_kind_of_id() {
    let mut longest = Duration::ZERO;
    let (server, client) = world(no_settings()).await;
    for (number, fault) in [
        Fault::DuplicateResponse,
        Fault::StrayResponse,
        Fault::AnswerWithId(OddId::Text),
        Fault::AnswerWithId(OddId::Fraction),
    ]
    .into_iter()
    .enumerate()
    {
        server.fail(on_call(fault));
        longest = longest.max(succeeds(&client, &format!("http{number}")).await);
        assert_eq!(server.executions(&format!("http{number}")), 1);
    }
    // The only answer there will be is to somebody else.
    server.fail(on_call(Fault::AnswerWithId(OddId::Foreign)));
    ends_unknown(&client, "lost").await;
    succeeds(&client, "next").await;
    assert_eq!(server.count("initialize"), 1);
    longest = longest.max(row_34_over_stdio().await);
    Record {
        row: 34,
        fault: "an answer comes twice, to no request, or with its id as text or as a fraction (HTTP and stdio)",
        detected: "nobody waits for its id; the id means the same number",
        outcome: "what answers nobody is ignored, the rest reaches its caller",
        healed: Some(longest),
        executions: Some(1),
    }
    .keep();
}

async fn row_34_over_stdio() -> Duration {
    let program = StdioMcp::new();
    let client = Client::new(&section(&program));
    client.until_ready().await;
    client.tools().await;
    let mut longest = Duration::ZERO;
    for (number, fault) in [
        StdioFault::DuplicateResponse,
        StdioFault::StrayResponse,
        StdioFault::AnswerWithId(OddId::Text),
        StdioFault::AnswerWithId(OddId::Fraction),
    ]
    .into_iter()
    .enumerate()
    {
        program.fail(Rule::once(fault).on("tools/call"));
        longest = longest.max(succeeds(&client, &format!("stdio{number}")).await);
        assert_eq!(program.executions(&format!("stdio{number}")), 1);
    }
    succeeds(&client, "next").await;
    assert_eq!(program.process_ids().len(), 1);
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn row_35_an_error_has_no_id() {
    let mut longest = Duration::ZERO;
    for (status, id) in [
        (200, WrongId::Null),
        (400, WrongId::Null),
        (200, WrongId::Missing),
        (200, WrongId::Foreign),
    ] {
        let (server, client) = world(no_settings()).await;
        server.fail(on_call(Fault::ErrorWithId { status, id }));
        longest = longest.max(is_refused(&client, "word", "Internal error").await);
        assert_eq!(server.executions("word"), 0);
    }
    assert!(longest < SECOND, "{longest:?}");
    Record {
        row: 35,
        fault: "JSON-RPC error with a null, foreign or missing id",
        detected: "it answers the POST of the call",
        outcome: "given to that call at once",
        healed: Some(longest),
        executions: Some(0),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_36_a_captive_portal_answers() {
    Record {
        row: 36,
        fault: "200 with an HTML page",
        detected: "content type",
        outcome: "`outcome_unknown` at once; the next call succeeds",
        healed: Some(longest_after_unknown(&[Fault::Html], &no_settings()).await),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_37_redirects_lead_in_circles_or_away() {
    let settings = json!({ "headers": { "Authorization": "Bearer secret" } });
    let elsewhere = |host: &str| host.starts_with("localhost");
    let mut longest = Duration::ZERO;
    for fault in [Fault::RedirectSameOrigin, Fault::RedirectCrossOrigin] {
        let (server, client) = world(settings.clone()).await;
        server.fail(on_call(fault).until_cleared());
        is_refused(&client, "lost", "it points to").await;
        server.clear();
        client.until_ready().await;
        server.fail(on_call(Fault::RedirectSameOrigin));
        longest = longest.max(succeeds(&client, "word").await);
        assert_eq!(server.executions("lost"), 0);
        assert_eq!(server.executions("word"), 1);
        let seen = server.requests();
        let mut hosts = seen.iter().filter_map(|seen| seen.header("host"));
        assert!(!hosts.any(elsewhere), "sent to another origin");
    }
    Record {
        row: 37,
        fault: "redirect within the origin; in circles; to another origin",
        detected: "status and target",
        outcome: "followed with its body; given up after five; never followed",
        healed: Some(longest),
        executions: Some(1),
    }
    .keep();
}

#[tokio::test(flavor = "multi_thread")]
async fn row_38_a_body_is_huge() {
    let (server, client) = world(no_settings()).await;
    server.fail(on_call(Fault::HugeBodyMb(40)));
    ends_unknown(&client, "lost").await;
    server.fail(on_call(Fault::DecompressionBomb).after_executing());
    ends_unknown(&client, "bomb").await;
    let took = succeeds(&client, "word").await;
    assert_eq!(server.executions("lost"), 1);
    assert_eq!(server.executions("bomb"), 1);
    assert_eq!(server.count("initialize"), 1);
    let offers = |name: &str| {
        server
            .requests()
            .iter()
            .any(|seen| seen.header(name).is_some())
    };
    assert!(!offers("accept-encoding"), "no bomb is asked for");
    Record {
        row: 38,
        fault: "body of 40 MB; a gzip bomb of 100 MB, sent although compression is never asked for",
        detected: "more than 32 MiB; `Content-Encoding`",
        outcome: "`outcome_unknown`, nothing kept or unpacked; same connection",
        healed: Some(took),
        executions: Some(1),
    }
    .keep();
}
