//! The acts about what was said: a conversation is compacted, and everything is found again.

use std::path::Path;
use std::time::Instant;

use hermes_agent::Opened;
use hermes_core::{Archive as _, FollowFrom, Op, SearchQuery};
use tokio::task::JoinSet;

use super::script::{BERTH, NIGHT, RULES, WHERE};
use super::{Act, Stage};
use crate::failure::Outcome;

/// Rules of a harbour, long enough to be worth a summary.
const RULE_COUNT: usize = 240;

pub(super) fn set_stage(home: &Path) -> std::io::Result<()> {
    let rules = (1..=RULE_COUNT).map(|number| {
        let what = match number % 4 {
            0 => "Boats moor by night with a lamp at the mast, or not at all",
            1 => "Nets are dried on the eastern wall and nowhere else",
            2 => "Whoever casts off tells the keeper where to and for how long",
            _ => "Fish is weighed before noon, in the presence of two",
        };
        format!("Rule {number}. {what}.\n")
    });
    std::fs::write(home.join("rules.txt"), rules.collect::<String>())
}

impl Stage {
    /// A conversation is made shorter in front of the reader. What its summary leaves out is found by search.
    pub(super) async fn compaction_act(&self) -> Outcome<()> {
        let opened = self.open(&self.store()?, None).await?;
        let Opened { session, task, .. } = opened;
        let mut events = session.follow(FollowFrom::Now);
        let mut tasks = JoinSet::new();
        tasks.spawn(task);
        for text in [BERTH, RULES, NIGHT] {
            self.user(text)?;
            session.say(text).await;
            self.show_turn(&session, &mut events, |_| Act::GoOn).await?;
        }
        self.user("/compress")?;
        session.send(Op::Compact { topic: None }).await;
        self.show_turn(&session, &mut events, |_| Act::GoOn).await?;
        self.user(WHERE)?;
        session.say(WHERE).await;
        self.show_turn(&session, &mut events, |_| Act::GoOn).await?;
        drop(session);
        tasks.join_all().await;
        self.say("The summary says nothing of the boat. Nothing was deleted, so the words were found all the same.")
    }

    pub(super) async fn search_act(&self, word: &str) -> Outcome<()> {
        self.say(&format!("$ hermes sessions search {word}"))?;
        let store = self.store()?;
        let query = SearchQuery {
            text: word.into(),
            session: None,
            limit: 3,
            ..SearchQuery::default()
        };
        let started = Instant::now();
        let hits = store.search(query).await?;
        let took = started.elapsed();
        for hit in &hits {
            let snippet = hit
                .snippet
                .replace('\n', " ")
                .replace(">>>", "")
                .replace("<<<", "");
            self.say(&format!(
                "  {}  {:?}: {}",
                hit.session,
                hit.role,
                hermes_core::text::shorten(&snippet, 80)
            ))?;
        }
        self.say(&format!(
            "  {} hits in {:.1} ms",
            hits.len(),
            took.as_secs_f64() * 1000.0
        ))
    }
}
