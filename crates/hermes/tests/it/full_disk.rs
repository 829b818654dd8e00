//! Notes and skills on a disk that is full: the model and people are told, and what was there stays whole.
//!
//! The disk is a file system in memory of a few pages, which bubblewrap puts below the home.

use std::time::Duration;

use hermes_testkit::peers;
use hermes_testkit::process::{Hermes, Output};
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

/// What the small disk holds, in pages of 4 KB.
const PAGES: usize = 4;

/// Runs a shell line with `folder` of the home on a small disk. `$HERMES` is the program, `fill` leaves no byte free.
fn on_a_small_disk(setting: &Setting, folder: &str, line: &str) -> Output {
    let home = setting.hermes.home();
    let place = home.join(folder);
    std::fs::create_dir_all(&place).unwrap();
    let line = format!(
        "fill() {{ cat /dev/zero > \"{}/filler\" 2>/dev/null; }}\n{line}",
        place.display()
    );
    Hermes::new("/usr/bin/bwrap")
        .deadline(Duration::from_secs(60))
        .env("HERMES_HOME", &home)
        .env("HERMES", env!("CARGO_BIN_EXE_hermes"))
        .args(["--dev-bind", "/", "/", "--size"])
        .args([(PAGES * 4096).to_string()])
        .args(["--tmpfs".as_ref(), place.as_os_str()])
        .args(["--chdir".as_ref(), place.as_os_str()])
        .args(["/bin/sh", "-c"])
        .args([line])
        .run()
}

/// What the model was told of its call.
fn told(setting: &Setting) -> String {
    let requests = setting.server.requests();
    let last = &requests.last().unwrap().json["messages"];
    last.as_array().unwrap().last().unwrap()["content"].to_string()
}

#[tokio::test]
async fn a_note_that_finds_no_room_leaves_the_others_as_they_were() {
    if !peers::is_there("bwrap") {
        return;
    }
    let note = json!({"action": "add", "target": "memory", "content": "the harbour closes at nine ".repeat(20)});
    let answers = [Answer::call("m1", "memory", note), Answer::text("I go on.")];
    let setting = Setting::new(Script::new(answers)).await;
    let output = on_a_small_disk(
        &setting,
        "memories",
        "printf 'An old note' > MEMORY.md; fill; \"$HERMES\" -z 'note it'; echo \"code $?\"; cat MEMORY.md; echo; ls -a",
    );
    assert!(output.stdout.contains("I go on."), "{output:?}");
    assert!(output.stdout.contains("code 0"), "{output:?}");
    assert!(output.stdout.contains("\nAn old note\n"), "{output:?}");
    assert!(!output.stdout.contains("the harbour"), "{output:?}");
    assert!(
        !output.stdout.contains(".tmp"),
        "nothing half-written: {output:?}"
    );
    let told = told(&setting);
    assert!(told.contains("No space left"), "{told}");
    // What was not done is not in the history as done.
    let history = setting.run(&["memory", "history", "--json"]);
    assert!(
        !history.stdout.contains("\"after\": \"the harbour"),
        "{history:?}"
    );
}

#[tokio::test]
async fn a_skill_that_finds_no_room_stays_as_it_was() {
    if !peers::is_there("bwrap") {
        return;
    }
    let content = format!(
        "---\nname: harbour\ndescription: When boats may leave\n---\n\n{}\n",
        "Look at the tide first. ".repeat(100)
    );
    let create = json!({"action": "create", "name": "harbour", "content": content});
    let answers = [
        Answer::call("s1", "skill_manage", create),
        Answer::text("I go on."),
    ];
    let setting = Setting::new(Script::new(answers)).await;
    let output = on_a_small_disk(
        &setting,
        "skills",
        "mkdir -p tides; printf -- '---\\nname: tides\\ndescription: Tides\\n---\\nBy hand.\\n' > tides/SKILL.md; fill; \
         \"$HERMES\" --yolo -z 'write it down'; echo \"code $?\"; cat tides/SKILL.md; find . -name '*.md' -o -name '*tmp*'",
    );
    assert!(output.stdout.contains("I go on."), "{output:?}");
    assert!(output.stdout.contains("code 0"), "{output:?}");
    assert!(output.stdout.contains("By hand."), "{output:?}");
    assert!(!output.stdout.contains("harbour/SKILL.md"), "{output:?}");
    let told = told(&setting);
    assert!(told.contains("No space left"), "{told}");
}
