//! `hermes -z` and `hermes chat -q`: what scripts rely on.

use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::{Value, json};

use crate::setting::Setting;

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
        (Some(&"turn_started"), Some(&"turn_ended")),
        "{names:?}"
    );
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
            .is_some_and(|id| id.len() == 22),
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
