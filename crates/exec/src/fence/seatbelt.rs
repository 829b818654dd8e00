//! A fence in the words of `sandbox-exec`, the program that macOS has for it, put up for each command. Its profile is
//! compared in tests; it was never tried on a Mac.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use hermes_core::{FenceArea, Pass};

use super::Network;
use crate::program;

/// What programs write although it is no file of anybody.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx"];

/// Looks for the program, where there is such a thing.
pub(super) fn find(environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let is_mac = cfg!(target_os = "macos");
    is_mac.then(|| program::find("sandbox-exec", environment))?
}

/// Puts the fence before the words of a command.
pub(super) fn wrap(program: &Path, profile: &str, command: Vec<OsString>) -> Vec<OsString> {
    let fence = [program.as_os_str().to_owned(), "-p".into(), profile.into()];
    fence.into_iter().chain(command).collect()
}

/// Writes the profile of a fence. Later rules win over earlier ones.
pub(super) fn profile(
    area: &FenceArea,
    own: &[impl AsRef<Path>],
    pass: &Pass,
    network: Network,
) -> String {
    let mut profile = "(version 1)\n(allow default)\n(deny file-write*)\n".to_owned();
    let mut rule = |action: &str, what: &str, path: &Path| {
        // Writing to a string cannot fail.
        let _ = writeln!(profile, "({action} {what} (subpath {}))", quoted(path));
    };
    if let Some(readable) = &area.readable {
        rule("deny", "file-read*", Path::new("/"));
        for path in readable.iter().chain(&area.writable) {
            rule("allow", "file-read*", path);
        }
    }
    for path in &area.writable {
        rule("allow", "file-write*", path);
    }
    for (path, _) in area.guarded() {
        if !pass.writes.iter().any(|agreed| path.starts_with(agreed)) {
            rule("deny", "file-write*", &path);
        }
    }
    for path in &area.hidden {
        rule("deny", "file-read* file-write*", path);
    }
    for path in area.shown.iter().chain(&pass.reads) {
        rule("allow", "file-read*", path);
    }
    for path in own
        .iter()
        .map(AsRef::as_ref)
        .chain(pass.writes.iter().map(AsRef::as_ref))
    {
        rule("allow", "file-read* file-write*", path);
    }
    for device in DEVICES {
        rule("allow", "file-write*", Path::new(device));
    }
    profile.push_str("(allow file-write* (regex #\"^/dev/ttys[0-9]+$\"))\n");
    if network == Network::Closed {
        profile.push_str("(deny network*)\n");
    }
    profile
}

/// A path as a string of the profile's language.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_opens_the_project_and_hides_secrets() {
        let area = FenceArea {
            project: "/Users/me/p".into(),
            writable: vec!["/Users/me/p".into(), "/private/tmp".into()],
            hidden: vec!["/Users/me/.ssh".into(), "/Users/me/a \"b\"".into()],
            shown: vec!["/Users/me/.hermes/skills".into()],
            readable: None,
        };
        let pass = Pass {
            reads: vec!["/Users/me/.ssh".into()],
            writes: vec!["/Users/me/p/AGENTS.md".into()],
            ..Pass::default()
        };
        let profile = profile(&area, &["/Users/me/.hermes/apart"], &pass, Network::Closed);
        let expected = "(version 1)\n(allow default)\n(deny file-write*)\n\
            (allow file-write* (subpath \"/Users/me/p\"))\n\
            (allow file-write* (subpath \"/private/tmp\"))\n";
        assert!(profile.starts_with(expected), "{profile}");
        let guarded = "(deny file-write* (subpath \"/Users/me/p/.git/hooks\"))\n";
        assert!(profile.contains(guarded), "{profile}");
        let rest = "(deny file-read* file-write* (subpath \"/Users/me/.ssh\"))\n\
            (deny file-read* file-write* (subpath \"/Users/me/a \\\"b\\\"\"))\n\
            (allow file-read* (subpath \"/Users/me/.hermes/skills\"))\n\
            (allow file-read* (subpath \"/Users/me/.ssh\"))\n\
            (allow file-read* file-write* (subpath \"/Users/me/.hermes/apart\"))\n\
            (allow file-read* file-write* (subpath \"/Users/me/p/AGENTS.md\"))\n\
            (allow file-write* (subpath \"/dev/null\"))\n\
            (allow file-write* (subpath \"/dev/zero\"))\n\
            (allow file-write* (subpath \"/dev/tty\"))\n\
            (allow file-write* (subpath \"/dev/ptmx\"))\n\
            (allow file-write* (regex #\"^/dev/ttys[0-9]+$\"))\n\
            (deny network*)\n";
        assert!(profile.ends_with(rest), "{profile}");
        assert!(!profile.contains("deny file-write* (subpath \"/Users/me/p/AGENTS.md\")"));
    }

    #[test]
    fn a_strict_profile_reads_what_is_listed() {
        let area = FenceArea {
            project: "/p".into(),
            writable: vec!["/p".into()],
            readable: Some(vec!["/usr".into()]),
            ..FenceArea::default()
        };
        let own: [&str; 0] = [];
        let profile = profile(&area, &own, &Pass::default(), Network::Open);
        let rules = "(deny file-read* (subpath \"/\"))\n\
            (allow file-read* (subpath \"/usr\"))\n\
            (allow file-read* (subpath \"/p\"))\n";
        assert!(profile.contains(rules), "{profile}");
        assert!(!profile.contains("network"));
    }

    #[test]
    fn the_profile_stands_before_the_command() {
        let program = Path::new("/usr/bin/sandbox-exec");
        let words = wrap(
            program,
            "(version 1)",
            vec!["/bin/bash".into(), "-c".into()],
        );
        assert_eq!(
            words,
            [
                "/usr/bin/sandbox-exec",
                "-p",
                "(version 1)",
                "/bin/bash",
                "-c"
            ]
        );
    }
}
