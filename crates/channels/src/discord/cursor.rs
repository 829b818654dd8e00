//! How far Discord was read: the session with its place in it, and what is needed to catch up when the session is lost.

use serde::{Deserialize, Serialize};

/// Private chats that are asked for what was missed; the oldest of more are left out.
const DIRECTS_COUNT_MAX: usize = 200;
/// Ids count milliseconds since the beginning of 2015, and have 22 bits for other things.
const EPOCH_MILLIS: i64 = 1_420_070_400_000;
const TIME_SHIFT: u32 = 22;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<Session>,
    /// The newest message that was seen; everything after it was missed.
    #[serde(default)]
    pub(super) last: u64,
    /// What was said after this message was missed, and is being asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) missed_since: Option<u64>,
    /// Private chats: Discord does not list them. The one that was written in last is the last.
    #[serde(default)]
    pub(super) directs: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) url: String,
    pub(super) seq: u64,
}

impl Cursor {
    /// One that cannot be read is as none: the session is begun anew.
    pub(super) fn read(kept: Option<String>) -> Self {
        let read = kept.and_then(|kept| serde_json::from_str(&kept).ok());
        read.unwrap_or_default()
    }

    pub(super) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn saw(&mut self, message: &str) {
        if let Ok(id) = message.parse::<u64>() {
            self.last = self.last.max(id);
        }
    }

    pub(super) fn saw_direct(&mut self, channel: &str) {
        if self.directs.last().is_some_and(|last| last == channel) {
            return;
        }
        self.directs.retain(|known| known != channel);
        if self.directs.len() >= DIRECTS_COUNT_MAX {
            self.directs.remove(0);
        }
        self.directs.push(channel.to_owned());
    }
}

/// The first id of a moment.
pub(super) fn id_at(millis: i64) -> u64 {
    let since = u64::try_from(millis - EPOCH_MILLIS).unwrap_or(0);
    since << TIME_SHIFT
}

/// When something with this id was made.
pub(super) fn millis_of(id: &str) -> Option<i64> {
    let id: u64 = id.parse().ok()?;
    i64::try_from(id >> TIME_SHIFT)
        .ok()?
        .checked_add(EPOCH_MILLIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        let mut cursor = Cursor::default();
        cursor.saw("175928847299117063");
        cursor.saw("5");
        cursor.saw_direct("1");
        cursor.saw_direct("2");
        cursor.saw_direct("1");
        cursor.session = Some(Session {
            id: "s".to_owned(),
            url: "wss://x".to_owned(),
            seq: 7,
        });
        assert_eq!(cursor.directs, ["2", "1"]);
        assert_eq!(cursor.last, 175_928_847_299_117_063);
        assert_eq!(Cursor::read(Some(cursor.write())), cursor);
        assert_eq!(Cursor::read(Some("17".to_owned())), Cursor::default());
    }

    #[test]
    fn ids_know_when_they_were_made() {
        // The example in Discord's own reference.
        assert_eq!(millis_of("175928847299117063"), Some(1_462_015_105_796));
        assert_eq!(
            millis_of(&id_at(1_462_015_105_796).to_string()),
            Some(1_462_015_105_796)
        );
        assert_eq!(millis_of("x"), None);
    }
}
