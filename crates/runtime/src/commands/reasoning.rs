//! `/reasoning`: whether what the model thinks is shown, and how much it thinks.

use hermes_config::set;
use hermes_llm::resolve;

use hermes_core::SessionOptions;
use hermes_core::command::Surface;

use super::arguments::no_such;
use super::{Conversation, Done, Here, Then};
use crate::base::Base;
use crate::error::Result;
use crate::models::settings::model_settings;

const EFFORT: &str = "agent.reasoning_effort";
const EFFORTS: [&str; 8] = [
    "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra",
];

/// What `/reasoning` was asked for.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    Tell,
    Show(bool),
    Think { effort: &'a str, is_global: bool },
}

impl Conversation {
    pub(super) async fn reasoning(&mut self, arguments: &str, here: &Here) -> Result<Done> {
        match Wish::parse(arguments)? {
            Wish::Tell => self.told_reasoning(here),
            Wish::Show(_) if here.surface == Surface::Chat => Ok(Done::text(
                "what the model thinks is shown in a terminal only; /reasoning low, for example, says how much it thinks",
            )),
            Wish::Show(true) => Ok(shown("what the model thinks is shown", true)),
            Wish::Show(false) => Ok(shown("what the model thinks is hidden", false)),
            Wish::Think { .. } if here.is_busy => Ok(Done::text(
                "how much it thinks can change when the turn has ended (/stop ends it)",
            )),
            Wish::Think { effort, is_global } => self.think(effort, is_global, here).await,
        }
    }

    fn told_reasoning(&self, here: &Here) -> Result<Done> {
        let effort = self.settings_now()?.settings.optional_string(EFFORT)?;
        let effort = effort
            .as_deref()
            .unwrap_or("as much as its provider chooses");
        let words = match here.surface {
            Surface::Chat => "/reasoning and",
            Surface::Terminal => "/reasoning show or hide, or",
        };
        Ok(Done::text(format!(
            "it thinks: {effort}; {words} one of {}",
            EFFORTS.join(", ")
        )))
    }

    /// Changes how much the model thinks from the next message on; with `--global`, in all future sessions too.
    async fn think(&mut self, effort: &str, is_global: bool, here: &Here) -> Result<Done> {
        if is_global {
            self.owner_only("/reasoning --global")?;
        }
        let options = SessionOptions {
            reasoning_effort: Some(effort.to_owned()),
            ..self.options.clone()
        };
        let base = self.base.with_options(&options)?;
        let found = self.runtime.models().main(&base, options.audience).await?;
        let mut told = if takes_effort(&base)? {
            format!("it thinks from now on: {effort}")
        } else {
            format!(
                "{} cannot be told how much to think: nothing changes",
                found.model.name()
            )
        };
        if is_global {
            let changed = set(&self.base.home, &self.base.settings, EFFORT, effort)?;
            told = format!("{told}; saved in {}", changed.file.display());
        }
        self.let_answer(found, options, told, here).await
    }
}

/// Whether the one who answers understands such words; many servers refuse requests that have them.
fn takes_effort(base: &Base) -> Result<bool> {
    let resolved = resolve(&model_settings(base)?, &|name| base.variable(name));
    Ok(resolved.is_ok_and(|resolved| resolved.primary.quirks.effort))
}

fn shown(told: &str, shows: bool) -> Done {
    Done::then(Then::ShowReasoning(shows)).telling(told)
}

impl<'a> Wish<'a> {
    fn parse(arguments: &'a str) -> Result<Self> {
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
        let wish = |words| Wish::parse(words).map_err(|failure| failure.to_string());
        let think = |effort, is_global| Ok(Wish::Think { effort, is_global });
        assert_eq!(wish(""), Ok(Wish::Tell));
        assert_eq!(wish("on"), Ok(Wish::Show(true)));
        assert_eq!(wish("high"), think("high", false));
        assert_eq!(wish("low --global"), think("low", true));
        for wrong in ["extreme", "high low", "show --global"] {
            assert!(wish(wrong).is_err(), "{wrong}");
        }
    }
}
