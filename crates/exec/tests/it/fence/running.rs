//! Processes behind a fence: they stay inside, and none is left running.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{BoxFuture, NotifyOn, Pass, ProcessName, Processes, ShellCommand, Terminal};
use hermes_exec::{FenceSupport, Local};
use hermes_testkit::contract::processes;
use tokio::sync::Notify;

use super::{BUBBLEWRAP, Home, LANDLOCK, has_bubblewrap, has_landlock, reads, wait_until};
use crate::environment;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_behind_landlock_keep_the_contract() {
    if has_landlock() {
        let home = Home::new();
        processes::check(|| home.background(LANDLOCK), &home.path("project")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_behind_bubblewrap_keep_the_contract() {
    if has_bubblewrap() {
        let home = Home::new();
        processes::check(|| home.background(BUBBLEWRAP), &home.path("project")).await;
    }
}

#[tokio::test]
async fn nobody_outside_is_signalled() {
    if !FenceSupport::of_this_machine(&environment())
        .landlock
        .is_ok_and(|version| version >= 6)
    {
        return;
    }
    let home = Home::new();
    let line = format!(
        "kill -0 {} 2>/dev/null && echo reached; kill -0 $$ && echo own",
        std::process::id()
    );
    assert_eq!(home.text(&home.fenced(LANDLOCK), &line).await, "own\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_and_what_is_typed_into_them_stay_inside() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let background = home.background(LANDLOCK);
    let start = |pass: Pass| ShellCommand {
        pass,
        ..home.command("while read -r line; do eval \"$line\"; done 2>&1")
    };
    let session = "session".into();
    let type_and_look = async |pass: Pass| {
        let started = background
            .start(start(pass), NotifyOn::default())
            .await
            .unwrap();
        let process = ProcessName {
            session: &session,
            id: &started.id,
        };
        let input = b"cat ../.ssh/id; echo x > ../made; echo typed\n".to_vec();
        background.write(process, input).await.unwrap();
        background.close(process).await.unwrap();
        let stop = hermes_core::CancellationToken::new();
        let wait = std::time::Duration::from_secs(20);
        background.wait(process, wait, stop).await.unwrap().tail
    };
    let inside = type_and_look(Pass::default()).await;
    assert!(
        inside.contains("typed") && !inside.contains(".ssh/id\n.ssh"),
        "{inside}"
    );
    home.is_untouched();
    let with_keys = type_and_look(reads(home.path(".ssh"))).await;
    assert!(with_keys.starts_with(".ssh/id\n"), "{with_keys}");
    home.is_untouched();
}

/// Runs commands, and never says how they ended: what a caller sees that is killed meanwhile.
struct Unanswered {
    local: Local,
    ended: Arc<Notify>,
}

impl Terminal for Unanswered {
    fn run(
        &self,
        command: ShellCommand,
    ) -> BoxFuture<'_, Result<hermes_core::CommandOutput, hermes_core::TerminalError>> {
        Box::pin(async {
            Terminal::run(&self.local, command).await?;
            self.ended.notify_one();
            std::future::pending().await
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_start_was_not_heard_of_is_ended_by_the_next_hermes() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let ended = Arc::new(Notify::new());
    let killed = home.background_on(Unanswered {
        local: home.fenced(LANDLOCK),
        ended: Arc::clone(&ended),
    });
    let line = "echo $BASHPID > pid; exec sleep 600";
    tokio::select! {
        started = killed.start(home.command(line), NotifyOn::default()) => panic!("{started:?}"),
        () = ended.notified() => {}
    }
    let pid_file = home.path("project/pid");
    let is_written = || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n'));
    assert!(wait_until(is_written).await);
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(lives());

    let next = home.background(LANDLOCK);
    let session = "session".into();
    assert_eq!(next.list(&session).await.unwrap().len(), 1);
    next.leave().await;
    assert!(wait_until(|| !lives()).await, "the process has ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_whose_folder_was_removed_leaves_nothing_running() {
    if !has_landlock() {
        return;
    }
    let home = Home::new();
    let background = home.background(LANDLOCK);
    let line = "until [ -e stop ]; do sleep 0.05; done";
    let started = background.start(home.command(line), NotifyOn::default());
    let id = started.await.unwrap().id;
    let project = home.path("project");
    let at_work = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let folders = processes.map(|entry| std::fs::read_link(entry.path().join("cwd")));
        folders.flatten().filter(|cwd| *cwd == project).count()
    };
    assert!(at_work() > 0);
    std::fs::remove_dir_all(home.path(".hermes/processes").join(&id)).unwrap();
    std::fs::write(project.join("stop"), "").unwrap();
    assert!(wait_until(|| at_work() == 0).await);
}
