//! `hermes -z` and `hermes chat -q`: what scripts rely on.

use hermes_testkit::server::{Answer, NoiseKind, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::setting::{Setting, bare};

#[tokio::test]
async fn z_prints_the_answer_and_nothing_else() {
    let setting = Setting::new(Script::new([Answer::text("forty-two")])).await;
    let output = setting.run(&["-z", "what is it?"]);
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str(), output.code),
        ("forty-two\n", "", Some(0))
    );
}

#[tokio::test]
async fn z_runs_tools_and_prints_only_the_last_words() {
    let setting = Setting::new(Script::new([
        Answer::text("I will write it.").also_call(
            "c1",
            "write_file",
            json!({"path": "a.txt", "content": "hello\n"}),
        ),
        Answer::call("c2", "terminal", json!({"command": "cat a.txt; exit 3"})),
        Answer::text("It says hello."),
    ]))
    .await;
    let output = setting.run(&["-z", "write and read"]);
    assert_eq!(
        (output.stdout.as_str(), output.code),
        ("It says hello.\n", Some(0)),
        "{output:?}"
    );
    assert_eq!(
        std::fs::read_to_string(setting.hermes.work_folder().join("a.txt")).unwrap(),
        "hello\n"
    );
    let requests = setting.server.requests();
    let last = requests.last().unwrap().json.clone().to_string();
    assert!(
        last.contains("hello") && last.contains("exit code 3"),
        "{last}"
    );
}

#[tokio::test]
async fn z_reads_the_prompt_from_standard_input() {
    let setting = Setting::new(Script::new([Answer::text("ok")])).await;
    let output = setting
        .hermes
        .clone()
        .args(["-z", "-"])
        .stdin("from a pipe")
        .run();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        setting.server.requests()[0]
            .json
            .clone()
            .to_string()
            .contains("from a pipe")
    );
}

#[tokio::test]
async fn json_prints_one_event_a_line() {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "terminal", json!({"command": "echo hi"})),
        Answer::text("done"),
    ]))
    .await;
    let output = setting.run(&["--json", "-z", "go"]);
    let events: Vec<Value> = output
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let names: Vec<&str> = events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect();
    assert_eq!(
        (names.first(), names.last()),
        (Some(&"session"), Some(&"turn_ended")),
        "{names:?}"
    );
    let session = events[0]["session"].as_str().unwrap();
    assert!(setting.run(&["sessions", "show", session]).is_success());
    assert!(
        names.contains(&"call_finished") && names.contains(&"text"),
        "{names:?}"
    );
}

#[tokio::test]
async fn the_usage_file_is_written_also_when_the_run_fails() {
    let setting = Setting::new(Script::new([
        Answer::text("ok"),
        Answer::status(401, json!({"error": {"message": "no"}})),
    ]))
    .await;
    let file = setting.hermes.work_folder().join("usage.json");
    let read = || serde_json::from_str::<Value>(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(
        setting.run(&["-z", "hi", "--usage-file", path]).code,
        Some(0)
    );
    let report = read();
    assert_eq!(
        (&report["completed"], &report["api_calls"]),
        (&json!(true), &json!(1)),
        "{report}"
    );
    assert!(
        report["session_id"]
            .as_str()
            .is_some_and(|id| id.len() == 24),
        "{report}"
    );
    assert_ne!(
        setting.run(&["-z", "hi", "--usage-file", path]).code,
        Some(0)
    );
    let report = read();
    assert_eq!(
        (&report["failed"], &report["completed"]),
        (&json!(true), &json!(false)),
        "{report}"
    );
}

#[tokio::test]
async fn quiet_chat_prints_the_session_on_standard_error_and_it_can_be_resumed() {
    let setting = Setting::new(Script::new([
        Answer::text("one"),
        Answer::text("two"),
        Answer::text("three"),
    ]))
    .await;
    let first = setting.run(&["chat", "-q", "hi", "-Q"]);
    assert_eq!(first.stdout, "one\n");
    let id = first
        .stderr
        .trim()
        .strip_prefix("session_id: ")
        .expect("the session id")
        .to_owned();
    assert_eq!(setting.run(&["-r", &id, "-z", "again"]).stdout, "two\n");
    assert_eq!(setting.run(&["-c", "-z", "and again"]).stdout, "three\n");
    let body = setting.server.requests().last().unwrap().json.clone();
    let texts: Vec<String> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .skip(1)
        .map(|m| m["content"].to_string())
        .collect();
    assert_eq!(texts.len(), 5, "the whole conversation is sent: {texts:?}");
}

#[tokio::test]
async fn chat_q_shows_tools_on_standard_error() {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "terminal", json!({"command": "echo hi"})),
        Answer::text("done"),
    ]))
    .await;
    let output = setting.run(&["chat", "-q", "go"]);
    assert_eq!((output.stdout.as_str(), output.code), ("done\n", Some(0)));
    assert!(
        output.stderr.contains("• terminal echo hi") && output.stderr.contains('✓'),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains('\u{1b}'), "no colour when piped");
}

#[tokio::test]
async fn an_image_reaches_the_model() {
    let setting = Setting::new(Script::new([Answer::text("a picture")])).await;
    let image = setting.hermes.work_folder().join("a.dat");
    std::fs::write(&image, [0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0]).unwrap();
    let output = setting.run(&["chat", "-q", "what is it?", "--image", "a.dat"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let body = setting.server.requests()[0].json.clone().to_string();
    assert!(
        body.contains("data:image/png;base64,iVBORw0KGgoA"),
        "{body}"
    );
}

#[tokio::test]
async fn a_dangerous_command_is_refused_when_nobody_can_be_asked() {
    let script = || {
        Script::new([
            Answer::call("c1", "terminal", json!({"command": "rm -r victim"})),
            Answer::text("done"),
        ])
    };
    for (flags, survives) in [
        (&["chat", "-q", "go"][..], true),
        (&["--yolo", "chat", "-q", "go"][..], false),
    ] {
        let setting = Setting::new(script()).await;
        let victim = setting.hermes.work_folder().join("victim");
        std::fs::create_dir(&victim).unwrap();
        assert_eq!(setting.run(flags).code, Some(0));
        assert_eq!(victim.exists(), survives, "{flags:?}");
    }
}

#[tokio::test]
async fn subdirectory_context_and_references_reach_the_model() {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "read_file", json!({"path": "sub/code.rs"})),
        Answer::text("done"),
    ]))
    .await;
    let folder = setting.hermes.work_folder();
    std::fs::create_dir(folder.join("sub")).unwrap();
    std::fs::write(folder.join("AGENTS.md"), "root rules").unwrap();
    std::fs::write(folder.join("sub/AGENTS.md"), "sub rules").unwrap();
    std::fs::write(folder.join("sub/code.rs"), "fn main() {}").unwrap();
    std::fs::write(folder.join("list.txt"), "eggs and milk").unwrap();
    assert_eq!(setting.run(&["-z", "look at @file:list.txt"]).code, Some(0));
    let requests = setting.server.requests();
    let bodies: Vec<String> = requests
        .iter()
        .map(|request| request.json.clone().to_string())
        .collect();
    assert!(
        bodies[0].contains("root rules")
            && bodies[0].contains("eggs and milk")
            && !bodies[0].contains("sub rules")
    );
    assert!(bodies[1].contains("sub rules"), "{}", bodies[1]);
    let ignoring = Setting::new(Script::new([Answer::text("done")])).await;
    std::fs::write(
        ignoring.hermes.work_folder().join("AGENTS.md"),
        "root rules",
    )
    .unwrap();
    ignoring.run(&["--ignore-rules", "-z", "hi"]);
    assert!(
        !ignoring.server.requests()[0]
            .json
            .clone()
            .to_string()
            .contains("root rules")
    );
}

#[tokio::test]
async fn sessions_can_run_side_by_side_in_one_home() {
    let answer = Answer::text("slow answer").chunk_delay(std::time::Duration::from_millis(50));
    let setting = Setting::new(Script::always(answer)).await;
    let running: Vec<_> = (0..4)
        .map(|_| setting.hermes.clone().args(["-z", "hi"]).spawn())
        .collect();
    for process in running {
        let output = process.wait(std::time::Duration::from_secs(20));
        assert_eq!(
            (output.code, output.stdout.as_str()),
            (Some(0), "slow answer\n"),
            "{output:?}"
        );
    }
}

#[tokio::test]
async fn tokens_of_ours_are_not_in_the_environment_of_commands() {
    let setting = Setting::new(Script::new([
        Answer::call("c1", "terminal", json!({"command": "env"})),
        Answer::text("done"),
    ]))
    .await;
    let hermes = setting
        .hermes
        .clone()
        .env("OPENROUTER_API_KEY", "sk-or-secret-value")
        .env("MY_SETTING", "visible?");
    assert_eq!(hermes.args(["-z", "go"]).run().code, Some(0));
    let body = setting
        .server
        .requests()
        .last()
        .unwrap()
        .json
        .clone()
        .to_string();
    assert!(
        body.contains("PATH=")
            && !body.contains("sk-or-secret-value")
            && !body.contains("MY_SETTING"),
        "{body}"
    );
}

/// Most servers that call themselves compatible have chat completions and nothing else.
#[tokio::test]
async fn openai_base_url_works_with_servers_that_have_chat_completions_only() {
    for key in [Some("sk-x-0123456789abcdef"), None] {
        let script = Script::always(Answer::text("from chat")).without("/responses");
        let server = ScriptedServer::start(script).await;
        let hermes = bare().env("OPENAI_BASE_URL", server.url());
        let hermes = match key {
            Some(key) => hermes.env("OPENAI_API_KEY", key),
            None => hermes,
        };
        let asked = || {
            let requests = server.requests();
            let posts = requests.iter().filter(|request| request.method == "POST");
            posts
                .map(|request| request.route().to_owned())
                .collect::<Vec<_>>()
        };
        let ask = |flags: &[&str]| {
            let output = hermes.clone().args(flags.iter().copied()).run();
            assert_eq!(output.stdout, "from chat\n", "{output:?}");
        };
        ask(&["-m", "tiny", "-z", "hi"]);
        ask(&["-m", "tiny", "-z", "hi"]);
        let routes = asked();
        let chats = routes
            .iter()
            .filter(|route| *route == "/v1/chat/completions");
        assert_eq!(chats.count(), 2, "{routes:?}");
        assert!(
            routes.len() <= 3,
            "the other wire is tried once: {routes:?}"
        );
        // The provider may be named as well, and the only model need not.
        ask(&["--provider", "openai", "-m", "tiny", "-z", "hi"]);
        ask(&["--provider", "custom", "-m", "tiny", "-z", "hi"]);
        let from_environment = hermes.clone().env("HERMES_INFERENCE_PROVIDER", "custom");
        let output = from_environment.args(["-z", "hi"]).run();
        assert_eq!(output.stdout, "from chat\n", "{output:?}");
        assert_eq!(server.requests().last().unwrap().json["model"], "scripted");
        let sent = server
            .requests()
            .last()
            .unwrap()
            .header("authorization")
            .map(str::to_owned);
        assert_eq!(sent, key.map(|key| format!("Bearer {key}")));
    }
}

#[tokio::test]
async fn short_names_are_understood_and_unknown_providers_are_not() {
    let server = ScriptedServer::start(Script::always(Answer::text("hi"))).await;
    let hermes = bare()
        .env("OPENROUTER_BASE_URL", server.url())
        .env("OPENROUTER_API_KEY", "sk-or-0123456789abcdef");
    let ask = |model: &str| hermes.clone().args(["-m", model, "-z", "hi"]).run();
    assert_eq!(ask("sonnet").stdout, "hi\n");
    let asked = server.requests().last().unwrap().json["model"].clone();
    assert_eq!(asked, "anthropic/claude-sonnet-4.6");
    assert_eq!(ask("somebody/some-model:free").stdout, "hi\n");
    for settings in ["", "model:\n  provider: openrouter\n"] {
        std::fs::write(hermes.home().join("config.yaml"), settings).unwrap();
        let output = ask("nosuch:model");
        assert_ne!(output.code, Some(0), "{output:?}");
        assert!(
            output.stderr.contains("unknown model provider `nosuch`"),
            "{output:?}"
        );
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_server_of_several_models_asks_for_a_choice() {
    let script = Script::always(Answer::text("hi")).model("one").model("two");
    let server = ScriptedServer::start(script).await;
    let hermes = bare()
        .env("CUSTOM_BASE_URL", server.url())
        .args(["-z", "hi"]);
    let output = hermes.run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("choose one with -m: one, two"),
        "{output:?}"
    );
}

/// A file of Hermes Agent may name one fallback in the older form, and where its key is kept instead of the key.
#[tokio::test]
async fn the_older_form_of_a_fallback_answers_too() {
    let second = ScriptedServer::start(Script::always(Answer::text("the second"))).await;
    let older = format!(
        "fallback_model: {{provider: custom, model: other, base_url: '{}', key_env: SECOND_KEY}}\n",
        second.url()
    );
    let refused = Answer::status(401, json!({"error": {"message": "no such key"}}));
    let setting = Setting::with(Script::always(refused), &older).await;
    std::fs::write(
        setting.hermes.home().join(".env"),
        "SECOND_KEY=sk-second-0123456789abcdef\n",
    )
    .unwrap();
    let output = setting.run(&["-z", "hi"]);
    assert_eq!(output.stdout, "the second\n", "{output:?}");
    let requests = second.requests();
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer sk-second-0123456789abcdef")
    );
}

fn events(stdout: &str) -> Vec<Value> {
    // As a reader splits them that takes every line end of Unicode for one.
    let is_line_end = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let lines = stdout
        .strip_suffix('\n')
        .expect("a whole line")
        .split(is_line_end);
    lines
        .map(|line| match serde_json::from_str(line) {
            Ok(event @ Value::Object(_)) => event,
            other => panic!("{line:?} is {other:?}"),
        })
        .collect()
}

fn said(events: &[Value]) -> String {
    let is_text = |event: &&Value| event["event"] == "text";
    let texts = events.iter().filter(is_text);
    texts.filter_map(|event| event["text"].as_str()).collect()
}

#[tokio::test]
async fn json_hides_keys_as_models_are_shown_none() {
    let body = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB\n".repeat(12);
    let key =
        format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{body}-----END OPENSSH PRIVATE KEY-----\n");
    let write = json!({"path": "id", "content": &key});
    // One line at a time, as a slow program prints them.
    let print = json!({"command": "while read -r line; do echo \"$line\"; sleep 0.02; done < id"});
    let setting = Setting::new(Script::new([
        Answer::call("c1", "write_file", write),
        Answer::call("c2", "terminal", print),
        Answer::text(format!("it is\n{key}and sk-ant-api03-abcdefghijklmnop")).pieces(40),
    ]))
    .await;
    let output = setting.run(&["--json", "-z", "go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!output.stdout.contains("b3BlbnNzaC1r"), "{}", output.stdout);
    assert!(
        !output.stdout.contains("abcdefghijklmnop"),
        "{}",
        output.stdout
    );
    let events = events(&output.stdout);
    let expected = "it is\n-----BEGIN OPENSSH PRIVATE KEY-----\n[key-hidden-by-hermes]\n-----END OPENSSH PRIVATE KEY-----\nand [key-hidden-by-hermes]";
    assert_eq!(said(&events), expected);
    assert!(events.iter().any(|event| event["event"] == "call_progress"));
}

#[tokio::test]
async fn json_is_one_object_a_line_whatever_the_model_writes() {
    let odd = "a\u{85}b\u{2028}c\u{2029}d\u{b}e\u{c}f\r\ng\u{0}h\u{1b}[2J\u{9b}31m\u{7f}\u{fffe}\u{10ffff}\"\\ {\"event\": 1}\n\n";
    // A half of a character that is written in two.
    let half = br#"data: {"choices":[{"index":0,"delta":{"content":"<\ud83d>"}}]}"#;
    let frame = [&half[..], b"\n\n"].concat();
    let call = json!({"command": "printf '\\302\\205 \\342\\200\\250 \\377 \\001 \\033[2J\\n'"});
    for question in [&["--json", "-z", "go"][..], &["chat", "--json", "-q", "go"]] {
        let noise = NoiseKind::Bytes(frame.clone());
        let setting = Setting::new(Script::new([
            Answer::call("c1", "terminal", call.clone()),
            Answer::text(odd).pieces(3).noise_after(1, noise),
        ]))
        .await;
        let output = setting.run(question);
        assert_eq!(output.code, Some(0), "{output:?}");
        let said = said(&events(&output.stdout));
        assert_eq!(said.replace("<\u{fffd}>", ""), odd, "{said:?}");
    }
}

#[tokio::test]
async fn a_flood_is_shown_at_a_pace_and_its_result_is_whole() {
    let flood = json!({"command": "yes flood | head -n 20000000; echo the end"});
    let setting = Setting::new(Script::new([
        Answer::call("c1", "terminal", flood),
        Answer::text("done"),
    ]))
    .await;
    let output = setting.run(&["--json", "-z", "go"]);
    let events = events(&output.stdout);
    let finished = events
        .iter()
        .find(|event| event["event"] == "call_finished");
    let finished = finished.expect("a result");
    let text = finished["text"].as_str().unwrap();
    assert!(
        text.contains("the end") && text.contains("left out"),
        "{text}"
    );
    let updates = events
        .iter()
        .filter(|event| event["event"] == "call_progress");
    let most = finished["elapsed_ms"].as_u64().unwrap() / 50 + 2;
    let updates = updates.count() as u64;
    assert!(
        (1..=most).contains(&updates),
        "{updates} updates, {most} allowed"
    );
}
