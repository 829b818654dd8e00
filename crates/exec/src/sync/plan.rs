//! Decides what is sent, what is removed over there and what comes back. Knows nothing of how that is done.

use std::collections::BTreeMap;

use super::name::Name;
use super::scan::{LocalFile, Stamp};

/// SHA-256 in hexadecimal.
pub(super) type Hash = String;

pub(super) type Hashes = BTreeMap<Name, Hash>;

/// What we know to be over there because we put it there.
pub(super) type Ledger = BTreeMap<Name, Sent>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    /// Of the file here when it was sent.
    pub(super) stamp: Stamp,
    pub(super) hash: Hash,
}

/// What was found over there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// What was put there last, perhaps by an earlier start of Hermes.
    pub(super) manifest: Hashes,
    /// The skills as they are now.
    pub(super) files: Hashes,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) send: Vec<Name>,
    pub(super) remove: Vec<Name>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.send.is_empty() && self.remove.is_empty()
    }
}

/// Compares what is here with what was sent.
pub(super) fn changes(files: &BTreeMap<Name, LocalFile>, ledger: &Ledger) -> Changes {
    let is_sent = |name: &Name, file: &LocalFile| {
        let sent = ledger.get(name);
        sent.is_some_and(|sent| sent.stamp == file.stamp)
    };
    let send = files.iter().filter(|(name, file)| !is_sent(name, file));
    let remove = ledger.keys().filter(|name| !files.contains_key(name));
    Changes {
        send: send.map(|(name, _)| name.clone()).collect(),
        remove: remove.cloned().collect(),
    }
}

/// Makes the ledger of a place that an earlier start of Hermes may have left files in.
///
/// Equal files are not sent again. A file that was changed over there and never came back stays, unless it was changed here
/// too. One that is gone here, and is as we put it there, is in the ledger so that it will be removed.
pub(super) fn first_ledger(here: &BTreeMap<Name, Sent>, seen: &Seen) -> Ledger {
    let is_known = |name: &Name, sent: &Sent| {
        seen.files
            .get(name)
            .is_some_and(|there| *there == sent.hash || seen.manifest.get(name) == Some(&sent.hash))
    };
    let known = here.iter().filter(|(name, sent)| is_known(name, sent));
    let is_left_behind = |name: &Name, hash: &Hash| {
        let is_untouched = seen.files.get(name).is_none_or(|there| there == hash);
        !here.contains_key(name) && (is_untouched || !name.is_skill())
    };
    let left_behind = seen.manifest.iter();
    let left_behind = left_behind.filter(|(name, hash)| is_left_behind(name, hash));
    let gone = |(name, hash): (&Name, &Hash)| {
        let stamp = Stamp::default();
        let hash = hash.clone();
        (name.clone(), Sent { stamp, hash })
    };
    known
        .map(|(name, sent)| (name.clone(), sent.clone()))
        .chain(left_behind.map(gone))
        .collect()
}

/// Names the skills that were changed or made over there.
pub(super) fn coming_back(there: &Hashes, ledger: &Ledger) -> Vec<Name> {
    let is_news = |name: &Name, hash: &Hash| {
        let sent = ledger.get(name);
        name.is_skill() && sent.is_none_or(|sent| sent.hash != *hash)
    };
    let news = there.iter().filter(|(name, hash)| is_news(name, hash));
    news.map(|(name, _)| name.clone()).collect()
}

/// What becomes of a file that came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Landing {
    /// It takes its place.
    Replace,
    /// It is here already.
    Nothing,
    /// It was changed here too: ours stays, and theirs is kept beside it.
    Beside,
}

/// Compares hashes: what was sent, what is here now, what came.
pub(super) fn landing(sent: Option<&Hash>, here: Option<&Hash>, there: &Hash) -> Landing {
    if here == Some(there) {
        Landing::Nothing
    } else if here == sent {
        Landing::Replace
    } else {
        Landing::Beside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn stamp(bytes: u64) -> Stamp {
        Stamp {
            bytes,
            ..Stamp::default()
        }
    }

    fn sent(hash: &str, bytes: u64) -> Sent {
        Sent {
            stamp: stamp(bytes),
            hash: hash.to_owned(),
        }
    }

    fn hashes(pairs: &[(&str, &str)]) -> Hashes {
        let pair = |(text, hash): &(&str, &str)| (name(text), (*hash).to_owned());
        pairs.iter().map(pair).collect()
    }

    fn names(names: &[Name]) -> Vec<&str> {
        names.iter().map(Name::as_str).collect()
    }

    #[test]
    fn only_what_changed_is_sent_and_what_is_gone_is_removed() {
        let file = |bytes| LocalFile {
            path: "/".into(),
            stamp: stamp(bytes),
        };
        let files = BTreeMap::from([
            (name("skills/same"), file(1)),
            (name("skills/new"), file(1)),
            (name("skills/changed"), file(2)),
        ]);
        let ledger = Ledger::from([
            (name("skills/same"), sent("a", 1)),
            (name("skills/changed"), sent("b", 1)),
            (name("token.json"), sent("c", 1)),
        ]);
        let changes = changes(&files, &ledger);
        assert_eq!(names(&changes.send), ["skills/changed", "skills/new"]);
        assert_eq!(names(&changes.remove), ["token.json"]);
    }

    #[test]
    fn what_an_earlier_start_left_is_known_again() {
        let here = BTreeMap::from([
            (name("skills/same"), sent("a", 1)),
            (name("skills/edited-there"), sent("b", 1)),
            (name("skills/edited-here"), sent("c2", 1)),
            (name("skills/lost-there"), sent("d", 1)),
        ]);
        let seen = Seen {
            manifest: hashes(&[
                ("skills/edited-there", "b"),
                ("skills/edited-here", "c"),
                ("skills/lost-there", "d"),
                ("skills/gone-here", "e"),
                ("skills/gone-here-edited-there", "f"),
                ("token.json", "g"),
            ]),
            files: hashes(&[
                ("skills/same", "a"),
                ("skills/edited-there", "b2"),
                ("skills/edited-here", "c"),
                ("skills/gone-here", "e"),
                ("skills/gone-here-edited-there", "f2"),
                ("skills/made-there", "h"),
            ]),
        };
        let ledger = first_ledger(&here, &seen);
        let known: Vec<&str> = ledger.keys().map(Name::as_str).collect();
        // The last two are not here, and will be removed there.
        let expected = [
            "skills/edited-there",
            "skills/gone-here",
            "skills/same",
            "token.json",
        ];
        assert_eq!(known, expected);
        let back = coming_back(&seen.files, &ledger);
        assert!(names(&back).contains(&"skills/edited-there"));
        assert!(names(&back).contains(&"skills/made-there"));
        assert!(names(&back).contains(&"skills/gone-here-edited-there"));
    }

    #[test]
    fn credential_files_never_come_back() {
        let there = hashes(&[("token.json", "x"), ("skills/a", "y"), ("skills/.env", "z")]);
        assert_eq!(names(&coming_back(&there, &Ledger::new())), ["skills/a"]);
    }

    #[test]
    fn a_file_that_changed_on_both_sides_lands_beside_ours() {
        let hash = |text: &str| text.to_owned();
        let (a, b, c) = (hash("a"), hash("b"), hash("c"));
        for (sent, here, there, expected) in [
            (Some(&a), Some(&a), &b, Landing::Replace),
            (None, None, &b, Landing::Replace),
            (Some(&a), Some(&b), &b, Landing::Nothing),
            (Some(&a), Some(&c), &b, Landing::Beside),
            (Some(&a), None, &b, Landing::Beside),
            (None, Some(&c), &b, Landing::Beside),
        ] {
            assert_eq!(landing(sent, here, there), expected, "{sent:?} {here:?}");
        }
    }
}
