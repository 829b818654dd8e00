//! Anybody may follow: numbered events, late followers, slow ones, and none who holds the session up.

use std::time::{Duration, Instant};

use hermes_agent::Follower;
use hermes_core::{Event, FollowFrom, Followed, NumberedEvent, Op, Origin, TurnEnd};
use hermes_testkit::{Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::{Running, start};

/// What an interrupt may take, also on a busy machine.
const INTERRUPT_MAX: Duration = Duration::from_millis(100);

async fn next(follower: &mut Follower) -> NumberedEvent {
    let followed = tokio::time::timeout(Duration::from_secs(20), follower.next()).await;
    match followed.expect("an event within 20 s") {
        Some(Followed::Event(numbered)) => numbered,
        other => panic!("{other:?}"),
    }
}

/// Everything up to the end of the turn.
async fn whole_turn(follower: &mut Follower) -> Vec<NumberedEvent> {
    let mut events = Vec::new();
    loop {
        let numbered = next(follower).await;
        let is_end = matches!(numbered.event, Event::TurnEnded { .. });
        events.push(numbered);
        if is_end {
            return events;
        }
    }
}

fn text_of(events: &[NumberedEvent]) -> String {
    let texts = events.iter().filter_map(|numbered| match &numbered.event {
        Event::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test]
async fn followers_see_the_same_numbered_events_and_an_interrupt_waits_for_none_of_them() {
    let words: String = (0..20_000).map(|number| format!("word{number} ")).collect();
    let world = World::new([
        Step::call("c1", "echo", &json!({"text": "x"})),
        Step::text(&words).then_silence(),
    ])
    .tool(TestTool::new("echo"));
    let mut running = start(&world).await;
    let idle = running.next().await;
    assert_eq!(idle, Event::Idle);
    let mut early = running.session.follow(FollowFrom::Now);
    let never_reads = running.session.follow(FollowFrom::Now);
    running.session.say("go").await;
    let mut seen = String::new();
    while seen.len() < words.len() {
        if let Event::Text { text } = running.next().await {
            seen.push_str(&text);
        }
    }
    let mut late = running.session.follow(FollowFrom::Turn);

    let asked = Instant::now();
    running.send(Op::Interrupt).await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    let took = asked.elapsed();
    assert!(took <= INTERRUPT_MAX, "the interrupt took {took:?}");

    let early = whole_turn(&mut early).await;
    let late = whole_turn(&mut late).await;
    assert_eq!(early, late);
    assert!(early.len() > 20_000, "{}", early.len());
    assert_eq!(text_of(&late), words);
    let numbers: Vec<u64> = early.iter().map(|numbered| numbered.number).collect();
    let first = numbers[0];
    let expected: Vec<u64> = (first..).take(numbers.len()).collect();
    assert_eq!(numbers, expected, "each has the next number");
    assert!(matches!(early[0].event, Event::TurnStarted { .. }));
    drop(never_reads);
}

#[tokio::test]
async fn who_comes_back_goes_on_behind_the_last_number_they_saw() {
    let world = World::new([Step::text("a b c d").then_silence()]);
    let mut running = start(&world).await;
    running.session.say("go").await;
    let mut first = running.session.follow(FollowFrom::Now);
    let mut seen = Vec::new();
    while text_of(&seen).len() < 4 {
        seen.push(next(&mut first).await);
    }
    drop(first);
    let last = seen.last().expect("events").number;
    let mut again = running.session.follow(FollowFrom::After(last));
    running
        .until(|event| matches!(event, Event::Text { text } if text.contains('d')))
        .await;
    running.session.interrupt().await;
    let rest = whole_turn(&mut again).await;
    assert_eq!(rest[0].number, last + 1);
    seen.extend(rest);
    assert_eq!(text_of(&seen), "a b c d");

    // A client that was away for a moment still learns how the turn ended; one of another opening begins afresh.
    let end = seen.last().expect("events").number;
    let mut late = running.session.follow(FollowFrom::After(end - 1));
    assert!(matches!(
        next(&mut late).await.event,
        Event::TurnEnded { .. }
    ));
    let mut of_another_life = running.session.follow(FollowFrom::After(1_000_000));
    running.session.say("more").await;
    let event = next(&mut of_another_life).await.event;
    assert!(
        matches!(event, Event::Idle | Event::TurnStarted { .. }),
        "{event:?}"
    );
}

#[tokio::test]
async fn who_falls_too_far_behind_is_told_what_they_missed_and_still_learns_the_end() {
    const CALLS: usize = 55;
    let big = "x".repeat(90_000);
    let steps = (0..CALLS).map(|call| {
        let arguments = json!({"text": format!("{call} {big}")});
        Step::call(&format!("c{call}"), "echo", &arguments)
    });
    let steps = steps.chain([Step::text("the whole answer")]);
    let world = World::new(steps).tool(TestTool::new("echo").does(Behaviour::Say("ok".into())));
    let mut running = start(&world).await;
    let mut slow = running.session.follow(FollowFrom::Turn);
    running.session.say("go").await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    let mut missed = 0;
    let mut events = Vec::new();
    loop {
        match slow.next().await.expect("the session is alive") {
            Followed::Missed { events } => missed += events,
            Followed::Event(numbered) => {
                let is_end = matches!(numbered.event, Event::TurnEnded { .. });
                events.push(numbered);
                if is_end {
                    break;
                }
            }
        }
    }
    assert!(missed > 0, "5 MB are not kept");
    assert_eq!(text_of(&events), "the whole answer");
    let first = events.first().expect("events").number;
    let last = events.last().expect("events").number;
    let told = events.len() as u64;
    assert_eq!(
        last - first + 1,
        told + missed,
        "every number is accounted for"
    );
}

#[tokio::test]
async fn a_turn_says_what_it_began_with() {
    let world = World::new([Step::text("yes")]);
    let mut running = start(&world).await;
    running.session.say("do it").await;
    let started = running
        .until(|event| matches!(event, Event::TurnStarted { .. }))
        .await;
    let Event::TurnStarted {
        origin,
        text,
        images,
        queued,
        ..
    } = started
    else {
        unreachable!("waited for it")
    };
    assert_eq!((text.as_str(), images, queued), ("do it", 0, None));
    assert_eq!(origin, Origin::person());
}

#[tokio::test]
async fn following_ends_with_the_session_and_keeps_none_open() {
    let world = World::new([Step::text("yes")]);
    let mut running: Running = start(&world).await;
    running.session.say("go").await;
    running.turn_end().await;
    let mut follower = running.session.follow(FollowFrom::Now);
    let mut tasks = running.close();
    tasks.join_next().await;
    while let Some(followed) = follower.next().await {
        assert!(
            matches!(followed.event(), Some(Event::Idle)),
            "{followed:?}"
        );
    }
}
