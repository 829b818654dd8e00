//! Looks after the skills that the agent wrote: what nobody uses is marked, later archived; what says nearly the same is named.
//! Mechanical: no model is asked, nothing is deleted, and what a person wrote or pinned is not touched.

use std::collections::BTreeSet;
use std::time::Duration;

use hermes_core::{Author, Timestamp};

use super::change::content;
use super::folders::SKILL_FILE;
use super::library::Skill;
use super::usage::State;
use super::{By, Edit, Made, SkillError, Skills, Usage};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Unused for so long, a skill is stale.
const STALE_AFTER: Duration = DAY.saturating_mul(30);
/// Unused for so long, it is archived.
const ARCHIVED_AFTER: Duration = DAY.saturating_mul(90);
/// Of all words of two skills these are in both, when they say nearly the same.
const ALIKE_PERCENT: usize = 60;
/// Pairs that are named: more are not read.
const PAIRS_MAX: usize = 20;

/// What was done, and what is left to a person.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Curated {
    pub stale: Vec<String>,
    pub archived: Vec<String>,
    /// Pairs that say nearly the same, with how much of it in percent.
    pub alike: Vec<(String, String, usize)>,
}

/// Whether it is done or only told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curating {
    Really,
    /// Nothing is changed.
    ToSee,
}

/// What becomes of one skill.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    Stale,
    Archived,
}

impl Skills {
    pub async fn curate(&self, curating: Curating) -> Result<Curated, SkillError> {
        let library = self.library().await;
        let usage = self.usage();
        let mut curated = Curated {
            alike: alike(&library.skills),
            ..Curated::default()
        };
        for skill in &library.skills {
            match fate(skill, &usage, self.clock.now()) {
                Fate::Stays => {}
                Fate::Stale => curated.stale.push(skill.name.clone()),
                Fate::Archived => {
                    if curating == Curating::ToSee || self.archive_unused(skill).await? {
                        curated.archived.push(skill.name.clone());
                    }
                }
            }
        }
        if curating == Curating::Really && !curated.stale.is_empty() {
            let _lock = self.hold().await?;
            self.update_usage(|usage, _| {
                for name in &curated.stale {
                    usage.entry(name).state = State::Stale;
                }
            })?;
        }
        Ok(curated)
    }

    /// Archives a skill, unless it turns out to be a person's.
    async fn archive_unused(&self, skill: &Skill) -> Result<bool, SkillError> {
        if self
            .why_not_own(&skill.name, SKILL_FILE, &skill.file)
            .await?
            .is_some()
        {
            return Ok(false);
        }
        let days = ARCHIVED_AFTER.as_secs() / DAY.as_secs();
        let edit = Edit {
            skill: skill.name.clone(),
            category: None,
            path: SKILL_FILE.to_owned(),
            before: content(&skill.file)?,
            after: None,
            summary: format!(
                "archived the skill `{}`, unused for {days} days",
                skill.name
            ),
        };
        let by = By {
            author: Author::Curator,
            session: None,
        };
        let made = self.change(edit, &by).await?;
        Ok(matches!(made, Made::Done { .. }))
    }
}

fn fate(skill: &Skill, usage: &Usage, now: Timestamp) -> Fate {
    let Some(record) = usage.get(&skill.name) else {
        return Fate::Stays;
    };
    if skill.is_external || record.pinned || !usage.is_of_agent(&skill.name) {
        return Fate::Stays;
    }
    let Some(last) = record.last_touched() else {
        return Fate::Stays;
    };
    match now {
        now if now >= last.plus(ARCHIVED_AFTER) => Fate::Archived,
        now if now >= last.plus(STALE_AFTER) && record.state != State::Stale => Fate::Stale,
        _ => Fate::Stays,
    }
}

/// Pairs of skills that say nearly the same, the most alike first.
fn alike(skills: &[Skill]) -> Vec<(String, String, usize)> {
    let words: Vec<BTreeSet<String>> = skills.iter().map(words).collect();
    let mut pairs = Vec::new();
    for (number, one) in words.iter().enumerate() {
        for (other_number, other) in words.iter().enumerate().skip(number + 1) {
            let both = one.intersection(other).count();
            let all = one.len() + other.len() - both;
            let percent = (both * 100).checked_div(all).unwrap_or(0);
            if percent >= ALIKE_PERCENT {
                let name = |number: usize| skills[number].name.clone();
                pairs.push((name(number), name(other_number), percent));
            }
        }
    }
    pairs.sort_by_key(|(_, _, percent)| std::cmp::Reverse(*percent));
    pairs.truncate(PAIRS_MAX);
    pairs
}

/// The words of a skill that carry its meaning.
fn words(skill: &Skill) -> BTreeSet<String> {
    let text = format!("{} {}", skill.description, skill.body).to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| word.chars().count() > 3)
        .map(str::to_owned)
        .collect()
}
