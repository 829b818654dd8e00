//! What happens to commands when Hermes itself is killed.

use std::process::Command;

use hermes_core::Terminal;

use crate::{Machine, command, environment, is_alive, pid_in, wait_until};

/// Set for the copy of this test program that is to be killed: the file its command writes its id to.
const VICTIM: &str = "HERMES_EXEC_TEST_VICTIM";

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "starts and kills a copy of the test program itself"
)]
async fn a_killed_hermes_takes_its_commands_with_it() {
    if let Some(file) = std::env::var_os(VICTIM) {
        let line = format!(
            "trap '' TERM HUP; sleep 0.2; echo $$ > {}; sleep 100; true",
            file.display()
        );
        let _ = Terminal::run(&Machine::new(environment()), command(&line)).await;
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::a_killed_hermes_takes_its_commands_with_it",
        ])
        .env(VICTIM, &file)
        .spawn()
        .unwrap();
    let shell = pid_in(&file);
    assert!(is_alive(&shell));
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("the command is gone", || !is_alive(&shell));
}

#[tokio::test]
async fn what_a_finished_command_left_running_is_not_killed_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let local = Machine::new(environment());
    for _ in 0..3 {
        Terminal::run(&local, command("true")).await.unwrap();
    }
    let line = format!("sleep 100 & echo $! > {}", file.display());
    Terminal::run(&local, command(&line)).await.unwrap();
    drop(local);
    let server = pid_in(&file);
    assert!(is_alive(&server));
    let local = Machine::new(environment());
    let kill = format!("kill {server}");
    Terminal::run(&local, command(&kill)).await.unwrap();
}
