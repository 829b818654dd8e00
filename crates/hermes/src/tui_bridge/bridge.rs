//! Between the interface and the session: takes requests in, gives news out, and keeps what takes its time (an editor, a
//! shell command, the clipboard, a question to a provider) beside the conversation instead of in its way.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt as _;
use hermes_core::command::{Command, List, Verb};
use hermes_core::history::last_exchanges;
use hermes_core::process;
use hermes_core::skill::{self, SkillNames};
use hermes_core::{
    Archive as _, Event, Followed, Notice, Op, Part, Resumed, RunningSession, SessionHandle,
    SessionId, wording,
};
use hermes_runtime::commands::around::Watch;
use hermes_runtime::commands::{Heard, Here, Shown, Then};
use hermes_runtime::models::known::OfferedModel;
use hermes_runtime::{Conversation, Start};
use hermes_store::SqliteStore;
use hermes_tui::{FromHost, ToHost};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

use super::settings;
use crate::base::Base;
use crate::chat::{follow_settings, gone};
use crate::clipboard::Clipboard;
use crate::copy;
use crate::editor;
use crate::failure::{Failure, Outcome};

use crate::image;
use crate::logging;
use crate::output::columns;
use crate::pager;
use crate::shown;

/// Where requests are taken in and news are given out.
pub(super) struct Bridge<'a> {
    base: &'a Base,
    host: &'a mut Conversation,
    /// How many exchanges of a conversation that goes on are shown again.
    past_exchanges: usize,
    to_interface: mpsc::Sender<FromHost>,
    requests: mpsc::Receiver<ToHost>,
    /// The editor that is open, if one is.
    editing: JoinSet<Outcome<String>>,
    /// Shell commands of the person's own that run.
    running: JoinSet<String>,
    /// Those whose output goes along with the next message.
    own: JoinSet<Heard>,
    /// The pager, while it is open.
    paging: JoinSet<Outcome<()>>,
    /// What is said first, before the person types anything.
    question: Option<String>,
    /// The clipboard, while it is read.
    pasting: JoinSet<hermes_runtime::Result<PathBuf>>,
    /// The skills, while they are looked for.
    looking: JoinSet<SkillNames>,
    /// The providers, while they are asked for their models.
    offering: JoinSet<Vec<OfferedModel>>,
    /// What they said last.
    offered: Vec<OfferedModel>,
    /// The conversation to go on with another time.
    to_go_on: Option<SessionId>,
}

/// Where a conversation goes from here.
enum Next {
    Open(Start),
    Leave,
}

/// The session that is talked in.
struct Talk {
    session: Arc<dyn SessionHandle>,
    is_busy: bool,
    /// Where the person wants to go as soon as nothing runs.
    next: Option<Next>,
}

impl<'a> Bridge<'a> {
    pub(super) fn new(
        base: &'a Base,
        host: &'a mut Conversation,
        to_interface: mpsc::Sender<FromHost>,
        requests: mpsc::Receiver<ToHost>,
    ) -> Outcome<Self> {
        Ok(Self {
            base,
            host,
            past_exchanges: base.settings.u64("display.resume_exchanges")? as usize,
            to_interface,
            requests,
            editing: JoinSet::new(),
            running: JoinSet::new(),
            own: JoinSet::new(),
            paging: JoinSet::new(),
            question: None,
            pasting: JoinSet::new(),
            looking: JoinSet::new(),
            offering: JoinSet::new(),
            offered: Vec::new(),
            to_go_on: None,
        })
    }

    /// Says this as soon as a conversation is open.
    pub(super) fn saying(self, question: Option<String>) -> Self {
        Self { question, ..self }
    }

    /// The conversation to go on with another time.
    pub(super) fn to_go_on(&self) -> Option<&SessionId> {
        self.to_go_on.as_ref()
    }

    /// Opens one session after the other until the person leaves.
    pub(super) async fn serve(&mut self, start: Start) -> Outcome<()> {
        if let Start::Resume(session) = &start {
            self.foreshow(session).await;
        }
        let mut opened = self.host.open(start).await?;
        for warning in self.host.setup().warnings.clone() {
            self.tell(FromHost::Warned(format!("warning: {warning}")))
                .await;
        }
        let mut question = self.question.take();
        loop {
            let session = opened.handle.id().clone();
            self.introduce(&mut opened).await;
            if let Some(question) = question.take() {
                self.tell(FromHost::Say(question)).await;
            }
            let Next::Open(start) = self.one_session(opened).await? else {
                self.tell(FromHost::Leave).await;
                return Ok(());
            };
            opened = match self.host.open(start).await {
                Ok(opened) => opened,
                Err(failure) => {
                    let failure = Failure::from(failure).to_string();
                    self.tell(FromHost::Warned(failure)).await;
                    self.host.open(Start::Resume(session)).await?
                }
            };
        }
    }

    /// Talks in one session until the person wants another one or none.
    async fn one_session(&mut self, opened: RunningSession) -> Outcome<Next> {
        self.looking.spawn(self.host.skill_names());
        let mut events = opened.events;
        let mut talk = Talk {
            session: opened.handle,
            is_busy: true,
            next: None,
        };
        let mut watch = Watch::new();
        let next = loop {
            if !talk.is_busy
                && let Some(next) = talk.next.take()
            {
                break next;
            }
            let setup = self.host.setup();
            let session = talk.session.id();
            tokio::select! {
                followed = events.next() => match followed {
                    None => return Err(gone(talk.session.as_ref())),
                    Some(Followed::Event(numbered)) => self.pass_on(numbered.event, &mut talk).await,
                    Some(Followed::Missed { events }) => {
                        self.tell(FromHost::Warned(wording::missed(events))).await;
                    }
                },
                request = self.requests.recv(), if talk.next.is_none() => {
                    self.serve_request(request.unwrap_or(ToHost::Leave), &mut talk).await;
                }
                Some(edited) = self.editing.join_next() => self.edited(edited).await,
                Some(printed) = self.running.join_next() => {
                    let told = printed.unwrap_or_else(|error| error.to_string());
                    self.tell(FromHost::Told(told)).await;
                }
                Some(Ok(heard)) = self.own.join_next() => {
                    self.tell(FromHost::Told(heard.shown())).await;
                    self.host.hear(heard);
                }
                Some(paged) = self.paging.join_next() => {
                    let paged = paged.unwrap_or(Ok(()));
                    self.tell(FromHost::Paged(paged.map_err(|failure| failure.to_string()))).await;
                }
                Some(pasted) = self.pasting.join_next() => self.pasted(pasted).await,
                Some(Ok(skills)) = self.looking.join_next() => self.tell(FromHost::Skills(skills)).await,
                Some(Ok(offered)) = self.offering.join_next() => {
                    self.offered = offered;
                    self.tell_names(List::Models, &talk).await;
                }
                around = watch.changed(setup, session) => self.tell(FromHost::Around(around)).await,
                notice = talk.session.news(), if !talk.is_busy => {
                    send(&mut talk, Op::Say(process::news(notice))).await;
                }
            }
        };
        self.host.close(talk.session.id()).await?;
        Ok(next)
    }

    /// Shows the end of a conversation while the whole of it is read, which takes its time when it is long. If it cannot
    /// be read, opening it tells why.
    async fn foreshow(&self, session: &SessionId) {
        let ending = self.archive().ending(session, self.past_exchanges).await;
        if let Ok(ending) = ending {
            let introduction = hermes_tui::Opened {
                title: ending.record.title,
                past: ending.messages,
                earlier: usize::try_from(ending.earlier).unwrap_or(usize::MAX),
                ..self.introduction(session)
            };
            self.tell(FromHost::Opened(introduction)).await;
        }
    }

    async fn introduce(&mut self, opened: &mut RunningSession) {
        let mut introduction = self.introduction(opened.handle.id());
        if let Some(Resumed {
            record, messages, ..
        }) = opened.resumed.take()
        {
            let past = last_exchanges(&messages, self.past_exchanges);
            introduction.title = record.title;
            introduction.past = past.to_vec();
            introduction.earlier = messages.len() - past.len();
            if !messages.is_empty() {
                self.to_go_on = Some(introduction.id.clone());
            }
        }
        self.tell(FromHost::Opened(introduction)).await;
    }

    /// A conversation in which nothing was said yet.
    fn introduction(&self, session: &SessionId) -> hermes_tui::Opened {
        let setup = self.host.setup();
        let model = &setup.ports.model;
        hermes_tui::Opened {
            id: session.clone(),
            title: None,
            model: model.name().to_string(),
            context_window: model.context_window(),
            cwd: setup.settings.cwd.clone(),
            past: Vec::new(),
            earlier: 0,
            is_unasked: self.host.is_unasked(),
            mode: self.host.unusual_mode(),
        }
    }

    async fn pass_on(&mut self, event: Event, talk: &mut Talk) {
        logging::log(talk.session.id(), &event);
        match &event {
            Event::TurnStarted { .. } => {
                self.to_go_on = Some(talk.session.id().clone());
                talk.is_busy = true;
            }
            // Told before a turn begins, while it waits for servers.
            Event::Notice {
                notice: Notice::Tools { .. },
            } => talk.is_busy = true,
            Event::Idle => talk.is_busy = false,
            _ => {}
        }
        self.tell(FromHost::Event(event)).await;
    }

    async fn serve_request(&mut self, request: ToHost, talk: &mut Talk) {
        match request {
            ToHost::Op(op) => self.pass(op, talk).await,
            ToHost::Accompanied { op, images, skills } => {
                let op = self.with_skills(op, skills, talk.session.id()).await;
                let op = self.illustrated(op, images).await;
                self.pass(op, talk).await;
            }
            ToHost::Clipboard => {
                let clipboard = Clipboard::of(self.base);
                self.pasting.spawn(clipboard.keep_image());
            }
            ToHost::Command { command, arguments } => self.run(command, &arguments, talk).await,
            ToHost::Edit(text) => self.edit(text),
            ToHost::List(list) => self.list(list, talk).await,
            ToHost::Shell(line) => _ = self.running.spawn(self.host.shell(&line)),
            ToHost::Own(line) => _ = self.own.spawn(self.host.own(&line)),
            ToHost::NextMode => {
                let mode = self.host.next_mode();
                let is_usual = self.host.unusual_mode().is_none();
                self.tell(FromHost::Mode { mode, is_usual }).await;
            }
            ToHost::Page => self.page(talk.session.id()).await,
            ToHost::Look(value) => {
                let text = self.host.look(&value).await;
                self.tell(FromHost::Looked { value, text }).await;
            }
            ToHost::Search(words) => {
                let found = match self.host.search(&words).await {
                    Ok(items) => FromHost::Found { words, items },
                    Err(error) => FromHost::Warned(Failure::from(error).to_string()),
                };
                self.tell(found).await;
            }
            ToHost::Leave => go(talk, Next::Leave).await,
        }
    }

    /// Tells the names of a list. Those of models at once as far as they are known, and again when the providers have told
    /// theirs.
    async fn list(&mut self, list: List, talk: &Talk) {
        if list == List::Models && self.offering.is_empty() {
            self.offering.spawn(self.host.offered_models());
        }
        self.tell_names(list, talk).await;
    }

    async fn tell_names(&self, list: List, talk: &Talk) {
        let items = self.host.names(list, talk.session.id(), &self.offered);
        let items = items.await;
        self.tell(FromHost::Listed { list, items }).await;
    }

    async fn pass(&mut self, op: Op, talk: &mut Talk) {
        if matches!(op, Op::Say(_))
            && let Some(told) = follow_settings(self.host).await
        {
            self.tell(FromHost::Told(told)).await;
        }
        let op = self.host.with_heard(op);
        send(talk, op).await;
    }

    /// Opens the whole conversation in the person's pager; the terminal is theirs meanwhile.
    async fn page(&mut self, session: &SessionId) {
        let text = match self.host.transcript(session).await {
            Ok(Shown::Transcript { record, lines }) => shown::transcript::whole(&record, &lines),
            Ok(other) => shown::text(&[other], columns()).unwrap_or_default(),
            Err(error) => {
                let failure = Failure::from(error).to_string();
                return self.tell(FromHost::Paged(Err(failure))).await;
            }
        };
        let environment = self.base.environment.clone();
        let folder = self.base.home.directory().to_owned();
        self.paging
            .spawn_blocking(move || pager::page(&environment, &folder, &text));
    }

    /// Puts images beside the words. One that cannot be read is told of; the words name it all the same.
    async fn illustrated(&self, mut op: Op, images: Vec<PathBuf>) -> Op {
        let read = move || -> Vec<_> { images.iter().map(|path| image::read(path)).collect() };
        let read = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        for image in read {
            match (image, &mut op) {
                (Ok(part), Op::Say(message) | Op::Steer(message)) => message.parts.push(part),
                (Ok(_), _) => {}
                (Err(error), _) => {
                    let failure = Failure::from(error).to_string();
                    self.tell(FromHost::Warned(failure)).await;
                }
            }
        }
        op
    }

    /// Puts skills behind the words. One that cannot be read is told of, to the model too: its name stands there.
    async fn with_skills(&self, mut op: Op, names: Vec<String>, session: &SessionId) -> Op {
        let (Op::Say(message) | Op::Steer(message)) = &mut op else {
            return op;
        };
        let told = match self.host.skills(names, session.clone()).await {
            Ok(told) => told,
            Err(error) => vec![Err(error)],
        };
        for skill in told {
            let text = match skill {
                Ok(text) => text,
                Err(error) => {
                    let text = format!("(it is not here: {error})");
                    let failure = Failure::from(error).to_string();
                    self.tell(FromHost::Warned(failure)).await;
                    text
                }
            };
            message.parts.push(Part::text(skill::behind_words(&text)));
        }
        op
    }

    async fn pasted(&self, pasted: Result<hermes_runtime::Result<PathBuf>, JoinError>) {
        let image = match pasted {
            Ok(pasted) => pasted.map_err(|error| Failure::from(error).to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.tell(FromHost::Image(image)).await;
    }

    async fn run(&mut self, command: &'static Command, arguments: &str, talk: &mut Talk) {
        let here = Here {
            session: talk.session.id().clone(),
            is_busy: talk.is_busy,
            can_choose: true,
            surface: hermes_core::command::Surface::Terminal,
        };
        if command.verb == Verb::Skills {
            self.looking.spawn(self.host.skill_names());
        }
        let done = match self.host.run(command, arguments, &here).await {
            Ok(done) => done,
            Err(error) => {
                let failure = Failure::from(error).to_string();
                return self.tell(FromHost::Told(failure)).await;
            }
        };
        self.show(done.shown).await;
        match done.then {
            Then::Nothing => {}
            Then::Send(op) => send(talk, op).await,
            Then::Open(start) => go(talk, Next::Open(start)).await,
            Then::Choose(choice) => self.tell(FromHost::Choose(choice)).await,
            Then::Leave => go(talk, Next::Leave).await,
            Then::Attach { image, words } => {
                if !words.is_empty() {
                    self.tell(FromHost::Fill(format!("{words} "))).await;
                }
                self.tell(FromHost::Image(Ok(image))).await;
            }
            Then::Titled(title) => self.tell(FromHost::Titled(title)).await,
            Then::Paste { words } => {
                if !words.is_empty() {
                    self.tell(FromHost::Fill(format!("{words} "))).await;
                }
                let clipboard = Clipboard::of(self.base);
                self.pasting.spawn(clipboard.keep_image());
            }
            Then::Copy { text } => match copy::copy(&text, &self.base.environment) {
                Ok(copied) => {
                    self.tell(FromHost::Told(copied.told)).await;
                    self.tell(FromHost::Signal(copied.sequence)).await;
                }
                Err(failure) => self.tell(FromHost::Told(failure.to_string())).await,
            },
            Then::ShowReasoning(is_shown) => {
                let reasoning = settings::reasoning(self.base, is_shown).unwrap_or_default();
                self.tell(FromHost::Reasoning(reasoning)).await;
            }
            Then::WhenBusy(when_busy) => {
                self.tell(FromHost::BusyInput(settings::busy_input(when_busy)))
                    .await;
            }
        }
    }

    async fn show(&self, shown: Vec<Shown>) {
        if let [Shown::Diff(diff)] = shown.as_slice() {
            return self.tell(FromHost::Diff(diff.clone())).await;
        }
        if let Some(text) = shown::text(&shown, columns()) {
            self.tell(FromHost::Told(text)).await;
        }
    }

    fn archive(&self) -> &Arc<SqliteStore> {
        self.host.runtime().store()
    }

    /// Opens the person's editor; the terminal is theirs meanwhile, and the session works on.
    fn edit(&mut self, text: String) {
        let environment = self.base.environment.clone();
        let folder = self.base.home.directory().to_owned();
        self.editing
            .spawn_blocking(move || editor::edit(&environment, &folder, &text));
    }

    async fn edited(&mut self, edited: Result<Outcome<String>, JoinError>) {
        let edited = match edited {
            Ok(edited) => edited.map_err(|failure| failure.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.tell(FromHost::Edited(edited)).await;
    }

    /// Tells the interface something. When it is gone, nobody needs to know.
    async fn tell(&self, told: FromHost) {
        let _ = self.to_interface.send(told).await;
    }
}

async fn send(talk: &mut Talk, op: Op) {
    talk.is_busy |= !matches!(op, Op::Interrupt | Op::Answer { .. });
    talk.session.send(op).await;
}

/// Leaves the session as soon as nothing runs in it; what runs is stopped.
async fn go(talk: &mut Talk, next: Next) {
    if talk.is_busy {
        talk.session.interrupt().await;
    }
    talk.next = Some(next);
}
