//! What Hermes keeps and learns: notes, recall, skills, the review of conversations, the model of the user.
//!
//! It sees models, tools and what survives through the ports of `hermes-core`; it must not know where those come from, read
//! settings or the environment, or print. Every change it makes is in the learning log ([`hermes_core::learning`]).

pub mod grounding;
pub mod notes;
pub mod recall;
pub mod review;
pub mod skills;
pub mod titles;
pub mod user_model;

pub mod asking;
mod blocking;
pub use hermes_core::threats;
