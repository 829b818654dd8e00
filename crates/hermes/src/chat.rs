//! `hermes --plain`: a conversation in plain lines, for terminals and people that the interface does not serve.

mod asking;
mod line;

use std::io::IsTerminal as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::json_lines::JsonLines;
use hermes_core::process;
use hermes_core::quick::QuickCommands;
use hermes_core::text::{self, printable};
use hermes_core::{
    Event, Events, Followed, Message, Op, Role, RunningSession, SessionHandle, skill,
};
use hermes_runtime::commands::{Here, WhenBusy};
use hermes_runtime::{Conversation, Start};
use tokio::time::{Instant, sleep};

use crate::args::RunFlags;
use crate::base::Base;
use crate::countdown::Countdown;
use crate::failure::{Failure, Outcome};
use crate::tui_bridge;

use crate::keyboard::{Keyboard, Typed};
use crate::logging;
use crate::output::{note, print};
use crate::prepare::{Place, Prepared};
use crate::quick;
use crate::render::{Live, Renderer};
use crate::signals::Signals;
use crate::style::Style;
use crate::turn::give_up;
use asking::Asking;
use hermes_core::Audience;

/// How long a turn may take to come to its end when somebody wants the program to end.
const ENDING_PATIENCE: Duration = Duration::from_secs(3);
/// How many of the last messages a resumed conversation shows.
const SHOWN_MESSAGES: usize = 6;

/// Chats until the user leaves.
pub async fn run(
    base: Arc<Base>,
    flags: &RunFlags,
    source: &str,
    question: Option<String>,
) -> Outcome<()> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage("standard input is not a terminal, so there is nobody to chat with")
            .hint("for scripts: hermes -z \"PROMPT\", or `hermes -z -` to read the prompt from standard input"));
    }
    if flags.usage_file.is_some() {
        return Err(
            Failure::usage("--usage-file reports on one question, not on a chat")
                .hint("use it with -z or `chat -q`"),
        );
    }
    let place = Place::choose(&base, flags, Audience::Person, source).await?;
    let mut prepared = Prepared::new(place).await?;
    let start = prepared.start.clone();
    let host = &mut prepared.conversation;
    if tui_bridge::fits(&base, flags) {
        let outcome = tui_bridge::run(&base, host, start, question).await;
        prepared.leave().await;
        return outcome;
    }
    let outcome = match Chat::new(&base, flags, host) {
        Ok(mut chat) => {
            chat.question = question;
            let outcome = chat.converse(start).await;
            // A terminal that hangs up ends what is typed and what is shown before it says so.
            match chat.signals.ending_soon().await {
                Some(ending) => Err(ending),
                None => outcome,
            }
        }
        Err(failure) => Err(failure),
    };
    prepared.leave().await;
    outcome
}

/// Lets the MCP servers follow their settings. Returns what the person should know.
pub async fn follow_settings(conversation: &mut Conversation) -> Option<String> {
    conversation.follow_settings().await.unwrap_or_else(|error| {
        let failure = Failure::from(error);
        Some(format!(
            "the settings have changed and cannot be used; the MCP servers stay as they are: {failure}"
        ))
    })
}

struct Chat<'a> {
    host: &'a mut Conversation,
    when_busy: WhenBusy,
    quick_commands: QuickCommands,
    renderer: Renderer,
    /// Of the answers and the prompt.
    out: Style,
    /// Of everything else.
    err: Style,
    keyboard: Keyboard,
    signals: Signals,
    /// What is said first, before the person types anything.
    question: Option<String>,
}

/// Where a conversation goes from here.
enum Next {
    Do(Op),
    Open(Start),
    Leave,
}

impl<'a> Chat<'a> {
    fn new(base: &Base, flags: &RunFlags, host: &'a mut Conversation) -> Outcome<Self> {
        let out = Style::of(&std::io::stdout(), &base.environment);
        let err = Style::of(&std::io::stderr(), &base.environment);
        let show_reasoning = base.settings.bool("display.show_reasoning")?;
        let renderer = if flags.json {
            Renderer::Json(JsonLines::hiding(
                host.setup().ports.safety.hidden_keys.clone(),
            ))
        } else {
            Renderer::Live(Live::new(err, show_reasoning))
        };
        Ok(Self {
            host,
            when_busy: WhenBusy::of(base)?,
            quick_commands: quick::commands(base),
            renderer,
            out,
            err,
            keyboard: Keyboard::new(),
            signals: Signals::listen()?,
            question: None,
        })
    }

    async fn converse(&mut self, start: Start) -> Outcome<()> {
        self.greet();
        let mut opened = self.host.open(start).await?;
        let mut last = None;
        loop {
            let session = opened.handle.id().clone();
            // The same session again, with another model say, is no news.
            if last.as_ref() != Some(&session) {
                self.introduce(&opened, last.is_some());
            }
            let Some(start) = self.one_session(opened).await? else {
                return Ok(());
            };
            last = Some(session.clone());
            opened = match self.host.open(start).await {
                Ok(opened) => opened,
                Err(failure) => {
                    note(&self.err.yellow(Failure::from(failure)));
                    self.host.open(Start::Resume(session)).await?
                }
            };
        }
    }

    fn introduce(&self, opened: &RunningSession, is_another: bool) {
        match &opened.resumed {
            Some(resumed) => self.show_past(&resumed.messages),
            None if is_another => note(&self.err.dim("a new conversation")),
            None => {}
        }
    }

    fn greet(&self) {
        let setup = self.host.setup();
        let model = setup.ports.model.name();
        let about = self.err.dim(format!("· {model} · /help for help"));
        note(&format!("{} {about}", self.err.bold("Hermes")));
        for warning in &setup.warnings {
            note(&self.err.yellow(format!("warning: {warning}")));
        }
    }

    /// Talks in one session until the user wants another one or none.
    async fn one_session(&mut self, opened: RunningSession) -> Outcome<Option<Start>> {
        let RunningSession {
            handle: session,
            mut events,
            resumed,
            ..
        } = opened;
        let mut was_used = resumed.is_some();
        drop(resumed);
        self.renderer.begin(session.id())?;
        let start = loop {
            let wanted = self.until_idle(session.as_ref(), &mut events).await?;
            let next = match wanted {
                Some(next) => next,
                None => match self.prompt(session.as_ref(), &mut events).await? {
                    Some(next) => next,
                    None => continue,
                },
            };
            match next {
                Next::Do(op) => {
                    if matches!(op, Op::Say(_))
                        && let Some(told) = follow_settings(self.host).await
                    {
                        note(&printable(&told));
                    }
                    was_used |= matches!(op, Op::Say(_) | Op::Steer(_));
                    session.send(self.host.with_heard(op)).await;
                }
                Next::Open(start) => break Some(start),
                Next::Leave => break None,
            }
        };
        if was_used && start.is_none() {
            let id = session.id();
            note(
                &self
                    .err
                    .dim(format!("hermes -r {id} goes on with this conversation")),
            );
        }
        self.host.close(session.id()).await?;
        Ok(start)
    }

    /// Asks the user for something to do. Returns nothing when the session begins a turn by itself.
    async fn prompt(
        &mut self,
        session: &dyn SessionHandle,
        events: &mut Events,
    ) -> Outcome<Option<Next>> {
        self.signals.reset();
        if let Some(question) = self.question.take() {
            let here = Here {
                session: session.id().clone(),
                is_busy: false,
                can_choose: false,
                surface: hermes_core::command::Surface::Terminal,
            };
            if let Some(next) = self.next(&question, here).await {
                return Ok(Some(next));
            }
        }
        loop {
            // It may have come while the last turn ran.
            if self.signals.was_terminated() {
                return Ok(Some(Next::Leave));
            }
            if !matches!(self.renderer, Renderer::Json(_)) {
                print(&self.out.cyan("› "))?;
            }
            let typed = tokio::select! {
                typed = self.keyboard.next() => typed,
                _ = self.signals.interrupted() => Typed::End,
                notice = session.news() => {
                    note(&self.err.dim(printable(&notice)));
                    return Ok(Some(Next::Do(Op::Say(process::news(notice)))));
                }
                followed = turn_begins(events) => {
                    self.renderer.show(&followed.ok_or_else(|| gone(session))?)?;
                    return Ok(None);
                }
            };
            if self.signals.was_terminated() {
                return Ok(Some(Next::Leave));
            }
            let Some(line) = self.line(typed) else {
                return Ok(Some(Next::Leave));
            };
            let here = Here {
                session: session.id().clone(),
                is_busy: false,
                can_choose: false,
                surface: hermes_core::command::Surface::Terminal,
            };
            if let Some(next) = self.next(&line, here).await {
                return Ok(Some(next));
            }
        }
    }

    /// Shows what happens until it is the user's turn, and takes what they type meanwhile. Returns where they want to go.
    async fn until_idle(
        &mut self,
        session: &dyn SessionHandle,
        events: &mut Events,
    ) -> Outcome<Option<Next>> {
        self.signals.reset();
        let is_for_program = matches!(self.renderer, Renderer::Json(_));
        let mut asking = Asking::new(self.err, is_for_program);
        let mut countdown = Countdown::beside(&self.renderer);
        let mut next = None;
        let mut patience = pin!(sleep(Duration::MAX));
        loop {
            tokio::select! {
                followed = events.next() => {
                    let followed = followed.ok_or_else(|| gone(session))?;
                    if followed.event() == Some(&Event::Idle) {
                        return Ok(next);
                    }
                    countdown.clear();
                    self.renderer.show(&followed)?;
                    if let Some(event) = followed.into_event() {
                        logging::log(session.id(), &event);
                        countdown.heed(&event);
                        asking.heed(event)?;
                    }
                }
                () = countdown.tick() => {}
                interrupted = self.signals.interrupted() => {
                    if interrupted.is_repeated() {
                        let failure = give_up(events, session.id()).await;
                        return Err(self.signals.ending().unwrap_or(failure));
                    }
                    if self.signals.was_terminated() {
                        patience.as_mut().reset(Instant::now() + ENDING_PATIENCE);
                    }
                    session.interrupt().await;
                }
                () = &mut patience => {
                    let failure = give_up(events, session.id()).await;
                    return Err(self.signals.ending().unwrap_or(failure));
                }
                typed = self.keyboard.next() => {
                    let Some(typed) = asking.hear(session, typed).await? else {
                        continue;
                    };
                    if let Some(leaving) = self.meanwhile(session, typed, &mut asking).await {
                        next = Some(leaving);
                    }
                }
            }
        }
    }

    /// Does what is typed while something runs. Who leaves stops it first.
    async fn meanwhile(
        &mut self,
        session: &dyn SessionHandle,
        typed: Typed,
        asking: &mut Asking,
    ) -> Option<Next> {
        let line = self.line(typed);
        if let Some(line) = &line
            && asking.answered(session, line).await
        {
            return None;
        }
        let here = Here {
            session: session.id().clone(),
            is_busy: true,
            can_choose: false,
            surface: hermes_core::command::Surface::Terminal,
        };
        let next = match line {
            Some(line) => self.next(&line, here).await?,
            None => Next::Leave,
        };
        match next {
            Next::Do(op) => {
                self.do_meanwhile(session, op).await;
                None
            }
            leaving => {
                session.interrupt().await;
                Some(leaving)
            }
        }
    }

    async fn do_meanwhile(&self, session: &dyn SessionHandle, op: Op) {
        if matches!(op, Op::Say(_)) && self.when_busy == WhenBusy::Interrupt {
            session.interrupt().await;
        }
        session.send(op).await;
    }

    /// Returns what was typed, or nothing at its end.
    fn line(&self, typed: Typed) -> Option<String> {
        match typed {
            Typed::Text(line) => Some(line),
            Typed::End => None,
            Typed::TooLong => {
                let advice = "a line of more than 4,095 bytes cannot be typed here; save it to a file and name it \
                              with @file:PATH";
                note(&self.err.yellow(advice));
                Some(String::new())
            }
        }
    }

    fn show_past(&self, messages: &[Message]) {
        let is_spoken =
            |message: &&Message| message.role != Role::Tool && !message.text().trim().is_empty();
        let spoken = messages.iter().rev().filter(is_spoken);
        let shown: Vec<_> = spoken.take(SHOWN_MESSAGES).collect();
        for message in shown.into_iter().rev() {
            let who = if message.role == Role::User {
                "you"
            } else {
                "hermes"
            };
            let words = message.text();
            let words = text::shorten(&printable(skill::as_typed(words.trim())), 400);
            note(&self.err.dim(format!("{who}: {words}")));
        }
    }
}

/// Waits for a turn that nobody typed: subagents in the background have come to rest. What they do before that would
/// only disturb who is typing.
async fn turn_begins(events: &mut Events) -> Option<Followed> {
    loop {
        let followed = events.next().await?;
        if matches!(
            followed.event(),
            Some(Event::Notice { .. } | Event::TurnStarted { .. })
        ) {
            return Some(followed);
        }
    }
}

pub fn gone(session: &dyn SessionHandle) -> Failure {
    Failure::new("the session stopped unexpectedly").hint(format!(
        "this is a bug; everything said so far is saved: hermes -r {}",
        session.id()
    ))
}
