//! `kill -9` while notes and skills are written: what was acknowledged is there, and nothing is half-written.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Author, ChangeFilter, LearningLog as _, Random};
use hermes_learning::notes::{NoteFile, Notes, NotesSettings, Operation, Provenance};
use hermes_learning::skills::{By, Edit, Made, Skills, Sources};
use hermes_store::SqliteStore;
use hermes_testkit::TestClock;
use tempfile::tempdir;

/// Kills; `HERMES_TORTURE_KILLS` wants more of them.
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
    for round in 0..rounds() {
        let acknowledged = run_and_kill(WRITES_NOTES, folder.path(), round, &random);
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

fn rounds() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test's own setting")]
    let wanted = std::env::var("HERMES_TORTURE_KILLS").ok();
    wanted
        .and_then(|wanted| wanted.parse().ok())
        .unwrap_or(ROUNDS)
}

const WRITES_NOTES: &str = "killed::a_child_that_writes_until_it_is_killed";
const WRITES_SKILLS: &str = "killed::a_child_that_writes_skills_until_it_is_killed";

/// Lets a child write until it is killed. Returns how many notes or skills it acknowledged.
fn run_and_kill(child: &str, folder: &Path, round: u64, random: &Random) -> usize {
    #[expect(clippy::disallowed_methods, reason = "a test starts itself again")]
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--nocapture"])
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

/// The folder and the round of a child; `None` in a run of all tests.
fn child() -> Option<(PathBuf, u64)> {
    #[expect(clippy::disallowed_methods, reason = "a test's own setting")]
    let (folder, round) = (std::env::var_os(CHILD_FOLDER)?, std::env::var(CHILD_ROUND));
    Some((folder.into(), round.ok()?.parse().ok()?))
}

#[tokio::test]
async fn a_child_that_writes_until_it_is_killed() {
    let Some((folder, round)) = child() else {
        return;
    };
    let (_store, notes) = notes(&folder);
    for number in 0.. {
        write(&notes, entry(round, number)).await;
        println!("noted {number}");
    }
}

fn skills(folder: &Path) -> (Arc<SqliteStore>, Skills) {
    let store = SqliteStore::open(folder.join("hermes.db"), folder.join("locks")).unwrap();
    let store = Arc::new(store);
    (store.clone(), skills_of(folder, store))
}

pub(super) fn skills_of(folder: &Path, store: Arc<SqliteStore>) -> Skills {
    Skills {
        sources: Sources {
            home: folder.join("skills"),
            external: Vec::new(),
            bundles: folder.join("bundles"),
            disabled: Vec::new(),
            environments: Vec::new(),
            fills_in_variables: false,
            ..Sources::default()
        },
        lock: folder.join("locks/skills"),
        proposals: folder.join("pending"),
        wants_approval: false,
        log: Some(store),
        clock: Arc::new(TestClock::default()),
    }
}

const FILE: &str = "SKILL.md";
const REFERENCE: &str = "references/more.md";
const REFERENCE_TEXT: &str = "more, to the end\n";

/// A skill in one of its versions, long enough to be torn.
fn version(name: &str, number: usize) -> String {
    let steps = format!("step of version {number}\n").repeat(400);
    format!(
        "---\nname: {name}\ndescription: \"Does {name}. Use when: it is to be done.\"\n---\n{steps}end\n"
    )
}

async fn change(skills: &Skills, name: &str, path: &str, from: Option<String>, to: String) -> Made {
    let by = By {
        author: Author::Agent,
        session: None,
    };
    let edit = Edit {
        skill: name.to_owned(),
        category: None,
        path: path.to_owned(),
        before: from,
        after: Some(to),
        summary: format!("changed `{name}`"),
    };
    skills.change(edit, &by).await.unwrap()
}

/// Writes a skill, mends it and gives it a file.
async fn write_skill(skills: &Skills, name: &str) {
    let (first, second) = (version(name, 1), version(name, 2));
    change(skills, name, FILE, None, first.clone()).await;
    change(skills, name, FILE, Some(first), second).await;
    change(skills, name, REFERENCE, None, REFERENCE_TEXT.to_owned()).await;
}

#[tokio::test]
async fn every_acknowledged_skill_survives_kill_9_and_what_was_cut_off_can_be_done_again() {
    let seed = Random::from_system().next_u64();
    println!("seed {seed}");
    let random = Random::seeded(seed);
    let folder = tempdir().unwrap();
    for round in 0..rounds() {
        let acknowledged = run_and_kill(WRITES_SKILLS, folder.path(), round, &random);
        let (store, skills) = skills(folder.path());
        for number in 0..=acknowledged {
            let name = format!("skill-{round}-{number}");
            let read = |path: &str| {
                let file = folder.path().join("skills").join(&name).join(path);
                std::fs::read_to_string(file).ok()
            };
            match read(FILE) {
                // It was cut off before it was there.
                None => {
                    assert_eq!(number, acknowledged, "`{name}` is lost");
                    write_skill(&skills, &name).await;
                }
                Some(text) => {
                    let versions = [version(&name, 1), version(&name, 2)];
                    assert!(versions.contains(&text), "`{name}` is torn");
                    let file = read(REFERENCE);
                    if number < acknowledged {
                        assert_eq!(text, versions[1], "`{name}` is not mended");
                        assert_eq!(file.as_deref(), Some(REFERENCE_TEXT));
                    }
                    // It is the agent's own all the same, and may be changed.
                    let made = change(&skills, &name, FILE, Some(text), version(&name, 3)).await;
                    assert!(matches!(made, Made::Done { .. }), "{made:?}");
                }
            }
        }
        let changes = store.changes(ChangeFilter::default()).await.unwrap();
        assert!(changes.iter().all(|change| change.is_finished));
    }
}

#[tokio::test]
async fn a_child_that_writes_skills_until_it_is_killed() {
    let Some((folder, round)) = child() else {
        return;
    };
    let (_store, skills) = skills(&folder);
    for number in 0.. {
        write_skill(&skills, &format!("skill-{round}-{number}")).await;
        println!("noted {number}");
    }
}
