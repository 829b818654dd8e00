//! The dangers we know, one row each.

use crate::shell::Command;

use super::Verdict;
use super::call::Call;
use super::places::{is_block_device, is_lasting_absolute, is_vital, why_sensitive};
use super::wrappers::unwrap;

/// One danger.
struct Rule {
    programs: &'static [&'static str],
    applies: fn(&Call<'_>) -> bool,
    severity: Severity,
    /// Completes "this command …".
    reason: &'static str,
}

#[derive(Clone, Copy)]
enum Severity {
    Ask,
    Forbid,
}

use Severity::{Ask, Forbid};

const fn rule(
    severity: Severity,
    programs: &'static [&'static str],
    applies: fn(&Call<'_>) -> bool,
    reason: &'static str,
) -> Rule {
    Rule {
        programs,
        applies,
        severity,
        reason,
    }
}

const SHELLS: &[&str] = &["bash", "sh", "zsh", "ksh", "dash", "fish", "su"];
const INTERPRETERS: &[&str] = &["python", "node", "perl", "ruby", "php", "deno", "bun"];
const POWERSHELLS: &[&str] = &["powershell", "pwsh"];
const POWER: &[&str] = &["shutdown", "reboot", "halt", "poweroff"];
const POWER_ACTIONS: &[&str] = &["poweroff", "reboot", "halt", "kexec"];
const COPIERS: &[&str] = &["cp", "mv", "install", "ln"];
const EDITORS_IN_PLACE: &[&str] = &["sed", "perl", "ruby"];

/// Every danger, worst first; the first that applies gives the reason.
const RULES: &[Rule] = &[
    rule(
        Forbid,
        &["rm"],
        |call| call.operands().any(is_vital),
        "deletes the system or a whole home folder",
    ),
    rule(
        Forbid,
        &["find"],
        |call| deletes(call) && call.operands().any(is_vital),
        "deletes the system or a whole home folder",
    ),
    rule(
        Forbid,
        &["mkfs", "mke2fs", "mkswap"],
        always,
        "formats a disk",
    ),
    rule(
        Forbid,
        &["dd"],
        |call| call.value("of=").is_some_and(is_block_device),
        "overwrites a disk",
    ),
    rule(
        Forbid,
        &["tee", "shred", "wipefs", "blkdiscard"],
        |call| call.operands().any(is_block_device),
        "overwrites a disk",
    ),
    rule(
        Forbid,
        COPIERS,
        |call| call.operands().last().is_some_and(is_block_device),
        "overwrites a disk",
    ),
    rule(Forbid, POWER, always, "turns the machine off"),
    rule(
        Forbid,
        &["init", "telinit"],
        |call| call.has_word(&["0", "6"]),
        "turns the machine off",
    ),
    rule(
        Forbid,
        &["systemctl"],
        |call| call.has_word(POWER_ACTIONS),
        "turns the machine off",
    ),
    rule(
        Forbid,
        &["kill"],
        |call| call.args.last().is_some_and(|last| last == "-1"),
        "kills every process of the user",
    ),
    rule(Ask, &["sudo", "doas", "su"], always, "runs as another user"),
    rule(
        Ask,
        &["rm"],
        |call| call.has('r', "--recursive") || call.has('R', "--recursive"),
        "deletes folders and everything in them",
    ),
    rule(
        Ask,
        &["rm"],
        |call| call.operands().any(is_lasting_absolute),
        "deletes files by absolute path",
    ),
    rule(
        Ask,
        &["rm", "shred"],
        |call| call.by_xargs,
        "deletes files it is given by another program",
    ),
    rule(Ask, &["find"], deletes, "deletes files it finds"),
    rule(Ask, &["shred"], always, "destroys the content of files"),
    rule(
        Ask,
        &["dd"],
        |call| call.value("if=").is_some(),
        "copies raw data over its target",
    ),
    rule(
        Ask,
        &["chmod"],
        |call| call.has_word(&["777", "0777", "666", "0666", "o+w", "a+w"]),
        "lets everybody write",
    ),
    rule(
        Ask,
        &["chown", "chgrp"],
        |call| call.has('R', "--recursive"),
        "changes the owner of whole folders",
    ),
    rule(
        Ask,
        &["systemctl", "service"],
        |call| call.has_word(&["stop", "restart", "disable", "mask", "kill"]),
        "stops services",
    ),
    rule(
        Ask,
        &["docker", "podman", "docker-compose"],
        |call| call.has_word(&["stop", "restart", "kill", "down", "rm", "rmi", "prune"]),
        "stops or deletes containers",
    ),
    rule(
        Ask,
        &["hermes"],
        |call| {
            call.begins("update") || (call.begins("gateway") && call.has_word(&["stop", "restart"]))
        },
        "stops or replaces Hermes itself",
    ),
    rule(
        Ask,
        &["pkill", "killall"],
        |call| call.has_kill_signal() || call.has('r', "--regexp") || call.names_us(),
        "kills processes by name",
    ),
    rule(
        Ask,
        &["kill"],
        |call| call.has_kill_signal(),
        "kills processes without letting them clean up",
    ),
    rule(
        Ask,
        &["kill"],
        |call| call.substitutes(&["pgrep", "pidof"]),
        "kills processes by name",
    ),
    rule(
        Ask,
        &["git"],
        |call| call.git("reset") && call.has_word(&["--hard"]),
        "throws away uncommitted changes",
    ),
    rule(
        Ask,
        &["git"],
        |call| call.git("clean") && call.has('f', "--force"),
        "deletes files that are not under version control",
    ),
    rule(
        Ask,
        &["git"],
        |call| call.git("push") && forces_push(call),
        "overwrites history or branches on the server",
    ),
    rule(
        Ask,
        &["git"],
        |call| call.git("branch") && deletes_branch(call),
        "deletes a branch that may not be merged",
    ),
    rule(
        Ask,
        SHELLS,
        |call| call.inline_script('c').is_some(),
        "runs a command given as text",
    ),
    rule(
        Ask,
        SHELLS,
        reads_script_from_input,
        "runs a script it is given as input",
    ),
    rule(
        Ask,
        SHELLS,
        |call| !call.command.substitutions.is_empty(),
        "runs a shell on what another program prints",
    ),
    rule(
        Ask,
        INTERPRETERS,
        runs_inline_code,
        "runs code given as text",
    ),
    rule(
        Ask,
        INTERPRETERS,
        reads_script_from_input,
        "runs code it is given as input",
    ),
    rule(
        Ask,
        POWERSHELLS,
        |call| !call.args.is_empty(),
        "runs code given as text",
    ),
    rule(
        Ask,
        &["cmd", "cmd.exe"],
        |call| call.has_word(&["del", "erase", "rd", "rmdir"]),
        "deletes files",
    ),
    rule(
        Ask,
        &["eval", "source", "."],
        |call| !call.command.substitutions.is_empty(),
        "runs what another program prints",
    ),
    rule(
        Ask,
        &["rg"],
        |call| call.has_long(&["--pre", "--hostname-bin"]),
        "runs another program on files",
    ),
    rule(
        Ask,
        &["sort"],
        |call| call.has_long(&["--compress-program"]),
        "runs another program on files",
    ),
    rule(
        Ask,
        &["ag"],
        |call| call.has_long(&["--pager"]),
        "runs another program on files",
    ),
    rule(
        Ask,
        &["man"],
        |call| call.has('P', "--pager") || call.has('H', "--html"),
        "runs another program on files",
    ),
];

fn always(_call: &Call<'_>) -> bool {
    true
}

/// Judges one program with its arguments.
pub(super) fn judge_call(call: &Call<'_>) -> Verdict {
    let program = call.family();
    let known = RULES
        .iter()
        .filter(|rule| rule.programs.contains(&program))
        .find(|rule| (rule.applies)(call));
    let known = known.map_or(Verdict::Free, |rule| match rule.severity {
        Ask => Verdict::ask(rule.reason),
        Forbid => Verdict::forbid(rule.reason),
    });
    let computed = match call.program.contains('$') {
        true => Verdict::ask("runs a program whose name is only known when it runs"),
        false => Verdict::Free,
    };
    let written = written_by(call)
        .into_iter()
        .map(judge_written)
        .fold(Verdict::Free, Verdict::or);
    known.or(computed).or(written)
}

/// Judges a file that is written to.
pub(super) fn judge_written(path: &str) -> Verdict {
    if is_block_device(path) {
        return Verdict::forbid("overwrites a disk");
    }
    why_sensitive(path).map_or(Verdict::Free, Verdict::ask)
}

/// Judges what only shows when commands are seen together.
pub(super) fn judge_together(commands: &[Command]) -> Verdict {
    let calls: Vec<Call<'_>> = commands.iter().flat_map(unwrap).collect();
    let made = calls.iter().position(|call| {
        call.program == "chmod" && call.args.iter().any(|arg| arg.ends_with("+x"))
    });
    let is_run = |from: usize| calls[from..].iter().any(|call| call.path.starts_with("./"));
    match made.is_some_and(is_run) {
        true => Verdict::ask("makes a file a program and runs it"),
        false => Verdict::Free,
    }
}

/// Judges SQL anywhere in a line: it may be an argument, a here-document or piped.
pub(super) fn judge_sql(line: &str) -> Verdict {
    let line = line.to_lowercase();
    let words: Vec<&str> = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let has_pair = |first: &str, seconds: &[&str]| {
        words
            .windows(2)
            .any(|pair| pair[0] == first && seconds.contains(&pair[1]))
    };
    if has_pair("drop", &["table", "database", "schema"]) || has_pair("truncate", &["table"]) {
        return Verdict::ask("deletes a database or its tables");
    }
    if has_pair("delete", &["from"]) && !words.contains(&"where") {
        return Verdict::ask("deletes every row of a table");
    }
    Verdict::Free
}

/// Returns shell lines that a program will run: they are judged in turn.
pub(super) fn lines_run_by(call: &Call<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if SHELLS.contains(&call.program) {
        lines.extend(call.inline_script('c').map(str::to_owned));
        lines.extend(call.command.here_document.clone());
    }
    if call.program == "eval" {
        lines.push(call.args.join(" "));
    }
    // `env -S "rm x"`, or a program name with spaces in quotes.
    if call.path.contains(char::is_whitespace) {
        lines.push(call.path.to_owned());
    }
    if call.program == "find" {
        lines.extend(find_actions(call).map(|words| words.join(" ")));
    }
    lines
}

/// Returns the programs that `find` runs, each with its words.
fn find_actions<'a>(call: &Call<'a>) -> impl Iterator<Item = Vec<&'a str>> {
    let is_action = |arg: &String| arg.starts_with("-exec") || arg.starts_with("-ok");
    let up_to_end = |words: &'a [String]| {
        let words = words.iter().map(String::as_str);
        words
            .take_while(|word| !matches!(*word, ";" | "+"))
            .collect()
    };
    call.args.split(is_action).skip(1).map(up_to_end)
}

fn deletes(call: &Call<'_>) -> bool {
    let is_rm = |word: &&str| word.rsplit('/').next() == Some("rm");
    let runs_rm = || find_actions(call).any(|words| words.iter().any(is_rm));
    call.has_word(&["-delete"]) || runs_rm()
}

fn forces_push(call: &Call<'_>) -> bool {
    call.has('f', "--force")
        || call.has_long(&["--force-with-lease", "--mirror", "--delete"])
        || call.operands().any(|operand| operand.starts_with('+'))
}

fn deletes_branch(call: &Call<'_>) -> bool {
    call.has('D', "-D") || (call.has('d', "--delete") && call.has('f', "--force"))
}

fn runs_inline_code(call: &Call<'_>) -> bool {
    ['c', 'e', 'p', 'r']
        .iter()
        .any(|flag| call.inline_script(*flag).is_some())
        || call.has_long(&["--eval", "--print"])
        || call.begins("eval")
}

fn reads_script_from_input(call: &Call<'_>) -> bool {
    let has_input = call.command.reads_pipe || call.command.here_document.is_some();
    let names_no_script = call.operands().all(|operand| operand == "-") || call.has('s', "-s");
    has_input && names_no_script
}

/// Returns the files a program changes, as far as its arguments say.
fn written_by<'a>(call: &Call<'a>) -> Vec<&'a str> {
    if call.program == "tee" {
        return call.operands().collect();
    }
    if COPIERS.contains(&call.program) {
        return call.operands().last().into_iter().collect();
    }
    if EDITORS_IN_PLACE.contains(&call.program) && call.edits_in_place() {
        return call.operands().collect();
    }
    Vec::new()
}
