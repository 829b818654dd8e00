//! What a model reaches without a question, tried on the binary: inside the fence, and where there is none.

use std::path::PathBuf;
use std::time::Duration;

use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::setting::Setting;

const SECRET: &str = "words that nobody is shown";

/// A model that makes these calls, one after the other, in a home with a secret and files around the project.
async fn setting(calls: &[(&str, Value)], more: &str) -> Setting {
    let answers = calls
        .iter()
        .enumerate()
        .map(|(at, (tool, arguments))| Answer::call(format!("c{at}"), *tool, arguments.clone()));
    let script = Script::new(answers.chain([Answer::text("done")]));
    let setting = Setting::with(script, more).await;
    for (name, text) in [
        (".ssh/id", SECRET),
        (".netrc", SECRET),
        (".gnupg/secring", SECRET),
        (".mozilla/firefox/logins.json", SECRET),
        ("notes", "mine\n"),
        ("work/AGENTS.md", "mine\n"),
        ("work/sub/CLAUDE.md", "mine\n"),
        ("work/a.txt", "hello\n"),
    ] {
        let path = path(&setting, name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    setting
}

/// Below the home of the user.
fn path(setting: &Setting, name: &str) -> PathBuf {
    setting.hermes.work_folder().parent().unwrap().join(name)
}

/// Makes the calls, and checks that nothing was changed that takes a question, nor shown.
async fn is_held(calls: &[(&str, Value)], more: &str) -> Setting {
    let setting = setting(calls, more).await;
    let output = setting.run(&["-z", "go"]);
    assert_eq!(output.code, Some(0), "{calls:?}: {output:?}");
    is_untouched(&setting, &format!("{calls:?} {more}"));
    setting
}

#[track_caller]
fn is_untouched(setting: &Setting, what: &str) {
    for name in ["notes", "work/AGENTS.md", "work/sub/CLAUDE.md"] {
        let text = std::fs::read_to_string(path(setting, name)).unwrap_or_default();
        assert_eq!(text, "mine\n", "{what}: {name}");
    }
    assert!(!path(setting, "made").exists(), "{what}");
    let requests = setting.server.requests();
    let shown = requests
        .iter()
        .any(|request| request.json.to_string().contains(SECRET));
    assert!(!shown, "{what}");
}

fn run(line: &str) -> (&'static str, Value) {
    ("terminal", json!({ "command": line }))
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({ "path": path, "content": content }))
}

const NO_FENCE: &str = "terminal:\n  sandbox: off\n";

#[tokio::test]
async fn without_a_fence_nothing_but_looking_around_is_free() {
    for line in [
        "touch ../made",
        "echo x > a.txt",
        "python3 x.py",
        "make",
        "cat ~/.ssh/id",
        "cat ../.ss*/id",
        "cat ../.netr?",
        "cat \"$HOME/.netrc\"",
        "cat $(echo ../.netrc)",
        "cat < ../.netrc",
        "grep -r words ..",
        "grep -f../.netrc a.txt",
        "diff ../.netrc /dev/null",
        "git diff --no-index /dev/null ../.netrc",
        "sed -n 1,5p ../.netrc",
        "sort --files0-from=../.netrc",
        "strings ../.gnupg/secring",
        "test -f x || cat ../.netrc",
        "ls() { touch ../made; }",
        "cd ..",
    ] {
        is_held(
            &[write("x.py", "open('../made', 'w')\n"), run(line)],
            NO_FENCE,
        )
        .await;
    }
    let look = run("ls -la; cat a.txt | grep hello; git status; wc -l sub/*.md; head -3 ../notes");
    let setting = is_held(&[look], NO_FENCE).await;
    let last = setting.server.requests().pop().unwrap().json.to_string();
    assert!(
        last.contains("hello") && !last.contains("Refused"),
        "{last}"
    );
}

#[tokio::test]
async fn without_a_fence_files_keep_to_its_rules() {
    for call in [
        write("~/made", "x"),
        write("../notes", "x"),
        write("AGENTS.md", "x"),
        write("sub/CLAUDE.md", "x"),
        (
            "patch",
            json!({"path": "../notes", "old_string": "mine", "new_string": "x"}),
        ),
        ("read_file", json!({"path": "~/.gnupg/secring"})),
        (
            "read_file",
            json!({"path": "~/.mozilla/firefox/logins.json"}),
        ),
        (
            "search_files",
            json!({"pattern": "words", "path": "~/.gnupg"}),
        ),
        ("execute_code", json!({"code": "open('../made', 'w')"})),
        (
            "terminal",
            json!({"command": "cat id", "workdir": "~/.ssh"}),
        ),
        ("terminal", json!({"command": "ls", "background": true})),
    ] {
        is_held(&[call], NO_FENCE).await;
    }
    let setting = is_held(&[write("b.txt", "free\n")], NO_FENCE).await;
    assert!(path(&setting, "work/b.txt").exists());
}

#[tokio::test]
async fn without_a_fence_a_folder_dressed_up_as_a_repository_runs_nothing() {
    let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\
                  \tfsmonitor = \"touch ../../made; false\"\n";
    let calls = [
        write("trap/HEAD", "ref: refs/heads/main\n"),
        write("trap/objects/x", ""),
        write("trap/refs/x", ""),
        write("trap/config", config),
        (
            "terminal",
            json!({"command": "git status", "workdir": "trap"}),
        ),
    ];
    is_held(&calls, NO_FENCE).await;
}

#[tokio::test]
async fn what_was_left_running_changes_nothing_when_hermes_has_ended() {
    let script = "import os, time\n\
        if os.fork(): os._exit(0)\n\
        os.setsid()\n\
        if os.fork(): os._exit(0)\n\
        os.execve('/bin/sh', ['sh', '-c', 'sleep 2; echo evil > AGENTS.md; echo evil > ran'], {})\n";
    let calls = [
        write("x.py", script),
        run("python3 x.py >/dev/null 2>&1 </dev/null"),
    ];
    let setting = is_held(&calls, "").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    is_untouched(&setting, "later");
    assert!(!path(&setting, "work/ran").exists(), "it ended with Hermes");
}

#[tokio::test]
async fn subagents_work_inside_the_fence() {
    let tasks = json!({ "tasks": [{ "goal": "make it" }] });
    let act = "echo inside > inside.txt; sh x.sh";
    let script = Script::default()
        .when(
            "everything",
            [
                Answer::call("split", "delegate_task", tasks),
                Answer::text("all done"),
            ],
        )
        .when(
            "make it",
            [
                Answer::call("run", "terminal", json!({ "command": act })),
                Answer::call(
                    "code",
                    "execute_code",
                    json!({"code": "open('../made', 'w')"}),
                ),
                Answer::text("made"),
            ],
        )
        .by_step();
    let setting = Setting::with(script, "").await;
    let files = [
        (".ssh/id", SECRET),
        ("notes", "mine\n"),
        ("work/AGENTS.md", "mine\n"),
        ("work/sub/CLAUDE.md", "mine\n"),
        (
            "work/x.sh",
            "cat ../.ssh/id; echo x > ../made; echo x > ../notes; echo x > AGENTS.md; echo x > sub/CLAUDE.md\n",
        ),
    ];
    for (name, text) in files {
        let path = path(&setting, name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let output = setting.run(&["-z", "everything"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(path(&setting, "work/inside.txt").exists(), "{output:?}");
    is_untouched(&setting, "a subagent");
}
