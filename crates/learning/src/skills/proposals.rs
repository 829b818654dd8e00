//! Changes that wait for a person's consent: `pending/skills/<number>.json`, one file each.

use std::fs;
use std::path::PathBuf;

use hermes_core::{Author, SessionId, Timestamp};
use hermes_os::{Access, Durability};
use serde::{Deserialize, Serialize};

use super::change::{Edit, Made, content, place};
use super::error::Doing as _;
use super::{By, SkillError, Skills};

/// Who is asked more often than this is asked nothing any more.
const PROPOSALS_MAX: usize = 200;

/// Holds the highest number that was given out.
const LAST_NUMBER: &str = ".last-number";

/// A change that somebody wants to make to what is not theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    #[serde(default)]
    pub number: u64,
    pub at: Timestamp,
    pub author: Author,
    pub session: Option<SessionId>,
    /// Why it was not made at once.
    pub why: String,
    pub edit: Edit,
    /// What is changed with it: a merge is of two skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<Edit>,
}

impl Proposal {
    /// All its changes, in order.
    pub fn edits(&self) -> impl Iterator<Item = &Edit> {
        std::iter::once(&self.edit).chain(&self.then)
    }
}

impl Skills {
    /// The proposals that wait, the oldest first. A file that is none is passed over.
    pub fn proposals(&self) -> Vec<Proposal> {
        let entries = self.proposals.read_dir().into_iter().flatten().flatten();
        let proposals = entries.filter_map(|entry| {
            let path = entry.path();
            let number: u64 = path.file_stem()?.to_str()?.parse().ok()?;
            let text = fs::read_to_string(&path).ok()?;
            let proposal: Proposal = serde_json::from_str(&text).ok()?;
            Some(Proposal { number, ..proposal })
        });
        let mut proposals: Vec<_> = proposals.collect();
        proposals.sort_by_key(|proposal| proposal.number);
        proposals
    }

    pub fn proposal(&self, number: u64) -> Result<Proposal, SkillError> {
        let all = self.proposals();
        let found = all.into_iter().find(|proposal| proposal.number == number);
        found.ok_or_else(|| {
            SkillError::asked(format!("there is no proposal {number}"))
                .hint("`hermes skills proposals` lists them")
        })
    }

    /// Makes a proposed change, if the file still is what it was.
    pub async fn accept(&self, number: u64) -> Result<(Proposal, Vec<Made>), SkillError> {
        let _lock = self.hold().await?;
        let proposal = self.proposal(number)?;
        let by = By {
            author: proposal.author,
            session: proposal.session.clone(),
        };
        // All are looked at before the first is made. What is made already was cut off by a crash after it.
        let mut waiting = Vec::new();
        for edit in proposal.edits() {
            if proposal.then.is_empty() || !self.is_made(edit).await? {
                self.checked(edit).await?;
                waiting.push(edit.clone());
            }
        }
        let mut made = Vec::new();
        for edit in waiting {
            let file = self.checked(&edit).await?;
            made.push(self.make(edit, &by, file, None).await?);
        }
        self.forget(number)?;
        Ok((proposal, made))
    }

    /// Whether a file is what a change would make it.
    async fn is_made(&self, edit: &Edit) -> Result<bool, SkillError> {
        let library = self.library().await;
        let is_now = match place(&library, &edit.skill, &edit.path) {
            Ok(file) => content(&file)?,
            Err(_) => None,
        };
        Ok(is_now == edit.after)
    }

    /// Drops a proposal.
    pub async fn reject(&self, number: u64) -> Result<Proposal, SkillError> {
        let _lock = self.hold().await?;
        let proposal = self.proposal(number)?;
        self.forget(number)?;
        Ok(proposal)
    }

    /// Writes a proposal down. One that says the same is not made twice. The lock is held.
    pub(super) fn propose(&self, edits: Vec<Edit>, by: &By, why: &str) -> Result<u64, SkillError> {
        if let Some(same) = self.proposal_of(&edits) {
            return Ok(same);
        }
        let all = self.proposals();
        if all.len() >= PROPOSALS_MAX {
            return Err(SkillError::asked(format!(
                "{PROPOSALS_MAX} proposals wait for the user's consent already"
            ))
            .hint("ask the user to look at `hermes skills proposals`"));
        }
        let mut edits = edits.into_iter();
        let edit = edits
            .next()
            .ok_or_else(|| SkillError::asked("there is nothing to propose"))?;
        fs::create_dir_all(&self.proposals).doing("make the folder", &self.proposals)?;
        let number = self.next_number(&all)?;
        let proposal = Proposal {
            number,
            at: self.clock.now(),
            author: by.author,
            session: by.session.clone(),
            why: why.to_owned(),
            edit,
            then: edits.collect(),
        };
        let path = self.proposal_file(number);
        let text = serde_json::to_string_pretty(&proposal).unwrap_or_default();
        hermes_os::replace(&path, text.as_bytes(), Access::Private, Durability::Synced)
            .doing("write", &path)?;
        Ok(number)
    }

    /// The proposal that wants just this.
    pub(super) fn proposal_of(&self, edits: &[Edit]) -> Option<u64> {
        let all = self.proposals();
        let same = all
            .iter()
            .find(|proposal| proposal.edits().eq(edits.iter()));
        same.map(|proposal| proposal.number)
    }

    /// A number that no proposal ever had: whoever read one and accepts it later means that one.
    fn next_number(&self, waiting: &[Proposal]) -> Result<u64, SkillError> {
        let path = self.proposals.join(LAST_NUMBER);
        let last = fs::read_to_string(&path).unwrap_or_default();
        let last: u64 = last.trim().parse().unwrap_or(0);
        let waiting = waiting.last().map_or(0, |proposal| proposal.number);
        let number = last.max(waiting) + 1;
        let text = format!("{number}\n");
        hermes_os::replace(&path, text.as_bytes(), Access::Private, Durability::Synced)
            .doing("write", &path)?;
        Ok(number)
    }

    fn forget(&self, number: u64) -> Result<(), SkillError> {
        let path = self.proposal_file(number);
        fs::remove_file(&path).doing("remove", &path)
    }

    fn proposal_file(&self, number: u64) -> PathBuf {
        self.proposals.join(format!("{number}.json"))
    }
}
