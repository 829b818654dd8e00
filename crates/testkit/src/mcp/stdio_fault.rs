//! The ways in which the stdio server fails, and the handle for tests that start it.
//! Faults, ledger and log are files, because a client that does its duty starts the program again.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

use super::{
    fault::OddId,
    ledger,
    rule::{Rule, Rules, START},
};

/// What goes wrong with one message, or with the start of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StdioFault {
    /// Exits with code 1.
    Exit,
    /// Exits in the middle of the line that is the answer. Always executes.
    ExitMidLine,
    /// Never answers this message; others are answered.
    Hang,
    /// Neither answers nor reads anything more.
    StopReading,
    /// Prints lines that are not JSON-RPC, then goes on.
    Garbage,
    /// Answers in one line of more than so many megabytes. Always executes.
    GiantLineMb(usize),
    /// Answers twice. Always executes.
    DuplicateResponse,
    /// Answers, after an answer to a request that nobody made. Always executes.
    StrayResponse,
    /// Answers, after an answer to another client whose request had the same id. Always executes.
    AnswerToAnother,
    /// Answers with an id that is not quite the request's. Always executes.
    AnswerWithId(OddId),
    /// Writes so many lines to stderr, then goes on.
    StderrChatter(usize),
    /// Starts a process that ignores SIGTERM and outlives the server, with the server's stdout in
    /// its hands; then goes on.
    Grandchild,
    /// Ignores SIGTERM and the end of stdin from now on.
    IgnoreSigterm,
}

/// What the program `hermes-faulty-mcp` was told and did, over all its starts.
///
/// Give [`StdioMcp::args`] to the program; the methods are those of `FaultyMcp`. A fault on
/// [`START`] strikes when the program starts.
#[derive(Debug)]
pub struct StdioMcp {
    folder: TempDir,
}

/// A file of rules that the test writes and the program takes from.
#[derive(Debug)]
pub(super) struct RulesFile(PathBuf);

impl StdioFault {
    /// Tells whether it leaves the message without an answer.
    pub(super) fn is_silent(&self) -> bool {
        matches!(self, Self::Exit | Self::Hang | Self::StopReading)
    }
}

impl Default for StdioMcp {
    fn default() -> Self {
        Self::new()
    }
}

impl StdioMcp {
    /// # Panics
    /// If there is no room for temporary files, as do all methods that need them.
    pub fn new() -> Self {
        Self {
            folder: TempDir::new().expect("a temporary folder"),
        }
    }

    /// Returns the arguments that make the program speak stdio under this handle.
    pub fn args(&self) -> Vec<OsString> {
        let files = ["ledger", "control", "log"].map(|name| {
            let option = OsString::from(format!("--{name}"));
            [option, self.file(name).into_os_string()]
        });
        let mut args = vec![OsString::from("--stdio")];
        args.extend(files.into_iter().flatten());
        args
    }

    /// Makes the next request fail, or those that the rule names.
    pub fn fail(&self, rule: impl Into<Rule<StdioFault>>) {
        self.update_rules(|rules| rules.add(rule.into()));
    }

    /// Makes the next `times` requests fail.
    pub fn fail_times(&self, times: usize, fault: StdioFault) {
        self.fail(Rule::once(fault).times(times));
    }

    /// Takes back every fault that has not struck yet.
    pub fn clear(&self) {
        self.update_rules(Rules::clear);
    }

    /// Returns how often `append` was executed with this word.
    pub fn executions(&self, word: &str) -> usize {
        let words = ledger::read(&self.file("ledger")).expect("a readable ledger");
        words.iter().filter(|known| *known == word).count()
    }

    /// Returns every message so far, and [`START`] for every start, with its process id.
    pub fn messages(&self) -> Vec<Value> {
        let lines = ledger::read(&self.file("log")).expect("a readable log");
        let parse = |line: &String| serde_json::from_str(line).expect("a log of JSON lines");
        lines.iter().map(parse).collect()
    }

    /// Returns how many messages of this method arrived.
    pub fn count(&self, method: &str) -> usize {
        self.of_method(method).count()
    }

    /// Returns the request ids that the client has cancelled.
    pub fn cancelled(&self) -> Vec<Value> {
        let notes = self.of_method("notifications/cancelled");
        notes
            .map(|note| note["params"]["requestId"].clone())
            .collect()
    }

    /// Returns the process id of every start.
    pub fn process_ids(&self) -> Vec<u64> {
        pids(self.of_method(START))
    }

    /// Returns the process ids that [`StdioFault::Grandchild`] has made.
    pub fn grandchild_ids(&self) -> Vec<u64> {
        pids(self.of_method(GRANDCHILD))
    }

    fn of_method(&self, method: &str) -> impl Iterator<Item = Value> {
        let messages = self.messages().into_iter();
        messages.filter(move |message| message["method"] == method)
    }

    fn update_rules(&self, change: impl FnOnce(&mut Rules<StdioFault>)) {
        let file = RulesFile::new(self.file("control"));
        file.update(change).expect("a control file of rules");
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The method under which the log tells of a grandchild.
pub(super) const GRANDCHILD: &str = "grandchild";

impl RulesFile {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Changes the rules while nobody else reads or writes them.
    pub(super) fn update<T>(
        &self,
        change: impl FnOnce(&mut Rules<StdioFault>) -> T,
    ) -> io::Result<T> {
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&self.0)?;
        file.lock()?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut rules = match text.trim() {
            "" => Rules::default(),
            text => serde_json::from_str(text)?,
        };
        let result = change(&mut rules);
        file.seek(SeekFrom::Start(0))?;
        file.set_len(0)?;
        file.write_all(serde_json::to_string(&rules)?.as_bytes())?;
        Ok(result)
    }
}

/// Appends a message to the log, in a single write so that a kill leaves whole lines.
pub(super) fn log(path: &Path, message: &Value) -> io::Result<()> {
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)?;
    file.write_all(format!("{message}\n").as_bytes())
}

fn pids(messages: impl Iterator<Item = Value>) -> Vec<u64> {
    messages
        .filter_map(|message| message["pid"].as_u64())
        .collect()
}
