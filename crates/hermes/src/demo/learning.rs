//! The act in which a review writes a skill, and a new conversation goes by it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::skill::SkillIndex;
use hermes_core::{
    Author, CancellationToken, Clock as _, DueReview, LearningLog, LearningUse, Notice,
    Reviews as _, SessionId, Tool, wording,
};
use hermes_learning::recall::{self, Recall};
use hermes_learning::review::{ReviewModel, ReviewSettings, Reviewer};
use hermes_learning::skills::tools::{self, SkillPorts, Standing};
use hermes_learning::skills::{Skills, Sources};
use hermes_runtime::SystemClock;
use hermes_store::SqliteStore;

use super::script::{DemoModel, LIST, NEXT_LIST, SKILL};
use super::{Act, Stage};
use crate::failure::{Failure, Outcome};

const HARBOUR: &str = "ship;goods;tons\nArgo;olives;12,5\nDoris;wine;7,25\nThetis;amphorae;3,75\n";
const SPRING: &str = "ship;goods;tons\nDoris;salt;4,5\nArgo;honey;0,75\n";
/// More than enough: the scripted model costs nothing.
const BUDGET: LearningUse = LearningUse {
    tokens: 1_000_000,
    micro_usd: 1_000_000,
};

pub(super) fn set_stage(home: &Path) -> std::io::Result<()> {
    std::fs::write(home.join("harbour.csv"), HARBOUR)?;
    std::fs::write(home.join("spring.csv"), SPRING)
}

impl Stage {
    /// A task takes two tries; the review keeps the way that worked; a new conversation takes it at once.
    pub(super) async fn learning_act(&self) -> Outcome<()> {
        let store = self.store()?;
        self.user(LIST)?;
        let opened = self.open(&store, None).await?;
        let session = opened.session.id().clone();
        opened.session.say(LIST).await;
        self.follow(opened, |_| Act::GoOn).await?;
        self.say(
            "The first sum was wrong. The conversation rests, and is looked through once more:",
        )?;
        self.review(&store, &session).await?;
        self.show_skill()?;
        self.say("A new conversation, which knows nothing of the first but what was kept:")?;
        self.user(NEXT_LIST)?;
        let opened = self.open(&store, None).await?;
        opened.session.say(NEXT_LIST).await;
        self.follow(opened, |_| Act::GoOn).await
    }

    async fn review(&self, store: &Arc<SqliteStore>, session: &SessionId) -> Outcome<()> {
        let due = DueReview {
            session: session.clone(),
            person: None,
            at: SystemClock.now(),
            notes: false,
            skills: true,
        };
        store.set_review_due(due).await?;
        let reviewer = Reviewer {
            store: store.clone(),
            reviews: store.clone(),
            ledger: store.clone(),
            log: store.clone(),
            clock: Arc::new(SystemClock),
            model: ReviewModel::Main(Arc::new(DemoModel { pause: self.pause })),
            tools: tools::tools(&self.skill_ports(store, Author::Review)),
            notes: None,
            settings: ReviewSettings {
                budget: BUDGET,
                answer_timeout: Duration::from_secs(20),
                person: None,
                cwd: self.home.clone(),
            },
        };
        let reviewed = reviewer.review(session, &CancellationToken::new()).await?;
        let Some(text) = reviewed.told() else {
            return Err(Failure::new(format!("nothing was learned: {reviewed:?}")));
        };
        self.say(&wording::notice(&Notice::Learned { text }))
    }

    fn show_skill(&self) -> Outcome<()> {
        let file = self.home.join("skills").join(SKILL).join("SKILL.md");
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Failure::new(format!("cannot read `{}`: {error}", file.display())))?;
        for line in text.lines() {
            self.say(&format!("  {line}"))?;
        }
        Ok(())
    }

    /// The tools for skills, and for what was said before.
    pub(super) fn learning_tools(&self, store: &Arc<SqliteStore>) -> Vec<Arc<dyn Tool>> {
        let mut tools = tools::tools(&self.skill_ports(store, Author::Agent));
        tools.push(recall::tool(Recall {
            archive: store.clone(),
            profiles: None,
            asking: None,
        }));
        tools
    }

    pub(super) fn skill_index(&self, store: &Arc<SqliteStore>) -> SkillIndex {
        let skills = self.skills(store);
        let library = skills.sources.library();
        SkillIndex {
            viewer: tools::VIEWER,
            writer: tools::WRITER,
            finder: tools::FINDER,
            lines: library.lines(&skills.usage(), |_| Vec::new()),
        }
    }

    fn skill_ports(&self, store: &Arc<SqliteStore>, author: Author) -> SkillPorts {
        SkillPorts {
            skills: self.skills(store),
            author,
            reach: Arc::new(|_: &str| Standing::Missing),
        }
    }

    fn skills(&self, store: &Arc<SqliteStore>) -> Skills {
        let log: Arc<dyn LearningLog> = store.clone();
        Skills {
            sources: Sources {
                home: self.home.join("skills"),
                external: Vec::new(),
                bundles: self.home.join("skill-bundles"),
                disabled: Vec::new(),
                environments: Vec::new(),
                fills_in_variables: true,
                ..Sources::default()
            },
            lock: self.home.join("locks/skills"),
            proposals: self.home.join("pending/skills"),
            wants_approval: false,
            log: Some(log),
            clock: Arc::new(SystemClock),
        }
    }
}
