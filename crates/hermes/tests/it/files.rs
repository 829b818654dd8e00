//! The file tools where commands run: on another host and in a container.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Terminal, Tool};
use hermes_exec::{
    Background, Docker, DockerSettings, ProcessFolder, Ssh, SshSettings, TmpfsSizes,
};
use hermes_testkit::TestClock;
use hermes_testkit::contract::files;
use hermes_testkit::peers::{Podman, Sshd, is_there};
use hermes_testkit::server::{Answer, Script};
use hermes_tools::{
    CodePlace, CodeSettings, EditReview, FileLedger, FilePlace, ToolLimits, ToolPorts, WebSettings,
    built_in,
};
use serde_json::json;

use crate::commands::setup_terminal::path_with_private_ssh;
use crate::setting::Setting;

/// The built-in tools over a terminal that is not on this machine.
fn tools(terminal: &Arc<dyn Terminal>, here: &Path) -> Vec<Arc<dyn Tool>> {
    let processes = Background::new(
        Arc::clone(terminal),
        ProcessFolder::Cache,
        here.join("records"),
        Arc::new(TestClock::default()),
    );
    built_in(&ToolPorts {
        terminal: Arc::clone(terminal),
        processes: Arc::new(processes),
        limits: ToolLimits::default(),
        code: CodeSettings::at(CodePlace::Elsewhere),
        home: None,
        secret: Vec::new(),
        private: None,
        protected: Vec::new(),
        settings: Vec::new(),
        edit_review: EditReview::default(),
        commands: Arc::new(hermes_policy::CommandLists::default()),
        fence: hermes_tools::ToolFence::Off,
        file_place: FilePlace::where_commands_run(vec![here.join("results")]),
        files: FileLedger::default(),
        web: WebSettings::new(here.join("web")),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_on_another_host_keep_the_essentials_of_the_contract() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let environment: Vec<(OsString, OsString)> =
        vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())];
    let ssh: Arc<dyn Terminal> = Arc::new(Ssh::new(SshSettings {
        host: "127.0.0.1".into(),
        user: None,
        port: Some(sshd.port),
        key: Some(sshd.path("key")),
        known_hosts: Some(sshd.path("known_hosts")),
        sockets: sshd.path("s"),
        folder: Some(sshd.path("work")),
        start_files: Vec::new(),
        environment,
    }));
    std::fs::create_dir(sshd.path("work")).unwrap();
    let here = tempfile::tempdir().unwrap();
    files::check_essentials(&tools(&ssh, here.path()), &*ssh, &sshd.path("work")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_in_a_container_keep_the_essentials_of_the_contract() {
    let programs = ["podman", "runc", "conmon", "busybox", "bash-static"];
    if !programs.iter().all(|program| is_there(program)) {
        return;
    }
    let podman = Podman::start();
    let docker: Arc<dyn Terminal> = Arc::new(Docker::new(DockerSettings {
        socket: podman.path("socket"),
        image: Podman::IMAGE.into(),
        profile: "files".into(),
        cpus: 1.0,
        memory_mb: 512,
        network: false,
        volumes: Vec::new(),
        environment: vec!["HOME=/root".into()],
        tmpfs: TmpfsSizes::default(),
        persistent: true,
        folder: Some("/tmp".into()),
        start_files: Vec::new(),
    }));
    let here = tempfile::tempdir().unwrap();
    files::check_essentials(&tools(&docker, here.path()), &*docker, Path::new("/tmp")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_commands_are_in_the_same_place_and_nothing_here_is_touched() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let script = Script::new([
        Answer::call(
            "c1",
            "write_file",
            json!({"path": "notes/a.txt", "content": "one\ntwo\n"}),
        ),
        Answer::call("c2", "terminal", json!({"command": "cat notes/a.txt"})),
        Answer::call(
            "c3",
            "patch",
            json!({"path": "~/notes/a.txt", "old_string": "two", "new_string": "three"}),
        ),
        Answer::call("c4", "read_file", json!({"path": "notes/a.txt"})),
        Answer::call("c5", "search_files", json!({"pattern": "thr.e"})),
        Answer::text("done"),
    ]);
    let settings = format!(
        "approvals:\n  mode: manual\ncheckpoints:\n  enabled: true\nterminal:\n  backend: ssh\n  ssh_host: 127.0.0.1\n  \
         ssh_port: {}\n  ssh_key: {}\n",
        sshd.port,
        sshd.path("key").display()
    );
    let setting = Setting::with(script, &settings).await;
    let hermes = setting
        .hermes
        .clone()
        .env("PATH", path_with_private_ssh(&sshd))
        .deadline(Duration::from_secs(60));
    let work = hermes.work_folder();
    std::fs::create_dir(work.join("notes")).unwrap();
    std::fs::write(work.join("notes/AGENTS.md"), "context of this machine").unwrap();
    let output = hermes.args(["chat", "-q", "go"]).run();
    assert_eq!(output.code, Some(0), "{output:?}");
    let there = std::fs::read_to_string(sshd.path("notes/a.txt")).unwrap();
    assert_eq!(there, "one\nthree\n");
    let here: Vec<_> = work.join("notes").read_dir().unwrap().collect();
    assert_eq!(here.len(), 1, "{here:?}");
    let requests = setting.server.requests();
    let conversation = requests.last().unwrap().json["messages"].to_string();
    for words in [
        "`terminal.backend` is `ssh`",
        "created, with its folder",
        "one\\ntwo\\n[exit code 0",
        "-two\\n+three",
        "1|one\\n2|three",
        "notes/a.txt\\n  2: three",
    ] {
        assert!(conversation.contains(words), "{words:?} in {conversation}");
    }
    assert!(!conversation.contains("context of this machine"));
    let checkpoints = setting.run(&["checkpoints", "list", "--all", "--json"]);
    assert_eq!(checkpoints.stdout.trim(), "[]", "{checkpoints:?}");
}
