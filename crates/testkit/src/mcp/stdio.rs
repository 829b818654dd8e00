//! The server over stdio: one JSON-RPC message per line, and the faults of a child process.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::{self, Command, Stdio},
    sync::Arc,
};

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    signal::unix::{SignalKind, signal},
    sync::mpsc,
    task::JoinSet,
};

use super::{
    fault::OddId,
    peer::{Outbox, Peer},
    reply::padded,
    rpc,
    rule::{Rule, Rules, START},
    stdio_fault::{GRANDCHILD, RulesFile, StdioFault, log},
};

/// Longer than any test, shorter than anyone would mind a leftover.
const GRANDCHILD_SECONDS: &str = "300";

/// How to serve.
#[derive(Default)]
pub(super) struct StdioOptions {
    pub(super) rules: Rules<StdioFault>,
    pub(super) control: Option<PathBuf>,
    pub(super) log: Option<PathBuf>,
}

struct Server {
    peer: Arc<Peer>,
    rules: Rules<StdioFault>,
    control: Option<RulesFile>,
    log: Option<PathBuf>,
    lines: Outbox,
    /// Each gives back the fault that strikes after it, instead of its answer.
    calls: JoinSet<Option<StdioFault>>,
    reads: bool,
    stays_at_end: bool,
}

/// Serves until stdin ends or a fault ends the process.
pub(super) async fn serve(peer: Peer, options: StdioOptions) -> io::Result<()> {
    let (sender, mut lines) = mpsc::unbounded_channel();
    let mut server = Server {
        peer: Arc::new(peer),
        rules: options.rules,
        control: options.control.map(RulesFile::new),
        log: options.log,
        lines: sender,
        calls: JoinSet::new(),
        reads: true,
        stays_at_end: false,
    };
    server.start()?;
    let mut stdin = BufReader::new(tokio::io::stdin()).lines();
    loop {
        tokio::select! {
            biased;
            Some(line) = lines.recv() => print(&line)?,
            Some(ended) = server.calls.join_next() => {
                if let Some(fault) = ended.map_err(io::Error::other)? {
                    server.strike(&fault)?;
                }
            }
            line = stdin.next_line(), if server.reads => match line? {
                Some(line) => server.take(&line)?,
                None if server.stays_at_end => server.reads = false,
                // Slow calls do not keep the process.
                None => return Ok(()),
            },
        }
    }
}

impl Server {
    fn start(&mut self) -> io::Result<()> {
        self.log(&json!({"method": START, "pid": process::id()}))?;
        let mut rules = self.rules.take_all(START);
        if let Some(file) = &self.control {
            rules.extend(file.update(|rules| rules.take_all(START))?);
        }
        for rule in rules {
            self.strike(&rule.fault)?;
        }
        Ok(())
    }

    fn take(&mut self, line: &str) -> io::Result<()> {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            let error = rpc::RpcError::new(-32700, "Parse error");
            return print(&rpc::response(&Value::Null, Err(error)));
        };
        self.log(&message)?;
        let rule = self.rule_for(rpc::method(&message))?;
        if let Some(rule) = &rule {
            let is_silent = rule.fault.is_silent();
            if !is_silent || !rule.executes {
                self.strike(&rule.fault)?;
            }
            if is_silent && !rule.executes {
                return Ok(());
            }
        }
        if rpc::is_request(&message) {
            let (peer, lines) = (Arc::clone(&self.peer), self.lines.clone());
            let fault = rule.map(|rule| rule.fault);
            let mut call = Box::pin(answer(peer, message, fault, lines));
            // Most need no time, and so are done before the next message is looked at.
            match (&mut call).now_or_never() {
                Some(Some(fault)) => self.strike(&fault)?,
                Some(None) => {}
                None => drop(self.calls.spawn(call)),
            }
        } else {
            self.peer.note(None, &message);
        }
        Ok(())
    }

    /// Does what a fault does by itself, whatever the message.
    fn strike(&mut self, fault: &StdioFault) -> io::Result<()> {
        match fault {
            StdioFault::Exit => process::exit(1),
            StdioFault::StopReading => self.reads = false,
            StdioFault::Garbage => print_garbage()?,
            StdioFault::StderrChatter(lines) => chatter(*lines)?,
            StdioFault::Grandchild => {
                let pid = spawn_grandchild()?;
                self.log(&json!({"method": GRANDCHILD, "pid": pid}))?;
            }
            StdioFault::IgnoreSigterm => {
                // The handler stays for good, though nobody waits for the signal.
                drop(signal(SignalKind::terminate())?);
                self.stays_at_end = true;
            }
            // These lie in the answer, or in that there is none.
            StdioFault::ExitMidLine
            | StdioFault::Hang
            | StdioFault::GiantLineMb(_)
            | StdioFault::DuplicateResponse
            | StdioFault::StrayResponse
            | StdioFault::AnswerToAnother
            | StdioFault::AnswerWithId(_) => {}
        }
        Ok(())
    }

    fn rule_for(&mut self, method: &str) -> io::Result<Option<Rule<StdioFault>>> {
        match (self.rules.take(method), &self.control) {
            (None, Some(file)) => file.update(|rules| rules.take(method)),
            (rule, _) => Ok(rule),
        }
    }

    fn log(&self, message: &Value) -> io::Result<()> {
        match &self.log {
            Some(path) => log(path, message),
            None => Ok(()),
        }
    }
}

/// Answers a request, oddly if the fault lies in the answer.
///
/// Returns the fault that strikes now, if it leaves the request without an answer.
async fn answer(
    peer: Arc<Peer>,
    request: Value,
    fault: Option<StdioFault>,
    lines: Outbox,
) -> Option<StdioFault> {
    let answer = peer.answer(None, &request, &lines).await?;
    let tell = |line: Value| lines.send(line).ok();
    match fault {
        Some(fault) if fault.is_silent() => return Some(fault),
        Some(StdioFault::ExitMidLine) => exit_mid_line(&answer),
        Some(StdioFault::GiantLineMb(megabytes)) => {
            tell(padded(answer, megabytes));
        }
        Some(StdioFault::DuplicateResponse) => {
            tell(answer.clone());
            tell(answer);
        }
        Some(StdioFault::StrayResponse) => {
            tell(OddId::Foreign.put_into(answer.clone()));
            tell(answer);
        }
        Some(StdioFault::AnswerToAnother) => {
            let mut other = answer.clone();
            other["result"] = json!({ "content": [] });
            tell(other);
            tell(answer);
        }
        Some(StdioFault::AnswerWithId(id)) => {
            tell(id.put_into(answer));
        }
        _ => {
            tell(answer);
        }
    }
    None
}

fn print(message: &Value) -> io::Result<()> {
    print_raw(&format!("{message}\n"))
}

/// Prints, and waits until the client has read enough to make room for it.
fn print_raw(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

fn print_garbage() -> io::Result<()> {
    print_raw(
        "Welcome to the server!\n\n{\"jsonrpc\": \"2.0\", \"id\"\n[1, 2\n\u{fffd}\u{1b}[31m\n",
    )
}

fn exit_mid_line(answer: &Value) -> ! {
    let line = answer.to_string();
    // A client that has left does not mind.
    print_raw(&line[..1]).ok();
    process::exit(1)
}

fn chatter(lines: usize) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    (1..=lines).try_for_each(|number| writeln!(stderr, "chatter, line {number} of {lines}"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the point is a process that nobody looks after"
)]
fn spawn_grandchild() -> io::Result<u32> {
    let script = format!("trap '' TERM HUP; exec sleep {GRANDCHILD_SECONDS}");
    let child = Command::new("/bin/sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .spawn()?;
    Ok(child.id())
}
