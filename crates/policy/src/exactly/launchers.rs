//! Programs that run the words after their own options: which options each has, and where the other program begins.

use crate::shell::exact::{Arg, why_decides};

use super::options::Options;

struct Launcher {
    name: &'static str,
    options: Options,
    /// Arguments of its own before the program.
    operands: usize,
    /// More words come from input.
    appends: bool,
}

const fn launcher(name: &'static str, options: Options) -> Launcher {
    Launcher {
        name,
        options,
        operands: 0,
        appends: false,
    }
}

const NONE: Options = options("", "");

const fn options(flags: &'static str, values: &'static str) -> Options {
    Options {
        flags,
        values,
        attached: "",
        long_flags: &[],
        long_values: &[],
    }
}

const LAUNCHERS: &[Launcher] = &[
    launcher(
        "nice",
        Options {
            attached: "0123456789",
            long_values: &["adjustment"],
            ..options("", "n")
        },
    ),
    launcher(
        "ionice",
        Options {
            long_flags: &["ignore"],
            long_values: &["class", "classdata"],
            ..options("t", "cn")
        },
    ),
    Launcher {
        operands: 1,
        ..launcher(
            "timeout",
            Options {
                long_flags: &["foreground", "preserve-status", "verbose"],
                long_values: &["kill-after", "signal"],
                ..options("v", "ks")
            },
        )
    },
    launcher(
        "stdbuf",
        Options {
            long_values: &["input", "output", "error"],
            ..options("", "ioe")
        },
    ),
    launcher(
        "time",
        Options {
            long_flags: &["append", "portability", "verbose", "quiet"],
            long_values: &["format", "output"],
            ..options("apvq", "fo")
        },
    ),
    launcher(
        "setsid",
        Options {
            long_flags: &["ctty", "fork", "wait"],
            ..options("cfw", "")
        },
    ),
    launcher("nohup", NONE),
    launcher("unbuffer", options("p", "")),
    launcher("chronic", options("ve", "")),
    launcher("busybox", NONE),
    launcher("toybox", NONE),
    launcher("ssh-agent", options("csdDk", "aEOPt")),
    launcher(
        "xvfb-run",
        Options {
            long_flags: &["auto-servernum"],
            long_values: &["server-args", "server-num"],
            ..options("a", "ns")
        },
    ),
    launcher(
        "xargs",
        Options {
            attached: "iel",
            long_flags: &[
                "null",
                "no-run-if-empty",
                "verbose",
                "exit",
                "open-tty",
                "show-limits",
                "interactive",
            ],
            long_values: &[
                "arg-file",
                "delimiter",
                "max-args",
                "max-chars",
                "max-lines",
                "max-procs",
                "process-slot-var",
                "replace",
                "eof",
            ],
            ..options("0oprtx", "EILPadns")
        },
    )
    .appending(),
    Launcher {
        operands: 1,
        ..launcher(
            "taskset",
            Options {
                long_flags: &["cpu-list"],
                ..options("c", "")
            },
        )
    },
    launcher("npx", options("y", "p")),
    launcher("bunx", NONE),
    launcher("uvx", NONE),
    launcher("pnpx", NONE),
];

impl Launcher {
    const fn appending(self) -> Self {
        Self {
            appends: true,
            name: self.name,
            options: self.options,
            operands: self.operands,
        }
    }
}

/// Subcommands that run the words after them.
const SUBCOMMANDS: &[(&str, &[&str])] = &[
    ("asdf", &["exec"]),
    ("bun", &["x"]),
    ("bundle", &["exec"]),
    ("cabal", &["exec"]),
    ("conda", &["run"]),
    ("composer", &["exec"]),
    ("fnm", &["exec"]),
    ("hatch", &["run"]),
    ("mise", &["exec", "x"]),
    ("npm", &["exec", "x"]),
    ("nvm", &["exec", "run"]),
    ("opam", &["exec"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pipx", &["run"]),
    ("pnpm", &["exec", "dlx"]),
    ("poetry", &["run"]),
    ("pyenv", &["exec"]),
    ("rbenv", &["exec"]),
    ("rye", &["run"]),
    ("stack", &["exec"]),
    ("uv", &["run"]),
    ("volta", &["run"]),
    ("yarn", &["exec", "dlx"]),
];

/// What is behind a program.
pub(super) enum Behind {
    /// It runs nothing, or is no launcher.
    Nothing,
    Words(Vec<Arg>),
    NotUnderstood(String),
}

/// Returns the words that a program runs.
pub(super) fn behind(program: &str, args: &[Arg]) -> Behind {
    match behind_checked(program, args) {
        Ok(Some(words)) => Behind::Words(words),
        Ok(None) => Behind::Nothing,
        Err(what) => {
            Behind::NotUnderstood(format!("gives `{program}` {what}, which is not understood"))
        }
    }
}

fn behind_checked(program: &str, args: &[Arg]) -> Result<Option<Vec<Arg>>, String> {
    if program == "env" {
        return behind_env(args);
    }
    if let Some(launcher) = LAUNCHERS.iter().find(|launcher| launcher.name == program) {
        let given = launcher.options.read(args)?;
        // These end or describe themselves.
        let is_alone = program == "ssh-agent" && given.has("k");
        let replaced = given
            .value("I")
            .or_else(|| given.value("i"))
            .or_else(|| given.value("replace"));
        let replaced = replaced.map(|arg| {
            arg.literal()
                .filter(|text| !text.is_empty())
                .unwrap_or("{}".to_owned())
        });
        let mut words = given
            .rest
            .get(launcher.operands..)
            .unwrap_or_default()
            .to_vec();
        if words.is_empty() || is_alone {
            return Ok(None);
        }
        if let Some(replaced) = replaced {
            words.iter_mut().for_each(|word| fill(word, &replaced));
        } else if launcher.appends {
            words.push(Arg::unknown_words());
        }
        return Ok(Some(words));
    }
    let subcommands = SUBCOMMANDS.iter().find(|(name, _)| *name == program);
    let Some((_, subcommands)) = subcommands else {
        return Ok(None);
    };
    let Some((first, rest)) = args.split_first() else {
        return Ok(None);
    };
    if !first
        .literal()
        .is_some_and(|first| subcommands.contains(&first.as_str()))
    {
        return Ok(None);
    }
    let given = NONE.read(rest)?;
    Ok((!given.rest.is_empty()).then(|| given.rest.to_vec()))
}

/// Puts what nobody knows in the place of a mark.
fn fill(word: &mut Arg, mark: &str) {
    if word.literal().is_some_and(|text| text.contains(mark)) {
        *word = Arg::unknown_word();
    }
}

fn behind_env(args: &[Arg]) -> Result<Option<Vec<Arg>>, String> {
    let options = Options {
        flags: "i0",
        values: "uC",
        long_flags: &["ignore-environment", "null"],
        long_values: &["unset", "chdir"],
        ..Options::default()
    };
    let mut rest = options.read(args)?.rest;
    if let Some((first, after)) = rest.split_first()
        && first.literal().as_deref() == Some("-")
    {
        rest = after;
    }
    while let Some((first, after)) = rest.split_first() {
        let beginning = first.beginning();
        let Some((name, _)) = beginning.split_once('=') else {
            break;
        };
        let value = first.literal();
        let value = value
            .as_deref()
            .and_then(|text| Some(text.split_once('=')?.1));
        if first.is_many || why_decides(name, value).is_some() {
            return Err(format!("the variable `{name}`"));
        }
        rest = after;
    }
    Ok((!rest.is_empty()).then(|| rest.to_vec()))
}
