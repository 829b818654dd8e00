//! What service managers are given and told.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hermes_testkit::process::Hermes;
use hermes_testkit::server::{Answer, Script};
use rustix::process::Signal;
use serde_json::json;

use super::KEY;
use super::background::signal;
use crate::setting::{Setting, bare};

fn printed(hermes: &Hermes, args: &[&str]) -> String {
    let hermes = hermes.clone().args(["gateway", "install", "--print"]);
    let output = hermes.args(args.iter().copied()).run();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!output.stdout.contains("API_SERVER_KEY"), "no secrets");
    output.stdout
}

#[expect(
    clippy::disallowed_methods,
    reason = "asks the program whose file it is"
)]
fn judge(program: &str, args: &[&str]) -> Option<(bool, String)> {
    let output = Command::new(program).args(args).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    Some((output.status.success(), said))
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn systemd_takes_the_units() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a \"home\" with 100% $HOME");
    std::fs::create_dir_all(&odd).unwrap();
    let hermes = bare().env("HERMES_HOME", &odd);
    for args in [
        &["--manager", "systemd"][..],
        &["--manager", "systemd", "--system", "--run-as", "root"],
    ] {
        let text = printed(&hermes, args);
        for words in [
            "Type=notify",
            "Restart=always",
            "RestartForceExitStatus=75",
            "RestartPreventExitStatus=78",
            "StartLimitIntervalSec=0",
            "KillMode=mixed",
            "WatchdogSec=120",
            "TimeoutStopSec=60",
            "100%% $$HOME",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let file = folder.path().join("hermes-gateway.service");
        std::fs::write(&file, text).unwrap();
        let words: &[&str] = if args.len() > 2 { &[] } else { &["--user"] };
        let words = [&["verify"], words, &[path(&file)]].concat();
        let Some((is_right, said)) = judge("systemd-analyze", &words) else {
            eprintln!("SKIPPED: there is no systemd-analyze");
            return;
        };
        // Other units of the machine may be wrong.
        let of_ours = said.lines().filter(|line| line.contains("hermes-gateway"));
        let of_ours: Vec<_> = of_ours.collect();
        assert!(of_ours.is_empty(), "{of_ours:?}");
        assert!(is_right || !said.is_empty(), "{said}");
    }
}

#[test]
fn launchd_and_termux_can_read_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("a<b>&c 'd'");
    std::fs::create_dir_all(&home).unwrap();
    let hermes = bare().env("HERMES_HOME", &home);
    let text = printed(&hermes, &["--manager", "launchd"]);
    let file = folder.path().join("gateway.plist");
    let (_, plist) = text.split_once('\n').unwrap();
    std::fs::write(&file, plist).unwrap();
    let program =
        "import plistlib,sys,json;print(json.dumps(plistlib.load(open(sys.argv[1],'rb'))))";
    let (is_right, said) = judge("python3", &["-c", program, path(&file)]).unwrap();
    assert!(is_right, "{said}");
    let plist: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(plist["Label"], "ai.hermes.gateway");
    assert_eq!(plist["KeepAlive"], true);
    assert_eq!(plist["EnvironmentVariables"]["HERMES_HOME"], path(&home));
    assert_eq!(plist["ProgramArguments"][1], "gateway");
    let text = printed(&hermes, &["--manager", "termux"]);
    for script in text.split("# /data").skip(1) {
        let (_, script) = script.split_once('\n').unwrap();
        let file = folder.path().join("script");
        std::fs::write(&file, script).unwrap();
        let (is_right, said) = judge("sh", &["-n", path(&file)]).unwrap();
        assert!(is_right, "{said}");
    }
}

#[test]
fn without_a_service_manager_it_says_what_to_do() {
    if Path::new("/run/systemd/system").exists() {
        return;
    }
    let output = bare().args(["gateway", "install"]).run();
    assert_eq!(output.code, Some(2), "{output:?}");
    assert!(output.stderr.contains("hermes gateway start"), "{output:?}");
    let output = bare().args(["gateway", "uninstall"]).run();
    assert_eq!(output.code, Some(2), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_manager_hears_how_it_is_and_starts_it_again() {
    let setting = Setting::new(Script::always(Answer::text("hi"))).await;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("notify");
    let manager = UnixDatagram::bind(&place).unwrap();
    manager
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let hear = |words: &str| {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut bytes = [0; 1024];
        loop {
            let length = manager.recv(&mut bytes).unwrap();
            let heard = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if heard.contains(words) {
                return heard;
            }
            assert!(Instant::now() < deadline, "no {words}");
        }
    };
    let mut running = setting
        .hermes
        .clone()
        .env("API_SERVER_KEY", KEY)
        .env("API_SERVER_PORT", "0")
        .env("NOTIFY_SOCKET", &place)
        .env("WATCHDOG_USEC", "200000")
        .args(["gateway", "run"])
        .spawn();
    running.expect_stdout("gateway: ready", Duration::from_secs(20));
    assert!(hear("READY=1").contains("STATUS=API on"));
    hear("WATCHDOG=1");
    signal(&json!(running.id()), Signal::HUP);
    assert!(hear("RELOADING=1").contains("MONOTONIC_USEC="));
    hear("READY=1");
    signal(&json!(running.id()), Signal::USR1);
    hear("STOPPING=1");
    let output = running.wait(Duration::from_secs(20));
    assert_eq!(output.code, Some(75), "{output:?}");
}

#[test]
fn it_is_installed_and_taken_back_by_the_service_manager() {
    use std::os::unix::fs::PermissionsExt as _;
    // Containers have no systemd: what it would be asked is written down.
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    for name in ["systemctl", "loginctl"] {
        let program = folder.path().join(name);
        let script = format!("#!/bin/sh\necho {name} \"$@\" >> {}\n", path(&asked));
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let programs = format!("{}:/usr/bin:/bin", path(folder.path()));
    let config = folder.path().join("config");
    let hermes = bare().env("PATH", programs).env("XDG_CONFIG_HOME", &config);
    let run = |args: &[&str]| {
        let output = hermes.clone().args(["gateway"]).args(args.iter().copied());
        let output = output.run();
        assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
        output
    };
    run(&["install", "--manager", "systemd"]);
    let unit = config.join("systemd/user/hermes-gateway.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    assert!(text.contains("WantedBy=default.target"), "{text}");
    let status = hermes.clone().args(["gateway", "status"]).run();
    assert!(
        status.stderr.contains("installed as a service"),
        "{status:?}"
    );
    run(&["uninstall"]);
    assert!(!unit.exists());
    let asked = std::fs::read_to_string(asked).unwrap();
    assert_eq!(
        asked.lines().collect::<Vec<_>>(),
        [
            "systemctl --user daemon-reload",
            "systemctl --user enable --now hermes-gateway",
            "loginctl enable-linger",
            "systemctl --user disable --now hermes-gateway",
            "systemctl --user daemon-reload",
        ]
    );
}
