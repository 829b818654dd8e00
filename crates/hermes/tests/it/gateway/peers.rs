//! The programs that people use, against the API: the official clients of OpenAI, `llm`, and what Open WebUI sends.

use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_testkit::server::{Answer, Script};
use serde_json::json;

use super::{Gateway, KEY, scripted};
use crate::setting::Setting;

/// A model that looks around when it is told to look.
fn script() -> Script {
    Script::default()
        .when(
            "look",
            [
                Answer::text("I will look.").also_call(
                    "c1",
                    "search_files",
                    json!({"pattern": "x"}),
                ),
                Answer::text("It is fine."),
            ],
        )
        .turn([Answer::text("hello there")])
        .by_step()
}

/// The folder of a peer; the test is skipped loudly without it, and fails where peers are required.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test finds its peers, and a skipped one must be heard"
)]
pub(super) fn peer(name: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("HERMES_TEST_PEERS")
        .map(PathBuf::from)
        .or_else(|| {
            let home = PathBuf::from(std::env::var_os("HOME")?);
            let cache =
                std::env::var_os("XDG_CACHE_HOME").map_or(home.join(".cache"), PathBuf::from);
            Some(cache.join("hermes-test-peers"))
        });
    let folder = cache.map(|cache| cache.join(name));
    let folder = folder.filter(|folder| folder.join("installed").exists());
    if folder.is_none() {
        let words = format!(
            "SKIPPED: the peer `{name}` is not installed; `scripts/peers {name}` installs it"
        );
        assert!(
            std::env::var_os("HERMES_TEST_PEERS_REQUIRED").is_none(),
            "{words}"
        );
        eprintln!("{words}");
    }
    folder
}

pub(super) fn script_file(name: &str) -> String {
    format!(
        "{}/tests/it/gateway/peers/{name}",
        env!("CARGO_MANIFEST_DIR")
    )
}

/// Runs a program to its end, and returns what it printed.
#[expect(clippy::disallowed_methods, reason = "a test runs a peer")]
pub(super) fn run(program: impl AsRef<Path>, args: &[&str], env: &[(&str, &str)]) -> String {
    let output = Command::new(program.as_ref())
        .args(args)
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{complained}");
    printed
}

fn url(gateway: &Gateway) -> String {
    format!("http://{}", gateway.client.authority)
}

#[tokio::test]
async fn the_official_client_for_python_is_served() {
    let Some(peer) = peer("http-python") else {
        return;
    };
    let (_setting, gateway) = scripted(script()).await;
    let script = script_file("openai_client.py");
    let printed = run(
        peer.join("bin/python"),
        &[&script, &url(&gateway), KEY],
        &[],
    );
    let expected = "\
models ['hermes-agent']
chat hello there stop 15
session True
stream 'I will look.\\n\\nIt is fine.' 30
helper hello there
response hello there completed
items ['message', 'function_call', 'function_call_output', 'message']
kept I will look.It is fine.
events response.created response.completed True
response helper hello there
gone response_not_found
refused messages
stranger invalid_api_key
";
    assert_eq!(printed, expected);
}

#[tokio::test]
async fn the_official_client_for_node_is_served() {
    let Some(peer) = peer("http-node") else {
        return;
    };
    let (_setting, gateway) = scripted(script()).await;
    let script = script_file("openai_client.mjs");
    let folder = peer.to_string_lossy().into_owned();
    let printed = run(
        "node",
        &[&script, &url(&gateway), KEY],
        &[("PEER", &folder)],
    );
    let expected = "\
models hermes-agent
chat hello there true
stream \"I will look.\\n\\nIt is fine.\"
helper hello there
response hello there completed
events response.created response.completed
response helper hello there
refused 400 messages
";
    assert_eq!(printed, expected);
}

/// A model that fails after it had a tool do something.
fn failing() -> Script {
    let look = Answer::call("c1", "search_files", json!({"pattern": "x"}));
    Script::default()
        .when("look", [look, Answer::status(401, "no")])
        .by_step()
}

const REFUSED: &str = "chat 502 agent_incomplete\nresponse 502 agent_incomplete\n";

#[tokio::test]
async fn the_official_client_for_python_runs_a_failed_turn_once() {
    let Some(peer) = peer("http-python") else {
        return;
    };
    let (setting, gateway) = scripted(failing()).await;
    let script = script_file("openai_retries.py");
    let args = [script.as_str(), &url(&gateway), KEY];
    assert_eq!(run(peer.join("bin/python"), &args, &[]), REFUSED);
    assert_eq!(setting.server.requests().len(), 4);
}

#[tokio::test]
async fn the_official_client_for_node_runs_a_failed_turn_once() {
    let Some(peer) = peer("http-node") else {
        return;
    };
    let (setting, gateway) = scripted(failing()).await;
    let script = script_file("openai_retries.mjs");
    let folder = peer.to_string_lossy().into_owned();
    let args = [script.as_str(), &url(&gateway), KEY];
    assert_eq!(run("node", &args, &[("PEER", &folder)]), REFUSED);
    assert_eq!(setting.server.requests().len(), 4);
}

#[tokio::test]
async fn llm_is_served() {
    let Some(peer) = peer("http-python") else {
        return;
    };
    let (setting, gateway) = scripted(script()).await;
    let home = setting.hermes.work_folder().join("llm");
    std::fs::create_dir(&home).unwrap();
    let models = format!(
        "- model_id: hermes\n  model_name: hermes-agent\n  api_base: {}/v1\n  api_key_name: hermes\n",
        url(&gateway)
    );
    std::fs::write(home.join("extra-openai-models.yaml"), models).unwrap();
    std::fs::write(home.join("keys.json"), json!({"hermes": KEY}).to_string()).unwrap();
    let home = home.to_string_lossy().into_owned();
    let llm = |args: &[&str]| run(peer.join("bin/llm"), args, &[("LLM_USER_PATH", &home)]);
    assert_eq!(
        llm(&["-m", "hermes", "-s", "be kind", "hello"]).trim(),
        "hello there"
    );
    assert_eq!(
        llm(&["-m", "hermes", "--no-stream", "hello"]).trim(),
        "hello there"
    );
    // It sends all that was said: one conversation here as well.
    assert_eq!(llm(&["-c", "look"]).trim(), "I will look.\n\nIt is fine.");
    let listed = setting.run(&["sessions", "list", "--json"]);
    let sessions: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(sessions.len(), 2, "{listed:?}");
}

/// What Open WebUI sends, as its sources have it: the list of models, streams with its own fields, titles and tags as
/// requests beside them.
#[tokio::test]
async fn open_webui_is_served() {
    let (_setting, gateway) = open_webui_setting().await;
    let client = &gateway.client;
    assert_eq!(client.get("/v1/models").json()["object"], "list");
    let chat = json!({
        "stream": true, "model": "hermes-agent", "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "User Context:\n\n"},
            {"role": "user", "content": "look"},
        ],
        "temperature": 0.8, "max_tokens": 128, "user": {"name": "A", "id": "1", "email": "a@b", "role": "admin"},
        "metadata": {"chat_id": "c"}, "tool_ids": [], "files": [], "features": {"web_search": false}, "variables": {},
    });
    let headers = [("x-openwebui-user-name", "A"), ("x-openwebui-chat-id", "c")];
    let answer = client.chat_with(&headers, &chat);
    assert_eq!(
        answer.content(),
        "I will look.\n\nIt is fine.",
        "{answer:?}"
    );
    let title = json!({
        "model": "hermes-agent", "stream": false, "max_completion_tokens": 1000,
        "messages": [{"role": "user", "content": "### Task:\nGenerate a concise title\n### Chat History:\nUSER: hi"}],
        "metadata": {"task": "title_generation", "chat_id": "c"},
    });
    assert_eq!(
        client.chat(&title).json()["choices"][0]["message"]["content"],
        "hello there"
    );
    let picture = json!({"model": "hermes-agent", "stream": true, "messages": [{"role": "user", "content": [
        {"type": "text", "text": "hello"},
        {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{}", hermes_testkit::PIXEL_BASE64)}},
    ]}]});
    assert_eq!(client.chat(&picture).content(), "hello there");
}

async fn open_webui_setting() -> (Setting, Gateway) {
    scripted(script()).await
}
