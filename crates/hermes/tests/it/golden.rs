//! The request prefix is the same bytes on every request, across turns and across a restart.

use hermes_testkit::server::{Answer, Request, Script};
use serde_json::{Value, json};

use crate::setting::Setting;

/// What a request begins with: everything up to the end of its last message, as bytes.
fn conversation(request: &Request) -> String {
    let body = String::from_utf8(request.body.clone().to_vec()).expect("a request is text");
    let json: Value = serde_json::from_str(&body).expect("a request is JSON");
    let messages = json["messages"].to_string();
    assert!(
        body.contains(&messages),
        "the messages stand in the body as serialised"
    );
    messages.trim_end_matches(']').to_owned()
}

fn tools(request: &Request) -> String {
    request.json["tools"].to_string()
}

#[tokio::test]
async fn the_request_prefix_is_frozen_across_turns_and_a_restart() {
    let setting = Setting::new(Script::new([
        Answer::call(
            "c1",
            "terminal",
            json!({"command": "echo hi", "timeout": 5}),
        ),
        Answer::text("one"),
        Answer::text("two"),
        Answer::text("three"),
    ]))
    .await;
    let folder = setting.hermes.work_folder();
    std::fs::write(folder.join("AGENTS.md"), "the rules of this project").unwrap();
    assert_eq!(setting.run(&["-z", "first"]).code, Some(0));
    // The world changes; the session's prefix does not.
    std::fs::write(folder.join("AGENTS.md"), "other rules").unwrap();
    std::fs::write(
        setting.hermes.home().join("SOUL.md"),
        "You are somebody else.",
    )
    .unwrap();
    assert_eq!(setting.run(&["-c", "-z", "second"]).code, Some(0));
    assert_eq!(
        setting.run(&["-c", "-t", "todo", "-z", "third"]).code,
        Some(0)
    );
    let requests = setting.server.requests();
    assert_eq!(requests.len(), 4);
    for pair in requests.windows(2) {
        let (before, after) = (conversation(&pair[0]), conversation(&pair[1]));
        assert!(
            after.starts_with(&before),
            "a prefix changed:\n{before}\n{after}"
        );
        assert_eq!(tools(&pair[0]), tools(&pair[1]));
    }
    assert!(conversation(&requests[3]).contains("the rules of this project"));
}
