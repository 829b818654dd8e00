//! Words that name a program which does harm, given to a program that we know nothing of: it may run them. And files by
//! which a program that is called later in the same line is told what to run.

use crate::read_only;
use crate::shell::exact::Arg;

use super::interpreters::is_written;
use super::name_of;

/// Turn the machine off, or destroy what is on it, whatever their words.
const HARMFUL: &[&str] = &[
    "reboot",
    "shutdown",
    "poweroff",
    "halt",
    "kexec",
    "wipefs",
    "blkdiscard",
    "shred",
    "sudo",
    "doas",
];

/// Run what follows `-c` or `-e`.
const CODE: &[&str] = &[
    "bash", "sh", "dash", "zsh", "ksh", "ash", "fish", "busybox", "python", "python3", "perl",
    "ruby", "node", "php", "lua",
];

/// Programs that take words for names and texts, besides those that only read.
const TAKES_NAMES: &[&str] = &[
    "alias",
    "apropos",
    "apt",
    "apt-cache",
    "apt-get",
    "brew",
    "cargo",
    "cd",
    "chmod",
    "chown",
    "code",
    "command",
    "cp",
    "declare",
    "dnf",
    "dpkg",
    "exit",
    "export",
    "gh",
    "git",
    "glab",
    "hash",
    "help",
    "info",
    "jest",
    "journalctl",
    "jq",
    "kill",
    "last",
    "ln",
    "local",
    "make",
    "man",
    "mkdir",
    "mv",
    "pacman",
    "pgrep",
    "pip",
    "pip3",
    "pytest",
    "read",
    "readonly",
    "return",
    "rm",
    "rmdir",
    "rustc",
    "set",
    "shift",
    "systemctl",
    "tar",
    "tee",
    "touch",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unset",
    "unzip",
    "vitest",
    "wait",
    "whatis",
    "whereis",
    "who",
    "yum",
    "zip",
];

/// Words after which a name is only a name.
const BEFORE_NAMES: &[&str] = &[
    "run",
    "run-script",
    "test",
    "bench",
    "add",
    "install",
    "i",
    "remove",
    "uninstall",
    "show",
    "search",
    "info",
    "help",
    "why",
    "-k",
    "-m",
    "-t",
    "-b",
    "-p",
    "-n",
    "-run",
    "--grep",
    "--filter",
    "--message",
    "--title",
    "--body",
    "--name",
    "--bin",
    "--example",
];

/// Says so when a program that is in no table is given the name of one that does harm.
pub(super) fn why_asked(program: &str, args: &[Arg]) -> Option<String> {
    if read_only::is_known(program) || TAKES_NAMES.contains(&program) {
        return None;
    }
    let texts: Vec<String> = args.iter().map(Arg::beginning).collect();
    let found = texts.iter().enumerate().find(|(at, text)| {
        let is_name = *at > 0 && BEFORE_NAMES.contains(&texts[at - 1].as_str());
        let value = text.rsplit_once('=').map(|(_, value)| value);
        !is_name
            && [Some(text.as_str()), value]
                .into_iter()
                .flatten()
                .any(|word| is_harmful(word, &texts[at + 1..]))
    });
    found.map(|(_, text)| {
        format!("gives `{program}` the word `{text}`, which may be another program that it runs")
    })
}

fn is_harmful(word: &str, rest: &[String]) -> bool {
    // A path counts where programs are, not where files are.
    let is_place = word.starts_with('/') && word.contains("bin/");
    if word.contains('/') && !is_place {
        return false;
    }
    let name = name_of(word);
    let has = |flags: &[&str]| rest.iter().any(|text| flags.contains(&text.as_str()));
    let is_recursive = |text: &String| text.starts_with('-') && text.contains(['r', 'R']);
    HARMFUL.contains(&name.as_str())
        || name.starts_with("mkfs")
        || (CODE.contains(&name.as_str()) && has(&["-c", "-e", "-ec", "-lc"]))
        || (name == "rm" && rest.iter().any(is_recursive))
        || (name == "dd" && rest.iter().any(|text| text.starts_with("of=")))
        || (name == "kill" && has(&["-9", "-KILL", "-1"]))
}

/// Files that say what a program runs, by that program.
const SCRIPTS: &[(&[&str], &[&str])] = &[
    (&["make", "gmake"], &["Makefile", "makefile", "GNUmakefile"]),
    (
        &["npm", "npx", "pnpm", "yarn", "bun"],
        &[
            "package.json",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            "bunfig.toml",
        ],
    ),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["task"], &["Taskfile.yml", "Taskfile.yaml"]),
    (&["rake"], &["Rakefile"]),
    (&["cmake"], &["CMakeLists.txt", "CMakePresets.json"]),
    (&["ninja"], &["build.ninja"]),
    (
        &["cargo"],
        &["build.rs", ".cargo/config.toml", ".cargo/config"],
    ),
    (&["tox"], &["tox.ini"]),
    (&["nox"], &["noxfile.py"]),
    (&["pytest", "py.test"], &["conftest.py"]),
    (&["pip", "pip3"], &["setup.py"]),
    (
        &["gradle", "gradlew"],
        &["build.gradle", "build.gradle.kts"],
    ),
    (&["pre-commit"], &[".pre-commit-config.yaml"]),
    (&["procs", "foreman", "honcho"], &["Procfile"]),
];

/// Programs that run what is in a file after `-f`.
const RUNS_FILE: &[&str] = &[
    "sed", "gsed", "awk", "gawk", "mawk", "nawk", "make", "gmake", "psql", "gnuplot",
];

/// Says so when a program runs what the same line has written down.
pub(super) fn why_own_script(program: &str, args: &[Arg], written: &[String]) -> Option<String> {
    let named = SCRIPTS
        .iter()
        .filter(|(programs, _)| programs.contains(&program));
    let mut scripts = named.flat_map(|(_, files)| files.iter());
    let is_told = scripts.any(|file| is_written(file, written));
    let texts: Vec<String> = args.iter().map(Arg::shown).collect();
    let is_file = |(at, text): (usize, &String)| {
        let next = texts
            .get(at + 1)
            .is_some_and(|file| is_written(file, written));
        let attached = text
            .split_once('=')
            .map_or_else(|| text.get(2..), |(_, file)| Some(file));
        let is_attached =
            attached.is_some_and(|file| !file.is_empty() && is_written(file, written));
        let is_short = text.starts_with('-') && !text.starts_with("--");
        if text.starts_with("--file") {
            next || is_attached
        } else {
            is_short && ((text.ends_with('f') && next) || (text.starts_with("-f") && is_attached))
        }
    };
    let runs_file = RUNS_FILE.contains(&program) && texts.iter().enumerate().any(is_file);
    let runs_source = matches!(program, "go" | "deno" | "bun" | "tsx" | "ts-node" | "cargo")
        && texts.first().is_some_and(|first| first == "run")
        && texts[1..].iter().any(|file| is_written(file, written));
    (is_told || runs_file || runs_source).then(|| "runs a file that it writes itself".to_owned())
}
