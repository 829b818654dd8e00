//! Notes in the prompts of conversations, and reviews beside them.

use std::fs;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::{
    Event, FollowFrom, Notice, Reviews as _, RunningSession, SessionOptions, Sessions as _,
};
use hermes_testkit::server::{Answer, Request, Script};
use serde_json::{Value, json};

use crate::support::{Process, options, say};

const SOON: Duration = Duration::from_secs(20);

/// Settings with which every turn is looked through at once.
const EAGER: &str = "memory: {nudge_interval: 1}\nlearning: {rest: 0}\n";

fn note(content: &str) -> Answer {
    Answer::call(
        "m1",
        "memory",
        json!({"action": "add", "target": "user", "content": content}),
    )
}

/// Begins to answer and never ends.
fn silence() -> Answer {
    Answer::text("hm").stall_after(0)
}

fn prompt(request: &Request) -> String {
    request.json["messages"][0]["content"].to_string()
}

fn of_person(person: &str) -> SessionOptions {
    SessionOptions {
        person: Some(person.to_owned()),
        ..options("chat")
    }
}

async fn learned(session: &RunningSession) -> String {
    let mut events = session.handle.follow(FollowFrom::Turn);
    let told = async {
        while let Some(followed) = events.next().await {
            if let Some(Event::Notice {
                notice: Notice::Learned { text },
            }) = followed.into_event()
            {
                return text;
            }
        }
        panic!("the session is over");
    };
    tokio::time::timeout(SOON, told)
        .await
        .expect("something is learned")
}

#[tokio::test]
async fn a_note_is_in_the_prompt_of_the_next_conversation_and_not_in_this_one() {
    let script = Script::new([
        note("Lives in Lyon"),
        Answer::text("noted"),
        Answer::text("two"),
        Answer::text("three"),
    ]);
    let process = Process::with(script, "learning: {enabled: false}\n").await;
    let first = process.runtime.open(options("cli")).await.unwrap();
    say(&first, "I live in Lyon").await;
    say(&first, "and now?").await;
    let next = process.runtime.open(options("cli")).await.unwrap();
    say(&next, "hello").await;
    let requests = process.server.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests[..3] {
        assert_eq!(prompt(request), prompt(&requests[0]), "frozen");
    }
    assert!(!prompt(&requests[0]).contains("Lyon"));
    let told = prompt(&requests[3]);
    assert!(
        told.contains("What you know of the user (USER.md, 0% — 13/1375 chars)"),
        "{told}"
    );
    assert!(told.contains("Lives in Lyon"), "{told}");
}

#[tokio::test]
async fn people_do_not_see_each_others_notes_and_some_conversations_go_without() {
    let script = Script::new([
        note("Lives in Lyon"),
        Answer::text("noted"),
        Answer::text("ok"),
    ])
    .repeating_last();
    let process = Process::with(script, "learning: {enabled: false}\n").await;
    let anna = process.runtime.open(of_person("anna")).await.unwrap();
    say(&anna, "I live in Lyon").await;
    let mut ignoring = of_person("anna");
    ignoring.leaves_out.rules = true;
    for options in [
        of_person("anna"),
        of_person("ben"),
        options("cli"),
        ignoring,
    ] {
        let session = process.runtime.open(options).await.unwrap();
        say(&session, "hello").await;
    }
    let requests = process.server.requests();
    let knows: Vec<bool> = requests[2..]
        .iter()
        .map(|request| prompt(request).contains("Lyon"))
        .collect();
    assert_eq!(knows, [true, false, false, false]);
    let has_tool = |request: &Request| request.json["tools"].to_string().contains("\"memory\"");
    assert!(has_tool(&requests[2]) && !has_tool(&requests[5]));
}

/// Everything of a request that a provider's cache goes by, as bytes: the messages up to the last of the conversation.
fn bytes(request: &Request) -> String {
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    let messages = request.json["messages"].to_string();
    assert!(
        body.contains(&messages),
        "the messages stand in the body as serialised"
    );
    messages.trim_end_matches(']').to_owned()
}

#[tokio::test]
async fn a_review_asks_with_the_bytes_of_the_conversation_and_tells_what_it_learned() {
    let script = Script::new([
        Answer::text("hello"),
        note("Lives in Lyon"),
        Answer::text("done"),
        Answer::text("again"),
    ]);
    let process = Process::with(script, EAGER).await;
    let session = process.runtime.open(options("cli")).await.unwrap();
    say(&session, "I live in Lyon").await;
    let told = learned(&session).await;
    assert_eq!(
        told,
        "added: Lives in Lyon; undo with `hermes learning undo 1`"
    );
    let requests = process.server.requests();
    let (conversation, review) = (&requests[0], &requests[1]);
    assert!(bytes(review).starts_with(&bytes(conversation)));
    for key in ["tools", "model", "tool_choice", "stream"] {
        assert_eq!(review.json[key], conversation.json[key], "{key}");
    }
    assert!(bytes(&requests[2]).starts_with(&bytes(review)));
    let notes = process.folder.path().join("home/memories/USER.md");
    assert_eq!(fs::read_to_string(notes).unwrap(), "Lives in Lyon");
    // The conversation knows nothing of it.
    say(&session, "who am I?").await;
    let last = process.requests_with("who am I?");
    assert!(!String::from_utf8_lossy(&last[0].body).contains("look back"));
}

#[tokio::test]
async fn learning_is_off_with_one_key() {
    let settings = EAGER.replace("{rest: 0}", "{rest: 0, enabled: false}");
    let process = Process::with(Script::always(Answer::text("ok")), &settings).await;
    let session = process.runtime.open(options("cli")).await.unwrap();
    for _ in 0..3 {
        say(&session, "hello").await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(process.server.requests().len(), 3);
}

#[tokio::test]
async fn whoever_speaks_goes_first_and_nothing_that_is_due_is_lost() {
    let script = Script::new([
        Answer::text("hello"),
        silence(),
        Answer::text("at once"),
        silence(),
    ]);
    let process = Process::with(script, EAGER).await;
    let session = process.runtime.open(options("cli")).await.unwrap();
    say(&session, "I live in Lyon").await;
    while process.server.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    say(&session, "are you there?").await;
    let store = process.runtime.store().clone();
    process.runtime.stop().await;
    let far = process
        .runtime
        .clock()
        .now()
        .plus(Duration::from_secs(3600));
    assert_eq!(
        store.due_reviews(far).await.unwrap().len(),
        1,
        "it stays due"
    );
}

#[tokio::test]
async fn what_one_process_left_due_another_does_when_it_rests() {
    let script =
        Script::new([Answer::text("hello"), Answer::text("nothing to keep")]).repeating_last();
    let settings = EAGER.replace("rest: 0", "rest: 3600");
    let process = Process::with(script, &settings).await;
    let session = process.runtime.open(options("oneshot")).await.unwrap();
    let id = session.handle.id().clone();
    say(&session, "I live in Lyon").await;
    process.runtime.stop().await;
    let process = process.restarted(EAGER);
    let _other = process.runtime.open(options("cli")).await.unwrap();
    let waited = async {
        while process.requests_with("look back").is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, waited)
        .await
        .expect("it is looked through");
    let done = async {
        while process
            .runtime
            .store()
            .reviewed_messages(&id)
            .await
            .unwrap()
            == 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, done)
        .await
        .expect("it comes to its end");
    let request: Value = process.requests_with("look back")[0].json.clone();
    assert!(request["messages"].to_string().contains("I live in Lyon"));
}
