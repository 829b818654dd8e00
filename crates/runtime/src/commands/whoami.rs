//! `/whoami`: what is known of whoever talks.

use hermes_core::{FactId, UserModel as _};
use hermes_learning::user_model::LocalUserModel;
use hermes_learning::user_model::ask::with_sources;
use hermes_learning::user_model::honcho::{HonchoError, HonchoUserModel};

use super::Conversation;
use crate::error::{Error, Result};
use crate::layout::printable;
use crate::user_model::{self, History};

impl Conversation {
    pub(super) async fn whoami(&self, arguments: &str) -> Result<String> {
        if let Some(honcho) = self.honcho()? {
            return asked_of_honcho(&honcho, arguments).await;
        }
        let known = self.user_model()?;
        let (word, rest) = match arguments.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (arguments, ""),
        };
        match (word, rest) {
            ("", _) => {
                let facts = known.known().await.map_err(user_model::told)?;
                let now = self.runtime.clock().now();
                Ok(user_model::shown(&facts, History::LeftOut, now))
            }
            ("forget", facts) => {
                let gone = known.forget(&fact_ids(facts)?).await;
                user_model::changed(gone)
            }
            _ => self.asked_of_user(arguments).await,
        }
    }

    async fn asked_of_user(&self, question: &str) -> Result<String> {
        let base = self.settings_now()?;
        let person = self.options.person.clone();
        let store = self.archive().clone();
        let models = self.runtime.models();
        let known = user_model::for_questions(&base, person, store, models).await?;
        let answer = known.ask(question).await.map_err(Error::asked)?;
        let facts = known.known().await.map_err(user_model::told)?;
        Ok(printable(&with_sources(&answer, &facts)))
    }

    fn honcho(&self) -> Result<Option<HonchoUserModel>> {
        let person = self.options.person.clone();
        user_model::honcho_for_commands(&self.settings_now()?, person, self.archive().clone())
    }

    fn user_model(&self) -> Result<LocalUserModel> {
        let person = self.options.person.clone();
        user_model::for_commands(&self.settings_now()?, person, self.archive().clone())
    }
}

/// The same where Honcho keeps it.
async fn asked_of_honcho(honcho: &HonchoUserModel, arguments: &str) -> Result<String> {
    let failure = |error: HonchoError| Error::asked(format!("Honcho: {error}"));
    if arguments.is_empty() {
        let known = honcho.known().await.map_err(failure)?;
        return Ok(user_model::shown_honcho(&known));
    }
    if let Some(ids) = arguments.strip_prefix("forget ") {
        for id in ids.split_whitespace() {
            let deleted = honcho.honcho.delete_conclusion(id, honcho.timeout());
            deleted.await.map_err(failure)?;
        }
        return Ok(format!("Honcho has forgotten {}", printable(ids)));
    }
    let answer = honcho.ask(arguments).await.map_err(Error::asked)?;
    Ok(printable(&answer.text))
}

fn fact_ids(names: &str) -> Result<Vec<FactId>> {
    let split = names.split([' ', ',']).filter(|name| !name.is_empty());
    let ids: Vec<FactId> = split
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|error: hermes_core::user_model::NoFactId| Error::asked(error.to_string()))?;
    if ids.is_empty() {
        return Err(Error::asked("which facts? /whoami lists them by name"));
    }
    Ok(ids)
}
