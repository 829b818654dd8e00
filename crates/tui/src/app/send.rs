//! What becomes of a line that is sent: words for the model, now or later, or a command.

use hermes_core::command::{self, Command, ParsedLine as Said, Surface, Verb};
use hermes_core::quick::Own;
use hermes_core::{Op, UserMessage};

use super::{App, Effect};
use crate::host::{BusyInput, ToHost};
use crate::item::Item;
use crate::wrap;

impl App {
    /// Sends what is typed. It leaves the input only when it is accepted.
    pub(super) fn send(&mut self) -> Vec<Effect> {
        let text = self.draft();
        if text.trim().is_empty() || self.is_leaving {
            return Vec::new();
        }
        if let Some(command) = text.trim().strip_prefix('!') {
            let command = command.trim().to_owned();
            if command.is_empty() {
                self.complain("! needs a command: !ls");
                return Vec::new();
            }
            self.conversation.print(Item::User(format!("!{command}")));
            let mut effects = vec![Effect::Send(ToHost::Own(command))];
            effects.extend(self.composer.take().map(Effect::Remember));
            return effects;
        }
        let quick = self.settings.quick_commands.clone();
        let line = match quick.read(&text, Surface::Terminal) {
            Own::Line(line) => line,
            Own::Exec(command) => {
                let mut effects = vec![Effect::Send(ToHost::Shell(command.to_owned()))];
                effects.extend(self.composer.take().map(Effect::Remember));
                return effects;
            }
        };
        let skills = self.composer.skills().clone();
        let effects = match command::read(&line, Surface::Terminal, &skills) {
            Said::Words(words) => Some(self.say(words, &[], self.busy_input)),
            Said::Skills { names, words } => Some(self.say(words, &names, self.busy_input)),
            Said::Command { command, arguments } => self.command(command, arguments),
            Said::Unknown { name, near } => {
                self.complain(unknown(name, &near));
                None
            }
            Said::Ambiguous { name, names } => {
                let names = names.join(", /");
                self.complain(format!("`/{name}` may be /{names}"));
                None
            }
        };
        let Some(mut effects) = effects else {
            return Vec::new();
        };
        effects.extend(self.composer.take().map(Effect::Remember));
        effects
    }

    fn say(&mut self, words: &str, skills: &[&str], busy_input: BusyInput) -> Vec<Effect> {
        let message = UserMessage::text(words);
        let images = self.composer.editor.images();
        let is_alone = images.is_empty() && skills.is_empty();
        let send = |op| {
            Effect::Send(if is_alone || op == Op::Interrupt {
                ToHost::Op(op)
            } else {
                ToHost::Accompanied {
                    op,
                    images: images.clone(),
                    skills: skills.iter().map(|name| (*name).to_owned()).collect(),
                }
            })
        };
        let is_busy = self.conversation.is_busy();
        self.conversation.say(words, self.now);
        match busy_input {
            _ if !is_busy => vec![send(Op::Say(message))],
            BusyInput::Queue => vec![send(Op::Say(message))],
            BusyInput::Steer => vec![send(Op::Steer(message))],
            BusyInput::Interrupt => vec![send(Op::Interrupt), send(Op::Say(message))],
        }
    }

    /// Runs a command: what concerns the running turn here, everything else in the program.
    fn command(&mut self, command: &'static Command, arguments: &str) -> Option<Vec<Effect>> {
        if self.conversation.is_busy() && !command.during_turn {
            self.complain(format!(
                "/{} has to wait until it is done; /stop stops it",
                command.name
            ));
            return None;
        }
        Some(match command.verb {
            Verb::Steer | Verb::Queue if arguments.is_empty() => {
                self.complain(format!(
                    "/{} needs words: /{0} {}",
                    command.name, command.arguments
                ));
                return None;
            }
            Verb::Steer => self.say(arguments, &[], BusyInput::Steer),
            Verb::Queue => self.say(arguments, &[], BusyInput::Queue),
            Verb::Paste => self.paste_image(),
            Verb::Stop if self.conversation.is_busy() => self.interrupt(),
            Verb::Stop => {
                self.hint("nothing runs");
                Vec::new()
            }
            Verb::Quit => self.leave(),
            _ => vec![Effect::Send(ToHost::Command {
                command,
                arguments: arguments.to_owned(),
            })],
        })
    }
}

fn unknown(name: &str, near: &[&str]) -> String {
    if let Some(instead) = command::instead_of(name, Surface::Terminal) {
        return format!("/{name} is not here: {instead}");
    }
    let name = wrap::clean(name);
    match near {
        [] => format!("there is no command `/{name}`; /help lists them"),
        near => format!(
            "there is no command `/{name}`; did you mean /{}?",
            near.join(", /")
        ),
    }
}
