//! The dangers we know, one row each.

use crate::judge::Verdict;
use crate::shell::{Budget, Command, TooComplex};

use super::call::Call;
use super::places::{
    is_block_device, is_lasting_absolute, is_power_switch, is_vital, joined, why_sensitive_in_line,
};
use super::questions::{
    deletes, deletes_branch, forces_push, forgets, gives_rights, is_narrowed, moves_vital,
    reads_password_from_input, reads_script_from_input, runs_inline_code, runs_script_as_text,
    starts_at_vital, throws_away, written_by,
};
use super::read_only::is_harmless;
use super::runs::SCHEDULERS;
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

pub(super) const SHELLS: &[&str] = &[
    "bash", "sh", "zsh", "ksh", "dash", "ash", "mksh", "fish", "rbash", "su",
];
pub(super) const INTERPRETERS: &[&str] = &["python", "node", "perl", "ruby", "php", "deno", "bun"];
const POWERSHELLS: &[&str] = &["powershell", "pwsh"];
const POWER: &[&str] = &["shutdown", "reboot", "halt", "poweroff"];
const POWER_ACTIONS: &[&str] = &["poweroff", "reboot", "halt", "kexec"];
pub(super) const COPIERS: &[&str] = &["cp", "mv", "install", "ln", "rsync", "scp"];
pub(super) const EDITORS_IN_PLACE: &[&str] = &["sed", "perl", "ruby"];

/// Programs beside those that change nothing in whose words SQL is only text.
const TEXT_PROGRAMS: &[&str] = &["ack", "ag", "awk", "git", "less", "man", "rg", "sed"];

/// Every danger, worst first; the first that applies gives the reason.
const RULES: &[Rule] = &[
    rule(
        Forbid,
        &["rm"],
        |call| call.paths().any(|path| is_vital(&path)),
        "deletes the system or a whole home folder",
    ),
    rule(
        Forbid,
        &["find"],
        |call| deletes(call) && !is_narrowed(call) && starts_at_vital(call),
        "deletes the system or a whole home folder",
    ),
    rule(
        Forbid,
        &["mkfs", "mke2fs", "mkswap", "mkdosfs", "mkntfs"],
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
        &["systemctl", "loginctl"],
        |call| call.has_word(POWER_ACTIONS),
        "turns the machine off",
    ),
    rule(
        Forbid,
        &["kill"],
        |call| call.args.last().is_some_and(|last| last == "-1"),
        "kills every process of the user",
    ),
    rule(
        Forbid,
        &["sudo"],
        reads_password_from_input,
        "gives sudo a password that nobody typed",
    ),
    rule(
        Ask,
        &["sudo", "doas", "su", "pkexec", "run0"],
        always,
        "runs as another user",
    ),
    rule(
        Ask,
        &["mv"],
        moves_vital,
        "moves the system or a whole home folder",
    ),
    rule(
        Ask,
        &["fdisk", "sfdisk", "gdisk", "sgdisk", "parted"],
        |call| !call.has('l', "--list"),
        "changes how a disk is divided",
    ),
    rule(
        Ask,
        &[
            "cryptsetup",
            "zpool",
            "zfs",
            "lvremove",
            "vgremove",
            "pvremove",
        ],
        |call| !call.has_word(&["list", "status", "get"]),
        "changes volumes of disks",
    ),
    rule(
        Ask,
        SCHEDULERS,
        |call| !call.has('l', "--list"),
        "runs commands later, when nobody looks",
    ),
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
        &["chmod"],
        gives_rights,
        "lets a program run with the rights of its owner",
    ),
    rule(
        Ask,
        &["chown", "chgrp"],
        |call| call.has('R', "--recursive"),
        "changes the owner of whole folders",
    ),
    rule(
        Ask,
        &["chmod"],
        |call| call.has('R', "--recursive") && call.paths().any(|path| is_vital(&path)),
        "changes who may use the system's files",
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
        throws_away,
        "throws away uncommitted changes",
    ),
    rule(
        Ask,
        &["git"],
        forgets,
        "throws away what could be brought back",
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
        runs_script_as_text,
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
        &["awk", "gawk", "mawk"],
        |call| {
            call.args
                .iter()
                .any(|arg| arg.contains("system(") || arg.contains('|'))
        },
        "runs other programs from code given as text",
    ),
    rule(
        Ask,
        &["tar"],
        |call| {
            call.has_long(&[
                "--checkpoint-action",
                "--to-command",
                "--use-compress-program",
            ])
        },
        "runs another program on files",
    ),
    rule(
        Ask,
        &["git"],
        |call| {
            call.args
                .windows(2)
                .any(|pair| pair[0] == "-c" && pair[1].contains("=!"))
        },
        "runs another program under the name of git",
    ),
    rule(
        Ask,
        &["nc", "ncat", "netcat", "socat"],
        |call| {
            call.has('e', "--exec")
                || call
                    .args
                    .iter()
                    .any(|arg| arg.to_lowercase().contains("exec:"))
        },
        "lets another machine run programs here",
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

/// Returns whether a program is judged here by its name.
pub(super) fn is_known(program: &str) -> bool {
    RULES.iter().any(|rule| rule.programs.contains(&program))
}

fn always(_call: &Call<'_>) -> bool {
    true
}

/// Judges one program with its arguments.
pub(super) fn judge_call(call: &Call<'_>, budget: &Budget) -> Result<Verdict, TooComplex> {
    call.spend_on_names(budget)?;
    let mut known = Verdict::Free;
    for rule in RULES {
        if !call.is_one_of(rule.programs) {
            continue;
        }
        call.spend_on_words(budget)?;
        if (rule.applies)(call) {
            known = match rule.severity {
                Ask => Verdict::ask(rule.reason),
                Forbid => Verdict::forbid(rule.reason),
            };
            break;
        }
    }
    let computed = if call.program.contains('$') {
        Verdict::ask("runs a program whose name is only known when it runs")
    } else {
        Verdict::Free
    };
    let written = written_by(call)
        .into_iter()
        .map(|path| judge_written(&joined(call.folder, path)))
        .fold(Verdict::Free, Verdict::or);
    Ok(known.or(computed).or(written))
}

/// Judges a file that is written to.
pub(super) fn judge_written(path: &str) -> Verdict {
    if is_block_device(path) {
        return Verdict::forbid("overwrites a disk");
    }
    if is_power_switch(path) {
        return Verdict::forbid("turns the machine off");
    }
    if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
        return Verdict::ask("sends data to another machine");
    }
    why_sensitive_in_line(path).map_or(Verdict::Free, Verdict::ask)
}

/// Returns whether a file is made a program.
pub(super) fn makes_program(call: &Call<'_>) -> bool {
    call.program == "chmod" && call.args.iter().any(|arg| arg.ends_with("+x"))
}

/// Judges SQL anywhere in a line: it may be an argument, a here-document or piped. Where no program of the line could
/// talk to a database, it is only text.
pub(super) fn judge_sql(line: &str, commands: &[Command]) -> Verdict {
    let is_text = |command: &Command| {
        let calls = unwrap(command, None);
        calls
            .last()
            .is_none_or(|call| is_harmless(call.program) || TEXT_PROGRAMS.contains(&call.program))
    };
    match why_sql_deletes(line) {
        Some(reason) if !commands.iter().all(is_text) => Verdict::ask(reason),
        _ => Verdict::Free,
    }
}

/// Says what SQL in a text would delete.
fn why_sql_deletes(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let has_pair = |first: &str, seconds: &[&str]| {
        words
            .windows(2)
            .any(|pair| pair[0] == first && seconds.contains(&pair[1]))
    };
    if has_pair("drop", &["table", "database", "schema"]) || has_pair("truncate", &["table"]) {
        return Some("deletes a database or its tables");
    }
    if has_pair("delete", &["from"]) && !words.contains(&"where") {
        return Some("deletes every row of a table");
    }
    None
}
