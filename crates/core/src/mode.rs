//! How freely a conversation may act, as its person switches it while it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// How freely calls may act. What needs consent for its own sake needs it in every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Every change of a file is shown first.
    Ask,
    /// Changes of ordinary files are made.
    #[default]
    AcceptEdits,
    /// Nothing but reading.
    Plan,
}

impl Mode {
    /// The one that follows, round and round.
    pub fn next(self) -> Self {
        match self {
            Self::Ask => Self::AcceptEdits,
            Self::AcceptEdits => Self::Plan,
            Self::Plan => Self::Ask,
        }
    }

    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept edits",
            Self::Plan => "plan",
        }
    }
}

/// The mode of a conversation, for all who go by it; whoever turns it, turns it for everybody at once.
#[derive(Debug, Clone, Default)]
pub struct ModeSwitch(Arc<AtomicU8>);

impl ModeSwitch {
    pub fn new(mode: Mode) -> Self {
        let switch = Self::default();
        switch.set(mode);
        switch
    }

    pub fn set(&self, mode: Mode) {
        let number = match mode {
            Mode::AcceptEdits => 0,
            Mode::Ask => 1,
            Mode::Plan => 2,
        };
        self.0.store(number, Ordering::Relaxed);
    }

    pub fn now(&self) -> Mode {
        match self.0.load(Ordering::Relaxed) {
            0 => Mode::AcceptEdits,
            1 => Mode::Ask,
            _ => Mode::Plan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_reached_and_seen_by_all() {
        let switch = ModeSwitch::default();
        let elsewhere = switch.clone();
        let mut seen = Vec::new();
        for _ in 0..3 {
            switch.set(switch.now().next());
            seen.push(elsewhere.now());
        }
        assert_eq!(seen, [Mode::Plan, Mode::Ask, Mode::AcceptEdits]);
    }
}
