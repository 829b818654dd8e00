//! Logins at providers: a code in the browser, tokens that one process renews for all, and nothing secret on a screen.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use hermes_testkit::oauth::{AuthServer, CodeAnswer, TokenFault};
use hermes_testkit::process::{Hermes, Output, Terminal};
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::{Value, json};

use super::{contains, json as json_of, refused, run, stdout};
use crate::setting::bare;

const SOON: Duration = Duration::from_secs(30);

/// A home with nothing in it, whose Nous Portal is the test's.
async fn home() -> (Hermes, AuthServer, ScriptedServer) {
    let auth = AuthServer::start();
    let models = ScriptedServer::start(Script::always(Answer::text("ready"))).await;
    let hermes = bare()
        .env("HERMES_PORTAL_BASE_URL", auth.url())
        .env("NOUS_BASE_URL", models.url());
    (hermes, auth, models)
}

fn auth_json(hermes: &Hermes) -> Value {
    let text = fs::read_to_string(hermes.home().join("auth.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn write_auth_json(hermes: &Hermes, file: &Value) {
    fs::write(hermes.home().join("auth.json"), file.to_string()).unwrap();
}

/// What another program leaves behind after a login, with things in it that we do not know.
fn written_by_another(auth: &AuthServer, expires_at: &str) -> Value {
    let mut state = auth.grant("inference:invoke");
    state["expires_at"] = expires_at.into();
    state["portal_base_url"] = "https://elsewhere.example".into();
    state["tls"] = json!({"insecure": false});
    json!({"version": 1, "active_provider": "nous", "providers": {"nous": state}, "later": [1, 2]})
}

const PAST: &str = "2026-01-01T00:00:00.123456+00:00";
const FUTURE: &str = "2999-01-01T00:00:00+00:00";

fn shows_no_secret(output: &Output) -> &Output {
    let shown = format!("{}{}", output.stdout, output.stderr);
    assert!(!shown.contains("secret-"), "{shown}");
    output
}

/// Begins to log in; the code is on the screen.
fn begin(hermes: &Hermes) -> Terminal {
    let args = ["auth", "add", "nous", "--type", "oauth", "--no-browser"];
    let mut terminal = hermes.clone().args(args).spawn_in_terminal();
    terminal.expect("/device?user_code=WDJB-MJHT", SOON);
    terminal.expect("this code: WDJB-MJHT", SOON);
    terminal.expect("Ctrl-C calls it off", SOON);
    terminal
}

#[tokio::test]
async fn a_person_logs_in_asks_and_logs_out() {
    let (hermes, auth, models) = home().await;
    write_auth_json(&hermes, &json!({"later": {"kept": true}}));
    let mut terminal = begin(&hermes);
    auth.confirm_codes();
    terminal.expect("logged in at Nous Portal", SOON);
    terminal.expect("hermes model set nous:", SOON);
    let screen = terminal.output();
    assert_eq!(terminal.wait(SOON), Some(0));
    assert!(!screen.contains("secret-"), "{screen}");
    let file = auth_json(&hermes);
    let state = &file["providers"]["nous"];
    let path = hermes.home().join("auth.json");
    assert_eq!(
        fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        (&file["later"]["kept"], &file["active_provider"]),
        (&json!(true), &json!("nous"))
    );
    assert_eq!(
        (&state["token_type"], &state["scope"]),
        (&json!("Bearer"), &json!("inference:invoke"))
    );
    assert!(state["access_token"].is_string() && state["refresh_token"].is_string());

    // With nothing chosen, the login chooses the provider.
    let asked = run(&hermes, &["-z", "hi"]);
    contains(&shows_no_secret(&asked).stdout, &["ready"]);
    let token = models.requests()[0]
        .header("authorization")
        .unwrap()
        .to_owned();
    assert_eq!(
        token,
        format!("Bearer {}", state["access_token"].as_str().unwrap())
    );
    contains(&stdout(&hermes, &["model"]), &["a login"]);
    for command in [
        &["auth"][..],
        &["auth", "list"],
        &["auth", "status", "nous"],
        &["doctor", "--offline"],
    ] {
        let output = run(&hermes, command);
        contains(&shows_no_secret(&output).stdout, &["nous", "logged in"]);
    }
    let status = json_of(&hermes, &["auth", "status", "nous", "--json"]);
    assert_eq!(
        (&status[0]["state"], &status[0]["from"]),
        (&json!("logged_in"), &json!("auth.json"))
    );

    let left = run(&hermes, &["auth", "logout", "nous"]);
    assert_eq!(left.code, Some(0), "{left:?}");
    contains(&shows_no_secret(&left).stdout, &["logged out of nous"]);
    contains(&left.stderr, &["portal.nousresearch.com"]);
    let file = auth_json(&hermes);
    assert_eq!(
        (&file["providers"], &file["later"]["kept"]),
        (&json!({}), &json!(true))
    );
    let status = run(&hermes, &["auth", "status", "nous"]);
    assert_eq!(status.code, Some(1), "{status:?}");
    contains(&status.stdout, &["not logged in", "hermes auth add nous"]);
}

#[tokio::test]
async fn login_and_logout_are_commands_of_their_own() {
    let (hermes, auth, _models) = home().await;
    let login = hermes.clone().args(["login", "--no-browser"]);
    let mut terminal = login.spawn_in_terminal();
    terminal.expect("Where do you want to log in?", SOON);
    terminal.expect("Nous Portal", SOON);
    terminal.expect("choose", SOON);
    terminal.send("1\n");
    terminal.expect("this code: WDJB-MJHT", SOON);
    auth.confirm_codes();
    terminal.expect("logged in at Nous Portal", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));

    let left = run(&hermes, &["logout"]);
    assert_eq!(left.code, Some(0), "{left:?}");
    contains(&left.stdout, &["logged out of nous"]);
    let left = run(&hermes, &["logout"]);
    refused(&left, 1, &["nobody is logged in anywhere"]);

    let both = json!({"providers": {
        "nous": auth.grant("inference:invoke"),
        "xai-oauth": {"tokens": auth.grant("x")},
    }});
    write_auth_json(&hermes, &both);
    let unsaid = run(&hermes, &["logout"]);
    refused(&unsaid, 2, &["needs to know where", "nous, xai-oauth"]);
    for args in [&["logout", "--provider", "nous"][..], &["auth", "logout"]] {
        let left = run(&hermes, args);
        assert_eq!(left.code, Some(0), "{left:?}");
        shows_no_secret(&left);
    }
    assert_eq!(auth_json(&hermes)["providers"], json!({}));
    refused(
        &run(&hermes, &["login"]),
        2,
        &["needs to know where", "nous"],
    );
    refused(
        &run(&hermes, &["login", "openrouter"]),
        2,
        &["openrouter has no login", "nous, xai-oauth"],
    );
}

#[tokio::test]
async fn ctrl_c_at_the_code_and_a_declined_code_leave_nothing_behind() {
    let (hermes, auth, _models) = home().await;
    let mut terminal = begin(&hermes);
    terminal.send("\x03");
    terminal.expect("called off; nothing was saved", SOON);
    assert_eq!(terminal.wait(SOON), Some(130));
    assert!(!hermes.home().join("auth.json").exists());

    auth.answer_codes([CodeAnswer::Denied]);
    let mut terminal = begin(&hermes);
    terminal.expect("declined in the browser", SOON);
    terminal.expect("nothing was saved", SOON);
    assert_eq!(terminal.wait(SOON), Some(1));
    assert!(!hermes.home().join("auth.json").exists());
}

#[tokio::test]
async fn where_a_provider_has_both_the_person_chooses() {
    let (hermes, _auth, _models) = home().await;
    let mut terminal = hermes
        .clone()
        .args(["auth", "add", "nous", "--no-browser"])
        .spawn_in_terminal();
    terminal.expect("log in with a browser", SOON);
    terminal.expect("paste an API key", SOON);
    terminal.expect("choose", SOON);
    terminal.send("2\n");
    terminal.expect("paste the key", SOON);
    terminal.send("\x03");
    assert_eq!(terminal.wait(SOON), Some(130));
    let output = run(&hermes, &["auth", "add", "openrouter", "--type", "oauth"]);
    refused(&output, 2, &["openrouter has no login", "nous, xai-oauth"]);
}

#[tokio::test]
async fn setup_offers_the_login_and_goes_on_with_it() {
    let (hermes, auth, models) = home().await;
    auth.answer_codes([CodeAnswer::Denied]);
    auth.confirm_codes();
    let mut terminal = hermes.clone().args(["setup", "model"]).spawn_in_terminal();
    for outcome in ["declined in the browser", "logged in at Nous Portal"] {
        terminal.expect("log in with a browser", SOON);
        terminal.expect("choose", SOON);
        terminal.send("3\n");
        terminal.expect("Where do you want to log in?", SOON);
        terminal.expect("choose", SOON);
        terminal.send("1\n");
        terminal.expect("this code: WDJB-MJHT", SOON);
        terminal.expect(outcome, SOON);
    }
    terminal.expect("model", SOON);
    terminal.send("\n");
    terminal.expect("is saved", SOON);
    let screen = terminal.output();
    assert_eq!(terminal.wait(SOON), Some(0));
    assert!(!screen.contains("secret-"), "{screen}");
    assert_eq!(models.requests().len(), 1);
    contains(&stdout(&hermes, &["model"]), &["nous", "a login"]);
}

#[tokio::test]
async fn a_login_of_another_program_is_used_and_two_processes_renew_it_once() {
    let (hermes, auth, models) = home().await;
    write_auth_json(&hermes, &written_by_another(&auth, PAST));
    let before = auth_json(&hermes);
    auth.fail([TokenFault::DelayMs(500)]);
    let asking = hermes.clone().args(["-z", "hi"]);
    let (first, second) = (asking.spawn(), asking.spawn());
    for asked in [first.wait(SOON), second.wait(SOON)] {
        assert_eq!(asked.code, Some(0), "{asked:?}");
        contains(&shows_no_secret(&asked).stdout, &["ready"]);
    }
    assert_eq!((auth.renewals(), auth.reuses()), (1, 0));
    let after = auth_json(&hermes);
    let token = after["providers"]["nous"]["access_token"].as_str().unwrap();
    for request in models.requests() {
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {token}").as_str())
        );
    }
    for kept in [
        "/later",
        "/providers/nous/tls",
        "/providers/nous/portal_base_url",
    ] {
        assert_eq!(after.pointer(kept), before.pointer(kept), "{kept}");
    }
}

#[tokio::test]
async fn an_ended_login_says_everywhere_how_to_begin_another() {
    let (hermes, auth, models) = home().await;
    write_auth_json(&hermes, &written_by_another(&auth, PAST));
    auth.fail([TokenFault::InvalidGrant]);
    let asked = run(&hermes, &["-z", "hi"]);
    assert_eq!(asked.code, Some(1), "{asked:?}");
    contains(
        &shows_no_secret(&asked).stderr,
        &["the login at nous has ended", "hermes auth add nous"],
    );
    assert_eq!(models.requests().len(), 0);
    let status = run(&hermes, &["auth", "status", "nous"]);
    assert_eq!(status.code, Some(1), "{status:?}");
    contains(&status.stdout, &["ended", "hermes auth add nous"]);
    let doctor = run(&hermes, &["doctor", "--offline"]);
    contains(&doctor.stdout, &["nous: ended", "hermes auth add nous"]);
    let again = run(&hermes, &["-z", "hi", "--provider", "nous", "-m", "m"]);
    contains(
        &again.stderr,
        &["nobody is logged in", "hermes auth add nous"],
    );
    assert_eq!(auth.token_requests(), 1, "a dead token is not tried again");

    let reset = stdout(&hermes, &["auth", "reset", "nous"]);
    contains(
        &reset,
        &["forgot", "nothing of it is left", "hermes login nous"],
    );
    let doctor = run(&hermes, &["doctor", "--offline"]);
    assert!(!doctor.stdout.contains("nous: ended"), "{doctor:?}");
    refused(&run(&hermes, &["auth", "reset", "nous"]), 1, &["no login"]);
}

#[tokio::test]
async fn a_login_that_another_program_gave_up_is_tried_again_after_a_reset() {
    let (hermes, auth, models) = home().await;
    let mut file = written_by_another(&auth, FUTURE);
    let refusal = json!({"message": "try later", "relogin_required": true});
    file["providers"]["nous"]["last_auth_error"] = refusal;
    write_auth_json(&hermes, &file);
    let reset = run(&hermes, &["auth", "reset", "nous"]);
    contains(&shows_no_secret(&reset).stdout, &["tried again"]);
    let kept = &auth_json(&hermes)["providers"]["nous"];
    assert_eq!(kept["last_auth_error"], Value::Null);
    contains(
        &stdout(&hermes, &["auth", "reset", "nous"]),
        &["was not refused"],
    );
    contains(&stdout(&hermes, &["-z", "hi"]), &["ready"]);
    assert_eq!(models.requests().len(), 1);
}

#[tokio::test]
async fn a_token_goes_to_no_address_but_its_providers() {
    let (hermes, auth, models) = home().await;
    write_auth_json(&hermes, &written_by_another(&auth, FUTURE));
    let config = format!(
        "model:\n  provider: nous\n  default: m\n  base_url: {}\n",
        models.url()
    );
    fs::write(hermes.home().join("config.yaml"), config).unwrap();
    run(&hermes, &["-z", "hi"]);
    for request in models.requests() {
        assert_eq!(request.header("authorization"), None);
    }
    assert_eq!(models.requests().len(), 1);
}

#[tokio::test]
async fn a_damaged_file_is_told_with_its_place_and_left_alone() {
    let (hermes, _auth, _models) = home().await;
    let path = hermes.home().join("auth.json");
    let damaged = "{\n  \"providers\": {\"nous\": \"secret-token\n";
    fs::write(&path, damaged).unwrap();
    for args in [
        &["auth", "add", "nous", "--type", "oauth"][..],
        &["auth", "status"],
        &["auth", "logout", "nous"],
    ] {
        let output = run(&hermes, args);
        refused(
            shows_no_secret(&output),
            1,
            &["damaged", "at line", "auth.json.corrupt"],
        );
    }
    let misshapen = r#"{"providers": {"nous": "secret-token"}}"#;
    fs::write(&path, misshapen).unwrap();
    let output = run(&hermes, &["auth", "status"]);
    refused(
        shows_no_secret(&output),
        1,
        &["`providers` should hold an object"],
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), misshapen);
}
