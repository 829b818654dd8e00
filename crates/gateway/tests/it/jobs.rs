//! Jobs, run by a real scheduler in real conversations.

use std::fs;
use std::time::Duration;

use hermes_core::{
    CancellationToken, DeliveryStatus, Job, JobSpec, JobState, Misfire, RunStatus, RunTrigger,
    Timestamp,
};
use hermes_gateway::deliver::DeliverError;
use hermes_testkit::server::{Answer, Script};
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{House, asking};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn to_chat(prompt: &str) -> JobSpec {
    JobSpec {
        deliver: vec!["chat:1".into()],
        ..asking(prompt)
    }
}

#[tokio::test]
async fn a_job_runs_when_it_is_due_in_a_conversation_of_its_own_and_its_answer_arrives() {
    let house = House::saying("It rains.").await;
    let process = house.process().await;
    process
        .add("a", "every hour", to_chat("How is the weather?"))
        .await;
    assert_eq!(process.tick().await, 0);
    house.clock.advance(HOUR);
    assert_eq!(process.tick().await, 1);
    assert_eq!(process.tick().await, 0);
    assert_eq!(house.chat.got(), [("chat:1".into(), "It rains.".into())]);
    let runs = process.runs().await;
    assert_eq!(runs[0].status, RunStatus::Succeeded);
    assert_eq!(runs[0].output.as_deref(), Some("It rains."));
    let arrived = DeliveryStatus::Delivered {
        id: format!("message of cron:a:{}:chat:1", runs[0].scheduled.as_millis()),
    };
    assert_eq!(runs[0].deliveries[0].status, arrived);
    let session = runs[0].session.clone().unwrap();
    let record = hermes_core::Archive::record(&**process.runtime.store(), &session)
        .await
        .unwrap();
    assert_eq!(record.source, "cron");
    let body = String::from_utf8(house.server.requests()[0].body.clone()).unwrap();
    assert!(body.contains("How is the weather?") && body.contains("[SILENT]"));
    assert!(!body.contains("\"clarify\""), "nobody can be asked");
    // A copy is kept, and only so many of them.
    for _ in 0..4 {
        house.clock.advance(HOUR);
        process.tick().await;
    }
    let kept = fs::read_dir(house.home().join("cron/output/a")).unwrap();
    assert_eq!(kept.count(), 3);
}

#[tokio::test]
async fn intervals_keep_their_beat_however_long_runs_take() {
    let house = House::saying("done").await;
    let process = house.process().await;
    process.add("a", "every 10m", asking("go")).await;
    let start = house.now().as_millis();
    for late in [17_000, 3000, 0, 599_000] {
        let due = process.job("a").await.next.unwrap().scheduled;
        let wait = due.as_millis() - house.now().as_millis() + late;
        house.clock.advance(Duration::from_millis(wait as u64));
        assert_eq!(process.tick().await, 1);
    }
    let runs = process.runs().await;
    let beats: Vec<i64> = runs
        .iter()
        .map(|run| run.scheduled.as_millis() - start)
        .collect();
    assert_eq!(beats, [2_400_000, 1_800_000, 1_200_000, 600_000]);
}

#[tokio::test]
async fn what_was_missed_runs_once_not_at_all_or_every_time_as_the_job_wants() {
    let house = House::saying("done").await;
    let process = house.process().await;
    for (id, misfire) in [
        ("once", Misfire::Once),
        ("skip", Misfire::Skip),
        ("all", Misfire::All),
    ] {
        let spec = JobSpec {
            misfire,
            ..asking("go")
        };
        process.add(id, "every hour", spec).await;
    }
    // A night asleep.
    house.clock.advance(HOUR * 5 + MINUTE * 30);
    process.tick().await;
    let runs = process.runs().await;
    let count = |job: &str, status: RunStatus| {
        let of = runs.iter().filter(|run| run.job.as_str() == job);
        of.filter(|run| run.status == status).count()
    };
    assert_eq!(count("once", RunStatus::Succeeded), 1);
    assert_eq!(count("skip", RunStatus::Succeeded), 0);
    assert_eq!(count("skip", RunStatus::Skipped), 1);
    assert_eq!(count("all", RunStatus::Succeeded), 5);
    let once = runs.iter().find(|run| run.job.as_str() == "once").unwrap();
    assert_eq!(once.missed, 4);
    for id in ["once", "skip", "all"] {
        let next = process.job(id).await.next.unwrap().scheduled;
        let wait = next.as_millis() - house.now().as_millis();
        assert_eq!(wait, 30 * 60 * 1000, "{id}");
    }
}

#[tokio::test]
async fn a_clock_that_goes_back_runs_nothing_twice_and_stops_nothing() {
    let house = House::saying("done").await;
    let process = house.process().await;
    process.add("a", "0 * * * *", asking("go")).await;
    house.clock.advance(HOUR * 2);
    assert_eq!(process.tick().await, 1);
    let ran = process.runs().await[0].scheduled;
    house
        .clock
        .set(Timestamp::from_millis(ran.as_millis() - 300_000));
    assert_eq!(process.tick().await, 0);
    assert_eq!(process.job("a").await.next.unwrap().scheduled, ran);
    house.clock.advance(MINUTE * 6);
    assert_eq!(process.tick().await, 0, "that time has run");
    house.clock.advance(HOUR);
    assert_eq!(process.tick().await, 1);
    // The clock was a year ahead.
    house.clock.advance(HOUR * 24 * 365);
    assert_eq!(process.tick().await, 1);
    let back = house.now().as_millis() - 24 * 364 * 3_600_000;
    house.clock.set(Timestamp::from_millis(back));
    process.tick().await;
    house.clock.advance(HOUR);
    assert_eq!(process.tick().await, 1, "nobody waits for a year");
}

#[tokio::test]
async fn two_schedulers_on_one_store_run_each_time_once() {
    let house = House::saying("done").await;
    let (one, other) = (house.process().await, house.process().await);
    for number in 0..6 {
        let id = format!("job{number}");
        one.add(&id, "every hour", to_chat("go")).await;
    }
    for _ in 0..3 {
        house.clock.advance(HOUR);
        let (left, right) = tokio::join!(one.tick(), other.tick());
        assert_eq!(left + right, 6);
    }
    assert_eq!(one.runs().await.len(), 18);
    assert_eq!(house.chat.got().len(), 18);
    assert_eq!(house.server.requests().len(), 18);
}

#[tokio::test]
async fn silence_is_only_the_whole_answer_and_a_silent_job_speaks_only_of_errors() {
    let script = Script::default()
        .when("quiet one", [Answer::text(" [SILENT]\n")])
        .when("loud one", [Answer::text("The disk is full.\n[SILENT]")])
        .when("seed ok", [Answer::text("[SILENT]")])
        .when("seed bad", [Answer::text("Backup failed.")]);
    let house = House::with(script).await;
    let process = house.process().await;
    process
        .add("quiet", "every hour", to_chat("quiet one"))
        .await;
    process.add("loud", "every hour", to_chat("loud one")).await;
    for (id, prompt) in [
        ("ok", "seed ok: only respond if error"),
        ("bad", "seed bad: only respond if error"),
    ] {
        let spec = JobSpec {
            silent: true,
            ..to_chat(prompt)
        };
        process.add(id, "every hour", spec).await;
    }
    house.clock.advance(HOUR);
    assert_eq!(process.tick().await, 4);
    let mut texts: Vec<String> = house.chat.got().into_iter().map(|(_, text)| text).collect();
    texts.sort();
    assert_eq!(texts, ["Backup failed.", "The disk is full.\n[SILENT]"]);
    let runs = process.runs().await;
    assert!(runs.iter().all(|run| run.status == RunStatus::Succeeded));
}

#[tokio::test]
async fn a_failure_is_told_once_with_what_to_do_and_again_when_it_is_another() {
    let house = House::with(Script::always(Answer::status(
        401,
        json!({"error": {"message": "bad key"}}),
    )))
    .await;
    let process = house.process().await;
    process.add("a", "every hour", to_chat("go")).await;
    for _ in 0..3 {
        house.clock.advance(HOUR);
        process.tick().await;
    }
    let got = house.chat.got();
    assert_eq!(got.len(), 1, "{got:?}");
    let text = &got[0].1;
    assert!(
        text.contains("failed") && text.contains("What to do:"),
        "{text}"
    );
    assert_eq!(process.job("a").await.failures, 3);
    assert_eq!(process.job("a").await.state, JobState::Active);
    let run = &process.runs().await[0];
    assert!(run.error.is_some() && run.hint.is_some());
    house.clock.advance(HOUR * 24);
    process.tick().await;
    assert_eq!(house.chat.got().len(), 2, "a day later");
}

#[tokio::test]
async fn a_run_that_failed_is_tried_again_as_often_as_its_job_wants() {
    let refused = || Answer::status(400, json!({"error": {"message": "not now"}}));
    let house = House::with(Script::new([refused(), Answer::text("at last")])).await;
    let process = house.process().await;
    let spec = JobSpec {
        retries: 1,
        ..to_chat("go")
    };
    process.add("a", "every hour", spec).await;
    house.clock.advance(HOUR);
    assert_eq!(process.tick().await, 1);
    assert_eq!(process.runs().await[0].status, RunStatus::Waiting);
    assert!(house.chat.got().is_empty());
    house.clock.advance(MINUTE);
    assert_eq!(process.tick().await, 1);
    let runs = process.runs().await;
    assert_eq!((runs.len(), runs[0].attempt), (1, 2));
    assert_eq!(house.chat.got(), [("chat:1".into(), "at last".into())]);
}

#[tokio::test]
async fn scripts_run_first_say_whether_there_is_anything_to_do_or_do_it_all() {
    let house = House::saying("seen").await;
    house.script("data.sh", "echo 'noise' >&2\necho 'load ``` is 7'\n");
    house.script(
        "gate.py",
        "import json\nprint('x')\nprint(json.dumps({'wakeAgent': False}))\n",
    );
    house.script("empty.sh", "true\n");
    house.script("fails.sh", "echo broken >&2\nexit 3\n");
    let process = house.process().await;
    let with = |script: &str, no_agent: bool| JobSpec {
        script: Some(script.into()),
        no_agent,
        ..to_chat("judge it")
    };
    process
        .add("tells", "every hour", with("data.sh", false))
        .await;
    process
        .add("alone", "every hour", with("data.sh", true))
        .await;
    process
        .add("gate", "every hour", with("gate.py", false))
        .await;
    process
        .add("empty", "every hour", with("empty.sh", false))
        .await;
    process
        .add("quiet", "every hour", with("empty.sh", true))
        .await;
    process
        .add("fails", "every hour", with("fails.sh", true))
        .await;
    process
        .add("escapes", "every hour", with("../config.yaml", true))
        .await;
    house.clock.advance(HOUR);
    process.tick().await;
    let runs = process.runs().await;
    let run = |job: &str| runs.iter().find(|run| run.job.as_str() == job).unwrap();
    assert_eq!(run("tells").output.as_deref(), Some("seen"));
    assert_eq!(
        run("alone").output.as_deref(),
        Some("load ``` is 7"),
        "{:?}",
        run("alone")
    );
    assert_eq!(run("gate").status, RunStatus::Skipped);
    assert_eq!(run("empty").status, RunStatus::Skipped);
    assert_eq!(
        (run("quiet").status, &run("quiet").deliveries[..]),
        (RunStatus::Succeeded, &[][..])
    );
    let error = run("fails").error.clone().unwrap();
    assert!(
        error.contains("code 3") && error.contains("broken"),
        "{error}"
    );
    assert!(run("escapes").error.clone().unwrap().contains("no script"));
    let requests = house.server.requests();
    assert_eq!(requests.len(), 1);
    let body = String::from_utf8(requests[0].body.clone()).unwrap();
    assert!(
        body.contains("load ``` is 7") && !body.contains("noise"),
        "{body}"
    );
}

#[tokio::test]
async fn a_job_is_told_what_another_one_found() {
    let script = Script::default()
        .when("collect", [Answer::text("three new papers")])
        .when("summarise", [Answer::text("short")]);
    let house = House::with(script).await;
    let process = house.process().await;
    process
        .add("collect", "every hour", asking("collect"))
        .await;
    let spec = JobSpec {
        context_from: vec!["collect".into(), "gone".into()],
        ..asking("summarise")
    };
    process.add("sum", "90m", spec).await;
    house.clock.advance(HOUR);
    process.tick().await;
    house.clock.advance(MINUTE * 30);
    process.tick().await;
    let body = String::from_utf8(house.server.requests()[1].body.clone()).unwrap();
    assert!(body.contains("three new papers"), "{body}");
}

#[tokio::test]
async fn nobody_is_asked_for_consent_and_the_answer_says_so() {
    let call = Answer::call(
        "c1",
        "terminal",
        json!({"command": "rm -rf /etc/hermes-nowhere"}),
    );
    let house = House::with(Script::new([call, Answer::text("could not")])).await;
    let process = house.process().await;
    process.add("a", "every hour", to_chat("clean up")).await;
    house.clock.advance(HOUR);
    process.tick().await;
    let text = house.chat.got()[0].1.clone();
    assert!(
        text.starts_with("could not") && text.contains("consent"),
        "{text}"
    );
}

#[tokio::test]
async fn a_run_ends_at_its_limits_of_time() {
    let slow = Answer::text("too late").body_delay(Duration::from_secs(30));
    let house = House::with(Script::always(slow)).await;
    let process = house.process().await;
    let spec = JobSpec {
        time_max_s: Some(1),
        retries: 3,
        ..to_chat("go")
    };
    process.add("a", "every hour", spec).await;
    house.clock.advance(HOUR);
    process.tick().await;
    let run = &process.runs().await[0];
    assert_eq!(run.status, RunStatus::Failed, "it is not tried again");
    assert!(run.error.clone().unwrap().contains("longer than 1 s"));
    assert!(run.hint.clone().unwrap().contains("--max-time"));
}

#[tokio::test]
async fn a_limit_of_money_that_nobody_can_keep_ends_a_run_before_anything_is_asked() {
    let house = House::saying("dear").await;
    // A server of one's own costs nothing, whatever its models are called.
    let config = house.home().join("config.yaml");
    let said = fs::read_to_string(&config).unwrap();
    let hosted = "provider: openrouter, api_key: sk-or-v1-0123456789abcdef";
    fs::write(&config, said.replace("provider: custom", hosted)).unwrap();
    let process = house.process().await;
    let spec = JobSpec {
        cost_max_micro_usd: Some(500_000),
        ..to_chat("go")
    };
    process.add("a", "every hour", spec).await;
    house.clock.advance(HOUR);
    process.tick().await;
    let run = &process.runs().await[0];
    assert_eq!(run.status, RunStatus::Failed);
    let error = run.error.clone().unwrap();
    assert!(
        error.contains("not known what") && error.contains("$0.5000"),
        "{error}"
    );
    assert!(run.hint.clone().unwrap().contains("--max-cost 0"));
    assert_eq!(house.server.requests().len(), 0);
}

#[tokio::test]
async fn a_failure_whose_words_hold_a_number_of_their_own_is_told_once() {
    let error = |id: &str| {
        let words = format!("no such model (request {id})");
        Answer::status(400, json!({"error": {"message": words}}))
    };
    let script = Script::new([error("req-1a2b"), error("req-3c4d"), error("req-5e6f")]);
    let house = House::with(script).await;
    let process = house.process().await;
    process.add("a", "every hour", to_chat("go")).await;
    for _ in 0..3 {
        house.clock.advance(HOUR);
        process.tick().await;
    }
    let runs = process.runs().await;
    assert_ne!(runs[0].error, runs[1].error);
    assert_eq!(house.chat.got().len(), 1, "{:?}", house.chat.got());
}

#[tokio::test]
async fn a_chat_that_takes_nothing_now_gets_it_later_and_a_wrong_target_is_said() {
    let house = House::saying("news").await;
    let process = house.process().await;
    process.add("a", "every hour", to_chat("go")).await;
    let error = |is_passing| DeliverError {
        message: "no such chat".into(),
        hint: String::new(),
        is_passing,
    };
    *house.chat.refuses.lock().unwrap() = Some(error(true));
    house.clock.advance(HOUR);
    process.tick().await;
    let run = process.runs().await.remove(0);
    assert_eq!(run.status, RunStatus::Succeeded);
    assert_eq!(run.deliveries[0].status, DeliveryStatus::Pending);
    *house.chat.refuses.lock().unwrap() = None;
    process.tick().await;
    assert_eq!(house.chat.got().len(), 1);
    *house.chat.refuses.lock().unwrap() = Some(error(false));
    house.clock.advance(HOUR);
    process.tick().await;
    let status = process.runs().await[0].deliveries[0].status.clone();
    assert_eq!(
        status,
        DeliveryStatus::Failed {
            error: "no such chat".into()
        }
    );
}

#[tokio::test]
async fn a_result_for_a_chat_that_is_gone_goes_to_the_home_chat_and_says_so() {
    let house = House::saying("news").await;
    let process = house.process().await;
    // Nothing is said of where it goes: it was made in a chat.
    let of_chat = |deliver: &[&str]| JobSpec {
        origin: Some("chat:1".into()),
        deliver: deliver.iter().map(|target| (*target).into()).collect(),
        ..asking("go")
    };
    process.add("a", "every hour", of_chat(&[])).await;
    house.clock.advance(HOUR);
    process.tick().await;
    process.tick().await;
    assert_eq!(house.chat.got()[0].0, "chat:1");
    *house.chat.gone.lock().unwrap() = Some("chat:1".into());
    process
        .add("b", "every hour", of_chat(&["origin", "local"]))
        .await;
    // Whoever named the chat meant no other.
    process.add("c", "every hour", of_chat(&["chat:1"])).await;
    house.clock.advance(HOUR);
    // Handed over, refused, handed to the home chat, arrived.
    for _ in 0..3 {
        process.tick().await;
    }
    let got = house.chat.got();
    let at_home = got.iter().filter(|(target, _)| target == "origin");
    let at_home: Vec<_> = at_home.collect();
    assert_eq!(at_home.len(), 2, "{got:?}");
    assert!(at_home[0].1.contains("was for `chat:1`"), "{got:?}");
    for run in process.runs().await {
        let status = &run.deliveries[0].status;
        let is_delivered = matches!(status, DeliveryStatus::Delivered { .. });
        assert_eq!(is_delivered, run.job.as_str() != "c", "{run:?}");
    }
}

#[tokio::test]
async fn a_failure_told_by_a_clock_that_was_ahead_is_told_again_when_it_is_set_right() {
    let house = House::saying("never asked").await;
    let process = house.process().await;
    let failing = JobSpec {
        script: Some("fails.sh".into()),
        no_agent: true,
        ..to_chat("")
    };
    house.script("fails.sh", "exit 3");
    process.add("a", "every hour", failing).await;
    let start = house.now();
    house.clock.advance(400 * 24 * HOUR);
    process.tick().await;
    assert_eq!(house.chat.got().len(), 1);
    house.clock.set(start);
    process.tick().await;
    house.clock.advance(HOUR);
    process.tick().await;
    assert_eq!(house.chat.got().len(), 2, "{:?}", house.chat.got());
}

#[tokio::test]
async fn a_job_that_moves_while_it_runs_leaves_its_folder_to_others() {
    let house = House::saying("never asked").await;
    house.script("slow.sh", "sleep 0.3\necho done\n");
    let process = house.process().await;
    let folder = house.folder.path().to_owned();
    let working = JobSpec {
        script: Some("slow.sh".into()),
        no_agent: true,
        workdir: Some(folder),
        ..to_chat("")
    };
    process.add("a", "every hour", working.clone()).await;
    house.clock.advance(HOUR);
    let (scheduler, stop) = (process.scheduler(), CancellationToken::new());
    let tick = scheduler.tick(&stop);
    let moved = async {
        while process.runs().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut job = process.job("a").await;
        job.spec.workdir = None;
        assert!(process.parts.schedules.change_job(job).await.unwrap());
    };
    let (ran, ()) = tokio::join!(tick, moved);
    assert_eq!(ran.unwrap(), 1);
    process.add("b", "every hour", working).await;
    house.clock.advance(HOUR);
    assert_eq!(scheduler.tick(&stop).await.unwrap(), 2);
}

#[tokio::test]
async fn a_wish_is_met_by_the_scheduler_that_sleeps() {
    let house = House::saying("now").await;
    let process = house.process().await;
    process.add("a", "every 24h", to_chat("go")).await;
    let scheduler = process.scheduler();
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    running.spawn({
        let (scheduler, stop) = (scheduler.clone(), stop.clone());
        async move { scheduler.run(stop).await }
    });
    let job = process.job("a").await;
    let wanted = Job {
        wanted: Some(house.now()),
        ..job
    };
    assert!(process.parts.schedules.change_job(wanted).await.unwrap());
    scheduler.wake();
    for _ in 0..200 {
        if !house.chat.got().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(house.chat.got(), [("chat:1".into(), "now".into())]);
    assert_eq!(process.runs().await[0].trigger, RunTrigger::Person);
    stop.cancel();
    running.join_all().await;
}

#[tokio::test]
async fn a_process_that_ends_lets_go_of_its_runs_for_the_next_one() {
    let slow = Answer::text("found").headers_delay(Duration::from_secs(3));
    let house = House::with(Script::always(slow)).await;
    let process = house.process().await;
    process.add("a", "every hour", to_chat("go")).await;
    house.clock.advance(HOUR);
    let stop = CancellationToken::new();
    let scheduler = process.scheduler();
    let mut running = JoinSet::new();
    running.spawn({
        let stop = stop.clone();
        async move { scheduler.run(stop).await }
    });
    while house.server.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    running.join_all().await;
    process.runtime.stop().await;
    assert_eq!(process.runs().await[0].status, RunStatus::Running);
    drop(process);
    // At once: the lease was given back.
    let next = house.process().await;
    assert_eq!(next.tick().await, 1);
    assert_eq!(next.runs().await[0].status, RunStatus::Succeeded);
    assert_eq!(house.chat.got(), [("chat:1".into(), "found".into())]);
}

#[tokio::test]
async fn the_last_run_of_a_job_completes_it() {
    let house = House::saying("done").await;
    let process = house.process().await;
    let spec = JobSpec {
        repeat: Some(2),
        jitter_s: 600,
        ..asking("go")
    };
    process.add("twice", "every hour", spec).await;
    process.add("once", "30m", asking("go")).await;
    house.clock.advance(HOUR * 2);
    process.tick().await;
    assert_eq!(process.job("once").await.state, JobState::Completed);
    house.clock.advance(HOUR * 2);
    process.tick().await;
    assert_eq!(process.job("twice").await.state, JobState::Completed);
    house.clock.advance(HOUR * 24);
    assert_eq!(process.tick().await, 0);
    assert_eq!(process.runs().await.len(), 3);
}
