//! A refused command stays refused, however it is written.

use hermes_core::Consent;
use hermes_policy::consent_for;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Commands nobody may run, as lists of words.
const REFUSED: &[&[&str]] = &[
    &["reboot"],
    &["shutdown", "-h", "now"],
    &["rm", "-rf", "/"],
    &["rm", "-rf", "/etc"],
    &["rm", "-r", "-f", "/home/*"],
    &["mkfs.ext4", "/dev/sda1"],
    &["dd", "if=/dev/zero", "of=/dev/sda"],
    &["systemctl", "poweroff"],
    &["kill", "-9", "-1"],
    &["init", "0"],
];

type Rewrite = fn(&str) -> String;

/// Ways to write a line, each of which makes a shell run the same.
const WAYS: &[(&str, Rewrite)] = &[
    ("spaces around", |line| format!("  {line} \t")),
    ("after a line", |line| format!("true\n{line}")),
    ("before a line", |line| format!("{line}\ntrue")),
    ("after a comment", |line| format!("# all fine\n{line}")),
    ("before a comment", |line| format!("{line} # all fine")),
    ("after a semicolon", |line| format!("cd x; {line}")),
    ("after and", |line| format!("true && {line}")),
    ("after or", |line| format!("false || {line}")),
    ("in the background", |line| format!("{line} & sleep 1")),
    ("piped on", |line| format!("{line} | cat")),
    ("with input", |line| format!("echo y | {line}")),
    ("quietly", |line| format!("{line} >/dev/null 2>&1")),
    ("negated", |line| format!("! {line}")),
    ("timed", |line| format!("time {line}")),
    ("subshell", |line| format!("(cd x; {line})")),
    ("group", |line| format!("{{ {line}; }}")),
    ("if", |line| format!("if true; then {line}; fi")),
    ("condition", |line| format!("if {line}; then true; fi")),
    ("else", |line| {
        format!("if false; then :; elif false; then :; else {line}; fi")
    }),
    ("for", |line| format!("for i in 1 2; do {line}; done")),
    ("while", |line| {
        format!("while true; do {line}; break; done")
    }),
    ("until", |line| format!("until {line}; do sleep 1; done")),
    ("case", |line| format!("case a in a) {line};; esac")),
    ("function", |line| format!("f() {{ {line}; }}; f")),
    ("function with keyword", |line| {
        format!("function f {{ {line}\n}}\nf")
    }),
    ("function in a subshell", |line| {
        format!("f() ( {line} )\nf")
    }),
    ("arguments of a function", |line| {
        format!("f() {{ \"$@\"; }}; f {line}")
    }),
    ("arguments", |line| format!("set -- {line}; \"$@\"")),
    ("array", |line| format!("a=({line}); \"${{a[@]}}\"")),
    ("substitution", |line| format!("echo \"$({line})\"")),
    ("backticks", |line| {
        let escaped = line
            .replace('\\', r"\\")
            .replace('`', r"\`")
            .replace('$', r"\$");
        format!("x=`{escaped}`")
    }),
    ("default value", |line| format!("echo ${{none:-$({line})}}")),
    ("arithmetic", |line| format!("echo $(( $({line}) + 1 ))")),
    ("process substitution", |line| format!("cat <({line})")),
    ("output substitution", |line| format!("ls > >({line})")),
    ("unquoted here-document", |line| {
        format!("cat <<END\n$({line})\nEND")
    }),
    ("here-document of a shell", |line| {
        format!("bash <<'END'\n{line}\nEND")
    }),
    ("here-document with tabs", |line| {
        format!("sh <<-'END'\n\t{line}\n\tEND")
    }),
    ("here-string", |line| format!("bash <<< {}", quoted(line))),
    ("printed into a shell", |line| {
        format!("echo {} | bash", quoted(line))
    }),
    ("formatted into a shell", |line| {
        format!("printf '%s\\n' {} | sh -s", quoted(line))
    }),
    ("encoded", |line| {
        format!("echo {} | base64 -d | bash", base64(line))
    }),
    ("encoded and substituted", |line| {
        format!("eval \"$(base64 -d <<< {})\"", base64(line))
    }),
    ("as hexadecimal", |line| {
        format!("echo {} | xxd -r -p | sh", hex(line))
    }),
    ("backwards", |line| {
        let reversed = line
            .split('\n')
            .map(|line| line.chars().rev().collect::<String>());
        let reversed = reversed.collect::<Vec<_>>().join("\n");
        format!("echo {} | rev | sh", quoted(&reversed))
    }),
    ("sourced", |line| format!("source <(echo {})", quoted(line))),
    ("eval", |line| format!("eval {}", quoted(line))),
    ("bash -c", |line| format!("bash -c {}", quoted(line))),
    ("sh with options", |line| {
        format!("/bin/sh -xec {}", quoted(line))
    }),
    ("variable", |line| {
        format!("x={}; eval \"$x\"", quoted(line))
    }),
    ("variable unquoted", |line| {
        format!("x={}; $x", quoted(line))
    }),
    ("exported to a shell", |line| {
        format!("export x={}; bash -c '$x'", quoted(line))
    }),
    ("trap", |line| format!("trap {} EXIT", quoted(line))),
    ("alias", |line| format!("alias x={}\nx", quoted(line))),
    ("sudo", |line| format!("sudo -n -u root {line}")),
    ("doas", |line| format!("doas {line}")),
    ("env", |line| format!("env -i A=1 {line}")),
    ("assignment", |line| format!("A=1 B='2 3' {line}")),
    ("nohup", |line| format!("nohup {line} &")),
    ("timeout", |line| format!("timeout -k 5 10 {line}")),
    ("nice", |line| format!("nice -n 19 ionice -c 3 {line}")),
    ("setsid", |line| format!("setsid -f {line}")),
    ("stdbuf", |line| format!("stdbuf -oL {line}")),
    ("command", |line| format!("command {line}")),
    ("exec", |line| format!("exec {line}")),
    ("xargs", |line| format!("echo 1 | xargs -I_ {line}")),
    ("find", |line| {
        format!("find . -maxdepth 0 -exec {line} \\;")
    }),
    ("busybox", |line| format!("busybox {line}")),
    ("su", |line| format!("su root -c {}", quoted(line))),
    ("watch", |line| format!("watch -n 1 {line}")),
    ("flock", |line| format!("flock /tmp/lock {line}")),
    ("python", |line| {
        format!("python3 -c 'import os; os.system(\"{line}\")'")
    }),
];

/// Ways to write one word.
const SPELLINGS: &[(&str, Rewrite)] = &[
    ("plain", str::to_owned),
    ("single quotes", |word| format!("'{word}'")),
    ("double quotes", |word| format!("\"{word}\"")),
    ("empty quotes inside", |word| inside(word, "''")),
    ("backslash", |word| format!("\\{word}")),
    ("line broken", |word| inside(word, "\\\n")),
    ("half quoted", |word| {
        format!("{}\"{}\"", &word[..1], &word[1..])
    }),
    ("no arguments inside", |word| inside(word, "$@")),
    ("C string", |word| {
        let escaped: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
        format!("$'{escaped}'")
    }),
    ("printed", |word| format!("$(printf %s '{word}')")),
    ("echoed", |word| format!("`echo '{word}'`")),
    ("default", |word| format!("${{nothing:-{word}}}")),
];

fn inside(word: &str, piece: &str) -> String {
    format!("{}{piece}{}", &word[..1], &word[1..])
}

fn quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', r"'\''"))
}

fn base64(line: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(line)
}

fn hex(line: &str) -> String {
    line.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn is_forbidden(line: &str) -> bool {
    matches!(consent_for(line), Consent::Forbidden { .. })
}

#[test]
fn a_refused_command_is_refused_in_every_way_of_writing_it() {
    assert!(WAYS.len() >= 50);
    let mut missed = Vec::new();
    for words in REFUSED {
        let line = words.join(" ");
        assert!(is_forbidden(&line), "{line}");
        for (name, rewrite) in WAYS {
            let rewritten = rewrite(&line);
            if !is_forbidden(&rewritten) {
                missed.push(format!("{name}: {rewritten}"));
            }
        }
        for (name, spell) in SPELLINGS {
            let spelt: Vec<String> = words.iter().map(|word| spell(word)).collect();
            if !is_forbidden(&spelt.join(" ")) {
                missed.push(format!("{name}: {}", spelt.join(" ")));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

proptest! {
    /// Any spelling of the words, then any two ways around it.
    #[test]
    fn disguises_do_not_help_one_another(
        words in select(REFUSED),
        spellings in prop::collection::vec(any::<Index>(), 4),
        way in select(WAYS),
        other_way in select(WAYS),
    ) {
        let mut spelt = Vec::new();
        for (word, index) in words.iter().zip(&spellings) {
            spelt.push((index.get(SPELLINGS).1)(word));
        }
        let line = spelt.join(" ");
        let means_another = is_for_plain_words(way.0)
            || is_for_plain_words(other_way.0)
            || (is_for_words(other_way.0) && !is_one_command(way.0));
        if means_another {
            return Ok(());
        }
        let line = other_way.1(&way.1(&line));
        prop_assert!(is_forbidden(&line), "{} in {}: {line}", way.0, other_way.0);
    }
}

/// Ways that put a program before the words, or the words into an array: around more than one command they mean another
/// line.
fn is_for_words(way: &str) -> bool {
    [
        "arguments of a function",
        "arguments",
        "array",
        "sudo",
        "doas",
        "env",
        "assignment",
        "nohup",
        "timeout",
        "nice",
        "setsid",
        "stdbuf",
        "command",
        "exec",
        "xargs",
        "find",
        "busybox",
        "watch",
        "flock",
        "time",
        "alias",
        "with input",
        "negated",
        "timed",
    ]
    .contains(&way)
}

/// Ways in which the shell's spellings are not undone again: the quotes in a variable's value are text, and other
/// languages have their own.
fn is_for_plain_words(way: &str) -> bool {
    ["python", "variable unquoted", "exported to a shell"].contains(&way)
}

/// Ways that leave a line one simple command.
fn is_one_command(way: &str) -> bool {
    [
        "bash -c",
        "sh with options",
        "su",
        "sudo",
        "doas",
        "env",
        "timeout",
        "nice",
        "setsid",
        "stdbuf",
        "busybox",
        "flock",
    ]
    .contains(&way)
}
