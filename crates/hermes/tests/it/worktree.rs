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

/// Makes everything in a repository that git can be made to run write its name into `canaries`.
fn booby_trap(folder: &Path, canaries: &Path) {
    let canary = |name: &str| canaries.join(name).display().to_string();
    let script = |name: &str| format!("touch '{}'; cat", canary(name));
    for hook in [
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "pre-commit",
        "post-merge",
        "fsmonitor-watchman",
    ] {
        let path = folder.join(".git/hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\ntouch '{}'\n", canary(hook))).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }
    for (name, value) in [
        ("filter.a=b.smudge", script("smudge")),
        ("filter.a=b.clean", script("clean")),
        ("filter.long.process", script("process")),
        ("filter.long.required", "true".to_owned()),
        ("filter.only-there.smudge", script("unused")),
        (
            "core.fsmonitor",
            format!("touch '{}'; false", canary("fsmonitor")),
        ),
        (
            "core.hooksPath",
            folder.join(".git/hooks").display().to_string(),
        ),
        (
            "core.sshCommand",
            format!("touch '{}'; false", canary("ssh")),
        ),
        ("core.pager", script("pager")),
        ("core.editor", format!("touch '{}'", canary("editor"))),
        (
            "diff.external",
            format!("touch '{}'", canary("external-diff")),
        ),
        ("diff.a.textconv", script("textconv")),
        ("diff.a.command", script("diff-command")),
        (
            "hook.mine.command",
            format!("touch '{}'", canary("hook-setting")),
        ),
        ("hook.mine.event", "post-checkout".to_owned()),
        ("submodule.recurse", "true".to_owned()),
        ("extensions.partialClone", "origin".to_owned()),
        ("remote.origin.promisor", "true".to_owned()),
        (
            "remote.origin.url",
            format!("ext::sh -c touch% {}", canary("remote")),
        ),
        ("protocol.ext.allow", "always".to_owned()),
    ] {
        git(folder, &["config", name, &value]);
    }
    // Settings that hold only in the worktree, or only on its branch.
    for condition in ["gitdir:**/.git/worktrees/**", "onbranch:hermes/**"] {
        let included = folder.join(".git").join(format!("{}.inc", &condition[..3]));
        let smudge = format!("touch '{}'; cat", canary(&condition[..3]));
        std::fs::write(
            &included,
            format!(
                "[filter \"{}\"]\n\tsmudge = \"{smudge}\"\n\tclean = \"{smudge}\"\n",
                &condition[..3]
            ),
        )
        .unwrap();
        let name = format!("includeIf.{condition}.path");
        git(folder, &["config", &name, &included.display().to_string()]);
    }
}

#[tokio::test]
async fn nothing_of_a_hostile_repository_runs() {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "read_file", json!({"path": "a.txt"})),
        Answer::text("done"),
    ]))
    .await;
    let folder = setting.hermes.work_folder();
    let canaries = setting.hermes.home().join("canaries");
    std::fs::create_dir_all(&canaries).unwrap();
    git(&folder, &["init", "-q"]);
    let attributes = "*.txt filter=a=b diff=a\n*.md filter=long\n*.git filter=git\n*.onb filter=onb\n*.gitd filter=git\n";
    std::fs::write(folder.join(".gitattributes"), attributes).unwrap();
    for name in ["a.txt", "b.md", "c.git", "d.onb"] {
        std::fs::write(folder.join(name), "content\n").unwrap();
    }
    // Another repository inside, with settings of its own.
    let inner = folder.join("inner");
    std::fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    git(&inner, &["commit", "-q", "--allow-empty", "-m", "inner"]);
    std::fs::write(
        folder.join(".gitmodules"),
        "[submodule \"inner\"]\n\tpath = inner\n\turl = ./inner\n",
    )
    .unwrap();
    git(&folder, &["add", "."]);
    git(&folder, &["commit", "-q", "-m", "first"]);
    booby_trap(&folder, &canaries);
    booby_trap(&inner, &canaries);

    let output = setting.run(&["chat", "-w", "-q", "go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let sprung: Vec<_> = std::fs::read_dir(&canaries)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(sprung.is_empty(), "these ran: {sprung:?}");
    let last = setting.server.requests().last().unwrap().json.to_string();
    assert!(last.contains("content"), "the files are there: {last}");

    // The traps work: git itself springs them.
    let other = setting.hermes.home().join("other");
    #[expect(
        clippy::disallowed_methods,
        reason = "a test shows that its traps work"
    )]
    let _ = std::process::Command::new("git")
        .args(["-c", "filter.long.required=false"])
        .args(["worktree", "add", "-q", "-b", "hermes/other"])
        .arg(&other)
        .current_dir(&folder)
        .output()
        .unwrap();
    for name in [
        "smudge",
        "process",
        "post-checkout",
        "reference-transaction",
        "git",
        "onb",
    ] {
        assert!(canaries.join(name).exists(), "`{name}` is no trap");
    }
}
