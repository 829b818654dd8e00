//! What settings and files of a project make of a prompt.

use std::fs;

use hermes_core::Sessions as _;
use hermes_testkit::server::{Answer, Script};

use crate::support::{Process, options, say};

async fn prompt_of(process: &Process, source: &str) -> String {
    let session = process.runtime.open(options(source)).await.unwrap();
    say(&session, "hello").await;
    let requests = process.server.requests();
    requests.last().unwrap().json["messages"][0]["content"].to_string()
}

async fn process(settings: &str) -> Process {
    let more = format!("{settings}auxiliary: {{title_generation: {{enabled: false}}}}\n");
    Process::with(Script::always(Answer::text("hello")), &more).await
}

#[tokio::test]
async fn each_surface_has_its_own_hint_and_no_other() {
    let settings = "platform_hints:\n  cli: Lines are long here.\n  telegram: {append: Be brief., replace: No tables.}\n  \
                    odd: {other: 1}\n";
    let process = process(settings).await;
    assert!(
        prompt_of(&process, "cli")
            .await
            .contains("Lines are long here.")
    );
    let telegram = prompt_of(&process, "telegram").await;
    assert!(telegram.contains("No tables.\\n\\nBe brief."), "{telegram}");
    assert!(!telegram.contains("Lines are long"), "{telegram}");
    assert!(!prompt_of(&process, "odd").await.contains("No tables."));
}

#[tokio::test]
async fn what_a_surface_says_of_itself_is_replaced_or_added_to_as_the_settings_want() {
    let settings = "platform_hints:\n  telegram: {append: Be brief., replace: No tables.}\n  discord: Be kind.\n";
    let process = process(settings).await;
    for (source, is_kept) in [("telegram", false), ("discord", true)] {
        let options = hermes_core::SessionOptions {
            hint: Some("Read mostly on phones.".into()),
            ..options(source)
        };
        let session = process.runtime.open(options).await.unwrap();
        say(&session, "hello").await;
        let requests = process.server.requests();
        let prompt = requests.last().unwrap().json["messages"][0]["content"].to_string();
        assert_eq!(prompt.contains("on phones"), is_kept, "{prompt}");
        assert!(prompt.contains("Be "), "{prompt}");
    }
}

#[tokio::test]
async fn a_projects_context_is_as_long_as_the_settings_allow() {
    let process = process("context_file_max_chars: 100\n").await;
    let context = format!("begins {}ends", "all along ".repeat(50));
    fs::write(process.folder.path().join("AGENTS.md"), context).unwrap();
    let prompt = prompt_of(&process, "cli").await;
    assert!(prompt.contains("begins all along"), "{prompt}");
    assert!(prompt.contains("bytes left out"), "{prompt}");
    assert!(prompt.contains("ends"), "{prompt}");
}
