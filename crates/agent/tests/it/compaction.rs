//! A conversation that outgrows its model goes on: what the model sees instead, and what happens when that goes wrong.

use std::sync::{Arc, Mutex};

use hermes_agent::{AgentSettings, CompactionSettings};
use hermes_core::{
    CompactionEnd, CompactionReason, CompactionReport, Effect, Entry, Event, Message,
    ModelErrorKind, ModelRequest, Op, Origin, Part, Role, Store as _, SummarySource, TurnEnd,
};
use hermes_testkit::{AnsweringModel, Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::{Running, branch, resume, settings, start, start_with, stored};

const WINDOW: u64 = 4_096;
const SUMMARY: &str = "## Goal\nfind the treasure\n## State\nthe key is under the stone";

/// What a model was asked, as far as a test looks at it.
#[derive(Debug, Clone)]
struct Asked {
    system: String,
    messages: Vec<Message>,
}

impl Asked {
    fn is_for_summary(&self) -> bool {
        is_for_summary(&self.system)
    }
}

fn is_for_summary(system: &str) -> bool {
    system.starts_with("You keep the memory")
}

type Log = Arc<Mutex<Vec<Asked>>>;

/// A world whose model takes so many tokens, refuses more, and answers with words; `summary` says what a summary is.
fn world(
    stated: Option<u64>,
    real: u64,
    summary: impl Fn() -> Step + Send + Sync + 'static,
) -> (World, Log) {
    let log = Log::default();
    let mut world = World::new([]);
    let asked = Arc::clone(&log);
    world.answering = Some(Arc::new(AnsweringModel::new(stated, move |request| {
        asked.lock().expect("nobody panicked").push(Asked {
            system: request.system.to_owned(),
            messages: request.messages.to_vec(),
        });
        let roles = request
            .messages
            .windows(2)
            .map(|two| (two[0].role, two[1].role));
        assert!(roles.into_iter().all(|two| two != (Role::User, Role::User)));
        let tokens = size(request);
        if tokens > real {
            let refusal =
                format!("This model's maximum context length is {real} tokens, got {tokens}");
            return Step::refusal(ModelErrorKind::ContextTooLong, &refusal);
        }
        if is_for_summary(request.system) {
            return summary();
        }
        Step::text("noted").counting(tokens)
    })));
    (world, log)
}

/// A word of these tests is a token, more or less.
fn size(request: &ModelRequest<'_>) -> u64 {
    let texts = request.messages.iter().map(|message| {
        let result = message.tool_result().map(|result| result.text.clone());
        message.text() + &result.unwrap_or_default()
    });
    let words: usize = texts.map(|text| text.split_whitespace().count() + 4).sum();
    (words + request.system.split_whitespace().count() + request.tools.len() * 40) as u64
}

fn words(count: usize, word: &str) -> String {
    format!("{word} ").repeat(count)
}

async fn say(running: &mut Running, text: &str) -> TurnEnd {
    running.session.say(text).await;
    running.turn_end().await
}

fn compactions(running: &Running) -> Vec<CompactionEnd> {
    let ends = running.events.iter().filter_map(|event| match event {
        Event::CompactionEnded { end } => Some(end.clone()),
        _ => None,
    });
    ends.collect()
}

fn reports(running: &Running) -> Vec<CompactionReport> {
    let ends = compactions(running).into_iter();
    let done = ends.filter_map(|end| match end {
        CompactionEnd::Done { report } => Some(report),
        _ => None,
    });
    done.collect()
}

#[tokio::test]
async fn a_full_conversation_goes_on_with_a_summary_and_its_tail() {
    let (world, log) = world(Some(WINDOW), WINDOW, || Step::text(SUMMARY));
    let mut running = start(&world).await;
    for turn in 0..12 {
        let end = say(&mut running, &format!("turn{turn} {}", words(500, "sand"))).await;
        assert_eq!(end, TurnEnd::Finished);
    }
    let reports = reports(&running);
    assert!(!reports.is_empty());
    for report in &reports {
        assert_eq!(report.summary, SummarySource::Model);
        assert!(
            report.tokens_after * 4 <= report.tokens_before * 3,
            "{report:?}"
        );
        assert!(report.kept >= 1 && report.summarised >= 1, "{report:?}");
        assert_eq!(report.notes, [""; 0]);
    }
    let started = running.events.iter().find_map(|event| match event {
        Event::CompactionStarted { reason, window, .. } => Some((*reason, *window)),
        _ => None,
    });
    assert_eq!(started, Some((CompactionReason::Full, Some(WINDOW))));

    let log = log.lock().unwrap().clone();
    let asked: Vec<_> = log.iter().filter(|asked| !asked.is_for_summary()).collect();
    let last = asked.last().unwrap();
    assert_eq!(last.messages[0].origin, Some(Origin::Summary));
    assert!(last.messages[0].text().contains("under the stone"));
    assert!(last.messages.last().unwrap().text().starts_with("turn11"));
    assert!(asked.iter().all(|one| one.system == asked[0].system));
    // Each summary is made from the one before.
    let summaries: Vec<_> = log.iter().filter(|asked| asked.is_for_summary()).collect();
    assert!(!summaries[0].messages[0].text().contains("<summary>"));
    assert!(
        summaries[1].messages[0]
            .text()
            .contains("<summary>\n## Goal\nfind")
    );
    // Nothing is deleted.
    let entries = world.store.entries(running.session.id());
    let said = entries
        .iter()
        .filter(|entry| matches!(entry, Entry::TurnStarted { .. }));
    assert_eq!(said.count(), 12);
}

#[tokio::test]
async fn what_the_model_sees_is_the_same_after_a_restart() {
    let (mut world, log) = world(Some(WINDOW), WINDOW, || Step::text(SUMMARY));
    world = world.tool(
        TestTool::new("look")
            .effect(Effect::Read)
            .does(Behaviour::Say(words(40, "found"))),
    );
    let mut running = start(&world).await;
    for turn in 0..9 {
        say(&mut running, &format!("turn{turn} {}", words(450, "sand"))).await;
        let seen = log.lock().unwrap().last().unwrap().messages.clone();
        let stored = stored(&world, &running).await;
        assert_eq!(stored[..seen.len()], seen, "turn {turn}");
    }
    assert!(!reports(&running).is_empty());
    let before = stored(&world, &running).await;
    let id = running.session.id().clone();
    running.crash().await;
    let mut running = resume(&world, &id).await;
    say(&mut running, "again").await;
    let seen = log.lock().unwrap().last().unwrap().messages.clone();
    assert_eq!(seen[..before.len()], before);
}

#[tokio::test]
async fn a_provider_that_says_too_long_is_sent_less() {
    // Nobody said how much fits.
    let (world, log) = world(None, WINDOW, || Step::text(SUMMARY));
    let mut running = start(&world).await;
    for turn in 0..14 {
        let end = say(&mut running, &format!("turn{turn} {}", words(480, "sand"))).await;
        assert_eq!(end, TurnEnd::Finished, "turn {turn}");
    }
    let reasons = running.events.iter().filter_map(|event| match event {
        Event::CompactionStarted { reason, .. } => Some(*reason),
        _ => None,
    });
    let reasons: Vec<_> = reasons.collect();
    assert_eq!(
        reasons
            .iter()
            .filter(|one| **one == CompactionReason::TooLong)
            .count(),
        1,
        "it learns"
    );
    assert!(
        reasons.contains(&CompactionReason::Full),
        "and knows from then on"
    );
    assert!(log.lock().unwrap().len() < 40);
}

/// An answer, made anew each time.
type MakeStep = fn() -> Step;

#[tokio::test]
async fn a_summary_that_cannot_be_used_is_made_without_a_model() {
    let steps: [(&str, MakeStep); 6] = [
        ("error", || Step::error(ModelErrorKind::Overloaded)),
        ("nothing", Step::empty),
        ("nonsense", || {
            Step::text("Hello! How can I help you today?")
        }),
        ("a call", || {
            Step::call("c", "terminal", &json!({"command": "ls"}))
        }),
        ("too long", || {
            Step::text(&words(20_000, "## Goal ## State"))
        }),
        ("broken off", || {
            Step::text(SUMMARY).because(hermes_core::FinishReason::Cut)
        }),
    ];
    for (what, step) in steps {
        let (world, _) = world(Some(WINDOW), WINDOW, step);
        let mut running = start(&world).await;
        for turn in 0..10 {
            let end = say(
                &mut running,
                &format!("request{turn} {}", words(500, "sand")),
            )
            .await;
            assert_eq!(end, TurnEnd::Finished, "{what}, turn {turn}");
        }
        let reports = reports(&running);
        assert!(!reports.is_empty(), "{what}");
        if what == "broken off" {
            continue;
        }
        assert_eq!(reports[0].summary, SummarySource::Digest, "{what}");
        assert!(
            reports[0].notes[0].contains("without a model"),
            "{what}: {reports:?}"
        );
        let seen = stored(&world, &running).await;
        assert!(
            seen[0].text().contains("request0"),
            "{what}: {}",
            seen[0].text()
        );
    }
}

#[tokio::test]
async fn an_interrupt_leaves_the_conversation_as_it_was() {
    let (world, _) = world(Some(WINDOW), WINDOW, Step::silence);
    let mut running = start(&world).await;
    let mut turn = 0;
    loop {
        running
            .session
            .say(format!("turn{turn} {}", words(500, "sand")))
            .await;
        turn += 1;
        let event = running
            .until(|event| {
                matches!(
                    event,
                    Event::TurnEnded { .. } | Event::CompactionStarted { .. }
                )
            })
            .await;
        if matches!(event, Event::CompactionStarted { .. }) {
            break;
        }
    }
    let before = stored(&world, &running).await;
    running.session.interrupt().await;
    assert_eq!(running.turn_end().await, TurnEnd::Interrupted);
    assert_eq!(compactions(&running), [CompactionEnd::Stopped]);
    let after = stored(&world, &running).await;
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), before.len() + 1, "the turn is closed");

    // The same between two turns.
    running.send(Op::Compact { topic: None }).await;
    running
        .until(|event| matches!(event, Event::CompactionStarted { .. }))
        .await;
    running.session.interrupt().await;
    running
        .until(|event| {
            matches!(
                event,
                Event::CompactionEnded {
                    end: CompactionEnd::Stopped
                }
            )
        })
        .await;
    assert_eq!(stored(&world, &running).await, after);
}

#[tokio::test]
async fn who_asks_for_it_gets_it_with_an_eye_on_the_topic() {
    let (world, log) = world(Some(100_000), 100_000, || Step::text(SUMMARY));
    let mut running = start(&world).await;
    running.send(Op::Compact { topic: None }).await;
    let end = running
        .until(|event| matches!(event, Event::CompactionEnded { .. }))
        .await;
    assert!(matches!(
        end,
        Event::CompactionEnded {
            end: CompactionEnd::Unchanged { .. }
        }
    ));
    for turn in 0..60 {
        say(&mut running, &format!("turn{turn} {}", words(600, "sand"))).await;
    }
    assert!(compactions(&running).len() == 1, "there is room");
    let topic = Some("the colour of the door".to_owned());
    running.send(Op::Compact { topic }).await;
    running
        .until(|event| matches!(event, Event::CompactionEnded { .. }))
        .await;
    let report = reports(&running).pop().unwrap();
    assert!(report.tokens_after < report.tokens_before / 2, "{report:?}");
    let asked = log.lock().unwrap().last().unwrap().clone();
    assert!(asked.messages[0].text().contains("the colour of the door"));
    assert_eq!(say(&mut running, "go on").await, TurnEnd::Finished);
}

#[tokio::test]
async fn a_rewind_reaches_behind_a_compaction() {
    let (world, log) = world(Some(WINDOW), WINDOW, || Step::text(SUMMARY));
    let mut running = start(&world).await;
    for turn in 0..8 {
        say(&mut running, &format!("turn{turn} {}", words(500, "sand"))).await;
    }
    assert!(!reports(&running).is_empty());
    running.send(Op::Rewind { turns: 7 }).await;
    let event = running
        .until(|event| matches!(event, Event::Rewound { .. }))
        .await;
    let Event::Rewound { turns, said } = event else {
        unreachable!("waited for it");
    };
    assert!(turns == 7 && said.starts_with("turn1 "), "{turns} {said}");
    say(&mut running, "other words").await;
    let seen = log.lock().unwrap().last().unwrap().messages.clone();
    let texts: Vec<_> = seen.iter().map(|message| message.said()).collect();
    assert!(
        texts[0].starts_with("turn0") && texts[2] == "other words",
        "{texts:?}"
    );
}

#[tokio::test]
async fn a_branch_of_a_compacted_conversation_is_compacted_and_taken_back_like_any_other() {
    let (mut world, log) = world(Some(WINDOW), WINDOW, || Step::text(SUMMARY));
    world = world.tool(
        TestTool::new("look")
            .effect(Effect::Read)
            .does(Behaviour::Say(words(40, "found"))),
    );
    let mut running = start(&world).await;
    for turn in 0..8 {
        say(&mut running, &format!("turn{turn} {}", words(500, "sand"))).await;
    }
    assert!(!reports(&running).is_empty());
    let seen = stored(&world, &running).await;
    assert_eq!(seen[0].origin, Some(Origin::Summary));

    let mut first = branch(&world, running.session.id()).await;
    assert_eq!(stored(&world, &first).await, seen);
    for turn in 8..14 {
        let said = format!("turn{turn} {}", words(500, "sand"));
        assert_eq!(say(&mut first, &said).await, TurnEnd::Finished);
    }
    assert!(!reports(&first).is_empty(), "it was summarised again");
    let mut second = branch(&world, first.session.id()).await;
    assert_eq!(stored(&world, &second).await, stored(&world, &first).await);
    second.send(Op::Rewind { turns: 13 }).await;
    let event = second
        .until(|event| matches!(event, Event::Rewound { .. }))
        .await;
    let Event::Rewound { turns, said } = event else {
        unreachable!("waited for it");
    };
    assert!(turns == 13 && said.starts_with("turn1 "), "{turns} {said}");
    say(&mut second, "other words").await;
    let asked = log.lock().unwrap().last().unwrap().messages.clone();
    let texts: Vec<_> = asked.iter().map(|message| message.said()).collect();
    assert!(
        texts[0].starts_with("turn0") && texts[2] == "other words",
        "{texts:?}"
    );
    assert_eq!(stored(&world, &running).await, seen, "the first goes on");
}

#[tokio::test]
async fn results_in_a_branch_of_a_compacted_conversation_are_shortened() {
    let summaries = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&summaries);
    let mut world = World::new([]).tool(
        TestTool::new("look")
            .effect(Effect::Read)
            .does(Behaviour::Say(words(900, "found"))),
    );
    world.answering = Some(Arc::new(AnsweringModel::new(
        Some(16_384),
        move |request| {
            if is_for_summary(request.system) {
                *counted.lock().unwrap() += 1;
                return Step::text(SUMMARY);
            }
            let last = request.messages.last().unwrap();
            if last.role == Role::User && last.text().contains("look") {
                Step::call("c1", "look", &json!({"count": request.messages.len()}))
            } else {
                Step::text("seen")
            }
        },
    )));
    let mut running = start(&world).await;
    for _ in 0..30 {
        say(&mut running, &words(60, "talk")).await;
    }
    running.send(Op::Compact { topic: None }).await;
    running
        .until(|event| matches!(event, Event::CompactionEnded { .. }))
        .await;
    assert_eq!(*summaries.lock().unwrap(), 1);
    let mut branched = branch(&world, running.session.id()).await;
    for turn in 0..14 {
        let end = say(&mut branched, "look").await;
        assert_eq!(end, TurnEnd::Finished, "turn {turn}");
    }
    let report = &reports(&branched)[0];
    assert_eq!(report.summary, SummarySource::None, "{report:?}");
    assert!(report.shortened > 3, "{report:?}");
    assert_eq!(*summaries.lock().unwrap(), 1);
    let seen = stored(&world, &branched).await;
    assert_eq!(seen[0].origin, Some(Origin::Summary));
}

#[tokio::test]
async fn old_results_are_shortened_before_a_model_is_asked_for_anything() {
    let log = Log::default();
    let asked = Arc::clone(&log);
    let mut world = World::new([]).tool(
        TestTool::new("look")
            .effect(Effect::Read)
            .does(Behaviour::Say(words(900, "found"))),
    );
    world.answering = Some(Arc::new(AnsweringModel::new(
        Some(16_384),
        move |request| {
            asked.lock().unwrap().push(Asked {
                system: request.system.to_owned(),
                messages: request.messages.to_vec(),
            });
            let is_asked = request
                .messages
                .last()
                .is_some_and(|last| last.role == Role::User);
            if is_asked {
                Step::call("c1", "look", &json!({"count": request.messages.len()}))
            } else {
                Step::text("seen")
            }
        },
    )));
    let mut running = start(&world).await;
    for turn in 0..14 {
        assert_eq!(
            say(&mut running, &format!("turn{turn}")).await,
            TurnEnd::Finished
        );
    }
    let report = &reports(&running)[0];
    assert_eq!(
        (report.summary, report.summarised),
        (SummarySource::None, 0)
    );
    assert!(report.shortened > 3, "{report:?}");
    let log = log.lock().unwrap().clone();
    assert!(log.iter().all(|asked| !asked.is_for_summary()));
    let seen = stored(&world, &running).await;
    assert!(seen[0].text().starts_with("turn0"));
    let first = seen.iter().find_map(Message::tool_result).unwrap();
    assert!(
        first.text.contains("shortened to make room"),
        "{}",
        first.text
    );
    assert_eq!(first.call.as_str(), "c1");
    let last = log.last().unwrap();
    assert_eq!(
        seen[..last.messages.len()],
        last.messages,
        "the store has the same"
    );
}

#[tokio::test]
async fn a_message_longer_than_the_window_is_answered_all_the_same() {
    let (world, _) = world(Some(WINDOW), WINDOW, || Step::text(SUMMARY));
    let mut running = start(&world).await;
    let long = format!("begin {} end", words(9_000, "sand"));
    assert_eq!(say(&mut running, &long).await, TurnEnd::Finished);
    let seen = stored(&world, &running).await;
    let text = seen[0].text();
    assert!(
        text.starts_with("begin") && text.ends_with("end"),
        "both ends are there"
    );
    assert!(text.contains("left out here"));
    assert_eq!(say(&mut running, "go on").await, TurnEnd::Finished);
    let entries = world.store.entries(running.session.id());
    let whole = entries
        .iter()
        .any(|entry| matches!(entry, Entry::TurnStarted { message, .. } if message.text() == long));
    assert!(whole, "what was said is in the log");
}

#[tokio::test]
async fn one_long_turn_keeps_the_users_words_and_whole_pairs() {
    let steps = Arc::new(Mutex::new(0));
    let mut world = World::new([]).tool(
        TestTool::new("look")
            .effect(Effect::Read)
            .does(Behaviour::Say(words(300, "found"))),
    );
    world.answering = Some(Arc::new(AnsweringModel::new(
        Some(WINDOW),
        move |request| {
            assert!(size(request) <= WINDOW, "it fits");
            if is_for_summary(request.system) {
                return Step::text(SUMMARY);
            }
            assert!(!history_has_hole(request.messages));
            let sees = |text: &str| request.messages.iter().any(|one| one.text().contains(text));
            assert!(
                sees("count the grains"),
                "the request is never out of sight"
            );
            let mut step = steps.lock().unwrap();
            *step += 1;
            if *step <= 40 {
                Step::call("c1", "look", &json!({"count": *step}))
            } else {
                Step::text("done")
            }
        },
    )));
    let mut running = start(&world).await;
    assert_eq!(
        say(&mut running, "count the grains of sand").await,
        TurnEnd::Finished
    );
    assert!(reports(&running).len() > 2);
    assert_eq!(running.text(), "done");
}

fn history_has_hole(messages: &[Message]) -> bool {
    let mut open: Vec<_> = Vec::new();
    for message in messages {
        match message.tool_result() {
            Some(result) if open.contains(&result.call) => open.retain(|call| *call != result.call),
            Some(_) => return true,
            None if !open.is_empty() => return true,
            None => open = message.calls().map(|call| call.id.clone()).collect(),
        }
    }
    !open.is_empty()
}

#[tokio::test]
async fn a_prompt_that_fills_the_window_is_told_and_never_loops() {
    let summaries = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&summaries);
    let mut world = World::new([]);
    // Most of the window is taken by a tool nobody can leave out.
    let mut tool = TestTool::new("look").effect(Effect::Read);
    tool = tool.described(&words(2_900, "long"));
    world = world.tool(tool);
    world.answering = Some(Arc::new(AnsweringModel::new(
        Some(WINDOW),
        move |request| {
            if is_for_summary(request.system) {
                *counted.lock().unwrap() += 1;
                return Step::text(SUMMARY);
            }
            Step::text("noted")
        },
    )));
    let mut running = start(&world).await;
    for turn in 0..40 {
        let end = say(&mut running, &format!("turn{turn} {}", words(60, "sand"))).await;
        assert_eq!(end, TurnEnd::Finished);
    }
    let told = reports(&running).iter().any(|report| {
        report
            .notes
            .iter()
            .any(|note| note.contains("larger context window"))
    });
    assert!(told, "{:?}", compactions(&running));
    assert!(
        *summaries.lock().unwrap() <= 12,
        "{}",
        summaries.lock().unwrap()
    );
}

#[tokio::test]
async fn switched_off_it_happens_only_when_asked() {
    let (world, log) = world(Some(WINDOW), WINDOW, || Step::text(SUMMARY));
    let settings = AgentSettings {
        compaction: CompactionSettings {
            is_automatic: false,
            ..CompactionSettings::default()
        },
        ..settings(&world)
    };
    let mut running = start_with(&world, settings).await;
    let mut end = TurnEnd::Finished;
    for turn in 0..12 {
        end = say(&mut running, &format!("turn{turn} {}", words(500, "sand"))).await;
    }
    let TurnEnd::Failed { error } = end else {
        panic!("it is too long: {end:?}");
    };
    assert!(error.hint.contains("/new"), "{error:?}");
    assert!(
        log.lock()
            .unwrap()
            .iter()
            .all(|asked| !asked.is_for_summary())
    );
    running.send(Op::Compact { topic: None }).await;
    running
        .until(|event| matches!(event, Event::CompactionEnded { .. }))
        .await;
    assert_eq!(say(&mut running, "and now?").await, TurnEnd::Finished);
}

#[tokio::test]
async fn a_crash_before_the_entry_is_written_loses_nothing() {
    let (world, _) = world(Some(WINDOW), WINDOW, Step::silence);
    let mut running = start(&world).await;
    for turn in 0.. {
        running
            .session
            .say(format!("turn{turn} {}", words(500, "sand")))
            .await;
        let event = running
            .until(|event| {
                matches!(
                    event,
                    Event::TurnEnded { .. } | Event::CompactionStarted { .. }
                )
            })
            .await;
        if matches!(event, Event::CompactionStarted { .. }) {
            break;
        }
    }
    let id = running.session.id().clone();
    let before = stored(&world, &running).await;
    running.crash().await;
    assert_eq!(world.store.load(&id).await.unwrap().messages, before);
    let (other, _) = self::world(Some(WINDOW), WINDOW, || Step::text(SUMMARY));
    let world = World {
        answering: other.answering.clone(),
        ..world
    };
    let mut running = resume(&world, &id).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(reports(&running).len(), 1);
    let last = stored(&world, &running).await;
    assert_eq!(last.last().unwrap().parts, [Part::text("noted")]);
}
