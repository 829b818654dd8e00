//! A fence of namespaces, put up by the program `bwrap` for each command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::missing::{Forbidden, NoBubblewrap};
use super::places::DEVICES;
use super::{Fence, Network};
use crate::program::find;

#[derive(Debug)]
pub(crate) struct Wrapper {
    /// The program and its arguments, up to what differs from command to command.
    words: Vec<OsString>,
}

impl Wrapper {
    pub(super) fn new(program: PathBuf, fence: &Fence) -> Self {
        let mut words = vec![program.into_os_string()];
        words.extend(args(fence));
        Self { words }
    }

    /// Puts the fence before the words of a command.
    pub(super) fn wrap(&self, command: Vec<OsString>, folder: &Path) -> Vec<OsString> {
        let mut words = self.words.clone();
        words.extend(["--chdir".into(), folder.into(), "--".into()]);
        words.extend(command);
        words
    }
}

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

fn args(fence: &Fence) -> Vec<OsString> {
    let mut args: Vec<OsString> = Vec::new();
    let mut bind = |how: &str, path: &Path| args.extend([how.into(), path.into(), path.into()]);
    for path in &fence.readable {
        bind("--ro-bind-try", path);
    }
    bind("--dev-bind", Path::new(DEVICES));
    // Later ones lie over earlier ones: a project in a folder of programs can be written to.
    for path in &fence.writable {
        bind("--bind-try", path);
    }
    // What lies between them is made up: writing there must fail rather than be lost.
    args.extend(["--remount-ro", "/"].map(OsString::from));
    if fence.network == Network::Closed {
        args.push("--unshare-net".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written_lies_over_what_may_be_read() {
        let fence = Fence {
            writable: vec!["/srv/project".into()],
            readable: vec!["/usr".into(), "/srv".into()],
            network: Network::Closed,
        };
        let wrapper = Wrapper::new("/usr/bin/bwrap".into(), &fence);
        let words = wrapper.wrap(vec!["true".into()], Path::new("/srv/project"));
        let line = words.join(&OsString::from(" "));
        assert_eq!(
            line,
            "/usr/bin/bwrap --ro-bind-try /usr /usr --ro-bind-try /srv /srv --dev-bind /dev /dev \
             --bind-try /srv/project /srv/project --remount-ro / --unshare-net --chdir /srv/project -- true"
        );
    }
}
