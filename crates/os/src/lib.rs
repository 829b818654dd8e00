//! What several crates need from the machine and the standard library lacks.
//!
//! Owns where a path leads ([`paths`]). Knows nothing of agents: no session, model, tool or setting is named here, and no
//! other crate of ours is used.

pub mod paths;
