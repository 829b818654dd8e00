//! Runs git so that nothing of the repository runs with it: no hook, no filter, no monitor of files, no other transport.
//!
//! A repository may come from anywhere, settings and hooks included (an archive, another user's folder), and the files of
//! a project say which of them go through a filter. Whoever asks for a worktree did not ask for any of that.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::base::Base;
use crate::error::{Error, Result};

/// git answers at once, unless the repository is huge or its disk asleep.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Another machine may be far away, and a repository large.
const REACHING_TIMEOUT: Duration = Duration::from_secs(300);

/// Settings that run programs or reach elsewhere, whatever the repository says of them.
const SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("submodule.recurse", "false"),
];

/// Variables that do the same where settings cannot: objects that are missing are not fetched, whatever transport the
/// repository names, and nobody is asked for anything.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Runs git with a clean environment.
pub struct Git {
    environment: Vec<(OsString, OsString)>,
    /// Settings of its own that hold, because whoever asked for this wants it to reach elsewhere.
    kept: &'static [&'static str],
    timeout: Duration,
}

impl Git {
    pub fn new(base: &Base) -> Self {
        let all = base
            .environment
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut environment = hermes_exec::child_environment(all, &[]);
        let variables = VARIABLES
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        environment.extend(variables);
        Self {
            environment,
            kept: &[],
            timeout: TIMEOUT,
        }
    }

    /// For what a person wants to be fetched and sent: with their own way to other machines and their own keys. What a
    /// repository brings along runs as little as ever.
    pub fn reaching(base: &Base) -> Self {
        let mut git = Self::new(base);
        git.environment
            .retain(|(name, _)| name != "GIT_ALLOW_PROTOCOL" && name != "GIT_NO_LAZY_FETCH");
        git.environment
            .push(("GIT_ALLOW_PROTOCOL".into(), "https:ssh:file".into()));
        for name in ["SSH_AUTH_SOCK", "HTTPS_PROXY", "https_proxy", "NO_PROXY"] {
            if let Some(value) = base.environment.get(name) {
                git.environment.push((name.into(), value.into()));
            }
        }
        git.kept = &["core.sshCommand", "credential.helper", "core.askPass"];
        git.timeout = REACHING_TIMEOUT;
        git
    }

    /// Returns what git printed, without the line break at its end.
    pub async fn line(&self, folder: &Path, args: &[&str]) -> Result<String> {
        self.line_over(folder, folder, args).await
    }

    /// Does the same for a command that also looks into another worktree, where other settings may hold.
    pub async fn line_over(&self, folder: &Path, other: &Path, args: &[&str]) -> Result<String> {
        let mut quiet = self.quiet(folder).await?;
        if other != folder {
            quiet.extend(self.quiet(other).await?);
        }
        self.run(folder, args, &quiet).await
    }

    /// Returns settings with which nothing runs in a folder. They differ from folder to folder, and may have changed
    /// since the last time.
    async fn quiet(&self, folder: &Path) -> Result<Vec<(String, &'static str)>> {
        let fixed = SETTINGS
            .iter()
            .filter(|(name, _)| !self.kept.contains(name))
            .map(|(name, value)| ((*name).to_owned(), *value));
        let mut quiet: Vec<_> = fixed.collect();
        let list = ["config", "--list", "--name-only", "-z"];
        let names = self.run(folder, &list, &quiet).await?;
        quiet.extend(names.split('\0').filter_map(silence));
        Ok(quiet)
    }

    async fn run(
        &self,
        folder: &Path,
        args: &[&str],
        settings: &[(String, &'static str)],
    ) -> Result<String> {
        let mut environment = self.environment.clone();
        for (number, (name, value)) in settings.iter().enumerate() {
            environment.push((format!("GIT_CONFIG_KEY_{number}").into(), name.into()));
            environment.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
        }
        let count = settings.len().to_string();
        environment.push(("GIT_CONFIG_COUNT".into(), count.into()));
        let output = hermes_exec::output("git", args, &environment, folder, self.timeout)
            .await
            .map_err(|error| Error::failed(error.to_string()).with_hint("is git installed?"))?;
        if output.status.success() {
            return Ok(output.stdout.trim_end().to_owned());
        }
        Err(Error::failed(format!(
            "git {}: {}",
            args.first().unwrap_or(&""),
            output.stderr.trim()
        )))
    }
}

/// Returns the setting that makes one of the repository run nothing, if it would run something.
fn silence(name: &str) -> Option<(String, &'static str)> {
    let (section, rest) = name.split_once('.')?;
    let (subsection, field) = rest.rsplit_once('.')?;
    let value = match (section, field) {
        ("filter", "clean" | "smudge" | "process") => "",
        ("filter", "required") => "false",
        ("diff", "textconv" | "command") => "",
        // Hooks that are settings, which newer versions of git know.
        ("hook", _) => return Some((format!("hook.{subsection}.enabled"), "false")),
        _ => return None,
    };
    Some((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_run_something_is_silenced() {
        for (name, expected) in [
            ("filter.lfs.smudge", Some(("filter.lfs.smudge", ""))),
            ("filter.a.b=c.process", Some(("filter.a.b=c.process", ""))),
            (
                "filter.lfs.required",
                Some(("filter.lfs.required", "false")),
            ),
            ("diff.pdf.textconv", Some(("diff.pdf.textconv", ""))),
            ("hook.lint.command", Some(("hook.lint.enabled", "false"))),
            ("core.autocrlf", None),
            ("user.name", None),
            ("filter.clean", None),
            ("", None),
        ] {
            let expected = expected.map(|(name, value)| (name.to_owned(), value));
            assert_eq!(silence(name), expected, "{name}");
        }
    }
}
