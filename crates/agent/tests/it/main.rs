//! The agent at its boundary: ops in, events and a step log out.

mod approvals;
mod calls;
mod changes;
mod checkpoints;
mod closing;
mod compaction;
mod delegation;
mod disk_waits;
mod elicitations;
mod following;
mod inner_calls;
mod odd_histories;
mod queued;
mod recovery;
mod replies;
mod rewinding;
mod run;
mod safety;
mod steering;
mod tool_state;
