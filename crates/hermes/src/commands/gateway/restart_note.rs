//! Which chat wants to hear that a restarted gateway is back. The note is used once, and not after it has grown old.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::{Address, Timestamp};
use hermes_os::{Access, Durability};
use serde_json::{Value, json};

const FILE: &str = "gateway_restart.json";
/// Whoever asked for a restart longer ago than this has stopped waiting for it.
const VALID: Duration = Duration::from_secs(15 * 60);

fn path(home: &Path) -> PathBuf {
    home.join(FILE)
}

/// Notes who asked.
pub(super) fn leave(home: &Path, chat: &Address, now: Timestamp) {
    let note = json!({"chat": chat, "at": now}).to_string();
    let written = hermes_os::replace(
        &path(home),
        note.as_bytes(),
        Access::Private,
        Durability::Synced,
    );
    if let Err(error) = written {
        tracing::warn!(%error, "the chat that asked for a restart is not told when it is done");
    }
}

/// Takes the note, if there is one that still counts.
pub(super) fn take(home: &Path, now: Timestamp) -> Option<Address> {
    let text = fs::read(path(home)).ok()?;
    _ = fs::remove_file(path(home));
    let note: Value = serde_json::from_slice(&text).ok()?;
    let at: Timestamp = serde_json::from_value(note["at"].clone()).ok()?;
    let chat = serde_json::from_value(note["chat"].clone()).ok()?;
    (at <= now && now.since(at) < VALID).then_some(chat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_used_once_and_not_when_it_is_old() {
        let home = tempfile::tempdir().unwrap();
        let chat = Address {
            platform: "chatter".into(),
            chat: "7".into(),
            thread: None,
        };
        let now = Timestamp::from_millis(1_000_000_000);
        leave(home.path(), &chat, now);
        assert_eq!(take(home.path(), now), Some(chat.clone()));
        assert_eq!(take(home.path(), now), None);
        // Complaint 7: a marker without an end.
        leave(home.path(), &chat, now);
        assert_eq!(take(home.path(), now.plus(VALID)), None);
        assert_eq!(take(home.path(), now), None);
    }
}
