//! Compaction of conversations as nobody plans them: no dead end, no loop, nothing that the store loses.

use std::sync::{Arc, Mutex};

use hermes_agent::{AgentSettings, Limits};
use hermes_core::{
    CompactionEnd, Effect, Event, Media, MediaSource, Message, ModelErrorKind, ModelRequest, Op,
    Part, Role, TurnEnd, UserMessage,
};
use hermes_testkit::{AnsweringModel, Behaviour, Step, TestTool, World};
use serde_json::json;

use crate::run::{Running, resume, settings, start, start_with, stored};

const WINDOW: u64 = 4_096;
const SUMMARY: &str = "## Goal\nfind the treasure\n## State\nthe key is under the stone";
/// What a picture takes in these tests.
const PICTURE_TOKENS: usize = 1_000;

fn words(count: usize, word: &str) -> String {
    format!("{word} ").repeat(count)
}

/// A word is a token, more or less.
fn size(request: &ModelRequest<'_>) -> u64 {
    let messages = request.messages.iter().map(|message| {
        let result = message.tool_result().map(|result| result.text.as_str());
        let text = message.text() + result.unwrap_or_default();
        let calls = message.calls().count() * 8;
        text.split_whitespace().count() + calls + message.images().count() * PICTURE_TOKENS + 4
    });
    let tools = request.tools.iter();
    let tools = tools.map(|tool| tool.description.split_whitespace().count() + 20);
    let system = request.system.split_whitespace().count();
    (messages.sum::<usize>() + tools.sum::<usize>() + system) as u64
}

/// The sizes of all requests but those for summaries.
type Sizes = Arc<Mutex<Vec<u64>>>;

/// A model into which so many tokens fit, `stated` or not, and that answers as it is told.
fn model(
    stated: Option<u64>,
    real: u64,
    answer: impl Fn(&ModelRequest<'_>) -> Step + Send + Sync + 'static,
) -> (Arc<AnsweringModel>, Sizes) {
    let sizes = Sizes::default();
    let asked = Arc::clone(&sizes);
    let model = AnsweringModel::new(stated, move |request| {
        let tokens = size(request);
        let is_for_summary = request.system.starts_with("You keep the memory");
        if !is_for_summary {
            asked.lock().expect("nobody panicked").push(tokens);
        }
        if tokens > real {
            let refusal =
                format!("This model's maximum context length is {real} tokens, got {tokens}");
            return Step::refusal(ModelErrorKind::ContextTooLong, &refusal);
        }
        if is_for_summary {
            return Step::text(SUMMARY);
        }
        answer(request).counting(tokens)
    });
    (Arc::new(model), sizes)
}

fn look(text: String) -> TestTool {
    TestTool::new("look")
        .effect(Effect::Read)
        .does(Behaviour::Say(text))
}

async fn say(running: &mut Running, text: &str) -> TurnEnd {
    running.session.say(text).await;
    running.turn_end().await
}

async fn compress(running: &mut Running) -> CompactionEnd {
    running.send(Op::Compact { topic: None }).await;
    let event = running
        .until(|event| matches!(event, Event::CompactionEnded { .. }))
        .await;
    match event {
        Event::CompactionEnded { end } => end,
        _ => unreachable!("waited for it"),
    }
}

fn is_asked(request: &ModelRequest<'_>) -> bool {
    let last = request.messages.last();
    last.is_some_and(|last| last.role == Role::User)
}

#[tokio::test]
async fn a_reply_with_very_many_calls_is_answered() {
    const CALLS: usize = 60;
    let (model, sizes) = model(Some(WINDOW), WINDOW, |request| {
        if !is_asked(request) {
            return Step::text("seen");
        }
        let ids: Vec<String> = (0..CALLS).map(|number| format!("c{number}")).collect();
        let arguments: Vec<String> = (0..CALLS).map(|n| format!("{{\"count\":{n}}}")).collect();
        let calls = ids.iter().zip(&arguments);
        let calls: Vec<_> = calls
            .map(|(id, arguments)| (id.as_str(), "look", arguments.as_str()))
            .collect();
        Step::calls(&calls)
    });
    // No two results are the same.
    let tool = look(String::new()).does(Behaviour::Count(words(60, "found")));
    let mut world = World::new([]).tool(tool);
    world.answering = Some(model);
    let mut running = start(&world).await;
    assert_eq!(say(&mut running, "look around").await, TurnEnd::Finished);
    assert_eq!(running.text(), "seen");
    let sizes = sizes.lock().unwrap().clone();
    assert!(sizes.iter().all(|tokens| *tokens <= WINDOW), "{sizes:?}");
    let results = stored(&world, &running).await;
    let results = results.iter().filter(|one| one.role == Role::Tool).count();
    assert_eq!(results, CALLS, "every call keeps its result");
}

#[tokio::test]
async fn three_hundred_steps_of_one_turn_are_one_conversation() {
    const STEPS: usize = 300;
    let steps = Arc::new(Mutex::new(0));
    let (model, sizes) = model(Some(WINDOW), WINDOW, move |request| {
        let sees = |text: &str| request.messages.iter().any(|one| one.text().contains(text));
        assert!(
            sees("count the grains"),
            "the request is never out of sight"
        );
        let mut step = steps.lock().unwrap();
        *step += 1;
        match *step {
            1..STEPS => Step::call("c1", "look", &json!({"count": *step})),
            _ => Step::text("done"),
        }
    });
    let mut world = World::new([]).tool(look(words(120, "found")));
    world.answering = Some(model);
    let settings = AgentSettings {
        limits: Limits {
            steps_max: 400,
            ..Limits::default()
        },
        ..settings(&world)
    };
    let mut running = start_with(&world, settings).await;
    let end = say(&mut running, "count the grains of sand").await;
    assert_eq!(end, TurnEnd::Finished);
    assert_eq!(running.text(), "done");
    assert_eq!(sizes.lock().unwrap().len(), STEPS, "none was refused");
}

fn picture() -> Part {
    Part::Image(Media {
        mime: "image/png".into(),
        source: MediaSource::Base64("AAAA".into()),
    })
}

#[tokio::test]
async fn a_conversation_of_pictures_goes_on() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&shown);
    let (model, _) = model(Some(WINDOW), WINDOW, move |request| {
        let pictures = request.messages.iter().map(|one| one.images().count());
        seen.lock().unwrap().push(pictures.sum::<usize>());
        Step::text("nice")
    });
    let mut world = World::new([]);
    world.answering = Some(model);
    let mut running = start(&world).await;
    for turn in 0..8 {
        let said = UserMessage::of(vec![picture()]);
        running.send(Op::Say(said)).await;
        assert_eq!(running.turn_end().await, TurnEnd::Finished, "turn {turn}");
    }
    let shown = shown.lock().unwrap().clone();
    assert!(
        shown.iter().all(|count| *count > 0),
        "the last is seen: {shown:?}"
    );
    // More at once than fit.
    let said = UserMessage::of((0..9).map(|_| picture()).collect());
    running.send(Op::Say(said)).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(say(&mut running, "and now?").await, TurnEnd::Finished);
}

#[tokio::test]
async fn a_short_conversation_that_is_compressed_keeps_all_its_words() {
    let answer = numbered(900);
    let answered = answer.clone();
    let (model, _) = model(Some(100_000), 100_000, move |_| Step::text(&answer));
    let mut world = World::new([]);
    world.answering = Some(model);
    let mut running = start(&world).await;
    let question = words(900, "question");
    let question = question.trim();
    assert_eq!(say(&mut running, question).await, TurnEnd::Finished);
    compress(&mut running).await;
    let seen = stored(&world, &running).await;
    let texts: Vec<String> = seen.iter().map(Message::text).collect();
    let is_there = |words: &str| texts.iter().any(|text| text.contains(words));
    assert!(is_there(&answered), "the last reply is whole: {texts:?}");
    assert_eq!(say(&mut running, "go on").await, TurnEnd::Finished);
    for _ in 0..3 {
        compress(&mut running).await;
    }
    assert_eq!(say(&mut running, "and on").await, TurnEnd::Finished);
}

#[tokio::test]
async fn words_without_an_answer_are_not_cut_because_somebody_compresses() {
    let (model, _) = model(Some(100_000), 100_000, |_| {
        Step::error(ModelErrorKind::Overloaded)
    });
    let mut world = World::new([]);
    world.answering = Some(model);
    let mut running = start(&world).await;
    let question = words(2_000, "question");
    let question = question.trim();
    say(&mut running, question).await;
    compress(&mut running).await;
    let seen = stored(&world, &running).await;
    let is_whole = |one: &Message| one.text().contains(question);
    let is_quoted = |one: &Message| one.text().contains("## The user's last words");
    assert!(seen.iter().any(|one| is_whole(one) || is_quoted(one)));
}

#[tokio::test]
async fn a_long_conversation_goes_on_with_a_model_of_a_much_smaller_window() {
    let (large, _) = model(Some(200_000), 200_000, |_| Step::text("noted"));
    let mut world = World::new([]);
    world.answering = Some(large);
    let mut running = start(&world).await;
    for turn in 0..60 {
        say(&mut running, &format!("turn{turn} {}", words(600, "sand"))).await;
    }
    let id = running.session.id().clone();
    running.crash().await;
    let (small, sizes) = model(Some(WINDOW), WINDOW, |_| Step::text("noted"));
    world.answering = Some(small);
    let mut running = resume(&world, &id).await;
    for turn in 60..70 {
        let said = format!("turn{turn} {}", words(300, "sand"));
        assert_eq!(say(&mut running, &said).await, TurnEnd::Finished);
    }
    let sizes = sizes.lock().unwrap().clone();
    assert!(sizes.iter().all(|tokens| *tokens <= WINDOW), "{sizes:?}");
}

#[tokio::test]
async fn a_result_that_is_larger_than_the_next_models_window_is_answered() {
    let (large, _) = model(Some(400_000), 400_000, |request| {
        if is_asked(request) {
            Step::call("c1", "look", &json!({}))
        } else {
            Step::silence()
        }
    });
    let mut world = World::new([]).tool(look(words(15_000, "found")));
    world.answering = Some(large);
    let mut running = start(&world).await;
    running.session.say("look").await;
    running
        .until(|event| matches!(event, Event::CallFinished { .. }))
        .await;
    let id = running.session.id().clone();
    tokio::task::yield_now().await;
    running.crash().await;
    let (small, _) = model(Some(WINDOW), WINDOW, |request| {
        assert!(!is_asked(request), "the result is there");
        Step::text("seen")
    });
    world.answering = Some(small);
    let mut running = resume(&world, &id).await;
    assert_eq!(running.turn_end().await, TurnEnd::Finished);
    assert_eq!(running.text(), "seen");
}

#[tokio::test]
async fn a_window_that_is_smaller_than_the_prompt_is_told_at_once_and_a_larger_one_goes_on() {
    // Nobody said how much fits.
    let (tight, sizes) = model(None, 2_048, |_| Step::text("noted"));
    let tool = look(String::new()).described(&words(3_000, "long"));
    let mut world = World::new([]).tool(tool);
    world.answering = Some(tight);
    let mut running = start(&world).await;
    for turn in 0..5 {
        let end = say(&mut running, &format!("turn{turn} {}", words(40, "sand"))).await;
        let TurnEnd::Failed { error } = end else {
            panic!("nothing fits: {end:?}");
        };
        assert!(error.hint.contains("larger context window"), "{error:?}");
    }
    let asked = sizes.lock().unwrap().len();
    assert!(asked <= 5 * 6, "{asked} requests for five turns");
    let id = running.session.id().clone();
    running.crash().await;
    let (roomy, _) = model(Some(100_000), 100_000, |_| Step::text("noted"));
    world.answering = Some(roomy);
    let mut running = resume(&world, &id).await;
    assert_eq!(say(&mut running, "and now?").await, TurnEnd::Finished);
}

#[tokio::test]
async fn a_summary_that_only_repeats_itself_is_no_loop() {
    let summaries = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&summaries);
    let model = AnsweringModel::new(Some(WINDOW), move |request| {
        if request.system.starts_with("You keep the memory") {
            *counted.lock().unwrap() += 1;
            // As long as it was asked to be, and the same each time.
            return Step::text(&format!("{SUMMARY}\n{}", numbered(300)));
        }
        Step::text("noted").counting(size(request))
    });
    let mut world = World::new([]);
    world.answering = Some(Arc::new(model));
    let mut running = start(&world).await;
    for turn in 0..30 {
        let said = format!("turn{turn} {}", words(300, "sand"));
        assert_eq!(say(&mut running, &said).await, TurnEnd::Finished);
    }
    let summaries = *summaries.lock().unwrap();
    assert!((1..=15).contains(&summaries), "{summaries}");
}

/// Lines that are no circle.
fn numbered(count: usize) -> String {
    let lines: Vec<String> = (0..count).map(|number| format!("fact {number}")).collect();
    lines.join("\n")
}
