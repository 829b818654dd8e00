//! What the gateway costs with a chat platform beside the API: its start, its rest, many chats, many streams, and a kill.
//! Prints one JSON object per figure; `scripts/bench` reads them. `--quick` has fewer chats and shorter rests; `idle`, `first`,
//! `streams`, `chats` and `lanes` are its parts.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "its figures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark runs the program")]

#[path = "support/stage.rs"]
#[expect(dead_code, reason = "the benchmark of the API uses the rest")]
mod stage;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hermes_testkit::telegram::people::ALICE;
use hermes_testkit::telegram::{TOKEN, TelegramServer};
use serde_json::json;
use stage::{Gateway, Model, NEVER, SLOWLY, tell, write_settings};

const READY_MS_MAX: f64 = 50.0;
const IDLE_MB_MAX: f64 = 20.0;
const IDLE_WITH_SERVERS_MB_MAX: f64 = 40.0;
const IDLE_PERCENT_MAX: f64 = 0.1;
const MANY_CHATS_MB_MAX: f64 = 60.0;
const STREAMS_MB_MAX: f64 = 60.0;
const FIRST_REQUEST_MS_MAX: f64 = 5.0;
const READY_AFTER_KILL_MS_MAX: f64 = 300.0;

/// For parts that want more turns under way than the usual 64.
const MANY_AT_ONCE: &str = "max_concurrent_sessions: 1000\n";
const SERVERS: usize = 5;
const STREAMS: i64 = 100;
const FIRST_REQUESTS: usize = 40;
const AFTER_A_BURST: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::main]
async fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let rest = Duration::from_secs(if is_quick { 5 } else { 30 });
    let (chats, lanes) = if is_quick {
        (500, 100)
    } else {
        (10_000, 1_000)
    };
    if is_wanted("idle") {
        idle(rest).await;
        idle_with_servers(rest).await;
    }
    if is_wanted("first") {
        first_request().await;
    }
    if is_wanted("streams") {
        streams().await;
    }
    if is_wanted("chats") {
        many_chats(chats).await;
    }
    if is_wanted("lanes") {
        open_lanes(lanes).await;
    }
}

/// Whether a part is to be measured: all of them, or those that are named.
fn is_wanted(part: &str) -> bool {
    let mut named = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'));
    let mut named = named.by_ref().peekable();
    named.peek().is_none() || named.any(|word| word == part)
}

/// A platform, a model, and a home that is set up for both.
struct World {
    home: tempfile::TempDir,
    telegram: TelegramServer,
    model: Model,
}

impl World {
    async fn new(more: &str) -> Self {
        let world = Self {
            home: tempfile::tempdir().unwrap(),
            telegram: TelegramServer::start().await.with_chats(),
            model: Model::serve().await,
        };
        write_settings(world.home(), &world.model.url, more);
        let settings = world.home().join("config.yaml");
        let mut text = std::fs::read_to_string(&settings).unwrap();
        let url = world.telegram.url();
        writeln!(text, "  telegram: {{base_url: {url}/bot}}").unwrap();
        std::fs::write(settings, text).unwrap();
        let keys = format!("TELEGRAM_BOT_TOKEN={TOKEN}\nTELEGRAM_ALLOW_ALL_USERS=true\n");
        std::fs::write(world.home().join(".env"), keys).unwrap();
        world
    }

    fn home(&self) -> &Path {
        self.home.path()
    }

    /// Starts the gateway, and waits until it asks the platform for what was said.
    async fn gateway(&self) -> Gateway {
        let before = self.telegram.calls_of("getUpdates").len();
        let gateway = Gateway::start(self.home());
        self.until(|world| world.telegram.calls_of("getUpdates").len() > before)
            .await;
        gateway
    }

    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "it does not come to that");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

async fn idle(rest: Duration) {
    let world = World::new("").await;
    let mut starts = Vec::new();
    for _ in 0..5 {
        starts.push(world.gateway().await.ready_ms);
    }
    starts.sort_by(f64::total_cmp);
    let what = "gateway ready, with the API and a platform";
    tell(what, starts[starts.len() / 2], "ms", READY_MS_MAX);
    let gateway = world.gateway().await;
    let percent = gateway.processor_percent(rest).await;
    let what = "gateway at rest, with the API and a platform";
    tell(what, gateway.resident_mb(), "MB", IDLE_MB_MAX);
    let what = "the same, of one processor";
    tell(what, percent, "%", IDLE_PERCENT_MAX);
}

async fn idle_with_servers(rest: Duration) {
    let program = beside("hermes-faulty-mcp");
    if !program.exists() {
        eprintln!("gateway: {} is missing: no MCP servers", program.display());
        return;
    }
    let mut more = "mcp_servers:\n".to_owned();
    for number in 0..SERVERS {
        let program = program.display();
        writeln!(more, "  s{number}: {{command: {program}}}").unwrap();
    }
    let world = World::new(&more).await;
    let gateway = world.gateway().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let percent = gateway.processor_percent(rest).await;
    let what = "gateway at rest, with 5 MCP servers besides";
    tell(what, gateway.resident_mb(), "MB", IDLE_WITH_SERVERS_MB_MAX);
    let what = "the same, of one processor, with 5 MCP servers";
    tell(what, percent, "%", IDLE_PERCENT_MAX);
}

/// A program of the test kit, which is built into the same folder.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_hermes")).with_file_name(name)
}

/// From the moment a person's words are on the platform to the moment the model is asked.
async fn first_request() {
    let mut world = World::new("").await;
    let _gateway = world.gateway().await;
    let mut times = Vec::new();
    for number in 0..FIRST_REQUESTS {
        while world.model.asked.try_recv().is_ok() {}
        let said = Instant::now();
        world
            .telegram
            .say(ALICE, json!({"text": format!("word {number}")}));
        let asked = world.model.asked.recv().await.unwrap();
        times.push((asked - said).as_secs_f64() * 1_000.0);
        world
            .until(|world| world.telegram.ours(ALICE).len() > number)
            .await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    times.sort_by(f64::total_cmp);
    let what = "an update to the model's first request";
    tell(what, times[times.len() / 2], "ms", FIRST_REQUEST_MS_MAX);
}

async fn streams() {
    let world = World::new(MANY_AT_ONCE).await;
    let gateway = world.gateway().await;
    let chats = 10_000..10_000 + STREAMS;
    for chat in chats.clone() {
        let words = format!("answer {SLOWLY}");
        world.telegram.say_as(chat, "Somebody", &words);
    }
    let is_shown = |world: &World, chat| !world.telegram.ours(chat).is_empty();
    world
        .until(|world| chats.clone().all(|chat| is_shown(world, chat)))
        .await;
    let mut most = gateway.resident_mb();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        most = most.max(gateway.resident_mb());
    }
    let what = format!("gateway with {STREAMS} chats being answered");
    tell(&what, most, "MB", STREAMS_MB_MAX);
}

async fn many_chats(count: i64) {
    let world = World::new("").await;
    let gateway = world.gateway().await;
    let chats = 10_000..10_000 + count;
    let began = Instant::now();
    for chat in chats.clone() {
        world.telegram.say_as(chat, "Somebody", "hello");
    }
    let is_answered = |world: &World, chat| !world.telegram.ours(chat).is_empty();
    for chat in chats {
        world.until(|world| is_answered(world, chat)).await;
    }
    let per_second = count as f64 / began.elapsed().as_secs_f64();
    let what = format!("{count} chats that write at once");
    let figure = json!({"what": what, "value": per_second, "unit": "answers/s", "budget": null});
    println!("{figure}");
    // The last lanes end, and what they had is given back.
    tokio::time::sleep(AFTER_A_BURST).await;
    let what = format!("gateway at rest that answered {count} chats");
    tell(&what, gateway.resident_mb(), "MB", MANY_CHATS_MB_MAX);
    drop(gateway);
    let gateway = world.gateway().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let what = format!("gateway at rest that knows {count} chats");
    tell(&what, gateway.resident_mb(), "MB", MANY_CHATS_MB_MAX);
}

/// Killed while so many conversations wait for the model.
async fn open_lanes(count: i64) {
    let mut world = World::new(MANY_AT_ONCE).await;
    let gateway = world.gateway().await;
    for chat in 10_000..10_000 + count {
        let words = format!("answer {NEVER}");
        world.telegram.say_as(chat, "Somebody", &words);
    }
    for _ in 0..count {
        world.model.asked.recv().await.unwrap();
    }
    drop(gateway);
    let gateway = world.gateway().await;
    let what = format!("gateway ready after `kill -9` with {count} open lanes");
    tell(&what, gateway.ready_ms, "ms", READY_AFTER_KILL_MS_MAX);
}
