//! `/resume`, `/sessions`, `/history`, `/title` and `/branch`: what was talked about, and under which name.

use hermes_agent::SessionStart;
use hermes_core::{Archive as _, SessionRecord};

use super::arguments::words;
use super::{Done, Here, Host, Then};
use crate::commands;
use crate::failure::Outcome;

impl Host<'_> {
    pub(super) async fn resume(&mut self, name: &str) -> Outcome<Done> {
        if name.is_empty() {
            let list = self.sessions("").await?;
            return Ok(Done::told(format!(
                "{list}\n\n/resume ID or /resume TITLE goes on with one"
            )));
        }
        let session = self.archive().find(name).await?;
        let record = self.archive().record(&session).await?;
        if let Some(folder) = record.cwd.filter(|folder| folder.is_dir()) {
            self.prepared.wired.settings.cwd = folder;
        }
        Ok(Done::open(SessionStart::Resume(session)))
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

    pub(super) async fn title(&self, title: &str, here: &Here) -> Outcome<String> {
        let Some(record) = self.record(here).await? else {
            return Ok("a conversation can have a title once something was said in it".into());
        };
        if title.is_empty() {
            return Ok(match record.title {
                Some(title) => title,
                None => "this conversation has no title; /title TITLE gives it one".into(),
            });
        }
        self.archive().rename(&here.session, title).await?;
        Ok(format!("this conversation is now called `{title}`"))
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
