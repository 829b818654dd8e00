//! The unit for systemd.

use super::Unit;

/// What stands in the unit file.
pub(super) fn text(unit: &Unit) -> String {
    let program = std::iter::once(unit.program.display().to_string());
    let words = program.chain(unit.arguments("systemd"));
    let command: Vec<String> = words.map(|word| quoted(&word)).collect();
    let variables = unit.variables().into_iter();
    let variables = variables
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))));
    let watchdog = match unit.watchdog.as_secs() {
        0 => String::new(),
        seconds => format!("WatchdogSec={seconds}\n"),
    };
    let user = match &unit.run_as {
        Some(user) => format!("User={user}\n"),
        None => String::new(),
    };
    let (folder, target) = match &unit.run_as {
        Some(_) => ("~", "multi-user.target"),
        None => ("%h", "default.target"),
    };
    let profile = match &unit.profile {
        Some(profile) => format!(" of the profile {profile}"),
        None => String::new(),
    };
    format!(
        "\
[Unit]
Description=Hermes gateway{profile}
Wants=network-online.target
After=network-online.target
# It is tried again for ever.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
{user}ExecStart={command}
# Reads its settings again.
ExecReload=/bin/kill -HUP $MAINPID
WorkingDirectory={folder}
{variables}Restart=always
RestartSec=5
# 75: it asks to be started again. 78: the settings cannot work, and trying again is no use.
RestartForceExitStatus=75
SuccessExitStatus=75
RestartPreventExitStatus=78
# It ends what it started itself; what is left goes with it.
KillMode=mixed
TimeoutStopSec={stop}
{watchdog}
[Install]
WantedBy={target}
",
        command = command.join(" "),
        variables = variables.collect::<String>(),
        stop = unit.stop_time.as_secs(),
    )
}

/// A word as systemd reads it: nothing in it stands for anything else.
fn quoted(word: &str) -> String {
    let escaped = word
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    format!("\"{escaped}\"")
}
