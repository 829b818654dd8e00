//! What is around us: programs, the locale, the clock.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use hermes_config::Environment;
use hermes_core::{Clock as _, Timestamp};

use super::Check;
use crate::SystemClock;

/// This program is not older.
const YEAR_MIN: i64 = 2026;

pub(super) fn checks(environment: &Environment) -> Vec<Check> {
    vec![
        shell(environment),
        git(environment),
        locale(environment),
        clock(SystemClock.now()),
    ]
}

/// Commands run in bash, or else in `sh`.
fn shell(environment: &Environment) -> Check {
    const NAME: &str = "bash";
    const FIX: &str =
        "install the package `bash` (`sudo apt install bash`, or the same with dnf, pacman or apk)";
    if let Some(bash) = find_program(environment, "bash") {
        return Check::good(NAME, bash.display().to_string());
    }
    match find_program(environment, "sh") {
        Some(sh) => Check::doubtful(
            NAME,
            format!(
                "not found on PATH; commands run in `{}`, and those written for bash may fail",
                sh.display()
            ),
            FIX,
        ),
        None => Check::broken(
            NAME,
            "not found on PATH, nor is sh; commands cannot run",
            FIX,
        ),
    }
}

fn git(environment: &Environment) -> Check {
    match find_program(environment, "git") {
        Some(path) => Check::good("git", path.display().to_string()),
        None => Check::doubtful(
            "git",
            "not found on PATH; --worktree and checkpoints do not work",
            "install the package `git` (`sudo apt install git`, or the same with dnf, pacman or apk)",
        ),
    }
}

pub(super) fn find_program(environment: &Environment, name: &str) -> Option<PathBuf> {
    let folders = std::env::split_paths(environment.path("PATH")?);
    let mut candidates = folders.map(|folder| folder.join(name));
    candidates.find(|path| {
        path.metadata()
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}

fn locale(environment: &Environment) -> Check {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| Some((*name, environment.get(name)?)))
        .find(|(_, value)| !value.is_empty());
    let (name, locale) = set.unwrap_or(("LANG", "C"));
    if is_utf8(locale) {
        Check::good("locale", locale)
    } else {
        // The one that counts has to change: the others would not be looked at.
        Check::doubtful(
            "locale",
            format!("`{locale}` does not say UTF-8; signs may look wrong"),
            format!("`export {name}=C.UTF-8`, in ~/.profile to keep it"),
        )
    }
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.ends_with("utf-8") || locale.ends_with("utf8")
}

fn clock(now: Timestamp) -> Check {
    let (date, _) = now.civil();
    if date.year >= YEAR_MIN {
        Check::good("clock", now.to_text())
    } else {
        Check::broken(
            "clock",
            format!(
                "{} is in the past; secure connections will fail",
                now.to_text()
            ),
            "`sudo timedatectl set-ntp true`, or `sudo date -s 'YEAR-MONTH-DAY HOUR:MINUTE'`",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_clock_in_the_past_is_told() {
        assert_eq!(clock(Timestamp::from_millis(0)).state, State::Broken);
        assert_eq!(
            clock(Timestamp::from_millis(1_794_777_845_000)).state,
            State::Good
        );
    }

    #[test]
    fn the_first_locale_that_is_set_counts() {
        let state =
            |pairs: &[(&str, &str)]| locale(&Environment::from_pairs(pairs.iter().copied())).state;
        assert_eq!(state(&[("LANG", "en_GB.UTF-8")]), State::Good);
        assert_eq!(
            state(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]),
            State::Doubtful
        );
        assert_eq!(
            state(&[("LC_ALL", ""), ("LANG", "de_DE.utf8")]),
            State::Good
        );
        assert_eq!(state(&[]), State::Doubtful);
    }

    #[test]
    fn the_fix_of_a_locale_changes_the_variable_that_counts() {
        let fix = |pairs: &[(&str, &str)]| {
            let check = locale(&Environment::from_pairs(pairs.iter().copied()));
            check.fix.unwrap()
        };
        assert!(fix(&[]).starts_with("`export LANG=C.UTF-8`"));
        let all = [("LC_ALL", "POSIX"), ("LANG", "C.UTF-8")];
        assert!(fix(&all).starts_with("`export LC_ALL=C.UTF-8`"));
    }

    #[test]
    fn a_machine_without_bash_still_runs_commands_in_sh() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::from_pairs([("PATH", folder.path().to_str().unwrap())]);
        let install = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        let check = |state, text: &str| {
            let shell = shell(&environment);
            assert_eq!(shell.state, state);
            assert!(shell.text.contains(text), "{}", shell.text);
        };
        check(State::Broken, "commands cannot run");
        install("sh");
        check(State::Doubtful, "commands run in `");
        install("bash");
        check(State::Good, "/bash");
    }

    #[test]
    fn a_folder_is_no_program() {
        let environment = Environment::from_pairs([("PATH", "/")]);
        assert_eq!(find_program(&environment, "usr"), None);
    }
}
