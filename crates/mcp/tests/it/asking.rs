//! What servers ask of us, in both eras and over both transports, and what they send beside text.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    Media, MediaSource, Part, PendingElicitation, Person, Response, ToolContext, ToolError, Wanted,
};
use hermes_mcp::Models;
use hermes_testkit::mcp::{Era, FaultyMcp, Options, Settings, StdioMcp};
use hermes_testkit::{PIXEL_BASE64, ScriptedModel, Step};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::client::{Client, context, eventually};
use crate::stdio::section_with;

const ELICIT: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";

fn server(era: Era) -> FaultyMcp {
    let settings = Settings {
        era,
        has_asking_tools: true,
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    FaultyMcp::start_with(&options).unwrap()
}

/// A client, and what keeps its server alive.
struct Peer {
    client: Client,
    _server: Box<dyn std::any::Any>,
}

/// A client of each kind of server there is.
async fn peers(settings: Value, models: Option<&Models>) -> Vec<(&'static str, Peer)> {
    let mut peers = Vec::new();
    for (name, era) in [("http, legacy", Era::Legacy), ("http, modern", Era::Modern)] {
        let server = server(era);
        let section = merged(json!({ "url": server.url() }), &settings);
        peers.push((name, peer(section, models, Box::new(server)).await));
    }
    for (name, era) in [("stdio, legacy", "legacy"), ("stdio, modern", "modern")] {
        let server = StdioMcp::new();
        let traits = json!({ "era": era, "has_asking_tools": true });
        let section = merged(section_with(&server, &traits), &settings);
        peers.push((name, peer(section, models, Box::new(server)).await));
    }
    peers
}

async fn peer(section: Value, models: Option<&Models>, server: Box<dyn std::any::Any>) -> Peer {
    let client = Client::with_model(&[("test", &section)], models.cloned());
    client.until_ready().await;
    Peer {
        client,
        _server: server,
    }
}

fn merged(mut section: Value, more: &Value) -> Value {
    let more = more.as_object().unwrap().clone();
    section.as_object_mut().unwrap().extend(more);
    section
}

/// A call behind which a person sits.
fn attended() -> (ToolContext, mpsc::Receiver<PendingElicitation>) {
    let (person, elicitations) = Person::reachable();
    let mut cx = context();
    cx.person = person;
    (cx, elicitations)
}

async fn run(
    client: &Client,
    cx: &ToolContext,
    tool: &str,
    arguments: Value,
) -> Result<Value, ToolError> {
    let tool = client.tool(tool).await;
    let output = tool.run(arguments, cx).await?;
    Ok(serde_json::from_str(&output.text).unwrap_or(Value::String(output.text)))
}

fn form() -> Value {
    json!({ "method": ELICIT, "params": { "message": "Who are you?", "requestedSchema": {
        "type": "object",
        "properties": {
            "name": { "type": "string", "title": "Your name" },
            "age": { "type": "integer", "minimum": 0 },
            "colour": { "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"], "default": "g" },
        },
        "required": ["name"],
    } } })
}

fn accepted(values: Value) -> Response {
    let values = values.as_object().unwrap().clone();
    Response::Accepted { values }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_filled_in_by_whoever_made_the_call() {
    for (name, peer) in peers(json!({}), None).await {
        let (cx, mut elicitations) = attended();
        let answer = async {
            let asked = elicitations.recv().await.unwrap();
            assert_eq!(asked.request.asker, "MCP server `test`");
            assert_eq!(asked.request.message, "Who are you?");
            assert_eq!(asked.request.timeout, Duration::from_secs(300));
            let Wanted::Form { fields } = &asked.request.wanted else {
                panic!("{name}: not a form");
            };
            let labels: Vec<&str> = fields.iter().map(|field| field.label()).collect();
            assert_eq!(labels, ["Your name", "age", "colour"], "{name}");
            assert_eq!(fields[2].default(), Some(json!("g")));
            let values = accepted(json!({ "name": "Ada", "age": 36 }));
            asked.response.send(values).unwrap();
        };
        let (result, ()) = tokio::join!(run(&peer.client, &cx, "ask", form()), answer);
        assert_eq!(
            result.unwrap(),
            json!({ "action": "accept", "content": { "name": "Ada", "age": 36 } }),
            "{name}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_and_silence_are_told_apart() {
    for (name, peer) in peers(json!({}), None).await {
        for (response, action) in [
            (Response::Declined { reason: None }, "decline"),
            (Response::Cancelled, "cancel"),
        ] {
            let (cx, mut elicitations) = attended();
            let answer = async {
                let asked = elicitations.recv().await.unwrap();
                asked.response.send(response).unwrap();
            };
            let (result, ()) = tokio::join!(run(&peer.client, &cx, "ask", form()), answer);
            assert_eq!(result.unwrap(), json!({ "action": action }), "{name}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_person_a_form_is_declined() {
    for (name, peer) in peers(json!({}), None).await {
        let result = run(&peer.client, &context(), "ask", form()).await;
        assert_eq!(result.unwrap(), json!({ "action": "decline" }), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_told_that_it_may_ask_only_when_it_may() {
    let server = server(Era::Legacy);
    let capabilities = || {
        let requests = server.requests();
        let hello = requests.iter().rfind(|seen| seen.method == "initialize");
        hello.unwrap().message["params"]["capabilities"].clone()
    };
    let _client = Client::of(&server, json!({})).await;
    assert_eq!(
        capabilities(),
        json!({ "roots": { "listChanged": true }, "elicitation": { "form": {}, "url": {} } })
    );
    let silent = json!({ "elicitation": { "enabled": false } });
    let client = Client::of(&server, silent).await;
    assert_eq!(capabilities(), json!({ "roots": { "listChanged": true } }));
    let (cx, _elicitations) = attended();
    let result = run(&client, &cx, "ask", form()).await;
    assert_eq!(result.unwrap(), json!({ "action": "decline" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_cannot_be_attributed_is_declined() {
    let server = server(Era::Legacy);
    let client = Client::of(&server, json!({})).await;
    let (mut other, _others) = attended();
    other.session = "another".into();
    let slow = client.tool("slow").await;
    let busy = slow.run(json!({ "ms": 1000 }), &other);
    let ask = async {
        eventually("both are under way", || server.count("tools/call") == 1).await;
        let (cx, _elicitations) = attended();
        run(&client, &cx, "ask", form()).await
    };
    let (_, result) = tokio::join!(busy, ask);
    assert_eq!(result.unwrap(), json!({ "action": "decline" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_cannot_be_asked_is_refused_with_the_reason() {
    let server = server(Era::Legacy);
    let client = Client::of(&server, json!({})).await;
    let (cx, _elicitations) = attended();
    let schema = json!({ "type": "object", "properties": { "odd": { "type": "object" } } });
    let params = json!({ "message": "?", "requestedSchema": schema });
    let ask = json!({ "method": ELICIT, "params": params });
    let error = run(&client, &cx, "ask", ask).await.unwrap();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("`odd`"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_not_out_of_time_while_its_person_thinks() {
    for (name, peer) in peers(json!({ "timeout": 0.5 }), None).await {
        let (cx, mut elicitations) = attended();
        let answer = async {
            let asked = elicitations.recv().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1200)).await;
            asked
                .response
                .send(accepted(json!({ "name": "Ada" })))
                .unwrap();
        };
        let (result, ()) = tokio::join!(run(&peer.client, &cx, "ask", form()), answer);
        assert_eq!(result.unwrap()["action"], "accept", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_call_takes_its_question_back() {
    let server = server(Era::Legacy);
    let client = Client::of(&server, json!({})).await;
    let (cx, mut elicitations) = attended();
    let stop = async {
        let mut asked = elicitations.recv().await.unwrap();
        cx.stop.cancel();
        asked.response.closed().await;
    };
    let tool = client.tool("ask").await;
    let (result, ()) = tokio::join!(tool.run(form(), &cx), stop);
    assert!(matches!(result, Err(ToolError::Stopped(_))), "{result:?}");
}

fn visit() -> Value {
    json!({ "method": ELICIT, "params": {
        "mode": "url", "message": "Please sign in.", "url": "https://example.org/in", "elicitationId": "e1",
    } })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_opened_by_the_person_and_by_nobody_else() {
    for (name, peer) in peers(json!({}), None).await {
        let (cx, mut elicitations) = attended();
        let answer = async {
            let asked = elicitations.recv().await.unwrap();
            let url = "https://example.org/in".to_owned();
            assert_eq!(asked.request.wanted, Wanted::Visit { url }, "{name}");
            let values = Map::new();
            asked.response.send(Response::Accepted { values }).unwrap();
        };
        let (result, ()) = tokio::join!(run(&peer.client, &cx, "ask", visit()), answer);
        assert_eq!(result.unwrap(), json!({ "action": "accept" }), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_visit_that_the_server_saw_needs_no_word_from_the_person() {
    let server = server(Era::Legacy);
    let client = Client::of(&server, json!({})).await;
    let (cx, mut elicitations) = attended();
    let complete = async {
        let mut asked = elicitations.recv().await.unwrap();
        let note = json!({ "elicitationId": "e1" });
        let tell = || server.notify("notifications/elicitation/complete", &note) > 0;
        eventually("a listener", tell).await;
        asked.response.closed().await;
    };
    let (result, ()) = tokio::join!(run(&client, &cx, "ask", visit()), complete);
    assert_eq!(result.unwrap(), json!({ "action": "accept" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_a_visit_first_is_made_again_after_it() {
    for (name, peer) in peers(json!({}), None).await {
        let (cx, mut elicitations) = attended();
        let arguments = json!({ "url": "https://example.org/a" });
        let answer = async {
            let asked = elicitations.recv().await.unwrap();
            asked.response.send(accepted(json!({}))).unwrap();
        };
        let (result, ()) = tokio::join!(run(&peer.client, &cx, "visit", arguments), answer);
        assert_eq!(result.unwrap(), "thank you for your visit", "{name}");
        let arguments = json!({ "url": "https://example.org/b" });
        let error = run(&peer.client, &context(), "visit", arguments).await;
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("https://example.org/b") && error.contains("nobody is here"),
            "{name}: {error}"
        );
    }
}

fn models(model: &Arc<ScriptedModel>) -> Models {
    Models {
        usual: Arc::clone(model) as _,
        named: HashMap::new(),
    }
}

fn question(max_tokens: u32) -> Value {
    json!({ "method": SAMPLE, "params": {
        "messages": [{ "role": "user", "content": { "type": "text", "text": "what is it?" } }],
        "systemPrompt": "Be brief.", "maxTokens": max_tokens,
    } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_ask_our_model_within_its_limits() {
    let model = Arc::new(ScriptedModel::new([]));
    let settings = json!({ "sampling": { "max_tokens_cap": 100, "max_rpm": 1 } });
    for (name, peer) in peers(settings, Some(&models(&model))).await {
        model.push(Step::text("a cat"));
        let result = run(&peer.client, &context(), "ask", question(5000))
            .await
            .unwrap();
        assert_eq!(
            result["content"],
            json!({ "type": "text", "text": "a cat" }),
            "{name}: {result}"
        );
        assert_eq!(
            (&result["role"], &result["stopReason"]),
            (&json!("assistant"), &json!("endTurn"))
        );
        let asked = model.requests().pop().unwrap();
        assert_eq!(asked.output_tokens_max, Some(100));
        assert_eq!(asked.prefix.system, "Be brief.");
        assert_eq!(asked.messages[0].parts, [Part::text("what is it?")]);
        let refused = run(&peer.client, &context(), "ask", question(10)).await;
        let refused = match refused {
            Ok(error) => error.to_string(),
            Err(error) => error.to_string(),
        };
        assert!(refused.contains("1 times a minute"), "{name}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_may_use_tools_of_the_server_for_some_rounds() {
    let model = Arc::new(ScriptedModel::new([]));
    let settings = json!({ "sampling": { "max_tool_rounds": 1 } });
    for (name, peer) in peers(settings, Some(&models(&model))).await {
        model.push(Step::call("u1", "look", &json!({ "at": "it" })));
        let mut request = question(10);
        request["params"]["tools"] =
            json!([{ "name": "look", "inputSchema": { "type": "object" } }]);
        let result = run(&peer.client, &context(), "ask", request.clone())
            .await
            .unwrap();
        assert_eq!(result["stopReason"], "toolUse", "{name}: {result}");
        let tool_use =
            json!({ "type": "tool_use", "id": "u1", "name": "look", "input": { "at": "it" } });
        assert_eq!(result["content"], tool_use);
        let messages = request["params"]["messages"].as_array_mut().unwrap();
        messages.push(json!({ "role": "assistant", "content": tool_use }));
        messages.push(
            json!({ "role": "user", "content": { "type": "tool_result", "toolUseId": "u1",
            "content": [{ "type": "text", "text": "a cat" }] } }),
        );
        let refused = run(&peer.client, &context(), "ask", request).await;
        let refused = format!("{refused:?}");
        assert!(refused.contains("1 rounds of tools"), "{name}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_not_ask_a_model_is_refused() {
    let server = server(Era::Legacy);
    let client = Client::of(&server, json!({})).await;
    let refused = run(&client, &context(), "ask", question(10)).await.unwrap();
    assert!(
        refused["message"].as_str().unwrap().contains("not allowed"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_learns_where_its_callers_work() {
    let roots = json!({ "method": "roots/list" });
    for (name, peer) in peers(json!({}), None).await {
        let mut cx = context();
        let listed = run(&peer.client, &cx, "ask", roots.clone()).await.unwrap();
        assert_eq!(listed["roots"][0]["uri"], "file:///", "{name}");
        cx.cwd = "/my work".into();
        let listed = run(&peer.client, &cx, "ask", roots.clone()).await.unwrap();
        let work = json!({ "uri": "file:///my%20work", "name": "my work" });
        assert_eq!(listed["roots"][1], work, "{name}");
    }
    let server = server(Era::Legacy);
    let client = Client::of(&server, json!({})).await;
    let mut cx = context();
    cx.cwd = "/elsewhere".into();
    for _ in 0..2 {
        run(&client, &cx, "ask", roots.clone()).await.unwrap();
    }
    assert_eq!(server.count("notifications/roots/list_changed"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn log_messages_go_to_the_log_of_their_server() {
    for (name, peer) in peers(json!({ "log_level": "warning" }), None).await {
        let note = json!({ "level": "error", "logger": "db", "data": "cannot\nwrite" });
        let tell = json!({ "method": "notifications/message", "params": note });
        run(&peer.client, &context(), "tell", tell).await.unwrap();
        let log = peer.client.logs.path().join("mcp-test.log");
        eventually(name, || {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.contains("[error] db: cannot write\n")
        })
        .await;
    }
    let server = server(Era::Legacy);
    let _client = Client::of(&server, json!({ "log_level": "warning" })).await;
    let requests = server.requests();
    let set = requests
        .iter()
        .find(|seen| seen.method == "logging/setLevel");
    assert_eq!(set.unwrap().message["params"]["level"], "warning");
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_and_sound_become_files_and_the_text_says_where() {
    for (name, peer) in peers(json!({}), None).await {
        let draw = peer.client.tool("draw").await;
        let output = draw.run(json!({}), &context()).await.unwrap();
        let picture = Media {
            mime: "image/png".into(),
            source: MediaSource::Base64(PIXEL_BASE64.into()),
        };
        assert_eq!(output.images, [picture], "{name}: the model sees it too");
        let text = output.text;
        let files: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("MEDIA:"))
            .collect();
        let extensions: Vec<&str> = files.iter().map(|file| &file[file.len() - 3..]).collect();
        assert_eq!(extensions, ["png", "ogg", "pdf"], "{name}: {text}");
        assert_eq!(std::fs::read(files[1]).unwrap(), b"OggS");
        let mode = std::fs::metadata(files[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(
            text.starts_with("here:\n[an image, image/png, 70 bytes]\n"),
            "{text}"
        );
        assert!(
            text.contains("words inside") && text.contains("`test://greeting`"),
            "{text}"
        );
        let read = peer
            .client
            .call("read_resource", json!({ "uri": "test://bytes" }))
            .await
            .unwrap();
        assert!(
            read.contains("MEDIA:") && read.ends_with(".bin"),
            "{name}: {read}"
        );
    }
}
