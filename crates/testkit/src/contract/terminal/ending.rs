//! How commands end that do not end by themselves, and what they leave running.

use std::time::{Duration, Instant};

use hermes_core::{CommandExit, ShellCommand};

use super::Place;

/// Longest a killed command may take to come back; a busy machine and a network included. The commands sleep for twice
/// as long, so whoever is faster did not wait for them.
const END_TIME_MAX: Duration = Duration::from_secs(30);

/// How often a command is asked to end before one of them must have answered: on a busy machine its grace may be over
/// before it had a turn.
const ASKED_TIMES: u32 = 20;

pub(super) async fn check(place: &Place<'_>) {
    a_signal_is_told(place).await;
    a_timeout_keeps_what_was_printed(place).await;
    a_killed_command_leaves_the_shell_as_it_was(place).await;
    a_stopped_command_ends_at_once(place).await;
    a_command_stopped_before_it_began_does_not_begin(place).await;
    a_stop_request_may_be_answered(place).await;
    for (case, line) in [
        ("a_child", "sleep 61.1 & sleep 61.1"),
        (
            "a_stubborn_child",
            "trap '' TERM; (trap '' TERM; sleep 61.1; sleep 61.1) & wait",
        ),
        (
            "a_child_with_a_session_of_its_own",
            "setsid sleep 61.1 & sleep 61.1",
        ),
        ("a_pipeline", "sleep 61.1 | sleep 61.1"),
        ("a_busy_loop", "sleep 61.1 & while :; do :; done"),
    ] {
        everything_dies_at_the_timeout(place, case, line).await;
    }
    everything_dies_with_the_future(place).await;
    what_is_left_on_purpose_runs_on(place).await;
    a_job_can_be_waited_for(place).await;
}

async fn a_signal_is_told(place: &Place<'_>) {
    let output = place.say("signal", "bash -c 'kill -SEGV $$'").await;
    assert_eq!(output.exit, CommandExit::Code(139), "{output:?}");
    let output = place.say("signal", "kill -KILL $$").await;
    let is_killed = matches!(output.exit, CommandExit::Signal(9) | CommandExit::Code(137));
    assert!(is_killed, "{output:?}");
    place.dialogue("signal", &[("echo on", "on\n", 0)]).await;
}

fn short(mut command: ShellCommand) -> ShellCommand {
    command.timeout = Duration::from_millis(1000);
    command
}

async fn a_timeout_keeps_what_was_printed(place: &Place<'_>) {
    let mut command = short(place.command("timeout", "echo started; sleep 61.2"));
    loop {
        let started = Instant::now();
        let output = place.run(command.clone()).await;
        assert_eq!(output.exit, CommandExit::TimedOut);
        assert!(started.elapsed() < END_TIME_MAX, "{:?}", started.elapsed());
        if output.text == "started\n" {
            return;
        }
        // A busy machine may need longer to begin; nothing else may be missing.
        assert_eq!(output.text, "");
        command.timeout *= 4;
        assert!(command.timeout < END_TIME_MAX, "printed nothing");
    }
}

async fn a_killed_command_leaves_the_shell_as_it_was(place: &Place<'_>) {
    place.say("as_it_was", "A=before").await;
    let command = short(place.command("as_it_was", "A=after; cd /usr; sleep 61.2"));
    assert_eq!(place.run(command).await.exit, CommandExit::TimedOut);
    let expected = format!("before {}\n", place.cwd.display());
    assert_eq!(place.say("as_it_was", "echo $A $PWD").await.text, expected);
}

async fn a_stopped_command_ends_at_once(place: &Place<'_>) {
    let command = place.command("stopped", "echo a; sleep 61.2");
    let stop = command.stop.clone();
    let stopping = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        stop.cancel();
        Instant::now()
    };
    let (output, stopped) = tokio::join!(place.run(command), stopping);
    assert_eq!(output.exit, CommandExit::Stopped);
    assert!(stopped.elapsed() < END_TIME_MAX, "{:?}", stopped.elapsed());
}

async fn a_command_stopped_before_it_began_does_not_begin(place: &Place<'_>) {
    let command = place.command("never_begun", "touch never_begun");
    command.stop.cancel();
    assert_eq!(place.run(command).await.exit, CommandExit::Stopped);
    place
        .dialogue("never_begun", &[("test -e never_begun", "", 1)])
        .await;
}

async fn a_stop_request_may_be_answered(place: &Place<'_>) {
    let line = "trap 'touch answered; exit 0' TERM; touch asked; while :; do sleep 0.01; done";
    for _ in 0..ASKED_TIMES {
        let command = place.command("answered", line);
        let stop = command.stop.clone();
        let stopping = async {
            place.wait_for("answered", "[ -e asked ]").await;
            stop.cancel();
        };
        let (output, ()) = tokio::join!(place.run(command), stopping);
        assert_eq!(output.exit, CommandExit::Stopped);
        let answer = place.say("answered", "rm asked; rm answered").await;
        if answer.exit == CommandExit::Code(0) {
            return;
        }
    }
    panic!("no command could answer the request to end");
}

/// A condition: no process sleeps for this long.
fn nobody_sleeps(seconds: &str) -> String {
    // `cmdline` has a NUL between arguments, which `.` stands for; `[.]` is no match for itself.
    let pattern = format!("sleep.{}", seconds.replace('.', "[.]"));
    format!("! grep -qsa '{pattern}' /proc/[0-9]*/cmdline")
}

async fn everything_dies_at_the_timeout(place: &Place<'_>, case: &str, line: &str) {
    // A number of its own, so that other commands on the machine are not taken for ours.
    let unique = format!(
        "61.{}",
        1000 + case.len() * 131 + std::process::id() as usize % 997
    );
    let line = line.replace("61.1", &unique);
    let output = place.run(short(place.command(case, &line))).await;
    assert_eq!(output.exit, CommandExit::TimedOut, "{case}");
    place.wait_for(case, &nobody_sleeps(&unique)).await;
}

async fn everything_dies_with_the_future(place: &Place<'_>) {
    let unique = format!("62.{}", std::process::id());
    let line = format!("sleep {unique} & touch dropping; wait");
    let command = place.command("dropped", &line);
    tokio::select! {
        output = place.run(command) => panic!("ended by itself: {output:?}"),
        () = place.wait_for("dropped", "[ -e dropping ]") => {}
    }
    place.wait_for("dropped", &nobody_sleeps(&unique)).await;
    place.say("dropped", "rm dropping").await;
}

async fn what_is_left_on_purpose_runs_on(place: &Place<'_>) {
    let started = Instant::now();
    let output = place.say("left", "sleep 63 & echo $!").await;
    assert_eq!(output.exit, CommandExit::Code(0));
    assert!(started.elapsed() < END_TIME_MAX, "{:?}", started.elapsed());
    let pid = output.text.trim();
    let line = format!("kill -0 {pid} && kill {pid} && echo killed");
    place.dialogue("left", &[(&line, "killed\n", 0)]).await;
}

async fn a_job_can_be_waited_for(place: &Place<'_>) {
    let line = "(sleep 0.05; echo job) & wait; echo end";
    place.dialogue("job", &[(line, "job\nend\n", 0)]).await;
}
