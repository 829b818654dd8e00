//! Looks after the skills that the agent wrote: what nobody uses is marked, later archived; of what says nearly the same a
//! merge is proposed.
//!
//! Mechanical: no model is asked, nothing is deleted, and what a person wrote, edited or pinned is not touched. Start at
//! [`Skills::curate`]; [`Skills::curate_if_due`] is the same at its own pace.

mod merge;
mod state;

use std::collections::BTreeSet;
use std::time::Duration;

use hermes_core::{Author, Timestamp};

use super::change::content;
use super::folders::SKILL_FILE;
use super::library::{Library, Skill};
use super::usage::State;
use super::{By, Edit, Made, SkillError, Skills, Usage, blocking};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Who changes, when it is the curator.
const CURATOR: By = By {
    author: Author::Curator,
    session: None,
};

/// How long a skill may lie unused, and which are never touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CuratorSettings {
    /// Unused for so long, a skill is stale.
    pub stale_after: Duration,
    /// Unused for so long, it is archived.
    pub archived_after: Duration,
    /// Skills that something refers to, such as a job: it may run once a year. Those of bundles are known without.
    pub in_use: BTreeSet<String>,
}

impl Default for CuratorSettings {
    fn default() -> Self {
        Self {
            stale_after: DAY.saturating_mul(30),
            archived_after: DAY.saturating_mul(90),
            in_use: BTreeSet::new(),
        }
    }
}

impl CuratorSettings {
    /// The names as skills have them, with those of bundles.
    fn with_bundles(&self, library: &Library) -> Self {
        let of_bundles = library.bundles.iter().flat_map(|bundle| &bundle.skills);
        let all = self.in_use.iter().chain(of_bundles);
        let in_use = all.filter_map(|name| Some(library.called(name)?.name.clone()));
        Self {
            in_use: in_use.collect(),
            ..self.clone()
        }
    }
}

/// What was done, and what is left to a person.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Curated {
    pub stale: Vec<String>,
    pub archived: Vec<String>,
    pub alike: Vec<Alike>,
}

/// Two skills that say nearly the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    pub one: String,
    pub other: String,
    /// How much of it, of a hundred.
    pub percent: usize,
    /// The proposal that merges them, if there is one.
    pub proposal: Option<u64>,
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

impl Curated {
    /// In one line, for the conversation that it happened beside; `None` where nothing is to be told.
    pub fn told(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.archived.is_empty() {
            parts.push(format!(
                "archived unused skills: {} (`hermes skills undo NAME` brings one back)",
                self.archived.join(", ")
            ));
        }
        let merges = self.alike.iter().filter(|pair| pair.proposal.is_some());
        let merges: Vec<String> = merges
            .map(|pair| format!("{} and {}", pair.one, pair.other))
            .collect();
        if !merges.is_empty() {
            parts.push(format!(
                "proposes to merge {} (/skills proposals)",
                merges.join("; ")
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl Skills {
    /// The same as [`Self::curate`], unless it was done less than `interval` ago, by whichever process. The first time only
    /// begins the interval: whoever has just come here with a home of years loses nothing on the first day.
    pub async fn curate_if_due(
        &self,
        interval: Duration,
        settings: &CuratorSettings,
    ) -> Result<Option<Curated>, SkillError> {
        {
            let _lock = self.hold().await?;
            let is_due = state::claim(&self.sources.home, interval, self.clock.now())?;
            if !is_due {
                return Ok(None);
            }
        }
        self.curate(Curating::Really, settings).await.map(Some)
    }

    pub async fn curate(
        &self,
        curating: Curating,
        settings: &CuratorSettings,
    ) -> Result<Curated, SkillError> {
        let library = self.library().await;
        let settings = &settings.with_bundles(&library);
        let usage = self.usage();
        let mut curated = Curated::default();
        for skill in &library.skills {
            let fate = fate(skill, &usage, self.clock.now(), settings);
            if fate == Fate::Stays || !self.is_own(skill).await? {
                continue;
            }
            if fate == Fate::Stale {
                curated.stale.push(skill.name.clone());
            } else if curating == Curating::ToSee || self.archive_unused(skill, settings).await? {
                curated.archived.push(skill.name.clone());
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
        curated.alike = self
            .look_for_pairs(library, &curated.archived, curating, settings)
            .await?;
        Ok(curated)
    }

    async fn look_for_pairs(
        &self,
        mut library: Library,
        archived: &[String],
        curating: Curating,
        settings: &CuratorSettings,
    ) -> Result<Vec<Alike>, SkillError> {
        library
            .skills
            .retain(|skill| !archived.contains(&skill.name));
        let (library, mut pairs) = blocking(move || {
            let pairs = merge::alike(&library.skills);
            (library, pairs)
        })
        .await;
        if curating == Curating::Really {
            self.propose_merges(&library, &mut pairs, settings).await?;
        }
        Ok(pairs)
    }

    async fn is_own(&self, skill: &Skill) -> Result<bool, SkillError> {
        let why_not = self.why_not_own_whole(&skill.name).await;
        Ok(why_not?.is_none())
    }

    /// Archives a skill, unless that has to be asked for.
    async fn archive_unused(
        &self,
        skill: &Skill,
        settings: &CuratorSettings,
    ) -> Result<bool, SkillError> {
        let days = settings.archived_after.as_secs() / DAY.as_secs();
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
        let made = self.change(edit, &CURATOR).await?;
        Ok(matches!(made, Made::Done { .. }))
    }
}

fn fate(skill: &Skill, usage: &Usage, now: Timestamp, settings: &CuratorSettings) -> Fate {
    let Some(record) = usage.get(&skill.name) else {
        return Fate::Stays;
    };
    let is_looked_after = !skill.is_external
        && !record.pinned
        && !record.edited_by_person
        && usage.is_of_agent(&skill.name)
        && !settings.in_use.contains(&skill.name);
    let Some(last) = record.last_touched().filter(|_| is_looked_after) else {
        return Fate::Stays;
    };
    match now {
        now if now >= last.plus(settings.archived_after) => Fate::Archived,
        now if now >= last.plus(settings.stale_after) && record.state != State::Stale => {
            Fate::Stale
        }
        _ => Fate::Stays,
    }
}
