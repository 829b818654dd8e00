//! `/resume`, `/sessions`, `/history`, `/title` and `/branch`: what was talked about, and under which name.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_agent::{ConsentPolicy, SessionStart};
use hermes_core::{Archive as _, SessionId, SessionRecord};

use super::arguments::words;
use super::{Done, Here, Host, Then};
use crate::args::RunFlags;
use crate::choose_session::{self, Chosen};
use crate::commands;
use crate::failure::Outcome;
use crate::prepare::Prepared;
use crate::wiring::{Audience, open_store};

impl Host {
    pub(super) async fn resume(&mut self, name: &str) -> Outcome<Done> {
        if name.is_empty() {
            let list = self.sessions("").await?;
            return Ok(Done::told(format!(
                "{list}\n\n/resume ID or /resume TITLE goes on with one"
            )));
        }
        let session = self.archive().find(name).await?;
        let record = self.archive().record(&session).await?;
        let here = self.prepared.wired.settings.cwd.clone();
        let told = match record.cwd {
            Some(folder) if folder == here => None,
            Some(folder) if folder.is_dir() => Some(self.move_to(folder, &session).await?),
            Some(folder) => Some(choose_session::gone(&folder, &here)),
            None => None,
        };
        Ok(Done {
            told,
            then: Then::Open(SessionStart::Resume(session)),
        })
    }

    /// Works in another folder from now on: with its settings, which decide what is asked, and its servers.
    async fn move_to(&mut self, folder: PathBuf, session: &SessionId) -> Outcome<String> {
        let base = self.base.in_folder(folder.clone(), &self.flags)?;
        let chosen = Chosen {
            session: Some(session.clone()),
            cwd: folder.clone(),
        };
        let flags = RunFlags {
            worktree: false,
            ..self.flags.clone()
        };
        let source = self.prepared.source().to_owned();
        let store = open_store(&base)?;
        let mut next =
            Prepared::with(&base, &flags, Audience::Person, &source, (store, chosen)).await?;
        let current = &self.prepared.wired.settings;
        if current.consent == ConsentPolicy::Allow {
            // `/yolo` counts until it is taken back.
            next.wired.settings.consent = ConsentPolicy::Allow;
        }
        next.wired.settings.mode.set(current.mode.now());
        let warnings = next.wired.warnings.clone();
        let mut told = vec![choose_session::moved(&folder)];
        told.extend(self.prepared.give_way(next).await);
        told.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        self.base = Arc::new(base);
        Ok(told.join("\n"))
    }

    pub(super) async fn sessions(&self, words: &str) -> Outcome<String> {
        commands::sessions::told(self.archive(), words).await
    }

    pub(super) async fn history(&self, here: &Here) -> Outcome<String> {
        let Some(record) = self.record(here).await? else {
            return Ok("nothing was said yet".into());
        };
        let lines = self.archive().transcript(&here.session).await?;
        Ok(commands::sessions::readable(&record, &lines))
    }

    /// Everything that was said and done, with what tools returned in full.
    pub async fn whole(&self, session: &SessionId) -> Outcome<String> {
        let here = Here {
            session: session.clone(),
            is_busy: false,
        };
        let Some(record) = self.record(&here).await? else {
            return Ok("nothing was said yet".into());
        };
        let lines = self.archive().transcript(session).await?;
        Ok(commands::sessions::whole(&record, &lines))
    }

    pub(super) async fn title(&self, title: &str, here: &Here) -> Outcome<Done> {
        let Some(record) = self.record(here).await? else {
            return Ok(Done::told(
                "a conversation can have a title once something was said in it",
            ));
        };
        if title.is_empty() {
            return Ok(Done::told(record.title.unwrap_or_else(|| {
                "this conversation has no title; /title TITLE gives it one".into()
            })));
        }
        self.archive().rename(&here.session, title).await?;
        // It is kept in one line, and no longer than a line.
        let record = self.archive().record(&here.session).await?;
        let title = record.title.unwrap_or_default();
        Ok(Done {
            told: Some(format!("this conversation is now called `{title}`")),
            then: Then::Titled(title),
        })
    }

    pub(super) async fn branch(&self, title: &str, here: &Here) -> Outcome<Done> {
        let Some(record) = self.record(here).await? else {
            return Ok(Done::told("there is nothing to branch off yet"));
        };
        let title = match (words(title), &record.title) {
            (Some(title), _) => Some(title),
            (None, Some(title)) => Some(self.next_title(title).await?),
            (None, None) => None,
        };
        Ok(Done {
            told: Some(format!("a branch of {}", here.session)),
            then: Then::Open(self.prepared.start_branch(here.session.clone(), title)),
        })
    }

    /// The first `TITLE #N` that no session has, from 2 on.
    async fn next_title(&self, title: &str) -> Outcome<String> {
        let base = match title.rsplit_once(" #") {
            Some((base, number)) if number.parse::<u32>().is_ok() => base,
            _ => title,
        };
        let sessions = self.archive().list(Default::default()).await?;
        let is_free = |title: &String| {
            let taken = |session: &SessionRecord| session.title.as_ref() == Some(title);
            !sessions.iter().any(taken)
        };
        let mut titles = (2..).map(|number: u32| format!("{base} #{number}"));
        Ok(titles.find(is_free).unwrap_or_else(|| base.to_owned()))
    }
}
