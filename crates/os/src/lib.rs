//! What several crates need from the machine and the standard library lacks.
//!
//! Owns where a path leads ([`paths`]), files that are replaced all at once ([`mod@replace`], through a [`folder`] held open),
//! locks between processes ([`lock`]), what is renewed under such a lock ([`renewal`]), groups of processes ([`group`]), the
//! set-up of HTTP clients ([`http`], [`mod@retry_after`]), calendar time ([`calendar`]), when
//! something is due by it ([`schedule`]), who started this process
//! ([`ancestry`]), who writes to it ([`pipeline`]), who may look into it ([`seclusion`]) and what it has in memory
//! ([`memory`]).
//!
//! Knows nothing of agents: no session, model, tool or setting is named here, and no other crate of ours is used. A thing
//! that one crate alone needs stays there.

pub mod ancestry;
pub mod calendar;
pub mod folder;
pub mod group;
pub mod http;
pub mod lock;
pub mod memory;
pub mod paths;
pub mod pipeline;
pub mod renewal;
pub mod replace;
pub mod retry_after;
pub mod schedule;
pub mod seclusion;

pub use folder::Folder;
pub use group::ProcessGroup;
pub use lock::FileLock;
pub use replace::{Access, Durability, make_private_folder, replace};
pub use retry_after::{http_date, retry_after};
