//! Questions of rules whose answer takes more than a line.

use super::call::Call;
use super::places::{is_home, is_vital, joined};
use super::rules::{COPIERS, EDITORS_IN_PLACE};

/// Returns the programs that `find` runs, each with its words.
pub(super) fn find_actions<'a>(call: &Call<'a>) -> impl Iterator<Item = Vec<&'a str>> {
    let is_action = |arg: &String| arg.starts_with("-exec") || arg.starts_with("-ok");
    let up_to_end = |words: &'a [String]| {
        let words = words.iter().map(String::as_str);
        words
            .take_while(|word| !matches!(*word, ";" | "+"))
            .collect()
    };
    call.args.split(is_action).skip(1).map(up_to_end)
}

pub(super) fn deletes(call: &Call<'_>) -> bool {
    let is_rm = |word: &&str| word.rsplit('/').next() == Some("rm");
    let runs_rm = || find_actions(call).any(|words| words.iter().any(is_rm));
    call.has_word(&["-delete"]) || runs_rm()
}

/// Returns whether `find` begins at the system or a home folder.
pub(super) fn starts_at_vital(call: &Call<'_>) -> bool {
    let is_option = |arg: &&String| matches!(arg.as_str(), "-H" | "-L" | "-P");
    let paths = call.args.iter().skip_while(is_option);
    let mut paths = paths.take_while(|arg| !arg.starts_with(['-', '(', '!']));
    paths.any(|path| is_vital(&joined(call.folder, path)))
}

/// Returns whether `mv` takes a vital folder away, or puts something into the system. Into a home people may move things.
pub(super) fn moves_vital(call: &Call<'_>) -> bool {
    let last = call.operands().count().saturating_sub(1);
    let mut paths = call.paths().enumerate();
    paths.any(|(at, path)| is_vital(&path) && (at < last || !is_home(&path)))
}

/// Returns whether `find` looks for something in particular.
pub(super) fn is_narrowed(call: &Call<'_>) -> bool {
    const TESTS: &[&str] = &[
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-mtime",
        "-mmin",
        "-newer",
        "-size",
    ];
    let is_choice = |pattern: &str| pattern.chars().any(|c| !matches!(c, '*' | '?' | '.' | '/'));
    call.args
        .windows(2)
        .any(|pair| TESTS.contains(&pair[0].as_str()) && is_choice(&pair[1]))
}

/// Returns whether sudo is to take its password from what another program prints.
pub(super) fn reads_password_from_input(call: &Call<'_>) -> bool {
    // Only sudo's own options: those after the program are the program's.
    let own = call.args.iter().take_while(|arg| arg.starts_with('-'));
    let mut own = own.filter(|arg| !arg.starts_with("--") || *arg == "--stdin");
    own.any(|arg| arg == "--stdin" || arg.contains('S'))
}

pub(super) fn forces_push(call: &Call<'_>) -> bool {
    call.has('f', "--force")
        || call.has_long(&["--force-with-lease", "--mirror", "--delete", "--prune"])
        || call
            .operands()
            .any(|operand| operand.starts_with(['+', ':']))
}

/// Returns whether git puts files back as they were, all of them, whatever was done to them since.
pub(super) fn throws_away(call: &Call<'_>) -> bool {
    let is_all = call.has_word(&[".", "./", ":/", "*", ":"]);
    let checks_out = call.git("checkout") || call.git("restore");
    let only_unstages = call.has('S', "--staged") && !call.has('W', "--worktree");
    (call.git("checkout") && call.has('f', "--force"))
        || (call.git("switch")
            && (call.has('f', "--force") || call.has_long(&["--discard-changes"])))
        || (checks_out && is_all && !only_unstages)
        || (call.git("rm") && call.has('r', "-r") && !call.has_long(&["--cached"]))
        || (call.git("worktree") && call.has_word(&["remove"]) && call.has('f', "--force"))
}

/// Returns whether git forgets what it keeps for those who made a mistake.
pub(super) fn forgets(call: &Call<'_>) -> bool {
    (call.git("stash") && call.has_word(&["drop", "clear"]))
        || (call.git("reflog") && call.has_word(&["expire", "delete"]))
        || (call.git("gc") && call.has_long(&["--prune"]))
        || (call.git("update-ref") && call.has('d', "-d"))
        || call.git("prune")
}

/// Returns whether a program is to run with the rights of its owner: `u+s`, `4755`.
pub(super) fn gives_rights(call: &Call<'_>) -> bool {
    let is_set = |arg: &String| {
        let is_octal = arg.len() >= 4 && arg.chars().all(|c| ('0'..='7').contains(&c));
        let digits = arg.trim_start_matches('0');
        let is_high = is_octal && digits.len() >= 4;
        let is_symbolic = arg.split(',').any(|part| {
            part.split_once(['+', '=']).is_some_and(|(who, what)| {
                who.chars().all(|c| "ugoa".contains(c)) && what.contains('s')
            })
        });
        is_high || is_symbolic
    };
    call.args
        .first()
        .into_iter()
        .chain(call.args.get(1))
        .any(is_set)
}

pub(super) fn deletes_branch(call: &Call<'_>) -> bool {
    call.has('D', "-D") || (call.has('d', "--delete") && call.has('f', "--force"))
}

pub(super) fn runs_script_as_text(call: &Call<'_>) -> bool {
    call.after_script_flag().is_some() || call.has_long(&["--command"])
}

pub(super) fn runs_inline_code(call: &Call<'_>) -> bool {
    let is_attached = |arg: &String| ["-c", "-e", "-E"].iter().any(|flag| arg.starts_with(flag));
    ['c', 'e', 'E', 'p', 'r']
        .iter()
        .any(|flag| call.inline_script(*flag).is_some())
        || call.args.first().is_some_and(is_attached)
        || call.has_long(&["--eval", "--print"])
        || call.begins("eval")
}

pub(super) fn reads_script_from_input(call: &Call<'_>) -> bool {
    let has_input = call.command.reads_pipe || call.command.reads_here_document;
    let names_no_script = call.operands().all(|operand| operand == "-") || call.has('s', "-s");
    has_input && names_no_script
}

/// Returns the files a program changes, as far as its arguments say.
pub(super) fn written_by<'a>(call: &Call<'a>) -> Vec<&'a str> {
    match call.program {
        "tee" | "truncate" | "sponge" => return call.operands().collect(),
        "dd" => return call.value("of=").into_iter().collect(),
        "curl" | "wget" => {
            let options = ["-o", "-O", "--output", "--output-document"];
            let next = call.after(&options).and_then(<[_]>::first);
            return next.map(String::as_str).into_iter().collect();
        }
        _ => {}
    }
    if COPIERS.contains(&call.program) {
        let target = call.long_value("--target-directory");
        let target = target.or_else(|| call.after(&["-t"])?.first().map(String::as_str));
        return target
            .or_else(|| call.operands().last())
            .into_iter()
            .collect();
    }
    if EDITORS_IN_PLACE.contains(&call.program) && call.edits_in_place() {
        return call.operands().collect();
    }
    Vec::new()
}
