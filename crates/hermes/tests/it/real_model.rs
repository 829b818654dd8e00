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

/// Each task in several wordings, so that none is right by the luck of its words.
const READ: &[&str] = &[
    "Read the file notes.txt. What is the code word in it?",
    "What does notes.txt say?",
    "There is a file called notes.txt here. Tell me the code word that is in it.",
    "what's the code word in notes.txt",
    "Please open notes.txt and tell me which code word it contains.",
];
const WRITE: &[&str] = &[
    "Write the text: hello world - into a file that is named out.txt.",
    "Create a file out.txt with the content hello world",
    "Please make a new file called out.txt that contains the words hello world.",
    "Save \"hello world\" to out.txt.",
    "I need a file out.txt in this folder. Its content must be: hello world",
];
const RUN: &[&str] = &[
    "Run the shell command `wc -l data.txt` and tell me how many lines there are.",
    "How many lines does data.txt have? Use wc.",
    "Count the lines of data.txt with the command wc -l data.txt.",
    "Execute wc -l data.txt and give me the number.",
    "how many lines are in data.txt",
];

const NOTES: &str = "The code word is heliotrope.\n";

#[test]
fn three_plain_tasks_end_right_however_they_are_worded() {
    let Some(hermes) = with_real_model() else {
        return;
    };
    let folder = hermes.work_folder();
    let (notes, data, out) = (
        folder.join("notes.txt"),
        folder.join("data.txt"),
        folder.join("out.txt"),
    );
    let lines = "a\n".repeat(37);
    std::fs::write(&notes, NOTES).unwrap();
    std::fs::write(&data, &lines).unwrap();
    let ask = |prompt: &str| {
        let output = hermes.clone().args(["-z", prompt]).run();
        assert_eq!(output.code, Some(0), "{prompt}: {output:?}");
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), NOTES, "{prompt}");
        assert_eq!(std::fs::read_to_string(&data).unwrap(), lines, "{prompt}");
        output.stdout
    };
    let mut wrong = Vec::new();
    for prompt in READ {
        let answer = ask(prompt);
        if !answer.to_lowercase().contains("heliotrope") {
            wrong.push((prompt, answer));
        }
    }
    for prompt in WRITE {
        let answer = ask(prompt);
        let written = std::fs::read_to_string(&out).unwrap_or_default();
        if !written.to_lowercase().contains("hello world") {
            wrong.push((prompt, answer));
        }
        let _ = std::fs::remove_file(&out);
    }
    for prompt in RUN {
        let answer = ask(prompt);
        if !answer.contains("37") {
            wrong.push((prompt, answer));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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
