//! Files inside the project that only somebody's consent changes.

use hermes_core::{Checkout, Pass, ShellCommand, Terminal};
use hermes_exec::Local;
use hermes_testkit::peers::is_there;

use super::{BUBBLEWRAP, Home, LANDLOCK, has_bubblewrap, has_landlock, wait_until, writes};
use crate::environment;

/// A project with files that nobody changes unasked.
fn with_guarded(home: &Home) {
    for (name, text) in [
        (".git/config", "[core]\n\tbare = false\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/hooks/x.sample", ""),
        ("AGENTS.md", "be kind\n"),
    ] {
        let path = home.path("project").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[track_caller]
fn guarded_is_untouched(home: &Home) {
    let text = |name: &str| std::fs::read_to_string(home.path("project").join(name)).unwrap();
    assert_eq!(text(".git/config"), "[core]\n\tbare = false\n");
    assert_eq!(text("AGENTS.md"), "be kind\n");
    for name in [
        ".git/hooks/pre-commit",
        ".envrc",
        ".vscode",
        ".github/workflows",
        ".husky",
    ] {
        assert!(!home.path("project").join(name).exists(), "{name}");
    }
}

async fn guarded_files_stay_as_they_are(home: &Home, local: &Local) {
    with_guarded(home);
    for line in [
        "echo evil > .git/hooks/pre-commit",
        "echo '[core] fsmonitor=evil' >> .git/config",
        "git config core.fsmonitor evil",
        "sed -i s/kind/evil/ AGENTS.md",
        "rm AGENTS.md; ln -s /etc/hosts AGENTS.md",
        "mkdir -p .vscode .github/workflows .husky; echo x > .vscode/tasks.json; echo x > .github/workflows/x.yml; \
         echo x > .husky/pre-commit",
        "echo evil > .envrc",
        "mv .git/hooks /tmp/h.$$; mkdir .git/hooks; echo evil > .git/hooks/pre-commit; rm -rf /tmp/h.$$",
        "cp -r .git g; echo evil >> g/config; rm -rf .git; mv g .git",
        "(cd .git && echo evil > hooks/pre-commit)",
    ] {
        let _ = Terminal::run(local, home.command(line)).await.unwrap();
        guarded_is_untouched(home);
    }
}

#[tokio::test]
async fn guarded_files_are_put_back_and_the_model_is_told() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    guarded_files_stay_as_they_are(&home, &local).await;
    let notices = local.notices().join("\n");
    for word in [
        "`.git/hooks/pre-commit`",
        "`AGENTS.md`",
        "put back",
        "outside_fence",
    ] {
        assert!(notices.contains(word), "{word} in {notices}");
    }
    assert!(home.path(".hermes/put-back").read_dir().unwrap().count() > 0);
    home.text(&local, "git checkout -q -b x; echo a > a; git add a")
        .await;
    assert!(local.notices().is_empty());
}

#[tokio::test]
async fn guarded_files_cannot_be_changed_behind_bubblewrap() {
    if has_bubblewrap() {
        let home = Home::new();
        let local = home.fenced(BUBBLEWRAP);
        with_guarded(&home);
        for line in [
            "echo evil > .git/hooks/pre-commit",
            "echo evil >> AGENTS.md",
            "echo x > .envrc",
        ] {
            let _ = Terminal::run(&local, home.command(line)).await.unwrap();
            guarded_is_untouched(&home);
        }
    }
}

#[tokio::test]
async fn what_somebody_agreed_to_is_not_put_back() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    let agents = home.path("project/AGENTS.md");
    let text = || std::fs::read_to_string(&agents).unwrap();
    let line = "echo agreed > AGENTS.md; echo evil > .envrc";
    home.text_with(&local, writes(agents.clone()), line).await;
    assert_eq!(text(), "agreed\n");
    assert!(!home.path("project/.envrc").exists());
    home.text(&local, "echo evil > AGENTS.md").await;
    assert_eq!(text(), "agreed\n");
    home.text_with(&local, Pass::outside(), "echo more > AGENTS.md")
        .await;
    assert_eq!(text(), "more\n");
    home.text(&local, "true").await;
    assert_eq!(text(), "more\n");
    // The person edits it between two commands, once nothing of the last one runs.
    for _ in 0..50 {
        std::fs::write(&agents, "by hand\n").unwrap();
        home.text(&local, "true").await;
        if text() == "by hand\n" {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    panic!("what the person wrote is put back");
}

#[tokio::test]
async fn a_new_repository_has_what_its_maker_wants() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    let line = "git init -q . && git init -q sub && git config user.name x";
    home.text(&local, line).await;
    assert!(home.path("project/sub/.git/config").exists());
    assert_eq!(local.notices(), [] as [String; 0]);
    home.text(&local, "cd sub").await;
    home.text(&local, "echo evil > .git/hooks/pre-commit").await;
    assert!(!home.path("project/sub/.git/hooks/pre-commit").exists());
    let line = "git init -q new && echo evil > new/.git/hooks/post-commit; git -C new config alias.x '!evil'";
    home.text(&local, line).await;
    assert!(home.path("project/sub/new/.git/HEAD").exists());
    for name in ["hooks/post-commit", "config"] {
        let path = home.path("project/sub/new/.git").join(name);
        assert!(
            !path.exists(),
            "{name}: what runs something is not made unasked"
        );
    }
}

#[tokio::test]
async fn what_agents_are_told_in_folders_and_repositories_inside_is_kept() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    let names = [
        "sub/AGENTS.md",
        "skills/k/SKILL.md",
        "sub/deep/.cursorrules",
        "sub/repo/.git/hooks/x",
        ".git/modules/m/config",
    ];
    for name in names
        .iter()
        .chain(&["sub/repo/.git/HEAD", ".git/modules/m/HEAD"])
    {
        let path = home.path("project").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "mine\n").unwrap();
    }
    for name in names {
        for line in [format!("echo evil > {name}"), format!("rm {name}")] {
            let _ = Terminal::run(&local, home.command(&line)).await.unwrap();
            let text = std::fs::read_to_string(home.path("project").join(name));
            assert_eq!(text.ok().as_deref(), Some("mine\n"), "{line}");
        }
    }
    for name in [
        "sub/CLAUDE.md",
        "new/AGENTS.md",
        "new/skills/SKILL.md",
        "sub/.claude/x",
    ] {
        let line = format!("mkdir -p $(dirname {name}); echo evil > {name}");
        let _ = Terminal::run(&local, home.command(&line)).await.unwrap();
        assert!(!home.path("project").join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn git_checks_out_what_was_there_before_and_not_what_a_command_made() {
    if !has_landlock() || !is_there("git") {
        return;
    }
    let home = Home::new();
    let project = home.path("project");
    std::fs::create_dir_all(project.join("sub")).unwrap();
    let set_up = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c; \
        git init -q -b main . && echo one > AGENTS.md && echo one > sub/CLAUDE.md && git add . && git commit -qm one && \
        git switch -qc other && echo two > AGENTS.md && echo two > sub/CLAUDE.md && git commit -qam two && git switch -q main";
    let before = Local::new(environment(), home.path(".hermes/shells"));
    assert_eq!(home.text(&before, set_up).await, "");
    // Of the second in which Hermes is started nothing is believed.
    tokio::time::sleep(std::time::Duration::from_millis(2100)).await;
    let local = home.fenced(LANDLOCK);
    let text = |name: &str| std::fs::read_to_string(project.join(name)).unwrap();
    let known = || Pass {
        checkout: Checkout::Known,
        ..Pass::default()
    };
    home.text_with(&local, known(), "git switch -q other").await;
    assert_eq!(
        (text("AGENTS.md"), text("sub/CLAUDE.md")),
        ("two\n".into(), "two\n".into())
    );
    assert_eq!(local.notices(), [] as [String; 0]);
    let plant = "b=$(echo evil | git hash-object -w --stdin) && git update-index --cacheinfo 100644,$b,AGENTS.md && \
        git -c user.name=a -c user.email=a@b.c commit -qm evil";
    home.text(&local, plant).await;
    home.text_with(&local, known(), "git checkout -q -- AGENTS.md")
        .await;
    assert_eq!(text("AGENTS.md"), "two\n");
    assert!(local.notices().join("").contains("put back"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_process_changes_later_is_put_back_while_it_runs() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    for line in [
        "(sleep 0.4; echo evil > AGENTS.md; sleep 3) >/dev/null 2>&1 &",
        "setsid sh -c 'sleep 0.4; echo evil > AGENTS.md; sleep 3' >/dev/null 2>&1 &",
    ] {
        home.text(&local, line).await;
        let told = wait_until(|| !local.notices().is_empty()).await;
        assert!(told, "{line}");
        guarded_is_untouched(&home);
    }
}

#[tokio::test]
async fn a_worktree_commits_into_its_repository_and_leaves_its_hooks_alone() {
    if !has_landlock() || !is_there("git") {
        return;
    }
    let home = Home::new();
    let git = "git -c user.name=a -c user.email=a@b.c";
    let free = Local::new(environment(), home.path("free"));
    let setup = format!(
        "cd .. && git init -q repo && cd repo && {git} commit -q --allow-empty -m one && git worktree add -q ../tree"
    );
    home.text(&free, &setup).await;
    let local = home.fenced(LANDLOCK);
    let in_tree = |line: &str| ShellCommand {
        cwd: home.path("tree"),
        session: "tree".into(),
        ..home.command(line)
    };
    let line = format!("echo a > a && git add a && {git} commit -q -m two && git log --format=%s");
    let output = Terminal::run(&local, in_tree(&line)).await.unwrap();
    assert_eq!(output.text, "two\none\n");
    let line = "echo evil > ../repo/.git/hooks/pre-commit; echo x > ../repo/made; git config core.pager evil";
    let _ = Terminal::run(&local, in_tree(line)).await.unwrap();
    assert!(!home.path("repo/.git/hooks/pre-commit").exists());
    assert!(!home.path("repo/made").exists());
    let config = std::fs::read_to_string(home.path("repo/.git/config")).unwrap();
    assert!(!config.contains("evil"), "{config}");
}

/// Whoever cuts itself loose becomes a child of this process, as of Hermes.
fn adopt() {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_sheds_its_mark_is_watched_all_the_same() {
    if !has_landlock() {
        return;
    }
    adopt();
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    let line = "(env -i setsid sh -c 'sleep 1; echo evil > AGENTS.md; sleep 5' >/dev/null 2>&1 &)";
    home.text(&local, line).await;
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    home.text(&local, "true").await;
    assert!(wait_until(|| !local.notices().is_empty()).await);
    guarded_is_untouched(&home);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_left_running_ends_with_us() {
    if !has_landlock() {
        return;
    }
    adopt();
    let home = Home::new();
    let local = home.fenced(LANDLOCK);
    with_guarded(&home);
    let line = "(env -i setsid sh -c 'trap \"\" TERM HUP; sleep 1; echo evil > AGENTS.md' >/dev/null 2>&1 &)";
    home.text(&local, line).await;
    Terminal::leave(&local).await;
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    guarded_is_untouched(&home);
}
