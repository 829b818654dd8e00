//! The curator of skills: whose it touches, how often it runs, and that merges are asked for.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::{Author, Event, FollowFrom, Notice, Op, Sessions as _, ToolContext, UserMessage};
use hermes_learning::skills::tools::{self, SkillPorts, Standing};
use hermes_learning::skills::{Curating, CuratorSettings, Happened, Skills, Sources, State};
use hermes_store::SqliteStore;
use hermes_testkit::TestClock;
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::support::{Process, options};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const SOON: Duration = Duration::from_secs(20);

struct World {
    folder: tempfile::TempDir,
    clock: Arc<TestClock>,
    skills: Skills,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        fs::create_dir_all(home.join("skills")).unwrap();
        let store = SqliteStore::open(home.join("hermes.db"), home.join("locks")).unwrap();
        let clock = Arc::new(TestClock::default());
        let skills = Skills {
            sources: Sources {
                home: home.join("skills"),
                bundles: home.join("skill-bundles"),
                ..Sources::default()
            },
            lock: home.join("locks/skills"),
            proposals: home.join("pending/skills"),
            wants_approval: false,
            log: Some(Arc::new(store)),
            clock: clock.clone(),
        };
        Self {
            folder,
            clock,
            skills,
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// The agent writes a skill.
    async fn writes(&self, name: &str, body: &str) {
        let ports = SkillPorts {
            skills: self.skills.clone(),
            author: Author::Agent,
            reach: Arc::new(|_: &str| Standing::Missing),
        };
        let tools = tools::tools(&ports);
        let writer = tools.iter().find(|tool| tool.spec().name == tools::WRITER);
        let content = format!("---\nname: {name}\ndescription: does {name}\n---\n{body}\n");
        let arguments = json!({"action": "create", "name": name, "content": content});
        let cx = ToolContext::alone("s1", "c1", self.folder.path());
        let made = writer.unwrap().run(arguments, &cx).await;
        made.unwrap();
    }

    async fn curate(&self) -> hermes_learning::skills::Curated {
        let settings = CuratorSettings::default();
        self.skills
            .curate(Curating::Really, &settings)
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn only_the_agents_own_unused_skills_are_archived_and_come_back() {
    let world = World::new();
    let names = ["old", "used", "pinned", "edited", "job", "bundled"];
    for (name, body) in names
        .iter()
        .zip(["one", "two", "three", "four", "five", "six"])
    {
        world.writes(name, body).await;
    }
    fs::create_dir_all(world.path("skills/mine")).unwrap();
    fs::write(world.path("skills/mine/SKILL.md"), "Mine.").unwrap();
    world.skills.pin("pinned", true).await.unwrap();
    let edited = world.path("skills/edited/SKILL.md");
    let text = fs::read_to_string(&edited).unwrap();
    fs::write(&edited, text.replace("four", "4")).unwrap();
    fs::create_dir_all(world.path("skill-bundles")).unwrap();
    fs::write(world.path("skill-bundles/b.yaml"), "skills: [bundled]").unwrap();
    world.clock.advance(DAY * 31);
    let settings = CuratorSettings {
        in_use: ["job".to_owned()].into(),
        ..CuratorSettings::default()
    };
    let curated = world.skills.curate(Curating::ToSee, &settings).await;
    assert_eq!(curated.unwrap().stale, ["old", "used"]);
    let curated = world.skills.curate(Curating::Really, &settings).await;
    assert!(curated.unwrap().archived.is_empty());
    assert_eq!(world.skills.usage().get("old").unwrap().state, State::Stale);
    world.clock.advance(DAY * 60);
    world
        .skills
        .count(&["used".to_owned()], Happened::Used)
        .await;
    let curated = world.skills.curate(Curating::Really, &settings).await;
    let curated = curated.unwrap();
    assert_eq!(curated.archived, ["old"]);
    assert!(curated.told().unwrap().contains("old"), "{curated:?}");
    assert!(world.path("skills/.archive/old/SKILL.md").exists());
    let history = world.skills.history(Some("old")).await.unwrap();
    assert_eq!(history[0].change.author, Author::Curator);
    world.skills.undo_last("old").await.unwrap();
    assert!(world.path("skills/old/SKILL.md").exists());
}

#[tokio::test]
async fn near_duplicates_become_one_proposal_and_a_refused_one_is_not_asked_again() {
    let world = World::new();
    let common = "Fetch the release notes, check every heading, compare versions, write summary.";
    world.writes("notes-one", common).await;
    world
        .writes("notes-two", &format!("{common}\n\nFinally tell people."))
        .await;
    world
        .skills
        .count(&["notes-one".to_owned()], Happened::Used)
        .await;
    let pair = world.curate().await.alike.remove(0);
    assert_eq!(pair.proposal, Some(1), "{pair:?}");
    assert_eq!(
        world.curate().await.alike[0].proposal,
        Some(1),
        "asked once"
    );
    let before = fs::read_to_string(world.path("skills/notes-one/SKILL.md")).unwrap();
    world.skills.reject(1).await.unwrap();
    assert_eq!(world.curate().await.alike[0].proposal, None);
    // The text is another one now, and so is the question.
    let file = world.path("skills/notes-one/SKILL.md");
    fs::write(&file, format!("{before}\nMore.\n")).unwrap();
    assert_eq!(world.curate().await.alike[0].proposal, Some(2));
    let (proposal, made) = world.skills.accept(2).await.unwrap();
    assert_eq!((proposal.edits().count(), made.len()), (2, 2));
    let merged = fs::read_to_string(&file).unwrap();
    assert!(merged.starts_with(before.trim_end()), "{merged}");
    assert!(
        merged.ends_with("More.\n\n## From `notes-two`\n\nFinally tell people.\n"),
        "{merged}"
    );
    assert!(world.path("skills/.archive/notes-two/SKILL.md").exists());
    // Each half can be taken back.
    world.skills.undo_last("notes-two").await.unwrap();
    world.skills.undo_last("notes-one").await.unwrap();
    assert!(!fs::read_to_string(&file).unwrap().contains("Finally"));
    assert!(world.path("skills/notes-two/SKILL.md").exists());
}

#[tokio::test]
async fn it_runs_once_in_an_interval_and_not_on_the_first_day() {
    let world = World::new();
    world.writes("old", "one").await;
    world.clock.advance(DAY * 100);
    let settings = CuratorSettings::default();
    let run = || world.skills.curate_if_due(DAY, &settings);
    assert_eq!(run().await.unwrap(), None);
    world.clock.advance(DAY);
    let (one, other) = tokio::join!(run(), run());
    let ran = [one.unwrap(), other.unwrap()];
    assert_eq!(ran.iter().flatten().count(), 1, "{ran:?}");
    assert_eq!(run().await.unwrap(), None);
}

#[tokio::test]
async fn a_conversation_that_rests_lets_it_run_and_is_told() {
    let script = Script::new([Answer::text("hello")]).repeating_last();
    let process = Process::with(script, "learning: {rest: 0}\n").await;
    let home = process.runtime.base().home.directory().to_owned();
    let skill = home.join("skills/old");
    fs::create_dir_all(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "Old.").unwrap();
    let used = json!({"old": {"created_by": "agent", "created_at": "2020-01-01T00:00:00+00:00"}});
    fs::write(home.join("skills/.usage.json"), used.to_string()).unwrap();
    let state = json!({"last_run_at": "2020-01-01T00:00:00+00:00"});
    fs::write(home.join("skills/.curator.json"), state.to_string()).unwrap();
    let session = process.runtime.open(options("cli")).await.unwrap();
    let mut events = session.handle.follow(FollowFrom::Now);
    assert!(session.handle.send(Op::Say(UserMessage::text("hi"))).await);
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
    let told = tokio::time::timeout(SOON, told).await.unwrap();
    assert!(told.contains("archived unused skills: old"), "{told}");
    assert!(home.join("skills/.archive/old/SKILL.md").exists());
}
