//! `/model`: another model for the conversation at hand, and which models there are.

use hermes_core::SessionOptions;

use super::arguments::no_such;
use super::{Conversation, Done, Here};
use crate::error::Result;
use crate::models::known::{Askable, OfferedModel};
use crate::models::{Found, choice as model_choice};

impl Conversation {
    /// Changes the model from the next message on; with `--global`, of all future sessions too.
    pub(super) async fn model(&mut self, arguments: &str, here: &Here) -> Result<Done> {
        let choice = ModelArguments::parse(arguments)?;
        if choice.is_global {
            self.owner_only("/model --global")?;
        }
        let Some(name) = choice.model else {
            let model = self.setup.ports.model.name();
            return Ok(Done::text(format!(
                "{model} answers; /model PROVIDER:MODEL changes it, `hermes model list` shows what there is"
            )));
        };
        let options = SessionOptions {
            model: Some(name.to_owned()),
            provider: choice.provider.map(str::to_owned),
            ..self.options.clone()
        };
        let base = self.base.with_options(&options)?;
        let found = self.runtime.models().main(&base, options.audience).await?;
        let mut told = format!("{} answers from now on", found.model.name());
        if choice.is_global {
            let saved = model_choice::choose(&self.base, name, choice.provider)?;
            told = format!("{told}\n{saved}");
        }
        self.let_answer(found, options, told, here).await
    }

    /// Goes on with the conversation, with this model and what it was made of.
    pub(super) async fn let_answer(
        &mut self,
        found: Found,
        options: SessionOptions,
        mut told: String,
        here: &Here,
    ) -> Result<Done> {
        for warning in found.warnings {
            told = format!("{told}\nwarning: {warning}");
        }
        self.setup.ports.model = found.model;
        self.options = options;
        Ok(Done::open(self.same_session(here).await?).telling(told))
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
    pub fn askable(&self) -> Result<Askable> {
        let options = SessionOptions {
            model: None,
            provider: None,
            ..self.options.clone()
        };
        Askable::of(self.base.with_options(&options)?)
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
    fn parse(arguments: &'a str) -> Result<Self> {
        let mut wish = Self::default();
        let mut words = arguments.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "--global" => wish.is_global = true,
                "--session" => wish.is_global = false,
                "--provider" => wish.provider = words.next(),
                word if word.starts_with("--") => {
                    return Err(no_such("/model", word, "--provider NAME and --global"));
                }
                word if wish.model.is_none() => wish.model = Some(word),
                word => return Err(no_such("/model", word, "one model")),
            }
        }
        Ok(wish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_may_come_with_its_provider_and_be_kept() {
        let wish =
            |arguments| ModelArguments::parse(arguments).map_err(|failure| failure.to_string());
        assert_eq!(wish(""), Ok(ModelArguments::default()));
        let kept = ModelArguments {
            model: Some("opus"),
            provider: Some("anthropic"),
            is_global: true,
        };
        assert_eq!(wish("opus --provider anthropic --global"), Ok(kept));
        assert!(wish("one two").is_err());
        assert!(wish("--nonsense").is_err());
    }
}
