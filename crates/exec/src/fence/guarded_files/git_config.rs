//! Which changes of `.git/config` git makes by itself and run nothing: what a branch follows.

use std::collections::BTreeMap;

/// A section with its name, and a key in it.
type Key = (String, String);

/// Keys that say what a branch follows.
const TRACKING: &[&str] = &["remote", "merge", "rebase", "pushremote", "description"];

/// Returns whether all that differs is what branches follow, among the remotes that are there.
pub(super) fn only_tracks(before: &[u8], now: &[u8]) -> bool {
    let (Some(before), Some(now)) = (read(before), read(now)) else {
        return false;
    };
    let remotes: Vec<&str> = before
        .keys()
        .filter_map(|(section, _)| section.strip_prefix("remote \"")?.strip_suffix('"'))
        .collect();
    let is_known = |remote: &str| remote == "." || remotes.contains(&remote);
    let is_fine = |(section, key): &Key, values: &[String]| {
        let is_branch = section.starts_with("branch \"");
        let is_value_fine = |value: &String| match key.as_str() {
            "remote" | "pushremote" => is_known(value),
            "merge" => value.starts_with("refs/"),
            _ => true,
        };
        is_branch && TRACKING.contains(&key.as_str()) && values.iter().all(is_value_fine)
    };
    let keys = before.keys().chain(now.keys());
    let mut changed = keys.filter(|key| before.get(*key) != now.get(*key));
    changed.all(|key| {
        let values = now.get(key).map_or(&[][..], Vec::as_slice);
        is_fine(key, values)
    })
}

/// Sections of a configuration in which nothing makes git run a program.
const DESCRIBING: &[&str] = &["remote", "branch", "user", "submodule", "extensions", "lfs"];

/// Keys of the section `core` that git writes into a new repository.
const DESCRIBING_CORE: &[&str] = &[
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "symlinks",
    "ignorecase",
    "precomposeunicode",
    "worktree",
    "autocrlf",
    "eol",
    "longpaths",
    "protectntfs",
];

/// Keys that name a program all the same.
const RUNNING: &[&str] = &[
    "uploadpack",
    "receivepack",
    "vcs",
    "update",
    "customtransferagent",
    "standalonetransferagent",
];

/// Returns whether a configuration only says what the repository is and where it came from.
pub(super) fn only_describes(config: &[u8]) -> bool {
    let Some(entries) = read(config) else {
        return false;
    };
    let is_plain = |(section, key): &Key, values: &[String]| {
        let kind = section.split(' ').next().unwrap_or_default();
        let is_known = match kind {
            "core" => section == "core" && DESCRIBING_CORE.contains(&key.as_str()),
            kind => {
                DESCRIBING.contains(&kind) && !key.contains('.') && !RUNNING.contains(&key.as_str())
            }
        };
        // `ext::` names a program.
        is_known && !values.iter().any(|value| value.contains("::"))
    };
    entries.iter().all(|(key, values)| is_plain(key, values))
}

/// Reads the plain part of the format; anything else is not understood.
fn read(text: &[u8]) -> Option<BTreeMap<Key, Vec<String>>> {
    let text = std::str::from_utf8(text).ok()?;
    let mut section = String::new();
    let mut entries: BTreeMap<Key, Vec<String>> = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.strip_suffix(']')?;
            if name.contains([']', '\\']) {
                return None;
            }
            // The name of a section is the same in any case, that of its part is not.
            let (kind, part) = name.split_once(' ').unwrap_or((name, ""));
            section = format!("{} {part}", kind.to_lowercase())
                .trim_end()
                .to_owned();
            continue;
        }
        if line.ends_with('\\') || section.is_empty() {
            return None;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let key = (section.clone(), key.trim().to_lowercase());
        entries
            .entry(key)
            .or_default()
            .push(value.trim().to_owned());
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str =
        "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/x\n";

    fn fine(added: &str) -> bool {
        only_tracks(BEFORE.as_bytes(), format!("{BEFORE}{added}").as_bytes())
    }

    #[test]
    fn a_new_repository_is_described() {
        let plain = |text: &str| only_describes(format!("{BEFORE}{text}").as_bytes());
        assert!(plain(
            "[branch \"main\"]\n\tremote = origin\n[user]\n\tname = A\n"
        ));
        for text in [
            "[core]\n\tfsmonitor = evil\n",
            "[core]\n\thooksPath = evil\n",
            "[alias]\n\tst = !evil\n",
            "[filter \"x\"]\n\tclean = evil\n",
            "[remote \"x\"]\n\turl = ext::evil\n",
            "[remote \"x\"]\n\tuploadpack = evil\n",
            "[include]\n\tpath = evil\n",
        ] {
            assert!(!plain(text), "{text}");
        }
    }

    #[test]
    fn what_a_branch_follows_may_change() {
        assert!(fine(""));
        assert!(fine(
            "[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n"
        ));
        assert!(fine(
            "[branch \"x\"]\n\tremote = .\n\tmerge = refs/heads/main\n"
        ));
    }

    #[test]
    fn whatever_may_run_something_or_leads_elsewhere_may_not() {
        for added in [
            "[core]\n\tfsmonitor = evil\n",
            "[CORE]\n\tsshCommand = evil\n",
            "[branch \"x\"]\n\tremote = https://evil.example\n",
            "[remote \"evil\"]\n\turl = x\n[branch \"x\"]\n\tremote = evil\n",
            "[remote \"origin\"]\n\turl = https://evil.example\n",
            "[alias]\n\tst = !evil\n",
            "[branch \"x\"]\n\tremote = origin\\\n\tx\n",
            "[branch \"x\"] remote = origin\n",
            "[include]\n\tpath = x\n",
        ] {
            assert!(!fine(added), "{added}");
        }
    }
}
