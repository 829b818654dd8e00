//! Subagents of the real binary: they work, they are counted, and kill -9 loses none of them.

use std::path::Path;
use std::time::{Duration, Instant};

use hermes_core::delegation::SUBAGENT_SOURCE;
use hermes_core::{Archive as _, Message, SessionFilter, SessionRecord, Store as _};
use hermes_store::SqliteStore;
use hermes_testkit::server::{Answer, Script, Usage};
use serde_json::{Value, json};

use crate::setting::Setting;

/// Long enough for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two subagents count; each leaves a line in the ledger. Answers depend on how far a turn is, not on who asked before.
fn script(pears: &str) -> Script {
    let tasks = json!({ "tasks": [{ "goal": "count the apples" }, { "goal": "count the pears" }] });
    let used = |answer: Answer| {
        answer.usage(Usage {
            prompt: 100,
            completion: 10,
            ..Usage::default()
        })
    };
    let run = |command: &str| {
        used(Answer::call(
            "run",
            "terminal",
            json!({ "command": command }),
        ))
    };
    Script::default()
        .when(
            "everything",
            [
                used(Answer::call("split", "delegate_task", tasks)),
                used(Answer::text("all is counted")),
            ],
        )
        .when(
            "apples",
            [
                run("echo apples >> ledger.txt"),
                used(Answer::text("3 apples")),
            ],
        )
        .when("pears", [run(pears), used(Answer::text("5 pears"))])
        .by_step()
}

fn store(setting: &Setting) -> SqliteStore {
    let home = setting.hermes.home();
    SqliteStore::open(home.join("hermes.db"), home.join("locks")).expect("the database opens")
}

/// The one session a person began, and its subagents.
async fn family(store: &SqliteStore) -> (SessionRecord, Vec<SessionRecord>) {
    let mut parents = store.list(SessionFilter::default()).await.unwrap();
    assert_eq!(parents.len(), 1, "subagents are not listed: {parents:?}");
    let parent = parents.remove(0);
    let subagents = store.subagents(&parent.id).await.unwrap();
    (parent, subagents)
}

/// What the call that delegated got.
async fn results(store: &SqliteStore, parent: &SessionRecord) -> Vec<Value> {
    let messages = store.load(&parent.id).await.unwrap().messages;
    let result = messages.iter().find_map(Message::tool_result).unwrap();
    let json: Value = serde_json::from_str(&result.text).unwrap();
    json["results"].as_array().cloned().unwrap_or_default()
}

fn ledger(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("ledger.txt")).unwrap_or_default();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !path.exists() {
        assert!(Instant::now() < deadline, "no `{}`", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[tokio::test]
async fn two_subagents_do_their_work_and_what_they_used_counts() {
    let setting = Setting::new(script("echo pears >> ledger.txt")).await;
    let folder = setting.hermes.work_folder();
    let usage = folder.join("usage.json");
    let usage_file = usage.display().to_string();
    let output = setting.run(&["--usage-file", &usage_file, "-z", "count everything"]);
    assert_eq!(output.stdout, "all is counted\n", "{output:?}");
    assert_eq!(ledger(&folder), ["apples", "pears"]);
    let store = store(&setting);
    let (parent, subagents) = family(&store).await;
    assert_eq!(subagents.len(), 2);
    for subagent in &subagents {
        assert_eq!(subagent.source, SUBAGENT_SOURCE);
        assert_eq!(subagent.parent.as_ref(), Some(&parent.id));
    }
    let results = results(&store, &parent).await;
    let said: Vec<_> = results.iter().map(|result| &result["summary"]).collect();
    assert_eq!(said, ["3 apples", "5 pears"]);
    // Two requests of the parent and two of each subagent.
    let usage: Value = serde_json::from_str(&std::fs::read_to_string(usage).unwrap()).unwrap();
    assert_eq!(usage["api_calls"], 6, "{usage}");
    assert_eq!(usage["output_tokens"], 60, "{usage}");
}

#[tokio::test]
async fn kill_9_while_subagents_run_leaves_every_one_accounted_for() {
    let pears = "echo pears >> ledger.txt; touch pears.started; sleep 60";
    let setting = Setting::new(script(pears)).await;
    let folder = setting.hermes.work_folder();
    let command = setting.hermes.clone();
    let mut running = command.args(["--json", "-z", "count everything"]).spawn();
    running.expect_stdout(r#""subagent":1,"text":"finished""#, PATIENCE);
    wait_for(&folder.join("pears.started"));
    running.kill_9();
    let asked_before = setting.server.requests().len();

    let output = setting.run(&["sessions", "recover"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stdout.contains("all is counted"), "{output:?}");
    let store = store(&setting);
    assert!(store.unfinished().await.unwrap().is_empty());
    let (parent, subagents) = family(&store).await;
    assert_eq!(subagents.len(), 2, "none was sent again");
    let results = results(&store, &parent).await;
    assert_eq!(results[0]["summary"], "3 apples", "found, not run again");
    assert_eq!(results[1]["status"], "completed", "taken up and finished");
    let trace = &results[1]["tool_trace"][0];
    assert_eq!(trace["status"], "outcome_unknown", "{trace}");
    assert_eq!(ledger(&folder), ["apples", "pears"], "nothing twice");
    // The second subagent's last words, and the parent's.
    assert_eq!(setting.server.requests().len(), asked_before + 2);
}

/// Needs a second or two per kill: each is a process, a death and a recovery.
#[tokio::test]
async fn kills_at_any_instant_leave_no_open_turn_and_no_effect_twice() {
    const KILLS: u32 = 5;
    let setting = Setting::new(script("echo pears >> ledger.txt")).await;
    let started = Instant::now();
    let first = setting.run(&["-z", "count everything"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let whole = started.elapsed();
    for kill in 1..=KILLS {
        let folder = setting.hermes.work_folder().join(format!("kill{kill}"));
        std::fs::create_dir_all(&folder).unwrap();
        let command = setting.hermes.clone().current_folder(&folder);
        let running = command.args(["-z", "count everything"]).spawn();
        std::thread::sleep(whole * kill / (KILLS + 1));
        running.kill_9();
        let recovered = setting.run(&["sessions", "recover"]);
        assert_eq!(recovered.code, Some(0), "{recovered:?}");
        let mut effects = ledger(&folder);
        let all = effects.len();
        effects.dedup();
        assert_eq!(effects.len(), all, "kill {kill}: {effects:?}");
    }
    let store = store(&setting);
    assert!(store.unfinished().await.unwrap().is_empty());
    let parents = store.list(SessionFilter::default()).await.unwrap();
    for parent in parents {
        for subagent in store.subagents(&parent.id).await.unwrap() {
            let end = store.load(&subagent.id).await.unwrap().last_end;
            assert!(end.is_some(), "{} has an end", subagent.id);
        }
        let results = results(&store, &parent).await;
        assert_eq!(results.len(), 2, "of {}", parent.id);
    }
}

#[tokio::test]
async fn what_background_subagents_find_arrives_in_a_waiting_conversation() {
    let dispatch = json!({ "goal": "look around", "background": true });
    let script = Script::default()
        .when("come to rest", [Answer::text("they have found something")])
        .when(
            "please begin",
            [
                Answer::call("send", "delegate_task", dispatch),
                Answer::text("they are on their way"),
            ],
        )
        .when("look around", [Answer::text("a laurel")])
        .by_step();
    let setting = Setting::new(script).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", PATIENCE);
    terminal.send("please begin\n");
    terminal.expect("they are on their way", PATIENCE);
    terminal.expect("they have found something", PATIENCE);
    terminal.send("/quit\n");
    assert_eq!(terminal.wait(PATIENCE), Some(0));
}
