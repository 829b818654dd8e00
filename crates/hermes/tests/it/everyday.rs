//! What people do every day: refer to things, branch off, go on elsewhere, run a command of their own, look closer.

use std::path::Path;
use std::time::Duration;

use hermes_testkit::process::Terminal;
use hermes_testkit::server::{Answer, Script};
use hermes_testkit::site::{Reaction, Site};
use serde_json::json;

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(20);

fn open(setting: &Setting) -> Terminal {
    let terminal = setting.hermes.spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal
}

/// Waits for the end of an answer; what is sent sooner interrupts the turn.
fn expect_answer(terminal: &Terminal, end: &str) {
    terminal.expect_screen(&format!("{end}\n\n──"), SOON);
}

fn answers<const N: usize>(texts: [&str; N]) -> Script {
    Script::new(texts.map(Answer::text))
}

/// What the model was told by its last request.
fn last_request(setting: &Setting) -> String {
    let requests = setting.server.requests();
    requests.last().unwrap().json["messages"].to_string()
}

fn git(folder: &Path, args: &[&str]) {
    #[expect(clippy::disallowed_methods, reason = "a test prepares a repository")]
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(args)
        .current_dir(folder)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{output:?}");
}

/// A repository with one commit, a change in it, and a staged one.
fn repository(folder: &Path) {
    git(folder, &["init", "-q"]);
    for name in ["a.txt", "b.txt", ".env"] {
        std::fs::write(folder.join(name), "before\n").unwrap();
    }
    git(folder, &["add", "-f", "."]);
    git(folder, &["commit", "-q", "-m", "the first commit"]);
    std::fs::write(folder.join("b.txt"), "staged words\n").unwrap();
    git(folder, &["add", "b.txt"]);
    std::fs::write(folder.join("a.txt"), "changed words\n").unwrap();
    std::fs::write(folder.join(".env"), "KEY=very-secret\n").unwrap();
}

#[tokio::test]
async fn whatever_is_referred_to_reaches_the_model() {
    let setting = Setting::new(answers(["seen"; 8])).await;
    let folder = setting.hermes.work_folder();
    repository(&folder);
    std::fs::write(folder.join("my notes.md"), "noted").unwrap();
    let whole = format!("@{}", folder.join("a.txt").display());
    for (question, expected) in [
        ("what is in @a.txt?", "changed words"),
        ("and @./a.txt", "changed words"),
        (whole.as_str(), "changed words"),
        ("@\"my notes.md\"", "noted"),
        ("@folder:.", "my notes.md"),
        ("explain @diff", "+changed words"),
        ("explain @staged", "+staged words"),
        ("explain @git:1", "the first commit"),
    ] {
        let output = setting.run(&["-z", question]);
        assert_eq!(
            (output.stdout.as_str(), output.stderr.as_str()),
            ("seen\n", "")
        );
        let told = last_request(&setting);
        assert!(told.contains(expected), "{question}: {told}");
        assert!(!told.contains("very-secret"), "{question}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_referred_to_reaches_the_model() {
    let site = Site::open(|_| Reaction::html("<title>News</title><p>all is well</p>")).await;
    let allowed = "security:\n  allow_private_urls: true\n";
    let setting = Setting::with(answers(["read"]), allowed).await;
    let output = setting.run(&["-z", &format!("sum up @url:{}", site.url("/"))]);
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("read\n", "")
    );
    assert!(last_request(&setting).contains("all is well"));
}

#[tokio::test]
async fn what_cannot_be_attached_is_said_and_secrets_are_not_attached() {
    let setting = Setting::new(answers(["hm"])).await;
    let folder = setting.hermes.work_folder();
    std::fs::write(folder.join(".env.production"), "KEY=very-secret").unwrap();
    let question = "see @gone.txt @.env.production @diff @git:999 @url:http://127.0.0.1:1/";
    let output = setting.run(&["-z", question]);
    assert_eq!(output.stdout, "hm\n");
    for expected in [
        "`@gone.txt` is not attached: there is no such file",
        "`@.env.production` is not attached: files of this name hold secrets",
        "`@diff` is not attached: ",
        "`@git:999` is not attached: it takes a number of commits",
        "`@url:http://127.0.0.1:1/` is not attached: ",
    ] {
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
    assert!(!last_request(&setting).contains("very-secret"));
}

#[tokio::test]
async fn a_branch_is_kept_when_something_about_it_changes() {
    let setting = Setting::new(answers(["one", "two", "three"])).await;
    let terminal = open(&setting);
    terminal.send("apples\r");
    expect_answer(&terminal, "one");
    terminal.send("/title Fruit\r");
    terminal.expect_screen("is now called `Fruit`", SOON);
    terminal.expect_screen(" · Fruit", SOON);
    terminal.send("/branch\r");
    terminal.expect_screen(" · Fruit #2", SOON);
    terminal.send("/yolo on\r");
    terminal.expect_screen("\n  yolo · ", SOON);
    terminal.send("/model test-model-2\r");
    terminal.expect_screen("custom:test-model-2 answers from now on", SOON);
    terminal.send("pears\r");
    expect_answer(&terminal, "two");
    terminal.expect_screen(" · Fruit #2", SOON);
    let told = last_request(&setting);
    assert!(told.contains("apples") && told.contains("pears"), "{told}");
    terminal.send("/yolo off\r");
    terminal.expect_screen("\n  custom:test-model-2", SOON);
    terminal.send("/quit\r");
    terminal.wait(SOON);
    let listed = setting.run(&["sessions", "list"]).stdout;
    assert_eq!(listed.matches("Fruit").count(), 2, "{listed}");
}

#[tokio::test]
async fn a_session_goes_on_with_the_settings_of_its_own_folder() {
    let calls = || Answer::call("c1", "terminal", json!({"command": "true"}));
    let script = Script::new([Answer::text("begun"), calls(), calls(), Answer::text("x")]);
    let setting = Setting::new(script).await;
    let folder = setting.hermes.work_folder();
    let (project, elsewhere) = (folder.join("project"), folder.join("elsewhere"));
    std::fs::create_dir_all(project.join(".hermes")).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    git(&project, &["init", "-q"]);
    std::fs::write(
        project.join(".hermes/config.yaml"),
        "agent:\n  max_turns: 1\n",
    )
    .unwrap();
    let trusted = format!(
        "approvals:\n  mode: manual\nsecurity:\n  trusted_projects: [{}]\n",
        project.display()
    );
    crate::setting::write_config(&setting.hermes, &setting.server.url(), &trusted);
    let within = |folder: &Path| setting.hermes.clone().current_folder(folder);
    let terminal = within(&project).spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal.send("begin\r");
    expect_answer(&terminal, "begun");
    terminal.send("/quit\r");
    terminal.wait(SOON);
    // The flag, and the command.
    let terminal = within(&elsewhere).args(["-c"]).spawn_in_terminal();
    terminal.expect_screen("the session's folder", SOON);
    terminal.expect_screen("going on where you stopped", SOON);
    terminal.send("go on\r");
    terminal.expect_screen("stopped after 1 steps", SOON);
    terminal.send("/quit\r");
    terminal.wait(SOON);
    let terminal = within(&elsewhere).spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal.send("/resume\r");
    terminal.expect_screen("Go on with", SOON);
    terminal.send("\r");
    terminal.expect_screen("the session's folder", SOON);
    terminal.expect_screen("going on where you stopped", SOON);
    terminal.send("go on\r");
    terminal.expect_screen("stopped after 1 steps", SOON);
}

#[tokio::test]
async fn the_picker_begins_with_this_folder_and_leaves_single_questions_out() {
    let setting = Setting::new(answers(["x"; 4])).await;
    let folder = setting.hermes.work_folder();
    let elsewhere = folder.join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let talk_in = |folder: &Path, words: &str| {
        let terminal = setting
            .hermes
            .clone()
            .current_folder(folder)
            .spawn_in_terminal();
        terminal.expect_screen("/help shows", SOON);
        terminal.send(&format!("{words}\r"));
        expect_answer(&terminal, "x");
        terminal.send("/quit\r");
        terminal.wait(SOON);
    };
    talk_in(&folder, "apples");
    talk_in(&elsewhere, "pears");
    setting.run(&["-z", "plums"]);
    setting.run(&["chat", "-q", "cherries"]);
    let terminal = open(&setting);
    terminal.send("/resume\r");
    terminal.expect_screen("Go on with", SOON);
    terminal.expect_screen("pears", SOON);
    let screen = terminal.screen();
    assert!(screen.find("apples") < screen.find("pears"), "{screen}");
    assert!(
        !screen.contains("plums") && !screen.contains("cherries"),
        "{screen}"
    );
    terminal.send("\x1b");
    terminal.expect_screen("\n› \n──", SOON);
    terminal.send("/resume --all\r");
    terminal.expect_screen("plums", SOON);
    terminal.expect_screen("cherries", SOON);

    let chosen = setting.hermes.clone().args(["-r"]).spawn_in_terminal();
    chosen.expect_screen("Go on with", SOON);
    chosen.send("\r");
    chosen.expect_screen("apples", SOON);
    chosen.expect_screen("going on where you stopped", SOON);
}

#[tokio::test]
async fn calls_show_what_people_want_to_see_at_once() {
    let steps = json!({"todos": [
        {"id": "1", "content": "look around", "status": "completed"},
        {"id": "2", "content": "write it", "status": "in_progress"},
    ]});
    let script = Script::new([
        Answer::call("c1", "terminal", json!({"command": "cat nowhere.txt"})),
        Answer::call(
            "c2",
            "write_file",
            json!({"path": "new.txt", "content": "first line\n"}),
        ),
        Answer::call("c3", "read_file", json!({"path": "old.txt"})),
        Answer::call(
            "c4",
            "patch",
            json!({"path": "old.txt", "old_string": "red", "new_string": "blue"}),
        ),
        Answer::call("c5", "todo", steps),
        Answer::text("done"),
    ]);
    let setting = Setting::new(script).await;
    std::fs::write(setting.hermes.work_folder().join("old.txt"), "red\n").unwrap();
    let terminal = open(&setting);
    terminal.send("go\r");
    expect_answer(&terminal, "done");
    let screen = terminal.screen();
    let expected = [
        "nowhere.txt: No such file or directory\n    [exit code 1",
        "    +first line",
        "    -red\n    +blue",
        "todo 1 of 2 done\n    ☑ look around\n    ▸ write it",
    ];
    for expected in expected {
        assert!(screen.contains(expected), "{expected}: {screen}");
    }
    assert!(terminal.output().contains("\x1b["), "it is coloured");
    terminal.send("/quit\r");
    terminal.wait(SOON);
    // The rows are there again when it goes on.
    let terminal = setting.hermes.clone().args(["-c"]).spawn_in_terminal();
    terminal.expect_screen("todo 1 of 2 done\n    ☑ look around", SOON);
    terminal.expect_screen("    -red\n    +blue", SOON);
}

#[tokio::test]
async fn the_whole_conversation_opens_in_the_pager() {
    let call = Answer::call("c1", "terminal", json!({"command": "seq 1 500"}));
    let setting = Setting::new(Script::new([call, Answer::text("counted")])).await;
    let folder = setting.hermes.work_folder();
    let pager = folder.join("pager.sh");
    std::fs::write(
        &pager,
        "#!/bin/sh\ncp \"$1\" paged.txt\ncp \"$1\" \"$OUT\"\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&pager, mode).unwrap();
    let paged = folder.join("paged.txt");
    let hermes = setting
        .hermes
        .clone()
        .env("PAGER", &pager)
        .env("OUT", &paged);
    let terminal = hermes.spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal.send("count\r");
    expect_answer(&terminal, "counted");
    terminal.send("\x14");
    terminal.send("still here");
    terminal.expect_screen("› still here", SOON);
    let text = std::fs::read_to_string(&paged).unwrap();
    assert!(
        text.contains("    250\n") && text.contains("counted"),
        "{text}"
    );
}

#[tokio::test]
async fn what_was_typed_survives_kill_9_and_pasted_tabs_stay_tabs() {
    let setting = Setting::new(answers(["got it"])).await;
    let terminal = open(&setting);
    terminal.send("\x1b[200~a\tb\x1b[201~ and more");
    terminal.expect_screen("and more", SOON);
    // It is kept a moment after it is typed.
    let is_kept = || {
        let entries = std::fs::read_dir(setting.hermes.home()).unwrap();
        let mut files = entries.map(|entry| entry.unwrap().path());
        files.any(|file| {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            name.starts_with(".unsent-")
                && std::fs::read_to_string(file).is_ok_and(|text| text.ends_with("more"))
        })
    };
    let deadline = std::time::Instant::now() + SOON;
    while !is_kept() {
        assert!(std::time::Instant::now() < deadline, "it is not kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    terminal.kill_9();
    let terminal = open(&setting);
    terminal.expect_screen("and more", SOON);
    terminal.send("\r");
    expect_answer(&terminal, "got it");
    assert!(last_request(&setting).contains(r"a\tb and more"));
}

#[tokio::test]
async fn a_conversation_begins_with_the_question_of_the_command_line() {
    let setting = Setting::new(answers(["because", "plainly"])).await;
    let terminal = setting
        .hermes
        .clone()
        .args(["why is it so?"])
        .spawn_in_terminal();
    expect_answer(&terminal, "› why is it so?\n\nbecause");
    terminal.send("/quit\r");
    terminal.wait(SOON);
    let mut terminal = setting
        .hermes
        .clone()
        .args(["--plain", "and now?"])
        .spawn_in_terminal();
    terminal.expect("plainly", SOON);
    let wrong = setting.run(&["sesions"]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("sessions"), "{}", wrong.stderr);
}

#[tokio::test]
async fn a_command_of_ones_own_runs_and_the_model_hears_of_it() {
    let setting = Setting::new(answers(["I see", "nothing new"])).await;
    let terminal = open(&setting);
    terminal.send("!echo from @me; ls nowhere\r");
    terminal.expect_screen("› !echo from @me; ls nowhere\n\n  from @me", SOON);
    terminal.expect_screen("nowhere", SOON);
    terminal.send("what happened?\r");
    expect_answer(&terminal, "I see");
    let told = last_request(&setting);
    assert!(
        told.contains("The user ran `echo from @me; ls nowhere`"),
        "{told}"
    );
    assert!(
        told.contains("from @me") && told.contains("exit status"),
        "{told}"
    );
    terminal.send("and now?\r");
    expect_answer(&terminal, "nothing new");
    assert_eq!(last_request(&setting).matches("The user ran").count(), 1);
}

#[tokio::test]
async fn shift_tab_leads_to_a_mode_that_changes_nothing() {
    let write = |id| Answer::call(id, "write_file", json!({"path": "a.txt", "content": "x\n"}));
    let read = Answer::call("c2", "terminal", json!({"command": "ls"}));
    let script = Script::new([
        write("c1"),
        read,
        Answer::text("planned"),
        write("c3"),
        Answer::text("asked first"),
    ]);
    let setting = Setting::new(script).await;
    let file = setting.hermes.work_folder().join("a.txt");
    let terminal = open(&setting);
    terminal.send("\x1b[Z");
    terminal.expect_screen("plan: it reads and plans", SOON);
    terminal.send("go\r");
    expect_answer(&terminal, "planned");
    let screen = terminal.screen();
    assert!(
        screen.contains("– write_file") && screen.contains("✓ terminal ls"),
        "{screen}"
    );
    assert!(!file.exists());
    assert!(last_request(&setting).contains("plan mode"));
    terminal.expect_screen("\n  plan · ", SOON);
    terminal.send("\x1b[Z");
    terminal.expect_screen("ask: every change of a file is shown first", SOON);
    terminal.send("now do it\r");
    terminal.expect_screen("allow? y once", SOON);
    assert!(!file.exists());
    terminal.send("y");
    expect_answer(&terminal, "asked first");
    assert!(file.exists());
}

#[tokio::test]
async fn keys_do_what_the_table_of_keys_says() {
    let setting = Setting::new(answers(["one", "two"])).await;
    let terminal = open(&setting);
    terminal.send("?");
    terminal.expect_screen("Esc Esc                go back to an earlier message", SOON);
    terminal.send("first\\");
    terminal.send("\r");
    terminal.send("second\r");
    expect_answer(&terminal, "one");
    assert!(last_request(&setting).contains(r"first\nsecond"));
    terminal.send("\x1b");
    terminal.expect_screen("Esc again goes back", SOON);
    terminal.send("\x1b");
    terminal.expect_screen("Go back to before", SOON);
}

#[tokio::test]
async fn diff_shows_what_is_changed_and_init_asks_for_agents_md() {
    let setting = Setting::new(answers(["written"])).await;
    let folder = setting.hermes.work_folder();
    repository(&folder);
    std::fs::write(folder.join("new.txt"), "new\n").unwrap();
    let terminal = open(&setting);
    terminal.send("/diff\r");
    terminal.expect_screen("+changed words", SOON);
    terminal.expect_screen("+staged words", SOON);
    terminal.expect_screen("new.txt", SOON);
    terminal.send("/init\r");
    expect_answer(&terminal, "written");
    assert!(last_request(&setting).contains("AGENTS.md"));
}

#[tokio::test]
async fn the_log_has_what_providers_refused() {
    let refused = Answer::status(401, json!({"error": {"message": "no such key"}}));
    let setting = Setting::new(Script::new([refused])).await;
    let output = setting.run(&["-z", "hi"]);
    assert!(!output.is_success());
    let log = setting.run(&["logs"]).stdout;
    assert!(log.contains("no such key"), "{log}");
}

#[tokio::test]
async fn a_flood_of_output_does_not_keep_the_screen_busy() {
    let call = Answer::call(
        "c1",
        "terminal",
        json!({"command": "seq 1 2000000; sleep 1"}),
    );
    let setting = Setting::new(Script::new([call, Answer::text("over")])).await;
    let terminal = open(&setting);
    terminal.send("flood\r");
    expect_answer(&terminal, "over");
    // Frames, not lines, are drawn: a small part of the 14 MB that were printed.
    let drawn = terminal.output().len();
    assert!(drawn < 500_000, "{drawn} bytes were drawn");
}

#[tokio::test]
async fn a_server_is_added_with_its_command_behind_two_dashes() {
    let setting = Setting::new(Script::new([])).await;
    let words = [
        "mcp", "add", "files", "--env", "A=b", "--", "npx", "-y", "server",
    ];
    let output = setting.run(&words);
    assert!(output.is_success(), "{}", output.stderr);
    let config = std::fs::read_to_string(setting.hermes.home().join("config.yaml")).unwrap();
    for expected in ["command: npx", "-y", "server", "A: b"] {
        assert!(config.contains(expected), "{expected}: {config}");
    }
}
