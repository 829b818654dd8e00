//! The property list for launchd.

use super::Unit;

/// Seconds between two starts, as launchd wants them.
const THROTTLE: u64 = 30;

pub(super) fn text(unit: &Unit, label: &str) -> String {
    let program = std::iter::once(unit.program.display().to_string());
    let words = program.chain(unit.arguments("launchd"));
    let words = words.map(|word| format!("    <string>{}</string>\n", escaped(&word)));
    let variables = unit.variables().into_iter().map(|(name, value)| {
        format!(
            "    <key>{name}</key>\n    <string>{}</string>\n",
            escaped(&value)
        )
    });
    let log = escaped(&unit.log.display().to_string());
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>{label}</string>
  <key>ProgramArguments</key>
  <array>
{words}  </array>
  <key>EnvironmentVariables</key>
  <dict>
{variables}  </dict>
  <key>WorkingDirectory</key>
  <string>{folder}</string>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <true/>
  <key>ThrottleInterval</key>
  <integer>{THROTTLE}</integer>
  <key>ExitTimeOut</key>
  <integer>{stop}</integer>
  <key>ProcessType</key>
  <string>Background</string>
  <key>StandardOutPath</key>
  <string>{log}</string>
  <key>StandardErrorPath</key>
  <string>{log}</string>
</dict>
</plist>
"#,
        words = words.collect::<String>(),
        variables = variables.collect::<String>(),
        folder = escaped(&unit.user_home.display().to_string()),
        stop = unit.stop_time.as_secs(),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
