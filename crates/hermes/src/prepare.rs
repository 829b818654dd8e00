//! What every conversation needs before it begins: its session, its folder, and what it works with.

use std::sync::Arc;

use hermes_core::{Audience, RunningSession, SessionId, SessionOptions, Sessions};
use hermes_runtime::worktree::Worktree;
use hermes_runtime::{Conversation, Runtime, Start};

use crate::args::RunFlags;
use crate::base::Base;
use crate::choose_session::choose;
use crate::commands::gateway::chats::{self, HomeChats};
use crate::commands::gateway::standing;
use crate::failure::Outcome;
use crate::output::note;

/// Where a session is to be, before anything of it is opened.
pub struct Place {
    pub runtime: Arc<Runtime>,
    options: SessionOptions,
    /// The session to go on with; a new one without it.
    session: Option<SessionId>,
    worktree: Option<Worktree>,
}

/// Lets `/platforms` ask the gateway of this home.
fn tell_gateway(runtime: &Runtime) {
    let home = runtime.base().home.directory().to_owned();
    runtime.set_gateway_standing(Arc::new(move || {
        let home = home.clone();
        Box::pin(async move { standing::told(&home).await })
    }));
}

impl Place {
    pub async fn choose(
        base: &Arc<Base>,
        flags: &RunFlags,
        audience: Audience,
        source: &str,
    ) -> Outcome<Self> {
        let runtime = Runtime::start(Arc::clone(base))?;
        tell_gateway(&runtime);
        chats::tell_platforms(&runtime);
        if let Some(chats) = HomeChats::of(&runtime) {
            runtime.set_chats(chats);
        }
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
        Ok(Self {
            runtime,
            options,
            session: chosen.session,
            worktree,
        })
    }

    /// Opens the session.
    pub async fn open(&self) -> Outcome<RunningSession> {
        let (sessions, options): (&dyn Sessions, _) = (&*self.runtime, self.options.clone());
        Ok(match &self.session {
            Some(session) => sessions.resume(session.clone(), options).await?,
            None => sessions.open(options).await?,
        })
    }

    /// Cleans up, whatever became of the session.
    pub async fn leave(self) {
        for notice in self.runtime.stop().await {
            note(&notice);
        }
        leave(self.worktree, self.runtime.base()).await;
    }
}

/// A conversation in which slash commands can be given.
pub struct Prepared {
    pub conversation: Conversation,
    /// How the session that the flags mean begins.
    pub start: Start,
    place: Place,
}

impl Prepared {
    pub async fn new(place: Place) -> Outcome<Self> {
        let conversation = Conversation::new(Arc::clone(&place.runtime), place.options.clone());
        match conversation.await {
            Ok(conversation) => {
                if let Some(missing) = &conversation.setup().missing_skills {
                    note(&format!("warning: {missing}"));
                }
                Ok(Self {
                    conversation,
                    start: match &place.session {
                        Some(session) => Start::Resume(session.clone()),
                        None => Start::New { title: None },
                    },
                    place,
                })
            }
            Err(error) => {
                leave(place.worktree, place.runtime.base()).await;
                Err(error.into())
            }
        }
    }

    /// Cleans up, whatever became of the conversation.
    pub async fn leave(self) {
        self.place.leave().await;
    }
}

async fn leave(worktree: Option<Worktree>, base: &Base) {
    if let Some(worktree) = worktree
        && let Some(kept) = worktree.leave(base).await
    {
        note(&kept);
    }
}
