//! What goes in and what comes out.

use hermes_core::{CommandExit, Progress, call_channel};

use super::Place;

/// (case, line, what it prints, its exit code)
const CASES: &[(&str, &str, &str, i32)] = &[
    ("a_success", "true", "", 0),
    ("a_failure", "false", "", 1),
    ("a_code", "exit 42", "", 42),
    ("the_largest_code", "exit 255", "", 255),
    ("the_last_decides", "false; true", "", 0),
    ("a_pipe", "printf 'b\\na\\n' | sort", "a\nb\n", 0),
    ("a_failed_pipe", "echo x | grep y", "", 1),
    (
        "errors_in_order",
        "echo one; echo two >&2; echo three",
        "one\ntwo\nthree\n",
        0,
    ),
    ("no_input", "cat; echo end", "end\n", 0),
    ("no_line_end", "printf abc", "abc", 0),
    (
        "quotes",
        r#"echo "it's" 'a "b"' \$HOME"#,
        "it's a \"b\" $HOME\n",
        0,
    ),
    ("several_lines", "echo a\necho b\n", "a\nb\n", 0),
    ("a_heredoc", "cat <<'END'\n$x `y`\nEND", "$x `y`\n", 0),
    ("a_comment_at_the_end", "echo a # b", "a\n", 0),
    ("unicode", "echo 'é→😀'", "é→😀\n", 0),
    (
        "invalid_bytes",
        r"printf '\377a\200'",
        "\u{fffd}a\u{fffd}",
        0,
    ),
    ("nul_bytes", r"printf 'a\0b'", "ab", 0),
    ("colours", r"printf '\033[31mred\033[0m'", "red", 0),
    ("a_dash_first", "echo -- -n", "-- -n\n", 0),
    ("loops", "for i in 1 2 3; do echo $i; done", "1\n2\n3\n", 0),
    ("a_syntax_error_later", "if true; then echo a; fi", "a\n", 0),
];

pub(super) async fn check(place: &Place<'_>) {
    for (case, line, text, code) in CASES {
        place.dialogue(case, &[(line, text, *code)]).await;
    }
    an_unknown_program_is_code_127(place).await;
    a_syntax_error_is_told(place).await;
    a_character_may_come_in_two_writes(place).await;
    input_is_passed_whole(place).await;
    input_that_is_not_read_does_not_matter(place).await;
    much_output_loses_its_middle(place).await;
    a_line_of_a_megabyte_runs(place).await;
    lines_are_shown_live(place).await;
    a_terminal_can_be_had(place).await;
}

async fn an_unknown_program_is_code_127(place: &Place<'_>) {
    let output = place.say("unknown", "no-such-program-here").await;
    assert_eq!(output.exit, CommandExit::Code(127));
    assert!(output.text.contains("no-such-program-here"), "{output:?}");
}

async fn a_syntax_error_is_told(place: &Place<'_>) {
    let output = place.say("syntax", "if then").await;
    assert!(
        matches!(output.exit, CommandExit::Code(code) if code != 0),
        "{output:?}"
    );
    assert!(output.text.contains("syntax error"), "{output:?}");
    place.dialogue("syntax", &[("echo on", "on\n", 0)]).await;
}

async fn a_character_may_come_in_two_writes(place: &Place<'_>) {
    let line = r"printf '\360\237'; sleep 0.05; printf '\230\200'";
    place.dialogue("two_writes", &[(line, "😀", 0)]).await;
}

async fn input_is_passed_whole(place: &Place<'_>) {
    let mut command = place.command("input", "wc -c | tr -d ' '");
    command.stdin = vec![b'x'; 300_000];
    assert_eq!(place.run(command).await.text, "300000\n");
    let mut command = place.command("input", "cat");
    command.stdin = b"a\0b\n".to_vec();
    assert_eq!(place.run(command).await.text, "ab\n");
}

async fn input_that_is_not_read_does_not_matter(place: &Place<'_>) {
    let mut command = place.command("unread", "echo done");
    command.stdin = vec![b'x'; 1_000_000];
    let output = place.run(command).await;
    assert_eq!(
        (output.text.as_str(), output.exit),
        ("done\n", CommandExit::Code(0))
    );
}

async fn much_output_loses_its_middle(place: &Place<'_>) {
    let mut command = place.command("much", "echo first; yes | head -c 5000000; echo last");
    command.output_bytes_max = 1000;
    let output = place.run(command).await;
    assert!(output.text.starts_with("first\ny\n"), "{}", output.text);
    assert!(output.text.ends_with("y\nlast\n"), "{}", output.text);
    assert_eq!(output.omitted_bytes, 5_000_000 + 11 - 1000);
}

async fn a_line_of_a_megabyte_runs(place: &Place<'_>) {
    let line = format!("x='{}'; echo ${{#x}}; cat", "y".repeat(1_000_000));
    let mut command = place.command("megabyte", &line);
    command.stdin = b"and input\n".to_vec();
    assert_eq!(place.run(command).await.text, "1000000\nand input\n");
}

async fn lines_are_shown_live(place: &Place<'_>) {
    let (sender, mut messages) = call_channel();
    let mut command = place.command("live", "echo one; sleep 60");
    command.progress = Progress::to(&sender);
    let stop = command.stop.clone();
    let watch = async {
        let line = messages.shown().await;
        stop.cancel();
        line
    };
    let (output, line) = tokio::join!(place.run(command), watch);
    assert_eq!(line.as_deref(), Some("one"));
    assert_eq!(output.exit, CommandExit::Stopped);
}

async fn a_terminal_can_be_had(place: &Place<'_>) {
    let line = "test -t 1 && echo yes; stty size; exit 3";
    let mut command = place.command("pty", line);
    command.pty = true;
    let output = place.run(command).await;
    assert_eq!(output.exit, CommandExit::Code(3), "{output:?}");
    assert_eq!(output.text, "yes\n30 120\n");
    let output = place.say("pty", "test -t 1 || echo no").await;
    assert_eq!(output.text, "no\n");
}
