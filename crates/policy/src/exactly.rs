//! Judges the exact reading of a line: whether it is understood, and what of it runs programs in ways that are asked about.
//!
//! `launchers` finds the program behind `env`, `xargs` and the like; `interpreters`, `programs`, `git` and `texts` know with
//! which words a program runs others; `options` reads words by tables. What is in no table is not understood.

mod catalogue;
mod git;
mod hazards;
mod interpreters;
mod launchers;
mod options;
mod programs;
mod texts;

use hermes_core::wildcard;

use crate::shell::Command;
use crate::shell::exact::{self, Arg, Reading, Run};
use launchers::Behind;

/// Programs that run programs that run programs.
const DEPTH_MAX: usize = 16;

/// What is to be said of a line that was read exactly.
#[derive(Debug, Default)]
pub(super) struct Exactly {
    /// What bash would do, unless the line is not understood.
    pub(super) reading: Option<Reading>,
    /// Why somebody is asked.
    pub(super) asked: Option<String>,
    /// Every program with its words, those behind others too. Nothing is left out when the line is understood.
    pub(super) calls: Vec<Vec<Arg>>,
}

impl Exactly {
    /// The programs as the lenient rules judge them.
    pub(super) fn commands(&self) -> Vec<Command> {
        let command = |words: &Vec<Arg>| Command {
            words: words.iter().map(Arg::shown).collect(),
            ..Command::default()
        };
        self.calls.iter().map(command).collect()
    }

    /// Returns the words of a line that is one plain command, all of them known.
    pub(super) fn plain_words(&self) -> Option<Vec<String>> {
        let reading = self
            .reading
            .as_ref()
            .filter(|reading| reading.is_one_command)?;
        let [run] = reading.runs.as_slice() else {
            return None;
        };
        run.words.iter().map(Arg::literal).collect()
    }

    /// Returns whether a word hides another program, so that a pattern of such lines would say too little.
    pub(super) fn hides_program(&self) -> bool {
        let signs = [
            "by an option",
            "another program, or write",
            "gives git",
            "may be another program",
        ];
        self.asked
            .as_ref()
            .is_some_and(|asked| signs.iter().any(|sign| asked.contains(sign)))
    }

    /// Patterns that a person may allow: the line itself, then what such lines have in common where that is harmless to say.
    pub(super) fn patterns(&self, line: &str) -> Vec<String> {
        let Some(words) = self.plain_words() else {
            return Vec::new();
        };
        let mut patterns = vec![wildcard::escape(line.trim())];
        if let [program, subcommand, ..] = words.as_slice()
            && !self.hides_program()
            && BROAD.iter().any(|(name, subcommands)| {
                name == program && subcommands.contains(&subcommand.as_str())
            })
        {
            patterns.push(format!("{program} {subcommand} *"));
        }
        patterns
    }
}

/// Programs and subcommands of which a person may allow all: they destroy nothing here.
const BROAD: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "push",
            "fetch",
            "pull",
            "clone",
            "merge",
            "rebase",
            "submodule",
            "remote",
            "bisect",
        ],
    ),
    (
        "docker",
        &[
            "exec", "run", "start", "stop", "restart", "build", "compose", "cp", "pull", "push",
        ],
    ),
    (
        "podman",
        &[
            "exec", "run", "start", "stop", "restart", "build", "cp", "pull", "push",
        ],
    ),
    (
        "kubectl",
        &["apply", "exec", "rollout", "scale", "port-forward", "cp"],
    ),
    ("systemctl", &["start", "restart", "reload", "status"]),
    ("npm", &["exec", "config"]),
    ("sudo", &["apt-get", "apt", "systemctl", "docker"]),
];

/// Reads a line, and says what is to be asked.
pub(super) fn judge(line: &str) -> Exactly {
    let reading = match exact::read(line) {
        Ok(reading) => reading,
        Err(why) => {
            return Exactly {
                asked: Some(format!(
                    "{why}; it is not understood, so it may run more than it shows"
                )),
                ..Exactly::default()
            };
        }
    };
    let mut judge = Judge {
        written: written(&reading),
        asked: None,
        calls: Vec::new(),
        is_understood: true,
    };
    let shadows = |name: &String| programs_known(name);
    if let Some(name) = reading.functions.iter().find(|name| shadows(name)) {
        judge.not_understood(format!(
            "gives the name of the program `{name}` to a function"
        ));
    }
    for run in &reading.runs {
        if reading.functions.contains(&run.program()) {
            continue;
        }
        judge.call(&run.words, run, 0);
    }
    for file in &reading.writes {
        if file.beginning().is_empty() && file.is_unknown() {
            judge.ask("writes to a file whose name is only known when it runs".to_owned());
        }
    }
    Exactly {
        reading: judge.is_understood.then_some(reading),
        asked: judge.asked,
        calls: judge.calls,
    }
}

struct Judge {
    written: Vec<String>,
    asked: Option<String>,
    calls: Vec<Vec<Arg>>,
    is_understood: bool,
}

impl Judge {
    fn ask(&mut self, reason: String) {
        self.asked.get_or_insert(reason);
    }

    fn not_understood(&mut self, reason: String) {
        self.is_understood = false;
        self.ask(reason);
    }

    fn call(&mut self, words: &[Arg], run: &Run, depth: usize) {
        let Some(path) = words
            .first()
            .and_then(Arg::literal)
            .filter(|path| !path.is_empty() && !path.starts_with('-'))
        else {
            self.not_understood("runs a program whose name is only known when it runs".to_owned());
            return;
        };
        if depth > DEPTH_MAX {
            self.not_understood("runs programs that run programs without end".to_owned());
            return;
        }
        self.calls.push(words.to_vec());
        let program = name_of(&path);
        let args = &words[1..];
        if path.contains('/') && interpreters::is_written(&path, &self.written) {
            self.ask("runs a file that it writes itself".to_owned());
        }
        if matches!(program.as_str(), "source" | ".") && !args.is_empty() {
            let file = args[0].literal().unwrap_or_default();
            if interpreters::is_written(&file, &self.written) {
                self.ask("runs a file that it writes itself".to_owned());
            }
        }
        match launchers::behind(&program, args) {
            Behind::Nothing => {}
            Behind::Words(inner) => self.call(&inner, run, depth + 1),
            Behind::NotUnderstood(why) => self.not_understood(why),
        }
        for inner in started_by(&program, args) {
            self.call(&inner, run, depth + 1);
        }
        let interpreted = interpreters::why_asked(&program, words, run, &self.written);
        if let Some(reason) = interpreted.or_else(|| programs::why_asked(&program, args, run)) {
            self.ask(reason);
        }
        let own = hazards::why_own_script(&program, args, &self.written);
        if let Some(reason) = own.or_else(|| hazards::why_asked(&program, args)) {
            self.ask(reason);
        }
    }
}

/// Returns the programs that `find` and `fd` run on what they find.
fn started_by(program: &str, args: &[Arg]) -> Vec<Vec<Arg>> {
    let starts = |word: &str| match program {
        "find" | "gfind" => matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir"),
        "fd" | "fdfind" => word.starts_with("--exec") || options::has_letter(word, "xX", "eEtdSc"),
        _ => false,
    };
    let mut started: Vec<Vec<Arg>> = Vec::new();
    let mut is_inside = false;
    for arg in args {
        let text = arg.literal().unwrap_or_default();
        if starts(&text) {
            started.push(Vec::new());
            is_inside = true;
        } else if is_inside && text == ";" {
            is_inside = false;
        } else if is_inside {
            let word = if text.contains('{') {
                Arg::unknown_word()
            } else {
                arg.clone()
            };
            if let Some(words) = started.last_mut() {
                words.push(word);
            }
        }
    }
    started
        .iter_mut()
        .filter(|words| words.is_empty())
        .for_each(|words| words.push(Arg::unknown_word()));
    started
}

/// Returns the name of a program without its folder. Letters' case does not matter, as on some disks.
pub(super) fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase()
}

/// Files that a line writes before it may run them, as far as it says.
fn written(reading: &Reading) -> Vec<String> {
    const WRITERS: &[&str] = &[
        "cp", "mv", "ln", "install", "tee", "curl", "wget", "dd", "sed", "touch", "truncate",
        "patch", "rsync",
    ];
    let mut written: Vec<String> = reading.writes.iter().map(Arg::shown).collect();
    for run in &reading.runs {
        let name = name_of(&run.program());
        let in_place = |word: &Arg| {
            let text = word.shown();
            text.starts_with("--in") || (options::has_letter(&text, "i", "efl"))
        };
        // Without this, its operands are read.
        let only_reads = name == "sed" && !run.words.iter().any(in_place);
        if WRITERS.contains(&name.as_str()) && !only_reads {
            let operands = run.words.iter().skip(1).map(Arg::shown);
            written.extend(operands.map(|word| word.trim_start_matches("of=").to_owned()));
        }
        let words: Vec<String> = run.words.iter().map(Arg::shown).collect();
        if matches!(words.as_slice(), [npm, pkg, ..] if name_of(npm) == "npm" && pkg == "pkg") {
            written.push("package.json".to_owned());
        }
    }
    written
}

/// Returns whether a function of this name would hide a program that we judge by its name.
fn programs_known(name: &str) -> bool {
    super::read_only::is_known(name) || super::rules::is_known(name)
}
