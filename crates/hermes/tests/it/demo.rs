//! The first thing a newcomer runs.

use std::time::Duration;

use crate::setting::bare;

#[test]
fn the_demo_shows_every_act_and_touches_nothing() {
    let hermes = bare().deadline(Duration::from_secs(60));
    let output = hermes.clone().args(["demo"]).run();
    assert_eq!(output.code, Some(0), "{output:?}");
    for phrase in [
        "write_file tasks.md",
        "Three tasks are open",
        "notes.txt 6 lines; ['- water the laurel (open)']",
        "terminal date +%A",
        "Both do: notes.txt",
        "The script made four calls",
        "the kettle sings",
        "Tea is ready",
        "ms after the interrupt",
        "killed with SIGKILL",
        "going on where a crash cut this turn short",
        "outcome_unknown",
        "so I did not send it again",
        "back to checkpoint",
        "plan.md: laurel: on Tuesdays",
        "Both times the records say the same",
        "no failed call, 1 reconnect",
        "Three tasks are open, over two days",
        "Count the days in notes.txt.",
        "23.5 tons",
        "learned: wrote the skill `harbour-lists`",
        "hermes learning undo 1",
        "5.25 tons, right at the first try",
        "5 messages summarised, 3 kept as they are",
        "I no longer saw that, and looked it up",
        "the gateway was just killed with SIGKILL",
        "hermes: Water the laurel, and answer Penelope.",
        "hermes: Book the train to Delphi.",
        "The laurel is dry: please water it.",
        "hits in",
        "hermes.db",
    ] {
        assert!(
            output.stdout.contains(phrase),
            "no `{phrase}` in:\n{}",
            output.stdout
        );
    }
    assert!(!output.stdout.contains('\u{1b}'), "plain when piped");
    assert_eq!(
        std::fs::read_dir(hermes.home()).unwrap().count(),
        0,
        "the user's home is untouched"
    );
}

#[test]
fn a_kept_demo_can_be_looked_at() {
    let hermes = bare().deadline(Duration::from_secs(60));
    let output = hermes.clone().args(["demo", "--keep"]).run();
    let home = output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("kept: "))
        .expect("where it is")
        .to_owned();
    let list = hermes
        .env("HERMES_HOME", &home)
        .args(["sessions", "list"])
        .run();
    assert!(list.stdout.contains("Read notes.txt"), "{list:?}");
    std::fs::remove_dir_all(home).unwrap();
}
