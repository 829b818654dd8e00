//! Commands on another host, over a real `sshd`.

use std::path::Path;
use std::sync::Arc;

use hermes_core::{Terminal, TerminalError};
use hermes_exec::{Background, ProcessFolder, Ssh, SshSettings};
use hermes_testkit::TestClock;
use hermes_testkit::contract::{forwarded, processes, terminal};
use hermes_testkit::peers::{Sshd, is_there, program};

use crate::{command, environment, is_alive, pid_in, wait_until};

fn settings(sshd: &Sshd) -> SshSettings {
    SshSettings {
        host: "127.0.0.1".into(),
        user: None,
        port: Some(sshd.port),
        key: Some(sshd.path("key")),
        known_hosts: Some(sshd.path("known_hosts")),
        sockets: sshd.path("s"),
        folder: None,
        start_files: Vec::new(),
        environment: environment(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_host_keeps_the_contract() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    terminal::check(&Ssh::new(settings(&sshd)), sshd.folder.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_along_to_another_host_keeps_the_contract() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let open = |home: &Path| Ssh::new(settings(&sshd)).forwarding(crate::forwarded(home));
    forwarded::check(open, sshd.folder.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_on_another_host_keep_the_contract() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let open = || {
        Background::new(
            Arc::new(Ssh::new(settings(&sshd))),
            ProcessFolder::Cache,
            sshd.path("records"),
            Arc::new(TestClock::default()),
        )
    };
    processes::check(open, sshd.folder.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_connection_kills_the_command_and_is_told() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let ssh = Ssh::new(settings(&sshd));
    let file = sshd.path("command-pid");
    let line = format!("echo $$ > {}; sleep 100", file.display());
    let cutting = async {
        let pid = tokio::task::block_in_place(|| pid_in(&file));
        let mut master = program("ssh");
        let socket = sshd
            .path("s")
            .read_dir()
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        master.args(["-O", "exit", "-S"]).arg(socket).arg("x");
        assert!(master.output().unwrap().status.success());
        pid
    };
    let (output, pid) = tokio::join!(ssh.run(command(&line)), cutting);
    assert!(
        matches!(output, Err(TerminalError::Lost { .. })),
        "{output:?}"
    );
    wait_until("the command there is gone", || !is_alive(&pid));
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_told_with_the_words_of_ssh() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let refused = SshSettings {
        port: Some(1),
        ..settings(&sshd)
    };
    let error = Ssh::new(refused).run(command("true")).await.unwrap_err();
    assert!(error.to_string().contains("Connection refused"), "{error}");
    let stranger = SshSettings {
        key: Some(sshd.path("host_key")),
        ..settings(&sshd)
    };
    let error = Ssh::new(stranger).run(command("true")).await.unwrap_err();
    assert!(error.to_string().contains("Permission denied"), "{error}");
}

#[tokio::test]
async fn a_shell_may_begin_in_the_home_over_there() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let at_home = SshSettings {
        folder: Some("~".into()),
        ..settings(&sshd)
    };
    let mut elsewhere = command("test \"$PWD\" = \"$HOME\" && echo home");
    elsewhere.cwd = "/a/folder/of/this/machine".into();
    let output = Ssh::new(at_home).run(elsewhere).await.unwrap();
    assert_eq!(output.text, "home\n");
}

#[tokio::test]
async fn files_that_cannot_be_brought_hold_up_no_command_and_are_told_once() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("skills")).unwrap();
    std::fs::write(home.path().join("skills/a"), "a").unwrap();
    // A file where the folder should be.
    std::fs::write(sshd.path(".hermes"), "").unwrap();
    let ssh = Ssh::new(settings(&sshd)).forwarding(crate::forwarded(home.path()));
    for _ in 0..2 {
        let output = ssh.run(command("echo ran")).await.unwrap();
        assert_eq!(output.text, "ran\n");
    }
    let notices = ssh.notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert!(
        notices[0].contains("were not brought along: mkdir: "),
        "{notices:?}"
    );
    assert!(ssh.notices().is_empty());
    ssh.leave().await;
    assert!(ssh.notices().is_empty());
}
