//! `--worktree`: a session in a git worktree of its own, which is removed only when nothing in it could be lost.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use hermes_core::Random;

use crate::base::Base;
use crate::error::{Error, Result};
use crate::git::Git;

/// Where worktrees of a repository are kept, inside it.
const FOLDER: &str = ".worktrees";

pub struct Worktree {
    pub path: PathBuf,
    branch: String,
    repository: PathBuf,
    /// The commit it began at.
    origin: String,
}

impl Worktree {
    /// Makes a worktree at the current commit, on a branch of its own.
    pub async fn create(base: &Base) -> Result<Self> {
        let git = Git::new(base);
        let repository = git
            .line(&base.cwd, &["rev-parse", "--show-toplevel"])
            .await
            .map_err(|failure| {
                Error::asked(format!(
                    "`{}` is not in a git repository",
                    base.cwd.display()
                ))
                .at(failure.to_string())
                .with_hint("--worktree needs one; run `git init` first, or leave the flag out")
            })?;
        let repository = PathBuf::from(repository);
        let origin = git
            .line(&repository, &["rev-parse", "--verify", "HEAD"])
            .await
            .map_err(|_| {
                Error::asked("the repository has no commit yet")
                    .with_hint("a worktree begins at a commit; make one first")
            })?;
        exclude(&git, &repository).await?;
        let name = format!("hermes-{:08x}", Random::from_system().next_u64() as u32);
        let (path, branch) = (
            repository.join(FOLDER).join(&name),
            format!("hermes/{name}"),
        );
        let text = path.to_string_lossy().into_owned();
        let add = ["worktree", "add", "--quiet", "--no-checkout", "-b"];
        git.line(
            &repository,
            &[&add[..], &[&branch, &text, &origin]].concat(),
        )
        .await?;
        // From inside it, where settings may hold that hold nowhere else, and which must not run anything either.
        git.line(&path, &["reset", "--quiet", "--hard"]).await?;
        let reason = format!("hermes pid={}", std::process::id());
        git.line(
            &repository,
            &["worktree", "lock", "--reason", &reason, &text],
        )
        .await?;
        Ok(Self {
            path,
            branch,
            repository,
            origin,
        })
    }

    /// What the model is told about it.
    pub fn note(&self) -> String {
        format!(
            "# Worktree\nYou work in a git worktree of `{}`, on branch `{}`, at `{}`. Commit there what should be kept.",
            self.repository.display(),
            self.branch,
            self.path.display()
        )
    }

    /// Removes the worktree when it holds nothing of its own; otherwise returns where it is, for the user.
    pub async fn leave(self, base: &Base) -> Option<String> {
        let git = Git::new(base);
        let path = self.path.to_string_lossy().into_owned();
        let _ = git
            .line(&self.repository, &["worktree", "unlock", &path])
            .await;
        if self.has_work(&git).await {
            return Some(format!(
                "the worktree `{path}` (branch {}) holds work and is kept",
                self.branch
            ));
        }
        // Without --force: git itself refuses when something came in between.
        let removed = git
            .line_over(&self.repository, &self.path, &["worktree", "remove", &path])
            .await;
        let removed = match removed {
            Ok(_) => {
                git.line(&self.repository, &["branch", "--quiet", "-D", &self.branch])
                    .await
            }
            Err(failure) => Err(failure),
        };
        let error = removed.err()?;
        Some(format!("the worktree `{path}` is kept: {error}"))
    }

    /// Whether there are changes, or commits that are neither in the beginning nor on any remote. In doubt, yes.
    async fn has_work(&self, git: &Git) -> bool {
        let changes = git
            .line(
                &self.path,
                &[
                    "status",
                    "--porcelain",
                    "--untracked-files=all",
                    "--ignored",
                    // It would run git in them, with their own settings. git keeps a worktree that has any.
                    "--ignore-submodules=all",
                ],
            )
            .await;
        let commits = git
            .line(
                &self.path,
                &[
                    "rev-list",
                    "--count",
                    "HEAD",
                    "--not",
                    &self.origin,
                    "--remotes",
                ],
            )
            .await;
        !matches!((changes.as_deref(), commits.as_deref()), (Ok(""), Ok("0")))
    }
}

/// Keeps worktrees out of `git status` without touching a file that is the user's.
async fn exclude(git: &Git, repository: &Path) -> Result<()> {
    let file = git
        .line(repository, &["rev-parse", "--git-path", "info/exclude"])
        .await?;
    let file = repository.join(file);
    let line = format!("/{FOLDER}/");
    let present = std::fs::read_to_string(&file).unwrap_or_default();
    if present.lines().any(|existing| existing == line) {
        return Ok(());
    }
    let fail = |error: std::io::Error| {
        Error::failed(format!("cannot write `{}`: {error}", file.display()))
    };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    let mut exclude = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .map_err(fail)?;
    let newline = if present.is_empty() || present.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    writeln!(exclude, "{newline}{line}").map_err(fail)
}
