//! Programs that can run other programs, and the words with which they do.

use crate::shell::exact::{Arg, Input, Run, why_decides};

use super::catalogue::{
    ADMINISTRATION, KUBECTL_READS, RUNNERS, RUNNING_LETTERS, RUNNING_OPTIONS, SYSTEMCTL_READS,
};
use super::options::{Options, has_letter, is_long};
use super::{git, texts};

/// Says why a program with these words is asked about, if so.
pub(super) fn why_asked(program: &str, args: &[Arg], run: &Run) -> Option<String> {
    if RUNNERS.contains(&program) {
        return Some(format!(
            "runs `{program}`, which runs other programs as it is told"
        ));
    }
    if ADMINISTRATION.contains(&program)
        || program.starts_with("mkfs")
        || program.starts_with("qemu-")
    {
        return Some("changes disks, accounts or the kernel of the machine".to_owned());
    }
    if let Some(reason) = why_options_asked(program, args) {
        return Some(reason);
    }
    match program {
        "git" => git::why_asked(args),
        "sed" | "gsed" => texts::why_sed_asked(args),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => texts::why_awk_asked(args),
        "tar" | "gtar" | "bsdtar" => why_tar_asked(args),
        "find" | "gfind" => why_find_asked(args),
        "make" | "gmake" => why_make_asked(args, run),
        "ssh" => why_ssh_asked(args),
        "scp" | "sftp" => why_copies_asked(args, run),
        "rsync" => why_rsync_asked(args),
        "sqlite3" | "sqlite" | "duckdb" => why_database_asked(
            args,
            run,
            &[".", "load_extension", "writefile", "edit(", "readfile"],
        ),
        "psql" | "mysql" | "mariadb" => {
            why_database_asked(args, run, &["\\", "system", "program", "source ", "pager"])
        }
        "docker" | "podman" | "nerdctl" | "docker-compose" => why_container_asked(args),
        "kubectl" | "oc" => not_first(args, KUBECTL_READS, "changes or enters a cluster"),
        "systemctl" => not_any(args, SYSTEMCTL_READS, "changes what the system runs"),
        "service" => not_any(
            args,
            &["status", "--status-all"],
            "changes what the system runs",
        ),
        "openssl" => contains(
            args,
            &[
                "-engine",
                "engine",
                "-provider",
                "-config",
                "-provider-path",
            ],
        ),
        "zip" => args
            .iter()
            .any(|arg| arg.beginning().contains("TT"))
            .then(running),
        "go" => begins(
            args,
            &[
                "-toolexec",
                "--toolexec",
                "-exec",
                "--exec",
                "-vettool",
                "--vettool",
                "-ldflags=-extld",
            ],
        )
        .or_else(|| names_linker(args, "-extld"))
        .or_else(|| is_changed(args, "env", "-w")),
        "java" | "javac" => begins(
            args,
            &[
                "-XX:On",
                "-agent",
                "-javaagent",
                "@",
                "-J",
                "-XX:Flags",
                "-processor",
            ],
        ),
        "cc" | "gcc" | "g++" | "c++" | "clang" | "clang++" => begins(
            args,
            &[
                "-wrapper",
                "-fplugin",
                "-specs",
                "--specs",
                "-B",
                "@",
                "-Xclang",
                "-fuse-ld=/",
                "-load",
            ],
        ),
        "cmake" => why_cmake_asked(args),
        "less" | "more" => begins(args, &["+"]),
        "npm" | "pnpm" | "yarn" => subcommand(args, &["config", "explore", "edit", "set", "c"]),
        "deno" => {
            subcommand(args, &["eval", "repl"]).or_else(|| begins(args, &["http:", "https:"]))
        }
        "rustc" | "cargo-rustc" => names_linker(args, "linker="),
        "sysctl" => args
            .iter()
            .any(|arg| arg.beginning().contains('=') || arg.beginning() == "-w")
            .then(|| "changes settings of the kernel".to_owned()),
        "fuser" => args
            .iter()
            .any(|arg| has_letter(&arg.beginning(), "k", "n"))
            .then(|| "kills processes by what they use".to_owned()),
        "bun" => begins(args, &["-e", "--eval", "-p", "--print", "--preload", "-r"]),
        "crystal" => subcommand(args, &["eval"]),
        "rails" => subcommand(args, &["runner", "r", "console", "c", "dbconsole", "db"]),
        "gh" | "glab" => subcommand(args, &["alias", "extension", "codespace", "ext", "cs"]),
        "ip" => contains(args, &["netns", "-b", "-batch"]),
        "cargo" => begins(args, &["--config", "-Z"]).or_else(|| names_linker(args, "linker=")),
        "pdflatex" | "latex" | "xelatex" | "lualatex" | "tex" => {
            begins(args, &["-shell-escape", "--shell", "-enable-write18", "\\"])
        }
        "fd" | "fdfind" => None,
        "rm" | "shred" | "unlink" => unknown_paths(args, "deletes what is only known when it runs"),
        "kill" => unknown_paths(args, "ends processes that are only known when it runs"),
        "dd" | "tee" | "truncate" | "chmod" | "chown" => {
            unknown_paths(args, "changes files that are only known when it runs")
        }
        "mv" | "cp" | "ln" | "install" => {
            let last = args.last().map(std::slice::from_ref).unwrap_or_default();
            unknown_paths(last, "changes files that are only known when it runs")
        }
        _ => None,
    }
}

/// Says so when a word says which program links.
fn names_linker(args: &[Arg], sign: &str) -> Option<String> {
    args.iter()
        .any(|arg| arg.shown().contains(sign))
        .then(running)
}

/// Says so when a subcommand writes down settings for later.
fn is_changed(args: &[Arg], subcommand: &str, flag: &str) -> Option<String> {
    let texts: Vec<String> = args.iter().map(Arg::beginning).collect();
    let is_one = texts.first().is_some_and(|first| first == subcommand);
    (is_one && texts.iter().any(|text| text == flag)).then(running)
}

fn running() -> String {
    "runs another program by an option".to_owned()
}

fn why_options_asked(program: &str, args: &[Arg]) -> Option<String> {
    let named = RUNNING_OPTIONS
        .iter()
        .filter(|(programs, _)| programs.contains(&program));
    let lettered = RUNNING_LETTERS
        .iter()
        .filter(|(programs, ..)| programs.contains(&program));
    let texts: Vec<String> = args.iter().map(Arg::beginning).collect();
    let mut by_name = named.flat_map(|(_, names)| texts.iter().filter(|text| is_long(text, names)));
    let mut by_letter = lettered.flat_map(|(_, letters, values)| {
        texts
            .iter()
            .filter(|text| has_letter(text, letters, values))
    });
    (by_name.next().is_some() || by_letter.next().is_some()).then(running)
}

/// Says so when a word begins with one of these, or may.
fn begins(args: &[Arg], beginnings: &[&str]) -> Option<String> {
    let is_one = |arg: &Arg| {
        let text = arg.beginning();
        beginnings
            .iter()
            .any(|beginning| text.starts_with(beginning))
    };
    args.iter().any(is_one).then(running)
}

fn contains(args: &[Arg], words: &[&str]) -> Option<String> {
    args.iter()
        .any(|arg| words.contains(&arg.beginning().as_str()))
        .then(running)
}

/// Says so when the first word that is no option is one of these.
fn subcommand(args: &[Arg], words: &[&str]) -> Option<String> {
    let first = args
        .iter()
        .map(Arg::beginning)
        .find(|arg| !arg.starts_with('-'));
    first
        .is_some_and(|first| words.contains(&first.as_str()))
        .then(running)
}

fn not_any(args: &[Arg], words: &[&str], reason: &str) -> Option<String> {
    let is_known = args.iter().any(|arg| {
        arg.literal()
            .is_some_and(|text| words.contains(&text.as_str()))
    });
    (!is_known).then(|| reason.to_owned())
}

/// Says so when the first word after options is none of these. A value of an option may come first, and is then looked at.
fn not_first(args: &[Arg], words: &[&str], reason: &str) -> Option<String> {
    let texts: Vec<Option<String>> = args.iter().map(Arg::literal).collect();
    let mut is_value = false;
    for text in texts {
        let Some(text) = text else {
            return Some(reason.to_owned());
        };
        if text == "--version" || text == "--help" {
            return None;
        }
        let is_option = text.starts_with('-');
        if !is_option && !is_value {
            return (!words.contains(&text.as_str())).then(|| reason.to_owned());
        }
        is_value = is_option
            && matches!(
                text.as_str(),
                "-n" | "--namespace" | "--context" | "--cluster"
            );
    }
    None
}

fn unknown_paths(args: &[Arg], reason: &str) -> Option<String> {
    let is_unknown = |arg: &Arg| arg.beginning().is_empty() && arg.is_unknown();
    args.iter().any(is_unknown).then(|| reason.to_owned())
}

fn why_tar_asked(args: &[Arg]) -> Option<String> {
    const NAMES: &[&str] = &[
        "--use-compress-program",
        "--to-command",
        "--checkpoint-action",
        "--info-script",
        "--new-volume-script",
        "--rsh-command",
        "--rmt-command",
        "--files-from",
    ];
    for (at, arg) in args.iter().enumerate() {
        if arg.is_unknown() && arg.may_be_option() {
            return Some("gives tar a word that is only known when it runs".to_owned());
        }
        let text = arg.beginning();
        let is_old_cluster = at == 0 && !text.starts_with('-') && text.contains(['I', 'F', 'T']);
        let is_remote = at > 0 && text.contains(':') && args[at - 1].beginning().ends_with('f');
        if is_old_cluster
            || is_remote
            || is_long(&text, NAMES)
            || has_letter(&text, "IFT", "fCbgKLNVX")
        {
            return Some(running());
        }
    }
    None
}

fn why_find_asked(args: &[Arg]) -> Option<String> {
    const WRITES: &[&str] = &["-fprint", "-fprint0", "-fprintf", "-fls", "-files0-from"];
    let mut before = String::new();
    for arg in args {
        let text = arg.literal();
        match text {
            Some(text) if WRITES.contains(&text.as_str()) => {
                return Some("lets find write a file".to_owned());
            }
            Some(text) => before = text,
            None => {
                let is_value =
                    before.starts_with('-') && before.len() > 2 && !before.starts_with("-exec");
                let is_unknown = arg.is_unknown() && (arg.may_be_option() || arg.is_many);
                if is_unknown && (!is_value || arg.is_many) {
                    return Some("gives find a word that is only known when it runs".to_owned());
                }
                before.clear();
            }
        }
    }
    None
}

fn why_make_asked(args: &[Arg], run: &Run) -> Option<String> {
    let options = Options {
        flags: "Bdehiknpqrstvw",
        values: "CfIoW",
        attached: "jlO",
        long_flags: &[
            "always-make",
            "keep-going",
            "dry-run",
            "just-print",
            "silent",
            "quiet",
            "no-print-directory",
            "print-directory",
            "version",
            "help",
            "trace",
            "question",
            "touch",
        ],
        long_values: &["directory", "file", "makefile", "include-dir"],
    };
    let mut rest = args;
    while !rest.is_empty() {
        let given = match options.read(rest) {
            Ok(given) => given,
            Err(what) => return Some(format!("gives make {what}, which is not understood")),
        };
        let file = given
            .value("f")
            .or(given.value("file"))
            .or(given.value("makefile"));
        let is_input = |file: &Arg| {
            file.literal().is_none_or(|path| {
                path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")
            })
        };
        if file.is_some_and(is_input) {
            return Some("runs rules it is given as input".to_owned());
        }
        let Some((first, after)) = given.rest.split_first() else {
            break;
        };
        let beginning = first.beginning();
        let literal = first.literal();
        let is_rule = |text: &str| text.contains(['$', '`', ';', '|']);
        let (name, value) = beginning
            .split_once('=')
            .map_or(("", ""), |(name, value)| (name, value));
        let name = name.trim_end_matches([':', '+', '?', '!']);
        let decides =
            !name.is_empty() && (name.starts_with('.') || why_decides(name, Some(value)).is_some());
        if decides || literal.is_none_or(|text| is_rule(&text)) {
            return Some("gives make a variable or target that may run a program".to_owned());
        }
        rest = after;
    }
    matches!(run.input, Input::Stream).then(running)
}

fn why_ssh_asked(args: &[Arg]) -> Option<String> {
    let options = Options {
        flags: "46AaCfGgKkNnqTtVvXxYy",
        values: "lpiLRDJo",
        ..Options::default()
    };
    const HARMLESS: &[&str] = &[
        "stricthostkeychecking",
        "connecttimeout",
        "userknownhostsfile",
        "batchmode",
        "loglevel",
        "serveraliveinterval",
        "serveralivecountmax",
        "identitiesonly",
        "identityfile",
        "port",
        "user",
        "compression",
    ];
    let given = match options.read(args) {
        Ok(given) => given,
        Err(what) => return Some(format!("gives ssh {what}, which is not understood")),
    };
    let settings = given.options.iter().filter(|(name, _)| name == "o");
    for (_, setting) in settings {
        let setting = setting
            .as_ref()
            .and_then(Arg::literal)
            .unwrap_or_default()
            .to_ascii_lowercase();
        let key = setting.split(['=', ' ']).next().unwrap_or_default();
        if !HARMLESS.contains(&key) {
            return Some("gives ssh a setting that may run a program here".to_owned());
        }
    }
    // What runs on the other machine is judged, so it must be known; options may follow the host.
    let is_known = |arg: &Arg| arg.literal().is_some();
    let (host, after) = given.rest.split_first()?;
    let more = after
        .first()
        .and_then(Arg::literal)
        .is_some_and(|text| text.starts_with('-'));
    (!is_known(host) || more || !after.iter().all(is_known))
        .then(|| "runs what is only known when it runs on another machine".to_owned())
}

fn why_copies_asked(args: &[Arg], run: &Run) -> Option<String> {
    let is_running = |arg: &Arg| {
        has_letter(&arg.beginning(), "oSFDJb", "ciPl") || (arg.is_unknown() && arg.may_be_option())
    };
    let is_fed = !matches!(run.input, Input::Inherited) && run.program().ends_with("sftp");
    (args.iter().any(is_running) || is_fed).then(running)
}

fn why_rsync_asked(args: &[Arg]) -> Option<String> {
    const NAMES: &[&str] = &[
        "--rsync-path",
        "--daemon",
        "--config",
        "--remote-option",
        "--early-input",
        "--log-file",
        "--write-batch",
        "--only-write-batch",
    ];
    for (at, arg) in args.iter().enumerate() {
        let text = arg.beginning();
        if (arg.is_unknown() && arg.may_be_option())
            || NAMES.iter().any(|name| text.starts_with(name))
        {
            return Some(running());
        }
        let value = match text.strip_prefix("--rsh=") {
            Some(value) => Some(value.to_owned()),
            None if text == "--rsh" || has_letter(&text, "e", "BTfM") => {
                let attached = text
                    .split_once('e')
                    .map(|(_, value)| value.to_owned())
                    .filter(|_| !text.starts_with("--"));
                let next = || args.get(at + 1).and_then(Arg::literal);
                attached.filter(|value| !value.is_empty()).or_else(next)
            }
            None => continue,
        };
        if value.as_deref() != Some("ssh") {
            return Some(running());
        }
    }
    None
}

/// Says so when a text for a database may hold a command of its client.
fn why_database_asked(args: &[Arg], run: &Run, signs: &[&str]) -> Option<String> {
    let is_plain = |text: &str| {
        let lower = text.to_lowercase();
        let has_sign = |sign: &&str| match *sign {
            "." => lower.lines().any(|line| {
                line.trim_start().starts_with('.') && !line.trim_start().starts_with("./")
            }),
            sign => lower.contains(sign),
        };
        !signs.iter().any(has_sign) || is_listing(&lower)
    };
    let asked = || Some("gives a database client text that may run a program".to_owned());
    for arg in args {
        let text = arg.literal();
        let is_option_with_program = |text: &str| {
            ["-cmd", "-init", "--init"]
                .iter()
                .any(|option| text.starts_with(option))
        };
        match text {
            Some(text) if is_plain(&text) && !is_option_with_program(&text) => {}
            _ => return asked(),
        }
    }
    match &run.input {
        Input::Inherited | Input::File(_) => None,
        Input::Text(Some(text)) if is_plain(text) => None,
        Input::Text(_) | Input::Pipe | Input::Stream => asked(),
    }
}

/// Commands of sqlite that only show.
fn is_listing(text: &str) -> bool {
    let words = [
        ".tables",
        ".schema",
        ".dump",
        ".databases",
        ".indexes",
        ".headers on",
        ".mode column",
        ".mode csv",
        ".mode json",
    ];
    words.contains(&text.trim())
        || text
            .trim()
            .strip_prefix(".schema ")
            .is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

fn why_container_asked(args: &[Arg]) -> Option<String> {
    const ENTERS: &[&str] = &[
        "exec", "attach", "cp", "commit", "plugin", "system", "swarm", "context",
    ];
    const OPENS: &[&str] = &[
        "-v",
        "--volume",
        "--mount",
        "--privileged",
        "--pid",
        "--cap-add",
        "--device",
        "--security-opt",
        "--userns",
        "--ipc",
        "--network=host",
        "--net=host",
        "--volumes-from",
        "--host",
        "-H",
        "--config",
        "--entrypoint",
        "--runtime",
        "--cgroup",
        "--uts",
    ];
    let texts: Vec<String> = args.iter().map(Arg::beginning).collect();
    let first: Vec<&String> = texts
        .iter()
        .filter(|text| !text.starts_with('-'))
        .take(2)
        .collect();
    let enters = first.iter().any(|word| ENTERS.contains(&word.as_str()));
    let opens = |text: &String| {
        OPENS
            .iter()
            .any(|option| text.starts_with(option) && text != "--version")
    };
    let runs = first
        .first()
        .is_some_and(|word| matches!(word.as_str(), "run" | "create" | "container" | "compose"));
    let unknown = |arg: &Arg| arg.is_unknown() && arg.may_be_option();
    let global = texts
        .iter()
        .take_while(|text| text.starts_with('-'))
        .any(opens);
    if enters || global || (runs && (texts.iter().any(opens) || args.iter().any(unknown))) {
        return Some("enters a container, or opens this machine to one".to_owned());
    }
    None
}

fn why_cmake_asked(args: &[Arg]) -> Option<String> {
    let is_running = |text: &str| {
        let upper = text.to_ascii_uppercase();
        let names_program = [
            "LAUNCHER",
            "_PROGRAM",
            "LINKER",
            "EMULATOR",
            "COMPILER",
            "TOOLCHAIN",
        ]
        .iter()
        .any(|part| upper.contains(part));
        (text.starts_with("-D") && names_program)
            || text == "-E"
            || text.starts_with("--toolchain")
            || text.starts_with("-C")
    };
    args.iter()
        .any(|arg| is_running(&arg.beginning()))
        .then(running)
}
