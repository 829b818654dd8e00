//! The agent: takes [`hermes_core::Op`]s, asks the model, runs the tools it calls, tells [`hermes_core::Event`]s.
//!
//! Start at [`Session::open`], then `turn.rs`: the whole loop is there. It knows no provider, no database, no
//! platform and no screen; those are behind the ports of `hermes-core`.

mod session;
mod turn;

mod approvals;
mod calls;
mod circles;
mod compaction;
mod consent;
mod delegation;
mod elicitations;
mod events;
mod history;
mod nested;
mod queue;
mod record;
mod references;
mod repeat;
mod reviewer;
mod safety;
mod salvage;
mod spill;
mod steering;
mod step;
mod tool_source;

pub mod prompt;

pub use compaction::CompactionSettings;
pub use consent::ConsentPolicy;
pub use delegation::DelegationSettings;
pub use events::{EventLog, Follower};
pub use reviewer::Reviewer;
pub use safety::Safety;
pub use session::{AgentSettings, Limits, Opened, Ports, Session, SessionStart, WeakSession};
pub use tool_source::{SessionTools, ToolSource};
