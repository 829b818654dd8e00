//! Events of other programs, at a real gateway.

use std::io::Write as _;
use std::time::{Duration, Instant};

use hermes_testkit::process::Running;
use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use super::client::{Client, Response};
use super::peers::{peer, run, script_file};
use crate::setting::Setting;

const SECRET: &str = "a-webhook-secret";

/// A home with routes, and a gateway that takes events.
struct Hooks {
    setting: Setting,
    running: Option<Running>,
    client: Client,
}

const ROUTES: &str = r#"
platforms:
  webhook:
    enabled: true
    host: 127.0.0.1
    port: 0
    secret: a-webhook-secret
    routes:
      reviews:
        events: [pull_request]
        prompt: "Review {pull_request.title} by {sender}"
        filters: {action: [opened, reopened]}
      plain: {prompt: "It says {text}"}
      notify: {prompt: "note: {text}", deliver_only: true}
      nowhere: {prompt: "note: {text}", deliver_only: true, deliver: telegram, deliver_extra: {chat_id: 1}}
      off: {enabled: false}
      svix: {secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
      anybody: {secret: INSECURE_NO_AUTH, prompt: "hi"}
      sifted: {script: sift.py, prompt: "It is about {topic}"}
      broken: {script: broken.sh, prompt: "x"}
      missing: {script: ../config.yaml, prompt: "x"}
      commenting: {deliver: github_comment, prompt: "Review it"}
      Wrong Name: {prompt: "x"}
"#;

/// Drops what is dull, puts into words what is plain, and changes everything else.
const SIFT: &str = r#"
import json, sys
event = json.load(sys.stdin)
if event["kind"] == "dull":
    sys.exit(0)
if event["kind"] == "plain":
    print("Look at " + event["text"])
else:
    print(json.dumps({"topic": event["text"].upper()}))
"#;

impl Hooks {
    async fn start(script: Script) -> Self {
        let setting = Setting::with(script, ROUTES).await;
        let (running, client) = Self::gateway(&setting);
        Self {
            setting,
            running: Some(running),
            client,
        }
    }

    fn gateway(setting: &Setting) -> (Running, Client) {
        let running = setting.hermes.clone().args(["gateway", "run"]).spawn();
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let told = running.stdout();
            if let Some((_, rest)) = told.split_once("webhooks on ") {
                let url = rest.split_whitespace().next().unwrap();
                let client = Client::new(url, "none");
                return (running, client);
            }
            assert!(Instant::now() < deadline, "{told}{}", running.stderr());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn restart(&mut self, how: impl FnOnce(Running)) {
        how(self.running.take().unwrap());
        let (running, client) = Self::gateway(&self.setting);
        self.running = Some(running);
        self.client = client;
    }

    fn send(&self, route: &str, headers: &[(&str, &str)], body: &Value) -> Response {
        self.client
            .send("POST", &format!("/webhooks/{route}"), headers, Some(body))
    }

    /// Sends with the token of the secret, under an id.
    fn with_token(&self, route: &str, id: &str, body: &Value) -> Response {
        self.send(
            route,
            &[("x-gitlab-token", SECRET), ("x-request-id", id)],
            body,
        )
    }

    /// What the model was asked, once it was asked so often.
    fn asked(&self, times: usize) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let requests = self.setting.server.requests();
            if requests.len() >= times {
                return requests
                    .iter()
                    .map(|one| String::from_utf8_lossy(&one.body).into_owned())
                    .collect();
            }
            assert!(Instant::now() < deadline, "asked {} times", requests.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn log(&self) -> String {
        self.setting.run(&["logs", "-n", "1000"]).stdout
    }
}

fn status(response: &Response) -> (u16, String) {
    let body = response.json();
    let word = body["status"]
        .as_str()
        .or_else(|| body["error"]["code"].as_str());
    (response.status, word.unwrap_or_default().to_owned())
}

#[tokio::test]
async fn an_event_begins_a_conversation_and_its_answer_is_delivered() {
    let hooks = Hooks::start(Script::always(Answer::text("looks good to me"))).await;
    let event = json!({"event_type": "pull_request", "action": "opened", "pull_request": {"title": "fix {sender}"}, "sender": "eve"});
    let taken = hooks.with_token("reviews", "d-1", &event);
    assert_eq!(status(&taken), (202, "accepted".into()), "{taken:?}");
    assert_eq!(taken.json()["delivery_id"], "d-1");
    let asked = hooks.asked(1);
    assert!(asked[0].contains("Review fix {sender} by eve"), "{asked:?}");
    assert!(
        asked[0].contains("written by others"),
        "strangers' words are named as such"
    );
    let deadline = Instant::now() + Duration::from_secs(5);
    while !hooks.log().contains("looks good to me") {
        assert!(Instant::now() < deadline, "{}", hooks.log());
    }
    let listed = hooks.setting.run(&["sessions", "list", "--json"]).stdout;
    assert!(listed.contains("webhook-reviews-"), "{listed}");

    let closed = json!({"event_type": "pull_request", "action": "closed"});
    assert_eq!(
        status(&hooks.with_token("reviews", "d-2", &closed)),
        (200, "ignored".into())
    );
    let push = json!({"event_type": "push"});
    assert_eq!(
        status(&hooks.with_token("reviews", "d-3", &push)),
        (200, "ignored".into())
    );
    assert_eq!(hooks.asked(1).len(), 1);
}

#[tokio::test]
async fn a_route_that_cannot_be_used_is_left_out_and_the_others_serve() {
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    let told = hooks.running.as_ref().unwrap().stdout();
    assert!(told.contains("`commenting` is left out"), "{told}");
    let listed = hooks.setting.run(&["webhook", "list"]);
    for phrase in [
        "`commenting` is left out",
        "with `gh`",
        "`Wrong Name` is left out",
    ] {
        assert!(listed.stderr.contains(phrase), "{listed:?}");
    }
    let state = hooks.setting.run(&["gateway", "status"]).stdout;
    assert!(state.contains("`commenting` is left out"), "{state}");
    assert_eq!(hooks.with_token("commenting", "1", &json!({})).status, 404);
    assert_eq!(hooks.with_token("plain", "1", &json!({})).status, 202);
    let subscribed =
        hooks
            .setting
            .run(&["webhook", "subscribe", "r", "--deliver", "github_comment"]);
    assert_eq!(subscribed.code, Some(2), "{subscribed:?}");
    let subscribed = hooks
        .setting
        .run(&["webhook", "subscribe", "r", "--script", "none.py"]);
    assert_eq!(subscribed.code, Some(2), "{subscribed:?}");
}

#[tokio::test]
async fn the_script_of_a_route_drops_and_changes_events() {
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    let folder = hooks.setting.hermes.home().join("scripts");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("sift.py"), SIFT).unwrap();
    std::fs::write(folder.join("broken.sh"), "echo a secret of ours; exit 3").unwrap();
    let send = |id: &str, kind: &str| {
        let event = json!({"kind": kind, "text": "the disk"});
        status(&hooks.with_token("sifted", id, &event))
    };
    assert_eq!(send("1", "dull"), (200, "ignored".into()));
    assert_eq!(send("1", "dull"), (200, "duplicate".into()));
    assert_eq!(send("2", "plain"), (202, "accepted".into()));
    assert!(hooks.asked(1)[0].contains("Look at the disk"));
    assert_eq!(send("3", "other"), (202, "accepted".into()));
    assert!(hooks.asked(2)[1].contains("It is about THE DISK"));
    for route in ["broken", "missing"] {
        let failed = hooks.with_token(route, "4", &json!({}));
        assert_eq!(status(&failed), (500, "script_failed".into()));
        assert!(!failed.body.contains("secret"), "{failed:?}");
    }
    assert!(hooks.log().contains("ended with code 3"), "{}", hooks.log());
    assert_eq!(hooks.asked(2).len(), 2);
}

#[tokio::test]
async fn strangers_and_broken_events_are_refused() {
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    let event = json!({"text": "x"});
    let forged = format!("sha256={}", "0".repeat(64));
    for headers in [
        &[][..],
        &[("x-gitlab-token", "wrong")],
        &[("x-hub-signature-256", forged.as_str())],
        &[("x-webhook-signature", "zz")],
    ] {
        assert_eq!(
            status(&hooks.send("plain", headers, &event)),
            (401, "invalid_signature".into())
        );
    }
    assert_eq!(hooks.send("unknown", &[], &event).status, 404);
    assert_eq!(
        status(&hooks.with_token("off", "1", &event)),
        (403, "route_disabled".into())
    );
    assert_eq!(hooks.client.get("/webhooks/plain").status, 405);
    assert_eq!(hooks.client.get("/health").status, 200);
    let large = json!({"text": "y".repeat(1024 * 1024)});
    assert_eq!(hooks.with_token("plain", "2", &large).status, 413);
    assert_eq!(
        status(&hooks.send("anybody", &[("x-request-id", "3")], &event)),
        (202, "accepted".into())
    );
}

#[tokio::test]
async fn an_event_that_comes_again_counts_once_also_after_a_restart() {
    let mut hooks = Hooks::start(Script::always(Answer::text("noted"))).await;
    let event = json!({"text": "once"});
    assert_eq!(
        status(&hooks.with_token("plain", "same", &event)),
        (202, "accepted".into())
    );
    assert_eq!(
        status(&hooks.with_token("plain", "same", &event)),
        (200, "duplicate".into())
    );
    assert_eq!(
        status(&hooks.with_token("plain", "other", &event)),
        (202, "accepted".into())
    );
    hooks.asked(2);
    hooks.restart(drop);
    assert_eq!(
        status(&hooks.with_token("plain", "same", &event)),
        (200, "duplicate".into())
    );
    assert_eq!(hooks.asked(2).len(), 2);
}

#[tokio::test]
async fn what_a_crash_interrupted_is_finished_and_delivered() {
    let script = Script::default()
        .when(
            "It says",
            [Answer::text("finished after all").headers_delay(Duration::from_millis(400))],
        )
        .by_step();
    let mut hooks = Hooks::start(script).await;
    let event = json!({"text": "slowly"});
    assert_eq!(hooks.with_token("plain", "crash", &event).status, 202);
    hooks.asked(1);
    hooks.restart(|running| {
        running.kill_9();
    });
    let deadline = Instant::now() + Duration::from_secs(10);
    while !hooks.log().contains("finished after all") {
        assert!(Instant::now() < deadline, "{}", hooks.log());
    }
    assert_eq!(
        status(&hooks.with_token("plain", "crash", &event)),
        (200, "duplicate".into())
    );
    assert_eq!(
        hooks.log().matches("delivered: finished after all").count(),
        1
    );
}

#[tokio::test]
async fn what_is_only_delivered_asks_no_model() {
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    let event = json!({"text": "the disk is full"});
    assert_eq!(
        status(&hooks.with_token("notify", "1", &event)),
        (200, "delivered".into())
    );
    assert!(
        hooks.log().contains("note: the disk is full"),
        "{}",
        hooks.log()
    );
    assert_eq!(
        status(&hooks.with_token("nowhere", "1", &event)),
        (502, "not_delivered".into())
    );
    // It was not delivered, so that it may come again.
    assert_eq!(
        status(&hooks.with_token("nowhere", "1", &event)),
        (502, "not_delivered".into())
    );
    assert!(hooks.setting.server.requests().is_empty());
}

#[tokio::test]
async fn a_flood_of_events_is_slowed_down() {
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    for number in 0..30 {
        let taken = hooks.with_token("notify", &number.to_string(), &json!({"text": number}));
        assert_eq!(taken.status, 200, "{number}: {taken:?}");
    }
    let refused = hooks.with_token("notify", "31", &json!({"text": "x"}));
    assert_eq!(refused.status, 429);
    assert!(refused.header("retry-after").is_some());
    assert_eq!(
        hooks.with_token("plain", "1", &json!({"text": "x"})).status,
        202
    );
}

#[tokio::test]
async fn whoever_begins_an_event_and_does_not_go_on_keeps_nobody_out() {
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    let begun: Vec<_> = (0..600)
        .map(|_| {
            let mut stream = hooks.client.connect();
            let head = "POST /webhooks/plain HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{";
            let _ = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    let asked = Instant::now();
    assert_eq!(hooks.client.get("/health").status, 200);
    let taken = hooks.with_token("plain", "1", &json!({"text": "x"}));
    assert_eq!(status(&taken), (202, "accepted".into()));
    let time = asked.elapsed();
    assert!(time < Duration::from_secs(5), "{time:?}");
    drop(begun);
}

#[tokio::test]
async fn what_svix_signs_is_taken() {
    let Some(peer) = peer("http-python") else {
        return;
    };
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    let event = json!({"type": "invoice.paid", "amount": 42});
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let script = script_file("svix_sign.py");
    let signed = run(
        peer.join("bin/python"),
        &[&script, secret, "msg_1", &event.to_string()],
        &[],
    );
    let signed: Vec<&str> = signed.lines().collect();
    let headers = [
        ("svix-id", signed[0]),
        ("svix-timestamp", signed[1]),
        ("svix-signature", signed[2]),
    ];
    let taken = hooks.send("svix", &headers, &event);
    assert_eq!(status(&taken), (202, "accepted".into()), "{taken:?}");
    assert_eq!(taken.json()["event"], "invoice.paid");
    assert_eq!(
        status(&hooks.send("svix", &headers, &event)),
        (200, "duplicate".into())
    );
    // The id is signed too.
    let renamed = [("svix-id", "msg_2"), headers[1], headers[2]];
    assert_eq!(hooks.send("svix", &renamed, &event).status, 401);
}

#[tokio::test]
async fn what_github_signs_is_taken_and_a_replay_is_not() {
    let Some(peer) = peer("http-node") else {
        return;
    };
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    let event = json!({"action": "opened", "pull_request": {"title": "t"}, "sender": "s"});
    let folder = peer.to_string_lossy().into_owned();
    let script = script_file("octokit_sign.mjs");
    let signature = run(
        "node",
        &[&script, SECRET, &event.to_string()],
        &[("PEER", &folder)],
    );
    let send = |delivery: &str| {
        let headers = [
            ("x-github-event", "pull_request"),
            ("x-github-delivery", delivery),
            ("x-hub-signature-256", signature.as_str()),
        ];
        hooks.send("reviews", &headers, &event)
    };
    assert_eq!(status(&send("g-1")), (202, "accepted".into()));
    assert_eq!(status(&send("g-1")), (200, "duplicate".into()));
    assert_eq!(
        status(&send("another-id")),
        (200, "duplicate".into()),
        "a replay under another id"
    );
}

#[tokio::test]
async fn subscriptions_come_and_go_while_it_runs() {
    let hooks = Hooks::start(Script::always(Answer::text("x"))).await;
    let hermes = |args: &[&str]| hooks.setting.run(&[&["webhook"], args].concat());
    assert_eq!(hermes(&["subscribe", "Bad Name"]).code, Some(2));
    let added = hermes(&[
        "subscribe",
        "alerts",
        "--prompt",
        "alert: {text}",
        "--deliver-only",
        "--filter",
        "level=high",
    ]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let secret = added
        .stdout
        .split("secret:")
        .nth(1)
        .unwrap()
        .trim()
        .to_owned();
    assert_eq!(secret.len(), 64);
    let send = |level: &str| {
        let headers = [("x-gitlab-token", secret.as_str())];
        hooks.send("alerts", &headers, &json!({"text": level, "level": level}))
    };
    assert_eq!(status(&send("high")), (200, "delivered".into()));
    assert_eq!(status(&send("low")), (200, "ignored".into()));
    let listed = hermes(&["list"]);
    assert!(
        listed.stdout.contains("alerts") && listed.stdout.contains("reviews"),
        "{listed:?}"
    );
    assert!(!listed.stdout.contains(&secret));
    let port = hooks.client.authority.rsplit(':').next().unwrap();
    let tested = hooks
        .setting
        .hermes
        .clone()
        .env("WEBHOOK_PORT", port)
        .args([
            "webhook",
            "test",
            "alerts",
            "--payload",
            r#"{"text":"drill","level":"high"}"#,
        ])
        .run();
    assert!(tested.stdout.contains("delivered"), "{tested:?}");
    assert_eq!(hermes(&["remove", "alerts"]).code, Some(0));
    assert_eq!(hermes(&["remove", "alerts"]).code, Some(2));
    assert_eq!(send("high").status, 404);
}
