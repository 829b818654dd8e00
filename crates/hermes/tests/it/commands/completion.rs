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
    // Names of providers are completed where one is wanted, and files nowhere else than where one is.
    let script = stdout(&bare(), &["completion", "bash"]);
    let login = script.split("hermes__subcmd__login)").last().unwrap();
    let login = login.split(";;\n        hermes__").next().unwrap();
    contains(login, &["nous", "xai-oauth"]);
    assert!(!login.contains("openrouter"), "it has no login: {login}");
    assert!(!login.contains("compgen -f"), "{login}");
    let output = run(&bare(), &["completion", "cobol"]);
    assert_eq!(output.code, Some(2));
    contains(&output.stderr, &["cobol", "bash"]);
}
