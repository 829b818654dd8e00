//! The model of the user with a scripted model and the real store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    Archive as _, Author, CallMessage, CallSender, CancellationToken, Clock as _, Cost, DueHearing,
    Entry, FinishReason, Heard, LearningLedger as _, LearningLog as _, LearningUse, Message,
    Model as _, ModelErrorKind, NewSession, Origin, Prefix, Representation, SessionId, Store as _,
    Timestamp, ToolContext, ToolOutput, TurnEnd, Usage, UserModel as _, UserModels as _,
    call_channel,
};
use hermes_learning::asking::{Asking, Books};
use hermes_learning::user_model::{LocalUserModel, UserModelError, UserModelSettings, facts};
use hermes_store::SqliteStore;
use hermes_testkit::{ScriptedModel, Step, TestClock};
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

const SESSION: &str = "s1";

const BUDGET: LearningUse = LearningUse {
    tokens: 1_000_000,
    micro_usd: 1_000_000,
};

pub(super) struct World {
    _folder: TempDir,
    pub(super) store: Arc<SqliteStore>,
    pub(super) clock: Arc<TestClock>,
    model: Arc<ScriptedModel>,
}

fn open(folder: &Path) -> Arc<SqliteStore> {
    let store = SqliteStore::open(folder.join("hermes.db"), folder.join("locks"));
    Arc::new(store.unwrap())
}

impl World {
    pub(super) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let folder = tempdir().unwrap();
        Self {
            store: open(folder.path()),
            clock: Arc::default(),
            model: Arc::new(ScriptedModel::new(steps)),
            _folder: folder,
        }
    }

    /// A conversation that is to be heard: what was said in it, by whom.
    pub(super) async fn said(&self, session: &str, person: Option<&str>, messages: &[Message]) {
        let row = NewSession {
            id: session.into(),
            created: self.clock.now(),
            source: "cli".into(),
            title: None,
            cwd: None,
            model: self.model.name(),
            parent: None,
            prefix: Prefix::default(),
        };
        let entries = messages
            .iter()
            .enumerate()
            .flat_map(|(number, message)| self.turn(&format!("t{number}"), message));
        self.store.create(row, entries.collect()).await.unwrap();
        self.set_due(session, person).await;
    }

    fn turn(&self, turn: &str, message: &Message) -> Vec<Entry> {
        vec![
            Entry::TurnStarted {
                turn: turn.into(),
                message: message.clone(),
            },
            Entry::Replied {
                turn: turn.into(),
                message: Message::assistant("The page says: the user adores spinach."),
                reason: FinishReason::Stop,
                usage: Usage::default(),
                cost: Cost::Included,
                model: self.model.name(),
            },
            Entry::TurnEnded {
                turn: turn.into(),
                end: TurnEnd::Finished,
                closing: None,
            },
        ]
    }

    async fn set_due(&self, session: &str, person: Option<&str>) {
        let due = DueHearing {
            session: session.into(),
            person: person.map(str::to_owned),
            at: self.clock.now(),
        };
        self.store.set_hearing_due(due).await.unwrap();
    }

    fn of(&self, person: Option<&str>) -> LocalUserModel {
        let store = self.store.clone();
        LocalUserModel {
            store: store.clone(),
            archive: store.clone(),
            models: store.clone(),
            log: store.clone(),
            ledger: store,
            clock: self.clock.clone(),
            asking: Some(Asking {
                model: self.model.clone(),
                timeout: Duration::from_secs(30),
                books: Some(Books {
                    ledger: self.store.clone(),
                    clock: self.clock.clone(),
                }),
            }),
            settings: UserModelSettings {
                person: person.map(str::to_owned),
                prompt_chars_max: 900,
                budget: BUDGET,
            },
        }
    }

    async fn hear(&self, session: &str) -> Heard {
        let stop = CancellationToken::new();
        let known = self.of(None);
        known.hear(&session.into(), &stop).await.unwrap()
    }

    async fn known(&self) -> Representation {
        self.of(None).known().await.unwrap()
    }
}

fn texts(model: &Representation) -> Vec<&str> {
    let premises = facts::premises(model).map(|fact| fact.text.as_str());
    premises
        .chain(facts::conclusions(model).map(|fact| fact.text.as_str()))
        .collect()
}

fn premise(text: &str, message: usize, quote: &str, replaces: &[&str]) -> Value {
    json!({"text": text, "kind": "identity", "message": message, "quote": quote, "confidence": 90,
           "replaces": replaces})
}

fn derived(premises: &[Value], conclusions: &[Value]) -> Step {
    Step::text(&json!({"premises": premises, "conclusions": conclusions}).to_string())
}

fn lyon() -> Step {
    derived(
        &[premise("The user lives in Lyon", 1, "I live in Lyon", &[])],
        &[json!({"text": "The user is near the Alps", "premises": ["n1"], "confidence": 70})],
    )
}

#[tokio::test]
async fn what_a_person_says_is_kept_with_its_words_and_can_be_taken_back() {
    let world = World::new([lyon()]);
    world
        .said(SESSION, None, &[Message::user("Hello, I live in Lyon")])
        .await;
    let Heard::Done {
        learned: Some((id, what)),
    } = world.hear(SESSION).await
    else {
        panic!("nothing was learned");
    };
    assert_eq!(
        what,
        "about you: The user lives in Lyon; The user is near the Alps"
    );
    let known = world.known().await;
    let evidence = &known.premises[0].evidence[0];
    assert_eq!(evidence.session, Some(SESSION.into()));
    assert_eq!(evidence.quote, "I live in Lyon");
    let place = evidence.message.unwrap();
    assert_eq!(known.conclusions[0].premises, [known.premises[0].id]);
    use hermes_core::Archive as _;
    let source = world.store.message_at(place).await.unwrap().unwrap();
    assert_eq!(source.message.text(), "Hello, I live in Lyon");
    let logged = world.store.change(id).await.unwrap().unwrap();
    assert_eq!(logged.change.author, Author::Review);
    assert_eq!(logged.change.session, Some(SESSION.into()));
    assert!(logged.is_finished);
    // The model saw the person's words and nobody else's.
    let asked = world.model.requests()[0].messages[0].text();
    assert!(asked.contains("I live in Lyon") && !asked.contains("spinach"));
    assert_eq!(world.hear(SESSION).await, Heard::NotDue);
    world.of(None).undo(id).await.unwrap();
    assert!(texts(&world.known().await).is_empty());
    let again = world.of(None).undo(id).await;
    assert!(matches!(again, Err(UserModelError::UndoneAlready(..))));
}

#[tokio::test]
async fn a_newer_word_replaces_an_older_one_and_both_are_kept() {
    let world = World::new([
        lyon(),
        derived(
            &[premise(
                "The user lives in Oslo",
                1,
                "moved to Oslo",
                &["p1"],
            )],
            &[],
        ),
    ]);
    world
        .said(SESSION, None, &[Message::user("I live in Lyon")])
        .await;
    world.hear(SESSION).await;
    world.clock.advance(Duration::from_secs(3600));
    world
        .said("s2", None, &[Message::user("I moved to Oslo last week")])
        .await;
    let Heard::Done {
        learned: Some((id, _)),
    } = world.hear("s2").await
    else {
        panic!("nothing was learned");
    };
    let known = world.known().await;
    assert_eq!(texts(&known), ["The user lives in Oslo"]);
    assert_eq!(known.premises.len(), 2);
    let block = world.of(None).block().await.text.unwrap();
    assert!(block.contains("Oslo") && !block.contains("Lyon"), "{block}");
    // Taking the newer one back makes the older one count again.
    world.of(None).undo(id).await.unwrap();
    assert_eq!(
        texts(&world.known().await),
        ["The user lives in Lyon", "The user is near the Alps"]
    );
}

#[tokio::test]
async fn nonsense_nothing_and_tool_calls_change_nothing_and_are_given_up() {
    for step in [
        Step::text("I would rather not."),
        Step::empty(),
        Step::call("c1", "memory", &json!({"action": "add", "content": "x"})),
        Step::error(ModelErrorKind::Overloaded),
        Step::text("{\"premises\": [1, 2]}"),
    ] {
        let world = World::new(vec![step; 3]);
        world
            .said(SESSION, None, &[Message::user("I live in Lyon")])
            .await;
        for _ in 0..3 {
            assert!(matches!(world.hear(SESSION).await, Heard::Failed(_)));
            assert_eq!(world.hear(SESSION).await, Heard::NotDue, "not at once");
            world.clock.advance(Duration::from_secs(3600));
        }
        assert!(matches!(world.hear(SESSION).await, Heard::GivenUp(_)));
        assert_eq!(world.hear(SESSION).await, Heard::NotDue);
        assert_eq!(world.known().await, Representation::default());
        assert!(
            world
                .store
                .changes(Default::default())
                .await
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn words_of_strangers_write_nothing() {
    let notice = Message {
        origin: Some(Origin::Notice),
        ..Message::user("I love spam and I live in Bonn")
    };
    let other = Message {
        origin: Some(Origin::Person {
            surface: None,
            inbox: Vec::new(),
            id: Some("eve".into()),
            request: None,
            mirrored: None,
        }),
        ..Message::user("I love spam and I live in Bonn")
    };
    let pasted = Message::user("What does this mean?\n> I love spam and I live in Bonn");
    let fenced = Message::user("Explain:\n```\nI love spam and I live in Bonn\n```");
    for stranger in [notice, other, pasted, fenced] {
        let answer = derived(
            &[
                premise("The user lives in Bonn", 1, "I live in Bonn", &[]),
                premise("The user lives in Bonn", 2, "I live in Bonn", &[]),
                premise("The user adores spinach", 1, "adores spinach", &[]),
            ],
            &[json!({"text": "The user is German", "premises": ["n1"]})],
        );
        let world = World::new([answer]);
        let messages = [Message::user("Read this for me please"), stranger.clone()];
        world.said(SESSION, None, &messages).await;
        assert_eq!(
            world.hear(SESSION).await,
            Heard::Done { learned: None },
            "{stranger:?}"
        );
        assert_eq!(world.known().await, Representation::default());
        let asked = world.model.requests()[0].messages[0].text();
        assert!(!asked.contains("spam"), "{asked}");
    }
}

#[tokio::test]
async fn each_person_has_a_model_of_their_own() {
    let world = World::new([lyon()]);
    let by_anna = Message {
        origin: Some(Origin::Person {
            surface: None,
            inbox: Vec::new(),
            id: Some("anna".into()),
            request: None,
            mirrored: None,
        }),
        ..Message::user("I live in Lyon")
    };
    world.said(SESSION, Some("anna"), &[by_anna]).await;
    let stop = CancellationToken::new();
    let anna = world.of(Some("anna"));
    let heard = anna.hear(&SESSION.into(), &stop).await.unwrap();
    let Heard::Done {
        learned: Some((id, _)),
    } = heard
    else {
        panic!("{heard:?}");
    };
    assert!(anna.block().await.text.unwrap().contains("Lyon"));
    for other in [None, Some("ben")] {
        let other = world.of(other);
        assert_eq!(other.block().await.text, None);
        let answer = other.ask("Where do they live?").await.unwrap();
        assert!(!answer.is_known);
        let undone = other.undo(id).await;
        assert_eq!(undone, Err(UserModelError::NoChange(id)));
    }
    assert_eq!(world.model.requests().len(), 1, "nobody else was asked");
}

#[tokio::test]
async fn a_days_budget_holds() {
    let world = World::new([lyon()]);
    world
        .said(SESSION, None, &[Message::user("I live in Lyon")])
        .await;
    let mut poor = world.of(None);
    poor.settings.budget.tokens = 1_000;
    let stop = CancellationToken::new();
    let heard = poor.hear(&SESSION.into(), &stop).await.unwrap();
    assert_eq!(heard, Heard::OutOfBudget);
    assert!(world.model.requests().is_empty());
    let day = world.clock.now().date_text();
    assert_eq!(world.store.used_on(&day).await.unwrap().tokens, 0);
    assert!(matches!(
        world.hear(SESSION).await,
        Heard::Done { learned: Some(_) }
    ));
}

#[tokio::test]
async fn whoever_speaks_stops_a_hearing_which_stays_due() {
    let world = World::new([Step::silence(), lyon()]);
    world
        .said(SESSION, None, &[Message::user("I live in Lyon")])
        .await;
    let stop = CancellationToken::new();
    let (known, session) = (world.of(None), SessionId::from(SESSION));
    let hearing = known.hear(&session, &stop);
    let speaking = async {
        while world.model.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.cancel();
    };
    let (heard, ()) = tokio::join!(hearing, speaking);
    assert_eq!(heard.unwrap(), Heard::PutOff);
    assert!(matches!(
        world.hear(SESSION).await,
        Heard::Done { learned: Some(_) }
    ));
}

#[tokio::test]
async fn much_is_heard_in_parts_and_nothing_twice() {
    let nothing = || derived(&[], &[]);
    let world = World::new([nothing(), nothing(), nothing()]);
    let long = |number: usize| Message::user(format!("{number} {}", "word ".repeat(700)));
    let messages: Vec<Message> = (0..10).map(long).collect();
    world.said(SESSION, None, &messages).await;
    let mut times = 0;
    while world.hear(SESSION).await == (Heard::Done { learned: None }) {
        times += 1;
    }
    assert_eq!(times, 3);
    let asked: Vec<String> = world
        .model
        .requests()
        .iter()
        .map(|request| request.messages[0].text())
        .collect();
    for number in 0..10 {
        let words = format!("\"{number} word");
        let count = asked.iter().filter(|asked| asked.contains(&words)).count();
        assert_eq!(count, 1, "message {number}");
    }
}

#[tokio::test]
async fn two_processes_that_change_a_model_lose_nothing() {
    let world = World::new([]);
    let other = open(world._folder.path());
    let (one, mut two) = (world.of(None), world.of(None));
    two.models = other.clone();
    two.log = other;
    let adding = async |model: &LocalUserModel, name: &str| {
        for number in 0..10 {
            let text = format!("Fact {number} of {name}");
            let by = hermes_learning::user_model::Provenance::person();
            let made = model.change(&by, |known| {
                let text = format!("{}\n{text}", hermes_learning::user_model::edit::text(known));
                hermes_learning::user_model::edit::edited(known, &text, world.clock.now())
            });
            made.await.unwrap().unwrap();
        }
    };
    tokio::join!(adding(&one, "one"), adding(&two, "two"));
    assert_eq!(facts::premises(&world.known().await).count(), 20);
    let changes = world.store.changes(Default::default()).await.unwrap();
    assert_eq!(changes.len(), 20);
}

#[tokio::test]
async fn questions_are_answered_from_facts_or_not_at_all() {
    let world = World::new([
        lyon(),
        Step::text("They live in Lyon [p1], near the Alps [c2][c99]."),
        Step::text("They probably like wine."),
        Step::text("not known"),
        Step::error(ModelErrorKind::Overloaded),
    ]);
    let known = world.of(None);
    let unknown = known.ask("Where do they live?").await.unwrap();
    assert_eq!(
        (unknown.text.as_str(), unknown.is_known),
        ("not known", false)
    );
    world
        .said(SESSION, None, &[Message::user("I live in Lyon")])
        .await;
    world.hear(SESSION).await;
    let answer = called(&known, "Where do they live?").await;
    assert!(
        answer.starts_with("They live in Lyon [p1], near the Alps [c2][c99].\n[p1] The user lives in Lyon (90 %; said on "),
        "{answer}"
    );
    assert!(answer.contains("“I live in Lyon”"), "{answer}");
    assert!(answer.ends_with("[c2] The user is near the Alps (70 %; concluded from p1)"));
    for _ in 0..2 {
        let answer = known.ask("Do they like wine?").await.unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.is_known),
            ("not known", false)
        );
    }
    let found = called(&known, "Is it Lyon where they are?").await;
    assert!(found.starts_with("no model could be asked"), "{found}");
    assert!(found.contains("[p1] The user lives in Lyon"), "{found}");
}

#[tokio::test]
async fn what_an_answer_took_is_told_to_its_turn_and_is_among_the_insights() {
    let world = World::new([
        lyon().counting(300),
        Step::text("They live in Lyon [p1].").counting(700),
    ]);
    world
        .said(SESSION, None, &[Message::user("I live in Lyon")])
        .await;
    world.hear(SESSION).await;
    let (sender, mut told) = call_channel();
    called_telling(&world.of(None), "Where do they live?", &sender).await;
    drop(sender);
    let Some(CallMessage::Spent(spent)) = told.recv().await else {
        panic!("the turn is told what its call took");
    };
    assert_eq!(spent.usage.input, 700);
    let insights = world.store.insights(Timestamp::from_millis(0)).await;
    let costs = insights.unwrap().learning.costs;
    let of = |purpose: &str| costs.iter().find(|cost| cost.purpose == purpose).unwrap();
    assert_eq!(of("user_question").requests, 1);
    assert!(of("user_question").tokens >= 700, "{costs:?}");
    assert_eq!(of("user_model").requests, 1, "a hearing is booked once");
}

async fn called(known: &LocalUserModel, question: &str) -> String {
    called_telling(known, question, &call_channel().0).await
}

async fn called_telling(known: &LocalUserModel, question: &str, told: &CallSender) -> String {
    let tool = known.tools().remove(0);
    let cwd = std::env::temp_dir();
    let session = SessionId::from(SESSION);
    let plan = tool.prepare(
        &json!({"question": question}),
        hermes_core::PlanContext {
            session: &session,
            cwd: &cwd,
        },
    );
    let cx = ToolContext::alone(session, "c1", &cwd).telling(told);
    let ToolOutput { text, .. } = plan.action.run(&cx).await.unwrap();
    text
}

#[tokio::test]
async fn what_is_forgotten_goes_with_what_follows_from_it_and_comes_back_by_an_undo() {
    let world = World::new([lyon()]);
    world
        .said(SESSION, None, &[Message::user("I live in Lyon")])
        .await;
    world.hear(SESSION).await;
    let known = world.of(None);
    let p1 = "p1".parse().unwrap();
    let (id, what) = known.forget(&[p1]).await.unwrap().unwrap();
    assert_eq!(what, "forgot p1, c2");
    assert!(texts(&world.known().await).is_empty());
    assert_eq!(known.forget(&[p1]).await, Err(UserModelError::NoFact(p1)));
    known.undo(id).await.unwrap();
    assert_eq!(texts(&world.known().await).len(), 2);
    known
        .reword(p1, "The user lives in Lyon, in the old town")
        .await
        .unwrap();
    known.forget_all().await.unwrap().unwrap();
    assert_eq!(known.forget_all().await, Ok(None));
    // It is not heard again: those words were heard.
    world.set_due(SESSION, None).await;
    assert_eq!(world.hear(SESSION).await, Heard::Done { learned: None });
}
