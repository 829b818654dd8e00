//! What survives: sessions, their step logs and messages, the questions that wait in them, the search over them, what
//! was learned in them, and the jobs of schedules, in one SQLite file.
//!
//! The only crate with SQL. Start at [`SqliteStore`]. Every change goes through the one thread in `writer`, which
//! commits in groups; `append` holds the rules of the step log; `search` finds things again. Reads run beside it on a
//! few connections of their own (`readers`). `claim` keeps two processes from writing into one session. `wal` notices a log
//! that was cut before SQLite overlooks it, `salvage` saves what can be read of a damaged file.
//!
//! Knows nothing of models, tools or how a turn runs: it is told what happened, in the words of `hermes-core`, and refuses what
//! cannot have.
//!
//! Deliberately absent: VACUUM (it would lock out everyone while serving), and changing a stored message (they are
//! only added, and removed with their session).

mod sqlite;

mod append;
mod approvals;
mod claim;
mod compactions;
mod copies;
mod gateway;
mod health;
mod insights;
mod learning;
mod load;
mod offers;
mod prefixes;
mod queued;
mod records;
mod reviews;
mod salvage;
mod schedules;
mod search;
mod sessions;
mod stored;
mod title;
mod tool_states;
mod user_models;

mod connection;
mod failure;
mod migrations;
mod readers;
mod wal;
mod writer;

pub use health::Health;
pub use salvage::Salvage;
pub use sqlite::SqliteStore;
