//! Slash commands, typed into a conversation in plain lines.

use std::time::Duration;

use hermes_testkit::process::Terminal;
use hermes_testkit::server::{Answer, Script};

use crate::setting::{Setting, write_config};

const SOON: Duration = Duration::from_secs(20);

fn answers<const N: usize>(texts: [&str; N]) -> Script {
    Script::new(texts.map(Answer::text))
}

/// A conversation in which each of these was said and answered in turn.
fn talk(setting: &Setting, exchanges: &[(&str, &str)]) -> Terminal {
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    for (said, answer) in exchanges {
        say(&mut terminal, said, answer);
    }
    terminal
}

/// Types a line, and waits for what it comes to and for the next prompt: what is typed before would disturb the turn.
fn say(terminal: &mut Terminal, line: &str, answer: &str) {
    terminal.send(&format!("{line}\n"));
    terminal.expect(answer, SOON);
    terminal.expect("›", SOON);
}

/// A conversation in the middle of a slow answer.
fn in_the_middle(setting: &Setting) -> Terminal {
    let mut terminal = talk(setting, &[]);
    terminal.send("go\n");
    terminal.expect("word1", SOON);
    terminal
}

/// An answer that takes a tenth of a second for each word.
fn slow(words: usize) -> Answer {
    Answer::text(words_to(words))
        .pieces(words)
        .chunk_delay(Duration::from_millis(100))
}

fn words_to(count: usize) -> String {
    let words: Vec<String> = (0..count).map(|n| format!("word{n}")).collect();
    words.join(" ")
}

/// What the user and the model had said when the last request was made.
fn last_asked(setting: &Setting) -> Vec<String> {
    let requests = setting.server.requests();
    let messages = requests.last().unwrap().json["messages"].clone();
    let texts = messages.as_array().unwrap().iter().skip(1);
    texts
        .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn a_rewind_lists_what_was_said_and_goes_back_to_before_one_of_it() {
    let setting = Setting::new(answers(["one", "two", "three"])).await;
    let mut terminal = talk(&setting, &[("first", "one"), ("second", "two")]);
    say(&mut terminal, "/rewind", "2  first");
    say(&mut terminal, "/rewind 2", "your last 2 messages");
    say(&mut terminal, "/rewind", "there is nothing to take back");
    say(&mut terminal, "anew", "three");
    assert_eq!(last_asked(&setting), ["anew"]);
}

#[tokio::test]
async fn an_undo_takes_the_last_message_back_and_a_retry_asks_again() {
    let setting = Setting::new(answers(["one", "two", "three", "four"])).await;
    let mut terminal = talk(&setting, &[("first", "one"), ("second", "two")]);
    say(
        &mut terminal,
        "/undo",
        "taken back: your last message, from “second”",
    );
    say(&mut terminal, "instead", "three");
    assert_eq!(last_asked(&setting), ["first", "one", "instead"]);
    say(&mut terminal, "/retry", "four");
    assert_eq!(last_asked(&setting), ["first", "one", "instead"]);
    say(&mut terminal, "/undo 99", "your last 2 messages");
    say(&mut terminal, "/undo", "there is nothing to take back");
}

#[tokio::test]
async fn an_answer_is_given_to_the_clipboard_of_the_terminal() {
    let mut setting = Setting::new(answers(["one", "two"])).await;
    setting.hermes = setting.hermes.env("TERM", "xterm-kitty");
    let mut terminal = talk(&setting, &[]);
    say(&mut terminal, "/copy", "there is no such answer");
    say(&mut terminal, "a", "one");
    say(&mut terminal, "b", "two");
    terminal.send("/copy\n");
    terminal.expect("\x1b]52;c;dHdv\x07", SOON);
    terminal.expect("›", SOON);
    terminal.send("/copy 2\n");
    terminal.expect("copied 3 characters", SOON);
    terminal.expect("\x1b]52;c;b25l\x07", SOON);
    say(&mut terminal, "/copy 3", "there is no such answer");
    say(&mut terminal, "/copy x", "not `x`");
}

#[tokio::test]
async fn a_branch_leaves_its_parent_alone_and_both_can_be_resumed() {
    let setting = Setting::new(answers(["one", "two", "three"])).await;
    let mut terminal = talk(&setting, &[("first", "one")]);
    say(&mut terminal, "/title plans", "now called `plans`");
    say(&mut terminal, "/branch", "a branch of");
    say(&mut terminal, "in the branch", "two");
    assert_eq!(last_asked(&setting), ["first", "one", "in the branch"]);
    say(&mut terminal, "/title", "plans #2");
    say(
        &mut terminal,
        "/resume nothing like it",
        "no session `nothing like it`",
    );
    say(&mut terminal, "/sessions", "MESSAGES");
    let parent = setting.run(&["sessions", "list", "--json"]);
    let sessions: serde_json::Value = serde_json::from_str(&parent.stdout).unwrap();
    let parent = sessions.as_array().unwrap().iter();
    let parent = parent
        .into_iter()
        .find(|session| session["title"] == "plans");
    assert_eq!(parent.unwrap()["messages"], 2);
    let id = parent.unwrap()["id"].as_str().unwrap();
    say(&mut terminal, &format!("/resume {id}"), "hermes: one");
    say(&mut terminal, "in the parent", "three");
    assert_eq!(last_asked(&setting), ["first", "one", "in the parent"]);
}

#[tokio::test]
async fn the_model_changes_in_the_middle_of_a_conversation_and_its_words_stay() {
    let setting = Setting::new(answers(["one", "two"])).await;
    let mut terminal = talk(&setting, &[("first", "one")]);
    say(
        &mut terminal,
        "/model other-model",
        "custom:other-model answers from now on",
    );
    say(&mut terminal, "second", "two");
    let requests = setting.server.requests();
    assert_eq!(requests[1].json["model"], "other-model");
    assert_eq!(last_asked(&setting), ["first", "one", "second"]);
    assert_eq!(
        requests[0].json["messages"][0],
        requests[1].json["messages"][0]
    );
    say(&mut terminal, "/usage", "requests    2");
    say(&mut terminal, "/model --provider nobody x", "error:");
    say(&mut terminal, "/model", "custom:other-model answers;");
}

#[tokio::test]
async fn commands_tell_what_they_know() {
    let setting = Setting::new(answers(["one"])).await;
    let mut terminal = talk(&setting, &[]);
    for (command, told) in [
        ("/help", "go on in a copy of this conversation"),
        ("/hlep", "did you mean /help?"),
        ("/t", "/t could be /title or /tools"),
        ("/tools", "read_file"),
        ("/toolsets", "keep a list of steps"),
        ("/tools disable todo", "from the next conversation on"),
        ("/tools disable tood", "did you mean `todo`?"),
        ("/mcp", "no MCP servers"),
        ("/status", "waiting for you"),
        ("/usage", "nothing was used yet"),
        ("/history", "nothing was said yet"),
        ("/branch", "there is nothing to branch off yet"),
        ("/config", "config.yaml"),
        ("/profile", "the default profile"),
        ("/version", "hermes 0."),
        ("/undo x", "/undo takes a number of messages, not `x`"),
        ("/steer", "there are no words"),
        ("/busy sometimes", "queue, steer or interrupt"),
        ("/compress", "there is nothing to compress"),
        ("/personality", "concise"),
        ("/personality pirat", "did you mean `pirate`?"),
        ("/reasoning hide", "is hidden"),
        ("/reasoning", "it thinks: as much as its provider chooses"),
        ("/reasoning extreme", "none, minimal, low"),
        ("/reasoning high", "cannot be told how much to think"),
        ("/save", "/save is not here: everything is saved"),
        ("/yolo", "run without asking"),
        ("/yolo off", "ask first"),
    ] {
        say(&mut terminal, command, told);
    }
    assert!(
        setting.server.requests().is_empty(),
        "no command is a question"
    );
}

#[tokio::test]
async fn how_much_it_thinks_can_be_changed_and_kept() {
    let setting = Setting::new(Script::new(["one", "two"].map(Answer::text))).await;
    let hermes = setting
        .hermes
        .clone()
        .env("OPENROUTER_API_KEY", "sk-or-0123456789abcdef0123");
    let hermes = hermes.env("OPENROUTER_BASE_URL", setting.server.url());
    let talk = hermes.args(["--plain", "-m", "openrouter:some/model"]);
    let mut terminal = talk.spawn_in_terminal();
    terminal.expect("›", SOON);
    say(&mut terminal, "hello", "one");
    say(
        &mut terminal,
        "/reasoning high --global",
        "from now on: high",
    );
    say(&mut terminal, "/reasoning", "it thinks: high");
    say(&mut terminal, "again", "two");
    let requests: Vec<_> = setting
        .server
        .requests()
        .into_iter()
        .map(|request| request.json)
        .collect();
    assert!(
        !requests[0].to_string().contains("\"effort\""),
        "{}",
        requests[0]
    );
    assert!(
        requests[1].to_string().contains("\"high\""),
        "{}",
        requests[1]
    );
    assert_eq!(
        requests[0]["messages"][0], requests[1]["messages"][0],
        "the prompt stays"
    );
    let settings = std::fs::read_to_string(setting.hermes.home().join("config.yaml")).unwrap();
    assert!(settings.contains("reasoning_effort: high"), "{settings}");
}

#[tokio::test]
async fn a_line_sent_while_it_works_does_what_the_settings_say() {
    // What is interrupted may be as long as it likes: nobody waits for its end.
    for (mode, words) in [("interrupt", 300), ("queue", 15)] {
        let setting = Setting::new(Script::new([slow(words), Answer::text("second")])).await;
        let more = format!("display:\n  busy_input_mode: {mode}\n");
        write_config(&setting.hermes, &setting.server.url(), &more);
        let mut terminal = in_the_middle(&setting);
        terminal.send("other words\n");
        terminal.expect("second", SOON);
        let asked = last_asked(&setting);
        assert_eq!(asked.last().unwrap(), "other words");
        let is_whole = asked[1] == words_to(words);
        assert_eq!(is_whole, mode == "queue", "{mode}: {asked:?}");
    }
}

#[tokio::test]
async fn what_would_change_a_running_turn_waits_for_its_end() {
    let setting = Setting::new(Script::new([slow(300)])).await;
    let mut terminal = in_the_middle(&setting);
    terminal.send("/model other\n");
    terminal.expect("/model has to wait: a turn runs", SOON);
    terminal.send("/status\n");
    terminal.expect("running", SOON);
    terminal.send("/stop\n");
    terminal.expect("interrupted", SOON);
}

#[tokio::test]
async fn the_users_own_commands_run_in_a_shell_or_stand_for_others() {
    let setting = Setting::new(answers(["one"])).await;
    let own = "quick_commands:\n  \
               where: {type: exec, command: 'echo in $(basename $PWD); cd /; echo key sk-test-0123456789abcdef0123; false'}\n  \
               v2: {type: alias, target: /version}\n  \
               new: {type: exec, command: 'echo never'}\n";
    write_config(&setting.hermes, &setting.server.url(), own);
    let mut terminal = talk(&setting, &[]);
    for _ in 0..2 {
        terminal.send("/where\n");
        terminal.expect("in work", SOON);
        terminal.expect("it ended with code 1", SOON);
        terminal.expect("›", SOON);
    }
    say(&mut terminal, "/v2", "hermes 0.");
    say(&mut terminal, "/new", "a new conversation");
    let shown = terminal.output();
    assert!(!shown.contains("sk-test-0123456789abcdef0123") && !shown.contains("never"));
}

#[tokio::test]
async fn a_personality_is_part_of_the_prompt_of_the_next_conversation() {
    let setting = Setting::new(answers(["one", "two", "three"])).await;
    let system = || {
        let requests = setting.server.requests();
        requests.last().unwrap().json["messages"][0].to_string()
    };
    let own = "personalities:\n  gruff: Be gruff.\ndisplay:\n  personality: gruff\n";
    write_config(&setting.hermes, &setting.server.url(), own);
    let mut terminal = talk(&setting, &[("first", "one")]);
    assert!(system().contains("Be gruff."));
    say(
        &mut terminal,
        "/personality pirate",
        "personality: pirate, from the next conversation on",
    );
    say(&mut terminal, "second", "two");
    assert!(system().contains("Be gruff."), "what began stays as it is");
    say(&mut terminal, "/new", "a new conversation");
    say(&mut terminal, "third", "three");
    let system = system();
    assert!(system.contains("captain") && !system.contains("Be gruff."));
}
