//! `/model`: another model for the conversation at hand, and which models there are.

use std::sync::Arc;

use hermes_core::Model;

use super::arguments::no_such;
use super::{Done, Here, Host, Then};
use crate::args::RunFlags;
use crate::failure::Outcome;
use crate::known_models::{Askable, OfferedModel};
use crate::{commands, wiring};

impl Host {
    /// Changes the model from the next message on; with `--global`, of all future sessions too.
    pub(super) async fn model(&mut self, arguments: &str, here: &Here) -> Outcome<Done> {
        let choice = ModelArguments::parse(arguments)?;
        let Some(name) = choice.model else {
            let model = self.prepared.wired.ports.model.name();
            return Ok(Done::told(format!(
                "{model} answers; /model PROVIDER:MODEL changes it, `hermes model list` shows what there is"
            )));
        };
        let flags = RunFlags {
            model: Some(name.to_owned()),
            provider: choice.provider.map(str::to_owned),
            ..self.flags.clone()
        };
        let (model, warnings) = wiring::model(&self.base.with_flags(&flags)?).await?;
        let mut told = format!("{} answers from now on", model.name());
        if choice.is_global {
            let saved = commands::model::choose(&self.base, name, choice.provider)?;
            told = format!("{told}\n{saved}");
        }
        self.let_answer((model, warnings), flags, told, here).await
    }

    /// Goes on with the conversation, with this model and what it was made of.
    pub(super) async fn let_answer(
        &mut self,
        (model, warnings): (Arc<dyn Model>, Vec<String>),
        flags: RunFlags,
        mut told: String,
        here: &Here,
    ) -> Outcome<Done> {
        for warning in warnings {
            told = format!("{told}\nwarning: {warning}");
        }
        self.prepared.wired.ports.model = model;
        self.flags = flags;
        Ok(Done {
            told: Some(told),
            then: Then::Open(self.same_session(here).await?),
        })
    }

    /// The models that providers say they have; none of those who cannot be asked. The future stands alone.
    pub fn offered_models(&self) -> impl Future<Output = Vec<OfferedModel>> + Send + use<> {
        let askable = self.askable();
        async move {
            match askable {
                Ok(askable) => askable.offered().await,
                Err(_) => Vec::new(),
            }
        }
    }

    /// Everybody who can be asked, also after `/model` chose one of them.
    pub fn askable(&self) -> Outcome<Askable> {
        let flags = RunFlags {
            model: None,
            provider: None,
            ..self.flags.clone()
        };
        Askable::of(self.base.with_flags(&flags)?)
    }
}

/// What `/model` was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct ModelArguments<'a> {
    model: Option<&'a str>,
    provider: Option<&'a str>,
    is_global: bool,
}

impl<'a> ModelArguments<'a> {
    fn parse(arguments: &'a str) -> Outcome<Self> {
        let mut parsed = Self::default();
        let mut words = arguments.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "--global" => parsed.is_global = true,
                "--session" => parsed.is_global = false,
                "--provider" => parsed.provider = words.next(),
                word if word.starts_with("--") => {
                    return Err(no_such("/model", word, "--provider NAME and --global"));
                }
                word if parsed.model.is_none() => parsed.model = Some(word),
                word => return Err(no_such("/model", word, "one model")),
            }
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_may_come_with_its_provider_and_be_kept() {
        let parse = |arguments| ModelArguments::parse(arguments).map_err(|failure| failure.message);
        assert_eq!(parse(""), Ok(ModelArguments::default()));
        let kept = ModelArguments {
            model: Some("opus"),
            provider: Some("anthropic"),
            is_global: true,
        };
        assert_eq!(parse("opus --provider anthropic --global"), Ok(kept));
        assert!(parse("one two").is_err());
        assert!(parse("--nonsense").is_err());
    }
}
