//! Whether the provider of the model of the user is there, where one was chosen.

use super::Check;
use crate::base::Base;
use crate::user_model::{Provider, honcho_standing};

const NAME: &str = "user model";

/// Nothing where it is kept here: there is nothing that could be away.
pub(super) async fn checks(base: &Base, is_offline: bool) -> Vec<Check> {
    let provider = match Provider::chosen(base) {
        Ok(provider) => provider,
        Err(error) => {
            let fix = "`hermes config explain memory.provider`";
            return vec![Check::broken(NAME, error.to_string(), fix)];
        }
    };
    match provider {
        Provider::Honcho if is_offline => vec![Check::good(NAME, "Honcho; not asked")],
        Provider::Honcho => {
            let standing = honcho_standing(base).await;
            match standing {
                Ok(text) => vec![Check::good(NAME, text)],
                Err(text) => vec![Check::broken(
                    NAME,
                    text,
                    "see honcho.json and HONCHO_API_KEY; or `hermes config set memory.provider local`",
                )],
            }
        }
        other => other
            .warning(base)
            .into_iter()
            .map(|text| Check::doubtful(NAME, text, "`hermes config set memory.provider local`"))
            .collect(),
    }
}
