//! `/diff`: what is changed in the conversation's folder and not committed.

use super::{Done, Host, Then};
use crate::failure::Outcome;
use crate::worktree::Git;

/// More than this is read with other tools.
const LINES_MAX: usize = 1_000;

impl Host {
    pub(super) async fn diff(&self) -> Outcome<Done> {
        let folder = &self.prepared.wired.settings.cwd;
        let git = Git::new(&self.base);
        let is_repository = git.line(folder, &["rev-parse", "--show-toplevel"]).await;
        if is_repository.is_err() {
            return Ok(Done::told(format!(
                "`{}` is not in a git repository; /rollback diff shows what changed since a checkpoint",
                folder.display()
            )));
        }
        let tracked = changed(&git, folder).await?;
        let new = git
            .line(folder, &["ls-files", "--others", "--exclude-standard"])
            .await?;
        let new = new.lines().map(|name| format!("new file: {name}"));
        let changed = (!tracked.is_empty()).then(|| shortened(&tracked));
        let shown: Vec<String> = changed.into_iter().chain(new).collect();
        Ok(if shown.is_empty() {
            Done::told("nothing is changed since the last commit")
        } else {
            Done {
                told: None,
                then: Then::ShowDiff(shown.join("\n")),
            }
        })
    }
}

/// The changes since the last commit; since the beginning where there is none yet.
async fn changed(git: &Git, folder: &std::path::Path) -> Outcome<String> {
    let args = |since| {
        [
            "-c",
            "core.fsmonitor=false",
            "--no-optional-locks",
            "diff",
            since,
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
        ]
    };
    match git.line(folder, &args("HEAD")).await {
        Ok(diff) => Ok(diff),
        Err(_) => git.line(folder, &args("--staged")).await,
    }
}

fn shortened(diff: &str) -> String {
    let count = diff.lines().count();
    if count <= LINES_MAX {
        return diff.to_owned();
    }
    let shown: Vec<&str> = diff.lines().take(LINES_MAX).collect();
    let more = count - LINES_MAX;
    format!(
        "{}\n… {more} more lines; `git diff` shows them",
        shown.join("\n")
    )
}
