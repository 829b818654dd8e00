//! Reviews with a scripted model, the real store and real notes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    Arguments, Author, CancellationToken, ChangeFilter, Clock as _, Cost, DueHearing, DueReview,
    Entry, FinishReason, LearningLedger as _, LearningLog as _, LearningUse, Message, Model as _,
    ModelName, NewSession, Part, Prefix, ResultStatus, Reviews as _, SessionId, Store as _, Tool,
    ToolCall, ToolResult, ToolSpec, TurnEnd, Usage, UserModels as _,
};
use hermes_learning::asking::Asking;
use hermes_learning::notes::{NoteFile, Notes, NotesSettings, Provenance, staging_tool};
use hermes_learning::review::{
    Learned, ReviewModel, ReviewSettings, Reviewed, Reviewer, STEPS_MAX,
};
use hermes_learning::skills;
use hermes_learning::skills::tools::{SkillPorts, Standing};
use hermes_learning::user_model::{LocalUserModel, UserModelSettings};
use hermes_store::SqliteStore;
use hermes_testkit::{ScriptedModel, Step, TestClock};
use serde_json::json;
use tempfile::{TempDir, tempdir};

use crate::killed::skills_of;

const SESSION: &str = "s1";

const BUDGET: LearningUse = LearningUse {
    tokens: 1_000_000,
    micro_usd: 1_000_000,
};

pub(super) struct World {
    pub(super) folder: TempDir,
    pub(super) store: Arc<SqliteStore>,
    pub(super) clock: Arc<TestClock>,
    pub(super) model: Arc<ScriptedModel>,
    write_approval: bool,
    budget: LearningUse,
    is_other: bool,
}

/// A turn: what the person says, what a tool returns on the way, what the agent answers.
pub(super) struct Told<'a> {
    pub(super) said: &'a str,
    pub(super) result: Option<&'a str>,
    pub(super) answer: &'a str,
}

impl World {
    /// A conversation that is due for a review, whose model then does these things.
    pub(super) async fn new(turns: &[Told<'_>], steps: impl IntoIterator<Item = Step>) -> Self {
        let folder = tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("hermes.db"), folder.path().join("locks"));
        let world = Self {
            store: Arc::new(store.unwrap()),
            clock: Arc::default(),
            model: Arc::new(ScriptedModel::new(steps)),
            write_approval: false,
            budget: BUDGET,
            is_other: false,
            folder,
        };
        world.tell(turns).await;
        world.set_due().await;
        world
    }

    async fn tell(&self, turns: &[Told<'_>]) {
        let session = NewSession {
            id: SESSION.into(),
            created: self.clock.now(),
            source: "cli".into(),
            title: None,
            cwd: None,
            model: self.model.name(),
            parent: None,
            prefix: prefix(),
        };
        let entries = turns
            .iter()
            .enumerate()
            .flat_map(|(at, told)| entries(&format!("t{at}"), told, &self.model.name()));
        self.store.create(session, entries.collect()).await.unwrap();
    }

    pub(super) async fn set_due(&self) {
        let due = DueReview {
            session: SESSION.into(),
            person: None,
            at: self.clock.now(),
            notes: true,
            skills: false,
        };
        self.store.set_review_due(due).await.unwrap();
        let hearing = DueHearing {
            session: SESSION.into(),
            person: None,
            at: self.clock.now(),
        };
        self.store.set_hearing_due(hearing).await.unwrap();
    }

    fn notes(&self) -> Notes {
        let settings = NotesSettings {
            folder: self.memories(),
            person: None,
            memory_chars_max: Some(2200),
            user_chars_max: Some(1375),
            write_approval: self.write_approval,
        };
        Notes::new(settings, self.store.clone(), self.clock.clone())
    }

    fn memories(&self) -> PathBuf {
        self.folder.path().join("memories")
    }

    fn reviewer(&self) -> Reviewer {
        let model = self.model.clone();
        Reviewer {
            store: self.store.clone(),
            reviews: self.store.clone(),
            ledger: self.store.clone(),
            log: self.store.clone(),
            clock: self.clock.clone(),
            model: if self.is_other {
                ReviewModel::Other(model)
            } else {
                ReviewModel::Main(model)
            },
            tools: self.tools(),
            notes: Some(self.notes()),
            settings: ReviewSettings {
                budget: self.budget,
                answer_timeout: Duration::from_secs(60),
                person: None,
                cwd: self.folder.path().to_owned(),
            },
        }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let ports = SkillPorts {
            skills: skills_of(self.folder.path(), self.store.clone()),
            author: Author::Review,
            reach: Arc::new(|_: &str| Standing::Missing),
        };
        let mut tools = vec![staging_tool(self.notes())];
        tools.extend(skills::tools::tools(&ports));
        tools
    }

    pub(super) async fn review(&self) -> Reviewed {
        let stop = CancellationToken::new();
        self.reviewer()
            .review(&SESSION.into(), &stop)
            .await
            .unwrap()
    }

    /// The model of the user, who is to be heard.
    pub(super) fn user_model(&self) -> LocalUserModel {
        LocalUserModel {
            store: self.store.clone(),
            archive: self.store.clone(),
            models: self.store.clone(),
            log: self.store.clone(),
            ledger: self.store.clone(),
            clock: self.clock.clone(),
            asking: Some(Asking {
                model: self.model.clone(),
                timeout: Duration::from_secs(30),
            }),
            settings: UserModelSettings {
                person: None,
                prompt_chars_max: 900,
                budget: BUDGET,
            },
        }
    }

    async fn is_due(&self) -> bool {
        let far = self.clock.now().plus(Duration::from_secs(3600));
        !self.store.due_reviews(far).await.unwrap().is_empty()
    }

    /// All files of notes, joined.
    pub(super) fn kept(&self) -> String {
        let files = NoteFile::ALL.map(|file| self.memories().join(file.file_name()));
        files
            .map(|file| fs::read_to_string(file).unwrap_or_default())
            .join("\n")
    }
}

fn prefix() -> Prefix {
    Prefix {
        system: "You are Hermes. 你好".into(),
        tools: ["memory", "terminal"]
            .map(|name| ToolSpec {
                name: name.into(),
                description: "d".into(),
                parameters: json!({"type": "object", "properties": {}}),
            })
            .into(),
    }
}

fn entries(turn: &str, told: &Told<'_>, model: &ModelName) -> Vec<Entry> {
    let replied = |message: Message| Entry::Replied {
        turn: turn.into(),
        message,
        reason: FinishReason::Stop,
        usage: Usage::default(),
        cost: Cost::Included,
        model: model.clone(),
    };
    let mut entries = vec![Entry::TurnStarted {
        turn: turn.into(),
        message: Message::user(told.said),
    }];
    if let Some(result) = told.result {
        let call = ToolCall {
            id: "c1".into(),
            name: "web_extract".into(),
            arguments: Arguments::Json(json!({"url": "the page"})),
            signatures: Vec::new(),
        };
        entries.push(replied(Message {
            parts: vec![Part::ToolCall(call.clone())],
            ..Message::assistant("")
        }));
        entries.push(Entry::CallIntended {
            turn: turn.into(),
            call: "c1".into(),
            tool: "web_extract".into(),
            effect: hermes_core::Effect::Read,
            arguments: json!({}),
        });
        entries.push(Entry::CallFinished {
            turn: turn.into(),
            result: ToolResult::new(&call, ResultStatus::Ok, result),
        });
    }
    entries.push(replied(Message::assistant(told.answer)));
    entries.push(Entry::TurnEnded {
        turn: turn.into(),
        end: TurnEnd::Finished,
        closing: None,
    });
    entries
}

const TALK: &[Told<'_>] = &[Told {
    said: "I live in Lyon and prefer tea. Which deploy host do we use?",
    result: Some("hosts: alpha beta gamma"),
    answer: "You use alpha.",
}];

pub(super) fn add(target: &str, content: &str) -> Step {
    Step::call(
        "m1",
        "memory",
        &json!({"action": "add", "target": target, "content": content}),
    )
}

pub(super) fn done() -> Step {
    Step::text("nothing to keep")
}

#[tokio::test]
async fn it_keeps_what_the_person_said_and_tells_how_to_take_it_back() {
    let world = World::new(TALK, [add("user", "Lives in Lyon; prefers tea"), done()]).await;
    let reviewed = world.review().await;
    let told = reviewed.told().unwrap();
    assert_eq!(
        told,
        "added: Lives in Lyon; prefers tea; undo with `hermes learning undo 1`"
    );
    let Reviewed::Done(Learned { changes, .. }) = reviewed else {
        panic!("{reviewed:?}");
    };
    assert_eq!(changes[0].change.author, Author::Review);
    assert_eq!(changes[0].change.session, Some(SESSION.into()));
    assert!(world.kept().contains("Lyon"));
    assert!(!world.is_due().await);
    let messages = world
        .store
        .load(&SESSION.into())
        .await
        .unwrap()
        .record
        .messages;
    assert_eq!(
        world.store.reviewed_messages(&SESSION.into()).await,
        Ok(messages)
    );
    world
        .notes()
        .undo(changes[0].id, &Provenance::person())
        .await
        .unwrap();
    assert!(!world.kept().contains("Lyon"));
}

#[tokio::test]
async fn its_requests_begin_with_the_bytes_of_the_conversation() {
    let world = World::new(TALK, [add("user", "Lives in Lyon"), done()]).await;
    let before = world.store.load(&SESSION.into()).await.unwrap();
    world.review().await;
    let bytes = |messages: &[Message]| serde_json::to_string(messages).unwrap();
    let requests = world.model.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request.prefix, before.prefix);
        let (conversation, review) = request.messages.split_at(before.messages.len());
        assert_eq!(bytes(conversation), bytes(&before.messages));
        assert!(review[0].text().contains("does not see it"));
    }
    let after = world.store.load(&SESSION.into()).await.unwrap();
    assert_eq!(after, before, "the conversation has nothing of it");
}

#[tokio::test]
async fn other_tools_are_refused_and_steps_are_bounded() {
    let run = || Step::call("x", "terminal", &json!({"command": "rm x"}));
    let world = World::new(TALK, (0..STEPS_MAX + 5).map(|_| run())).await;
    assert_eq!(world.review().await, Reviewed::Done(Learned::default()));
    let requests = world.model.requests();
    assert_eq!(requests.len(), STEPS_MAX);
    let last = requests.last().unwrap().messages.last().unwrap().clone();
    let Some(Part::ToolResult(result)) = last.parts.first() else {
        panic!("{last:?}");
    };
    assert_eq!(result.status, ResultStatus::Failed);
    assert!(
        result.text.contains("a review uses only memory"),
        "{}",
        result.text
    );
    assert!(!world.is_due().await);
}

#[tokio::test]
async fn the_budget_of_a_day_cannot_be_exceeded() {
    for tokens in [0, 1_000, 35_000, 70_000, 100_000] {
        let run = || Step::call("x", "terminal", &json!({}));
        let mut world = World::new(TALK, (0..99).map(|_| run())).await;
        world.budget = LearningUse { tokens, ..BUDGET };
        let day = world.clock.now().date_text();
        for _ in 0..5 {
            let reviewed = world.review().await;
            let used = world.store.used_on(&day).await.unwrap();
            assert!(used.tokens <= tokens, "{used:?} of {tokens}: {reviewed:?}");
            world.set_due().await;
        }
        if tokens < 30_000 {
            assert!(world.model.requests().is_empty(), "not even one fits");
            assert!(world.is_due().await, "it is due on another day");
            world.clock.advance(Duration::from_secs(24 * 3600));
            assert_eq!(
                world.review().await,
                Reviewed::OutOfBudget(Learned::default())
            );
        }
    }
}

#[tokio::test]
async fn money_is_bounded_too() {
    let run = || Step::call("x", "terminal", &json!({}));
    let mut world = World::new(TALK, (0..99).map(|_| run())).await;
    // Each answer of the script costs 1,000.
    world.budget = LearningUse {
        micro_usd: 3_000,
        ..BUDGET
    };
    assert_eq!(
        world.review().await,
        Reviewed::OutOfBudget(Learned::default())
    );
    let day = world.clock.now().date_text();
    assert_eq!(world.store.used_on(&day).await.unwrap().micro_usd, 3_000);
    assert_eq!(world.model.requests().len(), 3);
}

#[tokio::test]
async fn whoever_speaks_stops_it_and_it_stays_due() {
    let world = World::new(TALK, [add("user", "Lives in Lyon"), Step::silence()]).await;
    let stop = CancellationToken::new();
    let reviewer = world.reviewer();
    let session = SessionId::from(SESSION);
    let (reviewed, ()) = tokio::join!(reviewer.review(&session, &stop), async {
        while world.model.requests().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    });
    let Reviewed::PutOff(Learned { changes, .. }) = reviewed.unwrap() else {
        panic!("it went on");
    };
    assert_eq!(changes.len(), 1, "what was kept stays kept");
    assert!(world.is_due().await);
    world.model.push(done());
    assert_eq!(world.review().await, Reviewed::Done(Learned::default()));
    let told = world
        .model
        .requests()
        .last()
        .unwrap()
        .messages
        .last()
        .unwrap()
        .text();
    assert!(
        told.contains("Kept from this conversation already:\n- added: Lives in Lyon"),
        "{told}"
    );
}

#[tokio::test]
async fn a_review_that_died_is_taken_up_and_at_last_given_up() {
    let world = World::new(TALK, []).await;
    let session = SessionId::from(SESSION);
    for round in 0..3 {
        // Taken, and the process dies with it.
        let now = world.clock.now();
        let until = now.plus(Duration::from_secs(600));
        let taken = world.store.take_review(&session, now, until).await.unwrap();
        assert!(taken.is_some(), "round {round}");
        assert_eq!(world.review().await, Reviewed::NotDue, "somebody is at it");
        world.clock.advance(Duration::from_secs(601));
    }
    assert_eq!(world.review().await, Reviewed::GivenUp);
    assert!(!world.is_due().await);
}

#[tokio::test]
async fn a_model_that_says_nonsense_or_nothing_changes_nothing() {
    for step in [
        Step::text("I would keep everything, but I call nothing."),
        Step::empty(),
        Step::calls(&[("a", "memory", "{not json"), ("b", "memory", "[]")]),
        Step::call("a", "memory", &json!({"action": "explode"})),
        Step::error(hermes_core::ModelErrorKind::Broken),
    ] {
        let world = World::new(TALK, [step, done()]).await;
        let reviewed = world.review().await;
        assert_eq!(reviewed.told(), None);
        assert_eq!(world.kept().trim(), "");
        assert!(
            world
                .store
                .changes(ChangeFilter::default())
                .await
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn another_model_gets_a_digest() {
    let mut world = World::new(TALK, [add("user", "Lives in Lyon"), done()]).await;
    world.is_other = true;
    world.review().await;
    let request = &world.model.requests()[0];
    assert_ne!(request.prefix, prefix());
    assert_eq!(request.messages.len(), 2);
    let digest = request.messages[0].text();
    assert!(digest.contains("user: I live in Lyon"), "{digest}");
    assert!(
        digest.contains("tool result (data): hosts: alpha"),
        "{digest}"
    );
    assert!(world.kept().contains("Lyon"));
}

#[tokio::test]
async fn a_note_that_needs_consent_waits_for_it_and_is_told() {
    let mut world = World::new(TALK, [add("user", "Lives in Lyon"), done()]).await;
    world.write_approval = true;
    let reviewed = world.review().await;
    assert_eq!(
        reviewed.told().as_deref(),
        Some("proposed: added: Lives in Lyon, see `hermes memory pending`")
    );
    assert_eq!(world.kept().trim(), "");
    let notes = world.notes();
    let waiting = notes.pending();
    assert_eq!(waiting.len(), 1);
    let changed = notes.approve(waiting[0].number).await.unwrap();
    assert!(world.kept().contains("Lyon"));
    let change = world.store.change(changed.id.unwrap()).await.unwrap();
    let change = change.unwrap().change;
    assert_eq!(
        (change.author, change.session),
        (Author::Review, Some(SESSION.into()))
    );
    assert!(notes.pending().is_empty());
}

#[tokio::test]
async fn a_lesson_of_its_own_steps_may_be_kept() {
    let talk = [Told {
        said: "Run the tests please",
        result: Some("error: externally-managed-environment"),
        answer: "I made a virtual environment with uv and the tests ran.",
    }];
    let lesson = "Tests: make a virtual environment with uv first";
    let world = World::new(&talk, [add("memory", lesson), done()]).await;
    assert!(world.review().await.told().is_some());
    assert!(world.kept().contains(lesson));
}

#[tokio::test]
async fn what_a_request_may_use_is_bounded_also_where_no_price_is_known() {
    let run = || Step::call("x", "terminal", &json!({}));
    let mut world = World::new(TALK, (0..99).map(|_| run())).await;
    // Each answer of the script costs 1,000, and nobody knows that beforehand.
    world.budget = LearningUse {
        micro_usd: 2_500,
        ..BUDGET
    };
    world.review().await;
    let day = world.clock.now().date_text();
    let used = world.store.used_on(&day).await.unwrap();
    assert!(used.micro_usd <= 2_500, "{used:?}");
    let requests = world.model.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|one| one.output_tokens_max.is_some()));
}

#[tokio::test]
async fn a_change_that_waits_for_consent_is_told_in_the_line() {
    let patch = |reason: &str| {
        Step::call(
            "s1",
            "skill_manage",
            &json!({"action": "patch", "name": "mine", "old_string": "beta", "new_string": "alpha", "reason": reason}),
        )
    };
    let world = World::new(TALK, [patch(""), patch("you use alpha"), done()]).await;
    let folder = world.folder.path().join("skills/mine");
    fs::create_dir_all(&folder).unwrap();
    let text = "---\nname: mine\ndescription: Deploys to a host.\n---\nUse beta.\n";
    fs::write(folder.join("SKILL.md"), text).unwrap();
    let reviewed = world.review().await;
    assert_eq!(
        reviewed.told().as_deref(),
        Some("proposed: patched the skill `mine` (you use alpha), see `hermes skills proposals`"),
        "{reviewed:?}"
    );
    assert!(reviewed.changes().is_empty());
    let refused = world.model.requests()[1].messages.last().cloned().unwrap();
    assert!(
        format!("{refused:?}").contains("without evidence"),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(folder.join("SKILL.md")).unwrap(), text);
}
