//! Commands in a container of Apptainer, whose program a script of the test kit stands in for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::Terminal;
use hermes_exec::{Apptainer, ApptainerSettings, Background, ProcessFolder};
use hermes_testkit::TestClock;
use hermes_testkit::contract::{forwarded, processes, terminal};

use crate::command;
use hermes_testkit::peers::{is_there, program};

/// The program, and a folder for what it writes.
struct Host {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = hermes_testkit::apptainer::install(folder.path());
        Self { program, folder }
    }

    fn settings(&self) -> ApptainerSettings {
        let path = format!("{}:/usr/bin:/bin", self.folder.path().display());
        ApptainerSettings {
            image: "docker://python:3.13".into(),
            profile: "test".into(),
            cpus: 1.0,
            memory_mb: 512,
            persistent: true,
            state: self.folder.path().join("state"),
            folder: None,
            environment: vec![
                ("PATH".into(), path.into()),
                ("GREETING".into(), "hi".into()),
            ],
        }
    }

    fn stop(&self) {
        let _ = program(self.program.to_str().unwrap())
            .args(["instance", "stop", "hermes-test"])
            .output();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

fn can_run() -> bool {
    is_there("unshare") && is_there("nsenter")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_keeps_the_contract() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    terminal::check(&Apptainer::new(host.settings()), "/tmp").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_along_to_an_instance_keeps_the_contract() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let open = |home: &Path| Apptainer::new(host.settings()).forwarding(crate::forwarded(home));
    forwarded::check(open, "/tmp").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_in_an_instance_keep_the_contract() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let open = || {
        Background::new(
            Arc::new(Apptainer::new(host.settings())),
            ProcessFolder::Cache,
            host.folder.path().join("records"),
            Arc::new(TestClock::default()),
        )
    };
    processes::check(open, "/tmp").await;
}

#[tokio::test]
async fn an_instance_is_found_again_and_replaced_when_it_is_gone() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let apptainer = Apptainer::new(host.settings());
    let line = "echo ${GREETING-none}; touch ~/mine /tmp/gone; A=1";
    let output = apptainer.run(command(line)).await.unwrap();
    assert_eq!(output.text, "none\n", "nothing of our environment");
    drop(apptainer);
    let apptainer = Apptainer::new(host.settings());
    let look = "ls ~ /tmp; echo ${A-none}";
    let output = apptainer.run(command(look)).await.unwrap();
    assert_eq!(output.text, "/root:\nmine\n\n/tmp:\ngone\n1\n");
    host.stop();
    let error = apptainer.run(command("true")).await.unwrap_err();
    assert!(error.to_string().contains("starts another one"), "{error}");
    let output = apptainer.run(command(look)).await.unwrap();
    assert_eq!(output.text, "/root:\nmine\n\n/tmp:\n1\n");
}

#[tokio::test]
async fn an_instance_that_is_not_kept_leaves_nothing() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let settings = ApptainerSettings {
        persistent: false,
        ..host.settings()
    };
    let state = settings.state.clone();
    let apptainer = Apptainer::new(settings);
    apptainer.run(command("true")).await.unwrap();
    assert!(state.exists());
    drop(apptainer);
    assert!(!state.exists());
    let listed = program(host.program.to_str().unwrap())
        .args(["instance", "list", "--json", "hermes-test"])
        .output();
    assert_eq!(listed.unwrap().stdout, b"{\"instances\": []}\n");
}

#[tokio::test]
async fn where_a_user_may_set_no_limits_it_runs_without() {
    if !can_run() {
        return;
    }
    let host = Host::new();
    let settings = ApptainerSettings {
        image: "cgroup".into(),
        ..host.settings()
    };
    let output = Apptainer::new(settings).run(command("echo up")).await;
    assert_eq!(output.unwrap().text, "up\n");
}

#[tokio::test]
async fn what_cannot_start_is_told_in_the_words_of_the_program() {
    let host = Host::new();
    let settings = ApptainerSettings {
        image: "missing".into(),
        ..host.settings()
    };
    let error = Apptainer::new(settings).run(command("true")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("could not open image missing"), "{error}");
    let settings = ApptainerSettings {
        environment: Vec::new(),
        ..host.settings()
    };
    let error = Apptainer::new(settings).run(command("true")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("neither `apptainer` nor"), "{error}");
}
