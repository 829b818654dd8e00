//! The whole program with a script in it.

use std::time::Duration;

use hermes_testkit::peers::wait_until;
use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use super::{PATH, is_alive};
use crate::setting::Setting;

fn script(code: &str) -> Script {
    let call = Answer::call("c1", "execute_code", json!({ "code": code }));
    Script::default()
        .when("go", [call, Answer::text("done")])
        .by_step()
}

#[tokio::test]
async fn a_pipeline_costs_one_turn_and_sees_no_keys() {
    let code = "import os\nfrom hermes_tools import terminal\n\
                print(sorted(os.environ), [terminal('echo %d' % n) for n in range(3)])";
    let setting = Setting::new(script(code)).await;
    let output = setting
        .hermes
        .clone()
        .env("PATH", PATH)
        .env("OPENROUTER_API_KEY", "sk-or-0123456789")
        .env("OPENAI_API_KEY", "sk-0123456789")
        .args(["-z", "go"])
        .run();
    assert_eq!(output.stdout, "done\n", "{output:?}");
    let requests = setting.server.requests();
    assert_eq!(
        requests.len(),
        2,
        "the question, and what the script printed"
    );
    let last = requests[1].json.to_string();
    assert!(
        last.contains("3 tool calls") && last.contains("'PATH'"),
        "{last}"
    );
    for name in ["OPENROUTER_API_KEY", "OPENAI_API_KEY", "HERMES_RPC"] {
        assert!(!last.contains(name), "{name} in {last}");
    }
}

#[tokio::test]
async fn a_script_dies_with_hermes_and_is_accounted_for_after_a_restart() {
    let code = "import os, time\nfrom hermes_tools import write_file\n\
                write_file('pid', str(os.getpid()))\ntime.sleep(600)";
    let setting = Setting::new(script(code)).await;
    let hermes = setting.hermes.clone().env("PATH", PATH);
    let running = hermes.clone().args(["-z", "go"]).spawn();
    let file = setting.hermes.work_folder().join("pid");
    let pid = || std::fs::read_to_string(&file).unwrap_or_default();
    wait_until("the script has called a tool", || !pid().is_empty());
    running.kill_9();
    wait_until("the script is gone", || !is_alive(pid().trim()));
    let recovered = hermes
        .args(["sessions", "recover"])
        .deadline(Duration::from_secs(60))
        .run();
    assert_eq!(recovered.code, Some(0), "{recovered:?}");
    let requests = setting.server.requests();
    let last = requests.last().unwrap().json.to_string();
    assert!(last.contains("outcome_unknown"), "{last}");
    let results = last.matches("\"tool_call_id\"").count();
    assert_eq!(
        results, 1,
        "one result for the script, none for what it called: {last}"
    );
}
