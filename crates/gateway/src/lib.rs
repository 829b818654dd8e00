//! The always-on part: inbox to turn to outbox, pairing, delivery, schedules, and the HTTP API.
//!
//! It sends [`hermes_core::Op`]s and renders [`hermes_core::Event`]s like every other surface, and owns what only a
//! long-running process needs. Nothing is here before its inbox is.
