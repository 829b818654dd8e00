//! The promises of [`Model`], checked on an implementation from outside.
//!
//! The suite is given a way to make a model that answers every request in the same way. What the answer is made of is
//! an [`Answer`]: served over a wire, or translated by a fake.

#![expect(clippy::unwrap_used, reason = "a suite fails by panicking")]

use std::collections::HashSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use hermes_core::{
    Arguments, Delta, FinishReason, Finished, Message, Model, ModelError, ModelErrorKind,
    ModelNotice, ModelRequest, Part, ReplyBuilder, SessionId, ToolSpec, TurnId, Usage,
};
use serde_json::json;

use crate::server::{Answer, Ending, Finish, NoiseKind, Point, Usage as Counted};

/// Longer than any model under test may take for one answer, its retries included.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the way to the model cannot carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carries {
    Everything,
    /// Arguments are parsed on the way, so malformed ones never arrive.
    ParsedArguments,
}

/// What a request came to.
#[derive(Debug)]
pub struct Told {
    pub message: Message,
    pub end: Result<Finished, ModelError>,
    pub notices: Vec<ModelNotice>,
}

/// Runs the whole suite. `make` returns a model that answers every request with this answer, and whatever must be kept
/// alive meanwhile. Its deadlines and waits must be short: a second or less.
pub async fn model_contract<M: Model, K>(carries: Carries, make: impl AsyncFn(Answer) -> (M, K)) {
    says_what_it_says(&make).await;
    calls_tools(carries, &make).await;
    keeps_reasoning_apart(&make).await;
    says_why_it_stopped(&make).await;
    survives_every_cut(&make).await;
    keeps_what_came_when_cut(&make).await;
    fails_when_nothing_came(&make).await;
    names_refusals(&make).await;
}

/// Asks once and collects everything. Panics if the stream breaks a rule of the port that holds whatever the model
/// says: this much of the suite is for models that cannot be told what to say.
pub async fn tell(model: &dyn Model, messages: &[Message]) -> Told {
    let (session, turn) = (SessionId::from("session"), TurnId::from("turn"));
    tell_in(model, &session, &turn, messages).await
}

/// As [`tell`], in a session and a turn.
pub async fn tell_in(
    model: &dyn Model,
    session: &SessionId,
    turn: &TurnId,
    messages: &[Message],
) -> Told {
    let tools = tools();
    let request = ModelRequest {
        session,
        turn,
        system: "be brief",
        tools: &tools,
        messages,
        output_tokens_max: None,
    };
    let mut stream = model.stream(request);
    let mut reply = ReplyBuilder::new();
    let mut notices = Vec::new();
    let mut calls_begun = 0;
    loop {
        let next = tokio::time::timeout(PATIENCE, stream.next()).await;
        let end = match next.expect("the model went silent and nobody noticed") {
            Some(Ok(Delta::Finished(finished))) => Ok(finished),
            Some(Err(error)) => Err(error),
            Some(Ok(Delta::Notice(notice))) => {
                notices.push(notice);
                continue;
            }
            Some(Ok(delta)) => {
                calls_come_in_order(&delta, &mut calls_begun);
                reply.push(&delta);
                continue;
            }
            None => panic!("the stream ended without an end"),
        };
        let after = stream.next().await;
        assert!(after.is_none(), "{after:?} after the end {end:?}");
        let message = reply.finish();
        match &end {
            Ok(finished) => says_what_it_did(finished, &message),
            Err(error) => explains_itself(error),
        }
        return Told {
            message,
            end,
            notices,
        };
    }
}

fn calls_come_in_order(delta: &Delta, begun: &mut usize) {
    match delta {
        Delta::CallStarted { index, id, name } => {
            assert_eq!(index, begun, "calls are numbered as they begin");
            assert!(!id.is_empty() && !name.is_empty(), "{delta:?}");
            *begun += 1;
        }
        Delta::CallArguments { index, .. } | Delta::CallSigned { index, .. } => {
            assert!(index < begun, "{delta:?} of a call that has not begun");
        }
        _ => {}
    }
}

fn says_what_it_did(finished: &Finished, message: &Message) {
    let calls = message.calls().count();
    match finished.reason {
        FinishReason::ToolCalls => assert!(calls > 0, "no call in {message:?}"),
        FinishReason::Stop => assert_eq!(calls, 0, "a call, yet it stopped: {message:?}"),
        FinishReason::Length | FinishReason::ContentFilter | FinishReason::Cut => {}
    }
    let ids: HashSet<&str> = message.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), calls, "calls share an id in {message:?}");
    assert!(!finished.model.model.is_empty(), "nobody answered");
}

fn explains_itself(error: &ModelError) {
    assert!(
        !error.message.is_empty() && !error.hint.is_empty(),
        "{error:?}"
    );
}

/// The tools of every request in the suite. The first has the name of a tool that some providers have themselves.
pub fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str| ToolSpec {
        name: name.into(),
        description: format!("the tool {name}"),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    vec![spec("web_search"), spec("read_file")]
}

async fn told<M: Model, K>(make: &impl AsyncFn(Answer) -> (M, K), answer: Answer) -> Told {
    let (model, _kept) = make(answer).await;
    tell(&model, &[Message::user("hello")]).await
}

async fn says_what_it_says<M: Model, K>(make: &impl AsyncFn(Answer) -> (M, K)) {
    let counted = Counted {
        prompt: 100,
        completion: 20,
        cached: 60,
        reasoning: 5,
    };
    let told = self::told(
        make,
        Answer::text("Grüße, 世界 🌍").pieces(5).usage(counted),
    )
    .await;
    assert_eq!(told.message.text(), "Grüße, 世界 🌍");
    assert!(told.notices.is_empty(), "{:?}", told.notices);
    let finished = told.end.unwrap();
    assert_eq!(finished.reason, FinishReason::Stop);
    let Usage {
        input,
        output,
        cache_read,
        ..
    } = finished.usage;
    assert_eq!((input, output, cache_read), (40, 20, 60));

    let told = self::told(make, Answer::default()).await;
    assert_eq!(told.message.text(), "");
    assert_eq!(told.end.unwrap().reason, FinishReason::Stop);
}

async fn calls_tools<M: Model, K>(carries: Carries, make: &impl AsyncFn(Answer) -> (M, K)) {
    let answer = Answer::text("let me see")
        .also_call("c1", "read_file", json!({"path": "a\n\"é\""}))
        .also_call("c2", "web_search", json!({}))
        .also_call("c3", "read_file", json!({"path": "b"}));
    for pieces in [1, 4] {
        let told = self::told(make, answer.clone().pieces(pieces)).await;
        let calls: Vec<_> = told
            .message
            .calls()
            .map(|call| (call.name.as_str(), call.arguments.clone()))
            .collect();
        let expected = [
            ("read_file", Arguments::Json(json!({"path": "a\n\"é\""}))),
            ("web_search", Arguments::Json(json!({}))),
            ("read_file", Arguments::Json(json!({"path": "b"}))),
        ];
        assert_eq!(calls, expected);
        assert_eq!(told.message.text(), "let me see");
        assert_eq!(told.end.unwrap().reason, FinishReason::ToolCalls);
    }
    if carries == Carries::Everything {
        let malformed = r#"{"path": "unclosed"#;
        let told = self::told(make, Answer::call("c1", "read_file", json!(malformed))).await;
        let call = told.message.calls().next().unwrap();
        assert_eq!(call.arguments, Arguments::Malformed(malformed.into()));
        assert_eq!(call.id.as_str(), "c1");
    }
}

async fn keeps_reasoning_apart<M: Model, K>(make: &impl AsyncFn(Answer) -> (M, K)) {
    let answer = Answer::text("42").reasoning("six times seven").pieces(3);
    let told = self::told(make, answer).await;
    let reasoning: String = told
        .message
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Reasoning(reasoning) => Some(reasoning.text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(
        (reasoning.as_str(), told.message.text().as_str()),
        ("six times seven", "42")
    );
    assert!(matches!(told.message.parts[0], Part::Reasoning(_)));
}

async fn says_why_it_stopped<M: Model, K>(make: &impl AsyncFn(Answer) -> (M, K)) {
    for (finish, reason) in [
        (Finish::Length, FinishReason::Length),
        (Finish::ContentFilter, FinishReason::ContentFilter),
    ] {
        let told = self::told(make, Answer::text("I").finish(finish)).await;
        assert_eq!(told.message.text(), "I");
        assert_eq!(told.end.unwrap().reason, reason);
    }
}

async fn survives_every_cut<M: Model, K>(make: &impl AsyncFn(Answer) -> (M, K)) {
    let answer = Answer::text("naïve 🦀 Straße")
        .reasoning("hm 思考")
        .also_call("c1", "read_file", json!({"path": "ü"}))
        .pieces(2);
    let whole = self::told(make, answer.clone()).await;
    for bytes in [1, 2, 3, 5, 7] {
        let cut = self::told(make, answer.clone().cut_every(bytes).crlf()).await;
        assert_eq!(cut.message, whole.message, "cut every {bytes} bytes");
        assert_eq!(cut.end.unwrap().usage, whole.end.as_ref().unwrap().usage);
    }
    let comment = NoiseKind::Comment("keep-alive".into());
    let noisy = self::told(make, answer.noise_after(1, comment)).await;
    assert_eq!(noisy.message, whole.message);
}

async fn keeps_what_came_when_cut<M: Model, K>(make: &impl AsyncFn(Answer) -> (M, K)) {
    let answer = Answer::text("one two three").pieces(3);
    for broken in [
        answer.clone().reset_after(2),
        answer.clone().truncate_after(2),
        answer.clone().close_after(2),
        answer.clone().stall_after(2),
        answer.clone().error_after(2, "overloaded_error", "busy"),
        answer.clone().noise_after(2, NoiseKind::BadJson),
    ] {
        let faults = format!("{:?}", broken.faults);
        let told = self::told(make, broken).await;
        assert_eq!(told.end.unwrap().reason, FinishReason::Cut, "{faults}");
        assert_eq!(told.message.text(), "one two th", "{faults}");
    }
}

async fn fails_when_nothing_came<M: Model, K>(make: &impl AsyncFn(Answer) -> (M, K)) {
    use ModelErrorKind::{Broken, Network, Overloaded, Silent};
    let answer = Answer::text("never seen");
    let error = |kind: &str| Ending::Error {
        kind: kind.into(),
        message: "busy".into(),
    };
    let thought = Answer::default().reasoning("hm");
    for (broken, kinds) in [
        (
            answer
                .clone()
                .break_off(Point::BeforeHeaders, Ending::Reset),
            &[Network][..],
        ),
        (
            answer
                .clone()
                .break_off(Point::BeforeHeaders, Ending::Close),
            &[Network],
        ),
        (
            answer
                .clone()
                .break_off(Point::BeforeHeaders, Ending::Stall),
            &[Network],
        ),
        (answer.clone().stall_after(0), &[Network, Silent]),
        (answer.clone().close_after(0), &[Network, Broken]),
        (
            answer
                .clone()
                .break_off(Point::Chunks(0), error("overloaded_error")),
            &[Overloaded],
        ),
        (thought.clone().reset_after(1), &[Broken]),
        (thought.clone().stall_after(1), &[Silent]),
        (thought.close_after(1), &[Broken]),
    ] {
        let faults = format!("{:?}", broken.faults);
        let error = self::told(make, broken).await.end.unwrap_err();
        assert!(kinds.contains(&error.kind), "{faults}: {error:?}");
    }
}

async fn names_refusals<M: Model, K>(make: &impl AsyncFn(Answer) -> (M, K)) {
    let body = |message: &str| json!({"error": {"message": message, "type": "error"}});
    for (status, message, kind) in [
        (401, "invalid key", ModelErrorKind::Auth),
        (402, "no credit", ModelErrorKind::Billing),
        (429, "slow down", ModelErrorKind::RateLimit),
        (500, "oops", ModelErrorKind::Overloaded),
        (503, "busy", ModelErrorKind::Overloaded),
        (529, "busy", ModelErrorKind::Overloaded),
        (
            400,
            "maximum context length is 10 tokens",
            ModelErrorKind::ContextTooLong,
        ),
        (400, "no such parameter", ModelErrorKind::BadRequest),
    ] {
        let error = self::told(make, Answer::status(status, body(message)))
            .await
            .end
            .unwrap_err();
        assert_eq!(error.kind, kind, "{error:?}");
        assert!(error.message.contains(message), "{error:?}");
    }
}
