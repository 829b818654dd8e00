//! `hermes setup`, driven as a person would at a terminal.

use std::time::Duration;

use hermes_testkit::process::{Hermes, Terminal};
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::json;

use super::{contains, refused, run, stdout};
use crate::setting::{bare, write_config};

const SOON: Duration = Duration::from_secs(15);
const PASTED: &str = "sk-or-v1-0123456789abcdef0123456789abcdef";

/// A home with nothing in it, whose OpenRouter is this server.
async fn newcomer(script: Script) -> (Hermes, ScriptedServer) {
    let server = ScriptedServer::start(script).await;
    let hermes = bare().env("OPENROUTER_BASE_URL", server.url());
    (hermes, server)
}

fn answering() -> Script {
    Script::always(Answer::text("ready"))
}

/// Goes as far as the pasted key.
fn paste(hermes: &Hermes, args: &[&str]) -> Terminal {
    let hermes = hermes.clone().args(args.iter().copied());
    let mut terminal = hermes.spawn_in_terminal();
    terminal.expect("paste an API key", SOON);
    terminal.expect("choose", SOON);
    terminal.send("1\n");
    terminal.expect("paste the key", SOON);
    terminal.send(&format!("{PASTED}\n"));
    terminal
}

#[tokio::test]
async fn a_newcomer_gets_a_first_answer_with_five_keys_beside_the_key() {
    let (hermes, server) = newcomer(answering()).await;
    // 1, Enter, the key, Enter: the conversation begins by itself.
    let mut terminal = paste(&hermes, &[]);
    terminal.expect("that is a key of OpenRouter", SOON);
    terminal.expect("is saved", SOON);
    terminal.expect("›", SOON);
    terminal.send("hello\r");
    terminal.expect("ready", SOON);
    // Whoever names the conversation asks by itself, sooner or later.
    let asked = server.requests();
    let names = |body: &[u8]| String::from_utf8_lossy(body).contains("You name conversations");
    assert_eq!(asked.iter().filter(|one| !names(&one.body)).count(), 2);
    let screen = terminal.output();
    assert!(!screen.contains(PASTED), "the key is not shown: {screen}");
    let variables = std::fs::read_to_string(hermes.home().join(".env")).unwrap();
    contains(&variables, &["OPENROUTER_API_KEY=", PASTED]);
    let settings = std::fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    contains(&settings, &["provider: openrouter"]);
    assert!(!settings.contains(PASTED), "{settings}");
}

#[tokio::test]
async fn a_refused_key_is_not_saved_and_another_way_is_offered() {
    let refusal = Answer::status(401, json!({"error": {"message": "no such key"}}));
    let (hermes, _server) = newcomer(Script::always(refusal)).await;
    let mut terminal = paste(&hermes, &["setup"]);
    terminal.expect("model", SOON);
    terminal.send("\n");
    terminal.expect("no such key", SOON);
    terminal.expect("the whole key was copied", SOON);
    terminal.expect("choose something else", SOON);
    terminal.send("q\n");
    terminal.expect("what was saved before stays saved", SOON);
    assert_eq!(terminal.wait(SOON), Some(130));
    assert!(!hermes.home().join("config.yaml").exists());
    let variables = std::fs::read_to_string(hermes.home().join(".env")).unwrap_or_default();
    assert!(!variables.contains(PASTED), "{variables}");
}

#[tokio::test]
async fn without_a_network_it_can_be_saved_anyway() {
    let hermes = bare().env("OPENROUTER_BASE_URL", "http://127.0.0.1:9/v1");
    let mut terminal = paste(&hermes, &["setup", "--quick"]);
    terminal.expect("check the network", SOON);
    terminal.send("3\n");
    terminal.expect("done", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    let variables = std::fs::read_to_string(hermes.home().join(".env")).unwrap();
    contains(&variables, &[PASTED]);
}

#[tokio::test]
async fn ctrl_c_leaves_at_every_step_and_changes_nothing() {
    let (hermes, server) = newcomer(answering()).await;
    let address = format!("{}\n", server.url());
    let steps: [&[(&str, &str)]; 5] = [
        &[("choose", "\x03")],
        &[("choose", "1\n"), ("paste the key", "sk-half\x7f\x03")],
        &[("choose", "2\n"), ("address", "http\x03")],
        &[
            ("choose", "2\n"),
            ("address", &address),
            ("Enter for none", "\x03"),
        ],
        &[
            ("choose", "2\n"),
            ("address", &address),
            ("Enter for none", "\n"),
            ("\nmodel", "\x03"),
        ],
    ];
    for step in steps {
        let mut terminal = hermes.clone().args(["setup"]).spawn_in_terminal();
        for (question, answer) in step {
            terminal.expect(question, SOON);
            terminal.send(answer);
        }
        terminal.expect("what was saved before stays saved", SOON);
        terminal.expect("goes on whenever you like", SOON);
        assert_eq!(terminal.wait(SOON), Some(130), "{step:?}");
    }
    assert!(!hermes.home().join("config.yaml").exists());
}

#[tokio::test]
async fn a_server_of_ones_own_is_reached_by_its_address() {
    let server = ScriptedServer::start(answering()).await;
    let hermes = bare();
    let mut terminal = hermes.clone().args(["setup", "model"]).spawn_in_terminal();
    terminal.expect("choose", SOON);
    terminal.send("2\n");
    terminal.expect("address", SOON);
    terminal.send("models.example:8000\n");
    terminal.expect("begins with http", SOON);
    terminal.send(&format!("{}\n", server.url()));
    terminal.expect("Enter for none", SOON);
    terminal.send("\n");
    terminal.expect("model", SOON);
    terminal.send("tiny\n");
    terminal.expect("is saved", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    // The first one was for the list of models.
    assert_eq!(server.requests()[1].json["model"], "tiny");
    assert_eq!(stdout(&hermes, &["-z", "hi"]).trim(), "ready");
}

#[tokio::test]
async fn the_only_model_of_a_server_needs_no_name_and_several_are_told() {
    let server = ScriptedServer::start(answering().model("only-one")).await;
    let at_model = |server: &ScriptedServer| {
        let mut terminal = bare().spawn_in_terminal();
        terminal.expect("choose", SOON);
        terminal.send("2\n");
        terminal.expect("address", SOON);
        terminal.send(&format!("{}\n", server.url()));
        terminal.expect("Enter for none", SOON);
        terminal.send("\n");
        terminal
    };
    let mut terminal = at_model(&server);
    terminal.expect("asking custom:only-one", SOON);
    terminal.expect("is saved", SOON);
    let server = ScriptedServer::start(answering().model("one").model("two")).await;
    let mut terminal = at_model(&server);
    terminal.expect("Which of its models?", SOON);
    terminal.expect("choose", SOON);
    terminal.send("\x1b[B\n");
    terminal.expect("asking custom:two", SOON);
}

#[tokio::test]
async fn an_unreachable_server_is_told_first_and_v1_is_tried() {
    let hermes = bare();
    let at_address = |address: &str| {
        let mut terminal = hermes.clone().args(["setup", "model"]).spawn_in_terminal();
        terminal.expect("choose", SOON);
        terminal.send("2\n");
        terminal.expect("address", SOON);
        terminal.send(&format!("{address}\n"));
        terminal
    };
    let mut terminal = at_address("http://127.0.0.1:9");
    terminal.expect("cannot reach `http://127.0.0.1:9/models`", SOON);
    terminal.expect("choose something else", SOON);
    assert!(!terminal.output().contains("Enter for none"));
    terminal.send("q");
    assert_eq!(terminal.wait(SOON), Some(130));
    let server = ScriptedServer::start(answering().at_v1().model("only-one")).await;
    let mut terminal = at_address(&server.root_url());
    terminal.expect("Enter for none", SOON);
    terminal.send("\n");
    terminal.expect("model", SOON);
    terminal.send("\n");
    terminal.expect("is saved", SOON);
    let settings = std::fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    contains(&settings, &["base_url: ", &server.url()]);
}

#[tokio::test]
async fn a_terminal_that_cannot_draw_is_asked_for_a_number() {
    let server = ScriptedServer::start(answering().model("one").model("two")).await;
    let hermes = bare().env("TERM", "dumb");
    let mut terminal = hermes.clone().args(["setup", "model"]).spawn_in_terminal();
    for (question, answer) in [
        ("choose", "2\n".to_owned()),
        ("address", format!("{}\n", server.url())),
        ("Enter for none", "\n".to_owned()),
        ("choose", "2\n".to_owned()),
    ] {
        terminal.expect(question, SOON);
        terminal.send(&answer);
    }
    terminal.expect("asking custom:two", SOON);
    assert!(!terminal.output().contains("\x1b["));
}

/// Chooses OpenRouter by the key in the environment, and its usual model.
fn choose_openrouter(mut terminal: Terminal) {
    terminal.expect("OpenRouter, with the key in OPENROUTER_API_KEY", SOON);
    terminal.expect("choose", SOON);
    terminal.send("1\n");
    terminal.expect("model", SOON);
    terminal.send("\n");
    terminal.expect("is saved", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
}

#[tokio::test]
async fn what_is_saved_is_what_was_tried_whatever_was_there_before() {
    let (hermes, server) = newcomer(answering()).await;
    let hermes = hermes.env("OPENROUTER_API_KEY", PASTED);
    write_config(&hermes, "http://127.0.0.1:9/v1", "agent:\n  max_turns: 7\n");
    let setup = hermes.clone().args(["setup", "model"]);
    choose_openrouter(setup.spawn_in_terminal());
    let settings = std::fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    contains(
        &settings,
        &["# written by hand", "provider: openrouter", "max_turns: 7"],
    );
    assert!(
        !settings.contains("127.0.0.1:9") && !settings.contains("sk-test"),
        "{settings}"
    );
    assert_eq!(stdout(&hermes, &["-z", "hi"]).trim(), "ready");
    let asked = server.requests();
    let sent = asked.last().unwrap().header("authorization").unwrap();
    assert!(sent.contains(PASTED), "{sent}");
}

#[tokio::test]
async fn hermes_model_at_a_terminal_lets_one_choose() {
    let (hermes, _server) = newcomer(answering()).await;
    let hermes = hermes.env("OPENROUTER_API_KEY", PASTED);
    choose_openrouter(hermes.clone().args(["model"]).spawn_in_terminal());
    let settings = std::fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    contains(&settings, &["provider: openrouter"]);
}

/// Whoever goes through the questions again keeps what holds by pressing Enter.
#[tokio::test]
async fn enter_keeps_what_is_set_already() {
    let (hermes, server) = newcomer(answering()).await;
    let more = "approvals:\n  mode: smart\ndisplay:\n  busy_input_mode: steer\n";
    write_config(&hermes, &server.url(), more);
    let before = std::fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    let mut terminal = hermes.clone().args(["setup"]).spawn_in_terminal();
    terminal.expect("keep the one that answers now: custom:test-model", SOON);
    terminal.expect("choose", SOON);
    terminal.send("\n");
    for question in ["dangerous command", "changes a file", "while it works"] {
        terminal.expect(question, SOON);
        terminal.expect("choose", SOON);
        terminal.send("\n");
    }
    terminal.expect("saved", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    let after = std::fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    assert_eq!(before, after);
}

#[tokio::test]
async fn without_questions_it_takes_what_it_finds_or_says_what_is_missing() {
    let (hermes, _server) = newcomer(answering()).await;
    refused(
        &run(&hermes, &["setup", "--non-interactive"]),
        1,
        &["nothing was found that answers", "OPENROUTER_API_KEY"],
    );
    refused(&run(&hermes, &["setup"]), 2, &["nobody is there"]);
    let hermes = hermes.env("OPENROUTER_API_KEY", PASTED);
    let told = stdout(&hermes, &["setup", "--non-interactive"]);
    contains(&told, &["openrouter:", "answers, and is now the model"]);
}

#[tokio::test]
async fn a_reset_puts_the_settings_aside_and_keeps_the_keys() {
    let (hermes, _server) = newcomer(answering()).await;
    let hermes = hermes.env("OPENROUTER_API_KEY", PASTED);
    std::fs::write(
        hermes.home().join("config.yaml"),
        "agent:\n  max_turns: 7\n",
    )
    .unwrap();
    stdout(&hermes, &["setup", "--reset", "--non-interactive"]);
    let aside = hermes.home().join("config.yaml.before-setup");
    contains(&std::fs::read_to_string(aside).unwrap(), &["max_turns: 7"]);
    let settings = std::fs::read_to_string(hermes.home().join("config.yaml")).unwrap();
    assert!(!settings.contains("max_turns"), "{settings}");
    stdout(&hermes, &["setup", "--reset", "--non-interactive"]);
    let aside = hermes.home().join("config.yaml.before-setup");
    contains(&std::fs::read_to_string(aside).unwrap(), &["max_turns: 7"]);
    assert!(hermes.home().join("config.yaml.before-setup-2").exists());
}
