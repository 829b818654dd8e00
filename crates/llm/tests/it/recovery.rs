//! What happens inside before the caller is bothered: waiting, other keys, other models.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use hermes_core::{
    BoxFuture, Delta, FinishReason, Message, ModelErrorKind, ModelNotice, ModelRequest, Reasoning,
    Role, Secret, SessionId, TurnId,
};
use hermes_core::{Model as _, Part};
use hermes_llm::{KeyLedger, KeyRefusal, ModelSettings, Protocol};
use hermes_testkit::contract::model::{Told, tell, tell_in};
use hermes_testkit::server::{Answer, Finish, NoiseKind, Request, Script, ScriptedServer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::world::{KEY, choice, client, settings};

const CHAT: Protocol = Protocol::OpenAiChat;

async fn serve(answers: impl IntoIterator<Item = Answer>) -> ScriptedServer {
    ScriptedServer::start(Script::new(answers).repeating_last()).await
}

fn hello() -> [Message; 1] {
    [Message::user("hello")]
}

fn refusal(status: u16, message: &str) -> Answer {
    Answer::status(status, json!({"error": {"message": message}}))
}

/// Settings for a first model and its fallback.
fn with_fallback(first: &ScriptedServer, second: &ScriptedServer) -> ModelSettings {
    let mut settings = settings(choice(first, CHAT, "first"));
    settings.fallbacks = vec![choice(second, CHAT, "second")];
    settings
}

/// Settings with several keys in the pool.
fn with_keys(server: &ScriptedServer, keys: &[&str]) -> ModelSettings {
    let mut settings = settings(choice(server, CHAT, "m"));
    settings.choice.api_key = None;
    let keys = keys.iter().map(|key| Secret::new(*key)).collect();
    settings.stored_keys.insert("custom".into(), keys);
    settings
}

fn keys_used(server: &ScriptedServer) -> Vec<String> {
    let key = |request: &Request| {
        request
            .header("authorization")
            .unwrap()
            .replace("Bearer ", "")
    };
    server.requests().iter().map(key).collect()
}

fn text(told: &Told) -> String {
    assert!(told.end.is_ok(), "{:?}", told.end);
    told.message.text()
}

#[tokio::test]
async fn a_busy_provider_is_asked_again() {
    let server = serve([
        refusal(529, "busy"),
        refusal(503, "busy"),
        Answer::text("hi"),
    ])
    .await;
    let told = tell(&client(&settings(choice(&server, CHAT, "m"))), &hello()).await;
    assert_eq!(text(&told), "hi");
    let attempt = |notice: &ModelNotice| match notice {
        ModelNotice::Retrying {
            attempt, reason, ..
        } => (*attempt, reason.clone()),
        other => panic!("{other:?}"),
    };
    let attempts: Vec<_> = told.notices.iter().map(attempt).collect();
    let expected = [
        (2, "busy (HTTP status 529)".into()),
        (3, "busy (HTTP status 503)".into()),
    ];
    assert_eq!(attempts, expected);
}

#[tokio::test]
async fn attempts_have_a_limit() {
    let server = serve([refusal(500, "oops")]).await;
    let told = tell(&client(&settings(choice(&server, CHAT, "m"))), &hello()).await;
    assert_eq!(told.end.unwrap_err().kind, ModelErrorKind::Overloaded);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_stated_wait_is_honoured() {
    let limited = refusal(429, "slow down").header("retry-after-ms", "120");
    let server = serve([limited, Answer::text("hi")]).await;
    let started = Instant::now();
    let told = tell(&client(&settings(choice(&server, CHAT, "m"))), &hello()).await;
    assert_eq!(text(&told), "hi");
    assert!(started.elapsed() >= Duration::from_millis(120));
    assert!(matches!(
        told.notices[0],
        ModelNotice::Retrying { wait_ms: 120, .. }
    ));
}

#[tokio::test]
async fn a_refused_key_gives_way_to_the_next() {
    for status in [401, 402] {
        let server = serve([refusal(status, "no"), Answer::text("hi")]).await;
        let client = client(&with_keys(&server, &["first-key", "second-key"]));
        let told = tell(&client, &hello()).await;
        assert_eq!(text(&told), "hi");
        assert_eq!(keys_used(&server), ["first-key", "second-key"]);
        assert!(matches!(
            told.notices[0],
            ModelNotice::CredentialRotated { .. }
        ));
        // The refused key rests.
        tell(&client, &hello()).await;
        assert_eq!(keys_used(&server)[2], "second-key");
    }
}

#[tokio::test]
async fn a_limited_key_has_a_second_chance() {
    let limited = || refusal(429, "slow down");
    let server = serve([limited(), limited(), Answer::text("hi")]).await;
    let told = tell(
        &client(&with_keys(&server, &["first-key", "second-key"])),
        &hello(),
    )
    .await;
    assert_eq!(text(&told), "hi");
    assert_eq!(keys_used(&server), ["first-key", "first-key", "second-key"]);
}

#[tokio::test]
async fn a_long_wait_goes_to_whoever_answers_sooner() {
    let limited = || refusal(429, "slow down").header("retry-after", "3600");
    let server = serve([limited(), Answer::text("hi")]).await;
    let told = tell(
        &client(&with_keys(&server, &["first-key", "second-key"])),
        &hello(),
    )
    .await;
    assert_eq!(text(&told), "hi");
    assert_eq!(keys_used(&server), ["first-key", "second-key"]);

    let (first, second) = (serve([limited()]).await, serve([Answer::text("hi")]).await);
    let told = tell(&client(&with_fallback(&first, &second)), &hello()).await;
    assert_eq!(text(&told), "hi");
    assert_eq!(first.requests().len(), 1);
}

#[tokio::test]
async fn a_wait_of_hours_is_told_instead_of_waited_out() {
    for status in [429, 503] {
        let limited = refusal(status, "slow down").header("retry-after", "100000");
        let server = serve([limited]).await;
        let client = client(&with_keys(&server, &["first-key"]));
        let messages = hello();
        let told = tokio::time::timeout(Duration::from_secs(20), tell(&client, &messages))
            .await
            .expect("it should fail at once");
        let error = told.end.unwrap_err();
        let expected = format!("asks to wait 27 h 46 min: slow down (HTTP status {status})");
        assert_eq!(error.message, expected);
        assert!(error.hint.contains("fallback_providers"), "{}", error.hint);
        assert_eq!((server.requests().len(), told.notices.len()), (1, 0));
    }
}

#[tokio::test]
async fn a_wait_of_hours_for_every_key_goes_to_the_fallback() {
    let limited = refusal(429, "slow down").header("retry-after", "100000");
    let (first, second) = (serve([limited]).await, serve([Answer::text("hi")]).await);
    let mut settings = with_keys(&first, &["first-key", "second-key"]);
    settings.fallbacks = vec![choice(&second, CHAT, "second")];
    let told = tell(&client(&settings), &hello()).await;
    assert_eq!(text(&told), "hi");
    assert_eq!(keys_used(&first), ["first-key", "second-key"]);
    assert!(matches!(
        &told.notices[..],
        [ModelNotice::CredentialRotated { .. }, ModelNotice::FellBack { reason, .. }]
            if reason.starts_with("asks to wait 27 h 46 min")
    ));
}

#[tokio::test]
async fn a_turn_is_finished_by_the_fallback_that_took_it_over() {
    let first = serve([refusal(404, "model not found"), Answer::text("first")]).await;
    let second = serve([Answer::text("second")]).await;
    let client = client(&with_fallback(&first, &second));
    let session = SessionId::from("s");
    let (turn, next) = (TurnId::from("t1"), TurnId::from("t2"));

    let told = tell_in(&client, &session, &turn, &hello()).await;
    assert_eq!(text(&told), "second");
    assert_eq!(told.end.unwrap().model.model, "second");
    assert!(
        matches!(&told.notices[..], [ModelNotice::FellBack { to, .. }] if to.model == "second")
    );
    let told = tell_in(&client, &session, &turn, &hello()).await;
    assert_eq!(text(&told), "second");
    let told = tell_in(&client, &session, &next, &hello()).await;
    assert_eq!(text(&told), "first");
}

#[tokio::test]
async fn what_another_model_can_mend_goes_to_the_fallback() {
    for (broken, requests) in [
        (refusal(401, "no"), 1),
        (refusal(400, "no such parameter"), 1),
        (refusal(529, "busy"), 2),
        (refusal(429, "slow down"), 2),
        (Answer::default().finish(Finish::ContentFilter), 1),
        (Answer::text("x").reset_after(0), 2),
    ] {
        let (first, second) = (serve([broken]).await, serve([Answer::text("hi")]).await);
        let told = tell(&client(&with_fallback(&first, &second)), &hello()).await;
        assert_eq!(text(&told), "hi");
        assert_eq!(first.requests().len(), requests);
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_the_callers_to_shorten() {
    let first = serve([refusal(400, "prompt is too long")]).await;
    let second = serve([Answer::text("hi")]).await;
    let told = tell(&client(&with_fallback(&first, &second)), &hello()).await;
    assert_eq!(told.end.unwrap_err().kind, ModelErrorKind::ContextTooLong);
    assert_eq!((first.requests().len(), second.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_key_is_never_part_of_what_is_said() {
    for answer in [
        refusal(401, &format!("Incorrect API key provided: {KEY}")),
        Answer::status(400, format!("<p>{KEY}</p>")),
        Answer::text("x").error_after(0, "authentication_error", KEY),
    ] {
        let server = serve([answer]).await;
        let told = tell(&client(&settings(choice(&server, CHAT, "m"))), &hello()).await;
        let error = told.end.unwrap_err();
        assert!(
            !format!("{error} {error:?} {:?}", told.notices).contains(KEY),
            "{error}"
        );
        assert!(error.message.contains("***"), "{error}");
    }
}

#[tokio::test]
async fn a_refused_signature_is_dropped_and_the_request_repeated() {
    let refused = refusal(400, "messages.1: Invalid `signature` in `thinking` block");
    let server = serve([refused, Answer::text("hi")]).await;
    let signed = Message {
        role: Role::Assistant,
        origin: None,
        parts: vec![
            Part::Reasoning(Reasoning {
                text: "hm".into(),
                signature: Some("custom|sig".into()),
            }),
            Part::text("so"),
        ],
    };
    let client = client(&settings(choice(
        &server,
        Protocol::Anthropic,
        "claude-sonnet-4-6",
    )));
    let told = tell(&client, &[Message::user("a"), signed, Message::user("b")]).await;
    assert_eq!(text(&told), "hi");
    let bodies: Vec<String> = server
        .requests()
        .iter()
        .map(|request| request.json.to_string())
        .collect();
    assert!(bodies[0].contains(r#""signature":"sig""#) && !bodies[1].contains("signature"));
}

#[tokio::test]
async fn a_missing_terminator_after_the_reason_is_forgiven() {
    // The reason to stop is the chunk after the text; what is cut off is `[DONE]` and the usage.
    let frames = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    );
    let url = serve_raw(frames).await;
    let mut choice = choice_at(&url);
    choice.model = Some("m".into());
    let told = tell(&client(&settings(choice)), &hello()).await;
    assert_eq!(told.end.as_ref().unwrap().reason, FinishReason::Stop);
    assert_eq!(text(&told), "hi");
}

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let client = client(&settings(choice_at(&url)));
    let (session, turn) = (SessionId::from("s"), TurnId::from("t"));
    let messages = hello();
    let mut stream = client.stream(ModelRequest {
        session: &session,
        turn: &turn,
        system: "",
        tools: &[],
        messages: &messages,
        output_tokens_max: None,
    });
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 65_536];
        let _ = socket.read(&mut request).await.unwrap();
        let chunk = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        socket
            .write_all(format!("{head}{chunk}").as_bytes())
            .await
            .unwrap();
        socket
    };
    let (mut socket, first) = tokio::join!(serving, stream.next());
    assert_eq!(first, Some(Ok(Delta::Text("hi".into()))));
    drop(stream);
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "the connection is still open");
}

fn choice_at(url: &str) -> hermes_llm::ModelChoice {
    hermes_llm::ModelChoice {
        provider: Some("custom".into()),
        model: Some("m".into()),
        base_url: Some(url.into()),
        ..Default::default()
    }
}

/// Serves one stream of exactly these bytes.
async fn serve_raw(frames: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 65_536]).unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        socket
            .write_all(format!("{head}{frames}").as_bytes())
            .unwrap();
    });
    url
}

/// A ledger in which one key rests.
#[derive(Debug)]
struct Ledger {
    resting: &'static str,
    refused: Mutex<Vec<(String, String, KeyRefusal)>>,
}

impl KeyLedger for Ledger {
    fn rest_left(&self, provider: &str, key: &Secret) -> Option<Duration> {
        assert_eq!(provider, "custom");
        (key.expose() == self.resting).then_some(Duration::from_secs(600))
    }

    fn refused<'a>(
        &'a self,
        provider: &'a str,
        key: &'a Secret,
        refusal: &'a KeyRefusal,
    ) -> BoxFuture<'a, ()> {
        let note = (provider.into(), key.expose().into(), refusal.clone());
        self.refused.lock().unwrap().push(note);
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_ledger_says_which_keys_rest_and_is_told_which_are_refused() {
    let server = serve([refusal(401, "no such key: key-bb"), Answer::text("hi")]).await;
    let ledger = Arc::new(Ledger {
        resting: "key-aa",
        refused: Mutex::default(),
    });
    let keys = with_keys(&server, &["key-aa", "key-bb", "key-cc"]);
    let client = client(&keys).with_ledger(ledger.clone());
    assert_eq!(text(&tell(&client, &hello()).await), "hi");
    assert_eq!(keys_used(&server), ["key-bb", "key-cc"]);
    let refused = ledger.refused.lock().unwrap().clone();
    let [(provider, key, refusal)] = refused.as_slice() else {
        panic!("{refused:?}");
    };
    assert_eq!((provider.as_str(), key.as_str()), ("custom", "key-bb"));
    assert_eq!(refusal.kind, ModelErrorKind::Auth);
    assert_eq!(refusal.rest, Duration::from_secs(300));
    assert_eq!(refusal.message, "no such key: *** (HTTP status 401)");
}

#[tokio::test]
async fn a_provider_that_says_how_long_is_asked_as_often_as_that_takes() {
    let limited = |status| refusal(status, "slow down").header("retry-after-ms", "20");
    let busy = [429, 503, 429, 529, 503, 429].map(limited);
    let server = serve(busy.into_iter().chain([Answer::text("hi")])).await;
    let told = tell(&client(&settings(choice(&server, CHAT, "m"))), &hello()).await;
    assert_eq!(text(&told), "hi");
    assert_eq!(server.requests().len(), 7);
}

#[tokio::test]
async fn waits_add_up_to_what_the_settings_allow() {
    let limited = refusal(429, "slow down").header("retry-after-ms", "150");
    let server = serve([limited]).await;
    let mut settings = settings(choice(&server, CHAT, "m"));
    settings.retry_max = Some(Duration::from_millis(400));
    let told = tell(&client(&settings), &hello()).await;
    let error = told.end.unwrap_err();
    assert!(error.message.starts_with("asks to wait"), "{error}");
    assert!(error.hint.contains("agent.retry_minutes"), "{}", error.hint);
    assert_eq!((server.requests().len(), told.notices.len()), (3, 2));
}

#[tokio::test]
async fn who_says_nothing_is_not_asked_again_and_a_fallback_is() {
    let silent = Answer::text("late").headers_delay(Duration::from_secs(60));
    let server = ScriptedServer::start(Script::always(silent)).await;
    let told = tell(&client(&settings(choice(&server, CHAT, "m"))), &hello()).await;
    let error = told.end.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network);
    assert!(
        error.message.contains("no answer began within 0.4 s"),
        "{error}"
    );
    assert!(
        error.hint.contains("agent.first_token_timeout"),
        "{}",
        error.hint
    );
    assert_eq!(server.requests().len(), 1);
    let second = serve([Answer::text("hi")]).await;
    let told = tell(&client(&with_fallback(&server, &second)), &hello()).await;
    assert_eq!(text(&told), "hi");
}

/// A server that sends nothing but signs of life is as good as silent.
#[tokio::test]
async fn comments_and_pings_are_no_answer() {
    let ping = || NoiseKind::Raw("event: ping\ndata: {\"type\": \"ping\"}\n\n".into());
    let comment = || NoiseKind::Comment("still here".into());
    for kind in [&ping as &dyn Fn() -> NoiseKind, &comment] {
        let answer = (0..200).fold(Answer::text("late"), |answer, _| {
            answer.noise_after(0, kind())
        });
        let answer = answer.chunk_delay(Duration::from_millis(20));
        let server = ScriptedServer::start(Script::always(answer)).await;
        let told = tell(&client(&settings(choice(&server, CHAT, "m"))), &hello()).await;
        let error = told.end.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Silent, "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}
