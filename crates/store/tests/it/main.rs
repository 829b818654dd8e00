//! The store at its boundary: real files, real processes, real kills.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

mod contract;
mod damage;
mod disk_full;
mod files;
mod killed;
mod processes;
mod queries;
mod recall;
mod schemas;

use std::path::Path;

use hermes_core::{
    Cost, Entry, FinishReason, Message, ModelName, NewSession, Prefix, SessionId, Timestamp,
    TurnEnd, TurnId, Usage,
};
use hermes_store::SqliteStore;

const NOW: Timestamp = Timestamp::from_millis(1_794_777_845_000);

fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(folder.join("hermes.db"), folder.join("locks")).unwrap()
}

fn new_session(id: &str) -> NewSession {
    NewSession {
        id: SessionId::from(id),
        created: NOW,
        source: "cli".into(),
        title: None,
        cwd: None,
        model: model(),
        parent: None,
        prefix: Prefix::default(),
    }
}

fn model() -> ModelName {
    ModelName {
        provider: "test".into(),
        model: "scripted".into(),
    }
}

/// One whole turn.
fn exchange(turn: &str, question: &str, answer: &str) -> Vec<Entry> {
    let turn = TurnId::from(turn);
    vec![
        Entry::TurnStarted {
            turn: turn.clone(),
            message: Message::user(question),
        },
        Entry::Replied {
            turn: turn.clone(),
            message: Message::assistant(answer),
            reason: FinishReason::Stop,
            usage: Usage::default(),
            cost: Cost::Included,
            model: model(),
        },
        Entry::TurnEnded {
            turn,
            end: TurnEnd::Finished,
            closing: None,
        },
    ]
}
