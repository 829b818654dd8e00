//! A fence of namespaces, put up by the program `bwrap` for each command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hermes_core::{FenceArea, Pass};

use super::Network;
use super::missing::{Forbidden, NoBubblewrap};
use super::places::DEVICES;
use crate::program::find;

/// Looks for the program and tries it: where users may not make namespaces it is there and does not work.
#[expect(
    clippy::disallowed_methods,
    reason = "hermes-exec owns child processes"
)]
pub(super) fn find_working(environment: &[(OsString, OsString)]) -> Result<PathBuf, NoBubblewrap> {
    let program = find("bwrap", environment).ok_or(NoBubblewrap::Missing)?;
    let tried = std::process::Command::new(&program)
        .args(["--ro-bind", "/", "/", "--unshare-net", "--", "true"])
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .output();
    match tried {
        Ok(output) if output.status.success() => Ok(program),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(NoBubblewrap::NoNamespaces {
                said: said.trim().to_owned(),
                why: Forbidden::here(),
            })
        }
        Err(error) => Err(NoBubblewrap::NotStarted {
            detail: error.to_string(),
        }),
    }
}

/// Puts the fence before the words of a command.
pub(super) fn wrap(fence: &Walls<'_>, command: Vec<OsString>, folder: &Path) -> Vec<OsString> {
    let mut words = vec![fence.program.into()];
    words.extend(fence.args());
    words.extend(["--chdir".into(), folder.into(), "--".into()]);
    words.extend(command);
    words
}

/// What the arguments of `bwrap` are made of.
pub(super) struct Walls<'a> {
    pub(super) program: &'a Path,
    pub(super) area: &'a FenceArea,
    pub(super) own: &'a [PathBuf],
    /// What of the project may be written although it is guarded.
    pub(super) agreed: &'a [PathBuf],
    /// What is open besides the area.
    pub(super) pass: &'a Pass,
    pub(super) network: Network,
}

impl Walls<'_> {
    fn args(&self) -> Vec<OsString> {
        // The superuser could look through the processes of others at what is hidden, were its namespace theirs.
        let mut args: Vec<OsString> = vec!["--unshare-user-try".into()];
        let mut bind = |how: &str, from: &Path, to: &Path| {
            args.extend([how.into(), from.into(), to.into()]);
        };
        let root = Path::new("/");
        match &self.area.readable {
            Some(readable) => readable
                .iter()
                .for_each(|path| bind("--ro-bind-try", path, path)),
            None => bind("--ro-bind", root, root),
        }
        bind("--dev-bind", Path::new(DEVICES), Path::new(DEVICES));
        // Later ones lie over earlier ones: a project in a folder of programs can be written to, a secret in it not read.
        for path in &self.area.writable {
            bind("--bind-try", path, path);
        }
        for path in self.guarded() {
            bind("--ro-bind-try", &path, &path);
        }
        let (folders, files): (Vec<_>, Vec<_>) = self.hidden().partition(|path| path.is_dir());
        for path in files {
            bind("--ro-bind-try", Path::new("/dev/null"), path);
        }
        for path in &folders {
            args.extend(["--tmpfs".into(), path.into()]);
        }
        let mut bind = |how: &str, path: &Path| args.extend([how.into(), path.into(), path.into()]);
        let reads = self.area.shown.iter().chain(&self.pass.reads);
        reads.for_each(|path| bind("--ro-bind-try", path));
        let writes = self.own.iter().chain(&self.pass.writes);
        writes.for_each(|path| bind("--bind-try", path));
        // What lies between them is made up: writing there must fail rather than be lost.
        for path in folders.into_iter().map(PathBuf::as_path).chain([root]) {
            args.extend(["--remount-ro".into(), path.into()]);
        }
        if self.network == Network::Closed {
            args.push("--unshare-net".into());
        }
        args
    }

    /// What is there to be hidden, the outermost only. Elsewhere a mount would have to make a folder.
    fn hidden(&self) -> impl Iterator<Item = &PathBuf> {
        let all = &self.area.hidden;
        let is_inner = |path: &PathBuf| {
            let mut others = all.iter().filter(|other| *other != path);
            others.any(|other| path.starts_with(other))
        };
        let is_shown = |path: &PathBuf| {
            let readable = self.area.readable.as_ref();
            readable.is_none_or(|readable| {
                let open = readable.iter().chain(&self.area.writable);
                open.clone().any(|open| path.starts_with(open))
            })
        };
        let is_there =
            |path: &PathBuf| path.symlink_metadata().is_ok_and(|data| !data.is_symlink());
        all.iter()
            .filter(move |path| !is_inner(path) && is_shown(path) && is_there(path))
    }

    /// What of the project is written only when somebody agreed, as far as it is there.
    fn guarded(&self) -> Vec<PathBuf> {
        let is_agreed = |path: &PathBuf| {
            let mut agreed = self.agreed.iter();
            agreed.any(|agreed| path.starts_with(agreed))
        };
        let guarded = self.area.guarded().map(|(path, _)| path);
        guarded
            .filter(|path| path.exists() && !is_agreed(path))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(area: &FenceArea, pass: &Pass) -> String {
        let walls = Walls {
            program: Path::new("/usr/bin/bwrap"),
            area,
            own: &["/srv/own".into()],
            agreed: &[],
            pass,
            network: Network::Closed,
        };
        let words = wrap(&walls, vec!["true".into()], Path::new("/srv/project"));
        let line = words.join(&OsString::from(" "));
        line.into_string().unwrap()
    }

    #[test]
    fn what_may_be_written_lies_over_what_may_be_read() {
        let area = FenceArea {
            project: "/srv/project".into(),
            writable: vec!["/srv/project".into()],
            readable: Some(vec!["/usr".into(), "/srv".into()]),
            ..FenceArea::default()
        };
        let pass = Pass {
            reads: vec!["/srv/key".into()],
            ..Pass::default()
        };
        assert_eq!(
            line(&area, &pass),
            "/usr/bin/bwrap --unshare-user-try --ro-bind-try /usr /usr --ro-bind-try /srv /srv --dev-bind /dev /dev \
             --bind-try /srv/project /srv/project --ro-bind-try /srv/key /srv/key --bind-try /srv/own /srv/own \
             --remount-ro / --unshare-net --chdir /srv/project -- true"
        );
    }

    #[test]
    fn secrets_lie_under_something_empty_and_guarded_files_cannot_be_written() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name).display().to_string();
        for folder in ["keys/inner", "project/.git/hooks"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("token"), "").unwrap();
        let area = FenceArea {
            project: root.join("project"),
            writable: vec![root.join("project")],
            hidden: ["keys", "keys/inner", "token", "missing"]
                .map(|name| root.join(name))
                .to_vec(),
            ..FenceArea::default()
        };
        let (keys, token, hooks) = (path("keys"), path("token"), path("project/.git/hooks"));
        let line = line(&area, &Pass::default());
        for words in [
            "--ro-bind / / --dev-bind".to_owned(),
            format!("--ro-bind-try {hooks} {hooks}"),
            format!("--ro-bind-try /dev/null {token} --tmpfs {keys} --bind-try /srv/own"),
            format!("--remount-ro {keys} --remount-ro / "),
        ] {
            assert!(line.contains(&words), "{words} in {line}");
        }
        assert!(
            !line.contains("inner") && !line.contains("missing"),
            "{line}"
        );
    }
}
