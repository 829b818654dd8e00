//! The port of the reader of command lines: what a line would do, and what a person must agree to first.

use std::path::{Path, PathBuf};

use crate::fence::{FenceArea, Pass};
use crate::tool::Consent;

/// Longer lines are no longer something a person could judge; they belong in a script file.
pub const LINE_BYTES_MAX: usize = 100_000;

/// Reads command lines and judges them, with what the user refused or allowed for good. Runs nothing.
///
/// Tools ask before each call; the answer to the same line is the same until the user allows more.
pub trait CommandPolicy: Send + Sync {
    /// Returns whether a line surely changes nothing, so that it may run beside others and again after a crash.
    fn is_read_only(&self, line: &str) -> bool;

    /// Says what a person must agree to before a line runs in a shell, in this folder where that is known: a home as `~`.
    fn consent(&self, line: &str, folder: Option<&str>) -> Consent;

    /// Says the same before a line is typed into a program. `raw` is what was typed of it, with its corrections.
    fn consent_for_typed(&self, line: &str, raw: &str) -> Consent;

    /// Says the same before a Python script runs.
    fn consent_for_script(&self, code: &str) -> Consent;

    /// Finds out what a line needs from outside the fence, as far as its words tell. Looks at the disk to follow links.
    fn beyond_fence(&self, line: &str, setting: FenceSetting<'_>) -> BeyondFence;

    /// Returns the name of the program that runs last: the one whose exit code the line returns.
    fn last_program(&self, line: &str) -> Option<String>;
}

/// Where a line would run, on this machine and behind a fence.
#[derive(Debug, Clone, Copy)]
pub struct FenceSetting<'a> {
    pub area: &'a FenceArea,
    /// The user's.
    pub home: Option<&'a Path>,
    pub folder: &'a Path,
}

/// What a line needs beyond the fence. Most need nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BeyondFence {
    /// Each completes "this …".
    pub reasons: Vec<String>,
    pub pass: Pass,
    /// Patterns of such lines that a person may allow for longer, the narrowest first.
    pub patterns: Vec<String>,
    /// Guarded files that the line may change although nobody was asked: git does it, with what commits of the repository
    /// hold, which were made by somebody who was asked, or by the person.
    pub checked_out: Vec<PathBuf>,
}

impl BeyondFence {
    /// Returns whether the line needs nothing.
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Adds that the fence is left altogether, and why.
    pub fn leave(&mut self, reason: &str) {
        if !self.reasons.iter().any(|given| given == reason) {
            self.reasons.push(reason.to_owned());
        }
        self.pass.outside = true;
    }
}
