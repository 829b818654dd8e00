//! kill -9 while a process runs in the background, subagents work and a script calls tools: after the restart every one of
//! them is accounted for, nothing has happened twice, and nothing is left running.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hermes_core::{Archive as _, Message, Random, Role, SessionFilter, Store as _};
use hermes_store::SqliteStore;
use hermes_testkit::peers::wait_until;
use hermes_testkit::process::{Hermes, Terminal};
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

/// Long enough for a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// Subagents may have subagents: the one in the background waits for one in its foreground.
const CONFIG: &str = "approvals:\n  mode: manual\ndelegation:\n  max_spawn_depth: 2\n";

/// A process in the background, a subagent in the background with one of its own, and a script that calls tools twice. The
/// second call and the subagent's stay at `hold`. Answers depend on how far a turn is, not on who asked before.
fn everything_at_once(hold: &str) -> Script {
    let effect = |name: &str, then: &str| {
        format!("echo {name} >> ledger.txt; echo $BASHPID > {name}.pid; {then}")
    };
    let run =
        |id: &str, command: String| Answer::call(id, "terminal", json!({ "command": command }));
    let script = format!(
        "import os\nfrom hermes_tools import terminal, write_file\n\
         write_file('script.pid', str(os.getpid()))\n\
         terminal({first:?})\nterminal({second:?})\n",
        first = effect("first", "true"),
        second = effect("second", hold),
    );
    let server = json!({ "command": effect("server", "exec sleep 600"), "background": true });
    let survey =
        json!({ "goal": "survey the orchard", "role": "orchestrator", "background": true });
    Script::default()
        .when("come to rest", [Answer::text("the orchard is surveyed")])
        .when(
            "please begin",
            [
                Answer::call("server", "terminal", server),
                Answer::call("survey", "delegate_task", survey),
                Answer::call("script", "execute_code", json!({ "code": script })),
                Answer::text("the work is done"),
            ],
        )
        .when(
            "what is left",
            [
                Answer::call("list", "process", json!({ "action": "list" })),
                Answer::text("that is all"),
            ],
        )
        .when(
            "one more script",
            [
                Answer::call("again", "execute_code", json!({ "code": "print(1)" })),
                Answer::text("it has run"),
            ],
        )
        .when(
            "the orchard",
            [
                Answer::call(
                    "send",
                    "delegate_task",
                    json!({ "goal": "count the apples" }),
                ),
                Answer::text("an orchard of 3 apples"),
            ],
        )
        .when(
            "the apples",
            [
                run("count", effect("apples", hold)),
                Answer::text("3 apples"),
            ],
        )
        .by_step()
}

/// One home, and one folder in which a conversation works.
struct Scene<'a> {
    setting: &'a Setting,
    hermes: Hermes,
    folder: PathBuf,
    sockets: PathBuf,
}

impl<'a> Scene<'a> {
    fn new(setting: &'a Setting, name: &str) -> Self {
        let folder = setting.hermes.work_folder().join(name);
        let sockets = setting.hermes.work_folder().join("tmp");
        for folder in [&folder, &sockets] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let hermes = setting.hermes.clone().current_folder(&folder);
        Self {
            setting,
            hermes: hermes.env("TMPDIR", &sockets),
            folder,
            sockets,
        }
    }

    fn begin(&self) -> Terminal {
        let mut terminal = self.hermes.clone().args(["--plain"]).spawn_in_terminal();
        terminal.expect("›", PATIENCE);
        terminal.send("please begin\n");
        terminal
    }

    fn continued(&self) -> Terminal {
        let hermes = self.hermes.clone().args(["--plain", "-c"]);
        hermes.spawn_in_terminal()
    }

    fn pid(&self, name: &str) -> String {
        let file = self.folder.join(format!("{name}.pid"));
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.trim().to_owned()
    }

    fn store(&self) -> SqliteStore {
        let home = self.setting.hermes.home();
        SqliteStore::open(home.join("hermes.db"), home.join("locks")).expect("the database opens")
    }

    /// Waits until nothing works in the folder but processes in the background that are recorded.
    fn wait_for_the_others_to_end(&self) {
        let recorded = self.background_groups();
        wait_until("everything else has ended", || {
            let mut groups = groups_in(&self.folder).into_values();
            groups.all(|group| recorded.contains(&group))
        });
    }

    fn background_groups(&self) -> Vec<String> {
        let processes = self.setting.hermes.home().join("processes");
        let folders = [processes.join("fenced"), processes];
        let folders = folders.iter().flat_map(std::fs::read_dir);
        let files = folders.flatten().flatten();
        let files = files.map(|entry| entry.path().join("process"));
        let texts = files.filter_map(|file| std::fs::read_to_string(file).ok());
        texts
            .filter_map(|text| text.split_whitespace().nth(1).map(str::to_owned))
            .collect()
    }

    /// Whether every turn has ended and every delegation in the background is reported.
    async fn is_at_rest(&self) -> bool {
        let store = self.store();
        let mut is_at_rest = store.unfinished().await.unwrap().is_empty();
        for parent in store.list(SessionFilter::default()).await.unwrap() {
            let messages = store.load(&parent.id).await.unwrap().messages;
            let survey = texts(&messages, "survey");
            let dispatched = survey.filter(|text| text.contains("dispatched")).count();
            is_at_rest &=
                messages.iter().filter(|message| is_report(message)).count() == dispatched;
        }
        is_at_rest
    }

    /// Checks what must be so whenever Hermes was killed, once it was at rest again and left.
    async fn check(&self) {
        for (effect, times) in self.ledger() {
            assert_eq!(times, 1, "of {effect}");
        }
        assert_eq!(groups_in(&self.folder), HashMap::new(), "nothing runs");
        assert!(self.is_at_rest().await);
        let store = self.store();
        for parent in store.list(SessionFilter::default()).await.unwrap() {
            check_calls(&store.load(&parent.id).await.unwrap().messages);
            for subagent in store.subagents(&parent.id).await.unwrap() {
                let loaded = store.load(&subagent.id).await.unwrap();
                check_calls(&loaded.messages);
                assert!(loaded.last_end.is_some(), "{} has an end", subagent.id);
            }
        }
    }

    fn sockets(&self) -> Vec<OsString> {
        let entries = std::fs::read_dir(&self.sockets).unwrap().flatten();
        entries.map(|entry| entry.file_name()).collect()
    }

    fn ledger(&self) -> HashMap<String, usize> {
        let text = std::fs::read_to_string(self.folder.join("ledger.txt")).unwrap_or_default();
        let mut times = HashMap::new();
        for line in text.lines() {
            *times.entry(line.to_owned()).or_default() += 1;
        }
        times
    }
}

/// The processes that work in a folder, with the groups they belong to. Those that have ended and wait to be noticed are
/// not among them.
fn groups_in(folder: &Path) -> HashMap<String, String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let at_work = entries.filter(|entry| {
        let cwd = std::fs::read_link(entry.path().join("cwd"));
        cwd.is_ok_and(|cwd| cwd.starts_with(folder))
    });
    let pids = at_work.map(|entry| entry.file_name().to_string_lossy().into_owned());
    pids.filter_map(|pid| Some((pid.clone(), group_of(&pid)?)))
        .collect()
}

fn group_of(pid: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.rsplit(')').next()?;
    after_name.split_whitespace().nth(2).map(str::to_owned)
}

/// Every call has its one result, in order.
fn check_calls(messages: &[Message]) {
    for (position, message) in messages.iter().enumerate() {
        let calls: Vec<_> = message.calls().map(|call| &call.id).collect();
        let after = messages[position + 1..].iter();
        let results = after.map_while(Message::tool_result);
        let results: Vec<_> = results.map(|result| &result.call).collect();
        if message.role == Role::Assistant {
            assert_eq!(calls, results, "{messages:?}");
        }
    }
}

/// What the calls of this id got.
fn texts<'a>(messages: &'a [Message], call: &'a str) -> impl Iterator<Item = &'a str> {
    let results = messages.iter().filter_map(Message::tool_result);
    results
        .filter(move |result| result.call.as_str() == call)
        .map(|result| result.text.as_str())
}

fn is_report(message: &Message) -> bool {
    message.role == Role::User && message.text().contains("have come to rest")
}

fn quit(terminal: Terminal) {
    terminal.send("/quit\n");
    assert_eq!(terminal.wait(PATIENCE), Some(0));
}

#[tokio::test]
async fn kill_9_while_everything_runs_leaves_every_one_accounted_for() {
    let setting = Setting::with(everything_at_once("sleep 600"), CONFIG).await;
    let scene = Scene::new(&setting, "once");
    let terminal = scene.begin();
    wait_until("everything runs at the same time", || {
        let names = ["server", "apples", "script", "second"];
        names.iter().all(|name| !scene.pid(name).is_empty())
    });
    terminal.kill_9();
    let server = group_of(&scene.pid("server")).expect("a process in the background runs on");
    assert_eq!(scene.background_groups(), [server]);
    scene.wait_for_the_others_to_end();

    let mut terminal = scene.continued();
    terminal.expect("the work is done", PATIENCE);
    terminal.expect("the orchard is surveyed", PATIENCE);
    terminal.send("what is left?\n");
    terminal.expect("that is all", PATIENCE);
    terminal.send("one more script\n");
    terminal.expect("it has run", PATIENCE);
    quit(terminal);
    assert_eq!(scene.sockets(), [""; 0]);
    scene.check().await;
    assert_eq!(scene.ledger().len(), 4, "each effect leaves a line");

    let store = scene.store();
    let parent = store
        .list(SessionFilter::default())
        .await
        .unwrap()
        .remove(0);
    let messages = store.load(&parent.id).await.unwrap().messages;
    let text = |call: &str| texts(&messages, call).collect::<String>();
    assert!(text("script").contains("outcome_unknown"), "{messages:?}");
    assert!(text("list").contains("is running"), "{messages:?}");
    let report = messages.iter().find(|message| is_report(message)).unwrap();
    assert!(
        report.text().contains("an orchard of 3 apples"),
        "{report:?}"
    );
    let subagents = store.subagents(&parent.id).await.unwrap();
    assert_eq!(subagents.len(), 2, "none was sent again");
}

/// Needs half a second for each kill: a start, a death and a recovery.
#[tokio::test]
async fn kills_at_any_instant_leave_nothing_running_nothing_open_and_no_effect_twice() {
    const KILLS: usize = 15;
    const SEED: u64 = 4;
    let setting = Setting::with(everything_at_once("sleep 0.1"), CONFIG).await;
    let scene = Scene::new(&setting, "whole");
    let started = Instant::now();
    let mut terminal = scene.begin();
    terminal.expect("the orchard is surveyed", PATIENCE);
    let whole_ms = started.elapsed().as_millis() as u64;
    quit(terminal);
    let random = Random::seeded(SEED);
    for kill in 1..=KILLS {
        let scene = Scene::new(&setting, &format!("kill{kill}"));
        let terminal = scene.begin();
        std::thread::sleep(Duration::from_millis(random.below(whole_ms)));
        terminal.kill_9();
        scene.wait_for_the_others_to_end();
        // With nothing said in it yet, this goes on with the conversation before.
        let terminal = scene.continued();
        let deadline = Instant::now() + PATIENCE;
        while !scene.is_at_rest().await {
            assert!(
                Instant::now() < deadline,
                "kill {kill} is not recovered from"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        quit(terminal);
        scene.check().await;
    }
    let output = setting.run(&["-z", "one more script"]);
    assert_eq!(output.stdout, "it has run\n", "{output:?}");
}
