//! `hermes setup terminal` and `hermes setup tools`, driven as a person would, against real places.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use hermes_testkit::daytona::{DaytonaServer, KEY};
use hermes_testkit::modal::{ModalServer, TOKEN_ID, TOKEN_SECRET};
use hermes_testkit::peers::{Sshd, is_there};
use hermes_testkit::process::{Hermes, Terminal};

use super::{contains, refused, run, stdout};
use crate::setting::bare;

const SOON: Duration = Duration::from_secs(40);

/// Begins the setup and chooses the backend with this number.
fn choose(hermes: &Hermes, backend: &str) -> Terminal {
    let mut terminal = hermes
        .clone()
        .args(["setup", "terminal"])
        .spawn_in_terminal();
    terminal.expect("Where should commands run? (now: ", SOON);
    answer(&mut terminal, "choose", backend);
    terminal
}

/// Answers the next question that has these words.
fn answer(terminal: &mut Terminal, question: &str, answer: &str) {
    terminal.expect(question, SOON);
    terminal.send(&format!("{answer}\n"));
}

fn settings(hermes: &Hermes) -> String {
    fs::read_to_string(hermes.home().join("config.yaml")).unwrap_or_default()
}

#[test]
fn this_machine_is_tried_and_saved() {
    let hermes = bare();
    let mut terminal = choose(&hermes, "1");
    terminal.expect("What may they change?", SOON);
    answer(&mut terminal, "choose", "1");
    terminal.expect("a command ran there (Linux", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    contains(&settings(&hermes), &["backend: local", "sandbox: "]);
    assert_eq!(
        stdout(&hermes, &["config", "get", "terminal.sandbox"]),
        "project\n"
    );
}

#[test]
fn a_host_out_of_reach_is_explained_and_leaving_saves_nothing() {
    let hermes = bare();
    let mut terminal = choose(&hermes, "3");
    answer(&mut terminal, "host", "");
    terminal.expect("this one is needed", SOON);
    answer(&mut terminal, "host", "127.0.0.1");
    answer(&mut terminal, "user", "nobody");
    answer(&mut terminal, "port", "99999");
    terminal.expect("from 1 to 65535", SOON);
    answer(&mut terminal, "port", "9");
    answer(&mut terminal, "private key", "");
    terminal.expect("refused", SOON);
    terminal.expect("log in once by hand", SOON);
    terminal.expect("choose something else", SOON);
    answer(&mut terminal, "choose", "q");
    assert_eq!(terminal.wait(SOON), Some(130));
    assert_eq!(settings(&hermes), "");
}

#[test]
fn ctrl_c_saves_nothing_at_any_question() {
    let hermes = bare();
    let questions: [(&str, &[(&str, &str)]); 4] = [
        ("1", &[]),
        ("2", &[]),
        ("3", &[("host", "somewhere"), ("user", "me")]),
        ("5", &[]),
    ];
    for (backend, answers) in questions {
        let mut terminal = choose(&hermes, backend);
        for (question, text) in answers {
            answer(&mut terminal, question, text);
        }
        let next = match backend {
            "1" => "choose",
            "2" => "\nimage",
            "3" => "\nport",
            _ => "paste Daytona's API key",
        };
        terminal.expect(next, SOON);
        terminal.send("\x03");
        terminal.expect("goes on whenever you like", SOON);
        assert_eq!(terminal.wait(SOON), Some(130), "{backend}");
        assert_eq!(settings(&hermes), "", "{backend}");
    }
}

#[test]
fn another_host_is_reached_and_the_doctor_agrees() {
    if !is_there("sshd") {
        return;
    }
    let sshd = Sshd::start();
    let hermes = bare().env("PATH", path_with_private_ssh(&sshd));
    let mut terminal = choose(&hermes, "3");
    answer(&mut terminal, "host", "127.0.0.1");
    answer(&mut terminal, "user", "");
    answer(&mut terminal, "port", &sshd.port.to_string());
    answer(
        &mut terminal,
        "private key",
        &sshd.path("key").display().to_string(),
    );
    terminal.expect("a command ran there (Linux", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    contains(
        &settings(&hermes),
        &["backend: ssh", &format!("ssh_port: {}", sshd.port)],
    );
    assert_eq!(
        stdout(&hermes, &["config", "get", "terminal.ssh_host"]),
        "127.0.0.1\n"
    );
    let output = run(&hermes, &["doctor"]);
    contains(&output.stdout, &["✓ commands: run over ssh (Linux"]);
    drop(sshd);
    // The way that is still open from before has to go with the host.
    let _ = fs::remove_dir_all(hermes.home().join("ssh"));
    let output = run(&hermes, &["doctor"]);
    contains(
        &output.stdout,
        &[
            "✗ commands: over ssh: ",
            "log in once by hand",
            "hermes setup terminal",
        ],
    );
}

/// A PATH whose `ssh` writes what it learns of hosts into the folder of the test.
pub(crate) fn path_with_private_ssh(sshd: &Sshd) -> String {
    let folder = sshd.path("bin");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("ssh");
    let known = sshd.path("known_hosts");
    let script = format!(
        "#!/bin/sh\nexec /usr/bin/ssh -o UserKnownHostsFile={} \"$@\"\n",
        known.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display())
}

#[test]
fn a_cloud_is_tried_with_the_pasted_key_which_is_kept_out_of_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let server = DaytonaServer::start(folder.path());
    let hermes = bare().env("DAYTONA_API_URL", server.address());
    let mut terminal = choose(&hermes, "5");
    answer(&mut terminal, "paste Daytona's API key", "a-wrong-key");
    answer(&mut terminal, "Daytona's own", "");
    terminal.expect("check DAYTONA_API_KEY", SOON);
    terminal.expect("choose something else", SOON);
    assert_eq!(settings(&hermes), "");
    answer(&mut terminal, "choose", "1");
    answer(&mut terminal, "choose", "5");
    answer(&mut terminal, "paste Daytona's API key", KEY);
    answer(&mut terminal, "Daytona's own", "");
    terminal.expect("a command ran there", SOON);
    assert!(!terminal.output().contains(KEY));
    assert_eq!(terminal.wait(SOON), Some(0));
    contains(&settings(&hermes), &["backend: daytona"]);
    assert!(!settings(&hermes).contains(KEY));
    let variables = fs::read_to_string(hermes.home().join(".env")).unwrap();
    contains(&variables, &["DAYTONA_API_KEY=", KEY]);
}

#[test]
fn modal_is_tried_with_the_pasted_token_and_its_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let server = ModalServer::start(folder.path());
    let hermes = bare().env("MODAL_SERVER_URL", server.address());
    let mut terminal = choose(&hermes, "6");
    answer(&mut terminal, "paste the id of a token", TOKEN_ID);
    answer(&mut terminal, "paste its secret", TOKEN_SECRET);
    answer(&mut terminal, "image", "python:3.13");
    terminal.expect("a command ran there (Linux", SOON);
    assert!(!terminal.output().contains(TOKEN_SECRET));
    assert_eq!(terminal.wait(SOON), Some(0));
    contains(&settings(&hermes), &["backend: modal", "python:3.13"]);
    assert!(!settings(&hermes).contains(TOKEN_SECRET));
    let variables = fs::read_to_string(hermes.home().join(".env")).unwrap();
    contains(&variables, &["MODAL_TOKEN_ID=", TOKEN_ID, TOKEN_SECRET]);
    assert_eq!((server.is_running(), server.snapshots()), (false, 1));
    let output = run(&hermes, &["doctor"]);
    contains(&output.stdout, &["✓ commands: run over modal (Linux"]);
    let images: Vec<String> = server.wanted().into_iter().map(|it| it.image_id).collect();
    assert_eq!(images[..2], ["im-python313", "im-snapshot1"]);
    assert!(!server.is_running());
}

#[test]
fn a_managed_modal_is_refused_with_the_way_out() {
    let hermes = bare();
    fs::create_dir_all(hermes.home()).unwrap();
    let settings = "terminal: {backend: modal, modal_mode: managed}\n";
    fs::write(hermes.home().join("config.yaml"), settings).unwrap();
    let output = run(&hermes, &["doctor"]);
    contains(&output.stdout, &["`managed`", "terminal.modal_mode direct"]);
}

#[test]
fn an_engine_that_is_not_there_is_explained_and_can_be_saved_for_later() {
    let hermes = bare().env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    let mut terminal = choose(&hermes, "2");
    answer(&mut terminal, "image", "");
    terminal.expect("docker info", SOON);
    terminal.expect("save it anyway", SOON);
    answer(&mut terminal, "choose", "3");
    assert_eq!(terminal.wait(SOON), Some(0));
    contains(&settings(&hermes), &["backend: docker", "docker_image: "]);
}

#[test]
fn tools_are_chosen_in_the_list_of_hermes_tools() {
    let hermes = bare();
    let mut terminal = hermes.clone().args(["setup", "tools"]).spawn_in_terminal();
    answer(&mut terminal, "switch which?", "none");
    answer(&mut terminal, "switch which?", "1");
    answer(&mut terminal, "switch which?", "");
    terminal.expect("from the next conversation on", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
    contains(&settings(&hermes), &["platform_toolsets:"]);
}

#[test]
fn with_nobody_to_answer_it_says_what_to_do_instead() {
    let hermes = bare();
    for section in ["terminal", "tools"] {
        refused(&run(&hermes, &["setup", section]), 2, &["nobody is there"]);
    }
    refused(
        &run(&hermes, &["setup", "terminal", "--non-interactive"]),
        2,
        &["hermes config set terminal.backend"],
    );
    assert_eq!(settings(&hermes), "");
}
