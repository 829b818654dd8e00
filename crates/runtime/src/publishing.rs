//! Publishing skills: into the folder of a site, or on a branch of a repository. Nothing is pushed to a branch that was there.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_exec::is_secret_name;
use hermes_learning::skills::Package;

use crate::base::Base;
use crate::error::{Error, Result};
use crate::git::Git;

/// Where skills stand in a repository.
const FOLDER: &str = "skills";
/// Branches that are tried: one for each time a skill was published before the last was merged.
const BRANCHES_MAX: usize = 20;

/// Where a skill is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A folder that a web server serves.
    Site(PathBuf),
    Repository {
        /// What git clones.
        url: String,
        /// `owner/repository`, if it is at GitHub.
        github: Option<String>,
    },
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub enum Published {
    OnSite(PathBuf),
    OnBranch(String),
    /// The repository has it just so.
    ThereAlready,
}

impl Target {
    /// What somebody means by a place. What is there as a folder is one; `owner/repository` is else at GitHub.
    pub fn of(place: &str, cwd: &Path) -> Self {
        let is_address = place.contains("://") || place.starts_with("git@");
        let path = cwd.join(place);
        if is_address {
            return Self::Repository {
                url: place.to_owned(),
                github: None,
            };
        }
        if path.join(".git").exists()
            || (path.join("HEAD").exists() && path.join("objects").exists())
        {
            return Self::Repository {
                url: path.display().to_string(),
                github: None,
            };
        }
        let is_part = |part: &str| {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !part.is_empty() && !part.starts_with('.') && part.chars().all(is_letter)
        };
        match place.split_once('/') {
            Some((owner, name)) if !path.exists() && is_part(owner) && is_part(name) => {
                Self::Repository {
                    url: format!("https://github.com/{place}.git"),
                    github: Some(place.to_owned()),
                }
            }
            _ => Self::Site(path),
        }
    }
}

/// The values of this home that must never be published.
pub fn secrets(base: &Base) -> Vec<String> {
    let named = base.environment.iter();
    let secret = named.filter(|(name, _)| name.to_str().is_some_and(is_secret_name));
    let values = secret.filter_map(|(_, value)| value.to_str().map(str::to_owned));
    values.collect()
}

pub async fn publish(base: &Base, package: &Package, target: &Target) -> Result<Published> {
    match target {
        Target::Site(folder) => {
            package.put_on_site(folder)?;
            Ok(Published::OnSite(folder.clone()))
        }
        Target::Repository { url, .. } => {
            let work = base.home.skills().join(".hub").join("publish");
            clear(&work)?;
            fs::create_dir_all(&work).map_err(|error| cannot("make", &work, &error))?;
            let pushed = push(&Git::reaching(base), &work, package, url).await;
            clear(&work)?;
            pushed
        }
    }
}

async fn push(git: &Git, work: &Path, package: &Package, url: &str) -> Result<Published> {
    git.line(
        work,
        &[
            "clone",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--",
            url,
            "clone",
        ],
    )
    .await?;
    let clone = work.join("clone");
    let branch = free_branch(git, &clone, &package.name).await?;
    git.line(&clone, &["checkout", "--quiet", "-b", &branch])
        .await?;
    let folder = clone.join(FOLDER);
    let is_new = !folder.join(&package.name).exists();
    package.put_into(&folder)?;
    git.line(&clone, &["add", "--all", "--force", "--", FOLDER])
        .await?;
    let changed = git.line(&clone, &["status", "--porcelain"]).await?;
    if changed.is_empty() {
        return Ok(Published::ThereAlready);
    }
    let verb = if is_new { "Add" } else { "Update" };
    let message = format!(
        "{verb} the skill {}\n\n{}",
        package.name, package.description
    );
    git.line(&clone, &["commit", "--quiet", "--message", &message])
        .await?;
    let to = format!("HEAD:refs/heads/{branch}");
    git.line(&clone, &["push", "--quiet", "origin", &to])
        .await?;
    Ok(Published::OnBranch(branch))
}

/// A branch that is not there yet.
async fn free_branch(git: &Git, clone: &Path, name: &str) -> Result<String> {
    for number in 1..=BRANCHES_MAX {
        let branch = match number {
            1 => format!("skill/{name}"),
            more => format!("skill/{name}-{more}"),
        };
        let wanted = format!("refs/heads/{branch}");
        let there = git
            .line(clone, &["ls-remote", "--heads", "origin", &wanted])
            .await?;
        if there.is_empty() {
            return Ok(branch);
        }
    }
    Err(Error::asked(format!(
        "the repository has {BRANCHES_MAX} branches `skill/{name}`"
    ))
    .with_hint("merge or delete some of them"))
}

fn clear(work: &Path) -> Result<()> {
    match fs::remove_dir_all(work) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(cannot("clear", work, &error))
        }
        _ => Ok(()),
    }
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::failed(format!("cannot {what} `{}`: {error}", path.display()))
}
