//! Commands in a container, over podman's real engine.

use std::path::Path;
use std::sync::Arc;

use hermes_core::Terminal;
use hermes_exec::{Background, Docker, DockerSettings, ProcessFolder, TmpfsSizes};
use hermes_testkit::TestClock;
use hermes_testkit::contract::{forwarded, processes, terminal};
use hermes_testkit::peers::{Podman, is_there};

use crate::command;

fn settings(podman: &Podman) -> DockerSettings {
    DockerSettings {
        socket: podman.path("socket"),
        image: Podman::IMAGE.into(),
        profile: "test".into(),
        cpus: 1.0,
        memory_mb: 512,
        network: false,
        volumes: Vec::new(),
        environment: vec!["HOME=/root".into(), "GREETING=hello".into()],
        tmpfs: TmpfsSizes {
            run: "8m".into(),
            ..TmpfsSizes::default()
        },
        persistent: true,
        folder: None,
        start_files: Vec::new(),
    }
}

fn can_run() -> bool {
    ["podman", "runc", "conmon", "busybox", "bash-static"]
        .iter()
        .all(|program| is_there(program))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_keeps_the_contract() {
    if !can_run() {
        return;
    }
    let podman = Podman::start();
    terminal::check(&Docker::new(settings(&podman)), "/tmp").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_along_to_a_container_keeps_the_contract() {
    if !can_run() {
        return;
    }
    let podman = Podman::start();
    let open = |home: &Path| Docker::new(settings(&podman)).forwarding(crate::forwarded(home));
    forwarded::check(open, "/tmp").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_in_a_container_keep_the_contract() {
    if !can_run() {
        return;
    }
    let podman = Podman::start();
    let open = || {
        Background::new(
            Arc::new(Docker::new(settings(&podman))),
            ProcessFolder::Cache,
            podman.path("records"),
            Arc::new(TestClock::default()),
        )
    };
    processes::check(open, "/tmp").await;
}

#[tokio::test]
async fn a_container_is_fenced_in_and_found_again() {
    if !can_run() {
        return;
    }
    let podman = Podman::start();
    let docker = Docker::new(settings(&podman));
    let line = "echo $GREETING; grep -E 'CapEff|NoNewPrivs' /proc/self/status; \
                df -m /run | tail -n 1 | tr -s ' ' | cut -d ' ' -f 2; ls /sys/class/net; touch /root/mine";
    let output = docker.run(command(line)).await.unwrap();
    for words in [
        "hello\n",
        "NoNewPrivs:\t1",
        "CapEff:\t00000000000000cb",
        "\n8\n",
        "\nlo\n",
    ] {
        assert!(output.text.contains(words), "{words:?} in {}", output.text);
    }
    assert!(!output.text.contains("eth0"), "{}", output.text);
    drop(docker);
    let docker = Docker::new(settings(&podman));
    let output = docker.run(command("ls /root")).await.unwrap();
    assert_eq!(output.text, "mine\n");
    // Another takes the place of one that was removed, and says what that means.
    docker.run(command("A=1")).await.unwrap();
    podman.remove_all();
    let output = docker.run(command("echo ${A-none}")).await.unwrap();
    assert!(
        output.text.contains("was lost") && output.text.ends_with("none\n"),
        "{output:?}"
    );
}

#[tokio::test]
async fn what_the_engine_refuses_is_told_in_its_words() {
    if !can_run() {
        return;
    }
    let podman = Podman::start();
    let nobody = DockerSettings {
        socket: podman.path("nobody"),
        ..settings(&podman)
    };
    let error = Docker::new(nobody).run(command("true")).await.unwrap_err();
    assert!(
        error.to_string().contains("is the engine running"),
        "{error}"
    );
    let unknown = DockerSettings {
        image: "localhost/no/such:image".into(),
        ..settings(&podman)
    };
    let error = Docker::new(unknown).run(command("true")).await.unwrap_err();
    assert!(error.to_string().contains("the engine says"), "{error}");
}
