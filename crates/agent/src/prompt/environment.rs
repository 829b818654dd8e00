//! Where the agent is: facts it would otherwise spend a call to find out.

use std::path::PathBuf;

use hermes_os::calendar::Zone;

/// Plain facts, gathered by the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvironmentFacts {
    pub os: String,
    pub shell: String,
    pub cwd: PathBuf,
    /// The branch, when the directory is in a git repository.
    pub git_branch: Option<String>,
    /// Whose day it is.
    pub zone: Zone,
}

impl EnvironmentFacts {
    pub(super) fn to_text(&self) -> String {
        let mut lines = vec![
            "# Environment".to_owned(),
            format!("- System: {}, shell: {}", self.os, self.shell),
            format!("- Working directory: {}", self.cwd.display()),
        ];
        if let Some(branch) = &self.git_branch {
            lines.push(format!("- Git branch: {branch}"));
        }
        lines.join("\n")
    }
}
