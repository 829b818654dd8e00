//! Sampling: a server asks for a model's answer, within the limits that the user set for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use hermes_core::{
    Delta, FinishReason, Finished, Message, Model, ModelError, ModelRequest, ReplyBuilder, TurnId,
};
use rmcp::ErrorData;
#[expect(deprecated, reason = "servers of today's era ask for samples")]
use rmcp::model::{CreateMessageRequestParams, CreateMessageResult, ToolChoiceMode};
use tokio::time::{Instant, timeout};

use super::conversation::{self, Conversation};
use super::{Models, Respondent};
use crate::in_flight::Call;
use crate::settings::LogLevel;

/// A fallback that the model client found for one request of a server is good for its next one.
const TURN: &str = "mcp-sampling";

/// How many requests were served in the last minute.
#[derive(Debug)]
pub(super) struct Quota {
    per_minute_max: usize,
    served: Mutex<VecDeque<Instant>>,
}

impl Quota {
    pub(super) fn new(per_minute_max: usize) -> Self {
        Self {
            per_minute_max,
            served: Mutex::default(),
        }
    }

    /// Takes one, or says how long until there is one.
    fn take(&self, now: Instant) -> Result<(), Duration> {
        const MINUTE: Duration = Duration::from_secs(60);
        let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        while served.front().is_some_and(|at| now - *at >= MINUTE) {
            served.pop_front();
        }
        match served.front() {
            Some(first) if served.len() >= self.per_minute_max => Err(*first + MINUTE - now),
            _ => {
                served.push_back(now);
                Ok(())
            }
        }
    }
}

impl Respondent {
    /// Answers `sampling/createMessage`.
    #[expect(deprecated, reason = "servers of today's era ask for samples")]
    pub(crate) async fn sample(
        &self,
        request: CreateMessageRequestParams,
        call: Option<&Call>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some(models) = &self.models else {
            return Err(refused(
                "the user has not allowed this server to ask a model",
            ));
        };
        let Some(call) = call else {
            return Err(refused("no call is under way that this could belong to"));
        };
        request
            .validate()
            .map_err(|error| ErrorData::invalid_params(error, None))?;
        let conversation = self.conversation(&request)?;
        self.quota.take(Instant::now()).map_err(|wait| {
            let seconds = wait.as_secs().max(1);
            refused(format!(
                "this server may ask a model {} times a minute; try again in {seconds} s",
                self.sampling.per_minute_max
            ))
        })?;
        let model = self.choose(models, &request);
        let _waiting = call.is_asked();
        call.progress.show(format!(
            "MCP server `{}` asks {}",
            self.server,
            model.name()
        ));
        let tokens_max = request.max_tokens.min(self.sampling.tokens_max);
        let asking = ask(model.as_ref(), call, &conversation, tokens_max);
        let limit = self.sampling.timeout;
        let (message, finished) = match timeout(limit, asking).await {
            Ok(answer) => {
                answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))
            }
            Err(_) => Err(refused(format!(
                "the model did not answer within {} s",
                limit.as_secs()
            ))),
        }?;
        self.account(call, &finished).await;
        let is_tool_required = request
            .tool_choice
            .is_some_and(|choice| choice.mode == Some(ToolChoiceMode::Required));
        if is_tool_required && message.calls().next().is_none() {
            return Err(refused("the model did not use a tool"));
        }
        conversation::result(&message, &finished).map_err(refused)
    }

    #[expect(deprecated, reason = "servers of today's era ask for samples")]
    fn conversation(
        &self,
        request: &CreateMessageRequestParams,
    ) -> Result<Conversation, ErrorData> {
        let conversation = Conversation::of(request)
            .map_err(|error| ErrorData::invalid_params(error.to_owned(), None))?;
        let rounds_max = self.sampling.tool_rounds_max;
        if !conversation.tools.is_empty() && conversation.tool_rounds() >= rounds_max {
            return Err(refused(match rounds_max {
                0 => "the user does not allow tools in requests to a model".to_owned(),
                _ => format!("the user allows {rounds_max} rounds of tools in one conversation"),
            }));
        }
        Ok(conversation)
    }

    /// Chooses the model: the one of the settings, else the first allowed one that a hint of the server names, else ours.
    #[expect(deprecated, reason = "servers of today's era ask for samples")]
    fn choose(&self, models: &Models, request: &CreateMessageRequestParams) -> Arc<dyn Model> {
        let preferences = request.model_preferences.as_ref();
        let hints = preferences.and_then(|wishes| wishes.hints.as_ref());
        let hinted = || {
            let mut names = hints
                .into_iter()
                .flatten()
                .filter_map(|hint| hint.name.as_ref());
            names.find_map(|hint| {
                let mut allowed = self.sampling.allowed_models.iter();
                allowed.find(|name| name.contains(hint.as_str()))
            })
        };
        let name = self.sampling.model.as_ref().or_else(hinted);
        name.and_then(|name| models.named.get(name))
            .unwrap_or(&models.usual)
            .clone()
    }

    /// Tells what it cost: in the log, to whoever made the call, and for the account of the turn.
    async fn account(&self, call: &Call, finished: &Finished) {
        let Finished { usage, model, .. } = finished;
        let (server, tokens) = (&self.server, usage.total());
        let text = format!("MCP server `{server}` used {tokens} tokens of {model}");
        match self.sampling.log_level {
            LogLevel::Debug => tracing::debug!("{text}"),
            LogLevel::Info => tracing::info!("{text}"),
            LogLevel::Warning => tracing::warn!("{text}"),
            LogLevel::Error => tracing::error!("{text}"),
        }
        call.progress.show(text);
        call.spending.add(finished.clone()).await;
    }
}

async fn ask(
    model: &dyn Model,
    call: &Call,
    conversation: &Conversation,
    tokens_max: u32,
) -> Result<(Message, Finished), ModelError> {
    let turn = TurnId::from(TURN);
    let mut answer = model.stream(ModelRequest {
        session: &call.session,
        turn: &turn,
        system: &conversation.system,
        tools: &conversation.tools,
        messages: &conversation.messages,
        output_tokens_max: Some(tokens_max),
    });
    let mut reply = ReplyBuilder::new();
    while let Some(delta) = answer.next().await {
        match delta? {
            Delta::Finished(finished) => return Ok((reply.finish(), finished)),
            delta => reply.push(&delta),
        }
    }
    // A stream ends with its end or with an error; this is for a model that broke that word.
    let finished = Finished {
        reason: FinishReason::Cut,
        usage: hermes_core::Usage::default(),
        cost: hermes_core::Cost::Unknown,
        model: model.name(),
    };
    Ok((reply.finish(), finished))
}

fn refused(reason: impl AsRef<str>) -> ErrorData {
    // What servers of this protocol know as "the user rejected it".
    const REJECTED: i32 = -1;
    let message = format!("sampling/createMessage: {}", reason.as_ref());
    ErrorData::new(rmcp::model::ErrorCode(REJECTED), message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_minute_has_so_many_requests_and_no_more() {
        let quota = Quota::new(2);
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(quota.take(start), Ok(()));
        assert_eq!(quota.take(after(10)), Ok(()));
        assert_eq!(quota.take(after(20)), Err(Duration::from_secs(40)));
        assert_eq!(quota.take(after(60)), Ok(()));
        assert_eq!(quota.take(after(61)), Err(Duration::from_secs(9)));
    }
}
