//! What small models need: a short list of tools, and somebody who stops them when they go round in circles.

use hermes_testkit::server::{Answer, Request, Script, Split};

use crate::setting::Setting;

fn tools(request: &Request) -> Vec<String> {
    let tools = request.json["tools"].as_array().into_iter().flatten();
    let name = |tool: &serde_json::Value| Some(tool["function"]["name"].as_str()?.to_owned());
    tools.filter_map(name).collect()
}

#[tokio::test]
async fn a_small_model_is_told_of_few_tools_and_finds_the_others() {
    let short = [
        "read_file",
        "write_file",
        "patch",
        "search_files",
        "terminal",
        "tool_search",
    ];
    let find = Answer::call(
        "c1",
        "tool_search",
        serde_json::json!({"query": "todo list"}),
    );
    let setting = Setting::new(Script::new([find, Answer::text("ok")])).await;
    let output = setting.run(&["-m", "qwen2.5-coder-1.5b", "-z", "hi"]);
    assert_eq!(output.stdout, "ok\n", "{output:?}");
    let requests = setting.server.requests();
    let mut listed = tools(&requests[0]);
    listed.sort();
    let mut expected = short.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(listed, expected);
    let found = requests[1].json["messages"].to_string();
    assert!(found.contains("todo"), "{found}");
    for flags in [
        &["-m", "some-70b", "-z", "hi"][..],
        &["-m", "tiny-1b", "-t", "all", "-z", "hi"][..],
    ] {
        let setting = Setting::new(Script::always(Answer::text("ok"))).await;
        setting.run(flags);
        assert!(
            tools(&setting.server.requests()[0]).len() > short.len(),
            "{flags:?}"
        );
    }
    let setting = Setting::with(
        Script::always(Answer::text("ok")),
        "agent:\n  toolset: full\n",
    )
    .await;
    setting.run(&["-m", "tiny-1b", "-z", "hi"]);
    assert!(tools(&setting.server.requests()[0]).len() > short.len());
}

/// Bytes that small models are told before a question: with 10 KB a model of 1.5 billion parameters calls nothing.
const PREFIX_BYTES_MAX: usize = 3 * 1024;

#[tokio::test]
async fn a_small_model_is_told_little_and_shown_what_a_call_looks_like() {
    let read = Answer::call(
        "c1",
        "read_file",
        serde_json::json!({"path": "notes.txt", "offset": 2}),
    );
    let setting = Setting::new(Script::new([read, Answer::text("ok")])).await;
    std::fs::write(setting.hermes.work_folder().join("notes.txt"), "one\ntwo\n").unwrap();
    let output = setting.run(&["-m", "qwen2.5-coder-1.5b", "-z", "what is in line two?"]);
    assert_eq!(output.stdout, "ok\n", "{output:?}");
    let requests = setting.server.requests();
    let system = requests[0].json["messages"][0]["content"].as_str().unwrap();
    let tools = requests[0].json["tools"].to_string();
    assert!(
        system.len() + tools.len() <= PREFIX_BYTES_MAX,
        "{} + {}",
        system.len(),
        tools.len()
    );
    assert!(
        system.contains(r#"{"name": "read_file", "arguments": {"path": "todo.txt"}}"#),
        "{system}"
    );
    assert!(
        system.starts_with("You are Hermes. You work"),
        "a SOUL.md that nobody changed is ours to shorten: {system}"
    );
    let folder = setting.hermes.work_folder();
    assert!(system.contains(&format!("Working directory: {}", folder.display())));
    // What it was not told of works all the same.
    let result = requests[1].json["messages"].to_string();
    assert!(
        result.contains("2|two") && !result.contains("1|one"),
        "{result}"
    );
}

#[tokio::test]
async fn the_size_of_a_small_models_prompt_is_told() {
    let setting = Setting::new(Script::always(Answer::text("ok"))).await;
    let total = |flags: &[&str]| {
        let output = setting.run(&[flags, &["prompt-size", "--json"]].concat());
        let sizes: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        sizes["total_bytes"].as_u64().unwrap() as usize
    };
    assert!(total(&["-m", "qwen2.5-coder-1.5b"]) <= PREFIX_BYTES_MAX);
    assert!(total(&[]) > PREFIX_BYTES_MAX);
    let output = crate::setting::bare()
        .args(["-m", "openrouter:x", "prompt-size"])
        .run();
    assert!(
        output.stdout.contains("session_search"),
        "also in a home without conversations: {output:?}"
    );
}

#[tokio::test]
async fn a_reply_that_repeats_itself_is_stopped_and_asked_for_again_once() {
    let circling = || {
        let text = format!("Here it is. {}", "I will read the file. ".repeat(4000));
        Answer::text(text).split(&Split::Every(200))
    };
    let setting = Setting::new(Script::new([circling(), Answer::text("It says hello.")])).await;
    let output = setting.run(&["-z", "what does it say?"]);
    assert_eq!(output.stdout, "It says hello.\n", "{output:?}");
    let again = setting.server.requests()[1].json["messages"].to_string();
    assert!(again.contains("repeated the same words"), "{again}");
    let setting = Setting::new(Script::always(circling())).await;
    let output = setting.run(&["-z", "what does it say?"]);
    assert_eq!(
        output.stdout, "Here it is. I will read the file.\n",
        "{output:?}"
    );
    assert_eq!(setting.server.requests().len(), 2);
}
