//! `/skills` and the slash names of skills: they are looked for anew each time, for people write them while they talk.

use hermes_core::SessionId;
use hermes_core::skill::SkillNames;

use super::{Conversation, blocking};
use crate::error::Result;
use crate::skills::{Library, Sources};

impl Conversation {
    /// The slash names of the skills there are now; none if they cannot be looked for, and `/skills` tells why. The future
    /// stands alone.
    pub fn skill_names(&self) -> impl Future<Output = SkillNames> + Send + use<> {
        let sources = self.skill_sources();
        async move {
            let Ok(sources) = sources else {
                return SkillNames::NONE;
            };
            let library = blocking(move || sources.library()).await;
            library.map(|library| library.names()).unwrap_or_default()
        }
    }

    /// The skills of these slash names as words for the model, each or why not.
    pub async fn skills(
        &self,
        names: Vec<String>,
        session: SessionId,
    ) -> Result<Vec<Result<String>>> {
        let sources = self.skill_sources()?;
        blocking(move || {
            let told = names.iter().map(|name| sources.told(name, &session));
            told.collect()
        })
        .await
    }

    pub(super) async fn library(&self) -> Result<Library> {
        let sources = self.skill_sources()?;
        blocking(move || sources.library()).await
    }

    /// As the settings say now, not as they did at the start.
    fn skill_sources(&self) -> Result<Sources> {
        Sources::of(&self.settings_now()?)
    }
}
