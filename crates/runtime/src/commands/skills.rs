//! `/skills` and the slash names of skills: they are looked for anew each time, for people write them while they talk.

use std::sync::Arc;

use hermes_core::skill::SkillNames;
use hermes_core::{Clock as _, SessionId};
use hermes_learning::skills::{Happened, Skills, Sources};

use super::arguments::{no_such, search_words};
use super::{Conversation, Done, Shown};
use crate::clock::SystemClock;
use crate::error::Result;
use crate::skills::{self, grants};

const COMMAND: &str = "/skills";

impl Conversation {
    /// The slash names of the skills there are now; none if they cannot be looked for, and `/skills` tells why. The future
    /// stands alone.
    pub fn skill_names(&self) -> impl Future<Output = SkillNames> + Send + use<> {
        let skills = self.skills_now();
        async move {
            match skills {
                Ok(skills) => skills.library().await.names(),
                Err(_) => SkillNames::NONE,
            }
        }
    }

    /// The skills of these slash names as words for the model, each or why not.
    pub async fn skills(
        &self,
        names: Vec<String>,
        session: SessionId,
    ) -> Result<Vec<Result<String>>> {
        let skills = self.skills_now()?;
        let sources = Sources {
            shell: self.setup.inline(&self.settings_now()?)?,
            ..skills.sources.clone()
        };
        let mut told = Vec::new();
        for name in &names {
            told.push(Box::pin(sources.told(name, &session)).await);
        }
        let used = told.iter().flatten().flat_map(|told| told.names.clone());
        skills
            .count(&used.collect::<Vec<_>>(), Happened::Used)
            .await;
        let words = told.into_iter().map(|told| Ok(told?.text));
        Ok(words.collect())
    }

    /// `/skills [WORDS]` lists; `proposals`, `diff`, `accept` and `reject` are about changes that wait for consent, `allow` and
    /// `disallow` about what skills are given.
    pub(super) async fn skills_command(&self, arguments: &str) -> Result<Done> {
        let skills = self.skills_now()?;
        let words: Vec<&str> = arguments.split_whitespace().collect();
        Ok(match words.as_slice() {
            ["proposals" | "pending"] => {
                let proposals = skills.proposals();
                Done::text(skills::proposals(&proposals, SystemClock.now(), COMMAND))
            }
            ["diff", number] => {
                let proposal = skills.proposal(numbered(number)?)?;
                Done::shown(Shown::Diff(skills::proposed_diff(&proposal)))
            }
            ["accept" | "approve", number] => {
                let (proposal, _) = skills.accept(numbered(number)?).await?;
                Done::text(format!("done: {}", skills::proposed_summary(&proposal)))
            }
            ["reject" | "deny", number] => {
                let proposal = skills.reject(numbered(number)?).await?;
                Done::text(format!("dropped: {}", skills::proposed_summary(&proposal)))
            }
            ["allow"] => Done::text(grants::listed(&self.settings_now()?)?),
            ["allow", name @ .., needed] if !name.is_empty() => {
                let base = self.settings_now()?;
                let grant = Box::pin(grants::allow(&base, &name.join(" "), needed)).await?;
                Done::text(skills::allowed(&grant))
            }
            ["disallow", name @ .., needed] if !name.is_empty() => {
                let base = self.settings_now()?;
                let name = name.join(" ");
                let taken = Box::pin(grants::disallow(&base, &name, Some(needed))).await?;
                Done::text(skills::disallowed(taken))
            }
            _ => {
                let library = skills.library().await;
                let listed = skills::list(&library, search_words(arguments));
                Done::text(match skills.proposals().len() {
                    0 => listed,
                    1 => format!("{listed}\n\na change waits for you: {COMMAND} proposals"),
                    many => format!("{listed}\n\n{many} changes wait for you: {COMMAND} proposals"),
                })
            }
        })
    }

    /// As the settings say now, not as they did at the start.
    fn skills_now(&self) -> Result<Skills> {
        let log = Arc::clone(self.runtime.store());
        skills::skills(&self.settings_now()?, Some(log))
    }
}

fn numbered(text: &str) -> Result<u64> {
    text.parse()
        .map_err(|_| no_such(COMMAND, text, "the number of a proposal"))
}
