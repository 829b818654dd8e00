//! Checkpoints, from the binary's surfaces.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::setting::{Setting, write_config};

const SOON: Duration = Duration::from_secs(20);

/// A model that overwrites `a.txt` and adds `new.txt`, in a project that is no repository.
async fn setting() -> Setting {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "terminal", json!({ "command": "echo new > a.txt" })),
        Answer::call(
            "c2",
            "write_file",
            json!({ "path": "new.txt", "content": "n" }),
        ),
        Answer::text("done"),
    ]))
    .await;
    let more = "checkpoints:\n  enabled: true\n";
    write_config(&setting.hermes, &setting.server.url(), more);
    std::fs::write(setting.hermes.work_folder().join("a.txt"), "old").unwrap();
    setting
}

fn read(setting: &Setting, file: &str) -> Option<String> {
    std::fs::read_to_string(setting.hermes.work_folder().join(file)).ok()
}

fn json(setting: &Setting, args: &[&str]) -> Value {
    let output = setting.run(args);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[tokio::test]
async fn a_turn_is_taken_back_and_taken_back_again_from_the_command_line() {
    let setting = setting().await;
    assert_eq!(setting.run(&["chat", "-q", "go"]).code, Some(0));
    let list = json(&setting, &["checkpoints", "list", "--json"]);
    assert_eq!(
        list.as_array().unwrap().len(),
        1,
        "one for the whole turn: {list}"
    );
    assert_eq!(list[0]["reason"], "terminal echo new > a.txt");
    let diff = setting.run(&["checkpoints", "diff", "1"]);
    assert!(
        diff.stdout.contains("+new") && diff.stdout.contains("new.txt"),
        "{diff:?}"
    );

    let restored = json(&setting, &["checkpoints", "restore", "1", "--json"]);
    assert_eq!(restored["written"], json!(["a.txt"]));
    assert_eq!(restored["removed"], json!(["new.txt"]));
    assert_eq!(
        (read(&setting, "a.txt"), read(&setting, "new.txt")),
        (Some("old".into()), None)
    );

    let undo = restored["undo"].as_str().unwrap();
    let undone = setting.run(&["checkpoints", "restore", undo, "a.txt"]);
    assert!(undone.stdout.contains("undoes this"), "{undone:?}");
    assert_eq!(
        (read(&setting, "a.txt"), read(&setting, "new.txt")),
        (Some("new\n".into()), None)
    );
    let wrong = setting.run(&["checkpoints", "restore", "99"]);
    assert!(wrong.stderr.contains("no checkpoint `99`"), "{wrong:?}");
    let pruned = json(&setting, &["checkpoints", "prune", "--json"]);
    assert_eq!(pruned["dropped"], 0, "{pruned}");
    let all = setting.run(&["checkpoints", "list", "--all"]);
    let work = std::fs::canonicalize(setting.hermes.work_folder()).unwrap();
    assert!(all.stdout.contains(work.to_str().unwrap()), "{all:?}");
}

#[tokio::test]
async fn a_conversation_rolls_back_with_a_slash() {
    let setting = setting().await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("/rollback\n");
    terminal.expect("no checkpoints of", SOON);
    terminal.send("go\n");
    terminal.expect("done", SOON);
    // The prompt comes when the turn has ended; before that /rollback has to wait.
    terminal.expect("›", SOON);
    terminal.send("/rollback\n");
    terminal.expect("/rollback N brings one back", SOON);
    terminal.send("/rollback diff 1\n");
    terminal.expect("+new", SOON);
    terminal.send("/rollback 1 a.txt\n");
    terminal.expect("1 file written, 0 removed", SOON);
    assert_eq!(read(&setting, "a.txt").as_deref(), Some("old"));
    assert_eq!(read(&setting, "new.txt").as_deref(), Some("n"));
    terminal.send("/rollback 2\n");
    terminal.expect("0 files written, 1 removed", SOON);
    terminal.send("/rollback seventeen\n");
    terminal.expect("no checkpoint `seventeen`", SOON);
}

/// A folder of programs with everything a shell needs, and git only as given.
fn programs(setting: &Setting, git: Option<&str>) -> String {
    let folder = setting.hermes.home().join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["bash", "sh", "sleep", "cat"] {
        let _ = symlink(Path::new("/bin").join(name), folder.join(name));
    }
    if let Some(script) = git {
        std::fs::write(folder.join("git"), format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.join("git"), mode).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn without_git_the_work_is_done_and_one_line_says_what_is_missing() {
    let setting = setting().await;
    let path = programs(&setting, None);
    let hermes = setting.hermes.clone().env("PATH", path);
    let output = hermes.args(["chat", "-q", "go"]).run();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(read(&setting, "new.txt").as_deref(), Some("n"));
    let said = format!("{}{}", output.stdout, output.stderr);
    assert_eq!(said.matches("install git").count(), 1, "{said}");
}

#[tokio::test]
async fn a_process_killed_while_it_keeps_a_checkpoint_harms_neither_files_nor_store() {
    let setting = setting().await;
    let reached = setting.hermes.home().join("reached");
    let script = format!(
        "case \" $* \" in *\" write-tree \"*) : > {}; exec sleep 20;; esac\nPATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\"",
        reached.display()
    );
    let path = programs(&setting, Some(&script));
    let killed = setting.hermes.clone().env("PATH", path);
    let running = killed.args(["chat", "-q", "go"]).spawn();
    let started = Instant::now();
    while !reached.exists() {
        assert!(started.elapsed() < SOON, "{}", running.stderr());
        std::thread::sleep(Duration::from_millis(10));
    }
    running.kill_9();
    assert_eq!(
        read(&setting, "a.txt").as_deref(),
        Some("old"),
        "no copy, no change"
    );

    // The turn goes on where it was cut short, and is kept this time.
    let resumed = setting.run(&["sessions", "recover"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(read(&setting, "a.txt").as_deref(), Some("new\n"));
    let restored = json(&setting, &["checkpoints", "restore", "1", "--json"]);
    assert_eq!(restored["removed"], json!(["new.txt"]));
    assert_eq!(read(&setting, "a.txt").as_deref(), Some("old"));
}
