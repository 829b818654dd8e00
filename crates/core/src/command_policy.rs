//! The port of the reader of command lines: what a line would do, and what a person must agree to first.

use std::path::Path;

use crate::fence::{Checkout, FenceArea, Pass};
use crate::tool::Consent;

/// Longer lines are no longer something a person could judge; they belong in a script file.
pub const LINE_BYTES_MAX: usize = 100_000;

/// Reads command lines and judges them, with what the user refused or allowed for good. Runs nothing.
///
/// Tools ask once for each call, when they prepare it; the answer to the same line is the same until the user allows more.
pub trait CommandPolicy: Send + Sync {
    /// Reads a line, once, and says everything that is to be known before it runs in a shell. Looks at the disk to follow
    /// links.
    fn judge(&self, line: &str, place: CommandPlace<'_>) -> JudgedCommand;

    /// Says what a person must agree to before a line is typed into a program. `raw` is what was typed of it, with its
    /// corrections.
    fn consent_for_typed(&self, line: &str, raw: &str) -> Consent;

    /// Says the same before a Python script runs.
    fn consent_for_script(&self, code: &str) -> Consent;
}

/// Where a line would run.
#[derive(Debug, Clone, Copy)]
pub struct CommandPlace<'a> {
    /// The folder, where that is known: a home as `~`.
    pub folder: Option<&'a str>,
    /// The folder as the user's rules name it that allow commands for good.
    pub allowed_in: &'a Path,
    /// Without one, nothing is beyond it.
    pub fence: Option<FenceSetting<'a>>,
}

/// What is to be known of a line before it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCommand {
    /// What a person must agree to, whatever the fence would hold.
    pub consent: Consent,
    /// Whether it surely changes nothing, so that it may run beside others and again after a crash. Only when its programs
    /// are what they are called: a shell can be taught otherwise.
    pub is_read_only: bool,
    /// The programs that it runs, unless it is not understood.
    pub programs: Option<Vec<String>>,
    /// Whether its programs may do something else altogether with other words, so that a yes to this line says little of
    /// such lines.
    pub depends_on_words: bool,
    /// Whether the user allowed it for good, where it would run: nobody need be asked, unless it is forbidden.
    pub is_allowed: bool,
    /// What it needs from outside the fence, as far as its words tell.
    pub beyond: BeyondFence,
    /// The name of the program that runs last: the one whose exit code the line returns.
    pub last_program: Option<String>,
}

/// Where a line would run, on this machine: behind a fence, or with its rules where nothing holds it.
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
    /// Guarded files that the line may change although nobody was asked: git does it.
    pub checkout: Checkout,
    /// Whether the line does nothing but look at what is not kept from commands, as far as its programs are what they are
    /// called.
    pub only_looks: bool,
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
