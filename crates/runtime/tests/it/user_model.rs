//! The model of the user in the prompts of conversations, and hearings beside them.

use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::{
    Audience, Event, FollowFrom, Notice, RunningSession, SessionOptions, Sessions as _,
    UserModels as _,
};
use hermes_runtime::learned;
use hermes_testkit::server::{Answer, Request, Script};
use serde_json::json;

use crate::support::{Process, options, say};

const SOON: Duration = Duration::from_secs(20);

/// Settings with which every turn is heard at once, and nothing else asks the model.
const EAGER: &str = "memory: {nudge_interval: 0}\nskills: {creation_nudge_interval: 0}\n\
                     auxiliary: {title_generation: {enabled: false}}\nlearning: {rest: 0}\n\
                     user_model: {turns: 1}\n";

fn of_person(person: Option<&str>) -> SessionOptions {
    SessionOptions {
        person: person.map(str::to_owned),
        audience: Audience::Person,
        ..options("chat")
    }
}

fn lyon() -> Answer {
    let answer = json!({
        "premises": [{"text": "The user lives in Lyon", "kind": "identity", "message": 1, "quote": "I live in Lyon"}],
        "conclusions": [],
    });
    Answer::text(answer.to_string())
}

fn prompt(request: &Request) -> String {
    request.json["messages"][0]["content"].to_string()
}

async fn told(session: &RunningSession) -> String {
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
async fn what_a_person_says_is_in_the_prompt_of_their_next_conversation_only() {
    let script = Script::new([Answer::text("hello"), lyon(), Answer::text("ok")]).repeating_last();
    let process = Process::with(script, EAGER).await;
    let anna = process.runtime.open(of_person(Some("anna"))).await.unwrap();
    say(&anna, "Hello, I live in Lyon").await;
    assert_eq!(
        told(&anna).await,
        "about you: The user lives in Lyon; undo with `hermes learning undo 1`"
    );
    say(&anna, "and now?").await;
    for options in [
        of_person(Some("anna")),
        of_person(Some("ben")),
        of_person(None),
    ] {
        let session = process.runtime.open(options).await.unwrap();
        say(&session, "good day").await;
    }
    let mut ignoring = of_person(Some("anna"));
    ignoring.leaves_out.rules = true;
    let session = process.runtime.open(ignoring).await.unwrap();
    say(&session, "good day").await;
    let talked = |words: &str| process.requests_with(words);
    let first = &talked("Hello, I live in Lyon")[0];
    for request in talked("and now?") {
        if request.json["tools"].is_array() {
            assert_eq!(prompt(&request), prompt(first), "frozen");
        }
    }
    let mut days = talked("good day");
    days.retain(|request| !prompt(request).contains("You keep a model of one person"));
    let knows: Vec<bool> = days
        .iter()
        .map(|request| prompt(request).contains("The user lives in Lyon"))
        .collect();
    assert_eq!(knows, [true, false, false, false]);
    let has_tool = |request: &Request| request.json["tools"].to_string().contains("user_model");
    assert!(has_tool(&days[0]) && !has_tool(&days[3]));
}

#[tokio::test]
async fn a_change_is_taken_back_by_its_number() {
    let script = Script::new([Answer::text("hello"), lyon(), Answer::text("ok")]).repeating_last();
    let process = Process::with(script, EAGER).await;
    let session = process.runtime.open(of_person(None)).await.unwrap();
    say(&session, "I live in Lyon").await;
    told(&session).await;
    let runtime = &process.runtime;
    let id = "1".parse().unwrap();
    let undone = learned::undo(runtime.base(), runtime.store().clone(), id).await;
    assert_eq!(
        undone.unwrap(),
        "took back change 1: about you: The user lives in Lyon (change 2)"
    );
    let next = runtime.open(of_person(None)).await.unwrap();
    say(&next, "good day").await;
    let asked = process.requests_with("good day");
    assert!(!prompt(&asked[0]).contains("Lyon"));
}

#[tokio::test]
async fn without_consent_nothing_is_heard() {
    for (more, audience) in [
        (
            EAGER.replace("rest: 0", "rest: 0, enabled: false"),
            Audience::Person,
        ),
        (
            EAGER.replace(
                "nudge_interval: 0}",
                "nudge_interval: 0, write_approval: true}",
            ),
            Audience::Person,
        ),
        (
            EAGER.replace("nudge_interval: 0}", "nudge_interval: 0, provider: none}"),
            Audience::Person,
        ),
        (
            EAGER.replace("turns: 1", "turns: 1, enabled: false"),
            Audience::Person,
        ),
        // A script's words are nobody's.
        (EAGER.to_owned(), Audience::Nobody),
    ] {
        let process = Process::with(Script::always(Answer::text("ok")), &more).await;
        let options = SessionOptions {
            audience,
            ..options("cli")
        };
        let session = process.runtime.open(options).await.unwrap();
        for _ in 0..2 {
            say(&session, "I live in Lyon").await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(process.server.requests().len(), 2, "{more}");
    }
}

#[tokio::test]
async fn what_one_conversation_left_unheard_a_later_one_takes_in() {
    let script = Script::new([Answer::text("hello"), lyon()]).repeating_last();
    let patient = EAGER.replace("turns: 1", "turns: 0, rest: 3600");
    let process = Process::with(script, &patient).await;
    let session = process.runtime.open(of_person(None)).await.unwrap();
    say(&session, "I live in Lyon").await;
    let due = async |process: &Process| {
        let now = process.runtime.clock().now();
        let due = process.runtime.store().due_hearings(None, now).await;
        due.unwrap().len()
    };
    while due(&process).await == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    process.runtime.stop().await;
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let process = process
        .restarted(&EAGER.replace("turns: 1", "turns: 0, rest: 1"))
        .await;
    let _other = process.runtime.open(of_person(None)).await.unwrap();
    let heard = async {
        while process
            .runtime
            .store()
            .user_model(None)
            .await
            .unwrap()
            .is_none()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, heard)
        .await
        .expect("it is heard");
    assert_eq!(due(&process).await, 0);
}

#[tokio::test]
async fn whoever_speaks_goes_first() {
    let script = Script::new([
        Answer::text("hello"),
        Answer::text("hm").stall_after(0),
        Answer::text("at once"),
        lyon(),
    ])
    .repeating_last();
    let process = Process::with(script, EAGER).await;
    let session = process.runtime.open(of_person(None)).await.unwrap();
    say(&session, "I live in Lyon").await;
    while process.server.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    say(&session, "are you there?").await;
    assert!(told(&session).await.contains("The user lives in Lyon"));
}

/// Says enough for a compaction, and returns the prompt it was said with.
async fn talk(process: &Process, session: &RunningSession) -> String {
    for _ in 0..3 {
        say(session, &"and a long sentence about the sea ".repeat(40)).await;
    }
    let mut requests = process.requests_with("about the sea");
    requests.retain(|request| request.json["tools"].is_array());
    prompt(requests.last().unwrap())
}

#[tokio::test]
async fn a_compaction_takes_up_what_became_known_and_keeps_it() {
    // A summary of one word is none: one is made without a model.
    let script = Script::new([Answer::text("hello"), lyon(), Answer::text("yes")]).repeating_last();
    let process = Process::with(script, EAGER).await;
    let anna = || of_person(Some("anna"));
    let session = process.runtime.open(anna()).await.unwrap();
    let id = session.handle.id().clone();
    say(&session, "Hello, I live in Lyon").await;
    told(&session).await;
    let knows = |prompt: &str| prompt.contains("The user lives in Lyon");
    assert!(!knows(&talk(&process, &session).await), "frozen");
    crate::learning::compact(&session).await;
    assert!(knows(&talk(&process, &session).await));

    let process = process.restarted(EAGER).await;
    let session = process.runtime.resume(id, anna()).await.unwrap();
    crate::learning::compact(&session).await;
    assert!(knows(&talk(&process, &session).await), "over a restart");
}
