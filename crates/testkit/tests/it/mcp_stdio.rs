//! The `hermes-faulty-mcp` program over stdio: what its client reads, and what is left afterwards.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use hermes_testkit::{
    mcp::{Rule, START, StdioFault, StdioMcp},
    process::{Hermes, Output},
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::mcp_client::wait_until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hermes-faulty-mcp");

/// Runs the program on these messages to the end of its input.
fn run(mcp: &StdioMcp, messages: &[Value]) -> Output {
    let input: String = messages
        .iter()
        .map(|message| format!("{message}\n"))
        .collect();
    Hermes::new(PROGRAM).args(mcp.args()).stdin(input).run()
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25"}})
}

fn append(id: u32) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "append", "arguments": {"word": "w"}}})
}

/// Returns the ids of the lines that are responses, in order.
fn ids(output: &Output) -> Vec<Value> {
    let messages = output
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    messages
        .map(|message: Value| message["id"].clone())
        .collect()
}

#[test]
fn it_answers_a_line_with_a_line() {
    let mcp = StdioMcp::new();
    let output = run(&mcp, &[initialize(), append(1), append(2)]);
    assert!(output.is_success(), "{}", output.stderr);
    assert_eq!(ids(&output), [json!(0), json!(1), json!(2)]);
    let first: Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        (
            mcp.executions("w"),
            mcp.count("tools/call"),
            mcp.count(START)
        ),
        (2, 2, 1)
    );
}

#[test]
fn it_exits_before_or_after_executing_a_call() {
    for (rule, executions) in [
        (Rule::once(StdioFault::Exit), 0),
        (Rule::once(StdioFault::Exit).after_executing(), 1),
        (Rule::once(StdioFault::ExitMidLine), 1),
    ] {
        let mcp = StdioMcp::new();
        mcp.fail(rule.clone());
        let output = run(&mcp, &[initialize(), append(1)]);
        assert_eq!(
            (output.code, mcp.executions("w")),
            (Some(1), executions),
            "{rule:?}"
        );
        assert_eq!(ids(&output), [json!(0)]);
        // The next start knows that the fault has struck.
        assert_eq!(ids(&run(&mcp, &[append(2)])), [json!(2)]);
        assert_eq!(mcp.executions("w"), executions + 1);
    }
}

#[test]
fn it_crashes_at_start_as_often_as_it_is_told() {
    let mcp = StdioMcp::new();
    mcp.fail(Rule::once(StdioFault::Exit).on(START).times(2));
    let codes = [(); 3].map(|()| run(&mcp, &[]).code);
    assert_eq!(codes, [Some(1), Some(1), Some(0)]);
    assert_eq!(mcp.process_ids().len(), 3);
}

#[test]
fn it_speaks_garbage_giant_lines_and_twice() {
    let mcp = StdioMcp::new();
    mcp.fail(Rule::once(StdioFault::Garbage).on(START));
    mcp.fail(Rule::once(StdioFault::Garbage).on("tools/call"));
    mcp.fail(Rule::once(StdioFault::GiantLineMb(1)).on("tools/call"));
    mcp.fail(Rule::once(StdioFault::DuplicateResponse).on("tools/call"));
    mcp.fail(Rule::once(StdioFault::StderrChatter(3)).on("tools/call"));
    let output = run(
        &mcp,
        &[initialize(), append(1), append(2), append(3), append(4)],
    );
    let ids = ids(&output);
    assert_eq!(
        ids,
        [json!(0), json!(1), json!(2), json!(3), json!(3), json!(4)]
    );
    assert_eq!(output.stdout.matches("Welcome").count(), 2);
    assert!(output.stdout.lines().any(|line| line.len() > 1 << 20));
    assert!(
        output.stderr.contains("chatter, line 3 of 3"),
        "{}",
        output.stderr
    );
    assert_eq!(mcp.executions("w"), 4);
}

#[test]
fn it_hangs_on_one_call_and_answers_the_next() {
    let mcp = StdioMcp::new();
    mcp.fail(
        Rule::once(StdioFault::Hang)
            .on("tools/call")
            .after_executing(),
    );
    let output = run(&mcp, &[append(1), append(2)]);
    assert_eq!(ids(&output), [json!(2)]);
    assert_eq!(mcp.executions("w"), 2);
}

#[test]
fn it_stops_reading_with_its_pipe_open() {
    let mcp = StdioMcp::new();
    mcp.fail(StdioFault::StopReading);
    let mut session = Session::start(&mcp);
    session.say(&append(1));
    session.say(&append(2));
    wait_until(|| mcp.count("tools/call") == 1);
    thread::sleep(Duration::from_millis(50));
    assert_eq!((mcp.count("tools/call"), mcp.executions("w")), (1, 0));
    assert!(session.child.try_wait().unwrap().is_none());
}

#[test]
fn a_cancelled_call_is_not_answered() {
    let mcp = StdioMcp::new();
    let mut session = Session::start(&mcp);
    session.say(
        &json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params":
        {"name": "slow", "arguments": {"ms": 60_000}, "_meta": {"progressToken": 1}}}),
    );
    assert_eq!(session.hear()["method"], "notifications/progress");
    session.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 7}}),
    );
    wait_until(|| mcp.cancelled() == [json!(7)]);
    session.say(&append(8));
    while session.hear()["id"] != 8 {}
}

#[test]
fn it_can_ignore_sigterm_and_the_end_of_its_input() {
    let mcp = StdioMcp::new();
    mcp.fail(Rule::once(StdioFault::IgnoreSigterm).on(START));
    let mut session = Session::start(&mcp);
    session.say(&append(1));
    assert_eq!(session.hear()["id"], 1);
    kill_process(session.pid(), Signal::TERM).unwrap();
    session.stdin = None;
    thread::sleep(Duration::from_millis(200));
    assert!(session.child.try_wait().unwrap().is_none());
}

#[test]
fn a_grandchild_outlives_the_server_and_holds_its_output() {
    let mcp = StdioMcp::new();
    mcp.fail(Rule::once(StdioFault::Grandchild).on(START));
    let mut session = Session::start(&mcp);
    session.say(&append(1));
    assert_eq!(session.hear()["id"], 1);
    session.stdin = None;
    assert!(session.child.wait().unwrap().success());
    let grandchild = i32::try_from(mcp.grandchild_ids()[0]).unwrap();
    let grandchild = Pid::from_raw(grandchild).unwrap();
    kill_process(grandchild, Signal::TERM).unwrap();
    thread::sleep(Duration::from_millis(50));
    assert!(test_kill_process(grandchild).is_ok(), "it ignores SIGTERM");
    kill_process(grandchild, Signal::KILL).unwrap();
    let mut rest = String::new();
    session.stdout.read_to_string(&mut rest).unwrap();
}

/// A client that talks to the program line by line; dropping it kills the program.
struct Session {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Session {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test is the program's client"
    )]
    fn start(mcp: &StdioMcp) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(mcp.args())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            stdin: child.stdin.take(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
