//! The exact reading of lines against the real bash: what is understood runs nothing, and writes nothing, that was not named.
//!
//! Lines are made up and changed at random, from a grammar and from a corpus. Bash has no program but its own words here:
//! every other name ends in a function that writes down its words. Variables hold what would run if they were computed
//! with. Lines that are not understood do not run at all.
//!
//! `HERMES_SHELL_SECONDS` and `HERMES_SHELL_SEED` let it run longer and otherwise (`scripts/fuzz-shell`).

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hermes_tools::policy::{Named, named};

use super::shell_lines::{Dice, changed, line};

/// How long the test runs by default.
const SECONDS: u64 = 12;

/// A line that takes longer is ended, and what it did so far is looked at.
const LINE_TIME: Duration = Duration::from_millis(1500);

/// Lines that are kept to be changed.
const CORPUS_MAX: usize = 2500;

/// What bash runs first. `kill` is no word of this shell: a line must not end other processes. Loops without end, and files
/// without end, are ended by the system.
const PRELUDE: &str = r#"command_not_found_handle() { printf '%s\0' "$#" "$@" >> "@LOG@/$BASHPID"; case $1 in no) return 1;; grab) printf '%s\n' "zap grabbed";; esac; }
enable -n kill suspend fc history bind enable; FUNCNEST=6; ulimit -t 1 -f 256; trap wait EXIT; eval "$1""#;

/// Where bash may be: the search path of a line is empty.
const BASHES: &[&str] = &[
    "/bin/bash",
    "/usr/bin/bash",
    "/usr/local/bin/bash",
    "/opt/homebrew/bin/bash",
];

/// What variables hold before a line runs: text that is a command when it is split, computed with or run.
const HOSTILE: &[(&str, &str)] = &[
    ("x", "zap hidden"),
    ("y", "a[$(zap computed)]"),
    ("z", "-v a[$(zap subscript)]"),
    ("i", "a[$(zap counted)]"),
    ("n", "$(zap again)"),
    ("FOO", "hidden file"),
];

#[expect(
    clippy::disallowed_methods,
    reason = "a test may be told how long to run"
)]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn bash_runs_and_writes_nothing_that_an_understood_line_does_not_name() {
    let number = |name: &str| setting(name).and_then(|text| text.parse::<u64>().ok());
    let seconds = number("HERMES_SHELL_SECONDS").unwrap_or(SECONDS);
    let seed = number("HERMES_SHELL_SEED").unwrap_or(1);
    let mut dice = Dice::new(seed);
    let mut corpus = Corpus::load();
    let sandbox = Sandbox::new();
    let started = Instant::now();
    let (mut tried, mut ran) = (0_u64, 0_u64);
    let mut findings = Vec::new();
    let first: Vec<String> = corpus.lines.clone();
    let mut first = first.into_iter();
    while started.elapsed() < Duration::from_secs(seconds) {
        let candidate = first.next().unwrap_or_else(|| match dice.below(3) {
            0 => line(&mut dice),
            _ => {
                let (one, other) = (corpus.any(&mut dice), corpus.any(&mut dice));
                changed(&mut dice, &one, &other)
            }
        });
        tried += 1;
        let Ok(named) = named(&candidate) else {
            continue;
        };
        if !is_safe(&candidate) {
            continue;
        }
        ran += 1;
        let finding = sandbox.contradicts(&candidate, &named);
        // What an earlier line left running may have done it.
        let finding = finding.and_then(|_| {
            std::thread::sleep(Duration::from_millis(200));
            sandbox.reset();
            sandbox.contradicts(&candidate, &named)
        });
        if let Some(finding) = finding {
            findings.push(format!("{candidate:?}\n    {finding}"));
            corpus.keep(&candidate);
        } else {
            corpus.keep_if_new(&candidate);
        }
        if findings.len() >= 20 {
            break;
        }
    }
    println!(
        "seed {seed}: {tried} lines, {ran} understood and run, {} contradictions",
        findings.len()
    );
    assert!(findings.is_empty(), "seed {seed}\n{}", findings.join("\n"));
    assert!(
        ran * 50 > tried,
        "too few lines are understood: {ran} of {tried}"
    );
}

/// Paths that lead out of the sandbox do not run.
fn is_safe(line: &str) -> bool {
    let chars: Vec<char> = line.chars().collect();
    let leads_out = |at: usize| {
        let before = at.checked_sub(1).map(|at| chars[at]);
        chars[at] == '/' && !before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '~')
    };
    !line.contains("..") && !line.contains('\0') && !(0..chars.len()).any(leads_out)
        || line.contains("{1..") && !(0..chars.len()).any(leads_out)
}

struct Corpus {
    folder: PathBuf,
    lines: Vec<String>,
    shapes: BTreeSet<String>,
    keeps: bool,
}

impl Corpus {
    fn load() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/shell");
        let mut lines: Vec<String> = include_str!("shell_seeds.txt")
            .split("\n----\n")
            .map(str::to_owned)
            .collect();
        let mut files: Vec<PathBuf> = fs::read_dir(&folder)
            .map(|entries| {
                entries
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .collect()
            })
            .unwrap_or_default();
        files.sort();
        for file in files {
            let text = fs::read_to_string(file).unwrap_or_default();
            lines.extend(text.split("\n----\n").map(str::to_owned));
        }
        let shapes = lines.iter().map(|line| shape(line)).collect();
        Self {
            folder,
            lines,
            shapes,
            keeps: setting("HERMES_SHELL_KEEP").is_some(),
        }
    }

    fn any(&self, dice: &mut Dice) -> String {
        dice.choice(&self.lines).clone()
    }

    /// Keeps a line whose construction has not been seen.
    fn keep_if_new(&mut self, line: &str) {
        if line.len() < 200 && self.lines.len() < CORPUS_MAX && self.shapes.insert(shape(line)) {
            self.keep(line);
        }
    }

    fn keep(&mut self, line: &str) {
        self.lines.push(line.to_owned());
        if self.keeps {
            fs::create_dir_all(&self.folder).unwrap();
            let mut file = fs::File::options();
            let file = file
                .create(true)
                .append(true)
                .open(self.folder.join("found"));
            write!(file.unwrap(), "{line}\n----\n").unwrap();
        }
    }
}

/// A line with all its words alike.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for c in line.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '_' {
            'a'
        } else {
            c
        };
        let repeats = matches!(c, 'a' | ' ') && shape.ends_with(c);
        if !repeats {
            shape.push(c);
        }
    }
    shape
}

struct Sandbox {
    root: tempfile::TempDir,
    /// Lines that ran: each has a folder of logs of its own.
    count: Cell<u64>,
}

impl Sandbox {
    fn new() -> Self {
        let sandbox = Self {
            root: tempfile::tempdir().unwrap(),
            count: Cell::new(0),
        };
        sandbox.reset();
        sandbox
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join("in/a/b/work")
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("in/home")
    }

    fn log(&self) -> PathBuf {
        self.root.path().join(format!("log{}", self.count.get()))
    }

    fn reset(&self) {
        let _ = fs::remove_dir_all(self.root.path().join("in"));
        fs::create_dir_all(self.folder().join("d")).unwrap();
        fs::create_dir_all(self.home()).unwrap();
        for (name, text) in [
            ("f1", "zap from f1\n"),
            ("f2.txt", "x\n"),
            ("-n", ""),
            ("d/f3", "3\n"),
        ] {
            fs::write(self.folder().join(name), text).unwrap();
        }
    }

    /// Says what bash did that was not named.
    fn contradicts(&self, line: &str, named: &Named) -> Option<String> {
        let before = self.files();
        self.count.set(self.count.get() + 1);
        fs::create_dir_all(self.log()).unwrap();
        self.run(line);
        let home = self.home().to_string_lossy().into_owned();
        let ran = self
            .calls()
            .into_iter()
            .find(|call| !named.runs(call, &home));
        let after = self.files();
        let mut written = after
            .iter()
            .filter(|(path, text)| before.get(*path) != Some(*text));
        let finding = ran.map(|call| format!("ran {call:?}")).or_else(|| {
            let (path, _) = written.find(|(path, _)| !self.may_write(path, named, &home))?;
            Some(format!("wrote {}", path.display()))
        });
        if after != before {
            self.reset();
        }
        finding
    }

    /// Every program has a file of its own, since those that run at once would write into each other's words.
    fn calls(&self) -> Vec<Vec<String>> {
        let files = fs::read_dir(self.log()).unwrap().flatten();
        let logs = files.map(|file| fs::read(file.path()).unwrap_or_default());
        let calls = logs.flat_map(|log| calls(&log)).collect();
        let _ = fs::remove_dir_all(self.log());
        calls
    }

    /// The line may have gone to a folder first, so each end of the path is looked for.
    fn may_write(&self, path: &Path, named: &Named, home: &str) -> bool {
        let whole = path.to_string_lossy();
        if named.writes(&whole, home) {
            return true;
        }
        let inside = path
            .strip_prefix(self.folder())
            .or_else(|_| path.strip_prefix(self.root.path()));
        let text = inside.unwrap_or(path).to_string_lossy().into_owned();
        let starts = text.match_indices('/').map(|(at, _)| at + 1);
        std::iter::once(0)
            .chain(starts)
            .any(|start| named.writes(&text[start..], home))
    }

    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root.path().join("in")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    files.insert(entry.path(), fs::read(entry.path()).unwrap_or_default());
                }
            }
        }
        files
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the shell that lines are held against"
    )]
    fn run(&self, line: &str) {
        let prelude = PRELUDE.replace("@LOG@", &self.log().to_string_lossy());
        let program = BASHES.iter().find(|path| Path::new(path).exists());
        let mut command = Command::new(program.unwrap_or(&"bash"));
        command.args(["--norc", "--noprofile", "-c", &prelude, "bash", line]);
        command.env_clear().envs(HOSTILE.iter().copied());
        command
            .env("HOME", self.home())
            .env("PATH", self.root.path().join("none"));
        command.env("LC_ALL", "C.UTF-8");
        command.current_dir(self.folder());
        command.stdin(fs::File::open(self.folder().join("f1")).map_or(Stdio::null(), Stdio::from));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let deadline = Instant::now() + LINE_TIME;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                break;
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

/// Reads what was written down: the number of words, then the words, each ended by NUL.
fn calls(log: &[u8]) -> Vec<Vec<String>> {
    let mut words = log
        .split(|byte| *byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned());
    let mut calls = Vec::new();
    while let Some(count) = words.next().and_then(|count| count.parse::<usize>().ok()) {
        calls.push(words.by_ref().take(count).collect());
    }
    calls
}
