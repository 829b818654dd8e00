//! A conversation of two thousand turns in a small window, with the real store: no dead end, no loop, nothing lost. And what
//! people see of it.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_agent::{
    AgentSettings, CompactionSettings, ConsentPolicy, DelegationSettings, Follower, Limits, Ports,
    Safety, Session, SessionStart,
};
use hermes_core::{
    Archive as _, CompactionEnd, Effect, Event, FollowFrom, Message, ModeSwitch, ModelErrorKind,
    ModelRequest, Prefix, Random, Role, SearchQuery, SessionId, Store as _, Tool, TurnEnd,
};
use hermes_store::SqliteStore;
use hermes_testkit::server::{Answer, Request, Script};
use hermes_testkit::{AnsweringModel, Behaviour, Step, TestClock, TestTool};
use serde_json::json;

use crate::setting::{Setting, write_config};

const TURNS: usize = 2_000;
const WINDOW: u64 = 16_384;
/// A fact in every so many turns.
const FACT_EVERY: usize = 50;

/// What the model saw, over all requests.
#[derive(Default)]
struct Seen {
    requests: usize,
    summaries: usize,
    refusals: usize,
    prefixes: HashSet<u64>,
    tokens_max: u64,
}

/// About as many tokens as a tokenizer finds; the request that is larger than the window is refused.
fn tokens(request: &ModelRequest<'_>) -> u64 {
    let said = request.messages.iter().map(|message| {
        let result = message.tool_result().map_or(0, |result| result.text.len());
        let calls: usize = message
            .calls()
            .map(|call| json!(call).to_string().len())
            .sum();
        message.text().len() + result + calls + 16
    });
    let tools = json!(request.tools).to_string().len();
    (said.sum::<usize>() + request.system.len() + tools) as u64 / 4
}

/// Keeps the facts it is shown, as far as they fit: the newest ones.
fn summary(request: &ModelRequest<'_>) -> Step {
    let text = request.messages[0].text();
    let mut facts: Vec<&str> = text
        .split_whitespace()
        .filter(|word| word.starts_with("fact-"))
        .map(|word| word.trim_end_matches(|c: char| !c.is_alphanumeric()))
        .collect();
    let mut known = HashSet::new();
    facts.retain(|fact| known.insert(*fact));
    let newest = facts.len().saturating_sub(12);
    Step::text(&format!(
        "## Goal\nwalk through the desert\n## State\n{}\n",
        facts[newest..].join(" ")
    ))
}

fn answer(request: &ModelRequest<'_>, seen: &Mutex<Seen>) -> Step {
    let mut seen = seen.lock().unwrap();
    let tokens = tokens(request);
    seen.requests += 1;
    if tokens > WINDOW {
        seen.refusals += 1;
        let refusal = format!("maximum context length is {WINDOW} tokens, got {tokens}");
        return Step::refusal(ModelErrorKind::ContextTooLong, &refusal);
    }
    if request.tools.is_empty() {
        seen.summaries += 1;
        return summary(request);
    }
    seen.tokens_max = seen.tokens_max.max(tokens);
    let mut hasher = DefaultHasher::new();
    (request.system, json!(request.tools).to_string()).hash(&mut hasher);
    seen.prefixes.insert(hasher.finish());
    let last = request.messages.last().expect("something was said");
    let wants_call = last.role == Role::User && last.text().contains("look");
    let step = if wants_call {
        Step::call("c1", "look", &json!({"text": "around"}))
    } else {
        Step::text("I walked a while, and wrote down what there was to see on the way.")
    };
    step.counting(tokens)
}

fn words_of(turn: usize) -> String {
    let fact = match turn % FACT_EVERY {
        0 => format!(" Remember fact-{turn}x{}.", turn * 7919 % 10_007),
        _ => String::new(),
    };
    let look = if turn.is_multiple_of(3) {
        " Then look."
    } else {
        ""
    };
    format!("Turn {turn}: go on through the sand, past the stones and the dry well.{fact}{look}")
}

struct Desert {
    folder: tempfile::TempDir,
    seen: Arc<Mutex<Seen>>,
}

impl Desert {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            seen: Arc::default(),
        }
    }

    fn store(&self) -> Arc<SqliteStore> {
        let folder = self.folder.path();
        Arc::new(SqliteStore::open(folder.join("hermes.db"), folder.join("locks")).unwrap())
    }

    async fn open(
        &self,
        store: &Arc<SqliteStore>,
        resumed: Option<SessionId>,
    ) -> (Session, Follower) {
        let seen = Arc::clone(&self.seen);
        let look = TestTool::new("look")
            .effect(Effect::Read)
            .does(Behaviour::Say("dunes and a hawk; ".repeat(80)));
        let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(look)];
        let prefix = Prefix {
            system: "You walk through a desert.".into(),
            tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
        };
        let ports = Ports {
            model: Arc::new(AnsweringModel::new(Some(WINDOW), move |request| {
                answer(request, &seen)
            })),
            store: Arc::clone(store) as _,
            clock: Arc::new(TestClock::default()),
            random: Arc::new(Random::seeded(u64::from(resumed.is_some()))),
            tools,
            unlisted: Vec::new(),
            tool_source: None,
            checkpoints: None,
            subagent_model: None,
            compression_model: None,
            safety: Safety::default(),
            references: None,
        };
        let start = match resumed {
            Some(session) => SessionStart::Resume(session),
            None => SessionStart::New {
                source: "test".into(),
                title: None,
                prefix,
            },
        };
        let opened = Session::open(ports, settings(self.folder.path()), start).await;
        let opened = opened.unwrap();
        let events = opened.session.follow(FollowFrom::Now);
        #[expect(clippy::disallowed_methods, reason = "it ends with its session")]
        let _task = tokio::spawn(opened.task);
        (opened.session, events)
    }
}

fn settings(folder: &Path) -> AgentSettings {
    AgentSettings {
        cwd: folder.to_owned(),
        results_folder: folder.join("results"),
        consent: ConsentPolicy::Refuse,
        mode: ModeSwitch::default(),
        is_attended: false,
        limits: Limits::default(),
        nested_context: false,
        delegation: DelegationSettings::default(),
        compaction: CompactionSettings::default(),
    }
}

/// Waits for the end of a turn, and returns how the compactions in it ended.
async fn turn_end(events: &mut Follower) -> (TurnEnd, Vec<CompactionEnd>) {
    let mut compactions = Vec::new();
    loop {
        let event = tokio::time::timeout(Duration::from_secs(30), events.next()).await;
        let event = event.expect("an event in time").expect("the session lives");
        match event.into_event() {
            Some(Event::CompactionEnded { end }) => compactions.push(end),
            Some(Event::TurnEnded { end, .. }) => return (end, compactions),
            _ => {}
        }
    }
}

#[tokio::test]
async fn two_thousand_turns_in_a_small_window_go_through() {
    let desert = Desert::new();
    let store = desert.store();
    let (mut session, mut events) = desert.open(&store, None).await;
    let id = session.id().clone();
    let mut compactions = 0;
    for turn in 0..TURNS {
        if turn == TURNS / 2 {
            // Another process goes on, and sees the same.
            let before = store.load(&id).await.unwrap().messages;
            drop((session, events));
            (session, events) = loop_until_free(&desert, &store, &id).await;
            assert_eq!(store.load(&id).await.unwrap().messages, before);
        }
        session.say(words_of(turn)).await;
        let (end, ended) = turn_end(&mut events).await;
        assert_eq!(end, TurnEnd::Finished, "turn {turn}");
        assert!(ended.len() <= 1, "turn {turn}: {ended:?}");
        for end in ended {
            let CompactionEnd::Done { report } = end else {
                panic!("turn {turn}: {end:?}");
            };
            assert!(report.notes.is_empty(), "turn {turn}: {report:?}");
            assert!(
                report.tokens_after * 4 <= report.tokens_before * 3,
                "{report:?}"
            );
            compactions += 1;
        }
    }
    {
        let seen = desert.seen.lock().unwrap();
        assert_eq!(seen.refusals, 0, "nothing was ever too long");
        assert_eq!(
            seen.prefixes.len(),
            1,
            "the prefix is the same bytes throughout"
        );
        assert!(seen.tokens_max <= WINDOW);
        assert!((5..TURNS / 10).contains(&compactions), "{compactions}");
        assert!(seen.summaries <= compactions, "{}", seen.summaries);
        assert_eq!(seen.requests - seen.summaries, TURNS + TURNS.div_ceil(3));
    }
    let loaded = store.load(&id).await.unwrap();
    assert_eq!(
        loaded.record.messages as usize,
        2 * TURNS + 2 * TURNS.div_ceil(3)
    );
    every_fact_is_found(&store, &id, &loaded.messages[0]).await;
}

async fn loop_until_free(
    desert: &Desert,
    store: &Arc<SqliteStore>,
    id: &SessionId,
) -> (Session, Follower) {
    // The task of the first one ends a moment after its last handle.
    for _ in 0..500 {
        if store.claim(id).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    desert.open(store, Some(id.clone())).await
}

/// Each planted fact is in the summary, or search finds it.
async fn every_fact_is_found(store: &SqliteStore, id: &SessionId, first: &Message) {
    for turn in (0..TURNS).step_by(FACT_EVERY) {
        let fact = format!("fact-{turn}x{}", turn * 7919 % 10_007);
        if first.text().contains(&fact) {
            continue;
        }
        let query = SearchQuery {
            text: fact.clone(),
            session: Some(id.clone()),
            limit: 3,
            ..SearchQuery::default()
        };
        let hits = store.search(query).await.unwrap();
        let plain = |snippet: &str| snippet.replace(">>>", "").replace("<<<", "");
        let is_found = hits.iter().any(|hit| plain(&hit.snippet).contains(&fact));
        assert!(is_found, "{fact} is lost: {hits:?}");
    }
}

const SUMMARY: &str = "## Goal\nlisten\n## State\nit was fine weather on all days\n";

fn talk() -> Script {
    Script::default()
        .when("Write the summary now", [Answer::text(SUMMARY)])
        .when("Day", [Answer::text("noted")])
        .by_step()
}

#[tokio::test]
async fn windows_of_8k_and_4k_hold_a_long_conversation_with_the_usual_settings() {
    for window in [8_192, 4_096] {
        let more = format!("  context_length: {window}\n");
        let setting = Setting::with(talk(), &more).await;
        let mut compacted = 0;
        for day in 0..12 {
            let words = format!("Day {day}. {}", "The weather was fine again. ".repeat(90));
            let go_on: &[&str] = if day == 0 { &[] } else { &["-c"] };
            let output = setting.run(&[go_on, &["--json", "-z", &words]].concat());
            assert_eq!(output.code, Some(0), "{window}: {output:?}");
            compacted += output.stdout.matches("\"tokens_after\"").count();
        }
        assert!(compacted >= 1, "{window}");
        let requests = setting.server.requests();
        let asked = requests
            .iter()
            .filter(|one| one.json["messages"].is_array());
        for request in asked {
            let tokens = request.body.len() as u64 / 4;
            assert!(tokens < window, "{window}: {tokens} tokens");
        }
    }
}

#[tokio::test]
async fn plain_lines_say_what_was_made_shorter() {
    let setting = Setting::new(talk()).await;
    let long = "The weather was fine again. ".repeat(90);
    for day in 0..12 {
        let go_on: &[&str] = if day == 0 { &[] } else { &["-c"] };
        setting.run(&[go_on, &["-z", &format!("Day {day}. {long}")]].concat());
    }
    let url = setting.server.url();
    write_config(&setting.hermes, &url, "  context_length: 8192\n");
    let output = setting.run(&["chat", "-c", "-q", "Day 12, and the last."]);
    assert_eq!(output.code, Some(0), "{output:?}");
    for words in ["making it shorter", "tokens before", "messages summarised"] {
        assert!(output.stderr.contains(words), "{words}: {output:?}");
    }
}

#[tokio::test]
async fn a_conversation_goes_on_with_a_model_into_which_its_prompt_does_not_fit() {
    let setting = Setting::new(talk()).await;
    setting.run(&["-z", "Day 0. It was fine."]);
    let size = |request: &Request| {
        let (tools, messages) = (&request.json["tools"], &request.json["messages"]);
        (tools.to_string().len() + messages.to_string().len()) as u64 / 4
    };
    assert!(size(&setting.server.requests()[0]) > 4_096);
    let url = setting.server.url();
    write_config(&setting.hermes, &url, "  context_length: 4096\n");
    for day in 1..8 {
        let words = format!("Day {day}. {}", "The weather was fine again. ".repeat(60));
        let output = setting.run(&["-c", "-z", &words]);
        assert_eq!(output.code, Some(0), "{output:?}");
        let last = setting.server.requests().pop().unwrap();
        assert!(size(&last) < 4_096, "day {day}: {}", size(&last));
        let tools = last.json["tools"].to_string();
        assert!(tools.contains("\"tool_search\""), "day {day}: {tools}");
    }
}
