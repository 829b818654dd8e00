//! Finds the program behind words that only run another: `sudo -u root env X=1 nice rm …` runs `rm`.

use crate::shell::Command;

use super::call::Call;

/// A word that runs the words after it.
struct Wrapper {
    name: &'static str,
    /// One-letter options that take a value, which is then not the program.
    value_flags: &'static str,
    value_options: &'static [&'static str],
    /// Arguments of its own before the program.
    operands: usize,
}

const fn wrapper(name: &'static str, value_flags: &'static str) -> Wrapper {
    Wrapper {
        name,
        value_flags,
        value_options: &[],
        operands: 0,
    }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        value_options: &["--user", "--group", "--host", "--chdir", "--prompt"],
        ..wrapper("sudo", "CDRTUghprtu")
    },
    wrapper("doas", "Cu"),
    Wrapper {
        value_options: &["--unset", "--chdir"],
        ..wrapper("env", "Cu")
    },
    Wrapper {
        value_options: &["--adjustment"],
        ..wrapper("nice", "n")
    },
    wrapper("ionice", "cn"),
    Wrapper {
        value_options: &["--signal", "--kill-after"],
        operands: 1,
        ..wrapper("timeout", "ks")
    },
    wrapper("stdbuf", "eio"),
    wrapper("xargs", "EILPadns"),
    Wrapper {
        operands: 1,
        ..wrapper("chroot", "")
    },
    wrapper("busybox", ""),
    wrapper("strace", "eop"),
    wrapper("time", "fo"),
    wrapper("exec", "a"),
    wrapper("nohup", ""),
    wrapper("setsid", ""),
    wrapper("command", ""),
    wrapper("builtin", ""),
    wrapper("coproc", ""),
    Wrapper {
        operands: 1,
        ..wrapper("function", "")
    },
    wrapper("!", ""),
    wrapper("{", ""),
    wrapper("if", ""),
    wrapper("then", ""),
    wrapper("elif", ""),
    wrapper("else", ""),
    wrapper("while", ""),
    wrapper("until", ""),
    wrapper("do", ""),
];

/// Returns the wrappers of a command, outermost first, and last the program they run.
pub(super) fn unwrap(command: &Command) -> Vec<Call<'_>> {
    let mut words = command.words.as_slice();
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut by_xargs = false;
    loop {
        let assignments = words.iter().take_while(|word| is_assignment(word)).count();
        let Some((path, args)) = words[assignments..].split_first() else {
            return calls;
        };
        let program = path.rsplit('/').next().unwrap_or(path);
        calls.push(Call {
            program,
            path,
            args,
            command,
            by_xargs,
        });
        let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == program) else {
            return calls;
        };
        by_xargs |= program == "xargs";
        words = wrapped(wrapper, args);
    }
}

/// Skips the wrapper's own options and operands.
fn wrapped<'a>(wrapper: &Wrapper, args: &'a [String]) -> &'a [String] {
    let mut rest = args;
    while let Some((first, after)) = rest.split_first() {
        if !first.starts_with('-') || first == "-" {
            break;
        }
        rest = after;
        if first == "--" {
            break;
        }
        if takes_next(wrapper, first) {
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    rest.get(wrapper.operands..).unwrap_or_default()
}

/// Returns whether an option's value is the next word.
fn takes_next(wrapper: &Wrapper, option: &str) -> bool {
    if option.starts_with("--") {
        return wrapper.value_options.contains(&option);
    }
    let flag = option.find(|c| wrapper.value_flags.contains(c));
    flag.is_some_and(|at| at + 1 == option.len())
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let commands = shell::parse(line).unwrap();
        let calls = unwrap(&commands[0]);
        let last = calls.last().map(|call| {
            let args = call.args.iter().map(|arg| format!(" {arg}"));
            call.program.to_owned() + &args.collect::<String>()
        });
        assert_eq!(last.unwrap_or_default(), expected, "{line}");
    }

    #[test]
    fn the_program_behind_wrappers_is_found() {
        check("/bin/rm -rf x", "rm -rf x");
        check("A=1 B=2 rm x", "rm x");
        check("sudo -u root reboot", "reboot");
        check("sudo -uroot reboot", "reboot");
        check("sudo --user root -n reboot", "reboot");
        check("env -i -u A X=1 rm x", "rm x");
        check("timeout -s KILL 10 rm x", "rm x");
        check("nice -n 5 nohup time rm x", "rm x");
        check("xargs -I {} -n1 rm {}", "rm {}");
        check("sudo -- rm -x", "rm -x");
        check("then reboot", "reboot");
        check("function f { reboot", "reboot");
        check("sudo -i", "sudo -i");
        check("X=1", "");
    }
}
