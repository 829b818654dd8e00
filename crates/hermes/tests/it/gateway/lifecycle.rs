//! How it starts and ends.

use std::path::Path;
use std::time::Duration;

use hermes_testkit::process::Hermes;
use hermes_testkit::server::{Answer, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::client::{self, Client};
use super::{Gateway, KEY, ready, scripted, served};
use crate::setting::bare;

#[test]
fn without_a_key_it_does_not_start_and_says_how_to_make_one() {
    let run = |env: &[(&str, &str)]| {
        let mut hermes = bare().args(["gateway", "run"]);
        for (name, value) in env {
            hermes = hermes.env(name, value);
        }
        hermes.run()
    };
    for (env, phrase) in [
        (&[][..], "nothing to serve"),
        (&[("API_SERVER_ENABLED", "true")], "has no key"),
        (
            &[("API_SERVER_KEY", "short")],
            "has 5 characters; it needs 16",
        ),
        (
            &[("API_SERVER_KEY", "your-api-key-here")],
            "anybody would guess",
        ),
    ] {
        let output = run(env);
        assert_eq!(output.code, Some(78), "{output:?}");
        assert!(output.stderr.contains(phrase), "{output:?}");
        assert!(output.stderr.contains("openssl rand -hex 32"), "{output:?}");
    }
    let output = run(&[("API_SERVER_KEY", KEY), ("API_SERVER_ENABLED", "false")]);
    assert!(output.stderr.contains("nothing to serve"), "{output:?}");
}

/// A disk that is mounted for reading alone, or that a card with errors has become.
#[tokio::test]
async fn a_home_that_cannot_be_written_is_said_and_can_be_looked_at() {
    if !hermes_testkit::peers::is_there("bwrap") {
        return;
    }
    let (setting, gateway) = served("hi").await;
    let asked = json!({"messages": [{"role": "user", "content": "remember me"}]});
    assert_eq!(gateway.client.chat(&asked).status, 200);
    drop(gateway);
    let home = setting.hermes.home();
    let run = |args: &[&str]| {
        let hermes = Path::new(env!("CARGO_BIN_EXE_hermes"));
        Hermes::new("/usr/bin/bwrap")
            .deadline(Duration::from_secs(30))
            .env("HERMES_HOME", &home)
            .env("API_SERVER_KEY", KEY)
            .args(["--dev-bind", "/", "/", "--ro-bind"])
            .args([home.as_path(), home.as_path(), hermes])
            .args(args.iter().copied())
            .run()
    };
    for refused in [&["gateway", "run"][..], &["-z", "hello"]] {
        let output = run(refused);
        assert_ne!(output.code, Some(0), "{refused:?}: {output:?}");
        let (what, next) = ("Read-only file system", "writable");
        let said = output.stderr.contains(what) && output.stderr.contains(next);
        assert!(said, "{refused:?}: {output:?}");
        assert!(!output.stderr.contains("panicked"), "{output:?}");
    }
    for (looking, code) in [
        (&["gateway", "status"][..], 3),
        (&["sessions", "list"], 0),
        (&["cron", "list"], 0),
    ] {
        let output = run(looking);
        assert_eq!(output.code, Some(code), "{looking:?}: {output:?}");
    }
    let found = run(&["sessions", "search", "remember"]);
    assert!(found.stdout.contains("remember"), "{found:?}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_said() {
    let (setting, gateway) = served("hi").await;
    let port = gateway
        .client
        .authority
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let second = setting
        .hermes
        .clone()
        .env("API_SERVER_KEY", KEY)
        .env("API_SERVER_PORT", &port)
        .args(["gateway", "run"])
        .run();
    assert_eq!(second.code, Some(78), "{second:?}");
    let said = format!("port {port} of `127.0.0.1` is in use");
    assert!(second.stderr.contains(&said), "{second:?}");
}

#[tokio::test]
async fn settings_say_where_it_listens_and_what_it_is_called() {
    let setting = crate::setting::Setting::with(
        Script::always(Answer::text("hi")),
        "platforms:\n  api_server:\n    enabled: true\n    key: from-the-settings-42\n    port: 0\n    model_name: my-agent\n",
    )
    .await;
    let running = setting.hermes.clone().args(["gateway", "run"]).spawn();
    let client = Client::new(&ready(&running), "from-the-settings-42");
    assert_eq!(client.get("/v1/models").json()["data"][0]["id"], "my-agent");
    assert_eq!(client.get("/v1/models/my-agent").status, 200);
    assert_eq!(client.get("/v1/models/other").status, 404);
}

fn end(gateway: &Gateway) {
    let id = Pid::from_raw(gateway.running.id() as i32).unwrap();
    kill_process(id, Signal::TERM).unwrap();
}

#[tokio::test]
async fn told_to_end_it_answers_what_it_has_begun_and_takes_nothing_new() {
    let slow = Answer::text("done at last").headers_delay(Duration::from_millis(1500));
    let (_setting, gateway) = scripted(Script::always(slow)).await;
    let asked = json!({"messages": [{"role": "user", "content": "slowly"}]});
    let stream = gateway
        .client
        .open("POST", "/v1/chat/completions", &[], Some(&asked));
    std::thread::sleep(Duration::from_millis(250));
    end(&gateway);
    std::thread::sleep(Duration::from_millis(250));
    let refused = gateway.client.chat(&asked);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "gateway_draining");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(gateway.client.get("/health").json()["status"], "draining");
    let answer = client::read(stream);
    assert_eq!(
        answer.json()["choices"][0]["message"]["content"],
        "done at last"
    );
    let output = gateway.running.wait(Duration::from_secs(10));
    assert_eq!(output.code, Some(0), "{output:?}");
}

#[tokio::test]
async fn told_twice_it_ends_at_once() {
    let (_setting, gateway) = scripted(Script::always(
        Answer::text("x").headers_delay(Duration::from_secs(60)),
    ))
    .await;
    let asked = json!({"messages": [{"role": "user", "content": "slowly"}]});
    let _stream = gateway
        .client
        .open("POST", "/v1/chat/completions", &[], Some(&asked));
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..2 {
        end(&gateway);
        std::thread::sleep(Duration::from_millis(100));
    }
    let output = gateway.running.wait(Duration::from_secs(10));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.wall < Duration::from_secs(10), "{output:?}");
}

#[tokio::test]
async fn health_needs_no_key_and_details_do() {
    let (_setting, gateway) = served("hi").await;
    let nobody = Client::new(&format!("http://{}", gateway.client.authority), "wrong");
    for path in ["/health", "/v1/health"] {
        let health = nobody.get(path);
        assert_eq!(
            (health.status, health.json()["status"].as_str()),
            (200, Some("ok"))
        );
    }
    for path in [
        "/health/detailed",
        "/v1/models",
        "/v1/capabilities",
        "/metrics",
    ] {
        let refused = nobody.get(path);
        assert_eq!(refused.status, 401, "{path}");
        assert_eq!(refused.json()["error"]["code"], "invalid_api_key");
        assert_eq!(gateway.client.get(path).status, 200, "{path}");
    }
}
