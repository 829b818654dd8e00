//! Skills from elsewhere: found at GitHub, on sites that list theirs, at skills.sh and ClawHub, or by an address.
//!
//! [`Hub::fetch`] brings one here and has it scanned; nothing of it is used before [`Hub::install`], which a person agreed
//! to. What is installed stands in `skills/.hub/lock.json` with its hash. `sources` knows how places are asked, `archive`
//! unpacks, `records` keeps the books, `install` and `swap` move into place.

mod archive;
mod install;
mod records;
mod sources;
mod swap;

use std::sync::Arc;

use hermes_core::BoxFuture;

use super::guard::{ScanReport, ScanVerdict, SkillFile, scan};
use super::{SkillError, Skills, document};

pub(super) use archive::safe_path;
pub(super) use install::FilesThere;
pub use install::{Audited, Force, Updated};
#[cfg(test)]
pub(super) use records::content_hash;
pub use records::{Installed, Lock};
pub(super) use swap::Swap;

/// Files and bytes of one skill from elsewhere: far more than any has.
const FILES_MAX: usize = 300;
const TOTAL_BYTES_MAX: usize = 10 * 1024 * 1024;

/// How addresses are asked. Whoever implements it judges where they lead.
pub trait Web: Send + Sync {
    /// All of what an address names, or why it did not come.
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, WebError>>;
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct WebError {
    pub message: String,
    /// What the server answered, if it did.
    pub status: Option<u16>,
}

/// Where skills come from.
#[derive(Clone)]
pub struct Hub {
    pub skills: Skills,
    pub web: Arc<dyn Web>,
    pub places: Places,
}

/// Addresses of services, without a slash at their end.
#[derive(Debug, Clone)]
pub struct Places {
    pub github_api: String,
    pub github_raw: String,
    pub skills_sh: String,
    pub clawhub: String,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            github_api: "https://api.github.com".to_owned(),
            github_raw: "https://raw.githubusercontent.com".to_owned(),
            skills_sh: "https://skills.sh".to_owned(),
            clawhub: "https://clawhub.ai".to_owned(),
        }
    }
}

/// Who answers for a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// A repository of a maker that many look at.
    Trusted,
    Community,
}

impl Trust {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Community => "community",
        }
    }
}

/// A skill that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub name: String,
    /// What [`Hub::fetch`] takes.
    pub identifier: String,
    pub description: String,
}

/// What a search came to.
#[derive(Debug, Default)]
pub struct Hits {
    pub hits: Vec<Hit>,
    /// Places that did not answer, and why.
    pub problems: Vec<String>,
}

/// A skill that was brought here and looked at, and is not used yet.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub name: String,
    pub description: String,
    pub files: Vec<SkillFile>,
    /// The kind of place it is from: `github`, `well-known`, `url`, `clawhub`.
    pub source: &'static str,
    pub identifier: String,
    pub trust: Trust,
    pub report: ScanReport,
}

impl Candidate {
    /// Why it is not installed, if it must not be.
    pub fn refusal(&self, force: Force) -> Option<&'static str> {
        match (self.report.verdict(), self.trust, force) {
            (ScanVerdict::Dangerous, _, _) => Some("it holds what no skill needs"),
            (ScanVerdict::Caution, Trust::Community, Force::No) => {
                Some("it holds what should be looked at first; --force installs it all the same")
            }
            _ => None,
        }
    }
}

/// What came from a place, before it is looked at.
struct Fetched {
    /// What it is called there.
    given_name: String,
    files: Vec<SkillFile>,
    source: &'static str,
    trust: Trust,
}

impl Hub {
    /// Brings a skill here and scans it. Nothing is written.
    pub async fn fetch(&self, identifier: &str) -> Result<Candidate, SkillError> {
        let fetched = self.ask(identifier.trim()).await?;
        candidate(identifier.trim(), fetched)
    }
}

fn candidate(identifier: &str, fetched: Fetched) -> Result<Candidate, SkillError> {
    let Fetched {
        given_name,
        files,
        source,
        trust,
    } = fetched;
    if files.len() > FILES_MAX {
        return Err(SkillError::Fetch(format!(
            "`{identifier}` has {} files; {FILES_MAX} are allowed",
            files.len()
        )));
    }
    let bytes: usize = files.iter().map(|file| file.bytes.len()).sum();
    if bytes > TOTAL_BYTES_MAX {
        return Err(SkillError::Fetch(format!(
            "`{identifier}` has {bytes} bytes; {TOTAL_BYTES_MAX} are allowed"
        )));
    }
    let text = files
        .iter()
        .find(|file| file.path == super::folders::SKILL_FILE);
    let text = text.ok_or_else(|| {
        SkillError::Fetch(format!(
            "what is at `{identifier}` is no skill: it has no SKILL.md"
        ))
    })?;
    let text = std::str::from_utf8(&text.bytes)
        .map_err(|_| SkillError::Fetch("its SKILL.md is not UTF-8".to_owned()))?;
    if text.chars().count() > super::folders::READ_CHARS_MAX {
        return Err(SkillError::Fetch(
            "its SKILL.md is too long to be used".to_owned(),
        ));
    }
    let document = document::read(text);
    let names = [
        document.name.as_deref().unwrap_or_default(),
        given_name.as_str(),
    ];
    let name = names
        .iter()
        .filter_map(|name| hermes_core::skill::slash_name(name))
        .find(|name| document::name_problem(name).is_none());
    let name = name.ok_or_else(|| {
        SkillError::Fetch(format!(
            "the skill at `{identifier}` has no name that can be used"
        ))
    })?;
    Ok(Candidate {
        name,
        description: document.description,
        report: scan(&files),
        files,
        source,
        identifier: identifier.to_owned(),
        trust,
    })
}
