//! Skills that say nearly the same, and what one text of both would be: that of the one that stays, and behind it what only
//! the other one says. A person reads it before anything is changed.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::state::CuratorState;
use super::{Alike, CURATOR, CuratorSettings};
use crate::skills::change::content;
use crate::skills::folders::{SKILL_CHARS_MAX, SKILL_FILE};
use crate::skills::library::{Library, Skill};
use crate::skills::{Edit, SkillError, Skills, Usage};

/// Of all words of two skills these are in both, when they say nearly the same.
const ALIKE_PERCENT: usize = 60;
/// Pairs that are named: more are not read.
const PAIRS_MAX: usize = 20;
/// Merges proposed at once: who is asked too much agrees to everything.
const MERGES_MAX: usize = 3;

/// Pairs of skills that say nearly the same, the most alike first.
pub(super) fn alike(skills: &[Skill]) -> Vec<Alike> {
    let words: Vec<BTreeSet<String>> = skills.iter().map(words).collect();
    let mut pairs = Vec::new();
    for (number, one) in words.iter().enumerate() {
        for (other_number, other) in words.iter().enumerate().skip(number + 1) {
            let percent = percent(one, other);
            if percent >= ALIKE_PERCENT {
                pairs.push(Alike {
                    one: skills[number].name.clone(),
                    other: skills[other_number].name.clone(),
                    percent,
                    proposal: None,
                });
            }
        }
    }
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.percent));
    pairs.truncate(PAIRS_MAX);
    pairs
}

fn percent(one: &BTreeSet<String>, other: &BTreeSet<String>) -> usize {
    let (less, more) = (one.len().min(other.len()), one.len().max(other.len()));
    // Not even all words of the shorter one would do.
    if less * 100 < more * ALIKE_PERCENT {
        return 0;
    }
    let both = one.intersection(other).count();
    (both * 100).checked_div(less + more - both).unwrap_or(0)
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

/// Which of two skills stays, and which goes into it.
struct Merge<'a> {
    kept: &'a Skill,
    absorbed: &'a Skill,
}

impl Skills {
    /// Proposes merges of pairs, unless that was done before: what a person refused is not asked again until a text changes.
    pub(super) async fn propose_merges(
        &self,
        library: &Library,
        pairs: &mut [Alike],
        settings: &CuratorSettings,
    ) -> Result<(), SkillError> {
        let usage = self.usage();
        let home = &self.sources.home;
        let mut merges_left = MERGES_MAX;
        let mut taken: BTreeSet<String> = BTreeSet::new();
        for pair in pairs {
            if merges_left == 0 || taken.contains(&pair.one) || taken.contains(&pair.other) {
                continue;
            }
            let (one, other) = (library.named(&pair.one)?, library.named(&pair.other)?);
            let Some(merge) = self.merge_of(one, other, &usage, settings).await? else {
                continue;
            };
            let Some(edits) = merge.edits(pair.percent)? else {
                continue;
            };
            let digest = digest(&edits);
            let _lock = self.hold().await?;
            let mut state = CuratorState::read(home);
            pair.proposal = self.proposal_of(&edits);
            if pair.proposal.is_none() && !state.has_proposed(&digest) {
                let why = "two skills say nearly the same";
                pair.proposal = Some(self.propose(edits, &CURATOR, why)?);
                state.remember(digest);
                state.save(home)?;
                merges_left -= 1;
            }
            taken.extend([pair.one.clone(), pair.other.clone()]);
        }
        Ok(())
    }

    /// Which of two would stay; `None` where neither may go.
    async fn merge_of<'a>(
        &self,
        one: &'a Skill,
        other: &'a Skill,
        usage: &Usage,
        settings: &CuratorSettings,
    ) -> Result<Option<Merge<'a>>, SkillError> {
        let is_untouchable = |skill: &Skill| {
            skill.is_external || usage.get(&skill.name).is_some_and(|record| record.pinned)
        };
        if is_untouchable(one) || is_untouchable(other) {
            return Ok(None);
        }
        // The one that is used less goes first.
        let mut order = [one, other];
        order.sort_by_key(|skill| (usage.uses(&skill.name), std::cmp::Reverse(&skill.name)));
        let [less, more] = order;
        for (absorbed, kept) in [(less, more), (more, less)] {
            let is_own = self.is_own(absorbed).await?;
            // Files beside it would be lost to the text that refers to them.
            let is_alone = absorbed.files().is_empty();
            if is_own && is_alone && !settings.in_use.contains(&absorbed.name) {
                return Ok(Some(Merge { kept, absorbed }));
            }
        }
        Ok(None)
    }
}

impl Merge<'_> {
    /// The changes of both files; `None` where the text would become too long.
    fn edits(&self, percent: usize) -> Result<Option<Vec<Edit>>, SkillError> {
        let Self { kept, absorbed } = self;
        let Some(before) = content(&kept.file)? else {
            return Ok(None);
        };
        let after = merged(&before, &absorbed.name, &absorbed.body);
        if after.chars().count() > SKILL_CHARS_MAX {
            return Ok(None);
        }
        let edit = |skill: &Skill, before, after, summary| Edit {
            skill: skill.name.clone(),
            category: None,
            path: SKILL_FILE.to_owned(),
            before,
            after,
            summary,
        };
        let into = format!(
            "merged `{}` into `{}` ({percent} % of the words are the same)",
            absorbed.name, kept.name
        );
        let away = format!(
            "archived the skill `{}`, covered by `{}`",
            absorbed.name, kept.name
        );
        let mut edits = Vec::new();
        if after != before {
            edits.push(edit(kept, Some(before), Some(after), into));
        }
        edits.push(edit(absorbed, content(&absorbed.file)?, None, away));
        Ok(Some(edits))
    }
}

/// A text with what only another one says behind it.
fn merged(text: &str, other_name: &str, other_body: &str) -> String {
    let known: BTreeSet<String> = blocks(text).iter().map(|block| plain(block)).collect();
    let new: Vec<String> = blocks(other_body)
        .into_iter()
        .filter(|block| !block.starts_with('#') && !known.contains(&plain(block)))
        .collect();
    if new.is_empty() {
        return text.to_owned();
    }
    format!(
        "{}\n\n## From `{other_name}`\n\n{}\n",
        text.trim_end(),
        new.join("\n\n")
    )
}

/// The parts of a text between blank lines; a fenced one stays whole.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    let mut is_fenced = false;
    for line in text.lines().chain(std::iter::once("")) {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if !line.trim().is_empty() || is_fenced {
            block.push(line);
        } else if !block.is_empty() {
            blocks.push(block.join("\n"));
            block.clear();
        }
    }
    if !block.is_empty() {
        blocks.push(block.join("\n"));
    }
    blocks
}

/// A part as it is compared: only its words.
fn plain(block: &str) -> String {
    let words = block.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join(" ")
}

/// What a merge is of.
fn digest(edits: &[Edit]) -> String {
    let mut hasher = Sha256::new();
    for edit in edits {
        hasher.update(edit.skill.as_bytes());
        hasher.update([0]);
        hasher.update(edit.before.as_deref().unwrap_or_default().as_bytes());
        hasher.update([0]);
    }
    let digest = hasher.finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merged_text_has_what_only_the_other_says_and_fences_stay_whole() {
        let text = "---\nname: a\n---\n\n# A\n\nRun the tests.\n\nThen ship.\n";
        let other = "# B\n\nrun the *tests*\n\n```sh\none\n\ntwo\n```\n\nThen ship.\n";
        assert_eq!(
            merged(text, "b", other),
            "---\nname: a\n---\n\n# A\n\nRun the tests.\n\nThen ship.\n\n## From `b`\n\n```sh\none\n\ntwo\n```\n"
        );
        assert_eq!(merged(text, "b", "# B\n\nThen ship!"), text);
    }
}
