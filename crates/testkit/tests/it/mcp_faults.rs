//! What each fault of the MCP server looks like on the wire, and whether the call was executed.

use hermes_testkit::mcp::{Fault, Rule, SessionLoss, WrongId};
use serde_json::{Value, json};

use crate::{
    client::{End, Response},
    mcp_client::{McpClient, events, initialize, start},
};

/// Calls `append` once under a fault; returns what came and how often it was executed.
fn append_under(rule: impl Into<Rule<Fault>>) -> (Response, usize) {
    let server = start();
    let client = McpClient::connect(server.address());
    server.fail(rule);
    let response = client.call("append", json!({"word": "w"}));
    let executions = server.executions("w");
    // The fault was for one request only.
    assert_eq!(client.ask("ping", json!({})).status, 200);
    (response, executions)
}

#[test]
fn a_lost_session_is_told_in_every_shape() {
    let error = |id: Value, code: i32, message: &str| {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
    };
    let no_valid = "Bad Request: No valid session ID provided";
    let no_id = json!({"jsonrpc": "2.0", "error": {"code": -32000, "message": no_valid}});
    let tool_error = json!({"jsonrpc": "2.0", "id": 1, "result":
        {"content": [{"type": "text", "text": "Session not found"}], "isError": true}});
    let null = || Value::Null;
    let expected = [
        (
            SessionLoss::NotFound,
            404,
            error(null(), -32001, "Session not found"),
        ),
        (SessionLoss::NotFoundEmpty, 404, String::new()),
        (
            SessionLoss::NotFoundInvalidRequest,
            404,
            error(null(), -32600, "Session not found"),
        ),
        (
            SessionLoss::NotFoundServerError,
            404,
            error("server-error".into(), -32600, "Session not found"),
        ),
        (
            SessionLoss::BadRequest,
            400,
            error(null(), -32000, no_valid),
        ),
        (SessionLoss::BadRequestNoId, 400, no_id.to_string()),
        (SessionLoss::BadRequestText, 400, no_valid.to_owned()),
        (
            SessionLoss::Unauthorized,
            401,
            "Session not found".to_owned(),
        ),
        (
            SessionLoss::Conflict,
            409,
            error(null(), -32000, "Conflict: session expired"),
        ),
        (SessionLoss::Gone, 410, "Session expired".to_owned()),
        (
            SessionLoss::Unavailable,
            503,
            "Unknown session on this instance".to_owned(),
        ),
        (
            SessionLoss::InvalidParams,
            200,
            error(
                1.into(),
                -32602,
                "Invalid params: Invalid or expired session",
            ),
        ),
        (
            SessionLoss::InternalError,
            200,
            error(1.into(), -32603, "Session not found"),
        ),
        (SessionLoss::ToolError, 200, tool_error.to_string()),
    ];
    assert_eq!(
        expected.each_ref().map(|(loss, ..)| *loss),
        SessionLoss::ALL
    );
    for (loss, status, body) in expected {
        let server = start();
        let client = McpClient::connect(server.address());
        server.fail(Fault::SessionLost(loss));
        let response = client.call("append", json!({"word": "w"}));
        assert_eq!(
            (response.status, response.body()),
            (status, body),
            "{loss:?}"
        );
        assert_eq!(response.header("www-authenticate"), None);
        assert_eq!(
            (server.executions("w"), server.session_count()),
            (0, 0),
            "{loss:?}"
        );
    }
}

#[test]
fn a_lost_session_stays_lost_until_a_new_one_is_opened() {
    let server = start();
    let client = McpClient::connect(server.address());
    server.fail(Fault::SessionLost(SessionLoss::Gone));
    for _ in 0..2 {
        assert_eq!(client.ask("ping", json!({})).status, 410);
    }
    let again = McpClient::connect(server.address());
    assert_eq!(again.session, "session-2");
    assert_eq!(again.ask("ping", json!({})).status, 200);
    assert_eq!(client.http("GET", &[], "").status, 410);
}

#[test]
fn refusals_carry_their_headers_and_do_nothing() {
    let date = "Wed, 21 Oct 2099 07:28:00 GMT";
    let cases = [
        (Fault::retry_after(429, "2"), 429, ("retry-after", "2")),
        (Fault::retry_after(503, date), 503, ("retry-after", date)),
        (
            Fault::Unauthorized,
            401,
            (
                "www-authenticate",
                r#"Bearer error="invalid_token", error_description="the token expired""#,
            ),
        ),
        (
            Fault::InsufficientScope,
            403,
            (
                "www-authenticate",
                r#"Bearer error="insufficient_scope", scope="write""#,
            ),
        ),
        (Fault::RedirectSameOrigin, 307, ("location", "/mcp/")),
        (
            Fault::Html,
            200,
            ("content-type", "text/html; charset=utf-8"),
        ),
        (
            Fault::status(500),
            500,
            ("content-type", "text/plain; charset=utf-8"),
        ),
    ];
    for (fault, status, (name, value)) in cases {
        let (response, executions) = append_under(fault.clone());
        assert_eq!(
            (response.status, response.header(name)),
            (status, Some(value)),
            "{fault:?}"
        );
        assert_eq!(executions, 0, "{fault:?}");
    }
}

#[test]
fn a_redirect_to_another_origin_leads_to_the_same_server() {
    let server = start();
    let client = McpClient::connect(server.address());
    server.fail(Fault::RedirectCrossOrigin);
    let response = client.ask("ping", json!({}));
    let location = format!("http://localhost:{}/mcp", server.address().port());
    assert_eq!(response.header("location"), Some(location.as_str()));
}

#[test]
fn broken_answers_come_before_or_after_the_call_is_executed() {
    let cases = [
        (Fault::status(502), 502, End::Complete),
        (Fault::Reset, 0, End::Reset),
        (Fault::Hang, 0, End::Silence),
        (Fault::HangAfterHeaders, 200, End::Silence),
        (Fault::Truncated, 200, End::Truncated),
        (Fault::SseEmpty, 200, End::Complete),
        (Fault::SseSilent, 200, End::Silence),
    ];
    for (fault, status, end) in cases {
        for (rule, expected) in [
            (Rule::once(fault.clone()), 0),
            (Rule::once(fault.clone()).after_executing(), 1),
        ] {
            let (response, executions) = append_under(rule);
            assert_eq!(
                (response.status, &response.end),
                (status, &end),
                "{fault:?}"
            );
            assert_eq!(executions, expected, "{fault:?}");
        }
    }
}

#[test]
fn an_error_can_have_an_id_that_is_not_the_requests() {
    let cases = [
        (WrongId::Null, 200, Some(Value::Null)),
        (WrongId::Foreign, 200, Some(json!(999_999))),
        (WrongId::Missing, 400, None),
    ];
    for (wrong, status, id) in cases {
        let (response, executions) = append_under(Fault::ErrorWithId { status, id: wrong });
        let error = response.json();
        assert_eq!((response.status, error.get("id")), (status, id.as_ref()));
        assert_eq!((&error["error"]["code"], executions), (&json!(-32603), 0));
    }
}

#[test]
fn odd_answers_are_answers_and_executed_once() {
    let (huge, executions) = append_under(Fault::HugeBodyMb(2));
    assert_eq!((huge.json()["id"].clone(), executions), (json!(1), 1));
    assert!(huge.body().len() > 2 << 20);

    let (twice, executions) = append_under(Fault::DuplicateResponse);
    let ids: Vec<Value> = events(&twice)
        .iter()
        .map(|event| event["id"].clone())
        .collect();
    assert_eq!((ids, executions), (vec![json!(1), json!(1)], 1));

    let (plain, executions) = append_under(Fault::WrongContentType);
    assert_eq!(
        plain.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!((plain.json()["id"].clone(), executions), (json!(1), 1));

    let (late, executions) = append_under(Fault::DelayMs(100));
    assert_eq!((late.status, executions), (200, 1));
}

#[test]
fn an_answer_that_was_cut_off_can_be_fetched_once() {
    let server = start();
    let client = McpClient::connect(server.address());
    server.fail(Fault::SseResumable);
    let cut = client.call("append", json!({"word": "w"}));
    assert_eq!(cut.body(), "id: answer-to-1\nretry: 50\ndata:\n\n");
    let resumed = client.http("GET", &[("Last-Event-ID", "answer-to-1")], "");
    assert_eq!(events(&resumed)[0]["id"], 1);
    assert_eq!(server.executions("w"), 1);
}

#[test]
fn a_fault_can_be_for_one_method_so_many_times() {
    let server = start();
    let client = McpClient::connect(server.address());
    server.fail(Rule::once(Fault::status(503)).on("initialize").times(2));
    server.fail(Rule::once(Fault::Hang).on("tools/list"));
    assert_eq!(client.ask("ping", json!({})).status, 200);
    let statuses = [(); 3].map(|()| initialize(server.address()).status);
    assert_eq!(statuses, [503, 503, 200]);
    assert_eq!(client.ask("tools/list", json!({})).end, End::Silence);
    assert_eq!(client.ask("tools/list", json!({})).status, 200);
}

#[test]
fn a_delayed_handshake_still_opens_a_session() {
    let server = start();
    server.fail(Rule::once(Fault::DelayMs(10)).on("initialize"));
    assert_eq!(McpClient::connect(server.address()).session, "session-1");
}

#[test]
fn faults_until_cleared_last_until_they_are() {
    let server = start();
    let client = McpClient::connect(server.address());
    server.fail(
        Rule::once(Fault::status(500))
            .on_everything()
            .until_cleared(),
    );
    assert_eq!(client.ask("ping", json!({})).status, 500);
    assert_eq!(initialize(server.address()).status, 500);
    assert_eq!(client.http("GET", &[], "").status, 500);
    server.clear();
    server.fail_times(2, Fault::status(504));
    let statuses = [(); 3].map(|()| client.ask("ping", json!({})).status);
    assert_eq!(statuses, [504, 504, 200]);
}
