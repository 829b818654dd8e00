//! Changes that a person looks at before they are made: what is asked, what they are shown, and what they agreed to.
//!
//! A tool that returns [`crate::Consent::Review`] shows the change with [`crate::Action::preview`], and its run gets the
//! [`Agreement`]. Comparing what it is about to do with that is the tool's duty: the world may have changed in between.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::fence::Pass;
use crate::id::SessionId;

/// A change that somebody must agree to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// Why it is asked.
    pub reason: String,
    /// What would change, as the person would write it.
    pub what: String,
    /// A name for everything a yes covers. Whoever says yes for the session is not asked again about a call all of whose
    /// names they have covered.
    pub covers: Vec<String>,
    /// Whether only a person may decide: no model does in their place.
    pub is_for_person: bool,
    /// Whether the call may run where nobody is asked, without an agreement: it keeps the change until somebody agrees to it.
    pub may_wait: bool,
}

/// A change as it would be made now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// A unified diff. Not made safe for a terminal.
    pub diff: String,
    /// Whether the diff shows all of it.
    pub is_whole: bool,
    /// Tells this change from every other: what is there now, and what would be.
    pub basis: String,
}

/// What a preview may know of the call it is made for.
#[derive(Debug, Clone, Copy)]
pub struct PreviewContext<'a> {
    pub session: &'a SessionId,
    pub cwd: &'a Path,
    pub stop: &'a CancellationToken,
}

/// What was agreed to before a call runs. Empty for calls that need nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Agreement {
    /// The names of [`Review::covers`].
    pub covers: Vec<String>,
    /// The change that somebody has seen, where it was shown.
    pub basis: Option<String>,
    /// What it may do beyond the fence.
    pub pass: Pass,
}
