//! Changes of files that somebody looks at first: shown on every surface, written or left alone.

use std::path::PathBuf;
use std::time::Duration;

use hermes_testkit::process::{Output, Terminal};
use hermes_testkit::server::{Answer, Script};
use serde_json::{Value, json};

use crate::approvals::code_in;
use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(30);
const OLD: &str = "export A=1\n";
const MANUAL: &str = "approvals:\n  mode: manual\n  timeout: 600\n";
const EVERY: &str = "approvals:\n  mode: manual\n  timeout: 600\n  edits: ask\n";

/// A home whose model adds an alias to the start file of the user's shell.
pub(crate) struct Editing {
    pub(crate) setting: Setting,
    file: PathBuf,
}

/// What `~` means to the program.
fn user_home(setting: &Setting) -> PathBuf {
    let home = setting.hermes.home();
    home.parent().expect("it is in a folder").to_owned()
}

impl Editing {
    pub(crate) async fn new() -> Self {
        let content = format!("{OLD}alias ll='ls -l \u{1b}[2K'\n");
        let arguments = json!({"path": "~/.bashrc", "content": content});
        let call = Answer::call("c1", "write_file", arguments);
        let script = Script::new([call, Answer::text("that was it")]);
        let setting = Setting::with(script, MANUAL).await;
        let file = user_home(&setting).join(".bashrc");
        std::fs::write(&file, OLD).unwrap();
        Self { setting, file }
    }

    fn content(&self) -> String {
        std::fs::read_to_string(&self.file).unwrap()
    }

    /// Talks in plain lines until the question is there.
    pub(crate) fn ask(&self) -> Terminal {
        let mut terminal = self.setting.talk_plainly();
        terminal.expect("›", SOON);
        terminal.send("add an alias\n");
        terminal.expect("allow?", SOON);
        terminal
    }

    fn approvals(&self, args: &[&str]) -> Output {
        let output = self.setting.run(&[&["approvals"], args].concat());
        assert_eq!(output.code, Some(0), "{output:?}");
        output
    }

    fn id(&self) -> String {
        let open: Value =
            serde_json::from_str(&self.approvals(&["list", "--json"]).stdout).unwrap();
        open[0]["id"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn the_dialog_shows_the_change_and_yes_writes_it() {
    let editing = Editing::new().await;
    let terminal = editing.setting.hermes.spawn_in_terminal();
    terminal.expect_screen("›", SOON);
    terminal.send("add an alias\r");
    terminal.expect_screen("allow? y once  s for this session  n no", SOON);
    let screen = terminal.screen();
    for row in [
        "write_file wants to change:",
        ".bashrc",
        "changes what runs when the user logs in",
        "▎  export A=1",
        r"▎ +alias ll='ls -l \x1b[2K'",
    ] {
        assert!(screen.contains(row), "{row}:\n{screen}");
    }
    assert_eq!(editing.content(), OLD);
    terminal.send("y");
    terminal.expect_screen("that was it", SOON);
    assert!(editing.content().contains("alias ll="));
}

#[tokio::test]
async fn no_leaves_the_file_as_it_was() {
    let editing = Editing::new().await;
    let terminal = editing.setting.hermes.spawn_in_terminal();
    terminal.expect_screen("›", SOON);
    terminal.send("add an alias\r");
    terminal.expect_screen("allow?", SOON);
    terminal.send("n");
    terminal.expect_screen("that was it", SOON);
    assert_eq!(editing.content(), OLD);
}

#[tokio::test]
async fn plain_lines_and_another_terminal_show_the_same_change() {
    let editing = Editing::new().await;
    let mut terminal = editing.ask();
    let plain = terminal.output();
    for line in [
        "write_file wants to change:",
        r"│ +alias ll='ls -l \x1b[2K'",
    ] {
        assert!(plain.contains(line), "{line}:\n{plain}");
    }
    let listed = editing.approvals(&["list"]).stdout;
    assert!(listed.contains(".bashrc (+1 -0)"), "{listed}");
    let id = editing.id();
    let shown = editing.approvals(&["show", &id]).stdout;
    assert!(shown.contains(r"│ +alias ll='ls -l \x1b[2K'"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    editing.approvals(&["allow", &code_in(&plain)]);
    terminal.expect("that was it", SOON);
    assert!(editing.content().contains("alias ll="));
}

#[tokio::test]
async fn what_changed_while_the_question_was_open_is_not_overwritten() {
    let editing = Editing::new().await;
    let mut terminal = editing.ask();
    let theirs = format!("{OLD}export B=2\n");
    std::fs::write(&editing.file, &theirs).unwrap();
    terminal.send("y\n");
    terminal.expect("that was it", SOON);
    assert_eq!(editing.content(), theirs);
    let requests = editing.setting.server.requests();
    let told = requests.last().unwrap().json.to_string();
    assert!(told.contains("read it again"), "{told}");
}

#[tokio::test]
async fn after_kill_9_the_change_is_still_shown_and_an_answer_still_counts() {
    let editing = Editing::new().await;
    let terminal = editing.ask();
    let code = code_in(&terminal.output());
    terminal.kill_9();
    let id = editing.id();
    let shown = editing.approvals(&["show", &id]).stdout;
    assert!(shown.contains("│ +alias ll="), "{shown}");
    editing.approvals(&["allow", &code]);
    assert_eq!(editing.content(), OLD, "nobody is there to write it");
    let hermes = editing.setting.hermes.clone();
    let mut terminal = hermes.args(["-c", "--plain"]).spawn_in_terminal();
    terminal.expect("that was it", SOON);
    assert!(editing.content().contains("alias ll="));
}

#[tokio::test]
async fn where_nobody_is_a_start_file_is_left_alone_unless_everything_is_allowed() {
    for (args, is_written) in [
        (&["chat", "-q", "add an alias"][..], false),
        (&["--yolo", "chat", "-q", "add an alias"], true),
        (&["-z", "add an alias"], false),
        (&["--yolo", "-z", "add an alias"], true),
    ] {
        let editing = Editing::new().await;
        let output = editing.setting.run(args);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert_eq!(editing.content() != OLD, is_written, "{args:?}");
        let requests = editing.setting.server.requests();
        let told = requests.last().unwrap().json.to_string();
        let refusal = "changes what runs when the user logs in, and nobody is here to allow it";
        assert_eq!(told.contains(refusal), !is_written, "{told}");
    }
}

#[tokio::test]
async fn with_edits_ask_every_change_is_shown_until_one_is_allowed_for_the_session() {
    let write = |call: &str, path: &str, content: &str| {
        Answer::call(
            call,
            "write_file",
            json!({"path": path, "content": content}),
        )
    };
    let replace = json!({"path": "b.md", "old_string": "b", "new_string": "c"});
    let script = Script::new([
        write("c1", "a.md", "a\n"),
        write("c2", "b.md", "b\n"),
        Answer::call("c3", "patch", replace),
        write("c4", "~/.bashrc", "x\n"),
        Answer::text("that was it"),
    ]);
    let setting = Setting::with(script, EVERY).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("write\n");
    terminal.expect("approvals.edits", SOON);
    terminal.expect("│ +a", SOON);
    terminal.expect("allow?", SOON);
    terminal.send("n\n");
    terminal.expect("│ +b", SOON);
    terminal.expect("allow?", SOON);
    terminal.send("s\n");
    // The third is not asked about; the fourth is asked about in any case.
    terminal.expect("│ +x", SOON);
    terminal.expect("allow?", SOON);
    terminal.send("n\n");
    terminal.expect("that was it", SOON);
    let work = setting.hermes.work_folder();
    assert!(!work.join("a.md").exists());
    assert_eq!(std::fs::read_to_string(work.join("b.md")).unwrap(), "c\n");
    assert!(!user_home(&setting).join(".bashrc").exists());
}

#[tokio::test]
async fn hermes_own_settings_are_changed_when_a_person_agrees() {
    let replace = json!({
        "path": "~/home/config.yaml",
        "old_string": "timeout: 600",
        "new_string": "timeout: 30",
    });
    let call = Answer::call("c1", "patch", replace);
    let script = Script::new([call, Answer::text("that was it")]);
    let setting = Setting::with(script, MANUAL).await;
    let config = setting.hermes.home().join("config.yaml");
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    terminal.send("wait less\n");
    terminal.expect("which decide what is asked", SOON);
    terminal.expect("│ +  timeout: 30", SOON);
    terminal.expect("allow?", SOON);
    terminal.send("y\n");
    terminal.expect("that was it", SOON);
    let settings = std::fs::read_to_string(config).unwrap();
    assert!(settings.contains("timeout: 30"), "{settings}");
}
