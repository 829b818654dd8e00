//! Finds the shell lines that a program will run in turn.

use super::call::Call;
use super::questions::find_actions;
use super::rules::{INTERPRETERS, SHELLS};
use crate::shell::{Budget, TooComplex};

/// A line that a program runs.
pub(super) struct Run {
    pub(super) line: String,
    /// What `$0`, `$1`, … are in it; none when they are what they were.
    pub(super) arguments: Vec<String>,
    /// It runs on another machine.
    pub(super) is_elsewhere: bool,
}

impl Run {
    fn here(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            arguments: Vec::new(),
            is_elsewhere: false,
        }
    }
}

/// Programs that read lines to run later.
pub(super) const SCHEDULERS: &[&str] = &["at", "batch", "crontab"];

/// Signs in code that it starts programs.
const STARTS_PROGRAMS: &[&str] = &[
    "system",
    "popen",
    "exec",
    "spawn",
    "subprocess",
    "Popen",
    "qx",
    "`",
];

/// Returns shell lines that a program will run: they are judged in turn.
pub(super) fn lines_run_by(call: &Call<'_>, budget: &Budget) -> Result<Vec<Run>, TooComplex> {
    let mut runs = Vec::new();
    if call.is_one_of(SHELLS) {
        runs.extend(script_of_shell(call));
    }
    if call.is_one_of(SHELLS) || call.is_one_of(SCHEDULERS) || call.is_one_of(&["source", "."]) {
        runs.extend(call.command.input.iter().map(Run::here));
        runs.extend(call.command.files.iter().map(Run::here));
    }
    match call.program {
        "eval" => runs.push(Run::here(call.args.join(" "))),
        "trap" => runs.extend(call.operands().next().map(Run::here)),
        "alias" => {
            let texts = call.args.iter().filter_map(|arg| arg.split_once('='));
            runs.extend(texts.map(|(_, text)| Run::here(text)));
        }
        "find" => runs.extend(find_actions(call).map(|words| Run::here(quoted(words)))),
        "fd" | "fdfind" => {
            let after = call.after(&["-x", "-X", "--exec", "--exec-batch"]);
            runs.extend(after.map(|words| Run::here(quoted(words.iter().map(String::as_str)))));
        }
        "script" | "flock" | "runuser" | "su" => {
            let script = call
                .inline_script('c')
                .or_else(|| call.long_value("--command"));
            runs.extend(script.map(Run::here));
        }
        "env" => runs.extend(split_string(call).map(Run::here)),
        "tar" => runs.extend(tar_programs(call).map(Run::here)),
        "git" => runs.extend(git_aliases(call).map(Run::here)),
        "ssh" => {
            // The first operand is the host; what values of options there are, are words of the line at worst.
            let line = call.operands().skip(1).collect::<Vec<_>>().join(" ");
            runs.push(Run {
                is_elsewhere: true,
                ..Run::here(line)
            });
        }
        _ => {}
    }
    if call.is_one_of(INTERPRETERS) || call.is_one_of(&["awk", "gawk", "mawk"]) {
        runs.extend(started_by_code(call).into_iter().map(Run::here));
    }
    if call.by_xargs {
        runs.extend(filled_by_xargs(call, budget)?.map(Run::here));
    }
    // `env -S "rm x"`, or a program name with spaces in quotes.
    if call.path.contains(char::is_whitespace) {
        runs.push(Run::here(call.path));
    }
    Ok(runs)
}

/// Returns the script after `-c` and its arguments.
fn script_of_shell(call: &Call<'_>) -> Option<Run> {
    let rest = call.after_script_flag()?;
    let options = rest
        .iter()
        .take_while(|arg| arg.starts_with(['-', '+']))
        .count();
    let (line, arguments) = rest[options..].split_first()?;
    let zeroth = if arguments.is_empty() {
        vec![call.program.to_owned()]
    } else {
        arguments.to_vec()
    };
    Some(Run {
        arguments: zeroth,
        ..Run::here(line)
    })
}

/// Returns the values of `env -S`.
fn split_string<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a str> {
    let value = |arg: &'a String| {
        arg.strip_prefix("-S")
            .or_else(|| arg.strip_prefix("--split-string="))
    };
    call.args.iter().filter_map(value)
}

fn tar_programs<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a str> {
    const OPTIONS: &[&str] = &[
        "--checkpoint-action=exec=",
        "--to-command=",
        "--use-compress-program=",
        "--rsh-command=",
    ];
    let value = |arg: &'a String| OPTIONS.iter().find_map(|option| arg.strip_prefix(option));
    call.args.iter().filter_map(value)
}

/// Returns the programs behind `git -c alias.x='!program'`.
fn git_aliases<'a>(call: &Call<'a>) -> impl Iterator<Item = &'a str> {
    let values = call.args.windows(2).filter(|pair| pair[0] == "-c");
    values.filter_map(|pair| Some(pair[1].split_once("=!")?.1))
}

/// Returns what `xargs` makes of input that is known.
fn filled_by_xargs(call: &Call<'_>, budget: &Budget) -> Result<Option<String>, TooComplex> {
    let Some(input) = call.command.input.as_deref() else {
        return Ok(None);
    };
    let words = std::iter::once(call.path).chain(call.args.iter().map(String::as_str));
    let places: usize = words.clone().map(|word| word.matches("{}").count()).sum();
    budget.spend(input.len() * places.max(1))?;
    let filled: Vec<String> = words.map(|word| word.replace("{}", input.trim())).collect();
    let more = input.split_whitespace().filter(|_| places == 0);
    Ok(Some(quoted(filled.iter().map(String::as_str).chain(more))))
}

/// Returns the texts in code that starts programs: each of them, and all together, may be what it starts.
fn started_by_code(call: &Call<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for code in call.args.iter().chain(&call.command.input) {
        if STARTS_PROGRAMS.iter().any(|sign| code.contains(sign)) {
            let texts = literals(code);
            lines.push(texts.join(" "));
            lines.extend(texts);
        }
    }
    lines
}

/// Literals of a piece of code that are looked at.
const LITERALS_MAX: usize = 64;

/// Returns what stands between quotes.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '\'', '`']) {
        let (quote, after) = (&rest[at..=at], &rest[at + 1..]);
        let Some((text, after)) = after.split_once(quote) else {
            break;
        };
        found.push(text.to_owned());
        rest = after;
        if found.len() == LITERALS_MAX {
            break;
        }
    }
    found
}

/// Writes words as a line in which each stays one word.
fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words = words.into_iter().map(|word| {
        if word.is_empty() || !word.chars().all(is_bare) {
            format!("'{}'", word.replace('\'', r"'\''"))
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns whether a character means itself without quotes.
fn is_bare(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(
            c,
            '/' | '.' | '-' | '_' | '=' | ':' | ',' | '+' | '@' | '%' | '~'
        )
}
