//! What became of a task, read from its session: the same whether it has just ended or did so before a crash.

use std::collections::HashMap;

use hermes_core::{
    Arguments, CallId, LoadedSession, Message, Role, SessionId, SubagentReport, SubagentStatus,
    SubagentTokens, ToolResult, TracedCall, TurnEnd, wording,
};

use super::subagent::Cut;

pub(super) fn of(index: usize, session: &LoadedSession, cut: Option<Cut>) -> SubagentReport {
    let record = &session.record;
    let end = session.last_end.as_ref().filter(|_| !record.has_open_turn);
    let lived_ms = record.updated.as_millis() - record.created.as_millis();
    SubagentReport {
        task_index: index,
        status: status(end, cut),
        summary: last_words(&session.messages),
        error: match end {
            Some(end) => shortfall(end),
            None => Some("it was stopped before it could close its session".to_owned()),
        },
        session: record.id.clone(),
        model: record.model.to_string(),
        api_calls: record.requests,
        duration_seconds: lived_ms.max(0) as f64 / 1000.0,
        tokens: SubagentTokens {
            input: record.usage.total().saturating_sub(record.usage.output),
            output: record.usage.output,
        },
        tool_trace: trace(&session.messages),
    }
}

/// A report of a subagent whose session cannot be read, or was never there.
pub(super) fn without_session(
    index: usize,
    session: &SessionId,
    status: SubagentStatus,
    error: String,
) -> SubagentReport {
    SubagentReport {
        task_index: index,
        status,
        summary: String::new(),
        error: Some(error),
        session: session.clone(),
        model: String::new(),
        api_calls: 0,
        duration_seconds: 0.0,
        tokens: SubagentTokens::default(),
        tool_trace: Vec::new(),
    }
}

/// Why a subagent did not end with an answer. Nobody talks to it, and its steps have a limit of their own.
pub(super) fn shortfall(end: &TurnEnd) -> Option<String> {
    match end {
        TurnEnd::OutOfSteps { steps } => Some(format!(
            "stopped after {steps} steps; give it less to do, or let the user raise delegation.max_iterations"
        )),
        end => wording::turn_end(end),
    }
}

fn status(end: Option<&TurnEnd>, cut: Option<Cut>) -> SubagentStatus {
    match (end, cut) {
        (Some(TurnEnd::Finished), _) => SubagentStatus::Completed,
        (Some(TurnEnd::Interrupted) | None, Some(Cut::OutOfTime)) => SubagentStatus::Timeout,
        (Some(TurnEnd::Interrupted) | None, _) => SubagentStatus::Interrupted,
        (Some(TurnEnd::Broken { .. }), _) => SubagentStatus::Error,
        (
            Some(
                TurnEnd::OutOfSteps { .. }
                | TurnEnd::Stuck { .. }
                | TurnEnd::Failed { .. }
                | TurnEnd::Abandoned { .. },
            ),
            _,
        ) => SubagentStatus::Failed,
    }
}

/// What the subagent said last: the closing words of a turn without an answer count as well.
fn last_words(messages: &[Message]) -> String {
    let said = messages
        .iter()
        .rev()
        .filter(|message| message.role == Role::Assistant);
    let mut texts = said.map(|message| message.text().trim().to_owned());
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

fn trace(messages: &[Message]) -> Vec<TracedCall> {
    let mut arguments: HashMap<&CallId, usize> = HashMap::new();
    let mut traced = Vec::new();
    for message in messages {
        // Ids come again in later replies, so each result belongs to the call of its id just before it.
        arguments.extend(
            message
                .calls()
                .map(|call| (&call.id, size(&call.arguments))),
        );
        traced.extend(message.tool_result().map(|result| {
            let args_bytes = arguments.get(&result.call).copied().unwrap_or_default();
            traced_call(result, args_bytes)
        }));
    }
    traced
}

fn traced_call(result: &ToolResult, args_bytes: usize) -> TracedCall {
    TracedCall {
        tool: result.tool.clone(),
        args_bytes,
        result_bytes: result.text.len(),
        status: result.status,
    }
}

fn size(arguments: &Arguments) -> usize {
    match arguments {
        Arguments::Json(value) => value.to_string().len(),
        Arguments::Malformed(text) => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_turn_ended_says_how_the_task_did() {
        let out_of_steps = TurnEnd::OutOfSteps { steps: 50 };
        let said = shortfall(&out_of_steps).unwrap();
        assert!(said.contains("delegation.max_iterations"), "{said}");
        let check = |end: Option<&TurnEnd>, cut, expected| {
            assert_eq!(status(end, cut), expected, "{end:?} {cut:?}");
        };
        check(Some(&TurnEnd::Finished), None, SubagentStatus::Completed);
        check(
            Some(&TurnEnd::Finished),
            Some(Cut::Interrupted),
            SubagentStatus::Completed,
        );
        check(
            Some(&TurnEnd::Interrupted),
            Some(Cut::OutOfTime),
            SubagentStatus::Timeout,
        );
        check(None, Some(Cut::Interrupted), SubagentStatus::Interrupted);
        check(
            Some(&TurnEnd::Interrupted),
            None,
            SubagentStatus::Interrupted,
        );
        check(Some(&out_of_steps), None, SubagentStatus::Failed);
    }
}
