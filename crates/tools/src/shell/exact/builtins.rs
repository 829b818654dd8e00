//! The shell's built-in commands, in the forms that are understood.

use super::names::why_decides;
use super::reading::{Arg, Origin, Piece};
use super::values::{Values, value_of};
use super::{Outcome, not_understood};

/// Do nothing that could run a program or change what words mean, whatever their words.
const PLAIN: &[&str] = &[
    ":", "true", "false", "echo", "pwd", "type", "times", "umask", "ulimit", "exit", "return",
    "break", "continue", "dirs", "pushd", "popd", "cd", "disown", "kill",
];

/// Not understood in any form.
const REFUSED: &[&str] = &[
    "alias",
    "bg",
    "bind",
    "builtin",
    "caller",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "enable",
    "eval",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "let",
    "logout",
    "mapfile",
    "readarray",
    "readonly",
    "shift",
    "shopt",
    "suspend",
    "trap",
    "typeset",
    "unalias",
];

/// Understood in the forms that the functions below know.
const CHECKED: &[&str] = &[
    "[", "test", "printf", "read", "export", "local", "unset", "set", "wait", "jobs", "command",
    "exec", "source", ".",
];

pub(super) fn is_builtin(name: &str) -> bool {
    [PLAIN, REFUSED, CHECKED]
        .iter()
        .any(|list| list.contains(&name))
}

/// Checks a built-in command, and takes note of what it sets.
pub(super) fn check(name: &str, args: &[Arg], values: &mut Values) -> Outcome<()> {
    if REFUSED.contains(&name) {
        return not_understood(format!(
            "uses `{name}`, which changes what later words mean,"
        ));
    }
    match name {
        "[" | "test" => check_test(args),
        "printf" => check_printf(args),
        "read" => check_read(args, values),
        "export" | "local" => check_export(name, args, values),
        "unset" => check_unset(args, values),
        "set" => check_set(args),
        "wait" | "jobs" => check_numbers(name, args),
        "source" | "." => check_source(args),
        _ => Ok(()),
    }
}

/// Returns the words that `command` and `exec` run; None where they only look.
pub(super) fn run_by<'a>(name: &str, args: &'a [Arg]) -> Outcome<Option<&'a [Arg]>> {
    let first = args.first().and_then(Arg::literal);
    match (name, first.as_deref()) {
        ("command", Some("-v" | "-V")) => Ok(None),
        (_, Some("export" | "local" | "exec" | "command" | "." | "source")) => {
            not_understood(format!("uses `{name}` before another word of the shell"))
        }
        (_, Some(word)) if !word.starts_with('-') && !word.is_empty() => Ok(Some(args)),
        _ => not_understood(format!("uses `{name}` in a form that is not known")),
    }
}

fn check_source(args: &[Arg]) -> Outcome<()> {
    let path = args.first().and_then(Arg::literal);
    let activates =
        path.is_some_and(|path| path == "bin/activate" || path.ends_with("/bin/activate"));
    if args.len() == 1 && activates {
        return Ok(());
    }
    not_understood("runs the commands in a file as its own")
}

/// `-e`, `-u` and `-o pipefail` end a line sooner; nothing else is known.
fn check_set(args: &[Arg]) -> Outcome<()> {
    let known = [
        "-e", "-u", "-eu", "-ue", "-euo", "-ueo", "-eo", "-uo", "-o", "+e", "+u", "+eu", "+o",
        "pipefail", "errexit", "nounset",
    ];
    let mut texts = Vec::new();
    for arg in args {
        match arg.literal() {
            Some(text) if known.contains(&text.as_str()) => texts.push(text),
            _ => return not_understood("uses `set`, which changes what later words mean,"),
        }
    }
    // A word that is no option's value would replace the arguments.
    let is_value = |at: usize| at > 0 && texts[at - 1].ends_with('o');
    let mut words = texts
        .iter()
        .enumerate()
        .filter(|(_, text)| !text.starts_with(['-', '+']));
    if texts.is_empty() || words.any(|(at, _)| !is_value(at)) {
        return not_understood("uses `set`, which changes what later words mean,");
    }
    Ok(())
}

/// `-v` would set a variable, and compute which.
fn check_printf(args: &[Arg]) -> Outcome<()> {
    let Some(first) = args.first() else {
        return Ok(());
    };
    let is_option = first.may_be_option() && first.literal().as_deref() != Some("--");
    if is_option || (first.is_many && first.is_unknown()) {
        return not_understood("uses `printf` with an option or an unknown format");
    }
    Ok(())
}

fn check_read(args: &[Arg], values: &mut Values) -> Outcome<()> {
    let unknown = || not_understood("uses `read` in a form that is not known");
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(text) = arg.literal() else {
            return unknown();
        };
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            set_name(&text, values)?;
            continue;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'r' | 's' => {}
                'p' | 't' | 'n' | 'd' | 'N' | 'u' => {
                    let is_last = at + 1 == letters.len();
                    if is_last && args.next().is_none_or(|value| value.is_many) {
                        return unknown();
                    }
                    break;
                }
                _ => return unknown(),
            }
        }
    }
    values.set("REPLY", None);
    Ok(())
}

fn set_name(name: &str, values: &mut Values) -> Outcome<()> {
    if !is_name(name) {
        return not_understood("sets a variable whose name is computed");
    }
    if let Some(why) = why_decides(name, None) {
        return not_understood(why);
    }
    values.set(name, None);
    Ok(())
}

fn check_export(builtin: &str, args: &[Arg], values: &mut Values) -> Outcome<()> {
    for arg in args {
        let beginning = arg.beginning();
        let (name, has_value) = match beginning.split_once('=') {
            Some((name, _)) => (name, true),
            None => (beginning.as_str(), false),
        };
        let is_whole = has_value || arg.literal().is_some();
        if !is_whole
            || !is_name(name)
            || arg
                .pieces
                .iter()
                .any(|piece| matches!(piece, Piece::Glob(_)))
        {
            return not_understood(format!("uses `{builtin}` in a form that is not known"));
        }
        if !has_value {
            if name != "PATH" {
                set_name(name, values)?;
            }
            continue;
        }
        let value = value_after_name(arg, name);
        if let Some(why) = why_decides(name, value.literal().as_deref()) {
            return not_understood(why);
        }
        values.set(name, value_of(&value));
    }
    Ok(())
}

/// Returns the value of a word `name=value`.
fn value_after_name(arg: &Arg, name: &str) -> Arg {
    let mut value = arg.clone();
    value.is_many = false;
    if let Some(Piece::Text(text)) = value.pieces.first_mut() {
        *text = text[name.len() + 1..].to_owned();
        if text.is_empty() && value.pieces.len() > 1 {
            value.pieces.remove(0);
        }
    }
    value
}

fn check_unset(args: &[Arg], values: &mut Values) -> Outcome<()> {
    for arg in args {
        match arg.literal() {
            Some(text) if text == "-v" => {}
            Some(name) => set_name(&name, values)?,
            None => return not_understood("forgets a variable whose name is computed"),
        }
    }
    Ok(())
}

fn check_numbers(name: &str, args: &[Arg]) -> Outcome<()> {
    let is_known = |arg: &Arg| match arg.literal() {
        Some(text) => ["-n", "-l", "-r", "-s", ""].contains(&text.as_str()) || is_job(&text),
        None => arg
            .pieces
            .iter()
            .all(|piece| *piece == Piece::Any(Origin::Number)),
    };
    if args.iter().all(is_known) {
        Ok(())
    } else {
        not_understood(format!("uses `{name}` in a form that is not known"))
    }
}

fn is_job(text: &str) -> bool {
    let digits = text.strip_prefix('%').unwrap_or(text);
    !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
}

const UNARY: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-n", "-p", "-r", "-s", "-t", "-u", "-w",
    "-x", "-z", "-G", "-L", "-N", "-O", "-S", "!",
];
const BINARY: &[&str] = &[
    "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
];

/// `-v` computes which variable is meant, so nothing unknown may stand where an operator could.
fn check_test(args: &[Arg]) -> Outcome<()> {
    let unknown = || not_understood("tests what may be more than a text");
    let is_number = |arg: &Arg| {
        let is_number =
            |piece: &Piece| matches!(piece, Piece::Text(_) | Piece::Any(Origin::Number));
        arg.pieces.iter().all(is_number)
    };
    if args.iter().any(|arg| arg.is_many && !is_number(arg)) {
        return unknown();
    }
    let texts: Vec<Option<String>> = args.iter().map(Arg::literal).collect();
    let texts: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
    if texts.iter().any(|text| matches!(text, Some("-v" | "-R"))) {
        return not_understood("tests whether a variable is set, which may compute its name");
    }
    let operands = match texts.as_slice() {
        [rest @ .., Some("]")] => rest,
        rest => rest,
    };
    let unary = |text: &Option<&str>| text.is_some_and(|text| UNARY.contains(&text));
    let binary = |text: &Option<&str>| text.is_some_and(|text| BINARY.contains(&text));
    let is_known = match operands {
        [] | [_] => true,
        [operator, _] => unary(operator) || operands.iter().all(Option::is_some),
        [_, operator, _] if binary(operator) => true,
        [Some("!"), operator, _] => unary(operator),
        [Some("!"), _, operator, _] => binary(operator),
        other => other.iter().all(Option::is_some),
    };
    if is_known { Ok(()) } else { unknown() }
}

pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}
