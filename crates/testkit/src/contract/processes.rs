//! What background processes must do wherever they run.
//!
//! `open` makes the port anew over the same records and the same machine: what a restart of the program does.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

use std::path::PathBuf;
use std::time::Duration;

use hermes_core::{
    CancellationToken, NotifyOn, Pass, ProcessError, ProcessName, ProcessState, ProcessStatus,
    Processes, Progress, SessionId, ShellCommand,
};

/// Long enough that a case which waits for it has failed.
const NEVER: Duration = Duration::from_secs(60);

pub async fn check<P: Processes>(open: impl Fn() -> P, cwd: impl Into<PathBuf>) {
    let place = Place {
        processes: open(),
        cwd: cwd.into(),
    };
    an_end_is_seen_with_its_code_and_output(&place).await;
    a_running_process_is_looked_at(&place).await;
    input_is_typed_and_closed(&place).await;
    a_kill_reaches_everything(&place).await;
    a_killed_shell_is_no_end_unseen(&place).await;
    sessions_see_their_own(&place).await;
    a_wait_ends_at_its_limit_and_when_stopped(&place).await;
    endless_output_stays_bounded(&place).await;
    a_terminal_can_be_had(&place).await;
    an_end_is_told(&place).await;
    a_word_is_told(&place).await;
    an_end_is_told_after_a_restart(&place, &open).await;
    a_restart_finds_them_again(place, open).await;
}

/// The session that is named like its case.
fn session_of(case: &str) -> SessionId {
    format!("processes-{}-{case}", std::process::id()).into()
}

struct Place<P> {
    processes: P,
    cwd: PathBuf,
}

impl<P: Processes> Place<P> {
    fn command(&self, case: &str, line: &str) -> ShellCommand {
        ShellCommand {
            session: session_of(case),
            line: line.to_owned(),
            cwd: self.cwd.clone(),
            workdir: None,
            stdin: Vec::new(),
            pty: false,
            timeout: NEVER,
            output_bytes_max: 1000,
            pass: Pass::default(),
            mark: None,
            stop: CancellationToken::new(),
            progress: Progress::default(),
        }
    }

    async fn start(&self, case: &str, line: &str) -> String {
        self.start_notifying(case, line, NotifyOn::default()).await
    }

    async fn start_notifying(&self, case: &str, line: &str, notify_on: NotifyOn) -> String {
        let started = self
            .processes
            .start(self.command(case, line), notify_on)
            .await;
        let status = started.unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(status.state, ProcessState::Running, "{case}");
        assert!(status.pid.is_some(), "{case}");
        status.id
    }

    async fn wait(&self, case: &str, id: &str) -> ProcessStatus {
        let session = session_of(case);
        let process = ProcessName {
            session: &session,
            id,
        };
        let stop = CancellationToken::new();
        self.processes.wait(process, NEVER, stop).await.unwrap()
    }

    async fn look(&self, case: &str, id: &str) -> ProcessStatus {
        let session = session_of(case);
        let process = ProcessName {
            session: &session,
            id,
        };
        self.processes.look(process, 10_000).await.unwrap()
    }

    async fn kill(&self, case: &str, id: &str) -> ProcessStatus {
        let session = session_of(case);
        let process = ProcessName {
            session: &session,
            id,
        };
        self.processes.kill(process).await.unwrap()
    }

    /// Looks until the output says so.
    async fn until(&self, case: &str, id: &str, words: &str) -> ProcessStatus {
        for _ in 0..200 {
            let status = self.look(case, id).await;
            if status.tail.contains(words) {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!(
            "{case}: never printed {words}: {:?}",
            self.look(case, id).await
        );
    }
}

async fn an_end_is_seen_with_its_code_and_output(place: &Place<impl Processes>) {
    let id = place.start("end", "echo one; echo two >&2; exit 3").await;
    let status = place.wait("end", &id).await;
    assert_eq!(status.state, ProcessState::Exited(3), "{status:?}");
    assert_eq!(status.tail, "one\ntwo\n");
    assert_eq!(status.line, "echo one; echo two >&2; exit 3");
}

async fn a_running_process_is_looked_at(place: &Place<impl Processes>) {
    let id = place.start("look", "echo \"it's up\"; sleep 64").await;
    let status = place.until("look", &id, "it's up").await;
    assert_eq!(status.state, ProcessState::Running);
    assert_eq!(place.kill("look", &id).await.state, ProcessState::Killed);
    assert_eq!(place.look("look", &id).await.state, ProcessState::Killed);
}

async fn input_is_typed_and_closed(place: &Place<impl Processes>) {
    let id = place
        .start(
            "input",
            "while read -r line; do echo \"got $line\"; done; echo end",
        )
        .await;
    let session = session_of("input");
    let process = ProcessName {
        session: &session,
        id: &id,
    };
    place
        .processes
        .write(process, b"one\nt".to_vec())
        .await
        .unwrap();
    place
        .processes
        .write(process, b"wo\n".to_vec())
        .await
        .unwrap();
    place.until("input", &id, "got two").await;
    place.processes.close(process).await.unwrap();
    let status = place.wait("input", &id).await;
    assert_eq!(status.state, ProcessState::Exited(0));
    assert_eq!(status.tail, "got one\ngot two\nend\n");
    let refused = place.processes.write(process, b"late".to_vec()).await;
    assert!(
        matches!(refused, Err(ProcessError::NotRunning { .. })),
        "{refused:?}"
    );
}

async fn a_kill_reaches_everything(place: &Place<impl Processes>) {
    let seconds = format!("65.{}", std::process::id());
    let line = format!(
        "trap '' TERM; setsid sleep {seconds} & (trap '' TERM; sleep {seconds}) & echo up; wait"
    );
    let id = place.start("tree", &line).await;
    place.until("tree", &id, "up").await;
    assert_eq!(place.kill("tree", &id).await.state, ProcessState::Killed);
    let pattern = seconds.replace('.', "[.]");
    let line = format!(
        "for i in $(seq 600); do grep -qsa 'sleep.{pattern}' /proc/[0-9]*/cmdline || exit 0; sleep 0.05; done; exit 1"
    );
    let id = place.start("tree", &line).await;
    assert_eq!(place.wait("tree", &id).await.state, ProcessState::Exited(0));
}

async fn a_killed_shell_is_no_end_unseen(place: &Place<impl Processes>) {
    let id = place.start("lost", "sleep 0.5; kill -KILL 0").await;
    assert_eq!(place.wait("lost", &id).await.state, ProcessState::Lost);
}

async fn sessions_see_their_own(place: &Place<impl Processes>) {
    let id = place.start("mine", "sleep 64").await;
    let listed = |session: SessionId| async move {
        let listed = place.processes.list(&session).await.unwrap();
        listed
            .into_iter()
            .map(|status| status.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(session_of("mine")).await, [id.as_str()]);
    assert!(listed(session_of("yours")).await.is_empty());
    let yours = session_of("yours");
    let process = ProcessName {
        session: &yours,
        id: &id,
    };
    let refused = place.processes.kill(process).await;
    assert!(
        matches!(refused, Err(ProcessError::Unknown { .. })),
        "{refused:?}"
    );
    place.kill("mine", &id).await;
}

async fn a_wait_ends_at_its_limit_and_when_stopped(place: &Place<impl Processes>) {
    let id = place.start("limit", "sleep 64").await;
    let session = session_of("limit");
    let process = ProcessName {
        session: &session,
        id: &id,
    };
    let stop = CancellationToken::new();
    let waited = place
        .processes
        .wait(process, Duration::from_secs(1), stop.clone())
        .await;
    assert_eq!(waited.unwrap().state, ProcessState::Running);
    stop.cancel();
    let waited = place.processes.wait(process, NEVER, stop).await;
    assert_eq!(waited.unwrap().state, ProcessState::Running);
    place.kill("limit", &id).await;
}

async fn endless_output_stays_bounded(place: &Place<impl Processes>) {
    let id = place
        .start("bounded", "yes | head -c 60000000; echo; echo last")
        .await;
    let status = place.wait("bounded", &id).await;
    assert_eq!(status.state, ProcessState::Exited(0));
    assert!(status.tail.ends_with("\nlast\n"), "{}", status.tail.len());
}

async fn a_terminal_can_be_had(place: &Place<impl Processes>) {
    let mut command = place.command(
        "pty",
        "test -t 1 && echo yes; read -r name; echo \"hello $name\"",
    );
    command.pty = true;
    let id = place
        .processes
        .start(command, NotifyOn::default())
        .await
        .unwrap()
        .id;
    place.until("pty", &id, "yes").await;
    let session = session_of("pty");
    let process = ProcessName {
        session: &session,
        id: &id,
    };
    place
        .processes
        .write(process, b"you\n".to_vec())
        .await
        .unwrap();
    place.until("pty", &id, "hello you").await;
    assert_eq!(place.wait("pty", &id).await.state, ProcessState::Exited(0));
}

async fn an_end_is_told(place: &Place<impl Processes>) {
    let notify_on = NotifyOn {
        tell_end: true,
        ..NotifyOn::default()
    };
    let id = place
        .start_notifying("told", "echo result; exit 2", notify_on)
        .await;
    let session = session_of("told");
    let notice = tokio::time::timeout(NEVER, place.processes.notice(&session))
        .await
        .unwrap();
    assert!(
        notice.contains(&id) && notice.contains("exit code 2") && notice.contains("result"),
        "{notice}"
    );
}

async fn an_end_is_told_after_a_restart<P: Processes>(place: &Place<P>, open: impl Fn() -> P) {
    let notify_on = NotifyOn {
        tell_end: true,
        ..NotifyOn::default()
    };
    let session = session_of("told-later");
    let first = place
        .start_notifying("told-later", "echo result; exit 3", notify_on.clone())
        .await;
    let place = Place {
        processes: open(),
        cwd: place.cwd.clone(),
    };
    let notice = tokio::time::timeout(NEVER, place.processes.notice(&session));
    let notice = notice.await.unwrap();
    assert!(
        notice.contains(&first) && notice.contains("exit code 3"),
        "{notice}"
    );
    // What was told is not told by the next one again.
    let second = place
        .start_notifying("told-later", "echo more; exit 4", notify_on)
        .await;
    let after = open();
    let notice = tokio::time::timeout(NEVER, after.notice(&session));
    let notice = notice.await.unwrap();
    assert!(
        notice.contains(&second) && notice.contains("exit code 4"),
        "{notice}"
    );
}

async fn a_word_is_told(place: &Place<impl Processes>) {
    let notify_on = NotifyOn {
        watch_for: vec!["ready".into()],
        ..NotifyOn::default()
    };
    let id = place
        .start_notifying(
            "word",
            "echo no; sleep 0.3; echo now ready; sleep 64",
            notify_on,
        )
        .await;
    let session = session_of("word");
    let notice = tokio::time::timeout(NEVER, place.processes.notice(&session))
        .await
        .unwrap();
    assert!(
        notice.contains("now ready") && notice.contains(&id),
        "{notice}"
    );
    place.kill("word", &id).await;
}

async fn a_restart_finds_them_again<P: Processes>(place: Place<P>, open: impl Fn() -> P) {
    let running = place
        .start("again", "echo up; read -r x; echo \"$x after\"")
        .await;
    let ended = place.start("again", "exit 5").await;
    place.until("again", &running, "up").await;
    let place = Place {
        processes: open(),
        cwd: place.cwd,
    };
    assert_eq!(
        place.wait("again", &ended).await.state,
        ProcessState::Exited(5)
    );
    assert_eq!(
        place.look("again", &running).await.state,
        ProcessState::Running
    );
    let session = session_of("again");
    let process = ProcessName {
        session: &session,
        id: &running,
    };
    place
        .processes
        .write(process, b"restart\n".to_vec())
        .await
        .unwrap();
    let status = place.wait("again", &running).await;
    assert_eq!(
        (status.state, status.tail.as_str()),
        (ProcessState::Exited(0), "up\nrestart after\n")
    );
    let left = place.start("again", "sleep 64").await;
    assert_eq!(
        place.look("again", &left).await.state,
        ProcessState::Running
    );
    place.processes.leave().await;
    assert!(place.processes.list(&session).await.unwrap().is_empty());
}
