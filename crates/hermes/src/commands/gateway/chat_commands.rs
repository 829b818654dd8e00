//! Slash commands in chats: the same as in a terminal, with words for an answer.

use std::sync::Arc;

use hermes_config::{DotEnv, Home};
use hermes_core::command::{self, ParsedLine, Surface, Verb};
use hermes_core::quick::{Own, QuickCommands};
use hermes_core::{Address, Archive as _, BoxFuture, SessionId, SessionOptions};
use hermes_gateway::chat::{ChatCommands, CommandAnswer, CommandLine, Then as ChatThen, WhenBusy};
use hermes_runtime::commands::{self, Done, Here, Then};
use hermes_runtime::{Conversation, Result, Start, quick, shown};

use super::desk::Desk;
use super::{chat_pairing, chats};

/// Charts in chats are as wide as a phone.
const COLUMNS: usize = 40;
const NEW: &str = "A new conversation begins with your next message.";
const NOWHERE: &str = "It is not known where the result would go.";
const RESTARTING: &str = "I end what runs and start again. I say so here when I am back.";

pub(super) struct HomeCommands(pub(super) Arc<Desk>);

impl ChatCommands for HomeCommands {
    fn run<'a>(&'a self, line: CommandLine<'a>) -> BoxFuture<'a, CommandAnswer> {
        Box::pin(async move {
            match self.answer(line).await {
                Ok(answer) => answer,
                Err(error) => told(match error.hint() {
                    Some(hint) => format!("{error}; {hint}"),
                    None => error.to_string(),
                }),
            }
        })
    }

    fn keep_home<'a>(
        &'a self,
        home: &'a Address,
    ) -> BoxFuture<'a, std::result::Result<(), String>> {
        let (folder, home) = (self.0.runtime.base().home.clone(), home.clone());
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || keep_home(&folder, &home));
            written.await.map_err(|error| error.to_string())?
        })
    }
}

/// Writes the home chat of a platform into `.env`, where Hermes Agent looks for it too.
fn keep_home(home: &Home, address: &Address) -> std::result::Result<(), String> {
    let mut file = DotEnv::open(&home.dot_env()).map_err(|error| error.to_string())?;
    let variable = |key: &str| chats::variable_named(&address.platform, key);
    let thread = variable("home_channel_thread_id");
    let set = file.set(&variable("home_channel"), &address.chat);
    let set = set.and_then(|()| match &address.thread {
        Some(id) => file.set(&thread, id),
        None => {
            file.unset(&thread);
            Ok(())
        }
    });
    set.map_err(|error| error.to_string())?;
    file.save().map_err(|error| error.to_string())
}

impl HomeCommands {
    async fn answer(&self, said: CommandLine<'_>) -> Result<CommandAnswer> {
        let runtime = Arc::clone(&self.0.runtime);
        let options = match said.session {
            Some(session) => runtime.in_its_folder(session, said.options.clone()).await,
            None => said.options.clone(),
        };
        let mut conversation = Conversation::new(runtime, options).await?;
        let own = self.own_commands(&said);
        let line = match own.read(said.line, Surface::Chat) {
            Own::Line(line) => line,
            Own::Exec(command) => return Ok(told(conversation.shell(command).await)),
        };
        let skills = conversation.skill_names().await;
        let (command, arguments) = match command::read(&line, Surface::Chat, &skills) {
            ParsedLine::Command { command, arguments } => (command, arguments),
            ParsedLine::Words(words) => return Ok(for_model(words, Vec::new())),
            ParsedLine::Skills { names, words } => {
                let names = names.into_iter().map(str::to_owned).collect();
                let told = conversation.skills(names, here(&said).session).await?;
                let skills = told.into_iter().collect::<Result<Vec<String>>>()?;
                return Ok(for_model(words, skills));
            }
            ParsedLine::Unknown { name, near } => return Ok(told(unknown(name, &near))),
            ParsedLine::Ambiguous { name, names } => {
                let names: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
                return Ok(told(format!("/{name} could be {}", names.join(", "))));
            }
        };
        let here = here(&said);
        match command.verb {
            Verb::Platforms => return Ok(told(self.standing().await)),
            Verb::Pairing => {
                let here = said.place.map(|place| place.platform.as_str());
                let runtime = &self.0.runtime;
                let pairings = Arc::clone(runtime.store()) as _;
                return Ok(told(
                    chat_pairing::run(pairings, runtime.clock(), arguments, here).await?,
                ));
            }
            Verb::Background => {
                let Some(place) = said.place else {
                    return Ok(told(NOWHERE.to_owned()));
                };
                return Ok(told(conversation.background(arguments, place).await?));
            }
            Verb::Restart => {
                self.0.ask_restart(said.place);
                return Ok(told(RESTARTING.to_owned()));
            }
            _ => {}
        }
        let done = conversation.run(command, arguments, &here).await?;
        // The folder is the conversation's, and no choice of the chat.
        let options = SessionOptions {
            cwd: said.options.cwd.clone(),
            ..conversation.options().clone()
        };
        let options = Some(options).filter(|options| options != said.options);
        let mut answer = answered(done);
        if let ChatThen::Resume(session) = &answer.then
            && answer.text.is_none()
        {
            let record = self.0.runtime.store().record(session).await?;
            let title = record.title.map_or_else(
                || "that conversation".to_owned(),
                |title| format!("“{title}”"),
            );
            answer.text = Some(format!("We go on with {title}."));
        }
        // How the gateway is concerns its owner.
        if command.verb == Verb::Status && said.options.person.is_none() {
            let text = answer.text.unwrap_or_default();
            answer.text = Some(format!("{text}\n{}", self.standing().await));
        }
        Ok(CommandAnswer { options, ..answer })
    }

    /// Commands of the owner's own: they run what they like on this machine, so nobody else has them.
    fn own_commands(&self, said: &CommandLine<'_>) -> QuickCommands {
        if said.options.person.is_some() {
            return QuickCommands::default();
        }
        quick::commands(self.0.runtime.base())
    }

    async fn standing(&self) -> String {
        let now = self.0.runtime.clock().now();
        self.0.report().await.lines(now)
    }
}

fn here(said: &CommandLine<'_>) -> Here {
    Here {
        session: said.session.cloned().unwrap_or_else(|| SessionId::from("")),
        is_busy: said.is_busy,
        can_choose: false,
        surface: Surface::Chat,
    }
}

fn for_model(words: &str, skills: Vec<String>) -> CommandAnswer {
    CommandAnswer {
        then: ChatThen::Say {
            words: words.to_owned(),
            skills,
        },
        ..CommandAnswer::default()
    }
}

fn answered(done: Done) -> CommandAnswer {
    let text = shown::text(&done.shown, COLUMNS);
    let (then, words) = match done.then {
        Then::Nothing | Then::ShowReasoning(_) => (ChatThen::Nothing, None),
        Then::Send(op) => (ChatThen::Send(op), None),
        Then::Open(Start::New { title }) => (ChatThen::New { title }, Some(NEW)),
        Then::Open(Start::Imported { .. }) => (ChatThen::New { title: None }, Some(NEW)),
        Then::Open(Start::Resume(session)) => (ChatThen::Resume(session), None),
        Then::Open(Start::Branch { of, .. }) => (ChatThen::Branch(of), None),
        Then::Titled(_) => (ChatThen::Nothing, None),
        Then::WhenBusy(when_busy) => (ChatThen::WhenBusy(in_chat(when_busy)), None),
        Then::Leave => (
            ChatThen::Nothing,
            Some("Just stop writing; I will be here."),
        ),
        Then::Choose(_) | Then::Attach { .. } | Then::Paste { .. } | Then::Copy { .. } => {
            (ChatThen::Nothing, Some("That is for a terminal."))
        }
    };
    CommandAnswer {
        text: text.or_else(|| words.map(str::to_owned)),
        then,
        options: None,
    }
}

fn in_chat(when_busy: commands::WhenBusy) -> WhenBusy {
    match when_busy {
        commands::WhenBusy::Interrupt => WhenBusy::Interrupt,
        commands::WhenBusy::Queue => WhenBusy::Queue,
        commands::WhenBusy::Steer => WhenBusy::Steer,
    }
}

fn told(text: String) -> CommandAnswer {
    CommandAnswer {
        text: Some(text),
        ..CommandAnswer::default()
    }
}

fn unknown(name: &str, near: &[&str]) -> String {
    let instead = command::instead_of(name, Surface::Chat)
        .map(|instead| format!("/{name} is not here: {instead}"));
    let near = || match near.first() {
        Some(near) => format!("There is no /{name}. Did you mean /{near}? /help lists all."),
        None => format!("There is no /{name}. /help lists all."),
    };
    instead.unwrap_or_else(near)
}
