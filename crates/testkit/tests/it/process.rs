//! Running programs, with the shell as the program.

use std::{fs, time::Duration};

use hermes_testkit::process::Hermes;

const SOON: Duration = Duration::from_secs(10);

fn shell(script: &str) -> Hermes {
    Hermes::new("/bin/sh").args(["-c", script])
}

#[test]
fn a_run_gives_back_both_outputs_and_the_code() {
    let output = shell("cat; echo oops >&2; exit 3").stdin("héllo").run();
    assert_eq!(output.stdout, "héllo");
    assert_eq!(output.stderr, "oops\n");
    assert_eq!(output.code, Some(3));
}

#[test]
fn the_environment_is_clean_but_for_what_is_given() {
    let hermes = shell("env").env("EXTRA", "1");
    let output = hermes.run();
    let mut names: Vec<&str> = output
        .stdout
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0))
        // The shell's own.
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["EXTRA", "HERMES_HOME", "HOME", "LANG", "PATH"]);
    let home = format!("HERMES_HOME={}\n", hermes.home().display());
    assert!(output.stdout.contains(&home));
}

#[test]
fn a_clone_finds_the_same_home() {
    let first = shell("echo kept > $HERMES_HOME/note");
    assert!(first.run().is_success());
    assert_eq!(
        fs::read_to_string(first.home().join("note")).unwrap(),
        "kept\n"
    );
    let second = first.clone().args(["ignored"]);
    assert_eq!(second.home(), first.home());
}

#[test]
fn a_deadline_kills_the_process_and_its_children() {
    let hermes = shell("sleep 60 & wait").deadline(Duration::from_millis(100));
    let output = hermes.run();
    assert_eq!((output.code, output.signal), (None, Some(9)));
    assert!(output.wall < SOON);
}

#[test]
fn a_background_process_can_be_watched_and_killed() {
    let mut running = shell("echo ready; exec sleep 60").spawn();
    running.expect_stdout("ready", SOON);
    let output = running.kill_9();
    assert_eq!(output.signal, Some(9));
    assert_eq!(output.stdout, "ready\n");
}

#[test]
fn a_terminal_takes_keys_and_shows_output() {
    let script = r#"test -t 0 && test -t 1 || exit 9; stty size
        printf 'name? '; read name; echo "hello $name"; exit 4"#;
    let mut terminal = shell(script).spawn_in_terminal();
    terminal.expect("24 80", SOON);
    terminal.expect("name? ", SOON);
    terminal.send("Ada\r");
    terminal.expect("hello Ada\r\n", SOON);
    assert!(terminal.output().contains("name? Ada\r\nhello Ada\r\n"));
    assert_eq!(terminal.wait(SOON), Some(4));
}

#[test]
fn ctrl_c_in_a_terminal_is_a_signal() {
    let script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done";
    let mut terminal = shell(script).spawn_in_terminal();
    terminal.expect("ready", SOON);
    terminal.send("\x03");
    terminal.expect("caught", SOON);
    assert_eq!(terminal.wait(SOON), Some(5));
}

#[test]
#[should_panic(expected = "no `never` within")]
fn what_never_appears_fails_the_test() {
    let mut terminal = shell("echo always").spawn_in_terminal();
    terminal.expect("never", Duration::from_millis(50));
}

#[test]
fn a_screen_is_what_a_person_sees() {
    let terminal = shell(r"printf 'first\rsecond\r\n\033[31mthird\033[0m'").spawn_in_terminal();
    terminal.resize(10, 40);
    terminal.expect_screen("second\nthird", SOON);
    assert!(!terminal.screen().contains("first"));
}
