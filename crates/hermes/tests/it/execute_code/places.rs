//! Scripts on another host and in a container: the same, through files.

use std::path::Path;

use hermes_core::{Event, ResultStatus};
use hermes_exec::{Docker, DockerSettings, Ssh, SshSettings, TmpfsSizes};
use hermes_testkit::peers::{Podman, Sshd, is_there, wait_until};

use super::{PATH, Stage, environment, is_alive};

fn ssh(sshd: &Sshd) -> Ssh {
    Ssh::new(SshSettings {
        host: "127.0.0.1".into(),
        user: None,
        port: Some(sshd.port),
        key: Some(sshd.path("key")),
        known_hosts: Some(sshd.path("known_hosts")),
        sockets: sshd.path("s"),
        folder: None,
        start_files: Vec::new(),
        environment: environment(PATH),
    })
}

/// What a script does there as well as here.
const SCRIPT: &str = "\
from concurrent.futures import ThreadPoolExecutor
from hermes_tools import read_file, terminal, write_file, ToolError
write_file('here.txt', 'é\\n' * 3)
print(terminal('cd /; echo \"$((6 * 7))\"').strip())
try:
    terminal('rm -rf /')
except ToolError as error:
    print(error)
with ThreadPoolExecutor(2) as pool:
    print([len(text) for text in pool.map(read_file, ['here.txt'] * 2)])
print(terminal('pwd').strip())
";

fn check(text: &str) {
    for words in [
        "42\nRefused: ",
        "Nobody can allow this",
        "[6, 6]\n/\n[exit code 0; 6 tool calls",
    ] {
        assert!(text.contains(words), "{words:?} in {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_on_another_host_calls_tools_through_files() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let stage = Stage::elsewhere(ssh(&sshd));
    check(&stage.prints(SCRIPT).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_on_another_host_is_killed_there_and_leaves_nothing_when_it_ends() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let stage = Stage::elsewhere(ssh(&sshd));
    let folder = "import hermes_tools\nprint(hermes_tools._way_back['folder'])";
    let text = stage.prints(folder).await;
    let folder = Path::new(text.lines().next().unwrap());
    assert!(folder.starts_with("/tmp") && !folder.exists(), "{text}");
    let code = "import os, time\nopen('pid', 'w').write(str(os.getpid()))\n\
                print('up', flush=True)\ntime.sleep(600)";
    let is_up = |event: &Event| matches!(event, Event::CallProgress { text, .. } if text.lines().any(|line| line == "up"));
    let ended = stage.run_until(code, is_up).await;
    assert_eq!(ended.status, ResultStatus::OutcomeUnknown, "{ended:?}");
    let pid = stage.read("pid");
    wait_until("the script there is gone", || !is_alive(&pid));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_in_a_container_calls_tools_through_files() {
    let programs = [
        "podman",
        "runc",
        "conmon",
        "busybox",
        "bash-static",
        "python3",
    ];
    if !programs.iter().all(|program| is_there(program)) {
        return;
    }
    let podman = Podman::start();
    let settings = DockerSettings {
        socket: podman.path("socket"),
        image: Podman::IMAGE.into(),
        profile: "code".into(),
        cpus: 1.0,
        memory_mb: 512,
        network: false,
        volumes: Vec::new(),
        environment: vec!["HOME=/root".into()],
        tmpfs: TmpfsSizes::default(),
        persistent: true,
        folder: Some("/tmp".into()),
        start_files: Vec::new(),
    };
    let stage = Stage::elsewhere(Docker::new(settings));
    check(&stage.prints(SCRIPT).await);
    let ended = stage.run("import os; os.kill(os.getpid(), 9)").await;
    assert_eq!(ended.status, ResultStatus::Failed, "{ended:?}");
    assert!(ended.text.contains("exit code 137"), "{ended:?}");
}
