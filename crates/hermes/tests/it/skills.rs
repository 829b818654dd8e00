//! Skills as slash commands, in plain lines and in the interface; and the other commands beside them.

use std::fs;
use std::time::Duration;

use hermes_testkit::process::Terminal;
use hermes_testkit::server::{Answer, Script};

use crate::setting::Setting;

const SOON: Duration = Duration::from_secs(30);
const REVIEW: &str = "---\nname: Code Review\ndescription: looks at a change\n---\n\
                      Read ${HERMES_SKILL_DIR}/references/style.md first.\n";

/// A home with a skill that has a file, one that is a file, and one that cannot be read.
async fn setting(answers: &[&str]) -> Setting {
    let answers = answers.iter().map(|text| Answer::text(*text));
    let setting = Setting::new(Script::new(answers)).await;
    put(&setting, "dev/review/SKILL.md", REVIEW);
    put(&setting, "dev/review/references/style.md", "Short.");
    put(&setting, "standup.md", "Says what was done.\n");
    put(&setting, "broken/SKILL.md", b"caf\xe9");
    setting
}

fn put(setting: &Setting, path: &str, text: impl AsRef<[u8]>) {
    let path = setting.hermes.home().join("skills").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The text of the last message of the last request.
fn last_said(setting: &Setting) -> String {
    let requests = setting.server.requests();
    let messages = requests.last().unwrap().json["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap()["content"].clone();
    match last.as_array() {
        Some(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect()
        }
        None => last.as_str().unwrap().to_owned(),
    }
}

fn say(terminal: &mut Terminal, line: &str, answer: &str) {
    terminal.send(&format!("{line}\n"));
    terminal.expect(answer, SOON);
    terminal.expect("›", SOON);
}

fn open(setting: &Setting) -> Terminal {
    let terminal = setting.hermes.spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal.expect_screen("\n› \n", SOON);
    terminal
}

#[tokio::test]
async fn a_conversation_can_begin_with_skills() {
    let setting = setting(&["one", "two"]).await;
    let output = setting.run(&["-s", "code-review,nope", "-z", "look"]);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "one\n"));
    assert!(output.stderr.contains("no skill `nope`"), "{output:?}");
    let requests = setting.server.requests();
    let prompt = requests[0].json["messages"][0]["content"].to_string();
    assert!(prompt.contains("go by the skill `Code Review`"), "{prompt}");
    assert!(
        prompt.contains("dev/review/references/style.md first"),
        "{prompt}"
    );
    let usage = fs::read_to_string(setting.hermes.home().join("skills/.usage.json")).unwrap();
    let usage: serde_json::Value = serde_json::from_str(&usage).unwrap();
    assert_eq!(usage["Code Review"]["use_count"], 1, "{usage}");
    let output = setting.run(&["-s", "nope", "-z", "look"]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("no skill `nope`"), "{output:?}");
}

#[tokio::test]
async fn a_skill_is_published_once_somebody_agrees() {
    let setting = setting(&[]).await;
    let site = setting.hermes.work_folder().join("www");
    let to = site.to_str().unwrap();
    let output = setting.run(&["skills", "publish", "standup", "--to", to]);
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("--yes agrees"), "{output:?}");
    assert!(!site.exists());
    let output = setting.run(&["skills", "publish", "standup", "--to", to, "--yes"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stdout.contains("https://YOUR-SITE#standup"),
        "{output:?}"
    );
    let index = fs::read_to_string(site.join(".well-known/agent-skills/index.json")).unwrap();
    assert!(index.contains("sha256:"), "{index}");
    let output = setting.run(&["skills", "tap", "add", "../x"]);
    assert!(
        output.stderr.contains("no place that can be searched"),
        "{output:?}"
    );
}

#[tokio::test]
async fn skills_are_listed_searched_and_near_names_are_told() {
    let setting = setting(&[]).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    say(&mut terminal, "/skills", "line 1 is not UTF-8");
    let listed = terminal.output();
    assert!(
        listed.contains("/code-review  looks at a change"),
        "{listed}"
    );
    assert!(listed.contains("/standup  Says what was done."), "{listed}");
    say(&mut terminal, "/skills CHANGE", "/code-review");
    say(&mut terminal, "/skills nonsense", "no skill has the words");
    say(&mut terminal, "/stadnup", "did you mean /standup?");
    say(&mut terminal, "/help", "list the skills");
    say(
        &mut terminal,
        "/platforms",
        "not running (`hermes gateway start`)",
    );
    // What is written meanwhile is there at once.
    put(&setting, "late/SKILL.md", "Comes late.");
    say(&mut terminal, "/skills late", "/late  Comes late.");
}

#[tokio::test]
async fn a_named_skill_reaches_the_model_with_its_folder_its_files_and_the_words() {
    let setting = setting(&["reviewed", "both"]).await;
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    say(&mut terminal, "/code-review the last commit", "reviewed");
    let skills = setting.hermes.home().canonicalize().unwrap().join("skills");
    let folder = skills.join("dev/review").display().to_string();
    let said = last_said(&setting);
    assert!(said.starts_with("/code-review the last commit\n"), "{said}");
    assert!(said.contains("\n\n--- Skill ---\n\n"), "{said}");
    assert!(said.contains(&format!("Its folder: {folder}\n")), "{said}");
    assert!(said.contains("- references/style.md\n"), "{said}");
    assert!(
        said.contains(&format!("Read {folder}/references/style.md first.")),
        "{said}"
    );
    say(&mut terminal, "/stand /code-review now", "both");
    let said = last_said(&setting);
    assert!(
        said.contains("skill `standup`") && said.contains("skill `Code Review`"),
        "{said}"
    );
}

#[tokio::test]
async fn the_interface_suggests_skills_and_shows_what_was_typed() {
    let setting = setting(&["reviewed"]).await;
    let terminal = open(&setting);
    terminal.send("/skills dev\r");
    terminal.expect_screen("/code-review  looks at a change", SOON);
    terminal.send("/code-r");
    terminal.expect_screen("/code-review [TEXT]  looks at a change", SOON);
    terminal.send("\r");
    terminal.expect_screen("› /code-review \n", SOON);
    terminal.send("my change\r");
    terminal.expect_screen("› /code-review my change\n\nreviewed\n\n──", SOON);
    let said = last_said(&setting);
    assert!(said.contains("/references/style.md first."), "{said}");
    terminal.send("/code-reviwe\r");
    terminal.expect_screen("did you mean /code-review?", SOON);
    terminal.send("\x03");
    terminal.expect_screen("\n› \n", SOON);
    terminal.send("/undo\r");
    terminal.expect_screen("\n› /code-review my change\n", SOON);
}

#[tokio::test]
async fn an_image_is_attached_by_its_path() {
    let png: &[u8] = b"\x89PNG\r\n\x1a\n";
    let setting = setting(&["a cat"]).await;
    fs::write(setting.hermes.work_folder().join("cat.png"), png).unwrap();
    let terminal = open(&setting);
    terminal.send("/image nowhere.png\r");
    terminal.expect_screen("cannot attach `", SOON);
    terminal.send("/image cat.png what is it?\r");
    terminal.expect_screen("› what is it? [image cat.png]", SOON);
    terminal.send("\r");
    terminal.expect_screen("a cat\n\n──", SOON);
    let requests = setting.server.requests();
    let sent = requests.last().unwrap().json["messages"].to_string();
    assert!(
        sent.contains("data:image/png;base64,iVBORw0KGgo="),
        "{sent}"
    );
}

#[tokio::test]
async fn an_image_can_be_sent_from_plain_lines_too() {
    let setting = setting(&["a cat"]).await;
    let image = setting.hermes.work_folder().join("my cat.png");
    fs::write(&image, b"\x89PNG\r\n\x1a\n").unwrap();
    let mut terminal = setting.talk_plainly();
    terminal.expect("›", SOON);
    say(&mut terminal, "/image", "/image needs the path of an image");
    say(&mut terminal, "/image 'my cat.png' who?", "a cat");
    let requests = setting.server.requests();
    let sent = requests.last().unwrap().json["messages"].to_string();
    assert!(
        sent.contains("data:image/png;base64,iVBORw0KGgo="),
        "{sent}"
    );
    assert!(sent.contains("who? [image: "), "{sent}");
}

const BOX: &str = "---\nname: box\ndescription: d\nrequired_environment_variables: [BOX_API_KEY, OPENAI_API_KEY]\n---\nDo.\n";

/// A home whose model looks how long two variables are.
async fn setting_with_keys(times: usize) -> Setting {
    let line = "echo lengths ${#BOX_API_KEY} ${#OPENAI_API_KEY}";
    let call = || Answer::call("c1", "terminal", serde_json::json!({ "command": line }));
    let turns = (0..times).flat_map(|_| [call(), Answer::text("done")]);
    let setting = Setting::with(Script::new(turns), "approvals: {mode: 'off'}\n").await;
    put(&setting, "box/SKILL.md", BOX);
    let env = "BOX_API_KEY=twelve-chars\nOPENAI_API_KEY=sk-not-for-commands\n";
    fs::write(setting.hermes.home().join(".env"), env).unwrap();
    setting
}

#[tokio::test]
async fn a_skill_gets_a_key_once_its_owner_allowed_that_for_the_text_it_has() {
    let setting = setting_with_keys(3).await;
    let lengths = || {
        let output = setting.run(&["-z", "go"]);
        assert_eq!(output.code, Some(0), "{output:?}");
        let said = last_said(&setting);
        let at = said.find("lengths ").unwrap_or_else(|| panic!("{said}"));
        said[at..].chars().take(12).collect::<String>()
    };
    assert!(lengths().starts_with("lengths 0 0"));
    let output = setting.run(&["skills", "allow", "box", "BOX_API_KEY"]);
    assert!(output.stderr.contains("nobody is there"), "{output:?}");
    let output = setting.run(&["skills", "allow", "box", "OPENAI_API_KEY", "--yes"]);
    assert!(output.stderr.contains("for Hermes itself"), "{output:?}");
    let of_agent = setting.hermes.clone().env("HERMES_COMMAND", "0123");
    let output = of_agent
        .args(["skills", "allow", "box", "BOX_API_KEY", "--yes"])
        .run();
    assert!(
        output.stderr.contains("no command of the agent"),
        "{output:?}"
    );
    let output = setting.run(&["skills", "allow", "box", "BOX_API_KEY", "--yes"]);
    assert!(
        output.stdout.contains("allowed: BOX_API_KEY for box"),
        "{output:?}"
    );
    assert!(lengths().starts_with("lengths 12 0"));
    put(
        &setting,
        "box/SKILL.md",
        BOX.replace("Do.", "Do otherwise."),
    );
    assert!(lengths().starts_with("lengths 0 0"));
    let listed = setting.run(&["skills", "allow"]).stdout;
    assert!(listed.contains("has changed since"), "{listed}");
}

#[tokio::test]
async fn commands_in_a_skill_are_run_where_that_is_switched_on_and_nobody_need_be_asked() {
    let skill = "---\ndescription: d\n---\nIt is !`echo some''thing`. !`rm -rf /` In !`pwd`.\n";
    for (more, is_run) in [("skills: {inline_shell: true}\n", true), ("", false)] {
        let answers = ["one", "two"].map(Answer::text);
        let setting = Setting::with(Script::new(answers), more).await;
        put(&setting, "own/SKILL.md", skill);
        put(&setting, "agents/SKILL.md", skill);
        put(
            &setting,
            ".usage.json",
            r#"{"agents": {"created_by": "agent"}}"#,
        );
        let prompt = |skill: &str| {
            let output = setting.run(&["-s", skill, "-z", "look"]);
            assert_eq!(output.code, Some(0), "{output:?}");
            assert!(!output.stderr.contains("no effect"), "{output:?}");
            let requests = setting.server.requests();
            requests.last().unwrap().json["messages"][0]["content"].to_string()
        };
        let own = prompt("own");
        assert_eq!(own.contains("It is something."), is_run, "{own}");
        assert_eq!(own.contains("[`rm -rf /` was not run:"), is_run, "{own}");
        assert_eq!(own.contains("!`rm"), !is_run, "{own}");
        assert_eq!(own.contains("/skills/own."), is_run, "{own}");
        assert!(prompt("agents").contains("It is !`echo some''thing`."));
    }
}

#[tokio::test]
async fn skills_are_archived_and_restored_by_name() {
    let setting = setting(&[]).await;
    let output = setting.run(&["skills", "archive", "code-review"]);
    assert!(
        output.stdout.contains("skills restore Code Review"),
        "{output:?}"
    );
    assert!(
        !setting
            .run(&["skills", "list"])
            .stdout
            .contains("/code-review")
    );
    let output = setting.run(&["skills", "restore", "code-review"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let place = setting.hermes.home().join("skills/dev/review");
    assert!(place.join("references/style.md").exists());
    assert_eq!(fs::read_to_string(place.join("SKILL.md")).unwrap(), REVIEW);
}
