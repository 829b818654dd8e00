//! Calls that a running call makes through its toolbox. They pass the checks and ask the consent that the model's own
//! calls do; their results go to the call that made them and nowhere else.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use hermes_core::{
    Agreement, Arguments, BoxFuture, CallId, CancellationToken, InnerCall, Parallel, Reader,
    StoreError, ToolCall, ToolContext, ToolError, ToolOutput, Toolbox, Use, wording,
};
use tokio::sync::oneshot;

use super::check::{self, Checked};
use super::{Ready, keep, plan};
use crate::approvals::Asker;
use crate::consent::{Decision, decide};
use crate::turn::TurnContext;

/// The calls of one call: those that run, and those that wait because they may not run beside them.
pub(super) struct InnerCalls<'a> {
    cx: &'a TurnContext<'a>,
    /// The context of the call that makes them.
    context: &'a ToolContext,
    waiting: VecDeque<Waiting>,
    running: FuturesUnordered<BoxFuture<'a, CallId>>,
    /// What those that run allow beside them.
    rules: Vec<(CallId, Parallel)>,
    count: u64,
}

struct Waiting {
    ready: Ready,
    rule: Parallel,
    result: oneshot::Sender<Result<ToolOutput, ToolError>>,
}

impl<'a> InnerCalls<'a> {
    pub(super) fn of(cx: &'a TurnContext<'a>, context: &'a ToolContext) -> Self {
        Self {
            cx,
            context,
            waiting: VecDeque::new(),
            running: FuturesUnordered::new(),
            rules: Vec::new(),
            count: 0,
        }
    }

    /// Takes what the call wants from its toolbox.
    pub(super) fn take(&mut self, wanted: Use) {
        match wanted {
            Use::Look(specs) => {
                let tools = self.cx.ports.tools.iter();
                // Whoever asked may be gone; here and below nobody else wants to know.
                let _ = specs.send(tools.map(|tool| tool.spec().clone()).collect());
            }
            Use::Call(call) => self.admit(call),
        }
        self.start_what_may_run();
    }

    /// Waits for the next of them to end. `None` when none runs.
    pub(super) async fn next_end(&mut self) -> Option<()> {
        let ended = self.running.next().await?;
        self.rules.retain(|(id, _)| *id != ended);
        self.start_what_may_run();
        Some(())
    }

    /// Stops those that are left when the call that made them ends, and gives them a moment to take their questions back.
    pub(super) async fn close(&mut self, grace: Duration) {
        self.waiting.clear();
        self.context.stop.cancel();
        let ended = async { while self.next_end().await.is_some() {} };
        // Those who need longer are dropped.
        let _ = tokio::time::timeout(grace, ended).await;
    }

    fn admit(&mut self, inner: InnerCall) {
        self.count += 1;
        let call = ToolCall {
            id: format!("{}.{}", self.context.call, self.count).into(),
            name: inner.tool,
            arguments: Arguments::Json(inner.arguments),
            signatures: Vec::new(),
        };
        match check::check(&call, self.cx.ports) {
            Checked::Fails(text) => drop(inner.result.send(Err(ToolError::Answer(text)))),
            Checked::Runs { tool, arguments } => {
                let rule = tool.parallel(&arguments, &self.context.cwd);
                let session = self.cx.recorder.session();
                let effect = tool.effect_in(&arguments, session, &self.context.cwd);
                let ready = Ready {
                    call,
                    tool,
                    arguments,
                    effect,
                    agreement: Agreement::default(),
                };
                self.waiting.push_back(Waiting {
                    ready,
                    rule,
                    result: inner.result,
                });
            }
        }
    }

    fn start_what_may_run(&mut self) {
        while let Some(first) = self.waiting.front() {
            let beside = self.rules.iter().map(|(_, rule)| rule);
            if !plan::may_join(beside, &first.rule) {
                return;
            }
            if let Some(first) = self.waiting.pop_front() {
                self.start(first);
            }
        }
    }

    fn start(&mut self, call: Waiting) {
        let Waiting {
            ready,
            rule,
            result,
        } = call;
        let id = ready.call.id.clone();
        self.rules.push((id.clone(), rule));
        let context = ToolContext {
            call: id.clone(),
            stop: self.context.stop.child_token(),
            toolbox: Toolbox::default(),
            reader: Reader::Program,
            state: None,
            ..self.context.clone()
        };
        let (cx, maker) = (self.cx, &self.context.call);
        self.running.push(Box::pin(async move {
            let _ = result.send(run(cx, &ready, maker, &context).await);
            id
        }));
    }
}

/// Runs a call that the call `maker` has made.
async fn run(
    cx: &TurnContext<'_>,
    ready: &Ready,
    maker: &CallId,
    context: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let name = &ready.call.name;
    let shown = wording::brief(&ready.arguments);
    context.progress.show(format!("{name} {shown}"));
    let context = ToolContext {
        agreement: may_run(cx, ready, maker, &context.stop).await?,
        ..context.clone()
    };
    let work = AssertUnwindSafe(ready.tool.run(ready.arguments.clone(), &context)).catch_unwind();
    work.await.unwrap_or_else(|_| {
        let text = format!("`{name}` crashed; this is a bug in it.");
        Err(ToolError::Answer(text))
    })
}

/// Asks for consent, which belongs to the call that the model made, and has the project kept. Returns what was agreed to.
async fn may_run(
    cx: &TurnContext<'_>,
    ready: &Ready,
    maker: &CallId,
    stop: &CancellationToken,
) -> Result<Agreement, ToolError> {
    let lost =
        |error: StoreError| ToolError::Answer(format!("Not run: {error}; {}.", error.hint()));
    let asker = Asker {
        call: maker,
        is_inner: true,
        stop,
    };
    let decision = decide(cx, ready.tool.as_ref(), &ready.arguments, asker).await;
    let agreement = match decision.map_err(lost)? {
        Decision::Run(agreement) => agreement,
        Decision::NotRun(why) => return Err(ToolError::Answer(why)),
    };
    keep::keep_before(cx, std::slice::from_ref(ready))
        .await
        .map_err(lost)?;
    if stop.is_cancelled() {
        Err(ToolError::Stopped("stopped before it started".to_owned()))
    } else {
        Ok(agreement)
    }
}
