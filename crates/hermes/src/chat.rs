//! `hermes`: a conversation in plain lines, until the terminal interface takes its place.

use std::io::IsTerminal as _;

use hermes_agent::{Opened, Session, SessionStart};
use hermes_core::{Event, Message, Op, Question, Role, UserMessage, Verdict, text};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::args::RunFlags;
use crate::base::Base;
use crate::choose_session::choose;
use crate::failure::{Failure, Outcome};
use crate::output::{note, print};
use crate::render::{Live, Renderer};
use crate::signals::Signals;
use crate::style::Style;
use crate::wiring::{Audience, Wired, open_store};
use crate::worktree::Worktree;

const HELP: &str = "\
/new      start a new conversation
/stop     stop the turn that runs (Ctrl-C does the same)
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
    let store = open_store(base)?;
    let chosen = choose(base, &store, flags, source).await?;
    let worktree = if flags.worktree {
        Some(Worktree::create(base).await?)
    } else {
        None
    };
    let cwd = worktree
        .as_ref()
        .map_or(chosen.cwd.clone(), |worktree| worktree.path.clone());
    let notes = worktree.iter().map(Worktree::note).collect();
    let wired = Wired::new(base, flags, Audience::Person, notes, cwd, store).await?;
    let mut chat = Chat::new(base, flags, wired, source)?;
    chat.greet();
    let start = chosen.start(&chat.wired, source);
    let outcome = chat.converse(start).await;
    if let Some(worktree) = worktree {
        worktree.leave(base).await;
    }
    outcome
}

struct Chat {
    wired: Wired,
    renderer: Renderer,
    style: Style,
    source: String,
    lines: Lines<BufReader<Stdin>>,
    signals: Signals,
}

/// What a line from the user asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Say(String),
    Steer(String),
    Stop,
    New,
    Help,
    Quit,
    Unknown(String),
    Nothing,
}

/// Why one conversation gives way.
enum Next {
    New,
    Leave,
}

impl Chat {
    fn new(base: &Base, flags: &RunFlags, wired: Wired, source: &str) -> Outcome<Self> {
        let out = Style::of(&std::io::stdout(), &base.environment);
        let show_reasoning = base.settings.bool("display.show_reasoning")?;
        let renderer = if flags.json {
            Renderer::Json
        } else {
            Renderer::Live(Live::new(out, show_reasoning))
        };
        let lines = BufReader::new(tokio::io::stdin()).lines();
        Ok(Self {
            wired,
            renderer,
            style: out,
            source: source.to_owned(),
            lines,
            signals: Signals::listen()?,
        })
    }

    fn greet(&self) {
        let model = self.wired.ports.model.name();
        note(&format!(
            "{} {}",
            self.style.bold("Hermes"),
            self.style.dim(format!("· {model} · /help for help"))
        ));
        for warning in &self.wired.warnings {
            note(&self.style.yellow(format!("warning: {warning}")));
        }
    }

    async fn converse(&mut self, mut start: SessionStart) -> Outcome<()> {
        loop {
            let opened =
                Session::open(self.wired.ports.clone(), self.wired.settings.clone(), start).await?;
            match self.one_session(opened).await? {
                Next::Leave => return Ok(()),
                Next::New => {
                    note(&self.style.dim("a new conversation"));
                    let prefix = self.wired.prefix();
                    start = SessionStart::New {
                        source: self.source.clone(),
                        title: None,
                        prefix,
                    };
                }
            }
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
        let mut busy = resumed
            .as_ref()
            .is_some_and(|resumed| resumed.has_open_turn);
        if let Some(resumed) = &resumed {
            self.show_past(&resumed.messages);
        }
        let next = loop {
            if busy {
                let left = self.follow_turn(&session, &mut events).await?;
                busy = false;
                if let Some(next) = left {
                    break next;
                }
            }
            print(&self.style.cyan("› "))?;
            let line = tokio::select! {
                line = self.lines.next_line() => line.ok().flatten(),
                _ = self.signals.interrupted() => None,
            };
            match line.as_deref().map_or(Wish::Quit, wish) {
                Wish::Say(text) | Wish::Steer(text) => {
                    session.say(text).await;
                    (busy, was_used) = (true, true);
                }
                Wish::New => break Next::New,
                Wish::Quit => break Next::Leave,
                Wish::Help => note(HELP),
                Wish::Unknown(name) => note(&format!(
                    "there is no command `/{name}` here; /help lists them"
                )),
                Wish::Stop | Wish::Nothing => {}
            }
        };
        if was_used {
            note(&self.style.dim(format!(
                "hermes -r {} goes on with this conversation",
                session.id()
            )));
        }
        drop(session);
        tasks.join_all().await;
        Ok(next)
    }

    /// Shows a turn as it happens, and takes what the user types meanwhile. Returns where they want to go after it.
    async fn follow_turn(
        &mut self,
        session: &Session,
        events: &mut mpsc::Receiver<Event>,
    ) -> Outcome<Option<Next>> {
        self.signals.reset();
        let mut turns_left = 1;
        let mut question: Option<Question> = None;
        let mut next = None;
        while turns_left > 0 {
            tokio::select! {
                event = events.recv() => {
                    let Some(event) = event else { return Ok(next) };
                    self.renderer.show(&event)?;
                    match event {
                        Event::TurnEnded { .. } => turns_left -= 1,
                        Event::Asked(asked) => {
                            self.show_question(&asked)?;
                            question = Some(asked);
                        }
                        Event::CallFinished { .. } => question = None,
                        _ => {}
                    }
                }
                interrupted = self.signals.interrupted() => {
                    if interrupted.is_repeated() {
                        return Err(Failure { code: crate::failure::code::INTERRUPTED, ..Failure::new("interrupted") });
                    }
                    session.interrupt().await;
                }
                line = self.lines.next_line() => {
                    let Ok(Some(line)) = line else {
                        session.interrupt().await;
                        continue;
                    };
                    if let Some(asked) = question.take() {
                        session.answer(asked.call, verdict(&line)).await;
                        continue;
                    }
                    match wish(&line) {
                        Wish::Say(text) => {
                            turns_left += 1;
                            session.say(text).await;
                            note(&self.style.dim("  (waits for the end of this turn)"));
                        }
                        Wish::Steer(text) => {
                            session.send(Op::Steer(UserMessage::text(text))).await;
                        }
                        leaving @ (Wish::Stop | Wish::Quit | Wish::New) => {
                            next = match leaving {
                                Wish::Quit => Some(Next::Leave),
                                Wish::New => Some(Next::New),
                                _ => None,
                            };
                            session.interrupt().await;
                        }
                        Wish::Help => note(HELP),
                        Wish::Unknown(name) => note(&format!("there is no command `/{name}` here; /help lists them")),
                        Wish::Nothing => {}
                    }
                }
            }
        }
        Ok(next)
    }

    fn show_question(&self, question: &Question) -> Outcome<()> {
        note(&self.style.yellow(format!(
            "  {} wants to run: {}",
            question.tool, question.what
        )));
        note(&self.style.yellow(format!("  {}", question.reason)));
        print("  allow? [y]es, for the [s]ession, [N]o: ")
    }

    fn show_past(&self, messages: &[Message]) {
        let spoken = messages
            .iter()
            .filter(|message| message.role != Role::Tool && !message.text().trim().is_empty());
        let spoken: Vec<_> = spoken.collect();
        for message in &spoken[spoken.len().saturating_sub(SHOWN_MESSAGES)..] {
            let who = if message.role == Role::User {
                "you"
            } else {
                "hermes"
            };
            note(&self.style.dim(format!(
                "{who}: {}",
                text::shorten(message.text().trim(), 400)
            )));
        }
    }
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
        assert_eq!(
            wish("/etc/hosts has what?"),
            Wish::Say("/etc/hosts has what?".into())
        );
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
