//! The command policy against known lines, against disguises and against the real bash.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

mod approvals;
mod disguises;
mod hostile;
mod shell_against_bash;
mod shell_lines;
