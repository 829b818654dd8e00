//! What can be wrong, and what the user is told: what happened, where, what to do next. Nothing panics.

use std::time::Duration;

use hermes_testkit::process::Output;
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::{Setting, bare, write_config};

fn check(output: &Output, code: i32, phrases: &[&str]) {
    assert_eq!(output.code, Some(code), "{output:?}");
    for phrase in phrases {
        assert!(
            output.stderr.contains(phrase),
            "no `{phrase}` in:\n{}",
            output.stderr
        );
    }
    assert!(
        output.stderr.contains(" hint: "),
        "no hint in:\n{}",
        output.stderr
    );
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    assert_eq!(output.stdout, "", "errors are not answers");
}

#[tokio::test]
async fn no_provider_at_all() {
    let output = bare().args(["-z", "hi"]).run();
    check(
        &output,
        1,
        &[
            "no model provider is configured",
            "`hermes setup`",
            "OPENROUTER_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY",
        ],
    );
}

/// Words that people type from habit, and flags that stand in their scripts.
#[tokio::test]
async fn words_of_hermes_agent_are_told_what_to_do_instead() {
    for (args, phrases) in [
        (
            &["gateway", "enroll"][..],
            ["`gateway enroll` of Hermes Agent", "not in this version"],
        ),
        (
            &["sessions", "prune"],
            ["`sessions prune`", "`hermes sessions delete`"],
        ),
        (&["setup", "tts"], ["`setup tts`", "speech"]),
        (&["chat", "-v"], ["`-v`", "`hermes logs`"]),
    ] {
        check(&bare().args(args.iter().copied()).run(), 2, &phrases);
    }
    let setting = Setting::new(Script::always(Answer::text("x"))).await;
    let output = setting.run(&["--tui", "--cli", "--accept-hooks", "-z", "hi"]);
    assert_eq!(output.stdout, "x\n", "{output:?}");
}

#[tokio::test]
async fn an_unknown_provider_or_toolset_gets_near_matches() {
    let setting = Setting::new(Script::always(Answer::text("x"))).await;
    check(
        &setting.run(&["-z", "hi", "--provider", "antropic", "-m", "m"]),
        1,
        &["`antropic`", "anthropic"],
    );
    check(
        &setting.run(&["-z", "hi", "-t", "terminl"]),
        2,
        &["`terminl`", "terminal"],
    );
    let output = setting.run(&["-z", "hi", "-t", "nope"]);
    check(&output, 2, &["`nope`", "names of MCP servers"]);
    assert_eq!(output.stderr.matches("debugging").count(), 1, "{output:?}");
    check(
        &setting.run(&["-z", "hi", "--provider", "anthropic"]),
        2,
        &["--provider needs a model"],
    );
}

#[tokio::test]
async fn an_unknown_model() {
    let error = json!({"error": {"message": "The model `test-model` does not exist", "code": "model_not_found"}});
    let setting = Setting::new(Script::always(Answer::status(404, error))).await;
    check(&setting.run(&["-z", "hi"]), 1, &["does not exist"]);
}

#[tokio::test]
async fn a_wrong_key_is_reported_without_printing_it() {
    let error =
        json!({"error": {"message": "Incorrect API key provided: sk-test-0123456789abcdef0123"}});
    let setting = Setting::new(Script::always(Answer::status(401, error))).await;
    let output = setting.run(&["-z", "hi"]);
    check(&output, 1, &["Incorrect API key"]);
    assert!(
        !output.stderr.contains("0123456789abcdef"),
        "{}",
        output.stderr
    );
}

#[tokio::test]
async fn no_network() {
    let hermes = bare();
    write_config(
        &hermes,
        "http://127.0.0.1:9/v1",
        "agent:\n  api_max_retries: 1\n",
    );
    check(&hermes.args(["-z", "hi"]).run(), 1, &["127.0.0.1:9"]);
}

#[tokio::test]
async fn a_config_that_does_not_parse_names_line_and_column_and_is_left_alone() {
    let hermes = bare();
    let broken = "model:\n  default: \"unclosed\n";
    std::fs::write(hermes.home().join("config.yaml"), broken).unwrap();
    check(
        &hermes.clone().args(["-z", "hi"]).run(),
        1,
        &["config.yaml", ":"],
    );
    assert_eq!(
        std::fs::read_to_string(hermes.home().join("config.yaml")).unwrap(),
        broken
    );
}

#[tokio::test]
async fn an_unreadable_config() {
    let hermes = bare();
    std::fs::create_dir(hermes.home().join("config.yaml")).unwrap();
    check(&hermes.args(["-z", "hi"]).run(), 1, &["config.yaml"]);
}

#[tokio::test]
async fn a_chat_without_a_terminal_says_what_to_use_instead() {
    let setting = Setting::new(Script::always(Answer::text("x"))).await;
    check(
        &setting.hermes.clone().stdin("hi").run(),
        2,
        &["not a terminal", "hermes -z"],
    );
}

#[tokio::test]
async fn words_that_are_no_command_are_told_how_to_be_a_question() {
    let setting = Setting::new(Script::always(Answer::text("x"))).await;
    check(
        &setting.run(&["why", "does", "this", "fail"]),
        2,
        &["`why` is no command", "hermes \"why does this fail\""],
    );
    check(
        &setting.run(&["sesions"]),
        2,
        &["`sesions` is no command", "hermes sessions"],
    );
    check(
        &setting.run(&["-z", "hi", "-r"]),
        2,
        &["-r needs the id", "`hermes sessions list`"],
    );
}

#[tokio::test]
async fn an_empty_prompt_and_wrong_flags_are_usage_errors() {
    let setting = Setting::new(Script::always(Answer::text("x"))).await;
    check(&setting.run(&["-z", "  "]), 2, &["prompt is empty"]);
    let output = setting.run(&["-z", "hi", "--max-turns", "many"]);
    assert_eq!(output.code, Some(2));
    assert!(
        output.stderr.contains("many") && output.stdout.is_empty(),
        "{output:?}"
    );
    check(
        &setting.run(&["chat", "-q", "hi", "--image", "gone.png"]),
        2,
        &["gone.png"],
    );
    check(
        &setting.run(&["-p", "Not A Profile", "-z", "hi"]),
        2,
        &["not a profile name"],
    );
    check(&setting.run(&["-p", "nobody", "-z", "hi"]), 1, &["nobody"]);
}

#[tokio::test]
async fn an_unknown_session_is_an_error_and_so_is_nothing_to_continue() {
    let setting = Setting::new(Script::always(Answer::text("x"))).await;
    check(
        &setting.run(&["-c", "-z", "hi"]),
        1,
        &["no session to continue"],
    );
    check(
        &setting.run(&["-r", "nonesuch", "-z", "hi"]),
        1,
        &["nonesuch", "sessions list"],
    );
}

#[tokio::test]
async fn a_closed_standard_output_loses_nothing() {
    let setting = Setting::new(Script::always(
        Answer::text("the answer").chunk_delay(Duration::from_millis(10)),
    ))
    .await;
    let command = format!(
        "'{}' -z hi | true; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_hermes")
    );
    #[expect(clippy::disallowed_methods, reason = "a test plays the shell")]
    let output = std::process::Command::new("bash")
        .args(["-c", &command])
        .env("HERMES_HOME", setting.hermes.home())
        .output()
        .expect("bash runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("standard output") && stderr.contains("sessions show"),
        "{stderr}"
    );
    assert!(
        setting
            .run(&["sessions", "search", "answer"])
            .stdout
            .contains("answer")
    );
}

#[tokio::test]
async fn a_reader_that_leaves_early_gets_a_turn_that_is_closed_not_cut() {
    let answer = Answer::text("word ".repeat(200))
        .pieces(200)
        .chunk_delay(Duration::from_millis(2));
    let setting = Setting::new(Script::always(answer)).await;
    let command = format!("'{}' chat -q hi | head -c 20", env!("CARGO_BIN_EXE_hermes"));
    #[expect(clippy::disallowed_methods, reason = "a test plays the shell")]
    let status = std::process::Command::new("bash")
        .args(["-c", &command])
        .env("HERMES_HOME", setting.hermes.home())
        .status()
        .expect("bash runs");
    assert!(status.success());
    let recovered = setting.run(&["sessions", "recover"]);
    assert!(
        recovered.stdout.contains("nothing to recover"),
        "{recovered:?}"
    );
}

#[tokio::test]
async fn a_full_disk_is_told_clearly_and_the_store_opens_again() {
    let Some(disk) = SmallDisk::mount() else {
        // Mounting needs root. The store's own tests fill a database without it.
        println!("skipped: cannot mount a small file system here");
        return;
    };
    let setting = Setting::new(Script::always(Answer::text("ok"))).await;
    let config = std::fs::read_to_string(setting.hermes.home().join("config.yaml")).unwrap();
    std::fs::write(disk.path().join("config.yaml"), config).unwrap();
    let hermes = setting.hermes.clone().env("HERMES_HOME", disk.path());
    assert_eq!(hermes.clone().args(["-z", "hi"]).run().code, Some(0));
    let ballast = disk.fill();
    let output = hermes.clone().args(["-z", &"long ".repeat(20_000)]).run();
    check(&output, 1, &["space"]);
    std::fs::remove_file(ballast).unwrap();
    assert_eq!(hermes.clone().args(["-z", "hi again"]).run().code, Some(0));
    assert!(
        hermes
            .args(["sessions", "list"])
            .run()
            .stdout
            .contains("hi again")
    );
}

/// A tmpfs of 4 MB, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        #[expect(clippy::disallowed_methods, reason = "a test sets its stage")]
        let status = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(folder.path())
            .stderr(std::process::Stdio::null())
            .status()
            .ok()?;
        status.success().then_some(Self(folder))
    }

    fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// Uses all space up; returns the file that does.
    fn fill(&self) -> std::path::PathBuf {
        use std::io::Write as _;
        let path = self.path().join("ballast");
        let mut file = std::fs::File::create(&path).expect("a file");
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        #[expect(clippy::disallowed_methods, reason = "a test clears its stage")]
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.path())
            .status();
    }
}
