//! Calls that a running call makes through its toolbox. They pass the checks and ask the consent that the model's own
//! calls do; their results go to the call that made them and nowhere else.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use hermes_core::{
    Agreement, Arguments, BoxFuture, CallId, CancellationToken, InnerCall, OfferedTool, Parallel,
    Reader, StoreError, ToolCall, ToolContext, ToolError, ToolOutput, Toolbox, Use, wording,
};
use tokio::sync::oneshot;

use super::plan::Checked;
use super::{Ready, check, keep, plan};
use crate::approvals::Asker;
use crate::consent::{Decision, decide};
use crate::turn::TurnContext;

/// The calls of one call: those that run, and those that wait because they may not run beside them.
pub(super) struct InnerCalls<'a> {
    cx: &'a TurnContext<'a>,
    /// The context of the call that makes them.
    context: &'a ToolContext,
    waiting: VecDeque<Waiting<Checked>>,
    /// The first of those that waited, while it is prepared; never more than one.
    preparing: FuturesUnordered<BoxFuture<'a, Waiting<Ready>>>,
    running: FuturesUnordered<BoxFuture<'a, CallId>>,
    /// What those that run allow beside them.
    rules: Vec<(CallId, Parallel)>,
    count: u64,
}

struct Waiting<T> {
    call: T,
    result: oneshot::Sender<Result<ToolOutput, ToolError>>,
}

impl<'a> InnerCalls<'a> {
    pub(super) fn of(cx: &'a TurnContext<'a>, context: &'a ToolContext) -> Self {
        Self {
            cx,
            context,
            waiting: VecDeque::new(),
            preparing: FuturesUnordered::new(),
            running: FuturesUnordered::new(),
            rules: Vec::new(),
            count: 0,
        }
    }

    /// Takes what the call wants from its toolbox.
    pub(super) fn take(&mut self, wanted: Use) {
        match wanted {
            Use::Look(offered) => {
                let tools = self.cx.ports.tools.iter().map(|tool| OfferedTool {
                    spec: tool.spec().clone(),
                    scripts: tool.exposure().scripts,
                });
                // Whoever asked may be gone; here and below nobody else wants to know.
                let _ = offered.send(tools.collect());
            }
            Use::Call(call) => self.admit(call),
        }
        self.prepare_next();
    }

    /// Waits until one of them has ended or can begin. `None` when there is none.
    pub(super) async fn next_step(&mut self) -> Option<()> {
        tokio::select! {
            Some(ended) = self.running.next() => {
                self.rules.retain(|(id, _)| *id != ended);
                self.prepare_next();
            }
            Some(prepared) = self.preparing.next() => self.start_or_put_back(prepared),
            else => return None,
        }
        Some(())
    }

    /// Stops those that are left when the call that made them ends, and gives them a moment to take their questions back.
    pub(super) async fn close(&mut self, grace: Duration) {
        self.waiting.clear();
        self.preparing.clear();
        self.context.stop.cancel();
        let ended = async { while self.next_step().await.is_some() {} };
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
        let result = inner.result;
        match check::check(&call, self.cx.ports) {
            Err(text) => drop(result.send(Err(ToolError::Answer(text)))),
            Ok(call) => self.waiting.push_back(Waiting { call, result }),
        }
    }

    /// Prepares the call that comes next, if it may run beside those that run, as far as that can be told before.
    fn prepare_next(&mut self) {
        let rules = self.rules.iter().map(|(_, rule)| rule);
        if !self.preparing.is_empty() || !plan::may_be_joined(rules) {
            return;
        }
        if let Some(Waiting { call, result }) = self.waiting.pop_front() {
            let (cx, stop) = (self.cx, &self.context.stop);
            self.preparing.push(Box::pin(async move {
                let call = plan::prepare(cx, call, stop).await;
                Waiting { call, result }
            }));
        }
    }

    /// Starts a call, or has it wait for those that run. It is prepared anew then: they may change what its plan is made of.
    fn start_or_put_back(&mut self, prepared: Waiting<Ready>) {
        let Waiting {
            call: ready,
            result,
        } = prepared;
        let rules = self.rules.iter().map(|(_, rule)| rule);
        if !plan::may_join(rules, &ready.plan.parallel) {
            let call = ready.unprepared();
            self.waiting.push_front(Waiting { call, result });
            return;
        }
        self.start(ready, result);
        self.prepare_next();
    }

    fn start(&mut self, ready: Ready, result: oneshot::Sender<Result<ToolOutput, ToolError>>) {
        let id = ready.call.id.clone();
        self.rules.push((id.clone(), ready.plan.parallel.clone()));
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
            let _ = result.send(run(cx, ready, maker, context).await);
            id
        }));
    }
}

/// Runs a call that the call `maker` has made.
async fn run(
    cx: &TurnContext<'_>,
    ready: Ready,
    maker: &CallId,
    context: ToolContext,
) -> Result<ToolOutput, ToolError> {
    let name = &ready.call.name;
    let shown = wording::brief(&ready.arguments);
    context.progress.show(format!("{name} {shown}"));
    let context = ToolContext {
        agreement: may_run(cx, &ready, maker, &context.stop).await?,
        ..context
    };
    let work = AssertUnwindSafe(ready.plan.action.run(&context)).catch_unwind();
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
    let decision = decide(cx, ready, asker).await;
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
