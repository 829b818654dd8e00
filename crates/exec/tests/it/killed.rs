//! What happens to commands when Hermes itself is killed.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use hermes_core::{
    CancellationToken, NotifyOn, ProcessName, ProcessState, Processes, SessionId, Terminal,
};
use hermes_exec::{Background, Local, ProcessFolder};
use hermes_testkit::TestClock;

use crate::{Machine, NEVER, command, environment, is_alive, pid_in, wait_until};

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
            "trap '' TERM HUP; echo $$ > {0}; setsid sh -c 'echo $$ > {0}.apart; sleep 100; true' & sleep 100; true",
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
    let pids = [pid_in(&file), pid_in(&folder.path().join("pid.apart"))];
    assert!(pids.iter().all(|pid| is_alive(pid)));
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("the command and what left its group are gone", || {
        !pids.iter().any(|pid| is_alive(pid))
    });
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

/// Set for the copy of this test program that is to be killed with a process in its background: where its home is.
const KEEPER: &str = "HERMES_EXEC_TEST_KEEPER";

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "starts and kills a copy of the test program itself"
)]
async fn background_processes_of_a_killed_hermes_are_found_again() {
    let open = |home: &Path| {
        Background::new(
            Arc::new(Local::new(environment(), home.join("shells"))),
            ProcessFolder::Here(home.join("processes")),
            home.join("records"),
            Arc::new(TestClock::default()),
        )
    };
    if let Some(home) = std::env::var_os(KEEPER) {
        let processes = open(Path::new(&home));
        for line in ["echo up; sleep 0.5; exit 7", "read -r x; echo \"got $x\""] {
            Processes::start(&processes, command(line), NotifyOn::default())
                .await
                .unwrap();
        }
        std::fs::write(Path::new(&home).join("ready"), "1\n").unwrap();
        return std::future::pending().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::background_processes_of_a_killed_hermes_are_found_again",
        ])
        .env(KEEPER, folder.path())
        .spawn()
        .unwrap();
    pid_in(&folder.path().join("ready"));
    victim.kill().unwrap();
    victim.wait().unwrap();

    let processes = open(folder.path());
    let session = SessionId::from("session");
    let found = Processes::list(&processes, &session).await.unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    let mut ends = Vec::new();
    for process in &found {
        let name = ProcessName {
            session: &session,
            id: &process.id,
        };
        // The one that does not read has ended, or does not mind.
        let _ = Processes::write(&processes, name, b"word\n".to_vec()).await;
        let end = Processes::wait(&processes, name, NEVER, CancellationToken::new()).await;
        let end = end.unwrap();
        ends.push((end.state, end.tail));
    }
    ends.sort_by_key(|(_, tail)| tail.clone());
    assert_eq!(
        ends,
        [
            (ProcessState::Exited(0), "got word\n".to_owned()),
            (ProcessState::Exited(7), "up\n".to_owned()),
        ]
    );
}

/// Hermes may be killed before the process has written down by what it is found.
#[tokio::test]
async fn a_process_that_left_no_mark_takes_nobody_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let open = |home: &str| {
        let home = folder.path().join(home);
        Background::new(
            Arc::new(Local::new(environment(), home.join("shells"))),
            ProcessFolder::Here(home.join("processes")),
            home.join("records"),
            Arc::new(TestClock::default()),
        )
    };
    let (ours, theirs) = (open("ours"), open("theirs"));
    let mut started = Vec::new();
    for processes in [&ours, &theirs] {
        let process = Processes::start(processes, command("sleep 60"), NotifyOn::default());
        started.push(process.await.unwrap().id);
    }
    for entry in folder.path().join("ours/processes").read_dir().unwrap() {
        let _ = std::fs::remove_file(entry.unwrap().path().join("mark"));
    }
    let session = SessionId::from("session");
    let name = |id| ProcessName {
        session: &session,
        id,
    };
    let ended = Processes::kill(&ours, name(&started[0])).await.unwrap();
    assert_eq!(ended.state, ProcessState::Killed);
    let innocent = Processes::list(&theirs, &session).await.unwrap();
    assert_eq!(innocent[0].state, ProcessState::Running);
    Processes::kill(&theirs, name(&started[1])).await.unwrap();
}
