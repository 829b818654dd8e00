//! What becomes of words that are sent: while it works, when news come, when it is stopped.

use super::*;

/// Ends the turn that runs, and begins the next with words that waited.
fn next_turn(scene: &mut Scene, text: &str) {
    scene.event(Event::TurnEnded {
        turn: "t".into(),
        end: TurnEnd::Finished,
    });
    scene.event(Event::TurnStarted {
        turn: "t2".into(),
        origin: Origin::person(),
        text: text.into(),
        images: 0,
        queued: Some(text.into()),
    });
}

/// A process in the background ended, and a turn begins with that.
fn news() -> Event {
    Event::TurnStarted {
        turn: "t".into(),
        origin: Origin::Notice,
        text: "a process ended".into(),
        images: 0,
        queued: None,
    }
}

#[test]
fn what_is_sent_while_it_works_interrupts_queues_or_steers() {
    let sent = |busy_input| {
        let settings = Settings {
            busy_input,
            ..Settings::default()
        };
        let mut scene = Scene::with(settings, 80, 24);
        scene.begin("one");
        ops(scene.send("two"))
    };
    assert_eq!(sent(BusyInput::Interrupt), [Op::Interrupt, say("two")]);
    assert_eq!(sent(BusyInput::Queue), [say("two")]);
    assert_eq!(
        sent(BusyInput::Steer),
        [Op::Steer(UserMessage::text("two"))]
    );
}

#[test]
fn what_an_interrupt_forgets_comes_back_into_the_input() {
    let mut scene = Scene::new(80, 24);
    scene.begin("one");
    scene.send("/queue two");
    scene.send("/queue three");
    scene.queued("two");
    scene.queued("three");
    scene.write("four");
    assert_eq!(ops(requests(scene.control('c'))), [Op::Interrupt]);
    let notice = Notice::Forgotten { messages: 2 };
    scene.event(Event::Notice { notice });
    scene.end(TurnEnd::Interrupted);
    assert_eq!(scene.app.draft(), "two\n\nthree\n\nfour");
}

/// The end of a process begins a turn by itself; the session hears of it before the words that were just sent.
#[test]
fn what_was_said_while_news_began_a_turn_comes_after_them() {
    let mut scene = Scene::new(80, 24);
    assert_eq!(ops(scene.send("mine")), [say("mine")]);
    scene.event(news());
    scene.queued("mine");
    assert!(scene.screen().contains("waits: mine"));
    next_turn(&mut scene, "mine");
    let screen = scene.screen();
    assert!(
        screen.contains("› mine") && !screen.contains("waits"),
        "{screen}"
    );
}

#[test]
fn an_interrupt_of_news_gives_back_what_was_said_meanwhile() {
    for is_told_late in [false, true] {
        let mut scene = Scene::new(80, 24);
        scene.send("mine");
        if is_told_late {
            scene.control('c');
        }
        scene.event(news());
        scene.queued("mine");
        if !is_told_late {
            scene.control('c');
        }
        let notice = Notice::Forgotten { messages: 1 };
        scene.event(Event::Notice { notice });
        scene.end(TurnEnd::Interrupted);
        assert_eq!(scene.app.draft(), "mine", "told late: {is_told_late}");
    }
}

#[test]
fn news_show_that_a_turn_begins_and_take_nothing_that_waits() {
    let mut scene = Scene::new(80, 24);
    scene.event(news());
    assert!(
        scene.screen().contains("Ctrl-C stops it"),
        "{}",
        scene.screen()
    );
    scene.send("/queue later");
    scene.queued("later");
    let screen = scene.screen();
    assert!(
        screen.contains("waits: later") && screen.contains("a process ended"),
        "{screen}"
    );
}

#[test]
fn a_waiting_message_is_printed_when_its_turn_begins() {
    let mut scene = Scene::new(80, 24);
    scene.begin("one");
    scene.send("/queue two");
    scene.queued("two");
    assert!(scene.screen().contains("waits: two"));
    next_turn(&mut scene, "two");
    let screen = scene.screen();
    assert!(
        screen.contains("› two") && !screen.contains("waits"),
        "{screen}"
    );
}

#[test]
fn what_another_surface_said_is_shown_when_its_turn_begins() {
    let mut scene = Scene::new(80, 24);
    scene.event(started("from the phone"));
    let screen = scene.screen();
    assert_eq!(screen.matches("› from the phone").count(), 1, "{screen}");
}

#[test]
fn steering_is_shown_until_the_model_is_told_it() {
    let mut scene = Scene::new(80, 24);
    scene.begin("one");
    scene.event(Event::Queued {
        queued: "q".into(),
        waits_for: WaitsFor::ToolResult,
        origin: Origin::person(),
        text: "use tabs".into(),
        images: 0,
    });
    assert!(scene.screen().contains("told: use tabs"));
    scene.event(Event::Steered { queued: "q".into() });
    assert!(!scene.screen().contains("told: use tabs"));
}

#[test]
fn words_that_could_not_wait_come_back() {
    let mut scene = Scene::new(80, 24);
    scene.begin("one");
    scene.send("/queue two");
    let notice = Notice::NotQueued {
        reason: "the disk is full".into(),
        text: "two".into(),
    };
    scene.event(Event::Notice { notice });
    assert_eq!(scene.app.draft(), "two");
}

#[test]
fn a_message_that_could_not_be_recorded_comes_back() {
    let mut scene = Scene::new(80, 24);
    scene.send("precious words");
    scene.end(TurnEnd::Broken {
        error: "the disk is full".into(),
        hint: "make room".into(),
    });
    assert_eq!(scene.app.draft(), "precious words");
}

#[test]
fn an_undo_brings_the_message_back_and_a_retry_says_it_again() {
    let mut scene = Scene::new(80, 24);
    let rewound = || Event::Rewound {
        turns: 1,
        said: "earlier words".into(),
    };
    scene.event(rewound());
    scene.event(Event::Idle);
    assert_eq!(scene.app.draft(), "earlier words");
    scene.control('u');
    scene.event(rewound());
    scene.event(started("earlier words"));
    scene.event(Event::Idle);
    assert_eq!(scene.app.draft(), "");
    assert!(scene.screen().contains("› earlier words"));
}
