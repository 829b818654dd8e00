//! `hermes logs`.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::time::Duration;

use hermes_testkit::process::Hermes;

use super::{contains, run, stdout};
use crate::setting::bare;

const LOG: &str = "\
2026-11-15T21:24:05.123Z  INFO hermes: one session=s1
2026-11-15T21:24:06.123Z  WARN hermes: two session=s2
2026-11-15T21:24:07.123Z ERROR hermes: three session=s1
";

fn with_log(text: &str) -> Hermes {
    let hermes = bare();
    fs::create_dir(hermes.home().join("logs")).unwrap();
    fs::write(hermes.home().join("logs/agent.log"), text).unwrap();
    hermes
}

#[test]
fn before_anything_is_logged_it_says_so() {
    contains(
        &stdout(&bare(), &["logs"]),
        &["nothing to show", "agent.log"],
    );
}

#[test]
fn the_last_lines_are_shown_and_filtered() {
    let hermes = with_log(LOG);
    assert_eq!(stdout(&hermes, &["logs"]), LOG);
    let last = stdout(&hermes, &["logs", "-n", "1"]);
    assert!(
        last.contains("three") && last.lines().count() == 1,
        "{last}"
    );
    let warnings = stdout(&hermes, &["logs", "--level", "warn"]);
    assert!(
        warnings.contains("two") && !warnings.contains("one"),
        "{warnings}"
    );
    assert_eq!(stdout(&hermes, &["logs", "errors"]), warnings);
    assert_eq!(stdout(&hermes, &["logs", "agent"]), LOG);
    let session = stdout(&hermes, &["logs", "--session", "s1", "-n", "5"]);
    assert!(
        session.contains("three") && !session.contains("two"),
        "{session}"
    );
    contains(
        &stdout(&hermes, &["logs", "--session", "s9"]),
        &["nothing to show"],
    );
    assert_eq!(run(&hermes, &["logs", "--level", "loud"]).code, Some(2));
}

#[test]
fn bytes_that_are_no_text_do_not_stop_it() {
    let hermes = with_log("");
    let bytes = b"2026-11-15T21:24:05.123Z  INFO hermes: odd \xff\xfe\x1b[2J\nlast without end";
    fs::write(hermes.home().join("logs/agent.log"), bytes).unwrap();
    let shown = stdout(&hermes, &["logs"]);
    assert!(
        shown.contains("odd") && !shown.contains('\u{1b}'),
        "{shown}"
    );
}

#[test]
fn following_goes_on_through_a_rotation() {
    let hermes = with_log(LOG);
    let log = hermes.home().join("logs/agent.log");
    let append = |text: &str| {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    let mut running = hermes.args(["logs", "-f", "--level", "info"]).spawn();
    let wait = Duration::from_secs(5);
    running.expect_stdout("three", wait);
    append("2026-11-15T21:24:08.123Z  INFO hermes: fo");
    append("ur\n2026-11-15T21:24:08.123Z DEBUG hermes: hidden\n");
    running.expect_stdout("four", wait);
    fs::rename(&log, log.with_extension("log.1")).unwrap();
    append("2026-11-15T21:24:09.123Z  INFO hermes: five\n");
    running.expect_stdout("five", wait);
    let shown = running.kill_9().stdout;
    assert!(!shown.contains("hidden"), "{shown}");
    assert_eq!(shown.lines().count(), 5, "{shown}");
}
