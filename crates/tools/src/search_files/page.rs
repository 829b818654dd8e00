//! The first results in an order, although they are found in any order: what cannot be on the page is not kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where a file stands: by time, newest first, where that matters, then by path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    modified: Reverse<Option<SystemTime>>,
    path: PathBuf,
}

impl Key {
    pub(super) fn by_path(path: PathBuf) -> Self {
        Self {
            modified: Reverse(None),
            path,
        }
    }

    pub(super) fn newest_first(path: PathBuf, modified: Option<SystemTime>) -> Self {
        Self {
            modified: Reverse(modified),
            path,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// What was found in one file: `kept` results, of `total`.
pub(super) trait Hits {
    fn kept(&self) -> usize;
    fn total(&self) -> usize;
}

/// The results that can be on the page, by file, and the numbers of all.
pub(super) struct Page<H> {
    /// Results up to the end of the page.
    wanted: usize,
    kept: usize,
    files: BTreeMap<Key, H>,
    pub(super) total: usize,
    pub(super) files_total: usize,
}

impl<H: Hits> Page<H> {
    pub(super) fn new(wanted: usize) -> Self {
        Self {
            wanted,
            kept: 0,
            files: BTreeMap::new(),
            total: 0,
            files_total: 0,
        }
    }

    /// Returns whether the page is full of results that come before this file.
    pub(super) fn is_beyond(&self, key: &Key) -> bool {
        let last = self.files.last_key_value();
        self.kept >= self.wanted && last.is_none_or(|(last, _)| last < key)
    }

    pub(super) fn add(&mut self, key: Key, hits: H) {
        self.total += hits.total();
        self.files_total += 1;
        if self.is_beyond(&key) {
            return;
        }
        self.kept += hits.kept();
        self.files.insert(key, hits);
        while let Some(last) = self.files.last_entry() {
            let others = self.kept - last.get().kept();
            if others < self.wanted {
                break;
            }
            self.kept = others;
            last.remove();
        }
    }

    /// Returns the files in order.
    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, &H)> {
        self.files.iter().map(|(key, hits)| (key.path(), hits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Count(usize);

    impl Hits for Count {
        fn kept(&self) -> usize {
            self.0
        }

        fn total(&self) -> usize {
            self.0
        }
    }

    proptest::proptest! {
        #[test]
        fn the_page_does_not_depend_on_the_order_of_finding(
            counts in proptest::collection::vec(1..5_usize, 1..20),
            seed in 1..100_usize,
            wanted in 1..20_usize,
        ) {
            let mut numbers: Vec<usize> = (0..counts.len()).collect();
            numbers.sort_by_key(|n| (n * seed) % 7);
            let mut page = Page::new(wanted);
            for n in numbers {
                page.add(Key::by_path(format!("{n:03}").into()), Count(counts[n]));
            }
            let found: Vec<usize> = page.files().map(|(_, count)| count.0).collect();
            proptest::prop_assert!(counts.starts_with(&found));
            let kept: usize = found.iter().sum();
            let total: usize = counts.iter().sum();
            proptest::prop_assert!(kept >= wanted.min(total));
            proptest::prop_assert!(kept < wanted + 5);
            proptest::prop_assert_eq!(page.total, total);
        }
    }

    #[test]
    fn newest_files_come_first() {
        let time = |seconds| Some(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
        let mut keys = [
            Key::newest_first("a".into(), time(1)),
            Key::newest_first("c".into(), time(2)),
            Key::newest_first("b".into(), time(2)),
        ];
        keys.sort();
        let paths: Vec<&Path> = keys.iter().map(Key::path).collect();
        assert_eq!(paths, ["b", "c", "a"].map(Path::new));
    }
}
