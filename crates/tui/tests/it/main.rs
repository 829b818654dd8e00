//! The interface in a real terminal, with an echo behind it.

use std::time::Duration;

use hermes_testkit::process::{Hermes, Terminal};

const SOON: Duration = Duration::from_secs(30);

fn echo() -> Terminal {
    let terminal = Hermes::new(env!("CARGO_BIN_EXE_hermes-tui-echo")).spawn_in_terminal();
    terminal.expect_screen("/help shows", SOON);
    terminal
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_reported() {
    let mut terminal = echo();
    terminal.send("panic\r");
    terminal.expect("\x1b[?2004l", SOON);
    terminal.expect("\x1b[?25h", SOON);
    terminal.expect("the echo broke", SOON);
    assert_eq!(terminal.wait(SOON), Some(101));
}

#[test]
fn a_panic_that_is_caught_leaves_the_interface_alone_and_is_reported_at_the_end() {
    let mut terminal = echo();
    terminal.send("quietly\r");
    terminal.expect_screen("you said: quietly", SOON);
    terminal.send("still here\r");
    terminal.expect_screen("you said: still here", SOON);
    let shown = terminal.output();
    assert!(!shown.contains("a tool broke") && !shown.contains("\x1b[?2004l"));
    terminal.send("/quit\r");
    terminal.expect("\x1b[?2004l", SOON);
    terminal.expect("a tool broke", SOON);
    assert_eq!(terminal.wait(SOON), Some(0));
}
