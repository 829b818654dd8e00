//! What a command line would do, and whether that needs consent: the reader of shell lines and its rules.
//!
//! Owns the verdict on a line: free, to be asked for, or forbidden whoever asks. The same line always gets the same one.
//! Knows nothing of sessions, of who is asked or of how commands run: tools reach it through the port
//! [`CommandPolicy`](hermes_core::CommandPolicy), which [`CommandLists`] implements with what the user refused or allowed for
//! good. It runs nothing; to follow links and to find a remote of git it looks at the disk.
//!
//! Start at `judge`. The line is read by `shell`; `wrappers` finds the program that `sudo`, `env` or `xargs` would run;
//! `rules` holds one row per danger, which asks its `questions` of a `call`; `runs` finds the lines that a program will run
//! in turn; `places` knows which paths matter; `exactly` judges what an exact reading makes of the line; `read_only`
//! recognises the few commands that surely change nothing; `script` judges Python; `needs` guesses what a line wants from
//! outside the fence.
//!
//! A net for mistakes and for prompts gone astray. It does not contain a program that means harm; the fence does.

mod judge;
mod lists;

mod call;
mod exactly;
mod needs;
mod places;
mod questions;
mod read_only;
mod rules;
mod runs;
mod script;
mod wrappers;

mod named;
mod shell;

pub use judge::{consent_for, consent_in};
pub use lists::{AllowRule, CommandLists};
pub use named::{Named, named};
pub use read_only::is_read_only;
