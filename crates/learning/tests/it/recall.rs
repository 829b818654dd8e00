//! Recall over a real store, with a scripted model for summaries and titles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermes_core::{
    Archive as _, Clock as _, Cost, Entry, FinishReason, LearningLedger as _, Message, ModelName,
    NewSession, Prefix, SessionId, Store as _, Timestamp, Tool, ToolContext, ToolError, TurnEnd,
    Usage,
};
use hermes_learning::asking::{Asking, Books};
use hermes_learning::recall::{Recall, tool};
use hermes_learning::titles::Titles;
use hermes_store::SqliteStore;
use hermes_testkit::contract::tool::{check, context};
use hermes_testkit::{AnsweringModel, ScriptedModel, Step, TestClock};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

struct Home {
    folder: TempDir,
    store: Arc<SqliteStore>,
}

impl Home {
    fn new() -> Self {
        let folder = tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("hermes.db"), folder.path().join("locks"));
        Self {
            store: Arc::new(store.unwrap()),
            folder,
        }
    }

    async fn told(&self, id: &str, source: &str, parent: Option<&str>, pairs: &[(&str, &str)]) {
        let session = NewSession {
            id: id.into(),
            created: at(0),
            source: source.into(),
            title: None,
            cwd: None,
            model: model(),
            parent: parent.map(Into::into),
            prefix: Prefix::default(),
        };
        self.store.create(session, Vec::new()).await.unwrap();
        for (number, (question, answer)) in pairs.iter().enumerate() {
            self.say(id, &format!("t{number}"), question, answer).await;
        }
    }

    async fn say(&self, id: &str, turn: &str, question: &str, answer: &str) {
        let entries = vec![
            Entry::TurnStarted {
                turn: turn.into(),
                message: Message::user(question),
            },
            Entry::Replied {
                turn: turn.into(),
                message: Message::assistant(answer),
                reason: FinishReason::Stop,
                usage: Usage::default(),
                cost: Cost::Included,
                model: model(),
            },
            Entry::TurnEnded {
                turn: turn.into(),
                end: TurnEnd::Finished,
                closing: None,
            },
        ];
        self.store.append(&id.into(), at(1), entries).await.unwrap();
    }

    fn tool(&self, asking: Option<Asking>) -> Arc<dyn Tool> {
        tool(Recall {
            archive: self.store.clone(),
            profiles: None,
            asking,
        })
    }

    async fn call(&self, session: &str, arguments: Value) -> Value {
        self.call_with(&self.tool(None), session, arguments).await
    }

    async fn call_with(&self, tool: &Arc<dyn Tool>, session: &str, arguments: Value) -> Value {
        let cx = ToolContext::alone(session, "c1", self.folder.path());
        let output = tool.run(arguments, &cx).await.unwrap();
        serde_json::from_str(&output.text).unwrap()
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_794_777_845_000 + seconds * 1000)
}

fn model() -> ModelName {
    ModelName {
        provider: "test".into(),
        model: "scripted".into(),
    }
}

fn asking(steps: impl IntoIterator<Item = Step>) -> (Asking, Arc<ScriptedModel>) {
    let model = Arc::new(ScriptedModel::new(steps));
    let asking = Asking {
        model: model.clone(),
        timeout: Duration::from_secs(5),
        books: None,
    };
    (asking, model)
}

fn sessions(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| result["session_id"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn the_tool_keeps_its_contract() {
    let home = Home::new();
    home.told("s1", "cli", None, &[("hello", "there")]).await;
    check(
        &home.tool(None),
        json!({"query": "hello"}),
        home.folder.path(),
    )
    .await;
}

#[tokio::test]
async fn conversations_are_found_with_what_stands_around() {
    let home = Home::new();
    let talk = [
        ("Who fixes the boiler?", "Ask the landlord."),
        ("The plumber is Anna Berg, 555-0134", "Noted."),
        ("And the roof?", "No idea."),
    ];
    home.told("s1", "cli", None, &talk).await;
    home.told("s2", "cli", None, &[("weather", "rain")]).await;
    home.told(
        "now",
        "cli",
        None,
        &[("who was the plumber", "let me look")],
    )
    .await;
    let found = home.call("now", json!({"query": "plumber"})).await;
    assert_eq!(found["mode"], "discover");
    assert_eq!(
        sessions(&found),
        ["s1"],
        "the conversation that asks is not searched"
    );
    let result = &found["results"][0];
    assert_eq!(result["matched_role"], "user");
    assert_eq!(
        result["snippet"],
        "The >>>plumber<<< is Anna Berg, 555-0134"
    );
    let place = result["match_message_id"].as_u64().unwrap();
    let around = result["messages"].as_array().unwrap();
    assert_eq!(around.len(), 6);
    let anchor = around.iter().find(|one| one["anchor"] == true).unwrap();
    assert_eq!(anchor["id"], place);

    let scrolled = json!({"session_id": "s1", "around_message_id": place, "window": 1});
    let scrolled = home.call("now", scrolled).await;
    assert_eq!(scrolled["mode"], "scroll");
    assert_eq!(scrolled["messages"].as_array().unwrap().len(), 3);
    let read = home.call("now", json!({"session_id": "s1"})).await;
    assert_eq!(read["mode"], "read");
    assert_eq!(read["messages"][0]["content"], "Who fixes the boiler?");
    let browsed = home.call("now", json!({})).await;
    assert_eq!(browsed["mode"], "browse");
    assert_eq!(browsed["count"], 2);
    assert!(!sessions(&browsed).contains(&"now"));
}

#[tokio::test]
async fn what_was_compacted_here_is_found_and_what_is_seen_is_not() {
    let home = Home::new();
    home.told("now", "cli", None, &[("the code is zebra", "yes")])
        .await;
    home.say("now", "t9", "the other code is giraffe", "yes")
        .await;
    let summary = Message {
        origin: Some(hermes_core::Origin::Summary),
        ..Message::user("codes were said")
    };
    let compacted = Entry::Compacted {
        summary: Some(summary),
        shortened: Vec::new(),
        kept: 2,
        prefix: None,
        used: None,
    };
    home.store
        .append(&"now".into(), at(2), vec![compacted])
        .await
        .unwrap();
    let found = home.call("now", json!({"query": "zebra"})).await;
    assert_eq!(sessions(&found), ["now"]);
    let found = home.call("now", json!({"query": "giraffe"})).await;
    assert_eq!(found["count"], 0);
}

#[tokio::test]
async fn subagents_are_hidden_and_branches_are_one_with_their_root() {
    let home = Home::new();
    home.told("root", "cli", None, &[("about badgers", "yes")])
        .await;
    home.told("branch", "cli", Some("root"), &[("more badgers", "yes")])
        .await;
    home.told("sub", "subagent", Some("root"), &[("badgers", "yes")])
        .await;
    let found = home
        .call("elsewhere", json!({"query": "badgers", "limit": 10}))
        .await;
    assert_eq!(found["count"], 1, "{found}");
    let found = home.call("branch", json!({"query": "badgers"})).await;
    assert_eq!(found["count"], 0, "a branch sees what its root said");
}

#[tokio::test]
async fn summaries_link_to_messages_and_fail_alone() {
    let home = Home::new();
    home.told(
        "s1",
        "cli",
        None,
        &[("the otter lives in the pond", "nice")],
    )
    .await;
    home.told("s2", "cli", None, &[("an otter swam", "where?")])
        .await;
    home.told("s3", "cli", None, &[("otter food is fish", "ok")])
        .await;
    // They are asked side by side, in any order.
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let model = AnsweringModel::new(None, move |request| {
        assert!(request.tools.is_empty(), "nothing is there to be called");
        count.fetch_add(1, Ordering::Relaxed);
        let words: String = request.messages.iter().map(Message::text).collect();
        if words.contains("in the pond") {
            Step::text("It lives in the pond [#1], or elsewhere [#4711].")
        } else if words.contains("swam") {
            Step::empty()
        } else {
            Step::call("c", "terminal", &json!({}))
        }
    });
    let asking = Asking {
        model: Arc::new(model),
        timeout: Duration::from_secs(5),
        books: None,
    };
    let tool = home.tool(Some(asking));
    let arguments = json!({"query": "otter", "summarize": true, "sort": "oldest"});
    let found = home.call_with(&tool, "now", arguments).await;
    let results = found["results"].as_array().unwrap();
    assert_eq!(
        results[0]["summary"],
        "It lives in the pond [#1], or elsewhere ."
    );
    assert_eq!(results[0]["summary_message_ids"], json!([1]));
    assert!(results[0].get("messages").is_none());
    for result in &results[1..] {
        assert!(result["summary_error"].is_string(), "{result}");
        assert!(!result["messages"].as_array().unwrap().is_empty());
    }
    assert_eq!(asked.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn odd_arguments_are_answered_in_words() {
    let home = Home::new();
    home.told("s1", "cli", None, &[("hello", "there")]).await;
    let cx = context(home.folder.path());
    for arguments in [
        json!({"around_message_id": 4711, "session_id": "s1"}),
        json!({"session_id": "nobody"}),
        json!({"query": "x", "role_filter": "king"}),
        json!({"query": "x", "profile": "other"}),
    ] {
        let refused = home.tool(None).run(arguments.clone(), &cx).await;
        assert!(matches!(refused, Err(ToolError::Answer(_))), "{arguments}");
    }
    let nothing = home.call("now", json!({"query": "\"((*"})).await;
    assert_eq!(nothing["count"], 0);
}

async fn title(home: &Home, step: Step) -> Option<String> {
    let (asking, _) = asking([step]);
    let books = Books {
        ledger: home.store.clone(),
        clock: Arc::new(TestClock::default()),
    };
    let titles = Titles {
        archive: home.store.clone(),
        asking: Asking {
            books: Some(books),
            ..asking
        },
        language: String::new(),
    };
    titles.name(&SessionId::from("s1")).await.unwrap()
}

#[tokio::test]
async fn a_conversation_gets_a_title_unless_somebody_gave_one() {
    let home = Home::new();
    home.told("s1", "cli", None, &[("plan a trip to Lisbon", "gladly")])
        .await;
    assert_eq!(title(&home, Step::empty()).await, None);
    assert_eq!(title(&home, Step::call("c", "t", &json!({}))).await, None);
    let named = title(&home, Step::text("\"Trip to Lisbon.\"\nHere you are")).await;
    assert_eq!(named.as_deref(), Some("Trip to Lisbon"));
    home.store.rename(&"s1".into(), "Mine").await.unwrap();
    assert_eq!(title(&home, Step::text("Another")).await, None);
    let record = home.store.record(&"s1".into()).await.unwrap();
    assert_eq!(record.title.as_deref(), Some("Mine"));
}

#[tokio::test]
async fn what_a_title_took_is_among_the_insights_and_in_the_days_budget() {
    let home = Home::new();
    home.told("s1", "cli", None, &[("plan a trip", "gladly")])
        .await;
    let named = title(&home, Step::text("A trip").counting(700)).await;
    assert!(named.is_some());
    let insights = home
        .store
        .insights(Timestamp::from_millis(0))
        .await
        .unwrap();
    let costs = insights.learning.costs;
    assert_eq!((costs[0].purpose.as_str(), costs[0].requests), ("title", 1));
    assert!(costs[0].tokens >= 700, "{costs:?}");
    let day = TestClock::default().now().date_text();
    let used = home.store.used_on(&day).await.unwrap();
    assert_eq!(used.tokens, costs[0].tokens);
}

#[tokio::test]
async fn a_title_that_is_taken_gets_a_number() {
    let home = Home::new();
    home.told("s1", "cli", None, &[("plan", "ok")]).await;
    home.told("s2", "cli", None, &[("plan", "ok")]).await;
    assert!(
        home.store
            .suggest_title(&"s1".into(), "The plan")
            .await
            .unwrap()
    );
    assert!(
        home.store
            .suggest_title(&"s2".into(), "The plan")
            .await
            .unwrap()
    );
    let record = home.store.record(&"s2".into()).await.unwrap();
    assert_eq!(record.title.as_deref(), Some("The plan #2"));
}
