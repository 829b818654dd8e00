//! Finds what a message refers to: `@PATH`, `@"a path"`, `@file:PATH:10-20`, `@folder:PATH`, `@diff`, `@staged`, `@git:N`
//! and `@url:ADDRESS`.

use hermes_core::Changes;

/// Commits that one reference may bring along.
const COMMITS_MAX: u32 = 10;

/// Punctuation of the sentence around a reference.
const AFTER: [char; 8] = [',', '.', ';', '!', '?', ')', ']', '}'];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// As it stands in the message.
    pub(super) written: String,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// A bare `@PATH`: a file or a folder.
    Path(FileLines),
    File(FileLines),
    Folder(String),
    Changes(Changes),
    Page(String),
    /// Says why it is none.
    Wrong(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileLines {
    pub(super) path: String,
    pub(super) lines: Option<(usize, usize)>,
}

/// Finds every reference, in order. What stands in a code block is code: nothing in it is one, unless it says what it is
/// (`@file:`).
pub(super) fn find(message: &str) -> Vec<Reference> {
    let mut references: Vec<Reference> = Vec::new();
    let mut end = 0;
    for (at, _) in message.match_indices('@') {
        let before = message[..at].chars().next_back();
        let is_inside_a_word = before.is_some_and(|c| c.is_alphanumeric() || "_/@".contains(c));
        if at < end || is_inside_a_word {
            continue;
        }
        let rest = &message[at + 1..];
        let Some((what, length)) = read(rest, is_code(&message[..at])) else {
            continue;
        };
        end = at + 1 + length;
        let reference = Reference {
            written: message[at..end].to_owned(),
            what,
        };
        if !references.contains(&reference) {
            references.push(reference);
        }
    }
    references
}

fn is_code(before: &str) -> bool {
    let fences = before
        .lines()
        .filter(|line| line.trim_start().starts_with("```"));
    fences.count() % 2 == 1
}

/// Reads what stands behind an `@`, and how much of it belongs to the reference.
fn read(rest: &str, is_code: bool) -> Option<(What, usize)> {
    for (name, what) in [
        (
            "file:",
            (|value| What::File(place(value))) as fn(&str) -> What,
        ),
        ("folder:", |value| What::Folder(value.to_owned())),
        ("git:", commits),
        ("url:", |value| What::Page(value.to_owned())),
    ] {
        let Some(value) = rest.strip_prefix(name) else {
            continue;
        };
        let (value, length) = word(value);
        return (!value.is_empty()).then(|| (what(value), name.len() + length));
    }
    if is_code {
        return None;
    }
    let (value, length) = word(rest);
    let is_quoted = length > value.len();
    let what = match value {
        "" => return None,
        "diff" if !is_quoted => What::Changes(Changes::Unstaged),
        "staged" if !is_quoted => What::Changes(Changes::Staged),
        _ => What::Path(place(value)),
    };
    Some((what, length))
}

fn commits(value: &str) -> What {
    match value.parse() {
        Ok(count @ 1..=COMMITS_MAX) => What::Changes(Changes::Commits(count)),
        _ => What::Wrong(format!(
            "it takes a number of commits from 1 to {COMMITS_MAX}"
        )),
    }
}

/// Takes a word up to its closing quote, or up to white space less the punctuation of the sentence around it. Returns how
/// much of the text that is, quotes and line numbers behind them included.
fn word(text: &str) -> (&str, usize) {
    let quote = text.chars().next().filter(|c| "`\"'".contains(*c));
    if let Some(quote) = quote {
        return match text[1..].split_once(quote) {
            Some((word, _)) => (word, word.len() + 2),
            None => ("", 0),
        };
    }
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    if matches!(word, "." | "..") {
        return (word, word.len());
    }
    let word = word
        .trim_end_matches(AFTER)
        .trim_end_matches([':', '"', '\'', '`']);
    (word, word.len())
}

/// Splits `path:10-20` and `path:10`.
fn place(value: &str) -> FileLines {
    let range = |text: &str| match text.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => text.parse().ok().map(|line| (line, line)),
    };
    let split = value.rsplit_once(':');
    match split.and_then(|(path, lines)| Some((path, range(lines)?))) {
        Some((path, lines)) => FileLines {
            path: path.to_owned(),
            lines: Some(lines),
        },
        None => FileLines {
            path: value.to_owned(),
            lines: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(message: &str) -> Vec<String> {
        let told = |reference: Reference| match reference.what {
            What::Path(FileLines { path, lines }) => format!("path {path}{}", told_lines(lines)),
            What::File(FileLines { path, lines }) => format!("file {path}{}", told_lines(lines)),
            What::Folder(path) => format!("folder {path}"),
            What::Changes(changes) => format!("{changes:?}"),
            What::Page(url) => format!("page {url}"),
            What::Wrong(_) => "wrong".to_owned(),
        };
        find(message).into_iter().map(told).collect()
    }

    fn told_lines(lines: Option<(usize, usize)>) -> String {
        lines.map_or(String::new(), |(first, last)| format!(" {first}-{last}"))
    }

    #[test]
    fn references_are_found_as_people_write_them() {
        for (message, expected) in [
            (
                "look at @file:src/main.rs, please",
                &["file src/main.rs"][..],
            ),
            ("(@file:a.rs:3-9)", &["file a.rs 3-9"]),
            ("@a.rs:7", &["path a.rs 7-7"]),
            ("@./a.rs and @../b.rs.", &["path ./a.rs", "path ../b.rs"]),
            ("@/etc/hosts?", &["path /etc/hosts"]),
            ("@\"a b.txt\" and @'c d'", &["path a b.txt", "path c d"]),
            (
                "@file:`with space.txt` and @folder:src",
                &["file with space.txt", "folder src"],
            ),
            (
                "@diff, @staged and @git:3",
                &["Unstaged", "Staged", "Commits(3)"],
            ),
            ("@\"diff\" @git:0 @git:x", &["path diff", "wrong", "wrong"]),
            (
                "@url:https://example.org/a?b=c.",
                &["page https://example.org/a?b=c"],
            ),
            ("@a @a", &["path a"]),
            ("mail me@file:x or https://host/@file:y or @file: or @", &[]),
            ("```java\n@Override @file:a\n```\n@b", &["file a", "path b"]),
        ] {
            assert_eq!(found(message), expected, "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn finding_references_never_panics(
            message in "(@file:|@folder:|@git:|@url:|@diff|```|[`\"'é@:0-9/ .\n-]){0,20}",
        ) {
            find(&message);
        }
    }
}
