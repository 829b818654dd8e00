//! What every conversation needs before it begins: its session, its folder, its model, its tools.

use hermes_agent::SessionStart;
use hermes_core::SessionId;
use hermes_store::SqliteStore;

use crate::args::RunFlags;
use crate::base::Base;
use crate::choose_session::{Chosen, choose};
use crate::failure::Outcome;
use crate::output::note;
use crate::personality::Personalities;
use crate::skills::Sources;
use crate::wiring::{Audience, Wired, open_store};
use crate::worktree::Worktree;

pub struct Prepared {
    pub wired: Wired,
    source: String,
    chosen: Chosen,
    worktree: Option<Worktree>,
}

impl Prepared {
    pub async fn new(
        base: &Base,
        flags: &RunFlags,
        audience: Audience,
        source: &str,
    ) -> Outcome<Self> {
        let store = open_store(base)?;
        let chosen = choose(base, &store, flags, source).await?;
        Self::with(base, flags, audience, source, (store, chosen)).await
    }

    /// Prepares for a session that is chosen already.
    pub async fn with(
        base: &Base,
        flags: &RunFlags,
        audience: Audience,
        source: &str,
        (store, chosen): (SqliteStore, Chosen),
    ) -> Outcome<Self> {
        let skills = if flags.ignores_rules() {
            Vec::new()
        } else {
            Sources::of(base)?.preloaded(&flags.skills)?
        };
        let worktree = if flags.worktree {
            Some(Worktree::create(base).await?)
        } else {
            None
        };
        let cwd = worktree
            .as_ref()
            .map_or(&chosen.cwd, |worktree| &worktree.path)
            .clone();
        let mut notes: Vec<String> = worktree.iter().map(Worktree::note).collect();
        notes.extend(Personalities::of(base).chosen(base)?);
        notes.extend(skills);
        match Wired::new(base, flags, audience, notes, cwd, store).await {
            Ok(wired) => Ok(Self {
                wired,
                source: source.to_owned(),
                chosen,
                worktree,
            }),
            Err(failure) => {
                leave(worktree, base).await;
                Err(failure)
            }
        }
    }

    /// How the session that the flags mean begins.
    pub fn start(&self) -> SessionStart {
        match &self.chosen.session {
            Some(session) => SessionStart::Resume(session.clone()),
            None => self.start_new(None),
        }
    }

    pub fn start_new(&self, title: Option<String>) -> SessionStart {
        SessionStart::New {
            source: self.source.clone(),
            title,
            prefix: self.wired.prefix(),
        }
    }

    pub fn start_branch(&self, of: SessionId, title: Option<String>) -> SessionStart {
        SessionStart::Branch {
            of,
            source: self.source.clone(),
            title,
        }
    }

    /// Gives way to what is prepared for another folder. Returns what the user should know of it.
    pub async fn give_way(&mut self, next: Self) -> Vec<String> {
        let previous = std::mem::replace(self, next);
        self.worktree = previous.worktree;
        previous.wired.stop().await
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// Cleans up, whatever became of the conversation.
    pub async fn leave(self, base: &Base) {
        for notice in self.wired.stop().await {
            note(&notice);
        }
        leave(self.worktree, base).await;
    }
}

async fn leave(worktree: Option<Worktree>, base: &Base) {
    if let Some(worktree) = worktree {
        worktree.leave(base).await;
    }
}
