//! Kills the real binary while it looks back on a conversation and writes a note and a skill. Whenever it is killed, the next
//! process ends what was begun: everything is there once, whole, in the log, and the agent's own.

use std::path::Path;
use std::time::{Duration, Instant};

use hermes_core::{
    Archive as _, ChangeFilter, LearningLog as _, Random, Reviews as _, SessionId, Timestamp,
};
use hermes_store::SqliteStore;
use hermes_testkit::process::Hermes;
use hermes_testkit::server::{Answer, Script, ScriptedServer};
use serde_json::json;

use crate::{KILLS_BY_DEFAULT, setting, write_settings};

const SAID: &str = "remember: the harbour opens at nine. To tally crates, run wc on crates.txt, with option l, never grep.";
const NOTE: &str = "The harbour opens at nine";
const SKILL: &str = "tally-crates";
const STEPS: &str = "Run wc on crates.txt.";
const MENDED: &str = "Run wc on crates.txt, with option l, never grep.";
const REFERENCE: &str = "crates.txt: the harbour tally\n";
/// In the message that has a model look back.
const LOOK_BACK: &str = "look back";
const PATIENCE: Duration = Duration::from_secs(20);
/// Each takes about a second: three processes in a home of its own.
const ROUNDS_PART: u64 = 4;
const ROUNDS_MIN: u64 = 5;

fn written(steps: &str) -> String {
    format!(
        "---\nname: {SKILL}\ndescription: \"Tally crates. Use when: crates are to be tallied.\"\n---\n\n{steps}\n"
    )
}

/// The same question gets the same answer, so that a review that begins again asks for the same changes.
fn script() -> Script {
    let slow = Duration::from_millis(4);
    let skill = |arguments| Answer::call("s", "skill_manage", arguments).chunk_delay(slow);
    let looks_back = [
        Answer::call(
            "m",
            "memory",
            json!({"action": "add", "target": "memory", "content": NOTE}),
        )
        .chunk_delay(slow),
        skill(json!({"action": "create", "name": SKILL, "content": written(STEPS)})),
        skill(
            json!({"action": "patch", "name": SKILL, "old_string": STEPS, "new_string": MENDED, "reason": "grep counted wrongly"}),
        ),
        skill(
            json!({"action": "write_file", "name": SKILL, "file_path": "references/tally.md",
            "file_content": REFERENCE}),
        ),
        Answer::text("that is all"),
    ];
    Script::default()
        .when(LOOK_BACK, looks_back)
        .when("remember:", [Answer::text("I will.")])
        .when("anything new?", [Answer::text("No.")])
        .by_step()
}

#[tokio::test]
async fn what_a_review_learns_is_learned_once_and_whole_under_kill_9() {
    let kills = setting("HERMES_TORTURE_KILLS").unwrap_or(KILLS_BY_DEFAULT as u64);
    let rounds = (kills / ROUNDS_PART).max(ROUNDS_MIN);
    let seed =
        setting("HERMES_TORTURE_SEED").unwrap_or_else(|| Random::from_system().next_u64() >> 32);
    println!("torture: {rounds} kills while it learns, seed {seed}");
    let random = Random::seeded(seed);
    let server = ScriptedServer::start(script()).await;
    let mut cut = 0;
    let mut span = Duration::from_millis(300);
    for _ in 0..rounds {
        let round = Round::begin(&server);
        cut += usize::from(round.learn_and_kill(&server, &random, &mut span).await);
        round.learn_in_peace().await;
        round.check().await;
    }
    println!(
        "torture: {cut} of {rounds} kills hit a review that was at work; all was learned once and whole"
    );
}

/// One conversation in a home of its own.
struct Round {
    hermes: Hermes,
}

impl Round {
    fn begin(server: &ScriptedServer) -> Self {
        let hermes = Hermes::new(env!("CARGO_BIN_EXE_hermes")).deadline(PATIENCE);
        let round = Self { hermes };
        round.settings(server, 1);
        round
    }

    /// Conversations are looked through as soon as they rest, after so many messages; 0 for those only that are due already.
    fn settings(&self, server: &ScriptedServer, nudge: u64) {
        write_settings(&self.hermes, server, "");
        let file = self.hermes.home().join("config.yaml");
        let more = format!(
            "memory: {{nudge_interval: {nudge}}}\nskills: {{creation_nudge_interval: 0}}\nlearning: {{rest: 0}}\n\
             auxiliary: {{title_generation: {{enabled: false}}}}\n"
        );
        let text = std::fs::read_to_string(&file).expect("settings") + &more;
        std::fs::write(file, text).expect("the settings are written");
    }

    fn store(&self) -> SqliteStore {
        let home = self.hermes.home();
        SqliteStore::open(home.join("hermes.db"), home.join("locks")).expect("the database opens")
    }

    async fn session(store: &SqliteStore) -> Option<SessionId> {
        let sessions = store.list(Default::default()).await.ok()?;
        sessions
            .into_iter()
            .map(|record| record.id)
            .min_by_key(|id| id.to_string())
    }

    /// Lets it learn and kills it on the way. Returns whether it was at it.
    async fn learn_and_kill(
        &self,
        server: &ScriptedServer,
        random: &Random,
        span: &mut Duration,
    ) -> bool {
        let asked = || {
            let is_review = |body: &[u8]| String::from_utf8_lossy(body).contains(LOOK_BACK);
            let requests = server.requests();
            requests.iter().filter(|one| is_review(&one.body)).count()
        };
        let before = asked();
        let terminal = self
            .hermes
            .clone()
            .args(["--json", SAID])
            .spawn_in_terminal();
        until(|| asked() > before).await;
        let began = Instant::now();
        tokio::time::sleep(Duration::from_millis(random.below(span.as_millis() as u64))).await;
        terminal.kill_9();
        let store = self.store();
        let session = Self::session(&store).await.expect("a conversation");
        let is_done = store.reviewed_messages(&session).await.expect("readable") > 0;
        if is_done {
            // Kills are spread over what a review takes here.
            *span = began.elapsed().max(Duration::from_millis(20));
        }
        // Its lease would run for minutes; time is not what is tested.
        store
            .put_off_review(&session, Timestamp::from_millis(0))
            .await
            .expect("writable");
        self.settings(server, 0);
        !is_done
    }

    /// Another process comes to the same home, and ends what is due.
    async fn learn_in_peace(&self) {
        let terminal = self
            .hermes
            .clone()
            .args(["--json", "anything new?"])
            .spawn_in_terminal();
        let store = self.store();
        let session = Self::session(&store).await.expect("a conversation");
        let since = Instant::now();
        while store.reviewed_messages(&session).await.expect("readable") == 0 {
            assert!(since.elapsed() < PATIENCE, "{}", terminal.output());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        terminal.kill_9();
    }

    async fn check(&self) {
        let home = self.hermes.home();
        let read = |path: &str| std::fs::read_to_string(home.join(path)).unwrap_or_default();
        assert_eq!(read("memories/MEMORY.md").trim(), NOTE);
        let skill = |path: &str| read(&format!("skills/{SKILL}/{path}"));
        assert_eq!(skill("SKILL.md"), written(MENDED));
        assert_eq!(skill("references/tally.md"), REFERENCE);
        let usage: serde_json::Value =
            serde_json::from_str(&read("skills/.usage.json")).expect("the use of skills is whole");
        assert_eq!(usage[SKILL]["created_by"], "agent", "it is the agent's own");
        assert!(
            is_empty(&home.join("pending/skills")),
            "nothing is proposed"
        );
        let store = self.store();
        assert_eq!(store.check().await, Ok(hermes_store::Health::Sound));
        let changes = store.changes(ChangeFilter::default()).await;
        let mut changes = changes.expect("readable");
        assert!(
            changes.iter().all(|change| change.is_finished),
            "{changes:?}"
        );
        changes.retain(|change| change.change.before != change.change.after);
        assert_eq!(changes.len(), 4, "each was made once: {changes:?}");
    }
}

async fn until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "it never looked back");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}
