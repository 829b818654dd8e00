//! What a line asks for: words for the model, alone or with skills and images, or something a command does.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use hermes_core::command::{self, ParsedLine, Surface};
use hermes_core::quick::Own;
use hermes_core::skill::{self, SkillNames};
use hermes_core::text::printable;
use hermes_core::{Op, Part, UserMessage};

use hermes_runtime::Result;

use super::{Chat, Next};
use crate::clipboard::Clipboard;
use crate::copy;
use crate::failure::Failure;
use crate::image;
use crate::output::{columns, note, print};
use crate::render::Renderer;
use crate::shown;
use hermes_runtime::commands::{Here, Then, WhenBusy};

impl Chat<'_> {
    /// Does what a line asks for, and returns where it leads.
    pub(super) async fn next(&mut self, line: &str, here: Here) -> Option<Next> {
        if let Some(command) = line.trim_start().strip_prefix('!') {
            let heard = self.host.own(command.trim()).await;
            note(&printable(&heard.shown()));
            self.host.hear(heard);
            return None;
        }
        let line = match self.quick_commands.read(line, Surface::Terminal) {
            Own::Line(line) => line,
            Own::Exec(command) => {
                note(&printable(&self.host.shell(command).await));
                return None;
            }
        };
        let skills = if line.trim_start().starts_with('/') {
            self.host.skill_names().await
        } else {
            SkillNames::NONE
        };
        let done = match command::read(&line, Surface::Terminal, &skills) {
            ParsedLine::Words("") => return None,
            ParsedLine::Words(text) => {
                return Some(self.said(UserMessage::text(text), here.is_busy));
            }
            ParsedLine::Skills { names, words } => {
                return self.with_skills(words, &names, here).await;
            }
            ParsedLine::Command { command, arguments } => {
                match self.host.run(command, arguments, &here).await {
                    Ok(done) => done,
                    Err(error) => {
                        note(&printable(&Failure::from(error).to_string()));
                        return None;
                    }
                }
            }
            ParsedLine::Unknown { name, near } => {
                unknown(name, &near);
                return None;
            }
            ParsedLine::Ambiguous { name, names } => {
                note(&format!("/{name} could be /{}", names.join(" or /")));
                return None;
            }
        };
        if let Some(text) = shown::text(&done.shown, columns()) {
            note(&printable(&text));
        }
        match done.then {
            Then::Nothing => None,
            Then::Send(op) => Some(Next::Do(op)),
            Then::Open(start) => Some(Next::Open(start)),
            Then::Leave => Some(Next::Leave),
            Then::Attach { image, words } => self.with_image(&image, &words, here.is_busy),
            Then::Paste { words } => {
                let clipboard = Clipboard::of(self.host.runtime().base());
                match clipboard.keep_image().await {
                    Ok(image) => self.with_image(&image, &words, here.is_busy),
                    Err(error) => {
                        note(&printable(&Failure::from(error).to_string()));
                        None
                    }
                }
            }
            Then::Copy { text } => {
                self.copy(&text);
                None
            }
            // It was not asked for: plain lines have no list to choose from.
            Then::Titled(_) | Then::Choose(_) => None,
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

    fn copy(&self, text: &str) {
        match copy::copy(text, &self.host.runtime().base().environment) {
            Ok(copied) => {
                note(&printable(&copied.told));
                // It is for a terminal; one that cannot be written to is found out by the next answer.
                if io::stdout().is_terminal() {
                    let _ = print(&copied.sequence);
                }
            }
            Err(failure) => note(&printable(&failure.to_string())),
        }
    }

    /// Words with skills behind them, if all of those can be read.
    async fn with_skills(&self, words: &str, names: &[&str], here: Here) -> Option<Next> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let told = self.host.skills(names, here.session).await;
        let told = told.and_then(|told| told.into_iter().collect::<Result<Vec<String>>>());
        let skills = match told {
            Ok(skills) => skills,
            Err(error) => {
                note(&printable(&Failure::from(error).to_string()));
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
            Err(error) => {
                note(&printable(&Failure::from(error).to_string()));
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
}

fn unknown(name: &str, near: &[&str]) {
    if let Some(instead) = command::instead_of(name, Surface::Terminal) {
        return note(&format!("/{name} is not here: {instead}"));
    }
    let hint = match near {
        [] => "/help lists them".to_owned(),
        near => format!("did you mean /{}?", near.join(" or /")),
    };
    let name = printable(name);
    note(&format!("there is no command `/{name}` here; {hint}"));
}
