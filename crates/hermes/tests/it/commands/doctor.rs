//! `hermes doctor`.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use hermes_testkit::process::Output;
use hermes_testkit::server::{Answer, Script};
use serde_json::Value;

use super::{KEY, contains, run, talked};
use crate::setting::{Setting, bare, write_config};

const SOON: Duration = Duration::from_secs(30);

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn broken(output: &Output, phrases: &[&str]) {
    assert_eq!(output.code, Some(1), "{output:?}");
    contains(&output.stdout, &["✗", "fix: "]);
    contains(&output.stdout, phrases);
}

/// Closes a home as one should be.
fn make_private(home: &Path) {
    set_mode(home, 0o700);
    set_mode(&home.join("config.yaml"), 0o600);
}

#[tokio::test]
async fn a_healthy_home_passes_and_the_key_is_not_shown() {
    let setting = Setting::new(Script::always(Answer::text("ok")).model("test-model")).await;
    make_private(&setting.hermes.home());
    setting.run(&["-z", "hi"]);
    let output = run(&setting.hermes, &["doctor"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(
        &output.stdout,
        &[
            "✓ home",
            "✓ settings",
            "✓ database: sound; 1 session",
            "✓ disk",
            "✓ bash",
            "✓ locale",
            "✓ clock",
            "✓ sandbox: project, by ",
            "✓ commands: run on this machine, ",
            "✓ python3: 3.",
            "✓ checkpoints: off; none kept",
            "✓ terminal: standard output is no terminal",
            "✓ turns",
            "✓ model: custom:test-model",
            "✓ key",
            "✓ provider",
        ],
    );
    assert!(
        !output.stdout.contains('✗') && !output.stdout.contains(KEY),
        "{}",
        output.stdout
    );
    let checks: Value =
        serde_json::from_str(&run(&setting.hermes, &["doctor", "--json"]).stdout).unwrap();
    assert!(
        checks
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["state"] == "ok"),
        "{checks:#}"
    );
    for name in ["commands", "python3", "checkpoints", "terminal", "locale"] {
        let is_it = |check: &Value| check["check"] == name;
        assert!(checks.as_array().unwrap().iter().any(is_it), "{name}");
    }
}

#[test]
fn a_terminal_is_told_by_its_name_and_size() {
    let hermes = bare().env("TERM", "xterm-256color");
    let doctor = hermes.clone().args(["doctor", "--offline"]);
    let mut terminal = doctor.spawn_in_terminal();
    terminal.expect("terminal: xterm-256color, colour, ", SOON);
    let mut dumb = doctor.env("TERM", "dumb").spawn_in_terminal();
    dumb.expect("! terminal: TERM is `dumb`", SOON);
    dumb.expect("fix: ", SOON);
}

#[tokio::test]
async fn checkpoints_without_git_are_broken_only_when_they_are_on() {
    let hermes = bare().env("PATH", "/nowhere");
    write_config(
        &hermes,
        "http://127.0.0.1:9/v1",
        "checkpoints:\n  enabled: true\n",
    );
    make_private(&hermes.home());
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &["✗ checkpoints: are on, but", "checkpoints.enabled false"],
    );
    write_config(&hermes, "http://127.0.0.1:9/v1", "");
    contains(
        &run(&hermes, &["doctor", "--offline"]).stdout,
        &["✓ checkpoints: off; they would need git"],
    );
}

#[test]
fn a_backend_that_cannot_work_is_told_with_what_to_do() {
    let hermes = bare().env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    write_config(
        &hermes,
        "http://127.0.0.1:9/v1",
        "terminal:\n  backend: docker\n",
    );
    make_private(&hermes.home());
    broken(
        &run(&hermes, &["doctor"]),
        &[
            "✗ commands: over docker: ",
            "docker info",
            "hermes setup terminal",
        ],
    );
    contains(
        &run(&hermes, &["doctor", "--offline"]).stdout,
        &["✓ commands: run over docker; not tried, as asked"],
    );
    write_config(
        &hermes,
        "http://127.0.0.1:9/v1",
        "terminal:\n  backend: ssh\n",
    );
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &["✗ commands: ", "names no host", "terminal.ssh_host"],
    );
}

#[test]
fn a_host_that_cannot_be_reached_is_told_with_the_login_to_try() {
    let hermes = bare();
    let ssh = "terminal: {backend: ssh, ssh_host: 127.0.0.1, ssh_port: 9, ssh_user: me}\n";
    write_config(&hermes, "http://127.0.0.1:9/v1", ssh);
    make_private(&hermes.home());
    let output = run(&hermes, &["doctor"]);
    let login = "`ssh -p 9 me@127.0.0.1 true` must work";
    broken(&output, &["✗ commands: over ssh: ", login]);
    assert!(!output.stdout.contains("lost the command"), "{output:?}");
}

#[test]
fn a_fence_that_cannot_be_put_up_is_told_with_what_is_missing() {
    let hermes = bare();
    let programs = hermes.work_folder().join("programs");
    fs::create_dir(&programs).unwrap();
    let hermes = hermes.env("PATH", &programs);
    write_config(
        &hermes,
        "http://127.0.0.1:9/v1",
        "terminal:\n  sandbox: offline\n",
    );
    make_private(&hermes.home());
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &[
            "✗ sandbox: a closed network needs bubblewrap: `bwrap` is not on the PATH",
            "fix: install the package `bubblewrap`",
            "hermes config set terminal.sandbox off",
        ],
    );
    let bwrap = programs.join("bwrap");
    fs::write(&bwrap, "#!/bin/sh\necho no namespaces >&2\nexit 1\n").unwrap();
    set_mode(&bwrap, 0o755);
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &[
            "✗ sandbox: a closed network needs bubblewrap: `bwrap` does not work here: no namespaces",
        ],
    );
}

#[test]
fn a_place_that_a_variable_chooses_is_mended_there() {
    let hermes = bare().env("TERMINAL_ENV", "nowhere");
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &[
            "✗ commands: `terminal.backend` is `nowhere`",
            "fix: `unset TERMINAL_ENV`",
        ],
    );
}

#[tokio::test]
async fn permissions_are_told_and_repaired_only_when_asked() {
    let setting = talked(&["hi"]).await;
    let home = setting.hermes.home();
    make_private(&home);
    set_mode(&home, 0o755);
    set_mode(&home.join("config.yaml"), 0o644);
    broken(
        &run(&setting.hermes, &["doctor", "--offline"]),
        &["0755", "0644", "doctor --fix", "chmod 600"],
    );
    assert_eq!(mode(&home), 0o755, "nothing is changed unasked");
    let output = run(&setting.hermes, &["doctor", "--offline", "--fix"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(&output.stdout, &["changed", "from 0755 to 0700"]);
    assert_eq!(
        (mode(&home), mode(&home.join("config.yaml"))),
        (0o700, 0o600)
    );
}

#[test]
fn a_missing_home_is_made_only_when_asked() {
    let hermes = bare();
    let home = hermes.work_folder().join("new-home");
    let hermes = hermes.env("HERMES_HOME", &home);
    contains(
        &run(&hermes, &["doctor", "--offline"]).stdout,
        &[
            "! home: ",
            "does not exist yet",
            "doctor --fix",
            "✓ settings: no `",
            "config.yaml` yet; built-in settings are used",
            "hermes config set KEY VALUE",
        ],
    );
    assert!(!home.exists());
    contains(
        &run(&hermes, &["doctor", "--offline", "--fix"]).stdout,
        &["✓ home: made"],
    );
    assert!(home.join("logs").is_dir());
}

#[test]
fn broken_settings_do_not_keep_it_from_looking_at_the_rest() {
    let hermes = bare();
    make_home_with(&hermes.home(), "agent:\n  max_turns: [1\nmodel: x\n");
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &[
            "✗ settings",
            "line 3, column",
            "hermes config edit",
            "✓ disk",
            "✓ bash",
            "! model: not looked at",
        ],
    );
    fs::write(hermes.home().join("config.yaml"), "agent:\n  max_trns: 5\n").unwrap();
    let output = run(&hermes, &["doctor", "--offline"]);
    contains(
        &output.stdout,
        &[
            "! settings",
            "config.yaml:2:3",
            "did you mean `agent.max_turns`",
        ],
    );
    fs::remove_file(hermes.home().join("config.yaml")).unwrap();
    fs::create_dir(hermes.home().join("config.yaml")).unwrap();
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &["✗ settings", "directory"],
    );
}

fn make_home_with(home: &Path, config: &str) {
    fs::write(home.join("config.yaml"), config).unwrap();
    make_private(home);
}

#[test]
fn odd_variables_and_a_missing_model_are_told() {
    let hermes = bare();
    fs::write(hermes.home().join(".env"), "nonsense\n").unwrap();
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &[
            "! .env",
            ".env:1",
            "✗ model: no model provider is configured",
        ],
    );
}

#[tokio::test]
async fn a_damaged_database_is_found() {
    let hermes = bare();
    write_config(&hermes, "http://127.0.0.1:9/v1", "");
    make_private(&hermes.home());
    fs::write(
        hermes.home().join("hermes.db"),
        "no database at all, but long enough".repeat(100),
    )
    .unwrap();
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &["✗ database", "hermes.db"],
    );
}

#[tokio::test]
async fn a_provider_out_of_reach_is_told_unless_offline() {
    let hermes = bare();
    write_config(&hermes, "http://127.0.0.1:9/v1", "");
    make_private(&hermes.home());
    broken(
        &run(&hermes, &["doctor"]),
        &["✗ provider", "127.0.0.1:9", "model.base_url"],
    );
    assert_eq!(run(&hermes, &["doctor", "--offline"]).code, Some(0));
}

#[tokio::test]
async fn a_model_that_is_not_listed_is_doubtful() {
    let setting = Setting::new(Script::always(Answer::text("ok")).model("another")).await;
    make_private(&setting.hermes.home());
    let output = run(&setting.hermes, &["doctor"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    contains(
        &output.stdout,
        &[
            "! provider",
            "does not list `test-model`",
            "hermes model list",
        ],
    );
}

#[test]
fn programs_that_are_missing_are_told() {
    let hermes = bare().env("PATH", "/nowhere").env("LANG", "C");
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &["✗ bash", "! git", "! locale"],
    );
}

#[tokio::test]
async fn a_refused_key_is_told_with_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).unwrap();
        let refusal =
            b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        stream.write_all(refusal).unwrap();
    });
    let hermes = bare();
    write_config(&hermes, &url, "");
    make_private(&hermes.home());
    broken(
        &run(&hermes, &["doctor"]),
        &["✗ provider", "refuses the key", "401", "check the key"],
    );
    server.join().unwrap();
}

#[test]
fn a_home_that_cannot_be_made_is_told() {
    let hermes = bare().env("HERMES_HOME", "/proc/no-home");
    broken(
        &run(&hermes, &["doctor", "--offline", "--fix"]),
        &["✗ home", "cannot create", "HERMES_HOME"],
    );
    let file = hermes.work_folder().join("file");
    fs::write(&file, "").unwrap();
    let hermes = hermes.env("HERMES_HOME", &file);
    broken(
        &run(&hermes, &["doctor", "--offline"]),
        &["✗ home", "is not a directory"],
    );
}

#[tokio::test]
async fn mcp_servers_and_fallbacks_are_asked_too() {
    let setting = Setting::new(Script::always(Answer::text("ok")).model("test-model")).await;
    let closed = "http://127.0.0.1:1/v1";
    let more = format!(
        "fallback_providers:\n  - {{provider: custom, model: other, base_url: '{closed}', api_key: none}}\n\
         mcp_servers:\n  gone:\n    command: /nonexistent/server\n  off:\n    command: x\n    enabled: false\n"
    );
    write_config(&setting.hermes, &setting.server.url(), &more);
    make_private(&setting.hermes.home());
    let output = run(&setting.hermes, &["doctor"]);
    broken(
        &output,
        &[
            "✓ provider",
            "✗ provider: ",
            closed,
            "✗ MCP server: `gone` does not work: there is no program `/nonexistent/server`",
            "fix: install it, or write its full path",
            "`hermes mcp doctor gone`",
            "✓ MCP server: `off` is switched off",
        ],
    );
    let offline = run(&setting.hermes, &["doctor", "--offline"]);
    assert!(!offline.stdout.contains("MCP server"), "{offline:?}");
}
