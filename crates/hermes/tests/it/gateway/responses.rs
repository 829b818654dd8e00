//! The Responses API, runs, and sessions.

use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use super::{Gateway, scripted, served};
use crate::setting::Setting;

fn last_request(setting: &Setting) -> String {
    let requests = setting.server.requests();
    String::from_utf8_lossy(&requests.last().unwrap().body).into_owned()
}

#[tokio::test]
async fn a_response_is_kept_and_gone_on_from() {
    let (setting, gateway) = served("a fine answer").await;
    let client = &gateway.client;
    let first = client
        .post(
            "/v1/responses",
            &json!({"model": "hermes-agent", "input": "first-words"}),
        )
        .json();
    assert_eq!(first["status"], "completed", "{first}");
    assert_eq!(first["output"][0]["content"][0]["text"], "a fine answer");
    assert_eq!(first["usage"]["total_tokens"], 15);
    let id = first["id"].as_str().unwrap();
    assert!(id.starts_with("resp_") && id.len() == 33, "{id}");
    assert_eq!(client.get(&format!("/v1/responses/{id}")).json(), first);

    let next = |words: &str, previous: &str| {
        let body = json!({"input": words, "previous_response_id": previous});
        client.post("/v1/responses", &body)
    };
    let second = next("second-words", id);
    assert!(last_request(&setting).contains("first-words"));
    // From the first one again: what came after it was not said.
    let other = next("other-words", id);
    let asked = last_request(&setting);
    assert!(
        asked.contains("first-words") && !asked.contains("second-words"),
        "{asked}"
    );
    assert_ne!(
        second.header("x-hermes-session-id"),
        other.header("x-hermes-session-id")
    );

    let deleted = client.send("DELETE", &format!("/v1/responses/{id}"), &[], None);
    assert_eq!(deleted.json()["deleted"], true);
    assert_eq!(client.get(&format!("/v1/responses/{id}")).status, 404);
    assert_eq!(next("too late", id).status, 404);
    let unkept = client
        .post("/v1/responses", &json!({"input": "x", "store": false}))
        .json();
    assert_eq!(
        client
            .get(&format!("/v1/responses/{}", unkept["id"].as_str().unwrap()))
            .status,
        404
    );
}

#[tokio::test]
async fn a_response_survives_the_gateway_and_a_conversation_has_a_name() {
    let (setting, gateway) = served("noted").await;
    let body = |words: &str| json!({"input": words, "conversation": "my talk"});
    let first = gateway
        .client
        .post("/v1/responses", &body("first-words"))
        .json();
    drop(gateway);
    let gateway = Gateway::start(&setting.hermes);
    let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
    assert_eq!(gateway.client.get(&path).json(), first);
    gateway.client.post("/v1/responses", &body("second-words"));
    assert!(last_request(&setting).contains("first-words"));
    let next = json!({"input": "third-words", "previous_response_id": first["id"]});
    assert_eq!(gateway.client.post("/v1/responses", &next).status, 200);
}

#[tokio::test]
async fn a_response_that_is_asked_for_again_has_the_same_name() {
    let (setting, gateway) = served("the one answer").await;
    let ask = |gateway: &Gateway, key: &str, body: &Value| {
        let key = [("idempotency-key", key)];
        gateway
            .client
            .send("POST", "/v1/responses", &key, Some(body))
    };
    let whole = json!({"input": "a question"});
    let first = ask(&gateway, "k-1", &whole).json();
    drop(gateway);
    let gateway = Gateway::start(&setting.hermes);
    assert_eq!(ask(&gateway, "k-1", &whole).json(), first);
    let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
    assert_eq!(gateway.client.get(&path).json(), first);
    let streamed = json!({"input": "a question", "stream": true});
    let named = || {
        let events = ask(&gateway, "k-2", &streamed).events();
        let last: Value = serde_json::from_str(&events.last().unwrap().1).unwrap();
        last["response"]["id"].clone()
    };
    let name = named();
    assert_eq!(named(), name);
    assert_ne!(name, first["id"]);
    let path = format!("/v1/responses/{}", name.as_str().unwrap());
    assert_eq!(gateway.client.get(&path).status, 200);
    assert_eq!(setting.server.requests().len(), 2);
}

#[tokio::test]
async fn a_response_that_a_crash_cut_short_has_a_name_that_is_kept() {
    let slow = Answer::text("finished after all").headers_delay(Duration::from_millis(500));
    let (setting, gateway) = scripted(Script::always(slow)).await;
    let (key, body) = ([("idempotency-key", "k")], json!({"input": "slowly"}));
    let asked = gateway
        .client
        .open("POST", "/v1/responses", &key, Some(&body));
    let deadline = Instant::now() + Duration::from_secs(10);
    while setting.server.requests().is_empty() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    gateway.running.kill_9();
    drop(asked);
    let gateway = Gateway::start(&setting.hermes);
    // It is finished before anybody asks again.
    while setting.server.requests().len() < 2 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(800));
    let again = gateway
        .client
        .send("POST", "/v1/responses", &key, Some(&body))
        .json();
    assert_eq!(
        again["output"][0]["content"][0]["text"],
        "finished after all"
    );
    let path = format!("/v1/responses/{}", again["id"].as_str().unwrap());
    assert_eq!(gateway.client.get(&path).json(), again);
}

#[tokio::test]
async fn a_header_names_the_conversation_of_a_response() {
    let (setting, gateway) = served("noted").await;
    let say = |words: &str| {
        let header = [("x-hermes-session-id", "user@example.org")];
        let body = json!({"input": words});
        gateway
            .client
            .send("POST", "/v1/responses", &header, Some(&body))
    };
    let first = say("first-words");
    assert_eq!(
        first.header("x-hermes-session-id"),
        Some("user@example.org")
    );
    say("second-words");
    assert!(last_request(&setting).contains("first-words"));
    let previous = first.json()["id"].clone();
    let header = [("x-hermes-session-id", "user@example.org")];
    for body in [
        json!({"input": "x", "previous_response_id": previous}),
        json!({"input": "x", "conversation": "another"}),
    ] {
        let refused = gateway
            .client
            .send("POST", "/v1/responses", &header, Some(&body));
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body.contains("two things"), "{refused:?}");
    }
}

#[tokio::test]
async fn the_events_of_a_response_come_in_order() {
    let script = Script::new([
        Answer::text("I will look.").also_call("c1", "search_files", json!({"pattern": "x"})),
        Answer::text("It is fine."),
    ]);
    let (_setting, gateway) = scripted(script).await;
    let body = json!({"input": "look", "stream": true});
    let answer = gateway.client.post("/v1/responses", &body);
    let events: Vec<(String, Value)> = answer
        .events()
        .into_iter()
        .map(|(name, data)| (name, serde_json::from_str(&data).unwrap()))
        .collect();
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..2], ["response.created", "response.in_progress"]);
    assert_eq!(*names.last().unwrap(), "response.completed");
    for (at, (name, data)) in events.iter().enumerate() {
        assert_eq!(data["sequence_number"], at);
        assert_eq!(data["type"], name.as_str());
    }
    let kinds = |name: &str| -> Vec<String> {
        let items = events.iter().filter(|(known, _)| known == name);
        items
            .map(|(_, data)| data["item"]["type"].as_str().unwrap().to_owned())
            .collect()
    };
    let expected = [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ];
    assert_eq!(kinds("response.output_item.added"), expected);
    assert_eq!(kinds("response.output_item.done"), expected);
    // What was told piece by piece is what stands there at the end.
    let done: Vec<&Value> = events
        .iter()
        .filter(|(name, _)| name == "response.output_item.done")
        .map(|(_, data)| &data["item"])
        .collect();
    let whole = &events.last().unwrap().1["response"]["output"];
    assert_eq!(&json!(done), whole);
    let id = events[0].1["response"]["id"].as_str().unwrap();
    let kept = gateway.client.get(&format!("/v1/responses/{id}")).json();
    assert_eq!(&kept["output"], whole);
}

fn wait_for(gateway: &Gateway, run: &str, status: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let told = gateway.client.get(&format!("/v1/runs/{run}")).json();
        if told["status"] == status {
            return told;
        }
        assert!(Instant::now() < deadline, "{told}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn a_run_is_watched_by_its_name_even_when_it_is_over() {
    let (_setting, gateway) = served("a fine answer").await;
    let begun = gateway
        .client
        .post("/v1/runs", &json!({"input": "a question"}));
    assert_eq!(begun.status, 202, "{begun:?}");
    let run = begun.json()["run_id"].as_str().unwrap().to_owned();
    let told = wait_for(&gateway, &run, "completed");
    assert_eq!(told["output"], "a fine answer");
    let events = gateway.client.get(&format!("/v1/runs/{run}/events"));
    let names: Vec<String> = events.events().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.first().unwrap(), "message.delta");
    assert_eq!(names.last().unwrap(), "run.completed");
    // One reader.
    assert_eq!(
        gateway.client.get(&format!("/v1/runs/{run}/events")).status,
        409
    );
    assert_eq!(gateway.client.get("/v1/runs/none").status, 404);
}

#[tokio::test]
async fn a_run_asks_for_consent_and_takes_the_answer() {
    let ask = || {
        Answer::call(
            "c1",
            "terminal",
            json!({"command": "rm -rf /nowhere/at/all"}),
        )
    };
    let script = Script::new([
        ask(),
        Answer::text("done"),
        ask(),
        Answer::text("left alone"),
    ]);
    let (_setting, gateway) = scripted(script).await;
    for (choice, ended) in [("once", "done"), ("deny", "left alone")] {
        let begun = gateway
            .client
            .post("/v1/runs", &json!({"input": "clean up"}))
            .json();
        let run = begun["run_id"].as_str().unwrap().to_owned();
        let waiting = wait_for(&gateway, &run, "waiting_for_approval");
        assert!(
            waiting["approvals"][0]["command"]
                .as_str()
                .unwrap()
                .contains("rm -rf")
        );
        let path = format!("/v1/runs/{run}/approval");
        assert_eq!(
            gateway
                .client
                .post(&path, &json!({"choice": "maybe"}))
                .status,
            400
        );
        let answered = gateway.client.post(&path, &json!({"choice": choice}));
        assert_eq!(answered.json()["resolved"], 1, "{answered:?}");
        assert_eq!(wait_for(&gateway, &run, "completed")["output"], ended);
        assert_eq!(
            gateway
                .client
                .post(&path, &json!({"choice": "once"}))
                .status,
            409
        );
        let events = gateway
            .client
            .get(&format!("/v1/runs/{run}/events"))
            .events();
        let has = |wanted: &str| events.iter().any(|(name, _)| name == wanted);
        assert!(
            has("approval.request") && has("approval.responded"),
            "{events:?}"
        );
    }
}

#[tokio::test]
async fn a_run_with_a_key_is_begun_once_and_keeps_its_name() {
    let (setting, gateway) = served("the one answer").await;
    let begin = |gateway: &Gateway, text: &str| {
        let key = [("idempotency-key", "run-1")];
        let body = json!({"input": text});
        gateway.client.send("POST", "/v1/runs", &key, Some(&body))
    };
    let run = begin(&gateway, "a question").json()["run_id"].clone();
    let again = begin(&gateway, "a question");
    assert_eq!((again.status, &again.json()["run_id"]), (202, &run));
    assert_eq!(begin(&gateway, "another question").status, 409);
    wait_for(&gateway, run.as_str().unwrap(), "completed");
    drop(gateway);
    let gateway = Gateway::start(&setting.hermes);
    assert_eq!(begin(&gateway, "a question").json()["run_id"], run);
    let told = wait_for(&gateway, run.as_str().unwrap(), "completed");
    assert_eq!(told["output"], "the one answer");
    assert_eq!(setting.server.requests().len(), 1);
}

#[tokio::test]
async fn what_a_run_came_to_is_known_after_a_restart() {
    let (setting, gateway) = served("a fine answer").await;
    let body = json!({"input": "a question", "session_id": "user@example.org"});
    let begun = gateway.client.post("/v1/runs", &body).json();
    let run = begun["run_id"].as_str().unwrap().to_owned();
    let before = wait_for(&gateway, &run, "completed");
    drop(gateway);
    let gateway = Gateway::start(&setting.hermes);
    let after = gateway.client.get(&format!("/v1/runs/{run}"));
    assert_eq!((after.status, after.json()), (200, before));
    let events = gateway.client.get(&format!("/v1/runs/{run}/events"));
    let names: Vec<String> = events.events().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["message.delta", "run.completed"]);
    let stopped = gateway
        .client
        .post(&format!("/v1/runs/{run}/stop"), &json!({}));
    assert_eq!(stopped.json()["status"], "completed");
    let path = format!("/v1/runs/{run}/approval");
    assert_eq!(
        gateway
            .client
            .post(&path, &json!({"choice": "once"}))
            .status,
        409
    );
}

#[tokio::test]
async fn a_run_that_a_crash_cut_short_goes_on_under_its_name() {
    let script = Script::default()
        .when(
            "slowly",
            [Answer::text("finished after all").headers_delay(Duration::from_millis(400))],
        )
        .by_step();
    let (setting, gateway) = scripted(script).await;
    let begun = gateway.client.post("/v1/runs", &json!({"input": "slowly"}));
    let run = begun.json()["run_id"].as_str().unwrap().to_owned();
    gateway.running.kill_9();
    let gateway = Gateway::start(&setting.hermes);
    let told = wait_for(&gateway, &run, "completed");
    assert_eq!(told["output"], "finished after all");
}

#[tokio::test]
async fn what_is_said_in_a_session_with_a_key_is_answered_once() {
    let (setting, gateway) = served("the one answer").await;
    gateway
        .client
        .post("/api/sessions", &json!({"id": "diary"}));
    for (key, path, requests) in [("a", "chat", 1), ("b", "chat/stream", 2)] {
        let say = || {
            let path = format!("/api/sessions/diary/{path}");
            let body = json!({"message": "dear diary"});
            let said = gateway
                .client
                .send("POST", &path, &[("idempotency-key", key)], Some(&body));
            assert_eq!(said.status, 200, "{said:?}");
            assert!(said.body.contains("the one answer"), "{said:?}");
        };
        say();
        say();
        assert_eq!(setting.server.requests().len(), requests);
    }
    let key = [("idempotency-key", "a")];
    let body = json!({"message": "another"});
    let reused = gateway
        .client
        .send("POST", "/api/sessions/diary/chat", &key, Some(&body));
    assert_eq!(reused.status, 409);
}

#[tokio::test]
async fn a_run_is_stopped() {
    let slow = Answer::text("x").headers_delay(Duration::from_secs(30));
    let (_setting, gateway) = scripted(Script::always(slow)).await;
    let begun = gateway
        .client
        .post("/v1/runs", &json!({"input": "slowly"}))
        .json();
    let run = begun["run_id"].as_str().unwrap().to_owned();
    let stopped = gateway
        .client
        .post(&format!("/v1/runs/{run}/stop"), &json!({}));
    assert_eq!(stopped.status, 200, "{stopped:?}");
    wait_for(&gateway, &run, "cancelled");
}

#[tokio::test]
async fn sessions_are_made_read_named_copied_and_deleted() {
    let (_setting, gateway) = served("a fine answer").await;
    let client = &gateway.client;
    let made = client.post(
        "/api/sessions",
        &json!({"id": "diary", "title": "My diary"}),
    );
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(
        client.post("/api/sessions", &json!({"id": "diary"})).json()["error"]["code"],
        "session_exists"
    );
    assert_eq!(
        client.get("/api/sessions/diary").json()["session"]["message_count"],
        0
    );
    let said = client.post(
        "/api/sessions/diary/chat",
        &json!({"message": "dear diary"}),
    );
    assert_eq!(
        said.json()["message"]["content"],
        "a fine answer",
        "{said:?}"
    );
    let session = client.get("/api/sessions/diary").json();
    assert_eq!(session["session"]["title"], "My diary");
    assert_eq!(session["session"]["source"], "api_server");
    let streamed = client.post(
        "/api/sessions/diary/chat/stream",
        &json!({"message": "more"}),
    );
    let names: Vec<String> = streamed
        .events()
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names[..3],
        ["run.started", "message.started", "assistant.delta"]
    );
    assert_eq!(
        names[names.len() - 3..],
        ["assistant.completed", "run.completed", "done"]
    );
    let messages = client.get("/api/sessions/diary/messages").json();
    let said: Vec<&str> = messages["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["content"].as_str().unwrap())
        .collect();
    assert_eq!(
        said,
        ["dear diary", "a fine answer", "more", "a fine answer"]
    );

    let renamed = client.send(
        "PATCH",
        "/api/sessions/diary",
        &[],
        Some(&json!({"title": "Old diary"})),
    );
    assert_eq!(renamed.json()["session"]["title"], "Old diary");
    let nothing = client.send("PATCH", "/api/sessions/diary", &[], Some(&json!({})));
    assert_eq!(nothing.status, 400);
    let end = json!({"end_reason": "user_exit"});
    let ended = client.send("PATCH", "/api/sessions/diary", &[], Some(&end));
    assert_eq!(ended.status, 200, "{ended:?}");
    let reason = || client.get("/api/sessions/diary").json()["session"]["end_reason"].clone();
    assert_eq!(reason(), "user_exit");
    client.post("/api/sessions/diary/chat", &json!({"message": "one more"}));
    assert_eq!(reason(), Value::Null, "it goes on");
    let fork = client.post("/api/sessions/diary/fork", &json!({})).json();
    let fork = fork["session"]["id"].as_str().unwrap().to_owned();
    client.post(
        &format!("/api/sessions/{fork}/chat"),
        &json!({"message": "another way"}),
    );
    assert_eq!(
        client.get("/api/sessions/diary").json()["session"]["message_count"],
        6
    );
    let listed = client.get("/api/sessions?limit=1").json();
    assert_eq!(
        (
            listed["data"].as_array().unwrap().len(),
            &listed["has_more"]
        ),
        (1, &json!(true))
    );

    let deleted = client.send("DELETE", "/api/sessions/diary", &[], None);
    assert_eq!(deleted.status, 200, "{deleted:?}");
    for path in ["/api/sessions/diary", "/api/sessions/diary/messages"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    assert_eq!(
        client
            .post("/api/sessions/diary/chat", &json!({"message": "x"}))
            .status,
        404
    );
    assert_eq!(
        client
            .send("DELETE", "/api/sessions/diary", &[], None)
            .status,
        404
    );
}
