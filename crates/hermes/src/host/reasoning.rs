//! `/reasoning`: whether what the model thinks is shown, and how much it thinks.

use hermes_config::set;
use hermes_llm::resolve;

use super::arguments::no_such;
use super::{Done, Here, Host, Then};
use crate::args::RunFlags;
use crate::base::Base;
use crate::failure::Outcome;
use crate::model_settings::model_settings;
use crate::wiring;

const EFFORT: &str = "agent.reasoning_effort";
const EFFORTS: [&str; 8] = [
    "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra",
];

/// What `/reasoning` was asked for.
#[derive(Debug, PartialEq, Eq)]
enum ReasoningArguments<'a> {
    Tell,
    Show(bool),
    Think { effort: &'a str, is_global: bool },
}

impl Host {
    pub(super) async fn reasoning(&mut self, arguments: &str, here: &Here) -> Outcome<Done> {
        match ReasoningArguments::parse(arguments)? {
            ReasoningArguments::Tell => self.told_reasoning(),
            ReasoningArguments::Show(true) => Ok(shown("what the model thinks is shown", true)),
            ReasoningArguments::Show(false) => Ok(shown("what the model thinks is hidden", false)),
            ReasoningArguments::Think { .. } if here.is_busy => Ok(Done::told(
                "how much it thinks can change when the turn has ended (/stop ends it)",
            )),
            ReasoningArguments::Think { effort, is_global } => {
                self.think(effort, is_global, here).await
            }
        }
    }

    fn told_reasoning(&self) -> Outcome<Done> {
        let effort = self.settings_now()?.settings.optional_string(EFFORT)?;
        let effort = effort
            .as_deref()
            .unwrap_or("as much as its provider chooses");
        Ok(Done::told(format!(
            "it thinks: {effort}; /reasoning show or hide, or one of {}",
            EFFORTS.join(", ")
        )))
    }

    /// Changes how much the model thinks from the next message on; with `--global`, in all future sessions too.
    async fn think(&mut self, effort: &str, is_global: bool, here: &Here) -> Outcome<Done> {
        let flags = RunFlags {
            effort: Some(effort.to_owned()),
            ..self.flags.clone()
        };
        let base = self.base.with_flags(&flags)?;
        let (model, warnings) = wiring::model(&base).await?;
        let mut told = if takes_effort(&base)? {
            format!("it thinks from now on: {effort}")
        } else {
            format!(
                "{} cannot be told how much to think: nothing changes",
                model.name()
            )
        };
        if is_global {
            let changed = set(&self.base.home, &self.base.settings, EFFORT, effort)?;
            told = format!("{told}; saved in {}", changed.file.display());
        }
        self.let_answer((model, warnings), flags, told, here).await
    }
}

/// Whether the one who answers understands such words; many servers refuse requests that have them.
fn takes_effort(base: &Base) -> Outcome<bool> {
    let resolved = resolve(&model_settings(base)?, &|name| base.variable(name));
    Ok(resolved.is_ok_and(|resolved| resolved.primary.quirks.effort))
}

fn shown(told: &str, shows: bool) -> Done {
    Done {
        told: Some(told.into()),
        then: Then::ShowReasoning(shows),
    }
}

impl<'a> ReasoningArguments<'a> {
    fn parse(arguments: &'a str) -> Outcome<Self> {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let effort_of = |word: &str| EFFORTS.contains(&word);
        Ok(match words.as_slice() {
            [] => Self::Tell,
            ["show" | "on"] => Self::Show(true),
            ["hide" | "off"] => Self::Show(false),
            [effort, rest @ ..] if effort_of(effort) && matches!(rest, [] | ["--global"]) => {
                Self::Think {
                    effort,
                    is_global: !rest.is_empty(),
                }
            }
            _ => {
                let expected = format!("show, hide, or one of {}", EFFORTS.join(", "));
                return Err(no_such("/reasoning", arguments, &expected));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_whether_to_show_or_how_much() {
        let parse = |words| ReasoningArguments::parse(words).map_err(|failure| failure.message);
        let think = |effort, is_global| Ok(ReasoningArguments::Think { effort, is_global });
        assert_eq!(parse(""), Ok(ReasoningArguments::Tell));
        assert_eq!(parse("on"), Ok(ReasoningArguments::Show(true)));
        assert_eq!(parse("high"), think("high", false));
        assert_eq!(parse("low --global"), think("low", true));
        for wrong in ["extreme", "high low", "show --global"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
