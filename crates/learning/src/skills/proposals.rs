//! Changes that wait for a person's consent: `pending/skills/<number>.json`, one file each.

use std::fs;
use std::path::PathBuf;

use hermes_core::{Author, SessionId, Timestamp};
use hermes_os::{Access, Durability};
use serde::{Deserialize, Serialize};

use super::change::{Edit, Made};
use super::error::Doing as _;
use super::{By, SkillError, Skills};

/// Who is asked more often than this is asked nothing any more.
const PROPOSALS_MAX: usize = 200;

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
    pub async fn accept(&self, number: u64) -> Result<(Proposal, Made), SkillError> {
        let _lock = self.hold().await?;
        let proposal = self.proposal(number)?;
        let file = self.checked(&proposal.edit).await?;
        let by = By {
            author: proposal.author,
            session: proposal.session.clone(),
        };
        let made = self.make(proposal.edit.clone(), &by, file, None).await?;
        self.forget(number)?;
        Ok((proposal, made))
    }

    /// Drops a proposal.
    pub async fn reject(&self, number: u64) -> Result<Proposal, SkillError> {
        let _lock = self.hold().await?;
        let proposal = self.proposal(number)?;
        self.forget(number)?;
        Ok(proposal)
    }

    /// Writes a proposal down. One that says the same is not made twice. The lock is held.
    pub(super) fn propose(&self, edit: Edit, by: &By, why: &str) -> Result<u64, SkillError> {
        let all = self.proposals();
        if let Some(same) = all.iter().find(|proposal| proposal.edit == edit) {
            return Ok(same.number);
        }
        if all.len() >= PROPOSALS_MAX {
            return Err(SkillError::asked(format!(
                "{PROPOSALS_MAX} proposals wait for the user's consent already"
            ))
            .hint("ask the user to look at `hermes skills proposals`"));
        }
        let number = all.last().map_or(1, |last| last.number + 1);
        let proposal = Proposal {
            number,
            at: self.clock.now(),
            author: by.author,
            session: by.session.clone(),
            why: why.to_owned(),
            edit,
        };
        let path = self.proposal_file(number);
        fs::create_dir_all(&self.proposals).doing("make the folder", &self.proposals)?;
        let text = serde_json::to_string_pretty(&proposal).unwrap_or_default();
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
