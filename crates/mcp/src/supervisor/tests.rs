//! The supervisor on a clock of its own: hours pass in milliseconds, over a connection in memory.

mod outage;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hermes_core::Clock;
use hermes_core::Effect;
use hermes_core::tool::BoxFuture;
use hermes_testkit::TestClock;
use rmcp::model::{ClientRequest, ListToolsRequest};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};
use tokio::time::sleep;

use super::*;
use crate::classify::SessionUse;
use crate::dial::{Connection, Wires, handshake};
use crate::failure::HttpAnswer;
use crate::handler::Handler;
use crate::in_flight::Call;
use crate::in_flight::tests::context;
use crate::log::ServerLog;
use crate::media::MediaFolder;
use crate::respond::{Respondent, RespondentOptions};
use crate::server::{Request, Server};
use crate::settings::{Protocol, Retry};
use crate::signal::QUEUE_MAX;
use crate::stdio::{Effort, Lines};

/// A server in memory that forgets its sessions after some idle time, as servers do.
#[derive(Default)]
struct World {
    /// Dials to fail, oldest first.
    failures: Mutex<VecDeque<Failure>>,
    is_down: AtomicBool,
    /// So many of the oldest connections are never answered any more.
    deaf_connections: AtomicUsize,
    /// The dial of this number is never answered.
    deaf_dial: AtomicUsize,
    dials: AtomicUsize,
    pings: AtomicUsize,
    lists: AtomicUsize,
    /// Requests that met a forgotten session.
    refusals: AtomicUsize,
    idle_max: Option<Duration>,
    lifetime_max: Option<Duration>,
    /// Connections that have not ended. There is nothing else in memory that could pile up, beside tasks.
    open: AtomicUsize,
    /// So many changes of the list are announced before the next answer.
    announcements: AtomicUsize,
    /// How long a handshake takes.
    handshake: Duration,
    /// How long the next list takes; meanwhile nothing else is answered.
    slow_list: Mutex<Option<Duration>>,
    is_exclusive: bool,
    /// Whether its program is seen to work all the time.
    is_at_work: bool,
}

impl World {
    fn count(counter: &AtomicUsize) -> usize {
        counter.load(Ordering::SeqCst)
    }

    async fn serve(self: Arc<Self>, number: usize, stream: DuplexStream) {
        self.open.fetch_add(1, Ordering::SeqCst);
        self.talk(number, stream).await;
        self.open.fetch_sub(1, Ordering::SeqCst);
    }

    async fn talk(&self, number: usize, stream: DuplexStream) {
        let (reader, mut writer) = split(stream);
        let mut lines = BufReader::new(reader).lines();
        let started = Instant::now();
        let mut last_used = started;
        let mut is_forgotten = false;
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let Some(id) = message.get("id").cloned() else {
                continue;
            };
            let is_idle = self.idle_max.is_some_and(|max| last_used.elapsed() > max);
            let is_old = self.lifetime_max.is_some_and(|max| started.elapsed() > max);
            is_forgotten |= is_idle || is_old;
            last_used = Instant::now();
            let answer = match message["method"].as_str() {
                _ if self.is_down.load(Ordering::SeqCst) => continue,
                _ if number <= Self::count(&self.deaf_connections) => continue,
                _ if number == Self::count(&self.deaf_dial) => continue,
                _ if is_forgotten => {
                    self.refusals.fetch_add(1, Ordering::SeqCst);
                    json!({ "error": { "code": -32001, "message": "Session not found" } })
                }
                Some("initialize") => {
                    sleep(self.handshake).await;
                    json!({ "result": {
                        "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                        "serverInfo": { "name": "world", "version": "1" },
                    } })
                }
                Some("ping") => {
                    self.pings.fetch_add(1, Ordering::SeqCst);
                    json!({ "result": {} })
                }
                _ => {
                    let slow = self.slow_list.lock().unwrap().take();
                    sleep(slow.unwrap_or_default()).await;
                    self.lists.fetch_add(1, Ordering::SeqCst);
                    json!({ "result": { "tools": [] } })
                }
            };
            let mut answer = answer;
            answer["jsonrpc"] = json!("2.0");
            answer["id"] = id;
            let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
            let storm = self.announcements.swap(0, Ordering::SeqCst);
            let lines = format!("{changed}\n").repeat(storm) + &format!("{answer}\n");
            if writer.write_all(lines.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

struct MemoryDial(Arc<World>, Mutex<JoinSet<()>>);

impl Dial for MemoryDial {
    fn dial(&self, wires: Wires) -> BoxFuture<'_, Result<Connection, Failure>> {
        Box::pin(async move {
            let number = self.0.dials.fetch_add(1, Ordering::SeqCst) + 1;
            let failure = self.0.failures.lock().unwrap().pop_front();
            if let Some(failure) = failure {
                return Err(failure);
            }
            let (ours, theirs) = duplex(64 * 1024);
            self.1
                .lock()
                .unwrap()
                .spawn(Arc::clone(&self.0).serve(number, theirs));
            let (reader, writer) = split(ours);
            let transport = Lines::new(reader, writer, None);
            let log = ServerLog::new("/proc/nowhere".into());
            let handler = Handler::new(respondent(), wires.reporter.clone(), log);
            let mut connection = handshake(handler, transport, &wires, Protocol::Legacy).await?;
            connection.session = SessionUse::Session;
            let (effort, is_at_work) = (AtomicUsize::new(0), self.0.is_at_work);
            connection.effort = Some(Effort::new(move || {
                let more = usize::from(is_at_work);
                Some(effort.fetch_add(more, Ordering::SeqCst) as u64)
            }));
            Ok(connection)
        })
    }

    fn logged_in(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive
    }
}

fn respondent() -> Arc<Respondent> {
    let settings = ServerSettings::parse("world", &json!({ "url": "http://memory" })).unwrap();
    Arc::new(Respondent::new(&settings, RespondentOptions::default()))
}

struct Bench {
    world: Arc<World>,
    server: Server,
    clock: Arc<TestClock>,
    stop: CancellationToken,
    _supervisor: JoinSet<()>,
}

impl Bench {
    fn new(world: World, section: Value) -> Self {
        let world = Arc::new(world);
        let mut section = section;
        section["url"] = json!("http://memory");
        let settings = Arc::new(ServerSettings::parse("world", &section).unwrap());
        let (view, watched) = watch::channel(View::new(ServerState::Connecting));
        let signals = mpsc::channel(QUEUE_MAX);
        let clock = Arc::new(TestClock::default());
        let wake = Arc::new(Wake::new(Arc::clone(&clock) as Arc<dyn Clock>));
        let server = Server::new(
            Arc::clone(&settings),
            watched,
            signals.0.clone(),
            Arc::clone(&wake),
            respondent(),
            None,
            MediaFolder::new("/proc/nowhere".into()),
        );
        let stop = CancellationToken::new();
        let supervisor = Supervisor::new(SupervisorContext {
            settings,
            dial: Arc::new(MemoryDial(Arc::clone(&world), Mutex::default())),
            gate: Arc::new(Semaphore::new(4)),
            random: Arc::new(Random::seeded(5)),
            signals,
            view,
            events: broadcast::channel(8).0,
            wake,
            stop: stop.clone(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(supervisor.run());
        Self {
            world,
            server,
            clock,
            stop,
            _supervisor: tasks,
        }
    }

    async fn call(&self) -> Result<(), String> {
        let request = Request {
            message: ClientRequest::ListToolsRequest(ListToolsRequest::default()),
            operation: "tools/list".into(),
            effect: Effect::Effect,
            retry: Retry::Safe,
        };
        let answer = self
            .server
            .request(&request, &Call::of(&context("s")))
            .await;
        answer.map(|_| ()).map_err(|error| error.to_string())
    }
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_call_after_twelve_idle_hours_succeeds_at_the_first_try() {
    let world = World {
        idle_max: Some(Duration::from_secs(600)),
        ..World::default()
    };
    let bench = Bench::new(world, json!({}));
    bench.call().await.unwrap();
    sleep(12 * HOUR).await;
    bench.call().await.unwrap();
    assert_eq!(
        World::count(&bench.world.dials),
        1,
        "the session was kept alive"
    );
    assert_eq!(World::count(&bench.world.refusals), 0);
    let pings = World::count(&bench.world.pings);
    assert!(
        (12 * 18..=12 * 23).contains(&pings),
        "one in three minutes: {pings}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_keepalive_the_first_call_after_the_night_heals_and_succeeds() {
    let world = World {
        idle_max: Some(Duration::from_secs(600)),
        ..World::default()
    };
    let bench = Bench::new(world, json!({ "keepalive_interval": 0 }));
    bench.call().await.unwrap();
    sleep(12 * HOUR).await;
    assert_eq!(World::count(&bench.world.pings), 0);
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.dials), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_shorter_than_the_interval_is_healed_by_the_probe() {
    let world = World {
        idle_max: Some(Duration::from_secs(100)),
        ..World::default()
    };
    let bench = Bench::new(world, json!({}));
    sleep(Duration::from_secs(250)).await;
    assert_eq!(World::count(&bench.world.dials), 2, "found by the probe");
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.refusals), 1);
}

#[tokio::test(start_paused = true)]
async fn traffic_counts_as_a_probe() {
    let bench = Bench::new(World::default(), json!({ "keepalive_interval": 60 }));
    for _ in 0..100 {
        sleep(Duration::from_secs(30)).await;
        bench.call().await.unwrap();
    }
    assert_eq!(World::count(&bench.world.pings), 0);
}

#[tokio::test(start_paused = true)]
async fn attempts_go_on_for_ever_and_slow_down() {
    let refused = Failure::Unreachable {
        cause: "refused".to_owned(),
    };
    let world = World {
        failures: Mutex::new(vec![refused; 100_000].into()),
        ..World::default()
    };
    let bench = Bench::new(world, json!({}));
    sleep(24 * HOUR).await;
    let dials = World::count(&bench.world.dials);
    assert!((24 * 120..=24 * 240 + 20).contains(&dials), "{dials}");
    bench.world.failures.lock().unwrap().clear();
    sleep(Duration::from_secs(31)).await;
    bench.call().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_answering_is_given_up_by_the_probe() {
    let bench = Bench::new(World::default(), json!({ "keepalive_interval": 60 }));
    bench.call().await.unwrap();
    bench.world.is_down.store(true, Ordering::SeqCst);
    sleep(Duration::from_secs(60 + 6 + 10 + 1)).await;
    assert!(bench.server.view().link.is_none());
    bench.world.is_down.store(false, Ordering::SeqCst);
    let back = Instant::now();
    while bench.call().await.is_err() {
        sleep(Duration::from_secs(1)).await;
    }
    assert!(
        back.elapsed() <= Duration::from_secs(7),
        "{:?}",
        back.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_fifteen_seconds_and_is_told_what_happens_next() {
    let refused = Failure::Unreachable {
        cause: "refused".to_owned(),
    };
    let world = World {
        failures: Mutex::new(vec![refused; 1000].into()),
        ..World::default()
    };
    let settings = json!({ "breaker": { "threshold": 0 } });
    let bench = Bench::new(world, settings);
    let started = Instant::now();
    let error = bench.call().await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 15);
    assert!(
        error.contains("refused") && error.contains("next attempt is in"),
        "{error}"
    );
    let dials = World::count(&bench.world.dials);
    assert!(
        (15..=20).contains(&dials),
        "one attempt a second for who waits: {dials}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_a_server_that_comes_back_slowly() {
    let world = World {
        handshake: Duration::from_secs(11),
        idle_max: Some(Duration::from_secs(600)),
        ..World::default()
    };
    let bench = Bench::new(world, json!({ "keepalive_interval": 0 }));
    bench.call().await.unwrap();
    // It refuses connections for a moment, and takes its time when it does not.
    let refused = Failure::Unreachable {
        cause: "refused".to_owned(),
    };
    *bench.world.failures.lock().unwrap() = vec![refused; 2].into();
    sleep(HOUR).await;
    let lost = Instant::now();
    bench.call().await.unwrap();
    assert!(lost.elapsed() < Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_began_while_the_server_was_away_does_not_hold_up_the_next() {
    let world = World {
        idle_max: Some(Duration::from_secs(600)),
        ..World::default()
    };
    let bench = Bench::new(world, json!({ "keepalive_interval": 0 }));
    bench.call().await.unwrap();
    sleep(HOUR).await;
    bench.world.deaf_dial.store(2, Ordering::SeqCst);
    let lost = Instant::now();
    bench.call().await.unwrap();
    assert_eq!(lost.elapsed().as_secs(), 5);
    assert_eq!(World::count(&bench.world.dials), 3);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_supervisor_answers_callers_at_once() {
    let bench = Bench::new(World::default(), json!({}));
    bench.call().await.unwrap();
    bench.stop.cancel();
    sleep(Duration::from_secs(1)).await;
    let started = Instant::now();
    let error = bench.call().await.unwrap_err();
    assert_eq!(started.elapsed(), Duration::ZERO);
    assert!(error.contains("switched off"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_day_of_lost_sessions_restarts_and_storms_leaves_nothing_behind() {
    let world = World {
        // However often it is used: no keepalive can help here.
        lifetime_max: Some(Duration::from_secs(170)),
        ..World::default()
    };
    let bench = Bench::new(world, json!({}));
    sleep(HOUR).await;
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let (tasks_before, dials_before) = (tasks(), World::count(&bench.world.dials));
    for _ in 0..24 {
        // Every hour it is also restarted, and refuses connections meanwhile.
        let refused = Failure::Unreachable {
            cause: "refused".to_owned(),
        };
        *bench.world.failures.lock().unwrap() = vec![refused; 5].into();
        sleep(HOUR / 2).await;
        announce_wildly(&bench).await;
        reconnect_wildly(&bench).await;
        sleep(HOUR / 2).await;
        bench.call().await.unwrap();
        // The call may have met a lost session, whose connection is just ending.
        sleep(Duration::from_secs(1)).await;
        assert_eq!(World::count(&bench.world.open), 1, "old connections end");
    }
    assert!(World::count(&bench.world.dials) > dials_before + 800);
    assert!(tasks() <= tasks_before + 2, "{} of {tasks_before}", tasks());
    bench.call().await.unwrap();
}

async fn announce_wildly(bench: &Bench) {
    let lists = World::count(&bench.world.lists);
    bench.world.announcements.store(200, Ordering::SeqCst);
    bench.call().await.unwrap();
    sleep(Duration::from_secs(20)).await;
    // The call itself is one, a session that is lost meanwhile another.
    let lists = World::count(&bench.world.lists) - lists;
    assert!(lists <= 2 + 2, "{lists}");
}

async fn reconnect_wildly(bench: &Bench) {
    for _ in 0..20 {
        bench.server.reconnect().await;
        bench.call().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_works_on_one_thing_at_a_time_is_not_killed_for_its_silence() {
    let world = World {
        is_exclusive: true,
        is_at_work: true,
        ..World::default()
    };
    let bench = Bench::new(world, json!({ "keepalive_interval": 20 }));
    bench.call().await.unwrap();
    *bench.world.slow_list.lock().unwrap() = Some(Duration::from_secs(250));
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.dials), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_freezes_under_a_call_is_known_within_two_intervals() {
    for is_exclusive in [true, false] {
        let world = World {
            is_exclusive,
            ..World::default()
        };
        let bench = Bench::new(world, json!({ "keepalive_interval": 20 }));
        bench.call().await.unwrap();
        bench.world.deaf_connections.store(1, Ordering::SeqCst);
        let called = Instant::now();
        let error = bench.call().await.unwrap_err();
        assert!(called.elapsed() <= Duration::from_secs(40), "{error}");
        assert!(error.contains("outcome unknown"), "{error}");
        assert!(error.contains("does not answer a ping"), "{error}");
        assert!(!error.contains("try"), "{error}");
        bench.call().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_patient_probe_gives_way_to_one_that_somebody_waits_for() {
    let settings = json!({ "keepalive_interval": 100, "timeout": 150 });
    let bench = Bench::new(World::default(), settings);
    bench.call().await.unwrap();
    bench.world.deaf_connections.store(1, Ordering::SeqCst);
    bench.call().await.unwrap_err();
    let asked = Instant::now();
    bench.call().await.unwrap();
    assert!(
        asked.elapsed() <= Duration::from_secs(6),
        "{:?}",
        asked.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_longer_than_an_interval_is_left_alone_while_its_server_answers() {
    let bench = Bench::new(World::default(), json!({ "keepalive_interval": 20 }));
    bench.call().await.unwrap();
    *bench.world.slow_list.lock().unwrap() = Some(Duration::from_secs(35));
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.dials), 1);
}

#[tokio::test(start_paused = true)]
async fn what_only_a_person_can_mend_is_tried_at_every_call_and_as_often_as_anything_else() {
    let refused = HttpAnswer {
        status: 401,
        ..HttpAnswer::default()
    };
    let missing = Failure::Misconfigured {
        cause: "no such program".to_owned(),
    };
    for failure in [Failure::Http(refused), missing] {
        let world = World {
            failures: Mutex::new(vec![failure.clone(); 10_000].into()),
            ..World::default()
        };
        let bench = Bench::new(world, json!({}));
        sleep(HOUR).await;
        let dials = World::count(&bench.world.dials);
        assert!((120..=250).contains(&dials), "{failure:?}: {dials}");
        let asked = Instant::now();
        bench.call().await.unwrap_err();
        assert!(asked.elapsed() <= Duration::from_secs(1), "{failure:?}");
        assert_eq!(World::count(&bench.world.dials), dials + 1, "tried at once");
        bench.world.failures.lock().unwrap().clear();
        let mended = Instant::now();
        bench.call().await.unwrap();
        assert!(mended.elapsed() <= Duration::from_secs(1), "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_replaced_is_waited_for_by_the_call_that_misses_it() {
    let world = World {
        is_exclusive: true,
        ..World::default()
    };
    let bench = Bench::new(world, json!({}));
    bench.call().await.unwrap();
    let missing = Failure::Misconfigured {
        cause: "no such program".to_owned(),
    };
    *bench.world.failures.lock().unwrap() = vec![missing; 3].into();
    bench.server.reconnect().await;
    let is_lost = |view: &View| view.link.is_none();
    bench.server.watch().wait_for(is_lost).await.unwrap();
    let lost = Instant::now();
    bench.call().await.unwrap();
    assert!(lost.elapsed() < Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn a_call_after_the_machine_slept_waits_for_the_probe() {
    let bench = Bench::new(World::default(), json!({}));
    bench.call().await.unwrap();
    bench.clock.advance(8 * HOUR);
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.pings), 1);
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.pings), 1, "once for each sleep");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_did_not_survive_the_sleep_is_replaced_before_the_call() {
    let bench = Bench::new(World::default(), json!({}));
    bench.call().await.unwrap();
    let lists = World::count(&bench.world.lists);
    bench.world.deaf_connections.store(1, Ordering::SeqCst);
    bench.clock.advance(8 * HOUR);
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.dials), 2);
    assert!(World::count(&bench.world.lists) > lists);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_forgets_silent_sessions_is_probed_more_often_from_then_on() {
    let world = World {
        idle_max: Some(Duration::from_secs(60)),
        ..World::default()
    };
    let bench = Bench::new(world, json!({}));
    sleep(24 * HOUR).await;
    assert_eq!(
        World::count(&bench.world.refusals),
        2,
        "at 180 s and at 90 s"
    );
    assert_eq!(World::count(&bench.world.dials), 3);
    bench.call().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_program_that_nobody_needs_rests_until_the_next_call() {
    let world = World {
        is_exclusive: true,
        ..World::default()
    };
    let bench = Bench::new(world, json!({ "idle_timeout_seconds": 600 }));
    bench.call().await.unwrap();
    sleep(Duration::from_secs(599)).await;
    bench.call().await.unwrap();
    sleep(Duration::from_secs(599)).await;
    assert_eq!(bench.server.view().state, ServerState::Ready, "it was used");
    sleep(Duration::from_secs(10)).await;
    assert_eq!(bench.server.view().state, ServerState::Resting);
    let pings = World::count(&bench.world.pings);
    sleep(12 * HOUR).await;
    assert_eq!(World::count(&bench.world.pings), pings, "left alone");
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.dials), 2);
    assert_eq!(bench.server.view().state, ServerState::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_program_is_renewed_after_its_lifetime_but_never_under_a_call() {
    let world = World {
        is_exclusive: true,
        ..World::default()
    };
    let bench = Bench::new(
        world,
        json!({ "lifecycle": { "max_lifetime_seconds": 100 } }),
    );
    bench.call().await.unwrap();
    *bench.world.slow_list.lock().unwrap() = Some(Duration::from_secs(250));
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.dials), 1);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(bench.server.view().state, ServerState::Resting);
    bench.call().await.unwrap();
    assert_eq!(World::count(&bench.world.dials), 2);
}

#[tokio::test(start_paused = true)]
async fn only_programs_rest() {
    let bench = Bench::new(World::default(), json!({ "idle_timeout_seconds": 60 }));
    sleep(HOUR).await;
    assert_eq!(bench.server.view().state, ServerState::Ready);
}
