//! Profiles: full homes of their own below `profiles/`, chosen before any other argument is read.

use std::{ffi::OsString, fs, path::Path};

use crate::disk::{self, WriteError};

/// The folder of the profiles, in the root home.
pub(crate) const PROFILES: &str = "profiles";
/// The name that means the root home.
pub(crate) const DEFAULT: &str = "default";
/// The file in the root home that holds the sticky choice.
pub(crate) const STICKY_FILE: &str = "active_profile";
/// Names that would be confused with something else.
const RESERVED_NAMES: [&str; 6] = ["hermes", DEFAULT, "test", "tmp", "root", "sudo"];
/// Longest name of a profile, in characters.
const NAME_CHARS_MAX: usize = 64;

/// Options whose next argument is a value, however it looks.
const OPTIONS_WITH_VALUE: [&str; 12] = [
    "-z",
    "--oneshot",
    "-m",
    "--model",
    "--provider",
    "-t",
    "--toolsets",
    "-r",
    "--resume",
    "-s",
    "--skills",
    "--usage-file",
];
/// Options whose next argument is a value unless it looks like an option.
const OPTIONS_WITH_OPTIONAL_VALUE: [&str; 2] = ["-c", "--continue"];

/// Takes `-p NAME`, `--profile NAME` or `--profile=NAME` out of the arguments behind the program's name.
///
/// The first choice counts. A value that is no profile name is left alone: some commands have a `-p` of their own.
/// Nothing is taken behind `--`, behind `mcp add … --args`, or from the value of another option.
pub fn take_profile(mut arguments: Vec<OsString>) -> (Option<String>, Vec<OsString>) {
    match find_profile(&arguments) {
        Some(found) => {
            arguments.drain(found.arguments);
            (Some(found.name), arguments)
        }
        None => (None, arguments),
    }
}

struct Found {
    name: String,
    arguments: std::ops::Range<usize>,
}

fn find_profile(arguments: &[OsString]) -> Option<Found> {
    let text = |index: usize| arguments.get(index).and_then(|argument| argument.to_str());
    let adds_mcp_server = arguments
        .windows(2)
        .any(|pair| pair[0] == "mcp" && pair[1] == "add");
    let mut index = 0;
    while index < arguments.len() {
        let argument = text(index).unwrap_or("");
        let next = text(index + 1);
        if argument == "--" || (argument == "--args" && adds_mcp_server) {
            return None;
        }
        if let Some(name) = argument
            .strip_prefix("--profile=")
            .filter(|name| is_profile_name(name))
        {
            return Some(Found {
                name: name.to_owned(),
                arguments: index..index + 1,
            });
        }
        if let ("-p" | "--profile", Some(name)) =
            (argument, next.filter(|name| is_profile_name(name)))
        {
            return Some(Found {
                name: name.to_owned(),
                arguments: index..index + 2,
            });
        }
        let skips_next = OPTIONS_WITH_VALUE.contains(&argument)
            || (OPTIONS_WITH_OPTIONAL_VALUE.contains(&argument)
                && next.is_some_and(|next| !next.starts_with('-')));
        index += if skips_next { 2 } else { 1 };
    }
    None
}

/// Tells whether `name` can name a profile: lowercase letters, digits, `_` and `-`, and neither of those first.
pub fn is_profile_name(name: &str) -> bool {
    let is_inner = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
    };
    name.len() <= NAME_CHARS_MAX
        && !name.starts_with(['_', '-'])
        && !name.is_empty()
        && name.bytes().all(is_inner)
}

/// Tells whether a new profile may have this name.
pub(crate) fn is_free_name(name: &str) -> bool {
    is_profile_name(name) && !RESERVED_NAMES.contains(&name)
}

/// Returns the profile whose home `directory` is, going by its path.
pub(crate) fn name_of_home(directory: &Path) -> Option<&str> {
    let is_below_profiles = directory.parent()?.file_name()? == PROFILES;
    is_below_profiles
        .then(|| directory.file_name()?.to_str())
        .flatten()
}

/// Returns the profile that the root home names for every start; `None` for the default one.
pub(crate) fn sticky_choice(root: &Path) -> Option<String> {
    let text = disk::read_text(&root.join(STICKY_FILE)).ok()??;
    let name = text.trim_start_matches('\u{feff}').trim();
    (!name.is_empty() && name != DEFAULT).then(|| name.to_owned())
}

/// Makes `name` the profile of every start that names no other.
pub(crate) fn stick(root: &Path, name: &str) -> Result<(), WriteError> {
    disk::write_atomically(&root.join(STICKY_FILE), &format!("{name}\n"))
}

pub(crate) fn list(root: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root.join(PROFILES)) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_profile_name(name))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, profile: Option<&str>, rest: &str) {
        let arguments = line.split_whitespace().map(OsString::from).collect();
        let (found, remaining) = take_profile(arguments);
        let remaining: Vec<_> = remaining
            .iter()
            .map(|argument| argument.to_str().unwrap())
            .collect();
        assert_eq!(
            (found.as_deref(), remaining.join(" ").as_str()),
            (profile, rest)
        );
    }

    #[test]
    fn a_profile_is_taken_from_anywhere_before_the_dashes() {
        check("-p work chat", Some("work"), "chat");
        check("chat --profile work -q hi", Some("work"), "chat -q hi");
        check("chat --profile=work", Some("work"), "chat");
        check("chat -- -p work", None, "chat -- -p work");
        check("chat", None, "chat");
        check("-p", None, "-p");
    }

    #[test]
    fn values_of_other_options_are_not_options() {
        check("-z -p work", None, "-z -p work");
        check("-m -p -p work", Some("work"), "-m -p");
        check("-c name -p work", Some("work"), "-c name");
        check("-c -p work", Some("work"), "-c");
        check("mcp add x --args -p work", None, "mcp add x --args -p work");
        check("run --args -p work", Some("work"), "run --args");
    }

    #[test]
    fn a_value_that_is_no_name_is_left_alone() {
        for line in ["-p Work", "-p 8080:80", "-p -x", "--profile=../x", "-p _a"] {
            check(line, None, line);
        }
        check("-p 8080", Some("8080"), "");
    }

    #[test]
    fn only_the_first_choice_is_taken() {
        check("-p a -p b", Some("a"), "-p b");
    }

    #[test]
    fn a_name_has_a_longest_length() {
        assert!(is_profile_name(&"a".repeat(64)));
        assert!(!is_profile_name(&"a".repeat(65)));
        assert!(!is_profile_name(""));
    }
}
