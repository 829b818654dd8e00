//! How it came out when the agent went by a skill: told from how turns end, and from what had to be mended.
//!
//! A turn that came to its end speaks for the skills it loaded; one that ran out of steps or got stuck speaks against them, and
//! so does a skill that had to be mended, in the turn itself or by the review afterwards. A turn that a person stopped, or
//! that broke for other reasons, says nothing.

use hermes_core::{LearnedChange, Subject, TurnEnd};
use serde_json::Value;

use super::tools::{VIEWER, WRITER, mends};
use super::{Happened, Library, Skill, SkillError, Skills};

/// Skills of one turn; more are not counted.
const SKILLS_MAX: usize = 32;

/// The skills that the turn which runs has gone by.
#[derive(Debug, Default)]
pub struct TurnSkills {
    loaded: Vec<String>,
    mended: Vec<String>,
}

impl TurnSkills {
    /// Hears of a call: was a skill loaded, or mended?
    pub fn hear(&mut self, tool: &str, arguments: &Value) {
        let Some(name) = arguments["name"].as_str() else {
            return;
        };
        let heard = match tool {
            VIEWER => &mut self.loaded,
            WRITER if mends(arguments) => &mut self.mended,
            _ => return,
        };
        if heard.len() < SKILLS_MAX && !heard.iter().any(|known| known == name) {
            heard.push(name.to_owned());
        }
    }

    /// A turn begins with skills that a person named, or the whole conversation goes by: they count as if they were loaded.
    pub fn begin(&mut self, named: impl IntoIterator<Item = String>) {
        for name in named {
            if self.loaded.len() < SKILLS_MAX && !self.loaded.contains(&name) {
                self.loaded.push(name);
            }
        }
    }

    /// Those that it has gone by so far.
    pub fn names(&self) -> Vec<String> {
        self.loaded.clone()
    }

    /// Whether the turn goes by any.
    pub fn is_any(&self) -> bool {
        !self.loaded.is_empty()
    }

    /// The turn is over: which skills it speaks for or against. What comes next is another turn.
    pub fn end(&mut self, end: &TurnEnd) -> Vec<(String, Happened)> {
        let Self { loaded, mended } = std::mem::take(self);
        let is_well = match end {
            TurnEnd::Finished => true,
            TurnEnd::OutOfSteps { .. } | TurnEnd::Stuck { .. } => false,
            TurnEnd::Interrupted
            | TurnEnd::Failed { .. }
            | TurnEnd::Broken { .. }
            | TurnEnd::Abandoned { .. } => return Vec::new(),
        };
        let outcomes = loaded.into_iter().map(|name| {
            let is_well = is_well && !mended.contains(&name);
            let outcome = if is_well {
                Happened::Succeeded
            } else {
                Happened::Failed
            };
            (name, outcome)
        });
        outcomes.collect()
    }
}

/// The slash names that somebody's words begin with: `/review /plan the last commit`. Those of no skill are passed over later.
pub fn slash_names(words: &str) -> Vec<String> {
    let names = words.split_whitespace().map_while(|word| {
        let name = word.strip_prefix('/')?;
        (!name.is_empty() && !name.contains('/')).then(|| name.to_lowercase())
    });
    names.take(SKILLS_MAX).collect()
}

/// The skills that a review had to mend: each was counted as a success before.
pub fn misled(changes: &[LearnedChange]) -> Vec<(String, Happened)> {
    let mut names: Vec<&String> = changes
        .iter()
        .filter(|change| change.change.before.is_some() && change.change.after.is_some())
        .filter_map(|change| match &change.change.subject {
            Subject::Skill { name, .. } => Some(name),
            _ => None,
        })
        .collect();
    names.sort();
    names.dedup();
    let misled = names
        .into_iter()
        .map(|name| (name.clone(), Happened::Misled));
    misled.collect()
}

impl Skills {
    /// Counts how it came out. Names that no skill has are left out.
    pub async fn count_outcomes(&self, outcomes: Vec<(String, Happened)>) {
        if outcomes.is_empty() {
            return;
        }
        let library = self.library().await;
        for (name, outcome) in outcomes {
            if let Some(skill) = called(&library, &name) {
                self.count(std::slice::from_ref(&skill.name), outcome).await;
            }
        }
    }
}

impl Skills {
    /// Notes that a review is to look at skills. Returns whether there is one among them that none was to look at today.
    pub async fn look_once_a_day(&self, names: &[String]) -> bool {
        let library = self.library().await;
        let known: Vec<String> = names
            .iter()
            .filter_map(|name| Some(called(&library, name)?.name.clone()))
            .collect();
        match self.note_look(&known).await {
            Ok(is_first) => is_first,
            Err(error) => {
                tracing::warn!("it was not noted that a skill is looked at: {error}");
                false
            }
        }
    }

    async fn note_look(&self, names: &[String]) -> Result<bool, SkillError> {
        let today = Some(self.clock.now().date_text());
        let usage = self.usage();
        let looked_at = |name: &String| {
            usage
                .get(name)
                .and_then(|record| record.looked_at_on.clone())
        };
        if names.iter().all(|name| looked_at(name) == today) {
            return Ok(false);
        }
        let _lock = self.hold().await?;
        self.update_usage(|usage, _| {
            for name in names {
                usage.entry(name).looked_at_on = today.clone();
            }
        })?;
        Ok(true)
    }
}

/// The skill that a model or a person means by a name.
fn called<'a>(library: &'a Library, name: &str) -> Option<&'a Skill> {
    let by_slash = |skill: &&Skill| skill.slash.as_deref() == Some(name);
    let skill = library.called(name);
    skill.or_else(|| library.skills.iter().find(by_slash))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turn(calls: &[(&str, Value)], end: &TurnEnd) -> Vec<(String, Happened)> {
        let mut turn = TurnSkills::default();
        for (tool, arguments) in calls {
            turn.hear(tool, arguments);
        }
        turn.end(end)
    }

    #[test]
    fn the_end_of_a_turn_speaks_for_or_against_the_skills_it_loaded() {
        let loaded = |name: &str| (VIEWER, json!({ "name": name }));
        let patched = (WRITER, json!({ "name": "b", "action": "patch" }));
        let written = (WRITER, json!({ "name": "a", "action": "write_file" }));
        let calls = [loaded("a"), loaded("b"), loaded("a"), patched, written];
        assert_eq!(
            turn(&calls, &TurnEnd::Finished),
            [
                ("a".to_owned(), Happened::Succeeded),
                ("b".to_owned(), Happened::Failed)
            ]
        );
        assert_eq!(
            turn(&[loaded("a")], &TurnEnd::OutOfSteps { steps: 90 }),
            [("a".to_owned(), Happened::Failed)]
        );
        assert_eq!(turn(&[loaded("a")], &TurnEnd::Interrupted), []);
        assert_eq!(turn(&[], &TurnEnd::Finished), []);
    }

    #[test]
    fn skills_that_a_person_named_count_as_loaded() {
        let mut turn = TurnSkills::default();
        turn.begin(slash_names("/Review /plan the /last commit"));
        assert_eq!(
            turn.end(&TurnEnd::OutOfSteps { steps: 90 }),
            [
                ("review".to_owned(), Happened::Failed),
                ("plan".to_owned(), Happened::Failed)
            ]
        );
        assert_eq!(slash_names("a /path/of mine"), [""; 0]);
        assert_eq!(slash_names("/etc/hosts"), [""; 0]);
    }
}
