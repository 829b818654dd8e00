//! Questions for consent between processes: one asks, another answers, and `kill -9` loses none.

use std::path::PathBuf;
use std::time::Duration;

use hermes_testkit::process::{Output, Terminal};
use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::setting::{Setting, write_config};

const SOON: Duration = Duration::from_secs(30);
/// Longer than any test takes.
const UNHURRIED: u32 = 600;

/// A home whose model wants to delete a folder that is there.
pub(crate) struct Asking {
    pub(crate) setting: Setting,
    victim: PathBuf,
}

impl Asking {
    pub(crate) async fn new(timeout_s: u32) -> Self {
        let call = Answer::call("c1", "terminal", json!({"command": "rm -r victim"}));
        let setting = Setting::new(Script::new([call, Answer::text("that was it")])).await;
        let approvals = format!("approvals:\n  mode: manual\n  timeout: {timeout_s}\n");
        write_config(&setting.hermes, &setting.server.url(), &approvals);
        let victim = setting.hermes.work_folder().join("victim");
        std::fs::create_dir(&victim).unwrap();
        Self { setting, victim }
    }

    /// Talks in plain lines until the question is there.
    pub(crate) fn ask(&self) -> Terminal {
        let mut terminal = self.setting.talk_plainly();
        terminal.expect("›", SOON);
        terminal.send("clean up\n");
        terminal.expect("allow?", SOON);
        terminal
    }

    fn run(&self, args: &[&str]) -> Output {
        self.setting.run(&[&["approvals"], args].concat())
    }

    fn open(&self) -> Vec<Value> {
        let output = self.run(&["list", "--json"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }

    /// The id of the one question that is open.
    fn id(&self) -> String {
        let open = self.open();
        assert_eq!(open.len(), 1, "{open:?}");
        open[0]["id"].as_str().unwrap().to_owned()
    }

    /// Lists what is open, at a terminal.
    fn listed_at_a_terminal(&self) -> String {
        let hermes = self.setting.hermes.clone();
        let mut terminal = hermes.args(["approvals"]).spawn_in_terminal();
        terminal.expect("rm -r victim", SOON);
        terminal.output()
    }

    fn is_deleted(&self) -> bool {
        !self.victim.exists()
    }

    /// Goes on with the conversation, as after a crash.
    fn resume(&self) -> Terminal {
        let hermes = self.setting.hermes.clone();
        hermes.args(["-c", "--plain"]).spawn_in_terminal()
    }
}

/// The code that stands below a question.
pub(crate) fn code_in(output: &str) -> String {
    let (_, code) = output.rsplit_once("hermes approvals allow ").unwrap();
    code.chars().take(6).collect()
}

#[tokio::test]
async fn a_second_process_answers_and_the_chat_goes_on() {
    let asking = Asking::new(UNHURRIED).await;
    let mut terminal = asking.ask();
    let code = code_in(&terminal.output());
    let open = asking.open();
    assert_eq!(open[0]["what"], "rm -r victim");
    assert_eq!(
        open[0]["choices"],
        json!(["once", "session", "always", "deny"])
    );
    assert_eq!(open[0]["settled"], Value::Null);
    let folder = asking.setting.hermes.work_folder().canonicalize().unwrap();
    assert_eq!(open[0]["folder"], json!(folder));
    let id = asking.id();
    let shown = asking.run(&["show", &id]).stdout;
    for part in ["rm -r victim", "deletes", "open for", "allow --session"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let listed = asking.run(&[]);
    assert!(listed.stdout.contains(&id), "listed by default");
    for output in [&listed.stdout, &shown, &json!(open).to_string()] {
        assert!(!output.contains(&code), "for a terminal only: {output}");
    }
    assert!(asking.listed_at_a_terminal().contains(&code));
    assert!(!asking.is_deleted());

    // The id is no answer; the code is.
    let refused = asking.run(&["allow", &id]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(!asking.is_deleted());
    let allowed = asking.run(&["allow", &code]);
    assert_eq!(
        allowed.stdout, "allowed once: rm -r victim\n",
        "{allowed:?}"
    );
    terminal.expect(
        "answered elsewhere (with `hermes approvals`): allowed once",
        SOON,
    );
    terminal.expect("that was it", SOON);
    assert!(asking.is_deleted());

    let late = asking.run(&["deny", &code]);
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(
        late.stderr
            .contains("is over: allowed once with `hermes approvals`")
    );
    assert!(asking.open().is_empty());
    let shown = asking.run(&["show", &id, "--json"]).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["settled"]["verdict"], "once", "{shown}");
}

#[tokio::test]
async fn the_dialog_of_the_interface_closes_when_another_process_says_no() {
    let asking = Asking::new(UNHURRIED).await;
    let terminal = asking.setting.hermes.spawn_in_terminal();
    terminal.expect_screen("›", SOON);
    terminal.send("clean up\r");
    terminal.expect_screen("allow? y once", SOON);
    let code = code_in(&terminal.screen());
    let denied = asking.run(&["deny", &code, "--reason", "keep it"]);
    assert_eq!(denied.code, Some(0), "{denied:?}");
    terminal.expect_screen("answered elsewhere", SOON);
    terminal.expect_screen("that was it", SOON);
    assert!(
        !terminal.screen().contains("allow?"),
        "{}",
        terminal.screen()
    );
    assert!(!asking.is_deleted());
    let requests = asking.setting.server.requests();
    let last = requests.last().unwrap().json.to_string();
    assert!(last.contains("says: keep it"), "{last}");
    assert!(!last.contains(&code), "{last}");
}

#[tokio::test]
async fn after_five_wrong_codes_only_the_conversation_answers() {
    let asking = Asking::new(UNHURRIED).await;
    let mut terminal = asking.ask();
    let code = code_in(&terminal.output());
    for _ in 0..5 {
        let wrong = asking.run(&["allow", "222222"]);
        assert!(
            wrong
                .stderr
                .contains("no question that waits has this code"),
            "{wrong:?}"
        );
    }
    let locked = asking.run(&["allow", &code]);
    assert_eq!(locked.code, Some(1), "{locked:?}");
    assert!(
        locked.stderr.contains("in the conversation that asks"),
        "{locked:?}"
    );
    assert!(!asking.is_deleted());
    terminal.send("y\n");
    terminal.expect("that was it", SOON);
    assert!(asking.is_deleted());
}

#[tokio::test]
async fn after_kill_9_the_question_is_still_there_and_nothing_runs_without_an_answer() {
    let asking = Asking::new(UNHURRIED).await;
    asking.ask().kill_9();
    let id = asking.id();
    let mut terminal = asking.resume();
    terminal.expect("allow?", SOON);
    assert_eq!(asking.id(), id, "the same question");
    assert!(!asking.is_deleted());
    terminal.send("y\n");
    terminal.expect("that was it", SOON);
    assert!(asking.is_deleted());
}

#[tokio::test]
async fn an_answer_given_after_kill_9_counts_when_the_turn_goes_on() {
    let asking = Asking::new(UNHURRIED).await;
    let terminal = asking.ask();
    let code = code_in(&terminal.output());
    terminal.kill_9();
    let allowed = asking.run(&["allow", &code, "--json"]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    assert!(!allowed.stdout.contains(&code), "{allowed:?}");
    assert!(!asking.is_deleted(), "nobody is there to run it");
    let mut terminal = asking.resume();
    terminal.expect("that was it", SOON);
    assert!(asking.is_deleted());
    assert!(!terminal.output().contains("allow?"));
}

#[tokio::test]
async fn silence_means_no() {
    let asking = Asking::new(1).await;
    let mut terminal = asking.ask();
    terminal.expect("nobody answered in time: refused", SOON);
    terminal.expect("that was it", SOON);
    assert!(!asking.is_deleted());
    assert!(asking.open().is_empty());
}

#[tokio::test]
async fn of_answers_given_at_once_exactly_one_wins() {
    let asking = Asking::new(UNHURRIED).await;
    let mut terminal = asking.ask();
    let code = code_in(&terminal.output());
    let answer = |verb: &str| {
        let hermes = asking.setting.hermes.clone();
        hermes.args(["approvals", verb, &code]).spawn()
    };
    let running = ["allow", "deny", "allow", "deny"].map(|verb| (verb, answer(verb)));
    let outputs = running.map(|(verb, running)| (verb, running.wait(SOON)));
    let winners: Vec<_> = outputs
        .iter()
        .filter(|(_, output)| output.code == Some(0))
        .map(|(verb, _)| *verb)
        .collect();
    assert_eq!(winners.len(), 1, "{outputs:?}");
    terminal.expect("that was it", SOON);
    assert_eq!(asking.is_deleted(), winners == ["allow"]);
}

#[tokio::test]
async fn what_does_not_exist_is_said_with_what_to_do() {
    let asking = Asking::new(UNHURRIED).await;
    assert_eq!(asking.run(&[]).stdout, "nothing waits for an answer\n");
    for (verb, told, hint) in [
        ("show", "no approval `12345678`", "hermes approvals list"),
        (
            "allow",
            "no question that waits has this code",
            "`hermes approvals` at a terminal",
        ),
        (
            "deny",
            "no question that waits has this code",
            "`hermes approvals` at a terminal",
        ),
    ] {
        let output = asking.run(&[verb, "12345678"]);
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains(told), "{output:?}");
        assert!(output.stderr.contains(hint), "{output:?}");
    }
}
