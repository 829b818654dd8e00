//! Days of a gateway in seconds: real lanes, real delivery, real conversations and the real store, in a world where everything
//! goes wrong that can, and processes die at any commit or await (`hermes_testkit::simulation`).
//!
//! `HERMES_SIM_DAYS` makes it longer, `HERMES_SIM_SEED` replays one world, `HERMES_SIM_TRACE=1` tells what happens in it.

mod life;
mod sessions;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use hermes_testkit::simulation::Verdict;

use self::life::{BROKEN_ON_PURPOSE, World};

/// Days of one world: time enough for what is forgotten after a week.
const DAYS_PER_SEED: u64 = 10;
/// Days in all, unless somebody wants more: a moment. `scripts/torture`, which every landing runs, wants a thousand.
const DAYS: u64 = 40;
/// Worlds further on that something was found in once; they are run again with every landing's.
const FOUND: &[u64] = &[139];
/// Worlds at a time.
const THREADS: usize = 2;
/// Worlds after which memory must not grow any more, and by how much it may all the same: allocators keep what was freed.
const WARM_WORLDS: u64 = 10;
const GROWTH_MB_MAX: u64 = 48;

/// What all worlds together saw.
#[derive(Default)]
struct Total {
    worlds: u64,
    lives: u64,
    written: u64,
    verdict: Verdict,
}

#[test]
fn nothing_is_lost_or_doubled_in_days_of_storms_and_crashes() {
    tell_no_panics_on_purpose();
    if let Some(seed) = number("HERMES_SIM_SEED") {
        return replay(seed);
    }
    let days = number("HERMES_SIM_DAYS").unwrap_or(DAYS);
    let found = FOUND.iter().copied().filter(|_| days > DAYS);
    let worlds: Vec<u64> = (0..days / DAYS_PER_SEED).chain(found).collect();
    let next = AtomicUsize::new(0);
    let total: Mutex<Total> = Mutex::default();
    let failed: Mutex<Vec<String>> = Mutex::default();
    let warm_mb: Mutex<Option<u64>> = Mutex::default();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let next = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&seed) = worlds.get(next) else {
                        return;
                    };
                    if failed.lock().unwrap().len() > 5 {
                        return;
                    }
                    let mut world = World::new(seed, false);
                    let verdict = world.run(DAYS_PER_SEED);
                    if !verdict.wrong.is_empty() {
                        failed.lock().unwrap().push(account(seed, &verdict));
                    }
                    let mut total = total.lock().unwrap();
                    total.add(&world, &verdict);
                    if total.worlds == WARM_WORLDS {
                        *warm_mb.lock().unwrap() = resident_mb();
                    }
                }
            });
        }
    });
    let total = total.into_inner().unwrap();
    println!("{} in {:.0?}", total.told(), began.elapsed());
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    if let (Some(warm), Some(now)) = (warm_mb.into_inner().unwrap(), resident_mb()) {
        println!("{warm} MB resident after {WARM_WORLDS} worlds, {now} MB in the end");
        assert!(
            now <= warm + GROWTH_MB_MAX,
            "memory grew by {} MB",
            now - warm
        );
    }
}

#[test]
fn a_conversation_stays_open_for_what_goes_on_beside_it() {
    let half_an_hour = std::time::Duration::from_secs(1_800);
    let mut world = World::new(1, number("HERMES_SIM_TRACE").is_some());
    assert_eq!(world.wait_for_a_process(half_an_hour), 1);
}

#[test]
fn a_disk_that_fails_for_moments_makes_nobody_deaf() {
    for seed in 0..12 {
        let mut world = World::new(seed, number("HERMES_SIM_TRACE").is_some());
        let open = world.live_on_a_failing_disk();
        assert!(open.is_empty(), "world {seed}: {open:?} wait for ever");
    }
}

/// What breaks on purpose is not news, and telling where it did takes longer than a day.
fn tell_no_panics_on_purpose() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let said = panic.payload_as_str();
        if said != Some(BROKEN_ON_PURPOSE) {
            usual(panic);
        }
    }));
}

/// One world again, with all that happens in it.
fn replay(seed: u64) {
    let mut world = World::new(seed, number("HERMES_SIM_TRACE").is_some());
    let verdict = world.run(number("HERMES_SIM_DAYS").unwrap_or(DAYS_PER_SEED));
    assert!(verdict.wrong.is_empty(), "{}", account(seed, &verdict));
}

fn account(seed: u64, verdict: &Verdict) -> String {
    let wrong: Vec<String> = verdict
        .wrong
        .iter()
        .take(5)
        .map(|wrong| format!("  {wrong}"))
        .collect();
    format!(
        "world {seed}: {} promises were not kept; again with\n  \
         HERMES_SIM_SEED={seed} HERMES_SIM_TRACE=1 cargo nextest run -p hermes-gateway simulation --no-capture\n{}",
        verdict.wrong.len(),
        wrong.join("\n")
    )
}

impl Total {
    fn add(&mut self, world: &World, verdict: &Verdict) {
        self.worlds += 1;
        self.lives += world.lives;
        self.written += world.written();
        let sum = &mut self.verdict;
        sum.accepted += verdict.accepted;
        sum.answered += verdict.answered;
        sum.closed += verdict.closed;
        sum.delivered += verdict.delivered;
        sum.marked += verdict.marked;
        sum.runs += verdict.runs;
    }

    fn told(&self) -> String {
        let verdict = &self.verdict;
        format!(
            "{} worlds of {DAYS_PER_SEED} days, {} processes: {} messages written, {} updates kept, {} answered, {} closed \
             otherwise, {} replies delivered, {} marked as perhaps double, {} runs of jobs",
            self.worlds,
            self.lives,
            self.written,
            verdict.accepted,
            verdict.answered,
            verdict.closed,
            verdict.delivered,
            verdict.marked,
            verdict.runs
        )
    }
}

/// What the process has in memory, where the system tells.
fn resident_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1_000)
}

fn number(name: &str) -> Option<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever runs the tests says which"
    )]
    std::env::var(name).ok()?.parse().ok()
}
