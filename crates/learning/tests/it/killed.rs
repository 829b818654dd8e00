//! `kill -9` while notes are written: what was acknowledged is there, and nothing is half-written.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Author, ChangeFilter, LearningLog as _, Random};
use hermes_learning::notes::{NoteFile, Notes, NotesSettings, Operation, Provenance};
use hermes_store::SqliteStore;
use hermes_testkit::TestClock;
use tempfile::tempdir;

const ROUNDS: u64 = 12;

/// Longest life of a child after its first acknowledged note.
const LIFE_MILLIS_MAX: u64 = 80;

/// Turns a test process into the child that is killed: its folder, and the number of its round.
const CHILD_FOLDER: &str = "HERMES_NOTES_KILLED_CHILD";
const CHILD_ROUND: &str = "HERMES_NOTES_KILLED_ROUND";

fn notes(folder: &Path) -> (Arc<SqliteStore>, Notes) {
    let store = SqliteStore::open(folder.join("hermes.db"), folder.join("locks")).unwrap();
    let store = Arc::new(store);
    let settings = NotesSettings {
        folder: folder.join("memories"),
        person: None,
        // Small, so that notes go to the archive all the time.
        memory_chars_max: Some(200),
        user_chars_max: None,
        write_approval: false,
    };
    let notes = Notes::new(settings, store.clone(), Arc::new(TestClock::default()));
    (store, notes)
}

fn entry(round: u64, number: usize) -> String {
    format!("round {round} note {number} ends")
}

async fn write(notes: &Notes, content: String) {
    let by = Provenance {
        author: Author::Agent,
        session: None,
        turn: None,
    };
    let operations = [Operation::Add { content }];
    notes
        .apply(NoteFile::Memory, &operations, true, &by)
        .await
        .unwrap();
}

#[tokio::test]
async fn every_acknowledged_note_survives_kill_9_and_none_is_torn() {
    let seed = Random::from_system().next_u64();
    println!("seed {seed}");
    let random = Random::seeded(seed);
    let folder = tempdir().unwrap();
    for round in 0..ROUNDS {
        let acknowledged = run_and_kill(folder.path(), round, &random);
        let (store, notes) = notes(folder.path());
        // The next change settles what the kill left open.
        write(&notes, format!("after round {round} ends")).await;
        let entries = notes.entries(NoteFile::Memory).unwrap();
        let archived = notes.archive().unwrap().into_iter().map(|found| found.text);
        let all: Vec<String> = entries.into_iter().chain(archived).collect();
        for number in 0..acknowledged {
            assert!(
                all.contains(&entry(round, number)),
                "round {round}: note {number} is lost"
            );
        }
        assert!(
            all.iter().all(|entry| entry.ends_with(" ends")),
            "a note is torn: {all:?}"
        );
        let changes = store.changes(ChangeFilter::default()).await.unwrap();
        assert!(changes.iter().all(|change| change.is_finished));
        assert!(
            changes
                .iter()
                .all(|change| change.change.summary != "edited by hand")
        );
    }
}

/// Lets a child write until it is killed. Returns how many notes it acknowledged.
fn run_and_kill(folder: &Path, round: u64, random: &Random) -> usize {
    #[expect(clippy::disallowed_methods, reason = "a test starts itself again")]
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::a_child_that_writes_until_it_is_killed",
            "--nocapture",
        ])
        .env(CHILD_FOLDER, folder)
        .env(CHILD_ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = 0;
    let mut lines = lines
        .map_while(Result::ok)
        .filter(|line| line.contains("noted"));
    if lines.next().is_some() {
        acknowledged += 1;
        std::thread::sleep(Duration::from_millis(random.below(LIFE_MILLIS_MAX)));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    acknowledged + lines.count()
}

#[tokio::test]
async fn a_child_that_writes_until_it_is_killed() {
    #[expect(clippy::disallowed_methods, reason = "a test's own setting")]
    let (Some(folder), Ok(round)) = (std::env::var_os(CHILD_FOLDER), std::env::var(CHILD_ROUND))
    else {
        return;
    };
    let round: u64 = round.parse().unwrap();
    let (_store, notes) = notes(Path::new(&folder));
    for number in 0.. {
        write(&notes, entry(round, number)).await;
        println!("noted {number}");
    }
}
