//! `hermes completion`.

use super::{contains, run, stdout};
use crate::setting::bare;

#[test]
fn every_shell_gets_a_script() {
    for shell in ["bash", "zsh", "fish"] {
        contains(
            &stdout(&bare(), &["completion", shell]),
            &["hermes", "sessions", "prompt-size"],
        );
    }
    let output = run(&bare(), &["completion", "cobol"]);
    assert_eq!(output.code, Some(2));
    contains(&output.stderr, &["cobol", "bash"]);
}
