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
    assert_eq!(
        show(&parse(line, &Budget::default()).unwrap()),
        expected,
        "{line}"
    );
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
fn a_long_argument_hides_no_other() {
    let long = "x".repeat(10_000);
    let line = format!("f() {{ $1 \"$3\"; }}; f rm {long} /");
    let commands = parse(&line, &Budget::default()).unwrap();
    assert!(commands.iter().any(|command| command.words == ["rm", "/"]));
}

#[test]
fn deep_nesting_is_refused() {
    assert_eq!(
        parse(&"$(".repeat(100), &Budget::default()),
        Err(TooComplex)
    );
    assert_eq!(parse(&"(".repeat(100), &Budget::default()), Err(TooComplex));
}

#[test]
fn names_are_followed() {
    check("x=rm; $x -rf /", "x=rm ; rm·-rf·/");
    check("export x=rm; \"$x\" y", "export·x=rm ; rm·y");
    check("x=(a b); \"${x[@]}\" ${x[1]}", "a·b·b");
    check(
        "for x in a b; do c/$x; done",
        "for·x·in·a·b ; do·c/a·c/b ; done",
    );
    check("f() { a $1; }; f b", "a ; } ; f·b ; a·b ; }");
    check("alias x='a b'; x c", "alias·x=a b ; a·b·c");
    check("set -- a b; $2 \"$@\"", "set·--·a·b ; b·a·b");
    check("r$@m", "rm");
    check(
        "x=abc; ${x#a} ${x%c} ${x/b/d} ${x:1:1} ${x^^}",
        "x=abc ; bc·ab·adc·b·ABC",
    );
}

#[test]
fn braces_are_several_words() {
    check("{rm,-rf,/}", "rm·-rf·/");
    check("a{b,c{d,e}}f", "abf·acdf·acef");
    check("{a..c} {1..3} {} {a}", "a·b·c·{1..3}·{}·{a}");
    check("'{a,b}'", "{a,b}");
    assert_eq!(
        parse(&"{a,b}".repeat(100), &Budget::default()),
        Err(TooComplex)
    );
}

#[test]
fn what_programs_print_is_followed() {
    check(
        "$(echo cm0= | base64 -d) x",
        "rm·x[echo·cm0= ; |base64·-d«cm0=»]",
    );
    check("$(echo mr | rev)", "rm[echo·mr ; |rev«mr»]");
    check(
        "$(echo 726d | xxd -r -p)",
        "rm[echo·726d ; |xxd·-r·-p«726d»]",
    );
    check(
        "$(echo ez | tr a-z n-za-m)",
        "rm[echo·ez ; |tr·a-z·n-za-m«ez»]",
    );
    check("$(printf '\\x72%s' m)", "rm[printf·\\x72%s·m]");
}

#[test]
fn arithmetic_is_no_command_and_no_here_document() {
    check("echo $((1 << 2))\nb", "echo·$() ; b");
    check("((x = 1 << 2))\nb", "b");
    check("echo $(( $(a) ))", "echo·$()[a]");
}
