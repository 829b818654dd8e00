//! Who looks at commands before they run, as the settings say.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(30);

fn deletes() -> Answer {
    Answer::call("c1", "terminal", json!({"command": "rm -r victim"}))
}

/// A home whose model wants to delete a folder that is there, and then says the rest.
async fn setting(rest: &[&str], more: &str) -> (Setting, PathBuf) {
    let rest = rest.iter().map(|text| Answer::text(*text));
    let setting = Setting::with(Script::new([deletes()].into_iter().chain(rest)), more).await;
    let victim = setting.hermes.work_folder().join("victim");
    std::fs::create_dir(&victim).unwrap();
    (setting, victim)
}

#[tokio::test]
async fn a_model_that_judges_is_believed_only_when_it_is_clear() {
    for (opinion, is_run) in [
        ("APPROVE", true),
        ("DENY", false),
        ("Sure, go ahead", false),
    ] {
        let smart = "approvals:\n  mode: smart\n";
        let (setting, victim) = setting(&[opinion, "done"], smart).await;
        let output = setting.run(&["chat", "-q", "clean up"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(!victim.exists(), is_run, "{opinion}");
        let requests = setting.server.requests();
        assert_eq!(requests.len(), 3, "conversation, judge, conversation");
    }
}

#[tokio::test]
async fn where_nobody_is_nothing_that_needs_consent_runs_unless_the_user_said_so() {
    let headless = "approvals:\n  headless: allow\n";
    for (args, more, is_run) in [
        (&["-z", "clean up"][..], "", false),
        (&["chat", "-q", "clean up"][..], "", false),
        (&["chat", "-Q", "-q", "clean up"][..], "", false),
        (&["--json", "-z", "clean up"][..], "", false),
        (
            &["-z", "clean up"][..],
            "approvals:\n  headless: perhaps\n",
            false,
        ),
        (&["-z", "clean up"][..], headless, true),
        (&["chat", "-q", "clean up"][..], headless, true),
        (&["--yolo", "-z", "clean up"][..], "", true),
    ] {
        let (setting, victim) = setting(&["done"], more).await;
        let output = setting.run(args);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(!victim.exists(), is_run, "{args:?} {more}");
        let requests = setting.server.requests();
        assert_eq!(requests.len(), 2, "no model judges by default");
        let last = requests[1].json.to_string();
        assert_eq!(
            last.contains("approvals.headless: allow"),
            !is_run,
            "{last}"
        );
        let told = output.stderr.matches("note: 1 call was not run").count();
        assert_eq!(told, usize::from(!is_run), "{args:?}: {output:?}");
        assert!(is_run || output.stderr.contains("--yolo"), "{output:?}");
    }
}

#[tokio::test]
async fn always_is_written_to_the_settings_and_holds_in_the_next_session() {
    let manual = "approvals:\n  mode: manual\n";
    let again = [
        deletes(),
        Answer::text("gone"),
        deletes(),
        Answer::text("pity"),
    ];
    let script = [deletes(), Answer::text("gone")].into_iter().chain(again);
    let first = Setting::with(Script::new(script), manual).await;
    let victim = first.hermes.work_folder().join("victim");
    std::fs::create_dir(&victim).unwrap();
    let mut terminal = first.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("clean up\n");
    terminal.expect("[a]lways", SOON);
    terminal.send("a\n");
    terminal.expect("gone", SOON);
    assert!(!victim.exists());
    let config = first.hermes.home().join("config.yaml");
    let written = std::fs::read_to_string(config).unwrap();
    assert!(written.starts_with("# written by hand"), "{written}");
    let folder = first.hermes.work_folder().canonicalize().unwrap();
    for part in [
        "allow:",
        "pattern: rm -r victim",
        &format!("folder: {}", folder.display()),
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }

    std::fs::create_dir(&victim).unwrap();
    let output = first.run(&["chat", "-q", "clean up"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!victim.exists(), "nobody had to be asked");

    // The same line in another folder is another matter.
    let elsewhere = tempfile::tempdir().unwrap();
    let victim = elsewhere.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    let hermes = first.hermes.clone().current_folder(elsewhere.path());
    let output = hermes.args(["-z", "clean up"]).run();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(victim.exists());
}

#[tokio::test]
async fn an_entry_of_the_list_without_a_folder_is_said_to_be_wrong() {
    let (setting, _) = setting(&["gone"], "approvals:\n  allow: ['rm *']\n").await;
    let output = setting.run(&["-z", "clean up"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("`approvals.allow`"), "{output:?}");
}

#[tokio::test]
async fn what_the_user_denies_does_not_run_under_yolo_either() {
    let (setting, victim) = setting(&["pity"], "approvals:\n  deny: ['rm -r*']\n").await;
    let output = setting.run(&["--yolo", "chat", "-q", "clean up"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(victim.exists());
}

/// Stands in for `tirith`: the real program is not part of the tests. Blocks whatever names a victim.
fn scanner(setting: &Setting, exit_code: u8) -> PathBuf {
    let program = setting.hermes.home().join("tirith");
    let script = format!(
        "#!/bin/sh\n[ \"$1 $2 $3 $4 $5 $6\" = 'check --json --non-interactive --shell posix --' ] || exit 9\n\
         case \"$7\" in *victim*) echo '{{\"summary\": \"names a victim\"}}'; exit {exit_code};; esac\n"
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[tokio::test]
async fn what_tirith_finds_is_refused_where_nobody_can_be_asked() {
    for (exit_code, fails_open, is_run) in [
        (1, true, false),
        (2, true, false),
        (9, true, true),
        (9, false, false),
    ] {
        let call = Answer::call("c1", "terminal", json!({"command": "rmdir victim"}));
        let script = Script::new([call, Answer::text("done")]);
        let setting = Setting::new(script).await;
        let program = scanner(&setting, exit_code);
        let more = format!(
            "approvals:\n  mode: manual\nsecurity:\n  tirith_path: {}\n  tirith_fail_open: {fails_open}\n",
            program.display()
        );
        crate::setting::write_config(&setting.hermes, &setting.server.url(), &more);
        let victim = setting.hermes.work_folder().join("victim");
        std::fs::create_dir(&victim).unwrap();
        let output = setting.run(&["chat", "-q", "clean up"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(
            !victim.exists(),
            is_run,
            "exit code {exit_code}, fails open: {fails_open}"
        );
    }
}

#[tokio::test]
async fn keys_of_hermes_reach_no_model_by_file_or_by_command() {
    let (stored, token) = ("weird+shape.of+a+key", "eyJ-no-key-of-any-known-shape");
    let setting = Setting::with(
        Script::new([
            Answer::call(
                "c1",
                "read_file",
                json!({"path": "../home/mcp-tokens/x.json"}),
            ),
            Answer::call(
                "c2",
                "search_files",
                json!({"pattern": "shape", "path": "../home"}),
            ),
            Answer::call("c3", "terminal", json!({"command": "cat ../home/.env"})),
            Answer::call("c4", "read_file", json!({"path": "../home/config.yaml"})),
            Answer::text("done"),
        ]),
        // Behind a fence, nothing prints them at all; without one, somebody has to agree.
        "terminal:\n  sandbox: 'off'\n",
    )
    .await;
    let home = setting.hermes.home();
    std::fs::create_dir_all(home.join("mcp-tokens")).unwrap();
    std::fs::write(home.join("mcp-tokens/x.json"), token).unwrap();
    std::fs::write(home.join(".env"), format!("SOME_API_KEY={stored}\n")).unwrap();
    let output = setting.run(&["--yolo", "-z", "go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = setting.server.requests();
    let last = requests.last().unwrap().json.to_string();
    for key in [stored, token, "sk-test-0123456789abcdef0123"] {
        assert!(!last.contains(key), "{key}: {last}");
    }
    assert!(last.contains("SOME_API_KEY=[key-hidden"), "{last}");
}
