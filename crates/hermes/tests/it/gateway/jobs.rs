//! Jobs over the HTTP API.

use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use super::client::Client;
use super::{Gateway, served};
use crate::setting::Setting;

fn job(client: &Client, id: &str) -> Value {
    client.get(&format!("/api/jobs/{id}")).json()["job"].clone()
}

#[tokio::test]
async fn jobs_are_made_changed_held_and_removed_over_http() {
    let (_setting, gateway) = served("x").await;
    let client = &gateway.client;
    let wish = json!({"name": "report", "schedule": "every weekday at 9", "prompt": "write the report", "deliver": "local"});
    let made = client.post("/api/jobs", &wish);
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json()["job"].clone();
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(
        (&made["state"], &made["enabled"]),
        (&json!("scheduled"), &json!(true))
    );
    assert!(made["next_run_at"].is_string(), "{made}");

    let path = format!("/api/jobs/{id}");
    let changed = client.send(
        "PATCH",
        &path,
        &[],
        Some(&json!({"prompt": "write a short report", "enabled": false})),
    );
    assert_eq!(changed.status, 200, "{changed:?}");
    let changed = job(client, &id);
    assert_eq!(changed["prompt"], "write a short report");
    assert_eq!(
        (&changed["state"], &changed["next_run_at"]),
        (&json!("paused"), &Value::Null)
    );

    let listed = |query: &str| {
        let listed = client.get(&format!("/api/jobs{query}")).json();
        listed["jobs"].as_array().unwrap().len()
    };
    assert_eq!((listed(""), listed("?include_disabled=true")), (0, 1));
    assert_eq!(
        client.post(&format!("{path}/resume"), &json!({})).json()["job"]["state"],
        "scheduled"
    );
    assert_eq!(
        client.post(&format!("{path}/pause"), &json!({})).json()["job"]["state"],
        "paused"
    );
    assert_eq!(client.send("DELETE", &path, &[], None).json()["ok"], true);
    assert_eq!(client.send("DELETE", &path, &[], None).status, 404);
}

#[tokio::test]
async fn a_job_that_is_wanted_now_runs_and_its_result_is_told() {
    let (_setting, gateway) = served("all is well").await;
    let client = &gateway.client;
    let wish = json!({"schedule": "every day at 9", "prompt": "look after it"});
    let made = client.post("/api/jobs", &wish).json();
    let id = made["job"]["id"].as_str().unwrap();
    assert_eq!(made["job"]["last_status"], Value::Null);
    let fired = client.post("/api/cron/fire", &json!({"job_id": id}));
    assert_eq!(fired.status, 202, "{fired:?}");
    let deadline = Instant::now() + Duration::from_secs(10);
    while job(client, id)["last_status"] != "ok" {
        assert!(Instant::now() < deadline, "{}", job(client, id));
        std::thread::sleep(Duration::from_millis(10));
    }
    let metrics = client.get("/metrics").body;
    assert!(
        metrics.contains(r#"hermes_surface_turns_total{surface="cron",end="finished"} 1"#),
        "{metrics}"
    );
    let runs = client.get(&format!("/api/jobs/{id}/runs")).json();
    assert_eq!(runs["runs"][0]["output"], "all is well", "{runs}");
}

#[tokio::test]
async fn what_a_run_may_cost_is_set_over_http_and_unknown_fields_are_named() {
    let (_setting, gateway) = served("x").await;
    let client = &gateway.client;
    let wish = json!({"schedule": "every 2h", "prompt": "p", "cost_max_usd": 0.5, "time_max_s": 60, "cost_limit": 1});
    let made = client.post("/api/jobs", &wish);
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json()["job"].clone();
    assert_eq!(
        (&made["cost_max_usd"], &made["time_max_s"]),
        (&json!(0.5), &json!(60))
    );
    let notes = made["notes"].to_string();
    assert!(notes.contains("`cost_limit` is no field"), "{notes}");
    assert!(!notes.contains("schedule"), "{notes}");
    let id = made["id"].as_str().unwrap();
    let path = format!("/api/jobs/{id}");
    let change = |body: Value| client.send("PUT", &path, &[], Some(&body)).json()["job"].clone();
    assert_eq!(change(json!({"max_cost": 2}))["cost_max_usd"], json!(2.0));
    // What was told of it may be sent back whole.
    let told = job(client, id);
    let same = change(told.clone());
    assert_eq!(
        (&same["notes"], &same["cost_max_usd"]),
        (&told["notes"], &json!(2.0))
    );
    assert_eq!(
        change(json!({"cost_max_usd": 0}))["cost_max_usd"],
        Value::Null
    );
    let refused = client.send("PUT", &path, &[], Some(&json!({"cost_max_usd": "much"})));
    assert_eq!(
        refused.json()["error"]["param"],
        "cost_max_usd",
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_job_is_said_over_http() {
    let (_setting, gateway) = served("x").await;
    let client = &gateway.client;
    for (body, phrase) in [
        (json!({"prompt": "p"}), "schedule"),
        (
            json!({"schedule": "now and then", "prompt": "p"}),
            "not understood",
        ),
        (json!({"schedule": "every 2h"}), "prompt"),
        (
            json!({"schedule": "every 2h", "prompt": "p", "script": "../x.py"}),
            "script",
        ),
        (json!("x"), "object"),
    ] {
        let refused = client.post("/api/jobs", &body);
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body.contains(phrase), "{refused:?}");
    }
    for (method, path) in [
        ("GET", "/api/jobs/nope"),
        ("POST", "/api/jobs/nope/run"),
        ("GET", "/api/jobs/..%2f..%2fetc"),
    ] {
        assert_eq!(client.send(method, path, &[], None).status, 404, "{path}");
    }
    assert_eq!(client.post("/api/cron/fire", &json!({})).status, 400);
    let stranger = client.send("GET", "/api/jobs", &[("authorization", "Bearer no")], None);
    assert_eq!(stranger.status, 401);
}

#[tokio::test]
async fn a_zone_that_does_not_exist_is_told_when_the_gateway_starts() {
    let setting = Setting::new(Script::always(Answer::text("x"))).await;
    let config = setting.hermes.home().join("config.yaml");
    let said = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{said}timezone: Europe/Berln\n")).unwrap();
    let gateway = Gateway::start(&setting.hermes);
    let told = gateway.running.stderr();
    assert!(told.contains("did you mean `Europe/Berlin`"), "{told}");
}
