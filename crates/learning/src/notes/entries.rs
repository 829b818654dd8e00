//! The format of a file of notes, and what changes do to its entries. Pure.

use super::excerpt;
use crate::threats::{self, Threat};
use serde::{Deserialize, Serialize};

/// Between two entries.
pub const DELIMITER: &str = "\n§\n";

/// The line that stands between two entries.
const MARK: &str = "§";

/// An entry like most of another is proposed to be merged with it.
const ALIKE: f64 = 0.5;

/// Pairs that are proposed at most: the entries themselves are in the answer, too.
const PROPOSALS_MAX: usize = 3;

/// Reads a file as somebody may have left it: any line ends, blanks around entries and marks, no entry twice.
pub(super) fn parse(text: &str) -> Vec<String> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n");
    let mut entries: Vec<String> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.split('\n').chain([MARK]) {
        if line.trim() != MARK {
            lines.push(line.trim_end());
            continue;
        }
        let entry = lines.join("\n").trim().to_owned();
        lines.clear();
        if !entry.is_empty() && !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

pub(super) fn join(entries: &[String]) -> String {
    entries.join(DELIMITER)
}

/// How full a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Characters with the marks between entries.
    pub chars: usize,
    pub chars_max: usize,
}

impl Usage {
    pub(super) fn of(entries: &[String], chars_max: usize) -> Self {
        Self {
            chars: chars_in(entries),
            chars_max,
        }
    }

    pub fn percent(self) -> usize {
        self.chars * 100 / self.chars_max.max(1)
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { chars, chars_max } = self;
        write!(f, "{}% — {chars}/{chars_max} chars", self.percent())
    }
}

fn chars_in(entries: &[String]) -> usize {
    let entries_chars: usize = entries.iter().map(|entry| entry.chars().count()).sum();
    entries_chars + entries.len().saturating_sub(1) * DELIMITER.chars().count()
}

/// One change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Operation {
    Add {
        content: String,
    },
    Replace {
        old_text: String,
        content: String,
    },
    Remove {
        old_text: String,
    },
    /// Takes an entry out and keeps it in the archive.
    Archive {
        old_text: String,
    },
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) chars_max: usize,
    /// Whether the oldest entries may go to the archive.
    pub(super) make_room: bool,
}

/// What a file is to become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) entries: Vec<String>,
    pub(super) archived: Vec<String>,
    pub(super) summary: String,
}

/// Why a change is not made. The model reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("nothing to do: give `action`, or `operations`")]
    Nothing,
    #[error("an entry needs words: `content` is empty")]
    Empty,
    #[error("say which entry: `old_text` is empty")]
    NoOldText,
    #[error("no entry has the text `{old_text}`")]
    NoMatch {
        old_text: String,
        entries: Vec<String>,
    },
    #[error("{} entries have the text `{old_text}`; give more of the one you mean", matches.len())]
    Ambiguous {
        old_text: String,
        matches: Vec<String>,
    },
    #[error(
        "this is not kept: it {0}; say it in other words, without what looks like an instruction to you"
    )]
    Threat(Threat),
    #[error("this is not kept: it holds a key or token; say where it is instead")]
    Key,
    #[error("one entry of {chars} characters does not fit into {chars_max}; say it in fewer words")]
    TooLong { chars: usize, chars_max: usize },
    #[error("full: this would be {} of {} characters", usage.chars, usage.chars_max)]
    Full {
        usage: Usage,
        entries: Vec<String>,
        /// Entries that say much the same.
        alike: Vec<(String, String)>,
    },
}

/// Works out what a file becomes. All operations count, or none; only the end must fit.
pub(super) fn plan(
    entries: &[String],
    operations: &[Operation],
    limits: Limits,
) -> Result<Planned, Refused> {
    if operations.is_empty() {
        return Err(Refused::Nothing);
    }
    let mut planned = Planned {
        entries: entries.to_vec(),
        archived: Vec::new(),
        summary: String::new(),
    };
    let mut done = Vec::new();
    for operation in operations {
        done.extend(planned.take(operation, limits)?);
    }
    planned.make_fit(entries, limits)?;
    if !planned.archived.is_empty() && limits.make_room {
        done.push(format!("archived {}", planned.archived.len()));
    }
    planned.summary = if done.is_empty() {
        "nothing had to be changed".to_owned()
    } else {
        done.join("; ")
    };
    Ok(planned)
}

impl Planned {
    /// Applies one operation. Returns what it did, in words; `None` when that was there already.
    fn take(&mut self, operation: &Operation, limits: Limits) -> Result<Option<String>, Refused> {
        match operation {
            Operation::Add { content } => {
                let content = checked(content, limits)?;
                if self.entries.contains(&content) {
                    return Ok(None);
                }
                let done = format!("added: {}", excerpt(&content));
                self.entries.push(content);
                Ok(Some(done))
            }
            Operation::Replace { old_text, content } => {
                let at = self.position(old_text)?;
                let content = checked(content, limits)?;
                if self.entries[at] == content {
                    return Ok(None);
                }
                let done = format!("changed: {}", excerpt(&content));
                self.entries[at] = content.clone();
                // What is there twice now is there once.
                let mut seen = 0;
                self.entries.retain(|entry| {
                    seen += usize::from(*entry == content);
                    *entry != content || seen == 1
                });
                Ok(Some(done))
            }
            Operation::Remove { old_text } => {
                let at = self.position(old_text)?;
                let removed = self.entries.remove(at);
                Ok(Some(format!("removed: {}", excerpt(&removed))))
            }
            Operation::Archive { old_text } => {
                let at = self.position(old_text)?;
                let removed = self.entries.remove(at);
                let done = format!("archived: {}", excerpt(&removed));
                self.archived.push(removed);
                Ok(Some(done))
            }
        }
    }

    fn position(&self, old_text: &str) -> Result<usize, Refused> {
        let old_text = old_text.trim();
        if old_text.is_empty() {
            return Err(Refused::NoOldText);
        }
        let matching = |entry: &&String| entry.contains(old_text);
        let matches: Vec<String> = self.entries.iter().filter(matching).cloned().collect();
        let exact = self.entries.iter().position(|entry| entry == old_text);
        match (matches.as_slice(), exact) {
            (_, Some(at)) => Ok(at),
            ([], None) => Err(Refused::NoMatch {
                old_text: excerpt(old_text),
                entries: self.entries.iter().map(|entry| excerpt(entry)).collect(),
            }),
            ([one], None) => Ok(self
                .entries
                .iter()
                .position(|entry| entry == one)
                .unwrap_or(0)),
            (several, None) => Err(Refused::Ambiguous {
                old_text: excerpt(old_text),
                matches: several.iter().map(|entry| excerpt(entry)).collect(),
            }),
        }
    }

    /// Moves the oldest entries to the archive where that is wanted, and refuses what still does not fit. What did not
    /// fit before may stay so, as long as it does not grow.
    fn make_fit(&mut self, before: &[String], limits: Limits) -> Result<(), Refused> {
        let fits = |entries: &[String]| chars_in(entries) <= limits.chars_max;
        if limits.make_room {
            while !fits(&self.entries) && self.entries.len() > 1 {
                self.archived.push(self.entries.remove(0));
            }
        }
        if fits(&self.entries) || chars_in(&self.entries) <= chars_in(before) {
            return Ok(());
        }
        Err(Refused::Full {
            usage: Usage::of(&self.entries, limits.chars_max),
            entries: before.to_vec(),
            alike: alike(before),
        })
    }
}

/// What may become an entry.
fn checked(content: &str, limits: Limits) -> Result<String, Refused> {
    let content = content.replace("\r\n", "\n");
    let content = content.trim();
    if content.is_empty() {
        return Err(Refused::Empty);
    }
    if let Some(threat) = threats::find(content) {
        return Err(Refused::Threat(threat));
    }
    if content.lines().any(|line| line.trim() == MARK) {
        return Err(Refused::Threat(Threat {
            what: "has the line that parts entries",
            excerpt: MARK.to_owned(),
        }));
    }
    if hermes_core::redact::holds_token(content) {
        return Err(Refused::Key);
    }
    let chars = content.chars().count();
    if chars > limits.chars_max {
        return Err(Refused::TooLong {
            chars,
            chars_max: limits.chars_max,
        });
    }
    Ok(content.to_owned())
}

/// Pairs of entries that say much the same, the most alike first.
fn alike(entries: &[String]) -> Vec<(String, String)> {
    let words: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| distinct(threats::words(entry)))
        .collect();
    let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
    for one in 0..entries.len() {
        for other in one + 1..entries.len() {
            let likeness = likeness(&words[one], &words[other]);
            if likeness >= ALIKE {
                pairs.push((likeness, one, other));
            }
        }
    }
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    let pairs = pairs.into_iter().take(PROPOSALS_MAX);
    pairs
        .map(|(_, one, other)| (excerpt(&entries[one]), excerpt(&entries[other])))
        .collect()
}

fn distinct(mut words: Vec<String>) -> Vec<String> {
    words.sort_unstable();
    words.dedup();
    words
}

/// Which part of the words of the shorter text the longer one has.
fn likeness(one: &[String], other: &[String]) -> f64 {
    let (short, long) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let shared = short.iter().filter(|word| long.binary_search(word).is_ok());
    shared.count() as f64 / short.len().max(1) as f64
}

/// The entries without what a change did; `None` when nothing of that is left.
pub(super) fn without_change(
    entries: &[String],
    before: &[String],
    after: &[String],
) -> Option<Vec<String>> {
    let is_added = |entry: &String| after.contains(entry) && !before.contains(entry);
    let mut undone: Vec<String> = entries
        .iter()
        .filter(|entry| !is_added(entry))
        .cloned()
        .collect();
    let taken = before
        .iter()
        .enumerate()
        .filter(|(_, entry)| !after.contains(entry));
    for (at, entry) in taken {
        if !undone.contains(entry) {
            undone.insert(at.min(undone.len()), entry.clone());
        }
    }
    (undone != entries).then_some(undone)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        chars_max: 60,
        make_room: false,
    };

    fn entries(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn add(content: &str) -> Operation {
        Operation::Add {
            content: content.into(),
        }
    }

    fn replace(old_text: &str, content: &str) -> Operation {
        Operation::Replace {
            old_text: old_text.into(),
            content: content.into(),
        }
    }

    fn remove(old_text: &str) -> Operation {
        Operation::Remove {
            old_text: old_text.into(),
        }
    }

    #[test]
    fn a_file_is_read_however_it_was_left() {
        let tidy = "likes tea\n§\ntwo\nlines";
        assert_eq!(parse(tidy), entries(&["likes tea", "two\nlines"]));
        for drifted in [
            "likes tea  \n§\ntwo\nlines\n\n",
            "\u{feff}likes tea\r\n§\r\ntwo\r\nlines\r\n",
            "\n\nlikes tea\n § \n§\ntwo  \nlines\n§\n",
            "likes tea\n§\nlikes tea\n§\ntwo\nlines",
        ] {
            assert_eq!(parse(drifted), parse(tidy), "{drifted:?}");
        }
        assert!(parse(" \n§\n").is_empty());
        assert_eq!(join(&parse(tidy)), tidy);
    }

    #[test]
    fn operations_add_replace_and_remove() {
        let start = entries(&["likes tea", "lives in Rome"]);
        let planned = plan(
            &start,
            &[
                add("has a dog"),
                replace("Rome", "lives in Lyon"),
                remove("tea"),
            ],
            LIMITS,
        );
        let planned = planned.unwrap();
        assert_eq!(planned.entries, entries(&["lives in Lyon", "has a dog"]));
        assert_eq!(
            planned.summary,
            "added: has a dog; changed: lives in Lyon; removed: likes tea"
        );
        assert_eq!(
            plan(&start, &[add("likes tea")], LIMITS).unwrap().entries,
            start
        );
    }

    #[test]
    fn one_bad_operation_spoils_all() {
        let start = entries(&["likes tea", "likes toast"]);
        let refused = plan(&start, &[add("x"), remove("likes")], LIMITS).unwrap_err();
        assert!(matches!(refused, Refused::Ambiguous { matches, .. } if matches.len() == 2));
        let refused = plan(&start, &[remove("coffee")], LIMITS).unwrap_err();
        assert!(matches!(refused, Refused::NoMatch { .. }));
        for (operation, refused) in [
            (add(" "), Refused::Empty),
            (remove(" "), Refused::NoOldText),
        ] {
            assert_eq!(plan(&start, &[operation], LIMITS), Err(refused));
        }
        assert_eq!(plan(&start, &[], LIMITS), Err(Refused::Nothing));
        assert!(matches!(
            plan(&start, &[add("a\n§\nb")], LIMITS),
            Err(Refused::Threat(_))
        ));
        let long = "x".repeat(61);
        assert!(matches!(
            plan(&start, &[add(&long)], LIMITS),
            Err(Refused::TooLong { .. })
        ));
    }

    #[test]
    fn only_the_end_of_a_batch_must_fit() {
        let start = entries(&["123456789 123456789 123456789", "123456789 123456789"]);
        let more = add("another of twenty ch");
        let refused = plan(&start, std::slice::from_ref(&more), LIMITS).unwrap_err();
        let Refused::Full {
            usage,
            entries: shown,
            alike,
        } = refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!((usage.chars, usage.chars_max), (29 + 3 + 19 + 3 + 20, 60));
        assert_eq!(shown, start);
        assert_eq!(alike.len(), 1);
        let fits = plan(
            &start,
            &[more, remove("123456789 123456789 123456789")],
            LIMITS,
        )
        .unwrap();
        assert_eq!(fits.entries.len(), 2);
    }

    #[test]
    fn room_is_made_by_archiving_the_oldest() {
        let start = entries(&["the oldest of all of these", "a younger one of these"]);
        let limits = Limits {
            make_room: true,
            ..LIMITS
        };
        let planned = plan(&start, &[add("the youngest one there is")], limits).unwrap();
        assert_eq!(
            planned.entries,
            entries(&["a younger one of these", "the youngest one there is"])
        );
        assert_eq!(planned.archived, entries(&["the oldest of all of these"]));
    }

    #[test]
    fn a_file_that_is_too_full_already_can_be_made_smaller() {
        let long = "y".repeat(70);
        let start = entries(&[&long, "short"]);
        assert!(plan(&start, &[remove("short")], LIMITS).is_ok());
        assert!(plan(&start, &[add("z")], LIMITS).is_err());
    }

    #[test]
    fn taking_back_leaves_what_came_later() {
        let before = entries(&["a", "b"]);
        let after = entries(&["a", "c"]);
        let now = entries(&["a", "c", "later"]);
        let undone = without_change(&now, &before, &after).unwrap();
        assert_eq!(undone, entries(&["a", "b", "later"]));
        assert_eq!(without_change(&undone, &before, &after), None);
    }

    proptest! {
        #[test]
        fn what_is_joined_is_read_back(texts in proptest::collection::vec("[a-zé§ \\n]{0,20}", 0..6)) {
            let entries = parse(&texts.join(DELIMITER));
            prop_assert_eq!(parse(&join(&entries)), entries);
        }

        #[test]
        fn no_plan_exceeds_the_limit(
            start in proptest::collection::vec("[a-z]{1,20}", 0..4),
            more in proptest::collection::vec("[a-z ]{0,30}", 1..4),
            make_room: bool,
        ) {
            let start = parse(&start.join(DELIMITER));
            prop_assume!(chars_in(&start) <= LIMITS.chars_max);
            let operations: Vec<_> = more.iter().map(|content| add(content)).collect();
            if let Ok(planned) = plan(&start, &operations, Limits { make_room, ..LIMITS }) {
                prop_assert!(chars_in(&planned.entries) <= LIMITS.chars_max);
                let kept = planned.entries.iter().chain(&planned.archived);
                let kept: Vec<_> = kept.collect();
                prop_assert!(start.iter().all(|entry| kept.contains(&entry)));
            }
        }
    }
}
