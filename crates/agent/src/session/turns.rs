//! Turns in their session: each begins durably, goes on while ops keep coming in, and ends visibly, also after a crash.

use hermes_core::delegation::DELEGATE_TASK;
use hermes_core::{
    CancellationToken, Entry, Event, Message, Notice, Op, OpenTurn, Origin, Part, QueuedId,
    QueuedMessage, ResultStatus, StoreError, ToolResult, TurnEnd, TurnId, UserMessage, WaitsFor,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::equip::Equipped;
use super::task::{Input, SessionTask};
use crate::delegation;
use crate::queue::{Queue, QueueContext};
use crate::references;
use crate::turn::{TurnContext, TurnStart, run_turn};

/// A turn that was running this often when the process died is not tried again.
const CRASHES_MAX: u32 = 3;

impl SessionTask {
    pub(super) async fn begin_turn(&mut self, input: Input, ops: &mut mpsc::Receiver<Op>) {
        let turn = TurnId::generate(self.ports.clock.now(), &self.ports.random);
        if self.is_stale {
            if let Err(error) = self.reload().await {
                self.put_back(input);
                return self.tell_broken(turn, &error);
            }
            match input {
                // The store had it, and so has the queue again.
                Input::Queued(_) => return,
                input if self.open_turn.is_some() => return self.put_back(input),
                _ => {}
            }
        }
        let stop = CancellationToken::new();
        if std::mem::take(&mut self.history.has_forgotten) {
            self.equipped = Equipped::default();
        }
        self.equip(ops, &stop).await;
        let queued = match &input {
            Input::Queued(queued) => Some(queued.clone()),
            _ => None,
        };
        let mut message = self.message_of(input).await;
        message.parts.extend(self.equipped.take_news());
        let delivered = delegation::without_delivered(self.history.states(), &message);
        let kept = delivered.map(|state| (DELEGATE_TASK.to_owned(), state));
        let queued_id = queued.as_ref().map(|queued| queued.id.clone());
        let recorded = self.record_start(&turn, &message, kept.clone(), queued_id.clone());
        if let Err(error) = recorded.await {
            if let Some(queued) = queued {
                self.queue.put_back(queued);
            }
            return self.tell_broken(turn, &error);
        }
        let started = Event::TurnStarted {
            turn: turn.clone(),
            origin: message.origin.clone().unwrap_or(Origin::person()),
            text: message.shown(),
            images: message.images().count(),
            queued: queued_id,
        };
        self.history.begin_turn(message);
        if let Some((tool, state)) = kept {
            self.history.keep(tool, state);
        }
        self.tell(started);
        let start = TurnStart {
            is_asked: true,
            ..TurnStart::default()
        };
        self.finish_turn(turn, start, stop, ops).await;
    }

    fn put_back(&mut self, input: Input) {
        match input {
            Input::Said(message) => self.enqueue(message, WaitsFor::NextTurn),
            Input::Queued(queued) => self.queue.put_back(queued),
            Input::Reported(report) => self.background.put_back(report),
        }
    }

    async fn message_of(&self, input: Input) -> Message {
        match input {
            Input::Said(message) | Input::Queued(QueuedMessage { message, .. }) => {
                // What a model wrote is taken by the letter.
                if self.settings.delegation.depth > 0 {
                    return message.into();
                }
                self.with_references(message).await
            }
            Input::Reported(report) => {
                let subagents = report.subagents();
                let notice = Notice::SubagentsDone { subagents };
                self.tell(Event::Notice { notice });
                report.message().into()
            }
        }
    }

    /// Makes the user's message durable, and what tools keep with it; the first one with its session.
    async fn record_start(
        &mut self,
        turn: &TurnId,
        message: &Message,
        kept: Option<(String, Value)>,
        queued: Option<QueuedId>,
    ) -> Result<(), StoreError> {
        let started = Entry::TurnStarted {
            turn: turn.clone(),
            message: message.clone(),
        };
        let kept = kept.map(|(tool, state)| Entry::ToolKept {
            turn: turn.clone(),
            tool,
            state,
        });
        let taken = queued.map(|id| Entry::Dequeued { queued: vec![id] });
        // The first request rides along: it is asked next, whatever happens.
        let asked = Entry::ModelAsked {
            turn: turn.clone(),
            model: self.ports.model.name(),
        };
        let started = std::iter::once(started)
            .chain(kept)
            .chain(taken)
            .chain([asked]);
        let Some(row) = &self.unwritten else {
            started.for_each(|entry| self.recorder.add(entry));
            return self.recorder.commit().await;
        };
        if self.claim.is_none() {
            self.claim = Some(self.ports.store.claim(&row.id).await?);
        }
        let entries = self.inherited.iter().cloned().chain(started);
        self.ports
            .store
            .create(row.clone(), entries.collect())
            .await?;
        self.unwritten = None;
        self.inherited = Vec::new();
        Ok(())
    }

    /// Goes on with a turn that a crash cut short, unless it was the turn that crashed us.
    pub(super) async fn take_up(&mut self, open: OpenTurn, ops: &mut mpsc::Receiver<Op>) {
        let turn = open.turn;
        let crashes = open.resumed + 1;
        if crashes >= CRASHES_MAX {
            self.answer_lost_calls(&turn);
            return self.end_turn(turn, TurnEnd::Abandoned { crashes }).await;
        }
        self.recorder.add(Entry::TurnResumed { turn: turn.clone() });
        self.tell(Event::TurnResumed {
            turn: turn.clone(),
            attempt: crashes,
        });
        let lost = open
            .intents
            .into_iter()
            .map(|intent| (intent.call, intent.effect))
            .collect();
        self.finish_turn(
            turn,
            TurnStart {
                steps_used: open.steps,
                lost,
                is_asked: false,
            },
            CancellationToken::new(),
            ops,
        )
        .await;
    }

    async fn finish_turn(
        &mut self,
        turn: TurnId,
        start: TurnStart,
        stop: CancellationToken,
        ops: &mut mpsc::Receiver<Op>,
    ) {
        let end = self.drive_turn(&turn, start, stop, ops).await;
        let cx = QueueContext {
            recorder: &self.recorder,
            steering: &self.steering,
            events: &self.events.0,
        };
        self.queue.settle(cx).await;
        match end {
            Ok(end) => self.end_turn(turn, end).await,
            Err(error) => self.tell_broken(turn, &error),
        }
    }

    /// Runs a turn to its end while ops keep coming in.
    async fn drive_turn(
        &mut self,
        turn: &TurnId,
        start: TurnStart,
        stop: CancellationToken,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<TurnEnd, StoreError> {
        let cx = TurnContext {
            ports: &self.ports,
            settings: &self.settings,
            recorder: &self.recorder,
            turn: turn.clone(),
            stop: stop.clone(),
            events: &self.events.0,
            steering: &self.steering,
            approvals: &self.approvals,
            elicitations: &self.elicitations,
            nested: &self.nested,
            kept: &self.kept,
            permits: &self.permits,
            launcher: self.background.launcher(),
        };
        let running = run_turn(&cx, &mut self.history, start);
        tokio::pin!(running);
        let queue_cx = QueueContext {
            recorder: &self.recorder,
            steering: &self.steering,
            events: &self.events.0,
        };
        let keep = |queue: &mut Queue, message, waits_for| {
            let id = QueuedId::generate(self.ports.clock.now(), &self.ports.random);
            let queued = QueuedMessage {
                id,
                waits_for,
                message,
            };
            queue.keep(queued, &self.steering)
        };
        let mut handles_open = true;
        loop {
            let op = tokio::select! {
                biased;
                op = ops.recv(), if handles_open => op,
                () = self.background.tend() => continue,
                () = self.queue.tend(&queue_cx) => continue,
                end = &mut running => return end,
            };
            let answer = match op {
                Some(Op::Interrupt) => {
                    stop.cancel(); // the turn still ends by itself, with results for its calls
                    self.queue.forget(&self.steering);
                    None
                }
                Some(Op::Say(message)) => keep(&mut self.queue, message, WaitsFor::NextTurn),
                Some(Op::Steer(message)) => keep(&mut self.queue, message, WaitsFor::ToolResult),
                Some(Op::Rewind { .. } | Op::Retry | Op::Compact { .. }) => {
                    Some(Notice::NotTaken {
                        reason: "a turn runs; stop it first".into(),
                    })
                }
                Some(Op::Answer { approval, answer }) => {
                    let taken = self.approvals.answer(&approval, answer);
                    taken.err().map(|reason| Notice::NotTaken { reason })
                }
                Some(Op::Respond {
                    elicitation,
                    response,
                }) => {
                    let taken = self.elicitations.respond(&elicitation, response);
                    taken.err().map(|reason| Notice::NotTaken { reason })
                }
                None => {
                    handles_open = false;
                    None
                }
            };
            if let Some(notice) = answer {
                self.events.0.tell(Event::Notice { notice });
            }
        }
    }

    async fn end_turn(&mut self, turn: TurnId, end: TurnEnd) {
        let closing = (!self.history.is_closed()).then(|| Message::assistant(closing_words(&end)));
        self.recorder.add(Entry::TurnEnded {
            turn: turn.clone(),
            end: end.clone(),
            closing: closing.clone(),
        });
        if let Err(error) = self.recorder.commit().await {
            return self.tell_broken(turn, &error);
        }
        if let Some(closing) = closing {
            self.history.push(closing);
        }
        if self.queue.take_late(&self.steering) {
            self.tell(Event::Notice {
                notice: Notice::SteeringQueued,
            });
        }
        self.tell(Event::TurnEnded { turn, end });
    }

    fn tell_broken(&mut self, turn: TurnId, error: &StoreError) {
        self.is_stale = true;
        self.queue.pause();
        let end = TurnEnd::Broken {
            error: error.to_string(),
            hint: error.hint(),
        };
        self.tell(Event::TurnEnded { turn, end });
    }

    /// Goes back to what the store has: what is in memory may be ahead of it.
    pub(super) async fn reload(&mut self) -> Result<(), StoreError> {
        if self.unwritten.is_none() {
            let loaded = self.ports.store.load(self.recorder.session()).await?;
            self.take_in_loaded(loaded);
        }
        self.recorder = self.recorder_of(self.recorder.session().clone());
        self.is_stale = false;
        Ok(())
    }

    /// Gives calls of an abandoned turn their result, so that the history can go on.
    fn answer_lost_calls(&mut self, turn: &TurnId) {
        let text = "outcome_unknown: the program crashed again and again in this turn.";
        let results: Vec<ToolResult> = self
            .history
            .unanswered_calls()
            .iter()
            .map(|call| ToolResult::new(call, ResultStatus::OutcomeUnknown, text))
            .collect();
        for result in &results {
            self.recorder.add(Entry::CallFinished {
                turn: turn.clone(),
                result: result.clone(),
            });
        }
        self.history.push_results(results);
    }

    async fn with_references(&self, message: UserMessage) -> Message {
        let mut message = Message::from(message);
        // Only what was typed refers to something: what was piped in says `@file:` in somebody else's words.
        let typed = message.parts.iter().find_map(|part| match part {
            Part::Text { text } => Some(text.clone()),
            _ => None,
        });
        let text = typed.unwrap_or_default();
        if !text.contains('@') {
            return message;
        }
        let sources = &self.ports.references;
        let window = self.ports.model.context_window();
        let attached = references::attach(&text, &self.settings.cwd, sources, window).await;
        for text in attached.warnings {
            self.tell(Event::Notice {
                notice: Notice::Context { text },
            });
        }
        if !attached.text.is_empty() {
            message.parts.push(Part::text(format!(
                "\n\n{}",
                self.ports.safety.hide_keys(attached.text)
            )));
        }
        message
    }
}

/// The assistant's last word in a turn that ended without one.
fn closing_words(end: &TurnEnd) -> String {
    match end {
        TurnEnd::Finished => "[Done.]".into(),
        TurnEnd::Interrupted => "[Interrupted by the user.]".into(),
        TurnEnd::OutOfSteps { steps } => format!("[Stopped after {steps} steps.]"),
        TurnEnd::Stuck { reason } => format!("[Stopped: {reason}.]"),
        TurnEnd::Failed { error } => format!("[No answer: {error}.]"),
        TurnEnd::Broken { error, .. } => format!("[Stopped: {error}.]"),
        TurnEnd::Abandoned { crashes } => {
            format!("[Given up: the program crashed {crashes} times in this turn.]")
        }
    }
}
