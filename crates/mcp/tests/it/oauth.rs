//! Tokens: got by a login, sent, renewed once for all, and never shown.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use hermes_core::{Person, Response, ToolContext, Wanted};
use hermes_mcp::{Callback, Login, LoginError, ServerState, forget_login};
use hermes_testkit::mcp::{Fault, FaultyMcp, Rule, SessionLoss};
use hermes_testkit::oauth::{Browser, TokenFault};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::client::{Client, context, eventually};
use crate::oauth_home::{Home, protected, redirected, settings};

fn needs_auth(client: &Client, server: &str) -> Option<String> {
    let status = client.mcp.status();
    let status = status.into_iter().find(|status| status.name == server)?;
    match status.state {
        ServerState::NeedsAuth { reason } => Some(reason),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_gets_a_token_that_every_request_carries() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    let page = home.visit(&section, &[]).await.unwrap();
    assert!(page.contains("You are logged in"), "{page}");
    assert_eq!(auth.registrations(), 1);
    // Finding out how to log in is done without a token.
    let before = server.requests().len();
    let client = home.ready(&section).await;
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
    let requests = server.requests().split_off(before);
    assert!(
        requests
            .iter()
            .all(|seen| seen.header("authorization").is_some())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_a_login_are_for_their_owner_only() {
    let (_auth, _server, section) = protected().await;
    let home = Home::new();
    home.visit(&section, &[]).await.unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.tokens()), 0o700);
    let mut names = Vec::new();
    for entry in fs::read_dir(home.tokens()).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{entry:?}");
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(
        names,
        [
            "test.client.json",
            "test.json",
            "test.lock",
            "test.meta.json"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_token_is_renewed_and_the_call_is_sent_once_more() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.ready(&section).await;
    // What goes before a first call, and the stream, would be refused before the call is.
    client.append("first").await.unwrap();
    eventually("the stream is open", || server.count("GET") == 1).await;
    auth.expire_access();
    client.append("word").await.unwrap();
    assert_eq!((auth.renewals(), server.executions("word")), (1, 1));
    assert_eq!(
        server.count("tools/call"),
        1 + 2,
        "refused once, and then not"
    );
    assert_eq!(server.count("initialize"), 1, "the connection was kept");
    assert_eq!(home.read("test.json")["access_token"], "secret-access-2");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_need_a_token_at_once_renew_it_once() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let (one, two) = (home.ready(&section).await, home.ready(&section).await);
    for round in 1..=5 {
        auth.expire_access();
        auth.fail([TokenFault::DelayMs(50)]);
        let (first, second) = tokio::join!(one.append("one"), two.append("two"));
        first.unwrap();
        second.unwrap();
        assert_eq!((auth.renewals(), auth.reuses()), (round, 0));
    }
    assert_eq!((server.executions("one"), server.executions("two")), (5, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_that_are_refused_together_renew_the_token_once() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.ready(&section).await;
    auth.expire_access();
    let calls = (0..12).map(|_| client.append("word"));
    for result in futures_util::future::join_all(calls).await {
        result.unwrap();
    }
    assert_eq!((auth.renewals(), auth.reuses()), (1, 0));
    assert_eq!(server.executions("word"), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_renewed_shortly_before_it_expires() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.ready(&section).await;
    home.clock.advance(Duration::from_secs(3600 - 70));
    client.append("early").await.unwrap();
    assert_eq!(auth.renewals(), 0);
    home.clock.advance(Duration::from_secs(15));
    client.append("due").await.unwrap();
    assert_eq!(auth.renewals(), 1);
    assert_eq!(server.count("tools/call"), 2, "none was refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_cannot_be_renewed_early_is_used_until_it_expires() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.ready(&section).await;
    home.clock.advance(Duration::from_secs(3600 - 30));
    auth.fail([TokenFault::Status(503)]);
    client.append("word").await.unwrap();
    assert_eq!((auth.renewals(), server.executions("word")), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_refresh_token_needs_a_login_and_other_servers_go_on() {
    let (auth, server, section) = protected().await;
    let open = FaultyMcp::start().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let other = json!({ "url": open.url() });
    let client = home.start(&[("test", &section), ("other", &other)]);
    client.until_ready().await;
    client.tools().await;
    auth.expire_access();
    auth.fail([TokenFault::InvalidGrant]);
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(error.contains("run `hermes mcp login test`"), "{error}");
    assert!(error.contains("invalid_grant"), "{error}");
    let reason = needs_auth(&client, "test").expect("the state says so too");
    assert!(reason.contains("run `hermes mcp login test`"), "{reason}");
    client.append("again").await.unwrap_err();
    client.mcp.reconnect("test").await.unwrap();
    client.append("again").await.unwrap_err();
    assert_eq!(
        auth.token_requests(),
        1,
        "a rejected token is not tried again"
    );
    let names = client.names().await;
    assert!(names.iter().any(|name| name.starts_with("mcp__other__")));
    assert_eq!(client.mcp.status()[1].state, ServerState::Ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_login_the_server_is_not_even_asked_and_says_what_to_run() {
    let (_auth, server, section) = protected().await;
    let client = Home::new().start(&[("test", &section)]);
    eventually("needs auth", || needs_auth(&client, "test").is_some()).await;
    let reason = needs_auth(&client, "test").unwrap();
    assert_eq!(
        reason,
        "nobody has logged in yet; run `hermes mcp login test`"
    );
    assert!(client.tools().await.is_empty(), "without waiting");
    assert!(server.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_in_another_process_is_found_without_a_restart() {
    let (_auth, server, section) = protected().await;
    let home = Home::new();
    let client = home.start(&[("test", &section)]);
    eventually("needs auth", || needs_auth(&client, "test").is_some()).await;
    home.visit(&section, &[]).await.unwrap();
    client.until_ready().await;
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_login_is_noticed_and_a_new_one_is_found() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.visit(&section, &[]).await.unwrap();
    let client = home.ready(&section).await;
    forget_login(&settings("test", &section), &home.ports())
        .await
        .unwrap();
    eventually_fails(&client).await;
    home.visit(&section, &[]).await.unwrap();
    client.until_ready().await;
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
    assert_eq!(
        auth.registrations(),
        2,
        "the registration was forgotten too"
    );
}

/// Calls until a call finds that the login is gone; the file is looked at once a second.
async fn eventually_fails(client: &Client) {
    for _ in 0..100 {
        if client.call("echo", json!({ "text": "x" })).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the forgotten login is still used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_endpoint_that_is_down_is_an_outage_and_not_a_logout() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.ready(&section).await;
    let mut events = client.mcp.events();
    auth.expire_access();
    auth.fail([TokenFault::Status(503), TokenFault::Status(500)]);
    client.append("word").await.unwrap();
    assert_eq!((auth.renewals(), server.executions("word")), (1, 1));
    assert_eq!(auth.token_requests(), 3);
    while let Ok(event) = events.try_recv() {
        assert!(
            !matches!(event.state, ServerState::NeedsAuth { .. }),
            "{event:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_without_a_challenge_is_a_lost_session_and_costs_no_renewal() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.ready(&section).await;
    server.fail(Rule::once(Fault::SessionLost(SessionLoss::Unauthorized)).on("tools/call"));
    client.append("word").await.unwrap();
    assert_eq!((auth.token_requests(), server.executions("word")), (0, 1));
    assert_eq!(server.count("initialize"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_refusal_without_a_challenge_is_blamed_on_the_token() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.ready(&section).await;
    let bare = Rule::once(Fault::status(401)).on("tools/call");
    server.fail(bare.times(2));
    client.append("word").await.unwrap();
    assert_eq!((auth.renewals(), server.executions("word")), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_names_the_command_and_the_next_login_brings_it() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.visit(&section, &[]).await.unwrap();
    let client = home.ready(&section).await;
    auth.need_scope("write");
    let error = client.append("word").await.unwrap_err().to_string();
    assert!(
        error.contains("run `hermes mcp login test --scope write`"),
        "{error}"
    );
    assert_eq!(
        client.status().state,
        ServerState::Ready,
        "other calls may be allowed"
    );
    home.visit(&section, &["write"]).await.unwrap();
    assert_eq!(home.read("test.json")["scope"], "read write");
    let mut result = client.append("word").await;
    for _ in 0..100 {
        if result.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        result = client.append("word").await;
    }
    result.unwrap();
    assert_eq!(server.executions("word"), 1);
    assert_eq!(auth.registrations(), 1, "the registration is used again");
}

/// Calls for a person who is asked to visit an address, and does with it what `visit` does.
async fn append_for<V>(
    client: &Client,
    visit: impl AsyncFn(String, oneshot::Sender<Response>) -> V,
) -> (Result<(), String>, usize) {
    let (person, mut elicitations) = Person::reachable();
    let cx = ToolContext {
        person,
        ..context()
    };
    let append = client.tool("append").await;
    let call = append.run(json!({ "word": "word" }), &cx);
    let mut visits = 0;
    let browse = async {
        while let Some(asked) = elicitations.recv().await {
            let Wanted::Visit { url } = asked.request.wanted else {
                panic!("asked for something else");
            };
            visits += 1;
            visit(url, asked.response).await;
        }
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        result = call => result,
        () = browse => unreachable!("a person waits for ever"),
    };
    let result = result.map(|_| ()).map_err(|error| error.to_string());
    (result, visits)
}

/// Logs in where the address leads. Nobody needs to say that it is done.
async fn log_in_at(url: String, _response: oneshot::Sender<Response>) {
    let mut browser = Browser::default();
    let back = browser.get(&url).await;
    browser.get(back.leads_to()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_granted_by_the_person_while_the_call_waits() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.visit(&section, &[]).await.unwrap();
    let client = home.attended(&section).await;
    auth.need_scope("write");
    let (result, visits) = append_for(&client, log_in_at).await;
    result.unwrap();
    assert_eq!((visits, server.executions("word")), (1, 1));
    assert_eq!(home.read("test.json")["scope"], "read write");
    assert_eq!(auth.registrations(), 1, "the registration is used again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_ended_is_renewed_by_the_person_while_the_call_waits() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.attended(&section).await;
    client.tools().await;
    auth.expire_access();
    auth.fail([TokenFault::InvalidGrant]);
    let (result, visits) = append_for(&client, log_in_at).await;
    result.unwrap();
    assert_eq!((visits, server.executions("word")), (1, 1));
    assert_eq!(client.status().state, ServerState::Ready);
    client.append("again").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_elsewhere_wakes_the_call_that_waits_for_one() {
    for lacks in ["a login", "a right"] {
        let (auth, server, section) = protected().await;
        let home = Home::new();
        home.visit(&section, &[]).await.unwrap();
        let client = home.attended(&section).await;
        client.tools().await;
        match lacks {
            "a right" => auth.need_scope("write"),
            _ => {
                auth.expire_access();
                auth.fail([TokenFault::InvalidGrant]);
            }
        }
        // The person does not follow the address they are given, but logs in at another terminal.
        let elsewhere = async |_, response: oneshot::Sender<Response>| {
            home.visit(&section, &["write"]).await.unwrap();
            std::mem::forget(response);
        };
        let (result, visits) = append_for(&client, elsewhere).await;
        result.unwrap();
        assert_eq!((visits, server.executions("word")), (1, 1), "{lacks}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_does_not_log_in_ends_the_call_with_the_command() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.attended(&section).await;
    client.tools().await;
    auth.expire_access();
    auth.fail([TokenFault::InvalidGrant]);
    let decline = async |_, response: oneshot::Sender<Response>| {
        let _ = response.send(Response::Declined { reason: None });
    };
    let (result, visits) = append_for(&client, decline).await;
    let error = result.unwrap_err();
    assert!(error.contains("the person declined"), "{error}");
    assert!(error.contains("run `hermes mcp login test`"), "{error}");
    assert_eq!((visits, server.executions("word")), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_nobody_makes_ends_the_call() {
    let (auth, server, mut section) = protected().await;
    section["oauth"]["timeout"] = json!(1);
    let home = Home::new();
    home.visit(&section, &[]).await.unwrap();
    let client = home.attended(&section).await;
    auth.need_scope("write");
    let agree_only = async |_, response: oneshot::Sender<Response>| {
        let values = Default::default();
        let _ = response.send(Response::Accepted { values });
    };
    let never_answer = async |_, response: oneshot::Sender<Response>| {
        let _open = response;
        std::future::pending::<()>().await;
    };
    for (result, visits) in [
        append_for(&client, agree_only).await,
        append_for(&client, never_answer).await,
    ] {
        let error = result.unwrap_err();
        assert!(error.contains("nobody logged in in time"), "{error}");
        assert_eq!((visits, server.executions("word")), (1, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_not_granted_ends_the_call_with_the_command() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.visit(&section, &[]).await.unwrap();
    let client = home.attended(&section).await;
    auth.need_scope("write");
    let decline = async |_, response: oneshot::Sender<Response>| {
        let _ = response.send(Response::Declined { reason: None });
    };
    let (result, _) = append_for(&client, decline).await;
    let error = result.unwrap_err();
    assert!(error.contains("the person declined"), "{error}");
    let command = "run `hermes mcp login test --scope write`";
    assert!(error.contains(command), "{error}");
    assert_eq!(client.status().state, ServerState::Ready);
    assert_eq!(server.executions("word"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_never_content_is_not_logged_in_at_for_ever() {
    let (_auth, server, section) = protected().await;
    let home = Home::new();
    home.visit(&section, &[]).await.unwrap();
    let client = home.attended(&section).await;
    server.fail(
        Rule::once(Fault::InsufficientScope)
            .on("tools/call")
            .until_cleared(),
    );
    let (result, visits) = append_for(&client, log_in_at).await;
    let error = result.unwrap_err();
    assert!(error.contains("a new login did not help"), "{error}");
    assert_eq!((visits, server.count("tools/call")), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_not_known_any_more_is_registered_anew() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.visit(&section, &[]).await.unwrap();
    let client = home.ready(&section).await;
    auth.expire_access();
    auth.fail([TokenFault::InvalidClient]);
    client.append("word").await.unwrap_err();
    assert!(home.tokens().join("test.client.json.bak").exists());
    home.visit(&section, &[]).await.unwrap();
    assert_eq!(auth.registrations(), 2);
    client.until_ready().await;
    client.append("word").await.unwrap();
    assert_eq!(server.executions("word"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_another_address_is_not_sent() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let stranger = FaultyMcp::start().await;
    let mut moved = section.clone();
    moved["url"] = json!(stranger.url());
    let client = home.start(&[("test", &moved)]);
    eventually("needs auth", || needs_auth(&client, "test").is_some()).await;
    assert!(stranger.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_gives_up_does_not_break_off_a_renewal() {
    let (auth, server, section) = protected().await;
    let home = Home::new();
    home.log_in(&auth, &server);
    let client = home.ready(&section).await;
    auth.expire_access();
    auth.fail([TokenFault::DelayMs(300)]);
    let call = client.append("given up");
    tokio::time::timeout(Duration::from_millis(150), call)
        .await
        .unwrap_err();
    client.mcp.shutdown().await;
    assert_eq!(auth.renewals(), 1);
    assert_eq!(home.read("test.json")["access_token"], "secret-access-2");
    home.ready(&section).await.append("word").await.unwrap();
    assert_eq!((auth.renewals(), auth.reuses()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrupt_token_file_is_set_aside_and_needs_a_login() {
    let (_auth, _server, section) = protected().await;
    let home = Home::new();
    fs::create_dir_all(home.tokens()).unwrap();
    fs::write(home.tokens().join("test.json"), "{ not json").unwrap();
    let client = home.start(&[("test", &section)]);
    eventually("needs auth", || needs_auth(&client, "test").is_some()).await;
    assert!(home.tokens().join("test.json.corrupt").exists());
    home.visit(&section, &[]).await.unwrap();
    client.until_ready().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_another_login_is_not_taken_and_the_right_one_still_is() {
    let (_auth, _server, section) = protected().await;
    let home = Home::new();
    let (server, ports) = (settings("test", &section), home.ports());
    let callback = Callback::open(&server, &ports).await.unwrap();
    let login = Login::begin(&server, &ports, callback.redirect_uri(), &[])
        .await
        .unwrap();
    let right = redirected(&login).await;
    let forged = right.replace("state=", "state=x");
    let error = login.finish(&forged).await.unwrap_err();
    assert!(error.may_try_again(), "{error}");
    login.finish(&right).await.unwrap();
    home.ready(&section).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_code_pasted_from_another_machine_is_enough() {
    let (_auth, _server, section) = protected().await;
    let home = Home::new();
    let (server, ports) = (settings("test", &section), home.ports());
    let login = Login::begin(&server, &ports, "http://127.0.0.1:9/callback", &[])
        .await
        .unwrap();
    let back = redirected(&login).await;
    let code = back
        .split("code=")
        .nth(1)
        .unwrap()
        .split('&')
        .next()
        .unwrap();
    let error = login.finish("not a code").await.unwrap_err();
    assert!(matches!(error, LoginError::NotTheAnswer), "{error}");
    // The issuer is missing from a bare code, which this server promised to send.
    let error = login.finish(code).await.unwrap_err();
    assert!(error.to_string().contains("issuer"), "{error}");
    login.finish(&back).await.unwrap();
    home.ready(&section).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_oauth_is_named_as_such() {
    let server = FaultyMcp::start().await;
    let section = json!({ "url": server.url(), "auth": "oauth" });
    let error = Home::new().visit(&section, &[]).await.unwrap_err();
    assert!(matches!(error, LoginError::Unregistered { .. }), "{error}");
    let plain = settings("test", &json!({ "url": server.url() }));
    let error = Login::begin(
        &plain,
        &Home::new().ports(),
        "http://127.0.0.1:9/callback",
        &[],
    )
    .await;
    assert!(matches!(error.err().unwrap(), LoginError::NotOAuth { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configured_client_is_not_registered_and_its_secret_stays_in_the_settings() {
    let (auth, _server, section) = protected().await;
    let home = Home::new();
    let mut section: Value = section;
    section["oauth"] = json!({ "client_id": "ours", "client_secret": "secret-client" });
    home.visit(&section, &[]).await.unwrap();
    assert_eq!(auth.registrations(), 0);
    assert!(!home.tokens().join("test.client.json").exists());
}
