//! Programs that run files written in a language: free with the name of a file, asked about with anything else.

use crate::shell::exact::{Arg, Input, Run};

use super::options::Options;

struct Interpreter {
    /// As rules know it: without a version.
    name: &'static str,
    options: Options,
    /// Options after which it only says something.
    says: &'static [&'static str],
}

const fn interpreter(name: &'static str, options: Options) -> Interpreter {
    Interpreter {
        name,
        options,
        says: &["V", "h", "version", "help", "v"],
    }
}

const fn flags(flags: &'static str) -> Options {
    Options {
        flags,
        values: "",
        attached: "",
        long_flags: &["version", "help"],
        long_values: &[],
    }
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        says: &["V", "h", "version", "help"],
        ..interpreter(
            "python",
            Options {
                values: "mWX",
                ..flags("uBOEsSvqIbVh")
            },
        )
    },
    Interpreter {
        says: &["v", "h", "version", "help", "test"],
        ..interpreter(
            "node",
            Options {
                long_flags: &[
                    "version",
                    "help",
                    "test",
                    "watch",
                    "no-warnings",
                    "enable-source-maps",
                    "trace-warnings",
                    "check",
                    "inspect",
                    "experimental-strip-types",
                    "experimental-vm-modules",
                    "run",
                ],
                long_values: &[
                    "max-old-space-size",
                    "test-reporter",
                    "test-name-pattern",
                    "env-file",
                ],
                ..flags("vhc")
            },
        )
    },
    interpreter(
        "pypy",
        Options {
            values: "mWX",
            ..flags("uBOEsSvqIbVh")
        },
    ),
    interpreter("perl", flags("wcv")),
    interpreter("ruby", flags("wcv")),
    interpreter(
        "php",
        Options {
            values: "f",
            ..flags("vlhm")
        },
    ),
    interpreter("lua", flags("v")),
    interpreter("luajit", flags("v")),
    interpreter("rscript", flags("")),
    interpreter("tclsh", flags("")),
    interpreter("julia", flags("v")),
    interpreter("guile", flags("v")),
    interpreter("elixir", flags("v")),
    interpreter("groovy", flags("v")),
    interpreter("scala", flags("")),
    interpreter("ocaml", flags("")),
    interpreter("swift", flags("")),
    interpreter("runghc", flags("")),
    interpreter("sbcl", flags("")),
    interpreter("bash", flags("eux")),
    interpreter("sh", flags("eux")),
    interpreter("dash", flags("eux")),
    interpreter("zsh", flags("eux")),
    interpreter("ksh", flags("eux")),
    interpreter("mksh", flags("eux")),
    interpreter("ash", flags("eux")),
    interpreter("fish", flags("v")),
    interpreter("csh", flags("eux")),
    interpreter("tcsh", flags("eux")),
    interpreter("yash", flags("eux")),
    interpreter("osh", flags("eux")),
    interpreter("oksh", flags("eux")),
    interpreter("hush", flags("eux")),
    interpreter("nu", flags("")),
    interpreter("clojure", flags("")),
    interpreter("clj", flags("")),
    interpreter("bb", flags("")),
    interpreter("racket", flags("")),
    interpreter("raku", flags("")),
    interpreter("tsx", flags("")),
    interpreter("ts-node", flags("")),
    interpreter("rbash", flags("")),
];

/// Modules of Python that run text they are given.
const RUNNING_MODULES: &[&str] = &[
    "timeit", "code", "pdb", "trace", "runpy", "idlelib", "cProfile", "profile", "bdb", "asyncio",
    "sqlite3",
];

/// Says why a call of an interpreter is asked about, if it is one. `written` are files that the line itself writes.
pub(super) fn why_asked(
    program: &str,
    words: &[Arg],
    run: &Run,
    written: &[String],
) -> Option<String> {
    let found = INTERPRETERS
        .iter()
        .find(|interpreter| is_called(interpreter.name, program))?;
    let given = match found.options.read(&words[1..]) {
        Ok(given) => given,
        Err(what) => return Some(format!("gives `{program}` {what}, which may be code")),
    };
    if found.says.iter().any(|option| given.has(option)) && given.rest.is_empty() {
        return None;
    }
    if let Some(module) = given.value("m") {
        let module = module.literal().unwrap_or_default();
        let runs_text = module.is_empty() || RUNNING_MODULES.contains(&module.as_str());
        return runs_text.then(|| "runs code given as text".to_owned());
    }
    let file = given.value("f").or(given.rest.first());
    let Some(file) = file else {
        return Some("runs code it is given as input".to_owned());
    };
    let Some(path) = file.literal() else {
        let is_known = !file.is_unknown() && !file.may_be_option() && !is_process(file);
        return (!is_known).then(|| "runs a file whose name is only known when it runs".to_owned());
    };
    let is_input = matches!(path.as_str(), "-" | "/dev/stdin")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/");
    if is_input {
        return Some("runs code it is given as input".to_owned());
    }
    if is_written(&path, written) {
        return Some("runs a file that it writes itself".to_owned());
    }
    // Scripts of frameworks that run text they are given.
    let runs_text =
        |arg: &Arg| matches!(arg.beginning().as_str(), "shell" | "shell_plus" | "tinker");
    let is_framework = path.ends_with("manage.py") || path.ends_with("artisan");
    if is_framework && given.rest.iter().any(runs_text) {
        return Some("runs code given as text".to_owned());
    }
    let reads_text = matches!(run.input, Input::Stream);
    reads_text.then(|| "runs with the input of another stream".to_owned())
}

fn is_process(arg: &Arg) -> bool {
    use crate::shell::exact::{Origin, Piece};
    arg.pieces.contains(&Piece::Any(Origin::Process))
}

/// Returns whether a path is among the written ones, however it is spelt.
pub(super) fn is_written(path: &str, written: &[String]) -> bool {
    let plain = |path: &str| {
        let parts = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".");
        parts.collect::<Vec<_>>().join("/")
    };
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let path = plain(path);
    written.iter().any(|other| {
        let other = plain(other);
        other == path || name(&other) == name(&path)
    })
}

/// `python3.12` is `python`.
fn is_called(name: &str, program: &str) -> bool {
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    program.strip_prefix(name).is_some_and(is_version)
}
