//! Names that become paths. Whoever wrote one, in front matter, a proposal, the books of the hub or a setting, it is looked at
//! here before a path is made of it.

use std::path::{Component, Path, PathBuf};

use super::SkillError;

/// Of what is quoted in a complaint.
const SHOWN_CHARS_MAX: usize = 80;

/// Whether a name can be that of one file or folder, and of one that is looked at.
pub(super) fn is_plain(name: &str) -> bool {
    !name.trim().is_empty()
        && !name.starts_with('.')
        && !name.contains(['/', '\\'])
        && !name.chars().any(char::is_control)
}

/// The place of a name in a folder.
pub(super) fn within(folder: &Path, name: &str) -> Result<PathBuf, SkillError> {
    if is_plain(name) {
        return Ok(folder.join(name));
    }
    Err(SkillError::asked(format!(
        "`{}` is no name of a file, so that nothing is read or written there",
        hermes_core::text::shorten(name, SHOWN_CHARS_MAX)
    )))
}

/// The place of a path in a folder, if all its parts are plain names.
pub(super) fn below(folder: &Path, path: &str) -> Result<PathBuf, SkillError> {
    let mut place = folder.to_owned();
    let mut is_empty = true;
    for part in Path::new(path).components() {
        let name = match part {
            Component::Normal(name) => name.to_str().unwrap_or_default(),
            _ => "..",
        };
        place = within(&place, name).map_err(|_| {
            SkillError::asked(format!(
                "`{}` leads out of the folder of skills, so that nothing is read or written there",
                hermes_core::text::shorten(path, SHOWN_CHARS_MAX)
            ))
        })?;
        is_empty = false;
    }
    if is_empty {
        within(folder, path)?;
    }
    Ok(place)
}

/// `owner/repository` as GitHub names them, and the path that may stand behind it. That one is only compared with what a
/// repository lists, where folders may be hidden.
pub(super) fn repository(identifier: &str) -> Option<(&str, &str)> {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_good = |part: &str| !matches!(part, "" | "." | "..") && part.chars().all(is_letter);
    let (owner, rest) = identifier.split_once('/')?;
    let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_named = is_plain(owner) && is_plain(name) && is_good(owner) && is_good(name);
    let is_path = path.is_empty() || path.split('/').all(is_good);
    let repo = &identifier[..owner.len() + 1 + name.len()];
    (is_named && is_path && !identifier.ends_with('/')).then_some((repo, path))
}

pub(super) fn is_address(identifier: &str) -> bool {
    let rest = identifier
        .strip_prefix("https://")
        .or_else(|| identifier.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        let is_odd = |c: char| c.is_whitespace() || c.is_control();
        !rest.starts_with(['/', '.']) && !rest.is_empty() && !rest.contains(is_odd)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stays_in_its_folder_becomes_a_path() {
        let folder = Path::new("/home/skills");
        for bad in [
            "", " ", ".", "..", "../x", "a/b", "/etc", ".hub", "a\\b", "a\nb",
        ] {
            assert!(within(folder, bad).is_err(), "{bad:?}");
        }
        for good in ["review", "Code Review", "a..b", "überblick"] {
            assert_eq!(within(folder, good).unwrap(), folder.join(good));
        }
        for bad in ["", "/", "/etc/x", "dev/../../x", "./..", ".archive/x", "."] {
            assert!(below(folder, bad).is_err(), "{bad:?}");
        }
        assert_eq!(
            below(folder, "dev/review").unwrap(),
            folder.join("dev/review")
        );
    }

    #[test]
    fn repositories_and_addresses_are_told_from_paths() {
        assert_eq!(repository("me/repo"), Some(("me/repo", "")));
        let hidden = repository("me/repo/skills/.curated/x");
        assert_eq!(hidden, Some(("me/repo", "skills/.curated/x")));
        for bad in [
            "../x",
            "me",
            "me/",
            "/x",
            "me/../x",
            "me/re po",
            "https://a/b",
            "a/b/../c",
        ] {
            assert_eq!(repository(bad), None, "{bad}");
        }
        assert!(is_address("https://a.example/x") && is_address("http://127.0.0.1:1"));
        for bad in ["ftp://a", "https://", "https:///x", "https://a b", "../x"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
