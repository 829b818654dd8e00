//! Jobs and their runs: each time runs once whoever claims it, whoever dies loses a run, and whoever lost one writes nothing.

use std::path::PathBuf;

use hermes_core::{
    ClaimOutcome, Delivery, DeliveryStatus, Job, JobId, JobSpec, JobState, Misfire, NextRun, Run,
    RunClaim, RunEnd, RunFilter, RunId, RunLease, RunPhase, RunStatus, RunStep, RunTrigger,
    Schedules, StoreError, Timestamp,
};

use super::Place;
use super::talk::{START, after};

const MINUTE: i64 = 60_000;

pub(super) async fn check<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    a_job_is_kept_as_it_is(open).await;
    a_change_of_what_somebody_else_changed_is_refused(open).await;
    jobs_of_another_program_come_once(open).await;
    only_what_is_due_and_not_under_way_is_found(open).await;
    each_time_of_a_job_runs_once_whoever_claims_it(open).await;
    many_who_claim_at_once_get_one_run(open).await;
    a_wish_runs_beside_the_schedule(open).await;
    the_last_of_so_many_runs_completes_its_job(open).await;
    whoever_dies_loses_the_run_and_whoever_lost_it_writes_nothing(open).await;
    a_run_is_tried_again_from_its_beginning(open).await;
    what_a_clock_that_was_ahead_put_off_is_taken_up_when_it_is_set_right(open).await;
    of_two_who_take_a_run_over_one_gets_it(open).await;
    a_job_that_was_changed_or_removed_is_not_claimed_by_what_it_was(open).await;
    how_a_run_ended_and_where_its_result_went_are_two_things(open).await;
    failures_are_counted_until_one_works(open).await;
    history_outlives_the_job_and_is_limited(open).await;
}

fn next(at: i64) -> NextRun {
    NextRun {
        scheduled: after(at),
        due: after(at + 5),
    }
}

fn job(id: &str, at: i64) -> Job {
    Job {
        id: id.into(),
        revision: 1,
        created: START,
        spec: JobSpec {
            name: format!("job {id} \u{1f980}"),
            prompt: "look\nand tell".into(),
            schedule: "every minute".into(),
            said_ms: START.as_millis(),
            skills: vec!["travel".into()],
            context_from: vec!["other".into()],
            deliver: vec!["local".into()],
            misfire: Misfire::All,
            cost_max_micro_usd: Some(5),
            ..JobSpec::default()
        },
        state: JobState::Active,
        next: Some(next(at)),
        wanted: None,
        runs: 0,
        failures: 0,
        told: None,
    }
}

fn claim(job: &Job, holder: &str) -> RunClaim {
    let scheduled = job.next.unwrap().scheduled;
    let following = scheduled.as_millis() + MINUTE;
    RunClaim {
        job: job.id.clone(),
        revision: job.revision,
        trigger: RunTrigger::Schedule,
        scheduled,
        next: Some(NextRun {
            scheduled: Timestamp::from_millis(following),
            due: Timestamp::from_millis(following),
        }),
        missed: 0,
        skips: None,
        holder: holder.into(),
        now: START,
        until: after(MINUTE),
    }
}

async fn claimed(store: &impl Schedules, claim: RunClaim) -> Run {
    match store.claim_run(claim).await.unwrap() {
        ClaimOutcome::Claimed(run) => *run,
        other => panic!("{other:?}"),
    }
}

async fn now(store: &impl Schedules, id: &str) -> Job {
    store.job(&id.into()).await.unwrap().unwrap()
}

fn ended(status: RunStatus) -> RunEnd {
    RunEnd {
        status,
        at: after(9),
        output: Some("found \u{1f980}".into()),
        error: None,
        hint: None,
        cost_micro_usd: Some(7),
        deliveries: Vec::new(),
        tells_failure: false,
    }
}

async fn run_once(store: &impl Schedules, id: &str, status: RunStatus) -> Run {
    let run = claimed(store, claim(&now(store, id).await, "a")).await;
    assert!(store.finish_run(run.lease(), ended(status)).await.unwrap());
    run
}

async fn a_job_is_kept_as_it_is<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 10)).await.unwrap();
    store.add_job(job("b", 5)).await.unwrap();
    let again = store.add_job(job("a", 10)).await;
    assert!(
        matches!(again, Err(StoreError::Refused { .. })),
        "{again:?}"
    );
    drop(store);
    let store = place.open().await;
    assert_eq!(store.jobs().await.unwrap(), [job("a", 10), job("b", 5)]);
    assert_eq!(store.job(&"a".into()).await, Ok(Some(job("a", 10))));
    assert_eq!(store.next_due().await, Ok(Some(after(10))));
    assert_eq!(store.remove_job(&"a".into()).await, Ok(true));
    assert_eq!(store.remove_job(&"a".into()).await, Ok(false));
    assert_eq!(store.job(&"a".into()).await, Ok(None));
}

async fn a_change_of_what_somebody_else_changed_is_refused<S: Schedules>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 10)).await.unwrap();
    let seen = now(&store, "a").await;
    let mut paused = seen.clone();
    (paused.state, paused.next) = (JobState::Paused, None);
    assert_eq!(store.change_job(paused).await, Ok(true));
    assert_eq!(store.change_job(seen.clone()).await, Ok(false));
    let found = now(&store, "a").await;
    assert_eq!((found.state, found.next), (JobState::Paused, None));
    assert!(found.revision > seen.revision);
    let stale = store.claim_run(claim(&seen, "a")).await;
    assert_eq!(stale, Ok(ClaimOutcome::Changed));
    assert_eq!(store.next_due().await, Ok(None));
}

async fn jobs_of_another_program_come_once<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    let ids = |ids: &[&str]| -> Result<Vec<JobId>, StoreError> {
        Ok(ids.iter().map(|id| JobId::from(*id)).collect())
    };
    let both = vec![job("a", 1), job("b", 2)];
    assert_eq!(store.import_jobs(both.clone()).await, ids(&["a", "b"]));
    store.remove_job(&"a".into()).await.unwrap();
    assert_eq!(store.import_jobs(both).await, ids(&[]));
    assert_eq!(store.import_jobs(vec![job("c", 3)]).await, ids(&["c"]));
    assert_eq!(store.jobs().await.unwrap().len(), 2);
}

async fn only_what_is_due_and_not_under_way_is_found<S: Schedules>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    for (id, at) in [("late", 20), ("soon", 10), ("later", 500)] {
        store.add_job(job(id, at)).await.unwrap();
    }
    let due = async |at: i64| -> Vec<String> {
        let jobs = store.due_jobs(after(at)).await.unwrap();
        jobs.iter().map(|job| job.id.to_string()).collect()
    };
    assert!(due(14).await.is_empty());
    assert_eq!(due(15).await, ["soon"]);
    assert_eq!(due(25).await, ["soon", "late"]);
    let mut waits = claim(&now(&store, "soon").await, "a");
    waits.next = Some(next(20));
    claimed(&store, waits).await;
    assert_eq!(due(100).await, ["late"]);
}

async fn each_time_of_a_job_runs_once_whoever_claims_it<S: Schedules>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 10)).await.unwrap();
    let first = run_once(&store, "a", RunStatus::Succeeded).await;
    assert_eq!((first.attempt, first.phase), (1, RunPhase::Claimed));
    let moved = now(&store, "a").await;
    assert_eq!(moved.next.unwrap().scheduled, after(10 + MINUTE));
    assert_eq!(moved.runs, 1);
    drop(store);
    // The clock went back, and the same time comes again.
    let store = place.open().await;
    let mut back = now(&store, "a").await;
    back.next = Some(next(10));
    assert!(store.change_job(back).await.unwrap());
    let again = claim(&now(&store, "a").await, "b");
    assert_eq!(store.claim_run(again).await, Ok(ClaimOutcome::RunBefore));
    let moved = now(&store, "a").await;
    assert_eq!(moved.next.unwrap().scheduled, after(10 + MINUTE));
    assert_eq!(store.runs(RunFilter::default()).await.unwrap().len(), 1);
    assert_eq!(moved.runs, 1);
    // A time that is left out is written down.
    let mut left_out = claim(&moved, "b");
    left_out.skips = Some("nobody was there".into());
    let skipped = claimed(&store, left_out).await;
    assert_eq!(skipped.status, RunStatus::Skipped);
    assert_eq!(skipped.error.as_deref(), Some("nobody was there"));
    assert!(!store.renew_run(skipped.lease(), after(1)).await.unwrap());
}

async fn many_who_claim_at_once_get_one_run<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let (one, other) = (place.open().await, place.open().await);
    one.add_job(job("a", 10)).await.unwrap();
    let seen = now(&one, "a").await;
    let claims = futures_util::future::join_all((0..8).map(|number| {
        let store = if number % 2 == 0 { &one } else { &other };
        store.claim_run(claim(&seen, &number.to_string()))
    }));
    let outcomes = claims.await;
    let is_claimed =
        |outcome: &&Result<ClaimOutcome, _>| matches!(outcome, Ok(ClaimOutcome::Claimed(_)));
    assert_eq!(
        outcomes.iter().filter(is_claimed).count(),
        1,
        "{outcomes:?}"
    );
    assert_eq!(other.runs(RunFilter::default()).await.unwrap().len(), 1);
}

async fn a_wish_runs_beside_the_schedule<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 1000)).await.unwrap();
    let mut wanted = now(&store, "a").await;
    wanted.wanted = Some(after(3));
    assert!(store.change_job(wanted).await.unwrap());
    assert_eq!(store.next_due().await, Ok(Some(after(3))));
    let due = store.due_jobs(after(3)).await.unwrap();
    let wish = RunClaim {
        trigger: RunTrigger::Person,
        scheduled: after(3),
        next: None,
        ..claim(&due[0], "a")
    };
    let run = claimed(&store, wish).await;
    assert_eq!(run.trigger, RunTrigger::Person);
    let left = now(&store, "a").await;
    assert_eq!(
        (left.wanted, left.next, left.runs),
        (None, Some(next(1000)), 0)
    );
    assert_eq!(left.state, JobState::Active);
}

async fn the_last_of_so_many_runs_completes_its_job<S: Schedules>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    let mut twice = job("twice", 10);
    twice.spec.repeat = Some(2);
    store.add_job(twice).await.unwrap();
    run_once(&store, "twice", RunStatus::Failed).await;
    assert_eq!(now(&store, "twice").await.state, JobState::Active);
    run_once(&store, "twice", RunStatus::Succeeded).await;
    let over = now(&store, "twice").await;
    assert_eq!((over.state, over.next), (JobState::Completed, None));

    store.add_job(job("once", 10)).await.unwrap();
    let mut last = claim(&now(&store, "once").await, "a");
    last.next = None;
    claimed(&store, last).await;
    assert_eq!(now(&store, "once").await.state, JobState::Completed);
}

async fn whoever_dies_loses_the_run_and_whoever_lost_it_writes_nothing<S: Schedules>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 10)).await.unwrap();
    let run = claimed(&store, claim(&now(&store, "a").await, "dead")).await;
    let (lease, until_max) = (run.lease(), after(2 * MINUTE));
    assert!(store.note_run(lease, RunStep::Scripting).await.unwrap());
    let asking = RunStep::Asking {
        prompt: "tell".into(),
    };
    assert!(store.note_run(lease, asking).await.unwrap());
    let session = RunStep::In {
        session: "s1".into(),
    };
    assert!(store.note_run(lease, session).await.unwrap());
    drop(store);

    let store = place.open().await;
    let abandoned = async |at: i64| {
        store
            .abandoned_runs(after(at), after(at + 2 * MINUTE))
            .await
    };
    assert_eq!(abandoned(MINUTE - 1).await.unwrap(), []);
    assert!(store.renew_run(lease, after(2 * MINUTE)).await.unwrap());
    assert_eq!(abandoned(MINUTE).await.unwrap(), []);
    let found = abandoned(2 * MINUTE).await.unwrap();
    assert_eq!(found[0].lease(), lease);
    // A lease that no clock that is right would write.
    let ahead = store.abandoned_runs(START, after(MINUTE)).await.unwrap();
    assert_eq!(ahead.len(), 1);
    let taken = store.take_run(lease, "alive", until_max).await.unwrap();
    let taken = taken.unwrap();
    assert_eq!((taken.attempt, taken.holder.as_str()), (2, "alive"));
    assert_eq!(taken.phase, RunPhase::Asking);
    assert_eq!(taken.prompt.as_deref(), Some("tell"));
    assert_eq!(taken.session, Some("s1".into()));
    assert_eq!(store.take_run(lease, "late", until_max).await, Ok(None));

    // The dead one was only asleep.
    assert!(!store.renew_run(lease, until_max).await.unwrap());
    assert!(!store.note_run(lease, RunStep::Scripting).await.unwrap());
    assert!(!store.put_off_run(lease, START, "no").await.unwrap());
    let end = ended(RunStatus::Succeeded);
    assert!(!store.finish_run(lease, end.clone()).await.unwrap());
    assert!(store.finish_run(taken.lease(), end.clone()).await.unwrap());
    assert!(!store.finish_run(taken.lease(), end).await.unwrap());
    let over = &store.runs(RunFilter::default()).await.unwrap()[0];
    assert_eq!(over.status, RunStatus::Succeeded);
    assert_eq!(over.output.as_deref(), Some("found \u{1f980}"));
    assert_eq!((over.cost_micro_usd, over.ended), (Some(7), Some(after(9))));
    assert_eq!(store.take_run(over.lease(), "x", until_max).await, Ok(None));
}

async fn a_run_is_tried_again_from_its_beginning<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 10)).await.unwrap();
    let run = claimed(&store, claim(&now(&store, "a").await, "a")).await;
    assert!(
        store
            .note_run(run.lease(), RunStep::Scripting)
            .await
            .unwrap()
    );
    assert!(
        store
            .put_off_run(run.lease(), after(500), "no network")
            .await
            .unwrap()
    );
    assert_eq!(store.next_due().await, Ok(Some(after(500))));
    let waiting = store.abandoned_runs(after(499), after(9999)).await.unwrap();
    assert_eq!(waiting, []);
    let due = &store.abandoned_runs(after(500), after(9999)).await.unwrap()[0];
    assert_eq!(due.status, RunStatus::Waiting);
    assert_eq!(due.error.as_deref(), Some("no network"));
    let taken = store.take_run(due.lease(), "b", after(9999)).await.unwrap();
    let taken = taken.unwrap();
    assert_eq!((taken.attempt, taken.phase), (2, RunPhase::Claimed));
    assert_eq!(taken.status, RunStatus::Running);
}

async fn what_a_clock_that_was_ahead_put_off_is_taken_up_when_it_is_set_right<S: Schedules>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    const YEAR: i64 = 365 * 24 * 60 * MINUTE;
    let place = Place::new(open);
    let store = place.open().await;
    let lease_max = after(2 * MINUTE);
    for id in ["waits", "runs"] {
        store.add_job(job(id, 10)).await.unwrap();
    }
    let waits = claimed(&store, claim(&now(&store, "waits").await, "a")).await;
    let put_off = store.put_off_run(waits.lease(), after(YEAR), "no network");
    assert!(put_off.await.unwrap());
    let runs = claimed(&store, claim(&now(&store, "runs").await, "a")).await;
    assert!(store.renew_run(runs.lease(), after(YEAR)).await.unwrap());
    let found = store.abandoned_runs(START, lease_max).await.unwrap();
    let found: Vec<RunId> = found.iter().map(|run| run.id).collect();
    assert_eq!(found.len(), 2);
    assert!(found.contains(&waits.id) && found.contains(&runs.id));
    // A wait as it is meant to be is waited for.
    let taken = store.take_run(waits.lease(), "b", lease_max).await.unwrap();
    let lease = taken.unwrap().lease();
    assert!(
        store
            .put_off_run(lease, after(30 * MINUTE), "again")
            .await
            .unwrap()
    );
    let found = store.abandoned_runs(START, lease_max).await.unwrap();
    assert!(found.iter().all(|run| run.id != waits.id));
}

async fn of_two_who_take_a_run_over_one_gets_it<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 10)).await.unwrap();
    let run = claimed(&store, claim(&now(&store, "a").await, "a")).await;
    let late = after(2 * MINUTE);
    let seen = store.abandoned_runs(late, after(9 * MINUTE)).await.unwrap()[0].lease();
    assert_eq!(seen, run.lease());
    let (one, two) = (
        store.take_run(seen, "b", after(3 * MINUTE)).await.unwrap(),
        store.take_run(seen, "c", after(3 * MINUTE)).await.unwrap(),
    );
    assert_eq!((one.is_some(), two), (true, None));
    // Whoever had it before is told by everything it tries.
    let old = run.lease();
    assert!(!store.renew_run(old, after(MINUTE)).await.unwrap());
    assert!(!store.note_run(old, RunStep::Scripting).await.unwrap());
    assert!(!store.put_off_run(old, after(MINUTE), "x").await.unwrap());
    assert!(
        !store
            .finish_run(old, ended(RunStatus::Failed))
            .await
            .unwrap()
    );
    assert_eq!(now(&store, "a").await.failures, 0);
}

async fn a_job_that_was_changed_or_removed_is_not_claimed_by_what_it_was<S: Schedules>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    for id in ["paused", "removed"] {
        store.add_job(job(id, 10)).await.unwrap();
    }
    let (was, gone) = (now(&store, "paused").await, now(&store, "removed").await);
    let paused = Job {
        state: JobState::Paused,
        next: None,
        ..was.clone()
    };
    assert!(store.change_job(paused).await.unwrap());
    assert!(store.remove_job(&gone.id).await.unwrap());
    for seen in [was, gone] {
        let outcome = store.claim_run(claim(&seen, "a")).await.unwrap();
        assert_eq!(outcome, ClaimOutcome::Changed, "{}", seen.id);
    }
    assert_eq!(store.due_jobs(after(99)).await, Ok(Vec::new()));
    let filter = RunFilter::default();
    assert_eq!(store.runs(filter).await, Ok(Vec::new()));
}

async fn how_a_run_ended_and_where_its_result_went_are_two_things<S: Schedules>(
    open: &impl AsyncFn(PathBuf) -> S,
) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 10)).await.unwrap();
    let run = claimed(&store, claim(&now(&store, "a").await, "a")).await;
    let delivery = |target: &str| Delivery {
        target: target.into(),
        text: "found".into(),
        status: DeliveryStatus::Pending,
    };
    let end = RunEnd {
        deliveries: vec![delivery("z:1"), delivery("a:2"), delivery("a:2")],
        ..ended(RunStatus::Succeeded)
    };
    assert!(store.finish_run(run.lease(), end).await.unwrap());
    drop(store);
    let store = place.open().await;
    let waiting = store.undelivered().await.unwrap();
    assert_eq!(waiting[0].deliveries, [delivery("z:1"), delivery("a:2")]);
    let set = async |target: &str, status: DeliveryStatus| {
        store.set_delivery(run.id, target, status).await.unwrap();
    };
    let id = || "m1".to_owned();
    set("z:1", DeliveryStatus::Handed { id: id() }).await;
    set(
        "a:2",
        DeliveryStatus::Failed {
            error: "gone".into(),
        },
    )
    .await;
    let waiting = store.undelivered().await.unwrap();
    assert_eq!(
        waiting[0].deliveries[0].status,
        DeliveryStatus::Handed { id: id() }
    );
    set("z:1", DeliveryStatus::Delivered { id: id() }).await;
    set("z:1", DeliveryStatus::Pending).await;
    assert_eq!(store.undelivered().await, Ok(Vec::new()));
    let over = &store.runs(RunFilter::default()).await.unwrap()[0];
    assert_eq!(over.status, RunStatus::Succeeded);
    assert_eq!(
        over.deliveries[0].status,
        DeliveryStatus::Delivered { id: id() }
    );
    let failed = DeliveryStatus::Failed {
        error: "gone".into(),
    };
    assert_eq!(over.deliveries[1].status, failed);
}

async fn failures_are_counted_until_one_works<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    let place = Place::new(open);
    let store = place.open().await;
    store.add_job(job("a", 10)).await.unwrap();
    for number in 1..=2 {
        let run = claimed(&store, claim(&now(&store, "a").await, "a")).await;
        let end = RunEnd {
            error: Some(format!("broken {number}")),
            tells_failure: number == 1,
            ..ended(RunStatus::Failed)
        };
        assert!(store.finish_run(run.lease(), end).await.unwrap());
    }
    let failing = now(&store, "a").await;
    assert_eq!(failing.failures, 2);
    assert_eq!(failing.told.unwrap().error, "broken 1");
    run_once(&store, "a", RunStatus::Skipped).await;
    assert_eq!(now(&store, "a").await.failures, 2);
    run_once(&store, "a", RunStatus::Succeeded).await;
    let works = now(&store, "a").await;
    assert_eq!((works.failures, works.told), (0, None));
}

async fn history_outlives_the_job_and_is_limited<S: Schedules>(open: &impl AsyncFn(PathBuf) -> S) {
    const RUNS: usize = 230;
    let place = Place::new(open);
    let store = place.open().await;
    for id in ["a", "b"] {
        store.add_job(job(id, 10)).await.unwrap();
    }
    let first = claimed(&store, claim(&now(&store, "b").await, "a")).await;
    for _ in 0..RUNS {
        run_once(&store, "a", RunStatus::Succeeded).await;
    }
    let of = async |job: &str, limit: usize| {
        let filter = RunFilter {
            job: Some(job.into()),
            limit,
        };
        store.runs(filter).await.unwrap()
    };
    store.remove_job(&"a".into()).await.unwrap();
    let kept = of("a", 0).await;
    assert!((50..RUNS).contains(&kept.len()), "{}", kept.len());
    assert!(kept.is_sorted_by(|one, next| one.id > next.id));
    assert_eq!(of("a", 3).await.len(), 3);
    assert_eq!(of("b", 0).await[0].lease(), first.lease());
    let gone = RunLease {
        run: first.id,
        token: 99,
    };
    assert!(
        !store
            .finish_run(gone, ended(RunStatus::Failed))
            .await
            .unwrap()
    );
}
