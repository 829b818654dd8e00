//! Standard input as part of a question, in real pipelines of a real shell.

use hermes_testkit::process::{Hermes, Output};
use hermes_testkit::server::{Answer, Script, ScriptedServer};

use crate::setting::write_config;

/// A shell in a home whose model answers everything with `ok`.
struct Shell {
    sh: Hermes,
    server: ScriptedServer,
}

impl Shell {
    async fn new() -> Self {
        let server = ScriptedServer::start(Script::always(Answer::text("ok"))).await;
        let sh = Hermes::new("/bin/sh").env("hermes", env!("CARGO_BIN_EXE_hermes"));
        write_config(&sh, &server.url(), "agent:\n  stdin_silence: 4\n");
        Self { sh, server }
    }

    /// Runs a line, in which `$hermes` is the program.
    fn run(&self, line: &str) -> Output {
        let output = self.sh.clone().args(["-c", line]).run();
        assert_eq!(output.stdout, "ok\n", "{line}: {output:?}");
        output
    }

    /// The last question as it was sent, beside the system prompt.
    fn asked(&self) -> String {
        let request = self.server.requests().pop().unwrap();
        let messages = request.json["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_piped_is_part_of_the_question() {
    let shell = Shell::new().await;
    for line in [
        "printf 'disk full\\n' | $hermes -z 'why?'",
        "printf 'disk full\\n' | $hermes chat -Q -q 'why?'",
        "printf 'disk full\\n' > log; $hermes -z 'why?' < log",
        "$hermes -z 'why?' <<END\ndisk full\nEND",
        "(sleep 1; echo disk; sleep 1; echo full) | tr '\\n' ' ' | $hermes -z 'why?'",
    ] {
        let output = shell.run(line);
        let asked = shell.asked();
        assert!(
            asked.contains("why?") && asked.contains("<stdin>"),
            "{line}: {asked}"
        );
        assert!(asked.contains("disk full"), "{line}: {asked}");
        assert!(
            !output.stderr.contains("note:"),
            "{line}: {}",
            output.stderr
        );
    }
    shell.run("printf 'just this' | $hermes -z ''");
    assert!(shell.asked().contains("just this"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_pipes_nothing_is_answered_at_once() {
    let shell = Shell::new().await;
    for line in [
        "$hermes -z 'why?' < /dev/null",
        "$hermes -z 'why?' <&-",
        "$hermes -z 'why?' < /",
        "true | $hermes -z 'why?'",
        "printf '1\\n2\\n' > list; while read line; do answer=$($hermes -z \"why?\"); done < list; echo $answer",
    ] {
        let output = shell.run(line);
        assert!(
            !shell.asked().contains("stdin"),
            "{line}: {}",
            shell.asked()
        );
        assert_eq!(output.stderr, "", "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_that_stays_open_does_not_hold_the_question_up() {
    let shell = Shell::new().await;
    // Nobody but an ancestor holds it, a neighbour holds it, and one wrote something before it fell silent.
    for (line, asked, told) in [
        (
            "mkfifo f; exec 3<>f; $hermes -z 'why?' < f",
            "why?",
            "gave nothing",
        ),
        (
            "sleep 60 | { $hermes -z 'why?'; kill -9 0; }",
            "why?",
            "waiting for",
        ),
        (
            "{ echo half; sleep 60; } | { $hermes -z 'why?'; kill -9 0; }",
            "half",
            "stayed open",
        ),
    ] {
        let output = shell.run(line);
        assert!(shell.asked().contains(asked), "{line}: {}", shell.asked());
        assert!(output.stderr.contains(told), "{line}: {}", output.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_and_binary_input_is_bounded_and_said_to_be() {
    let shell = Shell::new().await;
    let output =
        shell.run("{ echo the-beginning; seq 1 200000; echo the-end; } | $hermes -z 'why?'");
    let asked = shell.asked();
    assert!(asked.contains("the-beginning") && asked.contains("the-end"));
    assert!(
        asked.len() < 300_000 && asked.contains("left out here"),
        "{}",
        asked.len()
    );
    assert!(
        output.stderr.contains("too long for a question"),
        "{}",
        output.stderr
    );
    let output = shell.run("yes | $hermes -z 'why?'");
    assert!(output.stderr.contains("does not end"), "{}", output.stderr);
    let output = shell.run("head -c 9999 \"$hermes\" | $hermes -z 'what is it?'");
    assert!(
        shell.asked().contains("begins, in hex: 7f 45 4c 46"),
        "{}",
        shell.asked()
    );
    assert!(output.stderr.contains("binary data"), "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn piped_words_refer_to_nothing() {
    let shell = Shell::new().await;
    shell.run("echo inside > a.txt; echo 'see @file:a.txt' | $hermes -z 'why?'");
    assert!(!shell.asked().contains("inside"), "{}", shell.asked());
}
