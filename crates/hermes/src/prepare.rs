//! What every conversation needs before it begins: its session, its folder, and what it works with.

use std::sync::Arc;

use hermes_core::{Audience, SessionOptions};
use hermes_runtime::worktree::Worktree;
use hermes_runtime::{Conversation, Runtime, Start};

use crate::args::RunFlags;
use crate::base::Base;
use crate::choose_session::choose;
use crate::failure::Outcome;
use crate::output::note;

pub struct Prepared {
    pub conversation: Conversation,
    /// How the session that the flags mean begins.
    pub start: Start,
    worktree: Option<Worktree>,
}

impl Prepared {
    pub async fn new(
        base: &Arc<Base>,
        flags: &RunFlags,
        audience: Audience,
        source: &str,
    ) -> Outcome<Self> {
        let runtime = Runtime::start(Arc::clone(base))?;
        let chosen = choose(base, runtime.store(), flags, source).await?;
        let worktree = if flags.worktree {
            Some(Worktree::create(base).await?)
        } else {
            None
        };
        let cwd = worktree
            .as_ref()
            .map_or(chosen.cwd, |made| made.path.clone());
        let options = SessionOptions {
            cwd: Some(cwd),
            notes: worktree.iter().map(Worktree::note).collect(),
            audience,
            source: source.to_owned(),
            ..flags.options()
        };
        match Conversation::new(runtime, options).await {
            Ok(conversation) => {
                if let Some(missing) = &conversation.setup().missing_skills {
                    note(&format!("warning: {missing}"));
                }
                Ok(Self {
                    conversation,
                    start: match chosen.session {
                        Some(session) => Start::Resume(session),
                        None => Start::New { title: None },
                    },
                    worktree,
                })
            }
            Err(error) => {
                leave(worktree, base).await;
                Err(error.into())
            }
        }
    }

    /// Cleans up, whatever became of the conversation.
    pub async fn leave(self) {
        let runtime = self.conversation.runtime();
        for notice in runtime.stop().await {
            note(&notice);
        }
        leave(self.worktree, runtime.base()).await;
    }
}

async fn leave(worktree: Option<Worktree>, base: &Base) {
    if let Some(worktree) = worktree
        && let Some(kept) = worktree.leave(base).await
    {
        note(&kept);
    }
}
