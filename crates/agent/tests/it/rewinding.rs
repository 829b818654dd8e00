//! Taking turns back, trying again, and going on in a copy.

use std::time::Duration;

use hermes_core::{Event, Message, Notice, Op, Store as _};
use hermes_testkit::{Step, World};

use crate::run::{Running, branch, resume, say, stored};

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::text).collect()
}

/// A conversation of two turns: a, 1, b, 2.
async fn two_turns(world: &World) -> Running {
    let (mut running, _) = say(world, "a").await;
    running.session.say("b").await;
    running.turn_end().await;
    running
}

async fn rewound(running: &mut Running) -> (u32, String) {
    match running
        .until(|event| matches!(event, Event::Rewound { .. }))
        .await
    {
        Event::Rewound { turns, said } => (turns, said),
        _ => unreachable!("waited for it"),
    }
}

#[tokio::test]
async fn a_turn_taken_back_is_gone_from_the_next_request_and_after_a_restart() {
    let world = World::new(["1", "2", "3"].map(Step::text));
    let mut running = two_turns(&world).await;
    running.send(Op::Rewind { turns: 1 }).await;
    assert_eq!(rewound(&mut running).await, (1, "b".into()));
    running.session.say("c").await;
    running.turn_end().await;
    let asked = world.model.requests();
    assert_eq!(texts(&asked[2].messages), ["a", "1", "c"]);
    let id = running.session.id().clone();
    running.crash().await;

    let world = world.restarted([Step::text("4")]);
    let mut running = resume(&world, &id).await;
    running.session.say("d").await;
    running.turn_end().await;
    let asked = world.model.requests();
    assert_eq!(texts(&asked[0].messages), ["a", "1", "c", "3", "d"]);
}

#[tokio::test]
async fn more_turns_than_there_are_are_all_of_them_and_none_is_said_so() {
    let world = World::new(["1", "2"].map(Step::text));
    let mut running = two_turns(&world).await;
    running.send(Op::Rewind { turns: 9 }).await;
    assert_eq!(rewound(&mut running).await, (2, "a".into()));
    assert!(stored(&world, &running).await.is_empty());
    running.send(Op::Rewind { turns: 1 }).await;
    running
        .until(|event| {
            matches!(event, Event::Notice { notice: Notice::NotTaken { reason } } if reason.contains("nothing"))
        })
        .await;
}

#[tokio::test]
async fn a_retry_says_the_same_again() {
    let world = World::new(["1", "2", "better"].map(Step::text));
    let mut running = two_turns(&world).await;
    running.send(Op::Retry).await;
    rewound(&mut running).await;
    running.turn_end().await;
    let messages = stored(&world, &running).await;
    assert_eq!(texts(&messages), ["a", "1", "b", "better"]);
}

#[tokio::test]
async fn a_running_turn_is_not_taken_back() {
    let world = World::new([Step::text("1 2 3 4 5 6").every(Duration::from_millis(20))]);
    let mut running = crate::run::start(&world).await;
    running.session.say("a").await;
    running
        .until(|event| matches!(event, Event::Text { .. }))
        .await;
    running.send(Op::Rewind { turns: 1 }).await;
    running
        .until(|event| matches!(event, Event::Notice { notice: Notice::NotTaken { reason } } if reason.contains("runs")))
        .await;
    running.turn_end().await;
    assert_eq!(stored(&world, &running).await.len(), 2);
}

#[tokio::test]
async fn a_branch_goes_its_own_way_and_keeps_the_prefix() {
    let world = World::new(["1", "2", "in the branch"].map(Step::text));
    let running = two_turns(&world).await;
    let parent = running.session.id().clone();
    let mut branched = branch(&world, &parent).await;
    branched.send(Op::Rewind { turns: 1 }).await;
    rewound(&mut branched).await;
    branched.session.say("c").await;
    branched.turn_end().await;
    let messages = stored(&world, &branched).await;
    assert_eq!(texts(&messages), ["a", "1", "c", "in the branch"]);
    let asked = world.model.requests();
    assert_eq!(asked[2].prefix, asked[0].prefix);
    let kept = world
        .store
        .load(&parent)
        .await
        .expect("the parent is there");
    assert_eq!(texts(&kept.messages), ["a", "1", "b", "2"]);
    let row = world.store.load(branched.session.id()).await;
    assert_eq!(row.expect("it is written").record.parent, Some(parent));
}
