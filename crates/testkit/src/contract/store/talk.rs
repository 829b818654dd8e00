//! Short words for the sessions and entries the checks are made of.

use hermes_core::{
    Arguments, Cost, Effect, Entry, FinishReason, Message, ModelName, NewSession, Part, Prefix,
    ResultStatus, Role, SessionId, Store, Timestamp, ToolCall, ToolResult, ToolSpec, TurnEnd,
    TurnId, Usage,
};
use serde_json::json;

pub(super) const START: Timestamp = Timestamp::from_millis(1_794_777_845_000);

pub(super) fn after(millis: i64) -> Timestamp {
    Timestamp::from_millis(START.as_millis() + millis)
}

pub(super) fn model() -> ModelName {
    ModelName {
        provider: "test".into(),
        model: "scripted".into(),
    }
}

pub(super) fn new_session(id: &str) -> NewSession {
    NewSession {
        id: id.into(),
        created: START,
        source: "cli".into(),
        title: None,
        cwd: Some("/work".into()),
        model: model(),
        parent: None,
        prefix: Prefix {
            system: "You are precise. 你好 \u{1f980}".into(),
            tools: [ToolSpec {
                name: "zeta".into(),
                description: "d".into(),
                parameters: json!({"type": "object", "properties": {"z": {}, "a": {}}}),
            }]
            .into(),
        },
    }
}

/// Creates a session with one finished turn per pair of words.
pub(super) async fn told(store: &impl Store, id: &str, pairs: &[(&str, &str)]) -> SessionId {
    store
        .create(new_session(id), Vec::new())
        .await
        .expect("created");
    let session = SessionId::from(id);
    for (i, (question, answer)) in pairs.iter().enumerate() {
        let turn = format!("t{i}");
        let entries = vec![
            started(&turn, question),
            asked(&turn),
            replied(&turn, Message::assistant(*answer)),
            ended(&turn),
        ];
        store
            .append(&session, after(i as i64 + 1), entries)
            .await
            .expect("appended");
    }
    session
}

pub(super) fn started(turn: &str, text: &str) -> Entry {
    Entry::TurnStarted {
        turn: TurnId::from(turn),
        message: Message::user(text),
    }
}

pub(super) fn asked(turn: &str) -> Entry {
    Entry::ModelAsked {
        turn: TurnId::from(turn),
        model: model(),
    }
}

pub(super) fn replied(turn: &str, message: Message) -> Entry {
    replied_at_cost(turn, message, Cost::Estimated(7))
}

pub(super) fn replied_at_cost(turn: &str, message: Message, cost: Cost) -> Entry {
    Entry::Replied {
        turn: TurnId::from(turn),
        message,
        reason: FinishReason::Stop,
        usage: Usage {
            input: 100,
            output: 20,
            cache_read: 3,
            cache_write: 4,
            reasoning: 5,
        },
        cost,
        model: model(),
    }
}

pub(super) fn calling(calls: &[&str]) -> Message {
    let call = |id: &&str| {
        Part::ToolCall(ToolCall {
            id: (*id).into(),
            name: "zeta".into(),
            arguments: Arguments::Json(json!({"z": 1, "a": [true, null]})),
            signatures: vec!["thought".into()],
        })
    };
    Message {
        role: Role::Assistant,
        origin: None,
        parts: calls.iter().map(call).collect(),
    }
}

pub(super) fn intended(turn: &str, call: &str, effect: Effect) -> Entry {
    Entry::CallIntended {
        turn: TurnId::from(turn),
        call: call.into(),
        tool: "zeta".into(),
        effect,
        arguments: json!({"z": 1}),
    }
}

pub(super) fn result(call: &str, text: &str) -> ToolResult {
    ToolResult {
        call: call.into(),
        tool: "zeta".into(),
        text: text.into(),
        status: ResultStatus::Ok,
        images: Vec::new(),
    }
}

pub(super) fn finished(turn: &str, call: &str) -> Entry {
    Entry::CallFinished {
        turn: TurnId::from(turn),
        result: result(call, &format!("result of {call}")),
    }
}

pub(super) fn ended(turn: &str) -> Entry {
    Entry::TurnEnded {
        turn: TurnId::from(turn),
        end: TurnEnd::Finished,
        closing: None,
    }
}
