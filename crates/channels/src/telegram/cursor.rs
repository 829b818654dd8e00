//! How far updates were read, and which groups are called otherwise by now: what a restart must not forget.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    /// The number of the next update; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<i64>,
    /// What groups are called, by what they were called before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) moves: BTreeMap<String, String>,
}

impl Cursor {
    /// One that cannot be read is as none: Telegram then begins with what waits.
    pub(super) fn read(kept: Option<String>) -> Self {
        let Some(kept) = kept else {
            return Self::default();
        };
        match kept.parse() {
            Ok(offset) => Self {
                offset: Some(offset),
                ..Self::default()
            },
            Err(_) => serde_json::from_str(&kept).unwrap_or_default(),
        }
    }

    /// A number alone, where that is all.
    pub(super) fn write(&self) -> String {
        match self.offset {
            Some(offset) if self.moves.is_empty() => offset.to_string(),
            _ => serde_json::to_string(self).unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        let moves = BTreeMap::from([("-5".to_owned(), "-1005".to_owned())]);
        for (offset, moves) in [
            (None, BTreeMap::new()),
            (Some(7), BTreeMap::new()),
            (Some(7), moves.clone()),
            (None, moves),
        ] {
            let cursor = Cursor { offset, moves };
            assert_eq!(Cursor::read(Some(cursor.write())), cursor);
        }
        assert_eq!(Cursor::read(Some("17".to_owned())).offset, Some(17));
        for kept in [None, Some(String::new()), Some("x".to_owned())] {
            assert_eq!(Cursor::read(kept), Cursor::default());
        }
    }
}
