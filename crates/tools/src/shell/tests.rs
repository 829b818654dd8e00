//! Lines and what becomes of them.

use super::*;

/// Shows commands as their words with `·` between, `|` before those that read a pipe, `→` before written files, and
/// substitutions in brackets.
fn show(commands: &[Command]) -> String {
    let shown = commands.iter().map(|command| {
        let mut text = String::new();
        if command.reads_pipe {
            text.push('|');
        }
        text.push_str(&command.words.join("·"));
        for redirect in &command.redirects {
            text.push(if redirect.writes { '→' } else { '←' });
            text.push_str(&redirect.target);
        }
        if let Some(body) = &command.input {
            text.push_str(&format!("«{}»", body.trim_end()));
        }
        if !command.substitutions.is_empty() {
            text.push_str(&format!("[{}]", show(&command.substitutions)));
        }
        text
    });
    shown.collect::<Vec<_>>().join(" ; ")
}

#[track_caller]
fn check(line: &str, expected: &str) {
    assert_eq!(show(&parse(line).unwrap()), expected, "{line}");
}

#[test]
fn lines_are_taken_apart_at_their_operators() {
    check("ls -la", "ls·-la");
    check("a; b && c || d & e", "a ; b ; c ; d ; e");
    check("a | b |& c", "a ; |b ; |c");
    check("a\nb", "a ; b");
    check("(a; b) && { c; }", "a ; b ; {·c ; }");
    check("a # comment; b\nc", "a ; c");
    check("echo a#b", "echo·a#b");
    check("", "");
}

#[test]
fn quotes_and_escapes_are_undone() {
    check(r#"echo "a b" 'c;d' e\ f"#, "echo·a b·c;d·e f");
    check(r"r\m -rf /", "rm·-rf·/");
    check("r''m \"\"", "rm·");
    check("$'\\x72m' x", "rm·x");
    check("\"a \\\" b\"", "a \" b");
    check("echo 'unfinished", "echo·unfinished");
    check("ｒｍ -rf /", "rm·-rf·/");
    check("rm \\\n -rf", "rm·-rf");
}

#[test]
fn expansions_are_followed_as_far_as_can_be() {
    check("$(echo rm) -rf /", "rm·-rf·/[echo·rm]");
    check("`echo rm` x", "rm·x[echo·rm]");
    check("$(printf r%s m) x", "rm·x[printf·r%s·m]");
    check("${x:-rm} y", "rm·y");
    check("rm${IFS}-rf$IFS/", "rm·-rf·/");
    check("$(echo rm -rf) /", "rm·-rf·/[echo·rm·-rf]");
    check("\"$(echo a b)\"", "a b[echo·a·b]");
    check("rm \"$HOME\" ${HOME}/x $other", "rm·~·~/x·$other");
    check("x $(curl y)", "x·$()[curl·y]");
    check("${x:-$(rm y)}", "$()[rm·y]");
    check("echo $(a $(b (c)))", "echo·$()[a·$()[b ; c]]");
}

#[test]
fn redirections_are_no_words() {
    check("a > f", "a→f");
    check("a >>f 2>&1", "a→f");
    check("a 2> \"e f\" < in", "a→e f←in");
    check("a &> f", "a→f");
    check("a >| f 2>&-", "a→f");
    check("> /dev/sda", "→/dev/sda");
    check("echo 2 > f", "echo·2→f");
    check("bash <(curl x)", "bash·/dev/fd/63[curl·x]");
}

#[test]
fn here_documents_are_taken_out() {
    check(
        "cat <<EOF | sh\nrm x\nEOF\nls",
        "cat«rm x» ; |sh«rm x» ; ls",
    );
    check("sh <<-'END'\n\tls\n\tEND\n", "sh«ls»");
    check("sh <<< 'rm x'", "sh«rm x»");
    check("sh <<EOF\nnever ends", "sh«never ends»");
    check("sh << 'EOF", "sh«»");
}

#[test]
fn deep_nesting_is_refused() {
    assert_eq!(parse(&"$(".repeat(100)), Err(TooComplex));
    assert_eq!(parse(&"(".repeat(100)), Err(TooComplex));
}
