//! Finds the program behind words that only run another: `sudo -u root env X=1 nice rm …` runs `rm`.

use crate::shell::{Command, is_assignment};

use super::call::{Call, family};
use super::wildcard;

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

const fn with_operand(name: &'static str, value_flags: &'static str) -> Wrapper {
    Wrapper {
        operands: 1,
        ..wrapper(name, value_flags)
    }
}

/// A program whose name is not known runs what follows it, or is nothing at all and what follows runs itself.
const UNKNOWN_PROGRAM: Wrapper = wrapper("$", "");

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
    wrapper("watch", "n"),
    wrapper("parallel", "INajn"),
    Wrapper {
        value_options: &["--arg-file", "--delimiter", "--max-args", "--max-procs"],
        ..wrapper("xargs", "EILPadns")
    },
    with_operand("chroot", ""),
    with_operand("flock", "Ew"),
    with_operand("taskset", "p"),
    with_operand("chrt", "p"),
    with_operand("cgexec", "g"),
    with_operand("gosu", ""),
    with_operand("su-exec", ""),
    with_operand("setarch", ""),
    wrapper("busybox", ""),
    wrapper("toybox", ""),
    wrapper("strace", "eopsu"),
    wrapper("ltrace", "eopsu"),
    wrapper("unbuffer", ""),
    wrapper("rlwrap", ""),
    wrapper("fakeroot", "lsib"),
    wrapper("firejail", ""),
    wrapper("caffeinate", "tw"),
    wrapper("chronic", ""),
    wrapper("catchsegv", ""),
    wrapper("dbus-run-session", ""),
    wrapper("xvfb-run", "efnps"),
    wrapper("proxychains4", "f"),
    wrapper("torsocks", ""),
    wrapper("numactl", "CNimp"),
    wrapper("pkexec", ""),
    wrapper("setpriv", ""),
    wrapper("unshare", "RSGw"),
    wrapper("nsenter", "tSGrw"),
    wrapper("prlimit", "p"),
    wrapper("runuser", "gGu"),
    wrapper("run0", "ug"),
    wrapper("systemd-run", "HMpu"),
    wrapper("systemd-inhibit", ""),
    wrapper("time", "fo"),
    wrapper("exec", "a"),
    wrapper("nohup", ""),
    wrapper("setsid", ""),
    wrapper("command", ""),
    wrapper("builtin", ""),
    wrapper("coproc", ""),
    with_operand("function", ""),
    wrapper("!", ""),
    wrapper("{", ""),
    wrapper("if", ""),
    wrapper("then", ""),
    wrapper("elif", ""),
    wrapper("else", ""),
    wrapper("while", ""),
    wrapper("until", ""),
    wrapper("do", ""),
    wrapper("}", ""),
    wrapper("fi", ""),
    wrapper("done", ""),
    wrapper("esac", ""),
];

/// Returns the wrappers of a command, outermost first, and last the program they run.
pub(super) fn unwrap<'a>(command: &'a Command, folder: Option<&'a str>) -> Vec<Call<'a>> {
    let mut words = command.words.as_slice();
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut by_xargs = false;
    loop {
        // `"$@" reboot` with nothing in `$@` runs reboot: an empty word hides nothing.
        let is_no_program = |word: &&String| word.is_empty() || is_assignment(word);
        let skipped = words.iter().take_while(is_no_program).count();
        let Some((path, args)) = words[skipped..].split_first() else {
            return calls;
        };
        let program = path.rsplit('/').next().unwrap_or(path);
        calls.push(Call {
            program,
            family: family(program),
            is_pattern: wildcard::is_pattern(program),
            path,
            args,
            command,
            by_xargs,
            folder,
        });
        let wrapper = if path.starts_with('$') {
            Some(&UNKNOWN_PROGRAM)
        } else {
            WRAPPERS.iter().find(|wrapper| wrapper.name == program)
        };
        let Some(wrapper) = wrapper else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::{self, Budget};

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let commands = shell::parse(line, &Budget::default()).unwrap();
        let calls = unwrap(&commands[0], None);
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
        check("flock /tmp/lock reboot", "reboot");
        check("\"$@\" reboot", "reboot");
        check("$sudo reboot", "reboot");
        check("sudo -i", "sudo -i");
        check("X=1", "");
    }
}
