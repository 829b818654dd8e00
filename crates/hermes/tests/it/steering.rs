//! What runs for a model does not steer Hermes, however it is started.

use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use crate::setting::Setting;

const BINARY: &str = env!("CARGO_BIN_EXE_hermes");
const REFUSED: &str = "this was started from inside Hermes";

/// Without a fence, which would keep all of this from the home: who started whom has to be enough.
const UNFENCED: &str = "approvals:\n  mode: manual\nterminal:\n  sandbox: 'off'\n";

/// Has the terminal tool run a line, whatever it is, and returns what the model is told of it.
async fn run_inside(line: &str) -> (Setting, String) {
    let call = Answer::call("c1", "terminal", json!({ "command": line }));
    let setting = Setting::with(Script::new([call, Answer::text("done")]), UNFENCED).await;
    let output = setting.run(&["--yolo", "-z", "go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let requests = setting.server.requests();
    assert_eq!(
        requests.len(),
        2,
        "nothing below asks a model: {requests:?}"
    );
    let told = requests[1].json.to_string();
    (setting, told)
}

#[tokio::test]
async fn no_command_that_changes_or_drives_hermes_works_below_it() {
    for line in [
        format!("{BINARY} config set approvals.mode off"),
        format!("{BINARY} approvals"),
        format!("{BINARY} approvals allow 222222"),
        format!("{BINARY} mcp add x --url http://127.0.0.1:1/"),
        format!("{BINARY} -z hi"),
        format!("{BINARY} --yolo chat -q hi"),
        format!("sh -c 'setsid {BINARY} config set approvals.mode off'"),
        format!("sh -c 'sh -c \"{BINARY} config set approvals.mode off\"; true'"),
        format!("cp {BINARY} ./other && ./other config set approvals.mode off"),
        format!("env -i HERMES_HOME=../home {BINARY} config set approvals.mode off"),
        // Whoever cuts itself loose is adopted.
        format!(
            "(setsid sh -c 'sleep 0.3; {BINARY} config set approvals.mode off' >out 2>&1 &); \
             until grep -q . out; do sleep 0.1; done; sleep 0.1; cat out"
        ),
    ] {
        let (setting, told) = run_inside(&line).await;
        assert!(told.contains(REFUSED), "{line}: {told}");
        let config = std::fs::read_to_string(setting.hermes.home().join("config.yaml")).unwrap();
        assert!(config.contains("mode: manual"), "{line}: {config}");
        assert!(!config.contains("127.0.0.1:1/"), "{line}: {config}");
    }
}

#[tokio::test]
async fn looking_is_allowed_below_hermes() {
    for (line, expected) in [
        (format!("{BINARY} version"), "hermes "),
        (format!("{BINARY} config get approvals.mode"), "manual"),
    ] {
        let (_, told) = run_inside(&line).await;
        assert!(
            told.contains(expected) && !told.contains(REFUSED),
            "{line}: {told}"
        );
    }
}

#[tokio::test]
async fn a_server_below_hermes_takes_no_answers() {
    let initialize = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        },
    });
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let respond = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {
            "name": "permissions_respond",
            "arguments": {"id": "x", "code": "222222", "decision": "allow-once"},
        },
    });
    let line = format!(
        "(echo '{initialize}'; echo '{initialized}'; echo '{respond}'; sleep 1) | {BINARY} mcp serve"
    );
    let (_, told) = run_inside(&line).await;
    assert!(
        told.contains("this server was started from inside Hermes"),
        "{told}"
    );
}
