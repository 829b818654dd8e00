//! `hermes`: a conversation in plain lines, until the terminal interface takes its place.

use std::collections::VecDeque;
use std::io::IsTerminal as _;

use hermes_agent::{Opened, Session};
use hermes_core::text::{self, escaped, printable};
use hermes_core::{Event, Message, Op, Question, Response, Role, UserMessage, Verdict};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::{Failure, Outcome, code};
use crate::interview::{Heard, Interview};
use crate::keyboard::{Keyboard, Typed};
use crate::output::{note, print};
use crate::prepare::Prepared;
use crate::render::{Live, Renderer};
use crate::signals::Signals;
use crate::style::Style;
use crate::turn::{close, give_up};
use crate::wiring::Audience;

const HELP: &str = "\
/new      start a new conversation
/stop     stop the turn that runs, and forget what waits (Ctrl-C does the same)
/decline  do not answer what is asked
/steer T  tell the turn that runs something (a line without a slash waits for its end)
/help     this list
/quit     leave (Ctrl-D does the same)";

/// How many of the last messages a resumed conversation shows.
const SHOWN_MESSAGES: usize = 6;

/// Chats until the user leaves.
pub async fn run(base: &Base, flags: &RunFlags, source: &str) -> Outcome<()> {
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
    let prepared = Prepared::new(base, flags, Audience::Person, source).await?;
    let outcome = match Chat::new(base, flags, &prepared) {
        Ok(mut chat) => chat.converse().await,
        Err(failure) => Err(failure),
    };
    prepared.leave(base).await;
    outcome
}

struct Chat<'a> {
    prepared: &'a Prepared,
    renderer: Renderer,
    /// Of the answers and the prompt.
    out: Style,
    /// Of everything else.
    err: Style,
    keyboard: Keyboard,
    signals: Signals,
}

/// What a line from the user asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Say(String),
    Steer(String),
    Stop,
    Decline,
    New,
    Help,
    Quit,
    Unknown(String),
    Nothing,
}

/// What waits for an answer, oldest first.
#[derive(Debug, Default)]
struct Pending {
    question: Option<Question>,
    interviews: VecDeque<Interview>,
}

/// Where a conversation goes from here.
enum Next {
    Say(String),
    New,
    Leave,
}

impl<'a> Chat<'a> {
    fn new(base: &Base, flags: &RunFlags, prepared: &'a Prepared) -> Outcome<Self> {
        let out = Style::of(&std::io::stdout(), &base.environment);
        let err = Style::of(&std::io::stderr(), &base.environment);
        let show_reasoning = base.settings.bool("display.show_reasoning")?;
        let renderer = match flags.json {
            true => Renderer::Json,
            false => Renderer::Live(Live::new(err, show_reasoning)),
        };
        Ok(Self {
            prepared,
            renderer,
            out,
            err,
            keyboard: Keyboard::new(),
            signals: Signals::listen()?,
        })
    }

    async fn converse(&mut self) -> Outcome<()> {
        self.greet();
        let mut start = self.prepared.start();
        loop {
            let wired = &self.prepared.wired;
            let opened = Session::open(wired.ports.clone(), wired.settings.clone(), start).await?;
            match self.one_session(opened).await? {
                Next::New => {
                    note(&self.err.dim("a new conversation"));
                    start = self.prepared.start_new();
                }
                Next::Say(_) | Next::Leave => return Ok(()),
            }
        }
    }

    fn greet(&self) {
        let model = self.prepared.wired.ports.model.name();
        let about = self.err.dim(format!("· {model} · /help for help"));
        note(&format!("{} {about}", self.err.bold("Hermes")));
        for warning in &self.prepared.wired.warnings {
            note(&self.err.yellow(format!("warning: {warning}")));
        }
    }

    /// Talks in one session until the user wants another one or none.
    async fn one_session(&mut self, opened: Opened) -> Outcome<Next> {
        let Opened {
            session,
            mut events,
            task,
            resumed,
        } = opened;
        let mut tasks = JoinSet::new();
        tasks.spawn(task);
        let mut was_used = resumed.is_some();
        if let Some(resumed) = &resumed {
            self.show_past(&resumed.messages);
        }
        let next = loop {
            let wanted = self.until_idle(&session, &mut events).await?;
            let next = match wanted {
                Some(next) => next,
                None => self.prompt().await?,
            };
            match next {
                Next::Say(text) => was_used |= session.say(text).await,
                leaving => break leaving,
            }
        };
        if was_used {
            let id = session.id();
            note(
                &self
                    .err
                    .dim(format!("hermes -r {id} goes on with this conversation")),
            );
        }
        close(session, tasks).await?;
        Ok(next)
    }

    /// Asks the user for something to do.
    async fn prompt(&mut self) -> Outcome<Next> {
        self.signals.reset();
        loop {
            if !matches!(self.renderer, Renderer::Json) {
                print(&self.out.cyan("› "))?;
            }
            let typed = tokio::select! {
                typed = self.keyboard.next() => typed,
                _ = self.signals.interrupted() => Typed::End,
            };
            if self.signals.was_terminated() {
                return Err(Failure {
                    code: code::TERMINATED,
                    ..Failure::new("")
                });
            }
            match self.wish(typed) {
                Wish::Say(text) | Wish::Steer(text) => return Ok(Next::Say(text)),
                Wish::New => return Ok(Next::New),
                Wish::Quit => return Ok(Next::Leave),
                Wish::Help => note(HELP),
                Wish::Unknown(name) => self.unknown(&name),
                Wish::Stop | Wish::Decline | Wish::Nothing => {}
            }
        }
    }

    /// Shows what happens until it is the user's turn, and takes what they type meanwhile. Returns where they want to go.
    async fn until_idle(
        &mut self,
        session: &Session,
        events: &mut mpsc::Receiver<Event>,
    ) -> Outcome<Option<Next>> {
        self.signals.reset();
        let mut pending = Pending::default();
        let mut next = None;
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    None => return Err(gone(session)),
                    Some(Event::Idle) => return Ok(next),
                    Some(event) => {
                        self.renderer.show(&event)?;
                        self.note_pending(event, &mut pending)?;
                    }
                },
                interrupted = self.signals.interrupted() => {
                    if interrupted.is_repeated() {
                        return Err(give_up(events, session.id()).await);
                    }
                    session.interrupt().await;
                }
                typed = self.keyboard.next() => {
                    let Some(typed) = self.interviewed(session, typed, &mut pending).await? else {
                        continue;
                    };
                    let wish = self.wish(typed);
                    if let Some(leaving) = self.meanwhile(session, wish, &mut pending.question).await {
                        next = Some(leaving);
                    }
                }
            }
        }
    }

    /// Keeps in mind what an event asks for, and asks it unless something else is being asked.
    fn note_pending(&self, event: Event, pending: &mut Pending) -> Outcome<()> {
        match event {
            Event::Asked(asked) => {
                self.show_question(&asked)?;
                pending.question = Some(asked);
            }
            Event::Enquired(enquiry) => {
                pending.interviews.push_back(Interview::new(enquiry));
                if pending.interviews.len() == 1 {
                    self.introduce(pending)?;
                }
            }
            Event::EnquiryClosed { enquiry } => {
                return self.close(pending, |interview| *interview.id() == enquiry);
            }
            Event::CallFinished { call, .. } => {
                pending.question = None;
                return self.close(pending, |interview| interview.enquiry().call == call);
            }
            _ => {}
        }
        Ok(())
    }

    /// Forgets interviews that are over. The person may have been in the middle of one.
    fn close(&self, pending: &mut Pending, is_over: impl Fn(&Interview) -> bool) -> Outcome<()> {
        let was_asking = pending.interviews.front().is_some_and(&is_over);
        pending.interviews.retain(|interview| !is_over(interview));
        if was_asking {
            note(
                &self
                    .err
                    .yellow("\n  too late: this needs no answer any more"),
            );
            self.introduce(pending)?;
        }
        Ok(())
    }

    fn introduce(&self, pending: &Pending) -> Outcome<()> {
        let Some(interview) = pending.interviews.front() else {
            return Ok(());
        };
        for line in interview.introduction() {
            note(&self.err.yellow(line));
        }
        self.ask_for(&interview.prompt())
    }

    /// Takes a line for the interview that goes on. Returns it if there is none, or if it is a command.
    async fn interviewed(
        &self,
        session: &Session,
        typed: Typed,
        pending: &mut Pending,
    ) -> Outcome<Option<Typed>> {
        let (Typed::Text(line), Some(interview)) = (&typed, pending.interviews.front_mut()) else {
            return Ok(Some(typed));
        };
        let heard = match wish(line) {
            Wish::Say(_) | Wish::Nothing | Wish::Unknown(_) => interview.hear(line),
            Wish::Decline => Heard::Done(Response::Declined { reason: None }),
            _ => return Ok(Some(typed)),
        };
        match heard {
            Heard::Next => self.ask_for(&interview.prompt())?,
            Heard::Refused(reason) => {
                note(&self.err.yellow(format!("  {}", escaped(&reason))));
                self.ask_for(&interview.prompt())?;
            }
            Heard::Done(response) => {
                let id = interview.id().clone();
                pending.interviews.pop_front();
                session.respond(id, response).await;
                self.introduce(pending)?;
            }
        }
        Ok(None)
    }

    /// Does what is typed while something runs.
    async fn meanwhile(
        &self,
        session: &Session,
        wish: Wish,
        question: &mut Option<Question>,
    ) -> Option<Next> {
        match (wish, question.take()) {
            (Wish::Say(text), Some(asked)) => {
                session.answer(asked.call, verdict(&text)).await;
            }
            (Wish::Nothing | Wish::Decline, Some(asked)) => {
                session.answer(asked.call, Verdict::Deny).await;
            }
            (Wish::Say(text), None) => {
                session.say(text).await;
                note(&self.err.dim("  (waits for the end of this turn)"));
            }
            (Wish::Steer(text), _) => {
                session.send(Op::Steer(UserMessage::text(text))).await;
            }
            (Wish::Stop, _) => {
                session.interrupt().await;
            }
            (Wish::Quit, _) => {
                session.interrupt().await;
                return Some(Next::Leave);
            }
            (Wish::New, _) => {
                session.interrupt().await;
                return Some(Next::New);
            }
            (Wish::Help, asked) => {
                note(HELP);
                *question = asked;
            }
            (Wish::Unknown(name), asked) => {
                self.unknown(&name);
                *question = asked;
            }
            (Wish::Nothing | Wish::Decline, None) => {}
        }
        None
    }

    fn wish(&self, typed: Typed) -> Wish {
        match typed {
            Typed::Text(line) => wish(&line),
            Typed::End => Wish::Quit,
            Typed::TooLong => {
                let advice = "a line of more than 4,095 bytes cannot be typed here; save it to a file and name it \
                              with @file:PATH";
                note(&self.err.yellow(advice));
                Wish::Nothing
            }
        }
    }

    fn unknown(&self, name: &str) {
        let name = printable(name);
        note(&format!(
            "there is no command `/{name}` here; /help lists them"
        ));
    }

    /// Shows exactly what would run: what cannot be seen is spelt out, so that nothing can hide.
    fn show_question(&self, question: &Question) -> Outcome<()> {
        let (tool, what) = (escaped(&question.tool), escaped(&question.what));
        note(&self.err.yellow(format!("  {tool} wants to run: {what}")));
        note(&self.err.yellow(format!("  {}", escaped(&question.reason))));
        self.ask_for("  allow? [y]es, for the [s]ession, [N]o: ")
    }

    /// Shows what a line is wanted for; beside the events, when those are for a program.
    fn ask_for(&self, prompt: &str) -> Outcome<()> {
        match self.renderer {
            Renderer::Json => {
                note(prompt);
                Ok(())
            }
            _ => print(prompt),
        }
    }

    fn show_past(&self, messages: &[Message]) {
        let is_spoken =
            |message: &&Message| message.role != Role::Tool && !message.text().trim().is_empty();
        let spoken: Vec<_> = messages.iter().filter(is_spoken).collect();
        for message in &spoken[spoken.len().saturating_sub(SHOWN_MESSAGES)..] {
            let who = if message.role == Role::User {
                "you"
            } else {
                "hermes"
            };
            let words = text::shorten(&printable(message.text().trim()), 400);
            note(&self.err.dim(format!("{who}: {words}")));
        }
    }
}

fn gone(session: &Session) -> Failure {
    Failure::new("the session stopped unexpectedly").hint(format!(
        "this is a bug; everything said so far is saved: hermes -r {}",
        session.id()
    ))
}

fn wish(line: &str) -> Wish {
    let line = line.trim();
    let Some(command) = line.strip_prefix('/') else {
        return if line.is_empty() {
            Wish::Nothing
        } else {
            Wish::Say(line.to_owned())
        };
    };
    let (name, rest) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    match name {
        // A path is not a command.
        _ if name.contains('/') => Wish::Say(line.to_owned()),
        "new" | "reset" | "clear" => Wish::New,
        "quit" | "exit" => Wish::Quit,
        "help" => Wish::Help,
        "stop" => Wish::Stop,
        "decline" => Wish::Decline,
        "steer" if !rest.trim().is_empty() => Wish::Steer(rest.trim().to_owned()),
        _ => Wish::Unknown(name.to_owned()),
    }
}

/// Anything but a clear yes is a no.
fn verdict(line: &str) -> Verdict {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Verdict::Once,
        "s" | "session" => Verdict::Session,
        _ => Verdict::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_only_when_they_look_like_one() {
        let path = "/etc/hosts has what?";
        assert_eq!(wish(path), Wish::Say(path.into()));
        assert_eq!(wish(" /quit "), Wish::Quit);
        assert_eq!(wish("/steer use tabs"), Wish::Steer("use tabs".into()));
        assert_eq!(wish("/stee"), Wish::Unknown("stee".into()));
        assert_eq!(wish("   "), Wish::Nothing);
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        assert_eq!(verdict("y"), Verdict::Once);
        assert_eq!(verdict("S"), Verdict::Session);
        assert_eq!(
            [verdict(""), verdict("ok?"), verdict("no")],
            [Verdict::Deny; 3]
        );
    }
}
