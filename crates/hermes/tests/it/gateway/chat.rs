//! Chat completions.

use std::io::Read as _;
use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use super::client;
use super::{Gateway, scripted, served};
use crate::setting::Setting;

const SESSION: &str = "x-hermes-session-id";

fn ask(text: &str) -> Value {
    json!({"model": "hermes-agent", "messages": [{"role": "user", "content": text}]})
}

fn streamed(text: &str) -> Value {
    json!({"model": "hermes-agent", "stream": true, "messages": [{"role": "user", "content": text}]})
}

/// What the model was asked last.
fn last_request(setting: &Setting) -> String {
    let requests = setting.server.requests();
    String::from_utf8_lossy(&requests.last().unwrap().body).into_owned()
}

#[tokio::test]
async fn an_answer_comes_whole_or_in_pieces() {
    let (_setting, gateway) = served("a fine answer").await;
    let whole = gateway.client.chat(&ask("a question"));
    assert_eq!(whole.status, 200, "{whole:?}");
    let body = whole.json();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["choices"][0]["message"]["content"], "a fine answer");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["total_tokens"], 15);
    assert_eq!(whole.header("x-hermes-completed"), Some("true"));
    assert_eq!(body["hermes"]["session_id"].as_str(), whole.header(SESSION));

    let pieces = gateway.client.chat(&streamed("a question"));
    assert_eq!(
        pieces.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    assert_eq!(pieces.content(), "a fine answer");
    let last = pieces.last_chunk();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["usage"]["total_tokens"], 15);
    assert_eq!(
        last["hermes"]["session_id"].as_str(),
        pieces.header(SESSION)
    );
    assert_eq!(pieces.events().last().unwrap().1, "[DONE]");
}

#[tokio::test]
async fn a_named_conversation_goes_on_under_its_name() {
    let (setting, gateway) = served("noted").await;
    for name in ["my-talk", "user@example.org"] {
        for (turn, body) in [ask("turn-one"), streamed("turn-two"), ask("turn-three")]
            .iter()
            .enumerate()
        {
            let answer = gateway.client.chat_with(&[(SESSION, name)], body);
            assert_eq!(answer.header(SESSION), Some(name), "{answer:?}");
            let seen = last_request(&setting);
            assert_eq!(seen.contains("turn-three"), turn == 2);
            assert!(seen.contains("turn-one"), "{seen}");
        }
    }
    // What the client says was said counts for nothing then.
    let lie = json!({"messages": [
        {"role": "user", "content": "one"}, {"role": "assistant", "content": "a lie"}, {"role": "user", "content": "four"},
    ]});
    gateway.client.chat_with(&[(SESSION, "my-talk")], &lie);
    let seen = last_request(&setting);
    assert!(
        seen.contains("turn-three") && !seen.contains("a lie"),
        "{seen}"
    );
}

#[tokio::test]
async fn a_conversation_survives_the_gateway() {
    let (setting, gateway) = served("noted").await;
    gateway
        .client
        .chat_with(&[(SESSION, "kept")], &ask("before the restart"));
    drop(gateway);
    let gateway = Gateway::start(&setting.hermes);
    gateway
        .client
        .chat_with(&[(SESSION, "kept")], &ask("after it"));
    let seen = last_request(&setting);
    assert!(seen.contains("before the restart"), "{seen}");
}

#[tokio::test]
async fn who_names_none_is_known_by_what_was_said() {
    let (setting, gateway) = served("indeed").await;
    let system = json!({"role": "system", "content": "speak like a pirate"});
    let user = |text: &str| json!({"role": "user", "content": text});
    let assistant = |text: &str| json!({"role": "assistant", "content": text});
    let chat = |messages: Value| gateway.client.chat(&json!({"messages": messages}));
    let first = chat(json!([system, user("hi")]));
    let seen = last_request(&setting);
    assert!(seen.contains("speak like a pirate"), "{seen}");
    let second = chat(json!([
        system,
        user("hi"),
        assistant("indeed"),
        user("go on")
    ]));
    assert_eq!(first.header(SESSION), second.header(SESSION));
    // The same beginning again is another conversation, and so is what was changed.
    let other = chat(json!([system, user("hi")]));
    assert_ne!(first.header(SESSION), other.header(SESSION));
    let changed = chat(json!([
        system,
        user("hi"),
        assistant("changed"),
        user("go on")
    ]));
    assert_ne!(first.header(SESSION), changed.header(SESSION));
    let seen = last_request(&setting);
    assert!(
        seen.contains("changed") && seen.contains("pirate"),
        "{seen}"
    );
}

#[tokio::test]
async fn tools_are_seen_at_work() {
    let script = Script::new([
        Answer::text("I will look.").also_call("c1", "search_files", json!({"pattern": "x"})),
        Answer::text("It is fine."),
        Answer::text("I will look.").also_call("c1", "search_files", json!({"pattern": "x"})),
        Answer::text("It is fine."),
    ]);
    let (_setting, gateway) = scripted(script).await;
    let pieces = gateway.client.chat(&streamed("look"));
    let events = pieces.events();
    let progress: Vec<Value> = events
        .iter()
        .filter(|(name, _)| name == "hermes.tool.progress")
        .map(|(_, data)| serde_json::from_str(data).unwrap())
        .collect();
    let statuses: Vec<_> = progress
        .iter()
        .map(|one| one["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["running", "completed"], "{pieces:?}");
    assert_eq!(progress[0]["toolCallId"], progress[1]["toolCallId"]);
    assert_eq!(pieces.content(), "I will look.\n\nIt is fine.");
    let whole = gateway.client.chat(&ask("look"));
    assert_eq!(
        whole.json()["choices"][0]["message"]["content"],
        "It is fine."
    );
    assert_eq!(whole.json()["hermes"]["tool_calls"], 1);
}

#[tokio::test]
async fn a_model_that_fails_is_an_error_in_words() {
    let (_setting, gateway) = scripted(Script::always(Answer::status(401, "no"))).await;
    let whole = gateway.client.chat(&ask("a question"));
    assert_eq!(whole.status, 502, "{whole:?}");
    assert_eq!(whole.json()["error"]["code"], "agent_incomplete");
    assert_eq!(whole.header("x-hermes-completed"), Some("false"));
    assert!(whole.header("x-hermes-error").is_some());
    // What it did on the way is done: clients must not ask again by themselves.
    assert_eq!(whole.header("x-should-retry"), Some("false"));
    let pieces = gateway.client.chat(&streamed("a question"));
    assert_eq!(pieces.last_chunk()["error"]["code"], "agent_incomplete");
}

#[tokio::test]
async fn a_key_is_answered_once() {
    let (setting, gateway) = served("the one answer").await;
    let key = [("idempotency-key", "k-1")];
    let first = gateway.client.chat_with(&key, &ask("a question")).json();
    let again = gateway.client.chat_with(&key, &ask("a question")).json();
    assert_eq!(first["choices"], again["choices"]);
    assert_eq!(first["hermes"]["session_id"], again["hermes"]["session_id"]);
    assert_eq!(first["id"], again["id"]);
    let unnamed = gateway.client.chat(&ask("a question")).json();
    assert_ne!(first["id"], unnamed["id"]);
    let key = [("idempotency-key", "k-2")];
    let first = gateway.client.chat_with(&key, &streamed("a question"));
    let again = gateway.client.chat_with(&key, &streamed("a question"));
    assert_eq!(first.content(), again.content());
    assert_eq!(first.last_chunk()["id"], again.last_chunk()["id"]);
    assert_eq!(setting.server.requests().len(), 3);
    let other = gateway.client.chat_with(&key, &ask("another question"));
    assert_eq!(other.status, 409);
    assert_eq!(other.json()["error"]["code"], "idempotency_key_reused");
    // Also after a restart.
    drop(gateway);
    let gateway = Gateway::start(&setting.hermes);
    let again = gateway.client.chat_with(&key, &streamed("a question"));
    assert_eq!(again.content(), "the one answer");
    assert_eq!(setting.server.requests().len(), 3);
}

/// Issue 16938 of the known program: after a compaction the client's id meant a conversation that had ended.
#[tokio::test]
async fn the_name_of_a_conversation_outlives_its_compactions() {
    let script = Script::default()
        .when(
            "Write the summary now",
            [Answer::text("## Goal\nlisten\n## State\nfine weather\n")],
        )
        .when("Day", [Answer::text("noted")])
        .by_step();
    let setting = Setting::with(script, "  context_length: 8192\n").await;
    let mut gateway = Gateway::start(&setting.hermes);
    let first = gateway
        .client
        .chat(&streamed("Day one, the sun rose over aardvark hill."));
    let name = first.header(SESSION).unwrap().to_owned();
    let mut forgotten = 0;
    for day in 2..16 {
        let words = format!("Day {day}. {}", "The weather was fine again. ".repeat(90));
        let body = if day % 2 == 0 {
            streamed(&words)
        } else {
            ask(&words)
        };
        let answer = gateway.client.chat_with(&[(SESSION, &name)], &body);
        assert_eq!(answer.header(SESSION), Some(name.as_str()), "{answer:?}");
        let told = if day % 2 == 0 {
            answer.last_chunk()
        } else {
            answer.json()
        };
        assert_eq!(told["hermes"]["session_id"], name.as_str());
        let request = last_request(&setting);
        assert!(request.contains(&format!("Day {day}.")));
        forgotten += usize::from(!request.contains("aardvark"));
        if day == 12 {
            gateway = Gateway::start(&setting.hermes);
        }
    }
    assert!(forgotten >= 2, "it was never made shorter");
    // All of it is one conversation.
    let listed = setting.run(&["sessions", "list", "--json"]);
    assert_eq!(listed.stdout.matches(&name).count(), 1, "{listed:?}");
}

#[tokio::test]
async fn who_asks_again_while_it_is_being_answered_gets_the_same_answer() {
    let slow = Answer::text("the one answer").headers_delay(Duration::from_millis(500));
    let (setting, gateway) = scripted(Script::always(slow)).await;
    let key = [("idempotency-key", "both")];
    let open = |body: &Value| {
        let client = &gateway.client;
        client.open("POST", "/v1/chat/completions", &key, Some(body))
    };
    let streams: Vec<_> = (0..3).map(|_| open(&streamed("a question"))).collect();
    let answers: Vec<_> = streams.into_iter().map(client::read).collect();
    for answer in &answers {
        assert_eq!(answer.content(), "the one answer", "{answer:?}");
        assert_eq!(answer.header(SESSION), answers[0].header(SESSION));
    }
    assert_eq!(setting.server.requests().len(), 1);
}

#[tokio::test]
async fn after_a_crash_a_key_is_still_answered_once() {
    let script = Script::default()
        .when(
            "slowly",
            [Answer::text("the one answer").headers_delay(Duration::from_millis(700))],
        )
        .by_step();
    let (setting, gateway) = scripted(script).await;
    let key = [("idempotency-key", "crash")];
    let stream = gateway
        .client
        .open("POST", "/v1/chat/completions", &key, Some(&ask("slowly")));
    let deadline = Instant::now() + Duration::from_secs(10);
    while setting.server.requests().is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    gateway.running.kill_9();
    drop(stream);
    let gateway = Gateway::start(&setting.hermes);
    let answer = gateway.client.chat_with(&key, &ask("slowly"));
    assert_eq!(
        answer.json()["choices"][0]["message"]["content"],
        "the one answer",
        "{answer:?}"
    );
    let again = gateway.client.chat_with(&key, &ask("slowly"));
    assert_eq!(answer.json()["choices"], again.json()["choices"]);
    // The turn that was cut short was asked again, and nothing else was.
    assert_eq!(setting.server.requests().len(), 2);
    let listed = setting.run(&["sessions", "list", "--json"]);
    let sessions: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(sessions.len(), 1, "{listed:?}");
}

#[tokio::test]
async fn what_a_crash_cut_short_is_finished_by_the_next_gateway() {
    let script = Script::default()
        .when(
            "slowly",
            [Answer::text("finished after all").headers_delay(Duration::from_millis(400))],
        )
        .by_step();
    let (setting, gateway) = scripted(script).await;
    let headers = [(SESSION, "cut-short")];
    let client = &gateway.client;
    let stream = client.open(
        "POST",
        "/v1/chat/completions",
        &headers,
        Some(&ask("slowly")),
    );
    let deadline = Instant::now() + Duration::from_secs(10);
    while setting.server.requests().is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    gateway.running.kill_9();
    drop(stream);
    let _gateway = Gateway::start(&setting.hermes);
    while !setting
        .run(&["sessions", "show", "cut-short"])
        .stdout
        .contains("finished after all")
    {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn a_client_that_goes_stops_the_turn_or_leaves_it_as_configured() {
    let mut lengths = Vec::new();
    for word in ["interrupt", "detach"] {
        let answer = Answer::text_chunks(40).chunk_delay(Duration::from_millis(50));
        let more = format!("platforms:\n  api_server: {{on_disconnect: {word}}}\n");
        let setting = Setting::with(Script::always(answer), &more).await;
        let gateway = Gateway::start(&setting.hermes);
        let headers = [(SESSION, "left")];
        let client = &gateway.client;
        let mut stream = client.open(
            "POST",
            "/v1/chat/completions",
            &headers,
            Some(&streamed("go")),
        );
        let mut some = [0; 2048];
        let _ = stream.read(&mut some).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        drop(stream);
        // The conversation goes on in either case, once the turn has ended.
        let next = client.chat_with(&headers, &ask("again"));
        assert_eq!(next.status, 200, "{next:?}");
        lengths.push(setting.run(&["sessions", "show", "left"]).stdout.len());
    }
    assert!(lengths[0] + 100 < lengths[1], "{lengths:?}");
}

#[tokio::test]
async fn too_many_at_a_time_are_told_to_come_back() {
    let more = "gateway:\n  api_server: {max_concurrent_runs: 2}\n";
    let slow = Answer::text("x").headers_delay(Duration::from_millis(600));
    let setting = Setting::with(Script::always(slow), more).await;
    let gateway = Gateway::start(&setting.hermes);
    let open = || {
        gateway
            .client
            .open("POST", "/v1/chat/completions", &[], Some(&ask("slowly")))
    };
    let streams = [open(), open()];
    std::thread::sleep(Duration::from_millis(200));
    let refused = gateway.client.chat(&ask("me too"));
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.json()["error"]["type"], "rate_limit_error");
    for stream in streams {
        assert_eq!(client::read(stream).status, 200);
    }
    assert_eq!(gateway.client.chat(&ask("now")).status, 200);
    let metrics = gateway.client.get("/metrics").body;
    assert!(metrics.contains("hermes_inbox_waiting 0"), "{metrics}");
    assert!(
        metrics.contains("hermes_turns_total{end=\"finished\"} 3"),
        "{metrics}"
    );
}

#[tokio::test]
async fn instructions_that_change_later_are_told_once() {
    let (setting, gateway) = served("noted").await;
    let with = |system: &str| {
        let body = json!({"messages": [
            {"role": "system", "content": system}, {"role": "user", "content": "hi"},
        ]});
        gateway.client.chat_with(&[(SESSION, "told")], &body);
        last_request(&setting).matches(system).count()
    };
    assert_eq!(with("speak like a pirate"), 1);
    assert_eq!(with("speak like a pirate"), 1, "it stands in the prompt");
    assert_eq!(with("speak like a king"), 1, "it came as a message");
    assert_eq!(with("speak like a king"), 1);
}

/// A gateway in which so many turns may run; what is said `slowly` takes a while.
async fn with_places(count: usize) -> (Setting, Gateway) {
    let slow = Answer::text("at last").headers_delay(Duration::from_millis(1_500));
    let script = Script::default()
        .when("slowly", [slow])
        .turn([Answer::text("indeed")])
        .by_step();
    let more = format!("platforms:\n  api_server: {{max_concurrent_runs: {count}}}\n");
    let setting = Setting::with(script, &more).await;
    let gateway = Gateway::start(&setting.hermes);
    (setting, gateway)
}

fn say_slowly(gateway: &Gateway, session: &str) -> std::net::TcpStream {
    let (path, headers) = ("/v1/chat/completions", [(SESSION, session)]);
    let client = &gateway.client;
    client.open("POST", path, &headers, Some(&ask("slowly")))
}

fn wait_for_requests(setting: &Setting, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while setting.server.requests().len() < count {
        assert!(Instant::now() < deadline, "the model was not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn who_was_told_to_come_back_goes_on_with_the_conversation() {
    let (setting, gateway) = with_places(1).await;
    let first = gateway.client.chat(&ask("hi"));
    let slow = say_slowly(&gateway, "another");
    wait_for_requests(&setting, 2);
    let go_on = json!({"messages": [
        {"role": "user", "content": "hi"}, {"role": "assistant", "content": "indeed"}, {"role": "user", "content": "go on"},
    ]});
    assert_eq!(gateway.client.chat(&go_on).status, 429);
    assert_eq!(client::read(slow).status, 200);
    let second = gateway.client.chat(&go_on);
    assert_eq!(second.status, 200, "{second:?}");
    assert_eq!(first.header(SESSION), second.header(SESSION));
}

#[tokio::test]
async fn who_waits_in_one_conversation_keeps_no_place_from_others() {
    let (setting, gateway) = with_places(2).await;
    let busy: Vec<_> = (0..4).map(|_| say_slowly(&gateway, "busy")).collect();
    wait_for_requests(&setting, 1);
    std::thread::sleep(Duration::from_millis(200));
    let other = gateway.client.chat(&ask("and I?"));
    assert_eq!(other.status, 200, "{other:?}");
    for stream in busy {
        assert_eq!(client::read(stream).status, 200);
    }
}

#[tokio::test]
async fn not_too_many_wait_in_one_conversation() {
    let (setting, gateway) = with_places(2).await;
    let first = say_slowly(&gateway, "busy");
    wait_for_requests(&setting, 1);
    let waiting: Vec<_> = (0..16).map(|_| say_slowly(&gateway, "busy")).collect();
    std::thread::sleep(Duration::from_millis(300));
    let refused = gateway
        .client
        .chat_with(&[(SESSION, "busy")], &ask("slowly"));
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(
        refused.body.contains("wait in this conversation"),
        "{refused:?}"
    );
    // Those who go before it is their turn have said nothing.
    drop(waiting);
    assert_eq!(client::read(first).status, 200);
    let last = gateway.client.chat_with(&[(SESSION, "busy")], &ask("hi"));
    assert_eq!(last.status, 200, "{last:?}");
    assert_eq!(setting.server.requests().len(), 2);
}
