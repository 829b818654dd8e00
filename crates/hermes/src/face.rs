//! `hermes` in a terminal: carries words between the interface, which shows and asks, and the session and the host,
//! which do.

mod around;
mod earlier;
mod lists;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{Opened, Resumed, Session, SessionStart};
use hermes_config::Environment;
use hermes_core::command::{Command, List, Verb};
use hermes_core::history::last_exchanges;
use hermes_core::skill::{self, SkillNames};
use hermes_core::{Archive as _, Event, Op, Part, SessionId, UserMessage};
use hermes_store::SqliteStore;
use hermes_tui::{
    BusyInput, EditMode, FromHost, Leave, Narrowing, Settings, ShowReasoning, ToHost,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::args::RunFlags;
use crate::base::Base;
use crate::chat::gone;
use crate::clipboard::Clipboard;
use crate::editor;
use crate::failure::{Failure, Outcome, code};
use crate::host::{Here, Host, Then, WhenBusy};
use crate::image;
use crate::known_models::OfferedModel;
use crate::output::note;
use crate::quick;
use crate::signals::Signals;
use crate::style::Style;
use crate::turn::close;
use around::Watch;

/// As much as a session may be ahead of the screen.
const TOLD_WAITING_MAX: usize = 1_024;
/// Wishes of one person at a keyboard.
const WISHES_WAITING_MAX: usize = 64;
/// How long a turn may take to come to its end when nobody watches any more.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the interface can be used here; plain lines work everywhere.
pub fn fits(base: &Base, flags: &RunFlags) -> bool {
    let terminal = base.environment.get("TERM").unwrap_or_default();
    let is_capable = !terminal.is_empty() && terminal != "dumb";
    is_capable && !flags.plain && !flags.json && std::io::stdout().is_terminal()
}

/// Talks until the person leaves.
pub async fn run(base: &Base, host: &mut Host<'_>) -> Outcome<()> {
    let settings = settings(base)?;
    let mut signals = Signals::listen()?;
    let (face, told) = mpsc::channel(TOLD_WAITING_MAX);
    let (wished, wishes) = mpsc::channel(WISHES_WAITING_MAX);
    let mut desk = Desk {
        base,
        host,
        past_exchanges: base.settings.u64("display.resume_exchanges")? as usize,
        face,
        wishes,
        editing: JoinSet::new(),
        running: JoinSet::new(),
        pasting: JoinSet::new(),
        looking: JoinSet::new(),
        offering: JoinSet::new(),
        offered: Vec::new(),
        to_go_on: None,
    };
    let outcome = {
        let mut serving = Box::pin(desk.serve());
        let mut interface = Box::pin(hermes_tui::run(settings, told, wished));
        tokio::select! {
            served = &mut serving => {
                // The interface prints its last words before it gives the terminal back.
                if served.is_ok() {
                    let _ = timeout(PATIENCE, interface).await;
                }
                served
            }
            left = &mut interface => {
                drop(interface);
                let served = timeout(PATIENCE, serving).await.unwrap_or(Ok(()));
                match left {
                    Ok(Leave::Asked | Leave::Closed) => served,
                    Err(error) => {
                        let hint = error.hint();
                        Err(Failure::new(with_source(&error)).hint(hint))
                    }
                }
            }
            _ = signals.interrupted() => {
                drop(interface);
                let _ = timeout(PATIENCE, serving).await;
                Err(Failure { code: code::TERMINATED, ..Failure::new("") })
            }
        }
    };
    if let Some(id) = &desk.to_go_on {
        let err = Style::of(&std::io::stderr(), &base.environment);
        note(&err.dim(format!("hermes -r {id} goes on with this conversation")));
    }
    outcome
}

fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn settings(base: &Base) -> Outcome<Settings> {
    let settings = &base.settings;
    let count = |key: &str| settings.u64(key).map(|value| value as usize);
    Ok(Settings {
        is_coloured: Style::of(&std::io::stdout(), &base.environment).is_coloured(),
        narrowing: narrowing(&base.environment),
        busy_input: busy_input(WhenBusy::of(base)?),
        edit_mode: edit_mode(base)?,
        reasoning: reasoning(base, settings.bool("display.show_reasoning")?)?,
        shows_cost: settings.bool("display.show_cost")?,
        rings_bell: settings.bool("display.bell_on_complete")?,
        quick_commands: quick::commands(base),
        paste_lines_max: count("paste_collapse_threshold")?,
        paste_chars_max: count("paste_collapse_char_threshold")?,
        history_file: Some(base.home.input_history()),
        user_home: base.environment.user_home(),
    })
}

/// xterm, GNU screen and st cut rows off where the others break them anew; what runs inside tmux sees tmux.
fn narrowing(environment: &Environment) -> Narrowing {
    let has = |name: &str| environment.get(name).is_some();
    let is_st = environment
        .get("TERM")
        .is_some_and(|term| term == "st" || term.starts_with("st-"));
    match (has("XTERM_VERSION") || has("STY") || is_st) && !has("TMUX") {
        true => Narrowing::Cuts,
        false => Narrowing::Breaks,
    }
}

fn busy_input(when_busy: WhenBusy) -> BusyInput {
    match when_busy {
        WhenBusy::Queue => BusyInput::Queue,
        WhenBusy::Steer => BusyInput::Steer,
        WhenBusy::Interrupt => BusyInput::Interrupt,
    }
}

fn edit_mode(base: &Base) -> Outcome<EditMode> {
    match base.settings.string("display.edit_mode")?.as_str() {
        "emacs" => Ok(EditMode::Emacs),
        "vi" => Ok(EditMode::Vi),
        other => Err(Failure::usage(format!(
            "`display.edit_mode` is `{other}`, which are no keys to edit with"
        ))
        .hint("known: emacs, vi")),
    }
}

fn reasoning(base: &Base, is_shown: bool) -> Outcome<ShowReasoning> {
    let is_full = base.settings.bool("display.reasoning_full")?;
    Ok(match (is_shown, is_full) {
        (false, _) => ShowReasoning::Hidden,
        (true, false) => ShowReasoning::Collapsed,
        (true, true) => ShowReasoning::Full,
    })
}

/// Where wishes are taken in and news are given out.
struct Desk<'a, 'b> {
    base: &'a Base,
    host: &'a mut Host<'b>,
    /// How many exchanges of a conversation that goes on are shown again.
    past_exchanges: usize,
    face: mpsc::Sender<FromHost>,
    wishes: mpsc::Receiver<ToHost>,
    /// The editor that is open, if one is.
    editing: JoinSet<Outcome<String>>,
    /// Shell commands of the person's own that run.
    running: JoinSet<String>,
    /// The clipboard, while it is read.
    pasting: JoinSet<Outcome<PathBuf>>,
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
    Open(SessionStart),
    Leave,
}

/// The session that is talked in.
struct Talk {
    session: Session,
    is_busy: bool,
    /// Where the person wants to go as soon as nothing runs.
    next: Option<Next>,
}

impl Desk<'_, '_> {
    /// Opens one session after the other until the person leaves.
    async fn serve(&mut self) -> Outcome<()> {
        let start = self.host.prepared().start();
        if let SessionStart::Resume(session) = &start {
            self.foreshow(session).await;
        }
        let mut opened = self.host.open(start).await?;
        for warning in self.host.prepared().wired.warnings.clone() {
            self.tell(FromHost::Warned(format!("warning: {warning}")))
                .await;
        }
        loop {
            let session = opened.session.id().clone();
            let Next::Open(start) = self.one_session(opened).await? else {
                self.tell(FromHost::Leave).await;
                return Ok(());
            };
            opened = match self.host.open(start).await {
                Ok(opened) => opened,
                Err(failure) => {
                    self.tell(FromHost::Warned(failure.to_string())).await;
                    self.host.open(SessionStart::Resume(session)).await?
                }
            };
        }
    }

    /// Talks in one session until the person wants another one or none.
    async fn one_session(&mut self, mut opened: Opened) -> Outcome<Next> {
        self.introduce(&mut opened).await;
        self.looking.spawn(self.host.skill_names());
        let mut tasks = JoinSet::new();
        tasks.spawn(opened.task);
        let mut events = opened.events;
        let mut talk = Talk {
            session: opened.session,
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
            let wired = &self.host.prepared().wired;
            let session = talk.session.id();
            tokio::select! {
                event = events.recv() => match event {
                    None => return Err(gone(&talk.session)),
                    Some(event) => self.pass_on(event, &mut talk).await,
                },
                wish = self.wishes.recv(), if talk.next.is_none() => {
                    self.serve_wish(wish.unwrap_or(ToHost::Leave), &mut talk).await;
                }
                Some(edited) = self.editing.join_next() => self.edited(edited).await,
                Some(printed) = self.running.join_next() => {
                    let told = printed.unwrap_or_else(|error| error.to_string());
                    self.tell(FromHost::Told(told)).await;
                }
                Some(pasted) = self.pasting.join_next() => self.pasted(pasted).await,
                Some(Ok(skills)) = self.looking.join_next() => self.tell(FromHost::Skills(skills)).await,
                Some(Ok(offered)) = self.offering.join_next() => {
                    self.offered = offered;
                    self.tell_names(List::Models, &talk).await;
                }
                around = watch.changed(wired, session) => self.tell(FromHost::Around(around)).await,
                notice = wired.processes.notice(session), if !talk.is_busy => {
                    let notice = wired.ports.safety.hide_keys(notice);
                    self.tell(FromHost::Told(notice.clone())).await;
                    send(&mut talk, Op::Say(UserMessage::text(notice))).await;
                }
            }
        };
        close(talk.session, tasks).await?;
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

    async fn introduce(&mut self, opened: &mut Opened) {
        let mut introduction = self.introduction(opened.session.id());
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
        let wired = &self.host.prepared().wired;
        let model = &wired.ports.model;
        hermes_tui::Opened {
            id: session.clone(),
            title: None,
            model: model.name().to_string(),
            context_window: model.context_window(),
            cwd: wired.settings.cwd.clone(),
            past: Vec::new(),
            earlier: 0,
        }
    }

    async fn pass_on(&mut self, event: Event, talk: &mut Talk) {
        match &event {
            Event::TurnStarted { .. } => self.to_go_on = Some(talk.session.id().clone()),
            Event::Idle => talk.is_busy = false,
            _ => {}
        }
        self.tell(FromHost::Event(event)).await;
    }

    async fn serve_wish(&mut self, wish: ToHost, talk: &mut Talk) {
        match wish {
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
            ToHost::Look(session) => {
                let looked = earlier::look(&**self.archive(), session).await;
                self.tell(looked).await;
            }
            ToHost::Search(words) => {
                let found = earlier::search(&**self.archive(), words).await;
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
        let items = lists::names(self.host, list, talk.session.id(), &self.offered).await;
        self.tell(FromHost::Listed { list, items }).await;
    }

    async fn pass(&mut self, op: Op, talk: &mut Talk) {
        if matches!(op, Op::Say(_))
            && let Some(told) = self.host.follow_settings().await
        {
            self.tell(FromHost::Told(told)).await;
        }
        send(talk, op).await;
    }

    /// Puts images beside the words. One that cannot be read is told of; the words name it all the same.
    async fn illustrated(&self, mut op: Op, images: Vec<PathBuf>) -> Op {
        let read = move || -> Vec<_> { images.iter().map(|path| image::read(path)).collect() };
        let read = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        for image in read {
            match (image, &mut op) {
                (Ok(part), Op::Say(message) | Op::Steer(message)) => message.parts.push(part),
                (Ok(_), _) => {}
                (Err(failure), _) => self.tell(FromHost::Warned(failure.to_string())).await,
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
            Err(failure) => vec![Err(failure)],
        };
        for skill in told {
            let text = match skill {
                Ok(text) => text,
                Err(failure) => {
                    self.tell(FromHost::Warned(failure.to_string())).await;
                    format!("(it is not here: {})", failure.message)
                }
            };
            message.parts.push(Part::text(skill::behind_words(&text)));
        }
        op
    }

    async fn pasted(&self, pasted: Result<Outcome<PathBuf>, tokio::task::JoinError>) {
        let image = match pasted {
            Ok(pasted) => pasted.map_err(|failure| failure.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.tell(FromHost::Image(image)).await;
    }

    async fn run(&mut self, command: &'static Command, arguments: &str, talk: &mut Talk) {
        if command.verb == Verb::Resume && arguments.is_empty() {
            let offer = earlier::offer(&**self.archive(), command).await;
            return self.tell(offer).await;
        }
        if command.verb == Verb::Rewind && arguments.is_empty() {
            let offer = earlier::offer_messages(&**self.archive(), talk.session.id(), command);
            return self.tell(offer.await).await;
        }
        let here = Here {
            session: talk.session.id().clone(),
            is_busy: talk.is_busy,
        };
        if command.verb == Verb::Skills {
            self.looking.spawn(self.host.skill_names());
        }
        let done = self.host.run(command, arguments, &here).await;
        if let Some(told) = done.told {
            self.tell(FromHost::Told(told)).await;
        }
        match done.then {
            Then::Nothing => {}
            Then::Send(op) => send(talk, op).await,
            Then::Open(start) => go(talk, Next::Open(start)).await,
            Then::Leave => go(talk, Next::Leave).await,
            Then::Attach { image, words } => {
                if !words.is_empty() {
                    self.tell(FromHost::Fill(format!("{words} "))).await;
                }
                self.tell(FromHost::Image(Ok(image))).await;
            }
            Then::ShowReasoning(is_shown) => {
                let reasoning = reasoning(self.base, is_shown).unwrap_or_default();
                self.tell(FromHost::Reasoning(reasoning)).await;
            }
            Then::WhenBusy(when_busy) => {
                self.tell(FromHost::BusyInput(busy_input(when_busy))).await;
            }
        }
    }

    fn archive(&self) -> &Arc<SqliteStore> {
        &self.host.prepared().wired.archive
    }

    /// Opens the person's editor; the terminal is theirs meanwhile, and the session works on.
    fn edit(&mut self, text: String) {
        let environment = self.base.environment.clone();
        let folder = self.base.home.directory().to_owned();
        self.editing
            .spawn_blocking(move || editor::edit(&environment, &folder, &text));
    }

    async fn edited(&mut self, edited: Result<Outcome<String>, tokio::task::JoinError>) {
        let edited = match edited {
            Ok(edited) => edited.map_err(|failure| failure.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.tell(FromHost::Edited(edited)).await;
    }

    /// Tells the interface something. When it is gone, nobody needs to know.
    async fn tell(&self, told: FromHost) {
        let _ = self.face.send(told).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_that_cut_rows_off_are_known_by_what_they_set() {
        let of =
            |pairs: &[(&str, &str)]| narrowing(&Environment::from_pairs(pairs.iter().copied()));
        assert_eq!(of(&[("TERM", "xterm-256color")]), Narrowing::Breaks);
        assert_eq!(of(&[("XTERM_VERSION", "XTerm(390)")]), Narrowing::Cuts);
        assert_eq!(of(&[("STY", "12.pts-0")]), Narrowing::Cuts);
        assert_eq!(of(&[("TERM", "st-256color")]), Narrowing::Cuts);
        let inside = [("XTERM_VERSION", "XTerm(390)"), ("TMUX", "/tmp/t")];
        assert_eq!(of(&inside), Narrowing::Breaks);
    }
}
