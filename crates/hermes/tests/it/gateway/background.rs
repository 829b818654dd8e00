//! A gateway in the background: started, asked how it is, restarted and ended from outside.

use std::time::{Duration, Instant};

use hermes_testkit::process::{Hermes, Output};
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::telegram::people::ALICE;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::KEY;
use super::platform::Bot;
use crate::setting::{Setting, bare};

/// Ends the gateway of a home when the test is over, however that ends.
pub(super) struct Ended(pub(super) Hermes);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.clone().args(["gateway", "stop"]).run();
    }
}

fn api(setting: &Setting) -> Hermes {
    setting
        .hermes
        .clone()
        .env("API_SERVER_KEY", KEY)
        .env("API_SERVER_PORT", "0")
}

fn run(hermes: &Hermes, args: &[&str]) -> Output {
    hermes.clone().args(args.iter().copied()).run()
}

fn status(hermes: &Hermes) -> Value {
    let output = run(hermes, &["gateway", "status", "--json"]);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

pub(super) fn signal(pid: &Value, signal: Signal) {
    let pid = i32::try_from(pid.as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_started_looked_at_restarted_and_ended() {
    let setting = Setting::new(Script::always(Answer::text("hi"))).await;
    let hermes = api(&setting);
    let none = run(&hermes, &["gateway", "status"]);
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.stdout.contains("not running"), "{none:?}");
    let _ended = Ended(hermes.clone());
    let started = run(&hermes, &["gateway", "start"]);
    assert_eq!(started.code, Some(0), "{started:?}");
    assert!(started.stdout.contains("the gateway serves (pid"));
    let first = status(&hermes);
    assert_eq!(first["running"], true);
    assert_eq!(first["state"], "running");
    assert!(
        first["serves"][0]
            .as_str()
            .unwrap()
            .starts_with("API on http://127.0.0.1:")
    );
    let told = run(&hermes, &["gateway", "status"]).stdout;
    for words in ["running: pid", "API on", "0 running", "nothing waits"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let everything = run(&hermes, &["status"]).stdout;
    assert!(everything.contains("gateway"), "{everything}");
    assert!(everything.contains("running: pid"), "{everything}");
    let again = run(&hermes, &["gateway", "start"]).stdout;
    assert!(again.contains("serves this home already"), "{again}");
    let listed = run(&hermes, &["gateway", "list"]).stdout;
    let pid = first["pid"].to_string();
    assert!(
        listed.contains("default") && listed.contains(&pid),
        "{listed}"
    );
    let restarted = run(&hermes, &["gateway", "restart"]);
    assert_eq!(restarted.code, Some(0), "{restarted:?}");
    let second = status(&hermes);
    assert_eq!(second["pid"], first["pid"], "it became itself anew");
    assert_ne!(second["started"], first["started"]);
    let stopped = run(&hermes, &["gateway", "stop"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert_eq!(status(&hermes)["running"], false);
    assert!(
        run(&hermes, &["gateway", "stop"])
            .stdout
            .contains("no gateway serves")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_killed_is_not_believed_to_run() {
    // Complaint 7: markers of a process that is gone.
    let setting = Setting::new(Script::always(Answer::text("hi"))).await;
    let hermes = api(&setting);
    let _ended = Ended(hermes.clone());
    assert!(run(&hermes, &["gateway", "start"]).is_success());
    signal(&status(&hermes)["pid"], Signal::KILL);
    let deadline = Instant::now() + Duration::from_secs(10);
    while status(&hermes)["running"] != false {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(run(&hermes, &["gateway", "start"]).is_success());
    assert_eq!(status(&hermes)["running"], true);
}

#[test]
fn one_that_cannot_start_says_why_at_once() {
    let hermes = bare().env("API_SERVER_KEY", "short");
    let output = run(&hermes, &["gateway", "start"]);
    assert_eq!(output.code, Some(78), "{output:?}");
    assert!(output.stderr.contains("it needs 16"), "{output:?}");
    assert!(output.stderr.contains("openssl rand -hex 32"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_while_it_drains_is_answered_after_the_restart() {
    // Complaint 7: acknowledged while it ended, and then discarded.
    let script = Script::new([
        Answer::text("one").headers_delay(Duration::from_millis(1500)),
        Answer::text("two"),
    ]);
    let bot = Bot::new(script, &ALICE.to_string()).await;
    bot.say("first");
    let deadline = Instant::now() + Duration::from_secs(20);
    while bot.requests().is_empty() {
        assert!(Instant::now() < deadline, "the model was not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&status(&bot.setting.hermes)["pid"], Signal::USR1);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(status(&bot.setting.hermes)["state"], "draining");
    bot.say("second");
    bot.expect_answers(&["one", "two"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chat_that_asks_for_a_restart_hears_when_it_is_done() {
    let bot = Bot::new(Script::always(Answer::text("yes")), &ALICE.to_string()).await;
    bot.say("/platforms");
    let told = bot.expect(ALICE, "how it is", |texts| texts.len() == 1);
    assert!(told[0].contains("telegram: connected as"), "{told:?}");
    bot.say("/restart");
    let told = bot.expect(ALICE, "that it is back", |texts| texts.len() == 3);
    assert!(told[1].contains("start again"), "{told:?}");
    assert!(told[2].contains("I am back"), "{told:?}");
    bot.say("there?");
    bot.expect(ALICE, "an answer", |texts| {
        texts.last().is_some_and(|text| text == "yes")
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn one_account_is_for_one_process_of_a_machine() {
    let mut bot = Bot::new(Script::always(Answer::text("yes")), &ALICE.to_string()).await;
    let home = bot.setting.hermes.home();
    let profile = home.join("profiles/work");
    std::fs::create_dir_all(&profile).unwrap();
    for file in [".env", "config.yaml"] {
        std::fs::copy(home.join(file), profile.join(file)).unwrap();
    }
    let pid = bot.running.as_ref().unwrap().id();
    let work = bot.setting.hermes.clone().args(["-p", "work"]);
    let mut second = work.clone().args(["gateway", "run"]).spawn();
    second.expect_stdout("gateway: ready", Duration::from_secs(20));
    let deadline = Instant::now() + Duration::from_secs(20);
    let words = format!("another gateway (pid {pid}) receives with this telegram account");
    while !second.stderr().contains(&words) {
        assert!(Instant::now() < deadline, "{}", second.stderr());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(second.stderr().contains("an account of its own"));
    let listed = run(&bot.setting.hermes, &["gateway", "list", "--json"]).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["platforms"][0]["state"], "connected");
    assert_eq!(listed[1]["platforms"][0]["state"], "waiting");
    // In the same home it does not even begin.
    let third = run(&bot.setting.hermes, &["gateway", "run"]);
    assert_eq!(third.code, Some(1), "{third:?}");
    assert!(third.stderr.contains(&format!("(pid {pid})")), "{third:?}");
    // When the first ends, the second takes its place by itself.
    bot.kill();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !second.stderr().contains("telegram is connected") {
        assert!(Instant::now() < deadline, "{}", second.stderr());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_takes_its_place_when_told_so() {
    let mut bot = Bot::new(Script::always(Answer::text("yes")), &ALICE.to_string()).await;
    let first = bot.running.take().unwrap();
    let mut second = bot
        .setting
        .hermes
        .clone()
        .args(["gateway", "run", "--replace"])
        .spawn();
    second.expect_stdout("gateway: ready", Duration::from_secs(30));
    assert_eq!(first.wait(Duration::from_secs(20)).code, Some(0));
    bot.running = Some(second);
    bot.say("there?");
    bot.expect_answers(&["yes"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_the_deadline_cuts_off_goes_on_after_the_start() {
    // Complaints 6 and 7: a drain that never ends, and turns that are lost by it.
    let script = Script::new([
        Answer::text("too late").headers_delay(Duration::from_secs(60)),
        Answer::text("the answer"),
    ]);
    let more = "approvals:\n  mode: manual\nagent: {restart_drain_timeout: 1}\n";
    let mut bot = Bot::with(script, &ALICE.to_string(), more).await;
    bot.say("think long");
    let deadline = Instant::now() + Duration::from_secs(20);
    while bot.requests().is_empty() {
        assert!(Instant::now() < deadline, "the model was not asked");
        std::thread::sleep(Duration::from_millis(5));
    }
    let began = Instant::now();
    let stopped = run(&bot.setting.hermes, &["gateway", "stop"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(began.elapsed() < Duration::from_secs(15), "{stopped:?}");
    let first = bot.running.take().unwrap();
    assert_eq!(first.wait(Duration::from_secs(10)).code, Some(0));
    bot.start();
    bot.expect_answers(&["the answer"]);
}
