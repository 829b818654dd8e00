//! What is on disk: the home, its permissions, `.env`, the database, the space left.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use hermes_config::{DotEnv, Home, PermissionProblem, ReadError, check_permissions};
use hermes_core::{Archive as _, Store as _, StoreError};
use hermes_store::{Health, SqliteStore};
use rustix::fs::{Access, StatVfsMountFlags};

use super::{Check, Repair};
use crate::former_home;
use crate::layout::{count, size};

/// Below this a long session may fill the disk.
const FREE_BYTES_MIN: u64 = 200_000_000;
/// Below this not even one turn with a few long results is sure to be recorded.
const FREE_BYTES_NEEDED: u64 = 10_000_000;

const WITH_FIX: &str = "`hermes doctor --fix`";
const ELSEWHERE: &str = "set HERMES_HOME to a folder of your own";

pub(super) fn home(home: &Home, repair: Repair) -> Vec<Check> {
    let mut checks = vec![folder(home, repair)];
    let problems = check_permissions(home);
    checks.extend(problems.iter().map(|problem| permission(problem, repair)));
    checks
}

/// What Hermes Agent left in the home and nothing uses.
pub(super) fn former(home: &Home) -> Option<Check> {
    let idle = former_home::idle(home);
    let names: Vec<_> = idle.iter().map(|idle| idle.name).collect();
    let text = format!(
        "of Hermes Agent, and not used in this version: {}",
        names.join(", ")
    );
    (!idle.is_empty()).then(|| {
        Check::doubtful(
            "files",
            text,
            "leave them where they are; `hermes config migrate` says what they are",
        )
    })
}

fn folder(home: &Home, repair: Repair) -> Check {
    const NAME: &str = "home";
    let path = home.directory().display();
    if home.directory().is_dir() && !is_writable(home.directory()) {
        return Check::broken(
            NAME,
            format!("`{path}` cannot be written to"),
            make_writable(home.directory()),
        );
    }
    let is_complete = home.directory().is_dir() && home.logs().is_dir();
    if is_complete {
        return Check::good(NAME, path.to_string());
    }
    if home.directory().exists() && !home.directory().is_dir() {
        return Check::broken(
            NAME,
            format!("`{path}` is not a directory"),
            "move it aside, or set HERMES_HOME to another folder",
        );
    }
    if repair == Repair::Nothing {
        let text = if home.directory().exists() {
            format!("`{path}` has not all its folders yet")
        } else {
            format!("`{path}` does not exist yet")
        };
        let fix = format!("{WITH_FIX} makes it, and so does the first conversation");
        return Check::doubtful(NAME, text, fix);
    }
    match home.create() {
        Ok(()) => Check::good(NAME, format!("made `{path}` and its folders")),
        Err(error) => Check::broken(NAME, error.to_string(), error.hint()),
    }
}

pub(super) fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK).is_ok()
}

/// What to do about a file or folder that cannot be written to.
fn make_writable(path: &Path) -> String {
    let disk = rustix::fs::statvfs(path);
    let is_read_only = disk.is_ok_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY));
    if is_read_only {
        format!("{}, or {ELSEWHERE}", to_remount(path))
    } else {
        to_open(path)
    }
}

/// What to do about a file that cannot be read.
pub(super) fn to_make_readable(error: &ReadError) -> String {
    match error {
        ReadError::Io { path, source } if source.kind() == ErrorKind::PermissionDenied => {
            to_open(path)
        }
        ReadError::Io { path, .. } => {
            format!(
                "`cat '{}'` has to work; the disk may be damaged",
                path.display()
            )
        }
        error => error.hint().to_owned(),
    }
}

/// What lets us at a file or folder: depends on whose it is.
fn to_open(path: &Path) -> String {
    let us = rustix::process::geteuid().as_raw();
    match path.metadata() {
        Ok(file) => format!("{}, or {ELSEWHERE}", change_of(path, file.uid(), us)),
        Err(_) => {
            format!("its folder is closed to you: use the account it belongs to, or {ELSEWHERE}")
        }
    }
}

fn change_of(path: &Path, owner: u32, us: u32) -> String {
    let change = if owner == us {
        "chmod -R u+rwX".to_owned()
    } else {
        format!("sudo chown -R {us}")
    };
    format!("`{change} '{}'`", path.display())
}

fn to_remount(path: &Path) -> String {
    format!(
        "its disk is mounted read-only: `sudo mount -o remount,rw \"$(findmnt -no TARGET -T '{}')\"`",
        path.display()
    )
}

fn permission(problem: &PermissionProblem, repair: Repair) -> Check {
    const NAME: &str = "permissions";
    if repair == Repair::Nothing {
        let path = problem.path.display();
        let wanted = problem.wanted;
        let us = rustix::process::geteuid().as_raw();
        let is_ours = problem.path.metadata().is_ok_and(|file| file.uid() == us);
        let fix = if is_ours {
            format!("{WITH_FIX}, or `chmod {wanted:o} '{path}'`")
        } else {
            format!("`sudo chmod {wanted:o} '{path}'`, once it is yours")
        };
        return Check::broken(NAME, problem.to_string(), fix);
    }
    match problem.fix() {
        Ok(()) => Check::good(
            NAME,
            format!(
                "changed `{}` from {:04o} to {:04o}",
                problem.path.display(),
                problem.found,
                problem.wanted
            ),
        ),
        Err(error) => Check::broken(NAME, error.to_string(), error.hint()),
    }
}

/// Looks at `.env`.
pub(super) fn variables(home: &Home) -> Vec<Check> {
    const NAME: &str = ".env";
    let path = home.dot_env();
    let file = match DotEnv::open(&path) {
        Ok(file) => file,
        Err(error) => {
            let fix = to_make_readable(&error);
            return vec![Check::broken(NAME, error.to_string(), fix)];
        }
    };
    if file.problems().is_empty() {
        let variables = count(file.pairs().count() as u64, "variable");
        return vec![Check::good(NAME, variables)];
    }
    let problems = file.problems().iter();
    let told = problems.map(|problem| {
        let place = format!("{}:{}", path.display(), problem.line);
        Check::doubtful(
            NAME,
            format!("{place}: {}", problem.message),
            format!("mend that line of `{}`", path.display()),
        )
    });
    told.collect()
}

/// Examines the database as a whole, and the turns in it that never ended.
pub(super) async fn database(home: &Home, repair: Repair) -> Vec<Check> {
    const NAME: &str = "database";
    let path = home.database();
    if !path.try_exists().unwrap_or(true) {
        return vec![Check::good(NAME, "none yet; the first message makes it")];
    }
    match examine(home, repair).await {
        Ok(checks) => checks,
        Err(error) if !is_writable(&path) => {
            vec![Check::broken(NAME, error.to_string(), make_writable(&path))]
        }
        Err(error) => vec![Check::broken(NAME, error.to_string(), error.hint())],
    }
}

async fn examine(home: &Home, repair: Repair) -> Result<Vec<Check>, StoreError> {
    let store = SqliteStore::open(home.database(), home.locks())?;
    let mut checks = vec![integrity(&store, repair).await?];
    checks.push(unfinished(store.unfinished().await?.len() as u64));
    Ok(checks)
}

async fn integrity(store: &SqliteStore, repair: Repair) -> Result<Check, StoreError> {
    const NAME: &str = "database";
    Ok(match (store.check().await?, repair) {
        (Health::Sound, _) => {
            let stats = store.stats().await?;
            let sessions = count(stats.sessions, "session");
            Check::good(
                NAME,
                format!("sound; {sessions}, {}", size(stats.database_bytes)),
            )
        }
        (Health::IndexBroken { .. }, Repair::Safe) => {
            store.rebuild_index().await?;
            Check::good(NAME, "built the search index anew")
        }
        (Health::IndexBroken { detail }, Repair::Nothing) => Check::broken(
            NAME,
            format!("the search index is broken: {detail}"),
            WITH_FIX,
        ),
        (Health::Damaged { problems }, _) => Check::broken(
            NAME,
            format!("damaged: {}", problems.join("; ")),
            "`hermes sessions recover` saves what can be read, and keeps the damaged file",
        ),
    })
}

fn unfinished(turns: u64) -> Check {
    const NAME: &str = "turns";
    match turns {
        0 => Check::good(NAME, "all have ended"),
        turns => Check::doubtful(
            NAME,
            format!("{} still running or cut short", count(turns, "turn")),
            "`hermes sessions recover` finishes those that were cut short",
        ),
    }
}

/// Looks at the space left where the home is.
pub(super) fn disk_space(home: &Home) -> Check {
    const NAME: &str = "disk";
    let existing = home.directory().ancestors().find(|folder| folder.is_dir());
    let free = existing
        .and_then(|folder| rustix::fs::statvfs(folder).ok())
        .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
    let path = home.directory().display();
    match free {
        None => Check::doubtful(
            NAME,
            "cannot tell how much space is left",
            format!("look yourself: `df -h '{path}'`"),
        ),
        Some(free) => space(free, &path.to_string()),
    }
}

fn space(free: u64, home: &str) -> Check {
    const NAME: &str = "disk";
    let fix = format!(
        "free some space there (`df -h '{home}'`; `hermes checkpoints prune` drops old copies of projects), or move the \
         home to another disk and set HERMES_HOME"
    );
    let left = size(free);
    match free {
        ..FREE_BYTES_NEEDED => Check::broken(
            NAME,
            format!("only {left} left: conversations cannot be recorded"),
            fix,
        ),
        FREE_BYTES_NEEDED..FREE_BYTES_MIN => {
            Check::doubtful(NAME, format!("only {left} left"), fix)
        }
        _ => Check::good(NAME, format!("{left} left")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn what_belongs_to_us_is_opened_and_what_does_not_is_made_ours() {
        let fix = |owner| change_of(Path::new("/a b"), owner, 1000);
        assert_eq!(fix(1000), "`chmod -R u+rwX '/a b'`");
        assert_eq!(fix(0), "`sudo chown -R 1000 '/a b'`");
    }

    #[test]
    fn a_file_that_may_not_be_read_is_told_with_the_command_that_opens_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.yaml");
        let denied = |path: &Path| {
            to_make_readable(&ReadError::Io {
                path: path.to_owned(),
                source: ErrorKind::PermissionDenied.into(),
            })
        };
        assert!(denied(&path).starts_with("its folder is closed to you"));
        std::fs::write(&path, "").unwrap();
        let command = format!("`chmod -R u+rwX '{}'`", path.display());
        assert!(denied(&path).starts_with(&command));
    }

    #[test]
    fn a_disk_is_told_before_it_is_full_and_broken_when_it_is() {
        let state = |free| space(free, "/home").state;
        assert_eq!(state(0), State::Broken);
        assert_eq!(state(FREE_BYTES_NEEDED), State::Doubtful);
        assert_eq!(state(FREE_BYTES_MIN), State::Good);
        let fix = space(0, "/a b").fix.unwrap();
        assert!(fix.contains("df -h '/a b'"), "{fix}");
    }
}
