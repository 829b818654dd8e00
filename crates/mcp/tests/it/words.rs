//! What a tool says of sessions of its own never makes it run again; what is said of ours heals.

use hermes_core::ToolError;
use hermes_mcp::ServerState;
use hermes_testkit::mcp::{Fault, FaultyMcp, Options, Rule, SessionLoss, Settings, StdioMcp};
use serde_json::{Value, json};

use crate::client::{Client, eventually};
use crate::stdio::section;

/// Errors of applications that speak of sessions, as JSON-RPC errors and as results.
const OWN_WORDS: &[&str] = &[
    "browser session not found",
    "Session expired: log in to the bank",
    "Session not found",
    "Invalid params: Invalid or expired session",
];

fn app_error(message: &str, code: Option<i64>, word: &str) -> Value {
    let mut arguments = json!({ "message": message, "word": word });
    if let Some(code) = code {
        arguments["code"] = code.into();
    }
    arguments
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_ran_is_not_run_again_for_its_words_while_the_session_lives() {
    for transport in ["streamable", "sse"] {
        let server = FaultyMcp::start().await;
        let client = match transport {
            "sse" => {
                let sse = json!({ "url": server.sse_url(), "transport": "sse" });
                Client::of(&server, sse).await
            }
            _ => Client::of(&server, json!({})).await,
        };
        for (number, words) in OWN_WORDS.iter().enumerate() {
            for code in [Some(-32000), Some(-32602), None] {
                let word = format!("word{number}{code:?}");
                let call = client
                    .call("app_error", app_error(words, code, &word))
                    .await;
                let error = call.unwrap_err();
                assert!(matches!(error, ToolError::Answer(_)), "{error:?}");
                assert!(error.to_string().contains(words), "{error}");
                assert_eq!(server.executions(&word), 1, "{transport} {words} {code:?}");
            }
        }
        assert_eq!(
            server.count("initialize"),
            1,
            "{transport}: the session is kept"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_words_of_a_tool_are_tested_once() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    for code in [Some(-32000), None] {
        for _ in 0..3 {
            let arguments = app_error("Session not found", code, "word");
            client.call("app_error", arguments).await.unwrap_err();
        }
    }
    assert_eq!(server.executions("word"), 6);
    assert_eq!(
        server.count("ping"),
        2,
        "once as an error, once as a result"
    );
    let arguments = app_error("browser session not found", None, "word");
    client.call("app_error", arguments).await.unwrap_err();
    assert_eq!(server.count("ping"), 2, "these are not even doubted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_over_http_that_mentions_a_session_is_put_to_the_test() {
    for status in [400, 409, 500] {
        let server = FaultyMcp::start().await;
        let client = Client::of(&server, json!({})).await;
        let refusal = Fault::Refusal {
            status,
            code: -32602,
            message: "Session expired".to_owned(),
        };
        server.fail(Rule::once(refusal).on("tools/call").after_executing());
        client.append("word").await.unwrap_err();
        assert_eq!(server.executions("word"), 1, "{status}");
        assert_eq!(server.count("initialize"), 1, "{status}");
        client.append("next").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_id_the_texts_of_the_first_reports_heal_with_one_retry() {
    let settings = Settings {
        has_sessions: false,
        has_get_stream: false,
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    for loss in [
        SessionLoss::InvalidParams,
        SessionLoss::InternalError,
        SessionLoss::ToolError,
        SessionLoss::Gone,
        SessionLoss::NotFound,
    ] {
        let server = FaultyMcp::start_with(&options).unwrap();
        let client = Client::of(&server, json!({})).await;
        server.fail(Rule::once(Fault::SessionLost(loss)).on("tools/call"));
        client.append("word").await.unwrap();
        assert_eq!(server.executions("word"), 1, "{loss:?}");
        assert_eq!(server.count("initialize"), 2, "{loss:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_id_a_refusal_in_these_words_costs_one_retry_ever() {
    let settings = Settings {
        has_sessions: false,
        has_get_stream: false,
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    let server = FaultyMcp::start_with(&options).unwrap();
    let client = Client::of(&server, json!({})).await;
    let refusal = Fault::Refusal {
        status: 400,
        code: -32602,
        message: "Session expired".to_owned(),
    };
    let always = Rule::once(refusal).on("tools/call").until_cleared();
    server.fail(always.after_executing());
    for _ in 0..3 {
        client.append("word").await.unwrap_err();
    }
    assert_eq!(server.executions("word"), 4);
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_session_id_words_that_a_new_connection_meets_again_are_the_tools_own() {
    let server = StdioMcp::new();
    let client = Client::new(&section(&server));
    client.until_ready().await;
    for words in ["browser session not found", "Unknown session: tab 7"] {
        let arguments = app_error(words, None, "own");
        client.call("app_error", arguments).await.unwrap_err();
    }
    assert_eq!(server.executions("own"), 2);
    assert_eq!(server.process_ids().len(), 1);
    for _ in 0..3 {
        let arguments = app_error("Session expired", None, "word");
        let error = client.call("app_error", arguments).await.unwrap_err();
        assert!(error.to_string().contains("Session expired"), "{error}");
    }
    assert_eq!(server.executions("word"), 4, "one retry, ever");
    assert_eq!(server.process_ids().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_401_is_about_the_credentials_when_they_are_refused_without_a_session_too() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let refused = || Rule::once(Fault::status(401)).until_cleared();
    for method in ["tools/call", "ping", "initialize", "server/discover"] {
        server.fail(refused().on(method));
    }
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(error.contains("mcp_servers.test.headers"), "{error}");
    assert!(!error.contains("sticky"), "{error}");
    assert_eq!(server.count("tools/call"), 1);
    server.clear();
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

/// It refuses everything that names no session it knows, but a beginning.
#[tokio::test(flavor = "multi_thread")]
async fn a_bare_401_is_about_the_session_when_a_new_one_is_given_to_the_same_credentials() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(Rule::once(Fault::status(401)).on("tools/call"));
    server.fail(Rule::once(Fault::status(401)).on("ping").until_cleared());
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_401_that_a_new_session_meets_again_is_about_the_credentials() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(
        Rule::once(Fault::status(401))
            .on("tools/call")
            .until_cleared(),
    );
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(error.contains("did not run"), "{error}");
    assert!(!error.contains("sticky"), "{error}");
    assert_eq!(server.count("tools/call"), 2);
    server.clear();
    client.append("word").await.unwrap();
}

// Cases 10 and 11 of the first reports.

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_that_meets_the_end_of_the_program_is_told_and_not_run() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(Rule::once(Fault::Hang).on("initialize").until_cleared());
    server.drop_sessions();
    let call = client.append("word");
    let stop = async {
        eventually("a new session is wanted", || server.count("initialize") > 1).await;
        client.mcp.shutdown().await;
    };
    let (answer, ()) = tokio::join!(call, stop);
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("did not run"), "{error}");
    assert!(error.contains("switched off"), "{error}");
    assert_eq!(server.executions("word"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_that_meets_the_removal_of_its_server_is_told_and_not_run() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    server.fail(Rule::once(Fault::Hang).on("initialize").until_cleared());
    server.drop_sessions();
    let call = client.append("word");
    let remove = async {
        eventually("a new session is wanted", || server.count("initialize") > 1).await;
        let reloaded = client.mcp.reload(Vec::new()).await;
        assert_eq!(reloaded.stopped, ["test"]);
        std::time::Instant::now()
    };
    let (answer, removed) = tokio::join!(call, remove);
    let error = answer.unwrap_err().to_string();
    assert!(error.contains("did not run"), "{error}");
    assert!(error.contains("removed from the settings"), "{error}");
    assert!(removed.elapsed().as_secs() < 5, "told, not kept waiting");
    assert_eq!(server.executions("word"), 0);
    assert!(client.mcp.status().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_lost_for_good_heals_after_a_tool_has_said_the_same_words() {
    let server = FaultyMcp::start().await;
    let client = Client::of(&server, json!({})).await;
    let arguments = app_error("Session not found", None, "own");
    client.call("app_error", arguments).await.unwrap_err();
    server.fail(Rule::once(Fault::SessionLost(SessionLoss::ToolError)).on("tools/call"));
    client.append("word").await.unwrap();
    assert_eq!(
        (server.executions("own"), server.executions("word")),
        (1, 1)
    );
    assert_eq!(client.status().state, ServerState::Ready);
    assert_eq!(server.count("initialize"), 2);
}
