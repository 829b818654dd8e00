//! `hermes --plain`: a conversation in plain lines, for terminals and people that the interface does not serve.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::path::Path;

use hermes_agent::{Opened, Session, SessionStart};
use hermes_core::command::{self, Line, Surface, Verb};
use hermes_core::interview::{Heard, Interview};
use hermes_core::quick::{Own, QuickCommands};
use hermes_core::skill::{self, SkillNames};
use hermes_core::text::{self, escaped, printable};
use hermes_core::{
    Event, Message, Op, Part, Question, Response, Role, UserMessage, Verdict, wording,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::args::RunFlags;
use crate::base::Base;
use crate::face;
use crate::failure::{Failure, Outcome, code};
use crate::host::{Here, Host, Then, WhenBusy};
use crate::image;
use crate::keyboard::{Keyboard, Typed};
use crate::output::{note, print};
use crate::prepare::Prepared;
use crate::quick;
use crate::render::{Live, Renderer};
use crate::signals::Signals;
use crate::style::Style;
use crate::turn::{close, give_up};
use crate::wiring::Audience;

/// How many of the last messages a resumed conversation shows.
const SHOWN_MESSAGES: usize = 6;
/// Lines of a change that are shown before a question: more would push it off the screen. The rest is a command away.
const SHOWN_CHANGE_LINES: usize = 60;

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
    let mut host = Host::new(base, flags, prepared);
    if face::fits(base, flags) {
        let outcome = face::run(base, &mut host).await;
        host.leave().await;
        return outcome;
    }
    let outcome = match Chat::new(base, flags, &mut host) {
        Ok(mut chat) => chat.converse().await,
        Err(failure) => Err(failure),
    };
    host.leave().await;
    outcome
}

struct Chat<'a, 'b> {
    host: &'a mut Host<'b>,
    when_busy: WhenBusy,
    quick_commands: QuickCommands,
    renderer: Renderer,
    /// Of the answers and the prompt.
    out: Style,
    /// Of everything else.
    err: Style,
    keyboard: Keyboard,
    signals: Signals,
}

/// What waits for an answer, oldest first.
#[derive(Debug, Default)]
struct Pending {
    question: Option<Question>,
    interviews: VecDeque<Interview>,
}

/// Where a conversation goes from here.
enum Next {
    Do(Op),
    Open(SessionStart),
    Leave,
}

impl<'a, 'b> Chat<'a, 'b> {
    fn new(base: &Base, flags: &RunFlags, host: &'a mut Host<'b>) -> Outcome<Self> {
        let out = Style::of(&std::io::stdout(), &base.environment);
        let err = Style::of(&std::io::stderr(), &base.environment);
        let show_reasoning = base.settings.bool("display.show_reasoning")?;
        let renderer = match flags.json {
            true => Renderer::Json,
            false => Renderer::Live(Live::new(err, show_reasoning)),
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
        })
    }

    async fn converse(&mut self) -> Outcome<()> {
        self.greet();
        let mut opened = self.host.open(self.host.prepared().start()).await?;
        let mut last = None;
        loop {
            let session = opened.session.id().clone();
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
                    note(&self.err.yellow(failure));
                    self.host.open(SessionStart::Resume(session)).await?
                }
            };
        }
    }

    fn introduce(&self, opened: &Opened, is_another: bool) {
        match &opened.resumed {
            Some(resumed) => self.show_past(&resumed.messages),
            None if is_another => note(&self.err.dim("a new conversation")),
            None => {}
        }
    }

    fn greet(&self) {
        let wired = &self.host.prepared().wired;
        let model = wired.ports.model.name();
        let about = self.err.dim(format!("· {model} · /help for help"));
        note(&format!("{} {about}", self.err.bold("Hermes")));
        for warning in &wired.warnings {
            note(&self.err.yellow(format!("warning: {warning}")));
        }
    }

    /// Talks in one session until the user wants another one or none.
    async fn one_session(&mut self, opened: Opened) -> Outcome<Option<SessionStart>> {
        let Opened {
            session,
            mut events,
            task,
            resumed,
        } = opened;
        let mut tasks = JoinSet::new();
        tasks.spawn(task);
        let mut was_used = resumed.is_some();
        drop(resumed);
        let start = loop {
            let wanted = self.until_idle(&session, &mut events).await?;
            let next = match wanted {
                Some(next) => next,
                None => match self.prompt(&session, &mut events).await? {
                    Some(next) => next,
                    None => continue,
                },
            };
            match next {
                Next::Do(op) => {
                    if matches!(op, Op::Say(_))
                        && let Some(told) = self.host.follow_settings().await
                    {
                        note(&printable(&told));
                    }
                    was_used |= matches!(op, Op::Say(_) | Op::Steer(_));
                    session.send(op).await;
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
        close(session, tasks).await?;
        Ok(start)
    }

    /// Asks the user for something to do. Returns nothing when the session begins a turn by itself.
    async fn prompt(
        &mut self,
        session: &Session,
        events: &mut mpsc::Receiver<Event>,
    ) -> Outcome<Option<Next>> {
        self.signals.reset();
        loop {
            if !matches!(self.renderer, Renderer::Json) {
                print(&self.out.cyan("› "))?;
            }
            let wired = &self.host.prepared().wired;
            let typed = tokio::select! {
                typed = self.keyboard.next() => typed,
                _ = self.signals.interrupted() => Typed::End,
                notice = wired.processes.notice(session.id()) => {
                    let notice = wired.ports.safety.hide_keys(notice);
                    note(&self.err.dim(printable(&notice)));
                    return Ok(Some(Next::Do(Op::Say(UserMessage::text(notice)))));
                }
                event = turn_begins(events) => {
                    self.renderer.show(&event.ok_or_else(|| gone(session))?)?;
                    return Ok(None);
                }
            };
            if self.signals.was_terminated() {
                return Err(Failure {
                    code: code::TERMINATED,
                    ..Failure::new("")
                });
            }
            let Some(line) = self.line(typed) else {
                return Ok(Some(Next::Leave));
            };
            let here = Here {
                session: session.id().clone(),
                is_busy: false,
            };
            if let Some(next) = self.next(&line, here).await {
                return Ok(Some(next));
            }
        }
    }

    /// Does what a line asks for, and returns where it leads.
    async fn next(&mut self, line: &str, here: Here) -> Option<Next> {
        let line = match self.quick_commands.read(line, Surface::Terminal) {
            Own::Line(line) => line,
            Own::Exec(command) => {
                note(&printable(&self.host.shell(command).await));
                return None;
            }
        };
        let skills = match line.trim_start().starts_with('/') {
            true => self.host.skill_names().await,
            false => SkillNames::NONE,
        };
        let done = match command::read(&line, Surface::Terminal, &skills) {
            Line::Words("") => return None,
            Line::Words(text) => return Some(self.said(UserMessage::text(text), here.is_busy)),
            Line::Skills { names, words } => return self.with_skills(words, &names, here).await,
            Line::Command { command, arguments } => self.host.run(command, arguments, &here).await,
            Line::Unknown { name, near } => {
                self.unknown(name, &near);
                return None;
            }
            Line::Ambiguous { name, names } => {
                note(&format!("/{name} could be /{}", names.join(" or /")));
                return None;
            }
        };
        if let Some(told) = done.told {
            note(&printable(&told));
        }
        match done.then {
            Then::Nothing => None,
            Then::Send(op) => Some(Next::Do(op)),
            Then::Open(start) => Some(Next::Open(start)),
            Then::Leave => Some(Next::Leave),
            Then::Attach { image, words } => self.with_image(&image, &words, here.is_busy),
            Then::ShowReasoning(shows) => {
                if let Renderer::Live(live) = &mut self.renderer {
                    live.show_reasoning(shows);
                }
                None
            }
            Then::WhenBusy(when_busy) => {
                self.when_busy = when_busy;
                None
            }
        }
    }

    /// Words with skills behind them, if all of those can be read.
    async fn with_skills(&self, words: &str, names: &[&str], here: Here) -> Option<Next> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let told = self.host.skills(names, here.session).await;
        let told: Outcome<Vec<String>> = told.and_then(|told| told.into_iter().collect());
        let skills = match told {
            Ok(skills) => skills,
            Err(failure) => {
                note(&printable(&failure.to_string()));
                return None;
            }
        };
        let mut message = UserMessage::text(words);
        let skills = skills
            .iter()
            .map(|text| Part::text(skill::behind_words(text)));
        message.parts.extend(skills);
        Some(self.said(message, here.is_busy))
    }

    fn with_image(&self, path: &Path, words: &str, is_busy: bool) -> Option<Next> {
        let image = match image::read(path) {
            Ok(image) => image,
            Err(failure) => {
                note(&printable(&failure.to_string()));
                return None;
            }
        };
        let words = format!("{words} [image: {}]", path.display());
        let mut message = UserMessage::text(words.trim_start());
        message.parts.push(image);
        Some(self.said(message, is_busy))
    }

    fn said(&self, message: UserMessage, is_busy: bool) -> Next {
        Next::Do(match self.when_busy {
            WhenBusy::Steer if is_busy => Op::Steer(message),
            _ => Op::Say(message),
        })
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
                    let question = &mut pending.question;
                    if let Some(leaving) = self.meanwhile(session, typed, question).await {
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
            Event::QuestionClosed { approval, how } => {
                pending
                    .question
                    .take_if(|question| question.approval == approval);
                if let Some(words) = wording::question_closed(how) {
                    note(&self.err.yellow(format!("\n  {words}")));
                }
            }
            Event::Enquired(enquiry) => {
                pending.interviews.push_back(Interview::new(enquiry));
                if pending.interviews.len() == 1 {
                    self.ask_next(pending)?;
                }
            }
            Event::EnquiryClosed { enquiry } => {
                return self.close_interviews(pending, |interview| *interview.id() == enquiry);
            }
            Event::CallFinished { call, .. } => {
                pending.question = None;
                return self
                    .close_interviews(pending, |interview| interview.enquiry().call == call);
            }
            _ => {}
        }
        Ok(())
    }

    /// Forgets interviews that are over. The person may have been in the middle of one.
    fn close_interviews(
        &self,
        pending: &mut Pending,
        is_over: impl Fn(&Interview) -> bool,
    ) -> Outcome<()> {
        let was_asking = pending.interviews.front().is_some_and(&is_over);
        pending.interviews.retain(|interview| !is_over(interview));
        if was_asking {
            note(
                &self
                    .err
                    .yellow("\n  too late: this needs no answer any more"),
            );
            self.ask_next(pending)?;
        }
        Ok(())
    }

    fn ask_next(&self, pending: &Pending) -> Outcome<()> {
        let Some(interview) = pending.interviews.front() else {
            return Ok(());
        };
        for line in interview.introduction() {
            note(&self.err.yellow(line));
        }
        note(&self.err.yellow("  (/decline does not answer)"));
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
        let heard = match command::read(line, Surface::Terminal, &SkillNames::NONE) {
            Line::Words(_)
            | Line::Skills { .. }
            | Line::Unknown { .. }
            | Line::Ambiguous { .. } => interview.hear(line),
            Line::Command { command, .. } if command.verb == Verb::Decline => {
                Heard::Done(Response::Declined { reason: None })
            }
            Line::Command { .. } => return Ok(Some(typed)),
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
                self.ask_next(pending)?;
            }
        }
        Ok(None)
    }

    /// Does what is typed while something runs. Who leaves stops it first.
    async fn meanwhile(
        &mut self,
        session: &Session,
        typed: Typed,
        question: &mut Option<Question>,
    ) -> Option<Next> {
        let line = self.line(typed);
        if let (Some(line), Some(asked)) = (&line, &*question)
            && let Some(verdict) = verdict_in(line, &asked.choices)
        {
            session.answer(asked.approval.clone(), verdict).await;
            *question = None;
            return None;
        }
        let here = Here {
            session: session.id().clone(),
            is_busy: true,
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

    async fn do_meanwhile(&self, session: &Session, op: Op) {
        if matches!(op, Op::Say(_)) {
            match self.when_busy {
                WhenBusy::Interrupt => _ = session.interrupt().await,
                _ => note(&self.err.dim("  (waits for the end of this turn)")),
            }
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

    fn unknown(&self, name: &str, near: &[&str]) {
        let hint = match near {
            [] => "/help lists them".to_owned(),
            near => format!("did you mean /{}?", near.join(" or /")),
        };
        let name = printable(name);
        note(&format!("there is no command `/{name}` here; {hint}"));
    }

    /// Shows exactly what would run: what cannot be seen is spelt out, so that nothing can hide.
    fn show_question(&self, question: &Question) -> Outcome<()> {
        let (tool, what) = (escaped(&question.tool), escaped(&question.what));
        let wants = wording::wants(question);
        note(&self.err.yellow(format!("  {tool} {wants}: {what}")));
        note(&self.err.yellow(format!("  {}", escaped(&question.reason))));
        self.show_change(question);
        let offered = |verdict, words| match question.choices.contains(&verdict) {
            true => words,
            false => "",
        };
        let session = offered(Verdict::Session, " for the [s]ession,");
        let always = offered(Verdict::Always, " [a]lways,");
        self.ask_for(&format!("  allow? [y]es,{session}{always} [N]o: "))
    }

    /// Shows the change that a question is about, as far as a person reads it in passing.
    fn show_change(&self, question: &Question) {
        let Some(diff) = &question.diff else {
            return;
        };
        let (lines, more) = wording::change_lines(diff, SHOWN_CHANGE_LINES);
        for line in lines {
            note(&format!("  {}", self.err.change_line(&line)));
        }
        if more > 0 {
            let command = format!("hermes approvals show {}", question.approval);
            note(
                &self
                    .err
                    .yellow(format!("  … {more} more lines: `{command}`")),
            );
        }
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
async fn turn_begins(events: &mut mpsc::Receiver<Event>) -> Option<Event> {
    loop {
        let event = events.recv().await?;
        if matches!(event, Event::Notice { .. } | Event::TurnStarted { .. }) {
            return Some(event);
        }
    }
}

pub fn gone(session: &Session) -> Failure {
    Failure::new("the session stopped unexpectedly").hint(format!(
        "this is a bug; everything said so far is saved: hermes -r {}",
        session.id()
    ))
}

/// What a line says about a command that waits for consent. Other commands than `/decline` say nothing.
fn verdict_in(line: &str, choices: &[Verdict]) -> Option<Verdict> {
    match command::read(line, Surface::Terminal, &SkillNames::NONE) {
        Line::Words(words) => Some(verdict(words, choices)),
        Line::Command { command, .. } if command.verb == Verb::Decline => Some(Verdict::Deny),
        _ => None,
    }
}

/// Anything but a clear yes is a no, and so is a yes to more than was offered.
fn verdict(line: &str, choices: &[Verdict]) -> Verdict {
    let verdict = match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Verdict::Once,
        "s" | "session" => Verdict::Session,
        "a" | "always" => Verdict::Always,
        _ => Verdict::Deny,
    };
    match choices.contains(&verdict) {
        true => verdict,
        false => Verdict::Deny,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        let said = |line| verdict(line, &Verdict::ALL);
        assert_eq!(said("y"), Verdict::Once);
        assert_eq!(said("S"), Verdict::Session);
        assert_eq!([said(""), said("ok?"), said("no")], [Verdict::Deny; 3]);
        let few = [Verdict::Once, Verdict::Deny];
        assert_eq!(verdict("s", &few), Verdict::Deny);
    }
}
