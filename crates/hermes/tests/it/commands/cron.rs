//! `hermes cron`, and `/cron` in a conversation.

use std::fs;
use std::time::Duration;

use hermes_testkit::server::{Answer, Script};

use super::{contains, json, refused, run, stdout};
use crate::setting::{Setting, bare, write_config};

const SOON: Duration = Duration::from_secs(20);

#[test]
fn a_job_is_made_read_back_changed_and_removed() {
    let hermes = bare();
    contains(&stdout(&hermes, &["cron"]), &["there are no jobs"]);
    let made = run(
        &hermes,
        &[
            "cron",
            "add",
            "every weekday at 9 in Berlin",
            "Summarise my mail",
            "--name",
            "mail",
        ],
    );
    assert_eq!(made.code, Some(0), "{made:?}");
    contains(
        &made.stdout,
        &[
            "every Monday to Friday at 09:00 (Europe/Berlin)",
            "next ",
            "then ",
        ],
    );
    assert_eq!(
        made.stdout.matches("(Europe/Berlin)").count(),
        6,
        "{}",
        made.stdout
    );
    contains(&made.stderr, &["only while `hermes gateway run` does"]);
    let listed = stdout(&hermes, &["cron", "list"]);
    contains(&listed, &["mail", "every Monday to Friday", "active"]);
    let jobs = json(&hermes, &["cron", "list", "--json"]);
    assert_eq!(jobs[0]["job"]["prompt"], "Summarise my mail");
    contains(&stdout(&hermes, &["cron", "pause", "mail"]), &["paused"]);
    contains(
        &stdout(&hermes, &["cron", "resume", "mail"]),
        &["active", "next "],
    );
    let edited = stdout(
        &hermes,
        &[
            "cron",
            "edit",
            "mail",
            "--schedule",
            "every 2h",
            "--misfire",
            "skip",
            "--add-skill",
            "x",
        ],
    );
    contains(&edited, &["every 2 hours", "skip", "skills   x"]);
    contains(
        &stdout(&hermes, &["cron", "next", "mail"]),
        &["every 2 hours"],
    );
    contains(
        &stdout(
            &hermes,
            &["cron", "next", "first Monday of the month at noon in Tokyo"],
        ),
        &["the 1st Monday of the month at 12:00 (Asia/Tokyo)", "then "],
    );
    contains(&stdout(&hermes, &["cron", "rm", "mail"]), &["removed"]);
    contains(&stdout(&hermes, &["cron", "history"]), &["nothing has run"]);
}

#[test]
fn what_cannot_be_read_is_said_with_examples() {
    let hermes = bare();
    let check = |args: &[&str], phrases: &[&str]| refused(&run(&hermes, args), 2, phrases);
    check(
        &["cron", "add", "whenever", "x"],
        &["`whenever` is not understood", "every weekday at 9"],
    );
    check(&["cron", "add", "every 0s", "x"], &["not understood"]);
    check(&["cron", "add", "every day"], &["needs a prompt"]);
    check(
        &["cron", "add", "every day", "x", "--deliver", "telegramm:5"],
        &["no platform `telegramm`", "did you mean `telegram:5`?"],
    );
    check(
        &["cron", "edit", "x"],
        &["nothing is said that should change"],
    );
    check(
        &["cron", "next", "every day at 9 in Atlantis"],
        &["no time zone is called"],
    );
    check(
        &["cron", "pause", "nothing"],
        &["there is no job `nothing`"],
    );
    check(
        &["cron", "add", "every day", "x", "--max-cost=-1"],
        &["US dollars"],
    );
}

#[tokio::test]
async fn what_is_due_runs_and_its_result_is_in_a_file() {
    let setting = Setting::new(Script::always(Answer::text("All is well."))).await;
    let hermes = &setting.hermes;
    stdout(
        hermes,
        &[
            "cron",
            "add",
            "every day at 3",
            "How are things?",
            "--name",
            "things",
        ],
    );
    assert_eq!(stdout(hermes, &["cron", "tick"]).trim(), "0 runs");
    contains(&stdout(hermes, &["cron", "run", "things"]), &["wanted now"]);
    assert_eq!(stdout(hermes, &["cron", "tick"]).trim(), "1 run");
    let history = json(hermes, &["cron", "history", "things", "--json"]);
    assert_eq!(history[0]["status"], "succeeded", "{history}");
    assert_eq!(history[0]["output"], "All is well.");
    assert_eq!(history[0]["deliveries"][0]["status"], "delivered");
    let id = history[0]["job"].as_str().unwrap();
    let folder = hermes.home().join("cron/output").join(id);
    let files: Vec<_> = fs::read_dir(folder).unwrap().collect();
    let text = fs::read_to_string(files[0].as_ref().unwrap().path()).unwrap();
    contains(&text, &["Job “things”", "All is well."]);
    let sessions = json(hermes, &["sessions", "list", "--json"]);
    assert_eq!(sessions[0]["source"], "cron", "{sessions}");
    contains(
        &stdout(hermes, &["cron", "history"]),
        &["succeeded, by hand", "local delivered"],
    );
}

#[test]
fn jobs_of_hermes_agent_are_taken_over_and_told() {
    let hermes = bare();
    let folder = hermes.home().join("cron");
    fs::create_dir_all(&folder).unwrap();
    let text = r#"{"jobs": [
        {"id": "0123456789ab", "name": "watch", "prompt": "look, and only respond if error", "silent": true,
         "schedule": {"kind": "interval", "minutes": 30, "display": "every 30m"}, "enabled": true},
        {"id": "ba9876543210", "name": "broken", "prompt": "x", "schedule": {"kind": "cron", "expr": "nonsense"}}]}"#;
    fs::write(folder.join("jobs.json"), text).unwrap();
    let listed = run(&hermes, &["cron", "list"]);
    contains(
        &listed.stdout,
        &["0123456789ab", "watch", "every 30 minutes"],
    );
    contains(
        &listed.stderr,
        &["took over 1 job", "not taken over: `broken`"],
    );
    let again = run(&hermes, &["cron", "list"]);
    assert!(!again.stderr.contains("took over"), "{}", again.stderr);
    contains(&stdout(&hermes, &["cron", "show", "watch"]), &["silent"]);
    assert_eq!(fs::read_to_string(folder.join("jobs.json")).unwrap(), text);
}

#[tokio::test]
async fn a_conversation_makes_jobs_by_word_and_by_tool() {
    let call = serde_json::json!({"action": "create", "schedule": "every day at 7", "prompt": "Say hello.", "name": "hello"});
    let script = Script::new([
        Answer::call("c1", "cronjob", call),
        Answer::text("Done: every day at 7."),
    ]);
    let setting = Setting::new(script).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    for (line, answer) in [
        (
            "/cron add every weekday at 9 summarise my mail",
            "every Monday to Friday at 09:00",
        ),
        ("/cron next every blue moon", "`blue` is not understood"),
        ("greet me every day", "Done: every day at 7."),
        ("/cron", "every day at 07:00"),
        ("/cron pause hello", "paused"),
    ] {
        terminal.send(&format!("{line}\n"));
        terminal.expect(answer, SOON);
        terminal.expect("›", SOON);
    }
    terminal.send("/quit\n");
    assert_eq!(terminal.wait(SOON), Some(0));
    let jobs = json(&setting.hermes, &["cron", "list", "--json"]);
    assert_eq!(jobs.as_array().unwrap().len(), 2);
    assert!(jobs[1]["job"]["created_in"].is_string(), "{jobs}");
}

#[tokio::test]
async fn a_gateway_runs_jobs_that_are_wanted_meanwhile_and_others_can_tell() {
    let setting = Setting::new(Script::always(Answer::text("All is well."))).await;
    let hermes = &setting.hermes;
    let refusal = run(hermes, &["gateway", "run"]);
    assert_eq!(refusal.code, Some(78), "{refusal:?}");
    stdout(
        hermes,
        &[
            "cron",
            "add",
            "every day at 3",
            "How are things?",
            "--name",
            "things",
        ],
    );
    let mut gateway = hermes.clone().args(["gateway", "run"]).spawn();
    gateway.expect_stdout("1 job", SOON);
    let asked = run(hermes, &["cron", "run", "things"]);
    assert!(!asked.stderr.contains("only while"), "{}", asked.stderr);
    // It looks every twenty seconds for what other processes want.
    let mut history = serde_json::Value::Null;
    for _ in 0..80 {
        history = json(hermes, &["cron", "history", "--json"]);
        if history[0]["deliveries"][0]["status"] == "delivered" {
            break;
        }
        std::thread::sleep(Duration::from_millis(400));
    }
    assert_eq!(history[0]["output"], "All is well.", "{history}");
    gateway.kill_9();
    contains(&run(hermes, &["cron", "list"]).stderr, &["only while"]);
}

#[test]
fn a_zone_that_does_not_exist_is_told_wherever_times_are() {
    let hermes = bare();
    let config = hermes.home().join("config.yaml");
    fs::write(&config, "timezone: Europe/Berln\n").unwrap();
    let told = [
        "config.yaml:1:11: timezone: `Europe/Berln` is no time zone",
        "did you mean `Europe/Berlin`",
    ];
    let add = ["cron", "add", "every day at 9", "Look at the mail"];
    contains(&run(&hermes, &add).stdout, &told);
    contains(
        &run(&hermes, &["cron", "next", "every day at 9"]).stderr,
        &told,
    );
    contains(&run(&hermes, &["cron", "list"]).stderr, &told);
    for args in [&["config", "check"][..], &["doctor", "--offline"]] {
        let checked = run(&hermes, args);
        assert_eq!(checked.code, Some(1), "{checked:?}");
        contains(&checked.stdout, &told);
    }
    fs::write(&config, "timezone: Berln\n").unwrap();
    let near = ["did you mean `Europe/Berlin`"];
    contains(&run(&hermes, &["config", "check"]).stdout, &near);
    fs::write(&config, "timezone: Europe/Berlin\n").unwrap();
    contains(&stdout(&hermes, &["config", "check"]), &["ok"]);
    assert!(!run(&hermes, &["cron", "list"]).stderr.contains("timezone"));
}

#[test]
fn a_limit_of_money_that_cannot_be_kept_is_told_where_it_is_set() {
    let hermes = bare();
    let config = hermes.home().join("config.yaml");
    let hosted =
        "model: {provider: openrouter, default: test-model, api_key: sk-or-v1-0123456789abcdef}\n";
    fs::write(&config, hosted).unwrap();
    let add = |more: &[&str]| {
        let args = ["cron", "add", "every day at 9", "Look at the mail"];
        stdout(&hermes, &[&args[..], more].concat())
    };
    contains(
        &add(&["--max-cost", "0.50"]),
        &["note", "not known what", "test-model", "--max-cost 0"],
    );
    assert!(!add(&[]).contains("not known what"));
    let priced = add(&["--max-cost", "0.50", "--job-model", "gpt-5-mini"]);
    assert!(!priced.contains("not known what"), "{priced}");
    // A server of one's own costs nothing.
    write_config(&hermes, "http://127.0.0.1:9/v1", "");
    assert!(!add(&["--max-cost", "0.50"]).contains("not known what"));
}
