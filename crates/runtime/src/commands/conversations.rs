//! `/resume`, `/sessions`, `/history`, `/title` and `/branch`: what was talked about, and under which name.

use std::path::{Path, PathBuf};

use hermes_core::command::Surface;
use hermes_core::{
    Archive as _, ConsentOption, SearchQuery, SessionFilter, SessionId, SessionOptions,
    SessionRecord, StoreError,
};

use super::arguments::words;
use super::{Conversation, Done, Here, Shown, Then};
use crate::error::{Error, Result};
use crate::layout::count;
use crate::own_sessions;
use crate::setup::{Setup, Start};

/// Conversations that a list shows.
const LISTED: usize = 10;

/// Where sessions come from that lists leave out: those that scripts made.
pub const HIDDEN_SOURCE: &str = "tool";

/// Where sessions with a single question come from, unless the caller says otherwise.
pub const ONE_SHOT_SOURCE: &str = "oneshot";

/// What somebody is told who goes on with a session of another folder.
pub fn moved(folder: &Path) -> String {
    let folder = folder.display();
    format!("working in `{folder}`, the session's folder, with the settings that count there")
}

pub fn gone(folder: &Path, here: &Path) -> String {
    format!(
        "the session's folder `{}` is gone; staying in `{}`",
        folder.display(),
        here.display()
    )
}

impl Conversation {
    pub(super) async fn resume(&mut self, name: &str, here: &Here) -> Result<Done> {
        if name.is_empty() {
            let list = self.sessions("").await?;
            return Ok(Done::shown(list).telling("/resume ID or /resume TITLE goes on with one"));
        }
        if let Some(person) = &self.options.person {
            return self.resume_own(person, name).await;
        }
        let session = match self.archive().find(name).await {
            Err(error @ StoreError::NotFound { .. }) if here.surface == Surface::Chat => {
                return Err(Error::asked(error.to_string()).with_hint("/sessions shows them"));
            }
            found => found?,
        };
        let record = self.archive().record(&session).await?;
        let cwd = self.setup.settings.cwd.clone();
        let told = match record.cwd {
            Some(folder) if folder == cwd => None,
            Some(folder) if folder.is_dir() => Some(self.move_to(folder, &here.session).await?),
            Some(folder) => Some(gone(&folder, &cwd)),
            None => None,
        };
        let shown = told.map(Shown::Text);
        Ok(Done {
            shown: shown.into_iter().collect(),
            then: Then::Open(Start::Resume(session)),
        })
    }

    /// Goes on with a conversation of somebody who is not the owner: there are no others for them.
    async fn resume_own(&self, person: &str, name: &str) -> Result<Done> {
        match own_sessions::named(self.own_sessions(person).await?, name) {
            Some(record) => Ok(Done::open(Start::Resume(record.id))),
            None => {
                let message = format!("none of your conversations is called `{name}`");
                Err(Error::asked(message).with_hint("/sessions shows them"))
            }
        }
    }

    async fn own_sessions(&self, person: &str) -> Result<Vec<SessionRecord>> {
        let clock = self.runtime.clock().as_ref();
        Ok(own_sessions::of(self.archive(), clock, person).await?)
    }

    /// Works in another folder from now on: with its settings, which decide what is asked, and its servers. What ran for the
    /// session that is left in the former folder ends.
    async fn move_to(&mut self, folder: PathBuf, left: &SessionId) -> Result<String> {
        let mut options = SessionOptions {
            cwd: Some(folder.clone()),
            mode: Some(self.setup.settings.mode.now()),
            ..self.options.clone()
        };
        if self.setup.is_unasked() {
            // `/yolo` counts until it is taken back.
            options.consent = ConsentOption::Allow;
        }
        let base = self.base.with_options(&options)?;
        let setup = Setup::new(&self.runtime, &base, &options).await?;
        let mut told = vec![moved(&folder)];
        let warnings = setup.warnings.iter();
        told.extend(warnings.map(|warning| format!("warning: {warning}")));
        let former = std::mem::replace(&mut self.setup, setup);
        (self.base, self.options) = (base, options);
        let ended = former.end_processes(left).await;
        if ended > 0 {
            let processes = count(ended, "background process");
            told.push(format!(
                "ended {processes} of the conversation that was left"
            ));
        }
        // Servers of the former folder alone would run for nobody.
        self.runtime.servers().release(&former.wanted_servers).await;
        Ok(told.join("\n"))
    }

    pub(super) async fn sessions(&self, words: &str) -> Result<Shown> {
        if let Some(person) = &self.options.person {
            let mut records = self.own_sessions(person).await?;
            records.truncate(LISTED);
            return Ok(Shown::Sessions(records));
        }
        if words.is_empty() {
            let mut records = self.archive().list(SessionFilter::default()).await?;
            records.retain(|record| record.source != HIDDEN_SOURCE);
            records.truncate(LISTED);
            return Ok(Shown::Sessions(records));
        }
        let query = SearchQuery {
            text: words.to_owned(),
            session: None,
            limit: LISTED,
            ..SearchQuery::default()
        };
        Ok(Shown::Found {
            words: words.to_owned(),
            hits: self.archive().search(query).await?,
        })
    }

    /// Everything that was said and done.
    pub async fn transcript(&self, session: &SessionId) -> Result<Shown> {
        let here = Here {
            session: session.clone(),
            is_busy: false,
            can_choose: false,
            surface: hermes_core::command::Surface::Terminal,
        };
        let Some(record) = self.record(&here).await? else {
            return Ok(Shown::Text("nothing was said yet".into()));
        };
        let lines = self.archive().transcript(session).await?;
        let record = Box::new(record);
        Ok(Shown::Transcript { record, lines })
    }

    pub(super) async fn title(&self, title: &str, here: &Here) -> Result<Done> {
        let Some(record) = self.record(here).await? else {
            return Ok(Done::text(
                "a conversation can have a title once something was said in it",
            ));
        };
        if title.is_empty() {
            return Ok(Done::text(record.title.unwrap_or_else(|| {
                "this conversation has no title; /title TITLE gives it one".into()
            })));
        }
        self.archive().rename(&here.session, title).await?;
        // It is kept in one line, and no longer than a line.
        let record = self.archive().record(&here.session).await?;
        let title = record.title.unwrap_or_default();
        let told = format!("this conversation is now called `{title}`");
        Ok(Done::then(Then::Titled(title)).telling(told))
    }

    pub(super) async fn branch(&self, title: &str, here: &Here) -> Result<Done> {
        let Some(record) = self.record(here).await? else {
            return Ok(Done::text("there is nothing to branch off yet"));
        };
        let title = match (words(title), &record.title) {
            (Some(title), _) => Some(title),
            (None, Some(title)) => Some(self.next_title(title).await?),
            (None, None) => None,
        };
        let of = here.session.clone();
        let told = format!("a branch of {of}");
        Ok(Done::open(Start::Branch { of, title }).telling(told))
    }

    /// The first `TITLE #N` that no session has, from 2 on.
    async fn next_title(&self, title: &str) -> Result<String> {
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
