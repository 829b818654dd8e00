//! Lines with a slash: what the lane does itself, what the home does, and what is for the model after all.

use hermes_core::command::{self, Command, ParsedLine, Surface};
use hermes_core::skill::SkillNames;
use hermes_core::{
    ApprovalAnswer, Closed, InboxEntry, InboxId, Message, Op, SessionId, SessionOptions,
    StoreError, Verdict,
};

use super::Lane;
use super::intake::GUEST_COMMANDS;
use crate::chat::owner;
use crate::chat::ports::{CommandLine, Then, WhenBusy};
use crate::chat::words;
use crate::hooks::HookVerdict;

/// What anybody may say who is asked something, or talks to a chat of their own.
const EVERYBODYS: [&str; 5] = ["approve", "busy", "decline", "deny", "skip"];

/// What became of a line with a slash.
pub(super) enum Outcome {
    Handled,
    /// It is for the model: [`Lane::readings`] has what it says if that is not the line.
    Words,
    /// What waited in front of it is forgotten.
    Stopped,
}

/// What a line with a slash says to the model.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) text: String,
    /// What it does to a turn that runs, whatever the chat's own way is.
    pub(super) when_busy: Option<WhenBusy>,
    /// What the skills say that it names.
    pub(super) skills: Vec<String>,
}

/// What the session was asked to do by a command, and has not said yet what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    Compaction,
    Undo,
}

impl Lane {
    /// Whether a command keeps its place behind words: those for a turn that runs are heard at once.
    pub(super) fn keeps_its_place(&self, line: &str) -> bool {
        command_of(&without_bot_name(line)).is_some_and(|command| !command.during_turn)
    }

    /// Does what a line with a slash says; `waiting` is in front of it.
    pub(super) async fn command(
        &mut self,
        entry: &InboxEntry,
        line: &str,
        waiting: &[InboxId],
    ) -> Result<Outcome, StoreError> {
        let line = without_bot_name(line);
        let name = line.split_whitespace().next().unwrap_or_default();
        let name = name.trim_start_matches('/');
        if self.readings.contains_key(&entry.id) || name.is_empty() || name.contains('/') {
            return Ok(Outcome::Words);
        }
        let full = command_of(&line).map_or(name, |command| command.name);
        if let Some(words) = self.refusal(entry, full).await? {
            self.speak(words, vec![entry.id]).await?;
            return Ok(Outcome::Handled);
        }
        match self.heed_hooks(entry, full, &line).await? {
            Some(line) => self.do_command(entry, &line, waiting).await,
            None => Ok(Outcome::Handled),
        }
    }

    /// Why somebody may not use a command here.
    async fn refusal(&self, entry: &InboxEntry, full: &str) -> Result<Option<String>, StoreError> {
        let Some(parts) = &self.parts else {
            return Ok(None);
        };
        let (chat, sender) = (entry.incoming.chat(), entry.incoming.sender());
        if !parts.access.may_use(chat, sender, full) {
            return Ok(Some(format!(
                "/{full} is for admins here. /help shows what is for everybody."
            )));
        }
        let is_known = command::is_name(full, Surface::Chat);
        let is_everybodys = GUEST_COMMANDS.contains(&full) || EVERYBODYS.contains(&full);
        if !self.is_guest || !is_known || is_everybodys {
            return Ok(None);
        }
        let account = format!("{}:{}", entry.platform, sender.id);
        let has_owner = self.has_owner().await?;
        Ok(Some(words::for_the_owner(full, &account, has_owner)))
    }

    /// Whether this Hermes has an owner, whoever that may be.
    async fn has_owner(&self) -> Result<bool, StoreError> {
        let ports = self.ports();
        let known = owner::known_owner(ports.records.as_ref(), ports.clock.as_ref());
        Ok(ports.settings.now().named.has_owner() || known.await?.is_some())
    }

    /// Asks hooks. Returns the line that is to be done, unless they did it or refused it.
    async fn heed_hooks(
        &mut self,
        entry: &InboxEntry,
        full: &str,
        line: &str,
    ) -> Result<Option<String>, StoreError> {
        let arguments = line.split_once(char::is_whitespace).unwrap_or((line, "")).1;
        let words = match self.ask_hooks(entry, full, arguments.trim()).await {
            HookVerdict::Allow => return Ok(Some(line.to_owned())),
            HookVerdict::Rewrite { line } if line.starts_with('/') => return Ok(Some(line)),
            HookVerdict::Rewrite { line: _ } => return Ok(Some(line.to_owned())),
            HookVerdict::Deny { message } => {
                Some(message.unwrap_or_else(|| format!("/{full} is not done here.")))
            }
            HookVerdict::Handled { message } => message,
        };
        match words {
            Some(words) => self.speak(words, vec![entry.id]).await?,
            None => self.close(entry, Closed::Handled).await?,
        }
        Ok(None)
    }

    async fn do_command(
        &mut self,
        entry: &InboxEntry,
        line: &str,
        waiting: &[InboxId],
    ) -> Result<Outcome, StoreError> {
        let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (name, arguments) = (
            name.trim_start_matches('/').to_lowercase(),
            arguments.trim(),
        );
        let full = command_of(line).map_or(name.as_str(), |command| command.name);
        match full {
            "start" => self.close(entry, Closed::Handled).await?,
            "stop" => {
                self.stop(entry, waiting).await?;
                return Ok(Outcome::Stopped);
            }
            "queue" => return self.read_as(entry, arguments, WhenBusy::Queue).await,
            "steer" => return self.read_as(entry, arguments, WhenBusy::Steer).await,
            "approve" => {
                let (all, verdict, code) = approval_words(arguments);
                self.answer_with(entry, verdict.into(), all, code).await?;
            }
            "deny" => {
                let (all, answer, code) = self.denial(arguments);
                self.answer_with(entry, answer, all, code).await?;
            }
            "decline" => self.decline(entry, arguments).await?,
            "skip" if self.is_asked() => self.skip(entry).await?,
            "sethome" => self.set_home(entry).await?,
            "link" => self.link(entry, arguments).await?,
            "handoff" => self.let_go(entry).await?,
            _ => return self.run_command(entry, line).await,
        }
        Ok(Outcome::Handled)
    }

    /// `/deny [all] [CODE] [REASON]`.
    fn denial<'a>(&self, arguments: &'a str) -> (bool, ApprovalAnswer, Option<&'a str>) {
        let (first, rest) = arguments
            .split_once(char::is_whitespace)
            .unwrap_or((arguments, ""));
        let is_code = self.lanes.is_asked_under(first);
        let all = first == "all";
        let reason = if all || is_code { rest } else { arguments };
        let answer = ApprovalAnswer {
            words: (!reason.trim().is_empty()).then(|| reason.trim().to_owned()),
            ..Verdict::Deny.into()
        };
        (all, answer, is_code.then_some(first))
    }

    /// Words behind a command are words for the model, which meet a turn in this way.
    async fn read_as(
        &mut self,
        entry: &InboxEntry,
        text: &str,
        when_busy: WhenBusy,
    ) -> Result<Outcome, StoreError> {
        if text.is_empty() {
            let words = "Say what I am to hear behind the command.";
            self.speak(words, vec![entry.id]).await?;
            return Ok(Outcome::Handled);
        }
        let reading = Reading {
            text: text.to_owned(),
            when_busy: Some(when_busy),
            skills: Vec::new(),
        };
        self.readings.insert(entry.id, reading);
        Ok(Outcome::Words)
    }

    /// A terminal goes on with the conversation: it is closed here, and opened again by the next message.
    async fn let_go(&mut self, entry: &InboxEntry) -> Result<(), StoreError> {
        if self.turn.is_some() {
            let words = "I am still working on this conversation; /stop ends that.";
            return self.speak(words, vec![entry.id]).await;
        }
        let Some(platform) = self
            .parts
            .as_ref()
            .map(|parts| parts.channel.facts().platform)
        else {
            return Ok(());
        };
        self.close_session().await;
        self.lose_session();
        let words = format!(
            "A terminal can go on with this conversation now: `hermes -c --from {platform}`"
        );
        self.speak(words, vec![entry.id]).await
    }

    async fn set_home(&mut self, entry: &InboxEntry) -> Result<(), StoreError> {
        let (Some(parts), Some(chat)) = (self.parts.clone(), &self.chat) else {
            return Ok(());
        };
        let home = chat.address.clone();
        let words = match self.ports().commands.keep_home(&home).await {
            Ok(()) => {
                parts.set_home(home);
                self.keep_chat().await?;
                "This chat is home now: what has no other place comes here.".to_owned()
            }
            Err(why) => format!("This chat cannot be made home: {why}"),
        };
        self.speak(words, vec![entry.id]).await
    }

    async fn run_command(&mut self, entry: &InboxEntry, line: &str) -> Result<Outcome, StoreError> {
        let ports = self.ports();
        let options = self.options();
        let session = self.chat.as_ref().and_then(|chat| chat.session.clone());
        let place = self.chat.as_ref().map(|chat| chat.address.clone());
        let answer = ports
            .commands
            .run(CommandLine {
                line,
                session: session.as_ref(),
                options: &options,
                place: place.as_ref(),
                is_busy: self.turn.is_some(),
            })
            .await;
        let mut words = answer.text.unwrap_or_default();
        match answer.then {
            Then::Nothing => {}
            Then::Send(Op::Say(message)) => {
                let text = Message::from(message).text();
                return Ok(self.is_for_model(entry, text, Vec::new()));
            }
            Then::Say { words, skills } => return Ok(self.is_for_model(entry, words, skills)),
            Then::Send(op) => {
                if let Some(why_not) = self.send(op).await? {
                    words = why_not;
                }
            }
            Then::WhenBusy(when_busy) => {
                if let Some(chat) = &mut self.chat {
                    chat.choices.when_busy = Some(when_busy.name().to_owned());
                }
            }
            Then::New { title } => {
                self.leave_session(None).await?;
                self.title = title;
            }
            Then::Resume(session) => self.leave_session(Some(session)).await?,
            Then::Branch(session) => match ports.sessions.branch(session, self.options()).await {
                Ok(running) => {
                    let id = running.handle.id().clone();
                    self.leave_session(Some(id)).await?;
                }
                Err(error) => words = error.message,
            },
        }
        // Behind the new conversation: it begins with what was chosen.
        if let Some(options) = &answer.options {
            self.choose(options);
        }
        self.keep_chat().await?;
        if words.trim().is_empty() {
            self.close(entry, Closed::Handled).await?;
        } else {
            self.speak(words, vec![entry.id]).await?;
        }
        Ok(Outcome::Handled)
    }

    fn is_for_model(&mut self, entry: &InboxEntry, text: String, skills: Vec<String>) -> Outcome {
        let reading = Reading {
            text,
            when_busy: None,
            skills,
        };
        self.readings.insert(entry.id, reading);
        Outcome::Words
    }

    /// What a command chose counts for this chat from now on: its session is opened anew with it.
    fn choose(&mut self, options: &SessionOptions) {
        if let Some(chat) = &mut self.chat {
            chat.choices.model.clone_from(&options.model);
            chat.choices.provider.clone_from(&options.provider);
            chat.choices
                .reasoning_effort
                .clone_from(&options.reasoning_effort);
            chat.choices.personality.clone_from(&options.personality);
            chat.choices.consent = options.consent.name().map(str::to_owned);
        }
    }

    /// Has the session do something. Returns words if it cannot.
    async fn send(&mut self, op: Op) -> Result<Option<String>, StoreError> {
        if let Op::Interrupt = op {
            self.stop_turn().await;
            return Ok(None);
        }
        if self.chat.as_ref().is_none_or(|chat| chat.session.is_none()) {
            return Ok(Some(words::NOTHING_SAID.to_owned()));
        }
        if let Op::Retry = op
            && let Some(words) = self.over_limit().await?
        {
            return Ok(Some(words));
        }
        if let Err(why) = self.ensure_session().await? {
            return Ok(Some(format!("{}{why}", words::NOT_NOW)));
        }
        self.awaited = match op {
            Op::Compact { .. } => Some(Awaited::Compaction),
            Op::Rewind { .. } => Some(Awaited::Undo),
            _ => None,
        };
        if let Some(session) = &mut self.session {
            session.is_idle = false;
            session.handle.send(op).await;
        }
        Ok(None)
    }

    /// `/stop`: ends what runs, and forgets what waits.
    async fn stop(&mut self, entry: &InboxEntry, waiting: &[InboxId]) -> Result<(), StoreError> {
        let is_working = self.is_working();
        let mut forgotten = waiting.to_vec();
        if let Some(preparing) = self.preparing.take() {
            forgotten.extend(preparing.ids);
        }
        self.stop_turn().await;
        let ports = self.ports();
        let at = ports.clock.now();
        ports
            .inbox
            .close_entries(self.under_lease(forgotten.clone()), Closed::Handled, at)
            .await?;
        let words = words::stopped(is_working, forgotten.len());
        self.speak(words, vec![entry.id]).await
    }

    pub(super) async fn stop_turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.is_stopping = true;
        }
        if let Some(session) = &self.session {
            session.handle.interrupt().await;
        }
    }

    pub(super) async fn leave_session(
        &mut self,
        next: Option<SessionId>,
    ) -> Result<(), StoreError> {
        self.stop_turn().await;
        let had = self.chat.as_ref().and_then(|chat| chat.session.clone());
        if had.is_some() {
            self.tell_hooks("session:end", &[]);
        }
        let cost = self.close_counting().await;
        if let Some(mut turn) = self.turn.take() {
            self.note_cost(turn.payer.as_deref(), turn.micro_usd + cost)
                .await?;
            turn.reply.stop(&self.ports(), turn.entries).await?;
        }
        self.lose_session();
        self.title = None;
        if let Some(chat) = &mut self.chat {
            if next != had {
                // Leave to do anything is for the conversation it was given in.
                chat.choices.consent = None;
            }
            chat.session = next;
        }
        Ok(())
    }
}

/// The command that a line names, in full or by its beginning.
fn command_of(line: &str) -> Option<&'static Command> {
    match command::read(line, Surface::Chat, &SkillNames::NONE) {
        ParsedLine::Command { command, .. } => Some(command),
        _ => None,
    }
}

/// `/new@our_bot words` is `/new words`, and `/reload_mcp` is how platforms write `/reload-mcp`. Long dashes are those that
/// phones make of two.
fn without_bot_name(line: &str) -> String {
    let (first, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    let name = first.split('@').next().unwrap_or(first);
    let dashed = name.replace('_', "-");
    let is_command = command::is_name(dashed.trim_start_matches('/'), Surface::Chat);
    let name = if is_command { &dashed } else { name };
    format!("{name}{}", rest.replace(['\u{2014}', '\u{2013}'], "--"))
}

/// `/approve [all] [once|session|always] [CODE]`.
fn approval_words(arguments: &str) -> (bool, Verdict, Option<&str>) {
    let (mut all, mut verdict, mut code) = (false, Verdict::Once, None);
    for word in arguments.split_whitespace() {
        match word {
            "all" => all = true,
            "once" => verdict = Verdict::Once,
            "session" => verdict = Verdict::Session,
            "always" => verdict = Verdict::Always,
            other => code = Some(other),
        }
    }
    (all, verdict, code)
}
