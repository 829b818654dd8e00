//! `process`, and `terminal` in the background, over processes that only exist on paper.

use std::sync::Mutex;
use std::time::Duration;

use hermes_core::{
    BoxFuture, CancellationToken, Consent, NotifyOn, ProcessError, ProcessName, ProcessState,
    ProcessStatus, Processes, SessionId, ShellCommand, Timestamp,
};
use serde_json::json;

use crate::{Place, context, plan};

const PROCESS: &str = "process";

/// Starts nothing: keeps what it was asked for. Every process is called `proc_1` and runs until it is killed.
#[derive(Default)]
pub(crate) struct PaperProcesses {
    line: Mutex<Option<String>>,
    typed: Mutex<Vec<u8>>,
    state: Mutex<Option<ProcessState>>,
}

impl PaperProcesses {
    fn status(&self) -> Option<ProcessStatus> {
        let line = self.line.lock().unwrap().clone()?;
        let typed = String::from_utf8(self.typed.lock().unwrap().clone()).unwrap();
        Some(ProcessStatus {
            id: "proc_1".into(),
            line,
            cwd: "/".into(),
            pid: Some(7),
            started_at: Timestamp::from_millis(0),
            uptime: Duration::from_secs(3),
            state: self.state.lock().unwrap().unwrap_or(ProcessState::Running),
            tail: format!("one\ntwo\nthree\n{typed}"),
        })
    }

    fn find(&self, process: ProcessName<'_>) -> Result<ProcessStatus, ProcessError> {
        let status = self.status().filter(|status| status.id == process.id);
        status.ok_or_else(|| ProcessError::Unknown {
            id: process.id.to_owned(),
        })
    }
}

impl Processes for PaperProcesses {
    fn start(
        &self,
        command: ShellCommand,
        _: NotifyOn,
    ) -> BoxFuture<'_, Result<ProcessStatus, ProcessError>> {
        *self.line.lock().unwrap() = Some(command.line);
        Box::pin(async { Ok(self.status().unwrap()) })
    }

    fn list<'a>(
        &'a self,
        _: &'a SessionId,
    ) -> BoxFuture<'a, Result<Vec<ProcessStatus>, ProcessError>> {
        Box::pin(async { Ok(self.status().into_iter().collect()) })
    }

    fn look<'a>(
        &'a self,
        process: ProcessName<'a>,
        _: usize,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>> {
        Box::pin(async move { self.find(process) })
    }

    fn wait<'a>(
        &'a self,
        process: ProcessName<'a>,
        _: Duration,
        _: CancellationToken,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>> {
        Box::pin(async move { self.find(process) })
    }

    fn kill<'a>(
        &'a self,
        process: ProcessName<'a>,
    ) -> BoxFuture<'a, Result<ProcessStatus, ProcessError>> {
        *self.state.lock().unwrap() = Some(ProcessState::Killed);
        Box::pin(async move { self.find(process) })
    }

    fn write<'a>(
        &'a self,
        process: ProcessName<'a>,
        input: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), ProcessError>> {
        self.typed.lock().unwrap().extend(input);
        Box::pin(async move { self.find(process).map(drop) })
    }

    fn close<'a>(&'a self, process: ProcessName<'a>) -> BoxFuture<'a, Result<(), ProcessError>> {
        Box::pin(async move { self.find(process).map(drop) })
    }

    fn notice<'a>(&'a self, _: &'a SessionId) -> BoxFuture<'a, String> {
        Box::pin(std::future::pending())
    }

    fn owes_notice(&self, _: &SessionId) -> bool {
        false
    }

    fn leave(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

async fn started() -> Place {
    let place = Place::new();
    let arguments = json!({"command": "serve", "background": true});
    let text = place.call("terminal", arguments).await.unwrap();
    assert!(text.contains("proc_1"), "{text}");
    place
}

async fn act(place: &Place, action: &str, data: &str) -> String {
    let arguments = json!({"action": action, "session_id": "proc_1", "data": data});
    place.call(PROCESS, arguments).await.unwrap()
}

#[tokio::test]
async fn a_process_is_listed_typed_into_and_killed() {
    let place = started().await;
    let listed = act(&place, "list", "").await;
    assert_eq!(listed, "proc_1 is running for 3 s, pid 7: `serve` three");
    act(&place, "write", "a").await;
    act(&place, "submit", "b").await;
    let polled = act(&place, "poll", "").await;
    assert_eq!(
        polled,
        "one\ntwo\nthree\nab\n[proc_1 is running for 3 s, pid 7]"
    );
    let killed = act(&place, "kill", "").await;
    assert!(killed.ends_with("[proc_1 was killed, pid 7]"), "{killed}");
}

#[tokio::test]
async fn a_log_is_paged_by_lines() {
    let place = started().await;
    for (offset, limit, expected) in [
        (
            0,
            2,
            "two\nthree\n[proc_1 is running for 3 s, pid 7, lines 2 to 3 of 3]",
        ),
        (
            1,
            1,
            "two\n[proc_1 is running for 3 s, pid 7, lines 2 to 2 of 3]",
        ),
        (
            9,
            1,
            "[proc_1 is running for 3 s, pid 7, no lines there; it has 3]",
        ),
    ] {
        let arguments =
            json!({"action": "log", "session_id": "proc_1", "offset": offset, "limit": limit});
        assert_eq!(place.call(PROCESS, arguments).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn what_cannot_be_done_is_answered() {
    let place = started().await;
    for (arguments, expected) in [
        (json!({"action": "poll"}), "`session_id` is missing"),
        (
            json!({"action": "poll", "session_id": "x"}),
            "no process `x`",
        ),
        (
            json!({"action": "submit", "session_id": "proc_1"}),
            "`data` is missing",
        ),
    ] {
        let answer = place.answer(PROCESS, arguments).await;
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn what_is_typed_is_judged_like_a_command() {
    let place = Place::new();
    let tool = place.tool(PROCESS);
    let consent = |data: &str| {
        let arguments = json!({"action": "submit", "data": data});
        plan(&tool, &arguments, place.root()).consent
    };
    assert_eq!(consent("ls"), Consent::NotNeeded);
    assert!(matches!(consent("rm -rf /"), Consent::Forbidden { .. }));
}

#[tokio::test]
async fn a_line_typed_in_pieces_is_judged_as_a_whole() {
    let place = started().await;
    let (tool, cx) = (place.tool(PROCESS), context(place.root()));
    let arguments =
        |action: &str, data: &str| json!({"action": action, "session_id": "proc_1", "data": data});
    let consent = |data: &str| plan(&tool, &arguments("submit", data), place.root()).consent;
    tool.run(arguments("write", "rm -r"), &cx).await.unwrap();
    assert!(matches!(consent("f /"), Consent::Forbidden { .. }));
    let Consent::Needed(need) = consent(" x") else {
        panic!("a person is asked");
    };
    let shown = need.what.as_deref();
    assert_eq!(shown, Some("typed into proc_1: rm -r x"), "all of the line");
    tool.run(arguments("submit", " \\"), &cx).await.unwrap();
    assert!(matches!(consent("-f /"), Consent::Forbidden { .. }));
    tool.run(arguments("submit", "x"), &cx).await.unwrap();
    assert_eq!(consent("/"), Consent::NotNeeded);
}

#[tokio::test]
async fn what_is_typed_to_nobody_does_not_push_out_a_line() {
    let place = started().await;
    let (tool, cx) = (place.tool(PROCESS), context(place.root()));
    let arguments =
        |id: &str, data: &str| json!({"action": "write", "session_id": id, "data": data});
    tool.run(arguments("proc_1", "rm -r"), &cx).await.unwrap();
    for number in 0..100 {
        let made_up = arguments(&format!("proc_x{number}"), "x");
        tool.run(made_up, &cx).await.unwrap_err();
    }
    let consent = plan(&tool, &arguments("proc_1", "f /\n"), place.root()).consent;
    assert!(matches!(consent, Consent::Forbidden { .. }), "{consent:?}");
}
