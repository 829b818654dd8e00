//! Plain work with a real small model and the usual settings, when there is one: `scripts/real-model tools` starts it and runs
//! this. `HERMES_REAL_MODEL_URL` says where a server is, `HERMES_REAL_MODEL_NAME` what its model is called, which must be one
//! that can call tools.

use std::time::Duration;

use hermes_testkit::process::Hermes;

use crate::setting::bare;

/// A model on a busy processor reads some twenty tokens a second.
const PATIENCE: Duration = Duration::from_secs(900);

/// A home whose model is the real one, and nothing else set; none when there is no such model.
#[expect(clippy::print_stdout, reason = "who skips a test says so")]
fn with_real_model() -> Option<Hermes> {
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever runs the tests says where the model is"
    )]
    let variable = |name: &str| std::env::var(name).ok();
    let (Some(url), Some(name)) = (
        variable("HERMES_REAL_MODEL_URL"),
        variable("HERMES_REAL_MODEL_NAME"),
    ) else {
        println!("skipped: set HERMES_REAL_MODEL_URL and HERMES_REAL_MODEL_NAME");
        return None;
    };
    let root = url.trim_end_matches('/').trim_end_matches("/v1");
    let settings = format!(
        "model:\n  provider: custom\n  base_url: {root}/v1\n  default: {name}\nagent:\n  first_token_timeout: 600\n"
    );
    let hermes = bare().deadline(PATIENCE);
    std::fs::write(hermes.home().join("config.yaml"), settings).unwrap();
    Some(hermes)
}

#[test]
fn three_plain_tasks_end_right() {
    let Some(hermes) = with_real_model() else {
        return;
    };
    let folder = hermes.work_folder();
    let ask = |prompt: &str| {
        let output = hermes.clone().args(["-z", prompt]).run();
        assert_eq!(output.code, Some(0), "{prompt}: {output:?}");
        output.stdout
    };
    std::fs::write(folder.join("notes.txt"), "The code word is heliotrope.\n").unwrap();
    let answer = ask("Read the file notes.txt. What is the code word in it?");
    assert!(answer.to_lowercase().contains("heliotrope"), "{answer}");
    ask("Write the text: hello world - into a file that is named out.txt.");
    let written = std::fs::read_to_string(folder.join("out.txt")).unwrap_or_default();
    assert!(written.to_lowercase().contains("hello world"), "{written}");
    std::fs::write(folder.join("data.txt"), "a\n".repeat(37)).unwrap();
    let answer =
        ask("Run the shell command `wc -l data.txt` and tell me how many lines there are.");
    assert!(answer.contains("37"), "{answer}");
}

/// A conversation that does not fit into 4,096 tokens is compacted, and the model goes on with what it was told at first.
#[test]
fn a_long_conversation_is_compacted_and_goes_on() {
    let Some(hermes) = with_real_model() else {
        return;
    };
    let file = hermes.home().join("config.yaml");
    let settings = std::fs::read_to_string(&file).unwrap();
    let settings = settings.replace("agent:\n", "  context_length: 4096\nagent:\n");
    let more = "auxiliary:\n  compression:\n    timeout: 600\n";
    std::fs::write(&file, settings + more).unwrap();
    let say = |is_first: bool, words: &str| {
        let go_on: &[&str] = if is_first { &[] } else { &["-c"] };
        let command = hermes.clone().args(go_on).args(["--json", "-z", words]);
        let output = command.run();
        assert_eq!(output.code, Some(0), "{words}: {output:?}");
        output.stdout
    };
    say(
        true,
        "My dog is called Bartholomew. Answer with one word: noted.",
    );
    let mut compacted = false;
    for turn in 0..8 {
        let filler = "The weather was fine and nothing happened on the way. ".repeat(60);
        let words = format!("Day {turn}. {filler} Answer with one word: noted.");
        compacted |= say(false, &words).contains("\"tokens_after\"");
    }
    assert!(compacted, "it outgrew its window");
    let answer = say(
        false,
        "How many days did I tell you about? Answer in one sentence.",
    );
    assert!(answer.contains("\"finished\""), "{answer}");
}
