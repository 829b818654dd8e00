//! Single programs.

use std::path::Path;
use std::time::Duration;

use hermes_core::TerminalError;
use hermes_exec::{interactive, output};

use crate::{NEVER, environment, is_alive, is_written, pid_in, wait_until};

#[tokio::test]
async fn a_programs_output_and_errors_are_kept_apart() {
    let args = ["-c", "echo out; echo err >&2; exit 4"];
    let output = output("sh", args, &environment(), Path::new("/"), NEVER)
        .await
        .unwrap();
    assert_eq!(
        (output.stdout.as_str(), output.stderr.as_str()),
        ("out\n", "err\n")
    );
    assert_eq!(output.status.code(), Some(4));
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let error = output("no-such-program", [""; 0], &[], Path::new("/"), NEVER)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no-such-program"), "{error}");
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["-c", "sleep 100 & echo $! > pid; wait"];
    let pid = folder.path().join("pid");
    let mut limit = Duration::from_millis(300);
    // A busy machine may not have begun by then.
    while !is_written(&pid) {
        let error = output("sh", args, &environment(), folder.path(), limit)
            .await
            .unwrap_err();
        assert!(matches!(error, TerminalError::Lost { .. }), "{error}");
        limit *= 4;
        assert!(limit < NEVER, "the program never began");
    }
    let child = pid_in(&pid);
    wait_until("the child is gone", || !is_alive(&child));
}

#[test]
fn an_interactive_program_returns_its_status() {
    let status = interactive("sh", ["-c", "exit 7"], Path::new("/")).unwrap();
    assert_eq!(status.code(), Some(7));
}
