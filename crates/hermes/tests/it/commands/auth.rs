//! `hermes auth`: keys go in unseen, are tried, take turns and rest.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use hermes_testkit::process::{Hermes, Output};
use hermes_testkit::server::{Answer, Request, Script, ScriptedServer};
use serde_json::{Value, json};

use super::{contains, json as json_of, refused, run, stdout};
use crate::setting::bare;

const SOON: Duration = Duration::from_secs(30);
const FIRST: &str = "sk-or-v1-aaaaaaaaaaaaaaaaaaaaaaaaaaaa1111";
const SECOND: &str = "sk-or-v1-bbbbbbbbbbbbbbbbbbbbbbbbbbbb2222";

/// A home with nothing in it, whose OpenRouter is this script.
async fn home(script: Script) -> (Hermes, ScriptedServer) {
    let server = ScriptedServer::start(script).await;
    let hermes = bare().env("OPENROUTER_BASE_URL", server.url());
    (hermes, server)
}

fn answering() -> Script {
    Script::always(Answer::text("ready"))
}

fn refusal(status: u16, message: &str) -> Answer {
    Answer::status(status, json!({"error": {"message": message}}))
}

/// Puts a key into standard input of `hermes auth add openrouter`.
fn add(hermes: &Hermes, key: &str, more: &[&str]) -> Output {
    let hermes = hermes.clone().args(["auth", "add", "openrouter"]);
    hermes.args(more.iter().copied()).stdin(key).run()
}

fn added(hermes: &Hermes, key: &str, more: &[&str]) {
    let output = add(hermes, key, more);
    assert_eq!(output.code, Some(0), "{output:?}");
    shows_no_key(&output);
}

fn shows_no_key(output: &Output) {
    for key in [FIRST, SECOND] {
        let body = &key[..key.len() - 4];
        let shown = format!("{}{}", output.stdout, output.stderr);
        assert!(!shown.contains(body), "{shown}");
    }
}

fn auth_json(hermes: &Hermes) -> Value {
    let text = fs::read_to_string(hermes.home().join("auth.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn keys_used(server: &ScriptedServer) -> Vec<String> {
    let key = |request: &Request| {
        let header = request.header("authorization").unwrap();
        header.replace("Bearer ", "")
    };
    server.requests().iter().map(key).collect()
}

#[tokio::test]
async fn a_key_from_standard_input_is_tried_then_kept_for_its_owner_only() {
    let (hermes, server) = home(answering()).await;
    let output = add(&hermes, &format!("{FIRST}\n"), &["--label", "work"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    shows_no_key(&output);
    contains(
        &output.stdout,
        &["added the key `work` (…1111)", "auth.json"],
    );
    assert_eq!(keys_used(&server), [FIRST]);
    assert_eq!(mode(&hermes.home().join("auth.json")), 0o600);
    let file = auth_json(&hermes);
    let entry = &file["credential_pool"]["openrouter"][0];
    assert_eq!(file["version"], 1);
    assert_eq!(entry["access_token"], FIRST);
    assert_eq!(
        (&entry["label"], &entry["auth_type"], &entry["source"]),
        (&json!("work"), &json!("api_key"), &json!("manual"))
    );
    assert_eq!(entry["id"].as_str().unwrap().len(), 6);
    contains(&stdout(&hermes, &["model"]), &["found in auth.json"]);
    contains(&stdout(&hermes, &["-z", "hi"]), &["ready"]);
}

#[tokio::test]
async fn a_typed_key_is_not_shown_and_ctrl_c_saves_nothing() {
    let (hermes, _server) = home(answering()).await;
    let adding = hermes.clone().args(["auth", "add", "openrouter"]);
    let mut left = adding.spawn_in_terminal();
    left.expect("paste the key", SOON);
    left.send("sk-half\x03");
    left.expect("what was saved before stays saved", SOON);
    assert_eq!(left.wait(SOON), Some(130));
    assert!(!hermes.home().join("auth.json").exists());

    let mut terminal = adding.spawn_in_terminal();
    terminal.expect("openrouter.ai/keys", SOON);
    terminal.expect("paste the key", SOON);
    terminal.send(&format!("{FIRST}\n"));
    terminal.expect("added the key `key-1` (…1111)", SOON);
    let screen = terminal.output();
    assert!(!screen.contains(&FIRST[..20]), "{screen}");
    assert_eq!(terminal.wait(SOON), Some(0));
}

#[tokio::test]
async fn a_wrong_key_is_explained_and_not_saved_unless_one_insists() {
    let words = format!("no such key: {FIRST}");
    let (hermes, _server) = home(Script::always(refusal(401, &words))).await;
    let output = add(&hermes, FIRST, &[]);
    refused(
        &output,
        1,
        &[
            "no such key",
            "whole key was copied",
            "nothing was saved",
            "--no-check",
        ],
    );
    shows_no_key(&output);
    assert!(!hermes.home().join("auth.json").exists());
    added(&hermes, FIRST, &["--no-check"]);
    assert_eq!(
        json_of(&hermes, &["auth", "list", "--json"])[0]["key"],
        "…1111"
    );
}

#[test]
fn without_a_network_nothing_is_saved() {
    let hermes = bare().env("OPENROUTER_BASE_URL", "http://127.0.0.1:9/v1");
    refused(
        &add(&hermes, FIRST, &[]),
        1,
        &["check the network", "nothing was saved", "--no-check"],
    );
    assert!(!hermes.home().join("auth.json").exists());
}

#[test]
fn what_is_no_key_is_refused_before_anybody_is_asked() {
    let hermes = bare();
    refused(
        &add(&hermes, "", &[]),
        2,
        &["no key was given", "< key.txt"],
    );
    refused(&add(&hermes, "two words\n", &[]), 2, &["without spaces"]);
    refused(&add(&hermes, &"x".repeat(20_000), &[]), 2, &["too long"]);
    refused(&add(&hermes, FIRST, &["--label", " "]), 2, &["label"]);
    let unknown = hermes
        .clone()
        .args(["auth", "add", "openruter"])
        .stdin(FIRST);
    refused(&unknown.run(), 1, &["`openruter`", "openrouter"]);
    assert!(!hermes.home().join("auth.json").exists());
}

#[test]
fn the_same_key_twice_is_one_key_and_labels_are_not_shared() {
    let hermes = bare();
    added(&hermes, FIRST, &["--no-check", "--label", "work"]);
    let again = add(&hermes, FIRST, &["--no-check"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    contains(&again.stdout, &["has it already", "`work`"]);
    refused(
        &add(&hermes, SECOND, &["--no-check", "--label", "work"]),
        2,
        &["`work`", "another --label"],
    );
    let pool = &auth_json(&hermes)["credential_pool"]["openrouter"];
    assert_eq!(pool.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_refused_key_rests_for_all_processes_until_it_is_reset() {
    let script = Script::new([refusal(401, "expired"), Answer::text("ready")]).repeating_last();
    let (hermes, server) = home(script).await;
    added(&hermes, FIRST, &["--no-check"]);
    added(&hermes, SECOND, &["--no-check"]);
    stdout(&hermes, &["-z", "hi"]);
    assert_eq!(keys_used(&server), [FIRST, SECOND]);

    let list = stdout(&hermes, &["auth"]);
    contains(
        &list,
        &[
            "key-1",
            "…1111",
            "rests for 5 min: expired",
            "key-2",
            "good",
        ],
    );
    let rows = json_of(&hermes, &["auth", "list", "openrouter", "--json"]);
    assert_eq!(
        (&rows[0]["state"], &rows[1]["state"]),
        (&json!("resting"), &json!("ok"))
    );
    stdout(&hermes, &["-z", "again"]);
    assert_eq!(
        keys_used(&server)[2],
        SECOND,
        "another process spares it too"
    );

    contains(
        &stdout(&hermes, &["auth", "reset", "openrouter"]),
        &["1 key of openrouter no longer rests"],
    );
    contains(
        &stdout(&hermes, &["auth", "reset", "openrouter"]),
        &["no key"],
    );
    stdout(&hermes, &["-z", "once more"]);
    assert_eq!(keys_used(&server)[3], FIRST);
}

#[test]
fn the_list_masks_keys_of_every_origin() {
    let hermes = bare().env("GROQ_API_KEY", "gsk_cccccccccccccccccccccccc3333");
    contains(
        &stdout(&bare(), &["auth"]),
        &["no keys yet", "hermes auth add"],
    );
    fs::write(
        hermes.home().join(".env"),
        format!("XAI_API_KEY={SECOND}\n"),
    )
    .unwrap();
    added(&hermes, FIRST, &["--no-check"]);
    let output = run(&hermes, &["auth", "list"]);
    shows_no_key(&output);
    contains(
        &output.stdout,
        &[
            "GROQ_API_KEY",
            "…3333",
            "XAI_API_KEY in .env",
            "…2222",
            "auth.json",
            "…1111",
        ],
    );
    assert!(!output.stdout.contains("gsk_"), "{}", output.stdout);
}

#[test]
fn keys_are_removed_by_label_id_or_number_and_others_stay() {
    let hermes = bare();
    for (key, label) in [(FIRST, "one"), (SECOND, "two"), ("sk-third-key", "three")] {
        added(&hermes, key, &["--no-check", "--label", label]);
    }
    refused(
        &run(&hermes, &["auth", "remove", "openrouter", "four"]),
        1,
        &["`four`", "hermes auth list openrouter"],
    );
    contains(
        &stdout(&hermes, &["auth", "remove", "openrouter", "two"]),
        &["forgot the key `two` (…2222)", "revoke"],
    );
    let id = auth_json(&hermes)["credential_pool"]["openrouter"][0]["id"].clone();
    stdout(&hermes, &["auth", "rm", "openrouter", id.as_str().unwrap()]);
    contains(
        &stdout(&hermes, &["auth", "rm", "openrouter", "1"]),
        &["forgot the key `three` (***)"],
    );
    refused(
        &run(&hermes, &["auth", "rm", "openrouter", "1"]),
        1,
        &["no stored key", "removed where they stand"],
    );
    refused(
        &run(&hermes, &["auth", "reset", "openrouter"]),
        1,
        &["no stored key"],
    );
}

#[test]
fn what_others_wrote_stays_and_a_damaged_file_is_not_touched() {
    let hermes = bare();
    let path = hermes.home().join("auth.json");
    let foreign = json!({
        "version": 1, "active_provider": "nous", "providers": {"nous": {"x": 1}},
        "credential_pool": {"nous": [
            {"id": "abcdef", "auth_type": "oauth", "access_token": "login-token-of-somebody", "mystery": true}
        ]},
    });
    fs::write(&path, foreign.to_string()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    added(&hermes, FIRST, &["--no-check"]);
    let file = auth_json(&hermes);
    assert_eq!(file["providers"], foreign["providers"]);
    assert_eq!(
        file["credential_pool"]["nous"],
        foreign["credential_pool"]["nous"]
    );
    assert_eq!(mode(&path), 0o600);
    contains(&stdout(&hermes, &["auth"]), &["not used: a login"]);

    fs::write(&path, "{ broken").unwrap();
    for args in [&["auth", "list"][..], &["auth", "reset", "openrouter"]] {
        refused(&run(&hermes, args), 1, &["damaged", "auth.json.corrupt"]);
    }
    refused(&add(&hermes, FIRST, &["--no-check"]), 1, &["damaged"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ broken");
}

#[test]
fn processes_that_add_at_once_lose_nothing() {
    let hermes = bare();
    let key = |number: usize| format!("sk-or-v1-cccccccccccccccccccccccc{number:04}");
    let running: Vec<_> = (0..6)
        .map(|number| {
            let adding = hermes
                .clone()
                .args(["auth", "add", "openrouter", "--no-check"]);
            adding.stdin(key(number)).spawn()
        })
        .collect();
    for process in running {
        let output = process.wait(SOON);
        assert_eq!(output.code, Some(0), "{output:?}");
    }
    let file = auth_json(&hermes);
    let entries = file["credential_pool"]["openrouter"].as_array().unwrap();
    let mut kept: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry["access_token"].as_str())
        .collect();
    kept.sort_unstable();
    assert_eq!(kept, (0..6).map(key).collect::<Vec<_>>());
    let mut labels: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry["label"].as_str())
        .collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), 6, "each has a label of its own");
}
