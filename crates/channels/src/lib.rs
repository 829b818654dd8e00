//! Chat platforms: one module each, and the one list that names them all.
//!
//! A platform turns its updates into messages and our replies into its own; it knows nothing of sessions or models.
//! Nothing is here before the first platform is.
