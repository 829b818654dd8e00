//! Starts git on our store, and on nothing else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{CheckpointError, TerminalError, Timestamp};
use hermes_os::make_private_folder;

use super::{CheckpointStore, failed};
use crate::program::Program;

/// The first copy of a large project is the longest; what takes longer has a disk that is asleep or gone.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Every file of the largest project by name, twice over.
const OUTPUT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Settings that do not depend on a file. Contents are kept to the byte, whatever `.gitattributes` say.
const CONFIG: &[&str] = &[
    "core.autocrlf=false",
    "core.compression=1",
    "core.fileMode=true",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.protectHFS=false",
    "core.protectNTFS=false",
    "core.quotePath=false",
    "core.symlinks=true",
    "core.untrackedCache=false",
    "commit.gpgSign=false",
    "gc.auto=0",
];

/// Stronger than the `.gitattributes` of the project.
const ATTRIBUTES: &str = "* -text -eol -ident -filter -working-tree-encoding\n";

/// git with our store as its repository, and a folder and an index to work on.
pub(super) struct Git {
    environment: Vec<(OsString, OsString)>,
    cwd: PathBuf,
}

impl CheckpointStore {
    /// git for what needs no project.
    pub(super) fn git(&self) -> Git {
        Git::new(self, self.folder())
    }

    /// git for a project, with an index that only the caller uses.
    pub(super) fn git_in(&self, project: &Path, index: &Path) -> Git {
        let mut git = Git::new(self, project.to_owned());
        git.set("GIT_WORK_TREE", project);
        git.set("GIT_INDEX_FILE", index);
        git
    }

    /// Makes the store when there is none. Whoever dies here, or does it at the same time, leaves no half a store.
    pub(super) async fn create(&self) -> Result<(), CheckpointError> {
        let repository = self.repository();
        if repository.is_dir() {
            return Ok(());
        }
        let made = format!("cannot make `{}`", self.folder().display());
        make_private_folder(&self.indexes()).map_err(failed(&made))?;
        let draft = self
            .folder()
            .join(format!("new.{:016x}", self.random.next_u64()));
        let text = draft.to_string_lossy();
        let mut git = self.git();
        git.environment.retain(|(name, _)| name != "GIT_DIR");
        git.run(&["init", "--quiet", "--bare", "--template=", &text], &[])
            .await?;
        let fill = || {
            make_private_folder(&draft.join("info"))?;
            std::fs::write(draft.join("info/attributes"), ATTRIBUTES)
        };
        fill().map_err(failed(&made))?;
        if let Err(error) = std::fs::rename(&draft, &repository) {
            let _ = std::fs::remove_dir_all(&draft);
            if !repository.is_dir() {
                return Err(failed(made)(error));
            }
        }
        Ok(())
    }
}

impl Git {
    fn new(store: &CheckpointStore, cwd: PathBuf) -> Self {
        let theirs = store.settings.environment.iter();
        // Nothing that names another repository, another configuration or another person comes through.
        let is_passed = |name: &OsString| !name.as_encoded_bytes().starts_with(b"GIT_");
        let passed = theirs.filter(|(name, _)| is_passed(name));
        let mut git = Self {
            environment: passed.cloned().collect(),
            cwd,
        };
        let repository = store.repository();
        git.set("GIT_DIR", &repository);
        git.set("HOME", &repository);
        git.set("XDG_CONFIG_HOME", &repository);
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_LITERAL_PATHSPECS", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_AUTHOR_NAME", "Hermes"),
            ("GIT_AUTHOR_EMAIL", "hermes@localhost"),
            ("GIT_COMMITTER_NAME", "Hermes"),
            ("GIT_COMMITTER_EMAIL", "hermes@localhost"),
            ("LC_ALL", "C"),
        ] {
            git.set(name, value);
        }
        git
    }

    /// The time that commits are given.
    pub(super) fn at(mut self, now: Timestamp) -> Self {
        let date = format!("@{} +0000", now.as_millis() / 1000);
        self.set("GIT_AUTHOR_DATE", &date);
        self.set("GIT_COMMITTER_DATE", &date);
        self
    }

    fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.into(), value.into()));
    }

    /// Returns what git printed.
    pub(super) async fn run(
        &self,
        args: &[&str],
        stdin: &[u8],
    ) -> Result<Vec<u8>, CheckpointError> {
        let config = CONFIG.iter().flat_map(|setting| ["-c", setting]);
        let program = Program {
            name: "git",
            args: config
                .chain(args.iter().copied())
                .map(OsString::from)
                .collect(),
            environment: &self.environment,
            cwd: &self.cwd,
            stdin,
            output_bytes_max: OUTPUT_BYTES_MAX,
            timeout: TIMEOUT,
        };
        let command = args.first().copied().unwrap_or_default();
        let what = || format!("git {command} failed");
        let output = program.run().await.map_err(|error| match error {
            TerminalError::NotStarted { detail, .. } => CheckpointError::NoGit { detail },
            other => failed(what())(other),
        })?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(failed(what())(
                String::from_utf8_lossy(&output.stderr).trim(),
            ))
        }
    }

    /// The same, for answers that are one line of plain text.
    pub(super) async fn line(
        &self,
        args: &[&str],
        stdin: &[u8],
    ) -> Result<String, CheckpointError> {
        let output = self.run(args, stdin).await?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }
}
