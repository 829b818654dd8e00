//! `--worktree` never removes work.

use std::path::Path;

use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

fn git(folder: &Path, args: &[&str]) -> String {
    #[expect(clippy::disallowed_methods, reason = "a test prepares a repository")]
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(folder)
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn after(command: &str) -> (Setting, hermes_testkit::process::Output) {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "terminal", json!({ "command": command })),
        Answer::text("done"),
    ]))
    .await;
    let folder = setting.hermes.work_folder();
    git(&folder, &["init", "-q"]);
    std::fs::write(folder.join("a.txt"), "a").unwrap();
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "first"]);
    let output = setting.run(&["chat", "-w", "-q", "go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    (setting, output)
}

#[tokio::test]
async fn a_worktree_without_work_is_removed() {
    let (setting, _) = after("ls").await;
    let folder = setting.hermes.work_folder();
    assert_eq!(git(&folder, &["worktree", "list"]).lines().count(), 1);
    assert!(!git(&folder, &["branch"]).contains("hermes/"));
    assert_eq!(
        git(&folder, &["status", "--porcelain"]),
        "",
        "nothing of the user's changed"
    );
}

#[tokio::test]
async fn a_worktree_with_changes_or_commits_is_kept() {
    let commit = "echo b > b.txt; git add .; git -c user.name=t -c user.email=t@example.org commit -q -m second";
    for command in ["echo b > b.txt", commit] {
        let (setting, output) = after(command).await;
        assert!(
            output.stderr.contains("holds work and is kept"),
            "{}",
            output.stderr
        );
        assert_eq!(
            git(&setting.hermes.work_folder(), &["worktree", "list"])
                .lines()
                .count(),
            2,
            "{command}"
        );
    }
}

#[tokio::test]
async fn a_run_that_cannot_start_leaves_no_worktree_behind() {
    let hermes = crate::setting::bare();
    let folder = hermes.work_folder();
    git(&folder, &["init", "-q"]);
    git(&folder, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let output = hermes
        .clone()
        .args(["-w", "-z", "hi", "-m", "anthropic:claude"])
        .run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(git(&folder, &["worktree", "list"]).lines().count(), 1);
}
