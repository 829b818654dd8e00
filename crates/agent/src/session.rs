//! A session: one task that owns a conversation and takes [`Op`]s one after the other.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::delegation::SUBAGENT_SOURCE;
use hermes_core::{
    ApprovalId, BoxFuture, CancellationToken, Checkpoints, Claim, Clock, EnquiryId, Entry, Event,
    Message, Model, NewSession, Notice, Op, OpenTurn, Part, Person, Prefix, Random, Response,
    ResultStatus, Role, SessionId, SessionRecord, Store, StoreError, Tool, ToolResult, TurnEnd,
    TurnId, UserMessage, Verdict,
};
use tokio::sync::{Semaphore, mpsc};

use crate::approvals::Questions;
use crate::calls::Kept;
use crate::consent::ConsentPolicy;
use crate::delegation::{Background, Crew, DelegationSettings, Report};
use crate::enquiries::Enquiries;
use crate::history::History;
use crate::nested::NestedContext;
use crate::record::Recorder;
use crate::references;
use crate::safety::Safety;
use crate::steering::Steering;
use crate::turn::{TurnContext, TurnStart, run_turn};

/// Ops that wait while a session is busy with one. More means nobody reads the answers.
const OPS_WAITING_MAX: usize = 64;
/// Events a slow surface may be behind before it slows the model's stream down.
const EVENTS_WAITING_MAX: usize = 1_024;
/// Messages that may wait for the turn before them. More is a script run wild; the rest is refused visibly.
const SAYS_WAITING_MAX: usize = 32;
/// A turn that was running this often when the process died is not tried again.
const CRASHES_MAX: u32 = 3;

/// What the agent works with.
#[derive(Clone)]
pub struct Ports {
    pub model: Arc<dyn Model>,
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    /// What a new session tells its model of.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What it can call besides.
    pub unlisted: Vec<Arc<dyn Tool>>,
    /// Where projects are kept before a turn changes them, when they are.
    pub checkpoints: Option<Arc<dyn Checkpoints>>,
    /// Who answers subagents, if not the session's own model.
    pub subagent_model: Option<Arc<dyn Model>>,
    /// Who looks at a call before a person does.
    pub safety: Safety,
}

#[derive(Debug, Clone)]
pub struct AgentSettings {
    pub cwd: PathBuf,
    /// Results too long for the conversation go here.
    pub results_folder: PathBuf,
    pub consent: ConsentPolicy,
    /// Whether a person follows the session and can answer what its calls ask.
    pub is_attended: bool,
    pub limits: Limits,
    /// Whether context files of subdirectories come with the results that touch them.
    pub nested_context: bool,
    pub delegation: DelegationSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model requests per turn. A turn that needs more has lost its way.
    pub steps_max: u32,
    pub result_chars_max: usize,
    pub turn_result_chars_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps_max: 90,
            result_chars_max: 100_000,
            turn_result_chars_max: 200_000,
        }
    }
}

/// How a session begins. A new one is written to the store with its first message, so that none is empty.
pub enum SessionStart {
    New {
        source: String,
        title: Option<String>,
        prefix: Prefix,
    },
    Resume(SessionId),
    /// A copy that goes its own way. The conversation it was copied from stays as it is.
    Branch {
        of: SessionId,
        source: String,
        title: Option<String>,
    },
    /// A session that works for another one. Its name says for which call of it.
    Errand {
        id: SessionId,
        parent: SessionId,
        prefix: Prefix,
    },
}

/// A session that is ready, and the task that runs it. The caller owns the task; when it is dropped, the session stops.
pub struct Opened {
    pub session: Session,
    pub events: mpsc::Receiver<Event>,
    pub task: BoxFuture<'static, ()>,
    /// What there was before, when it was resumed or branched off.
    pub resumed: Option<Resumed>,
}

pub struct Resumed {
    pub record: SessionRecord,
    /// To be let go once it is seen: what is said next would otherwise be said in a copy.
    pub messages: Arc<Vec<Message>>,
    /// A turn was cut short by a crash; it goes on by itself when the task runs.
    pub has_open_turn: bool,
}

/// A door to a session. The session ends when the last door is closed and its work is done.
#[derive(Clone)]
pub struct Session {
    id: SessionId,
    ops: mpsc::Sender<Op>,
}

impl Session {
    /// Opens a session. Nothing is asked and nothing runs until the task does.
    pub async fn open(
        ports: Ports,
        settings: AgentSettings,
        start: SessionStart,
    ) -> Result<Opened, StoreError> {
        let (ops, ops_waiting) = mpsc::channel(OPS_WAITING_MAX);
        let (events, events_waiting) = mpsc::channel(EVENTS_WAITING_MAX);
        let mut task = SessionTask::new(ports, settings, events);
        let resumed = match start {
            SessionStart::New {
                source,
                title,
                prefix,
            } => {
                task.begin_new(source, title, prefix);
                None
            }
            SessionStart::Errand { id, parent, prefix } => {
                task.begin_errand(id, parent, prefix);
                None
            }
            SessionStart::Resume(id) => Some(task.resume(id).await?),
            SessionStart::Branch { of, source, title } => {
                Some(task.branch(of, source, title).await?)
            }
        };
        let session = Self {
            id: task.recorder.session().clone(),
            ops,
        };
        Ok(Opened {
            session,
            events: events_waiting,
            task: Box::pin(task.run(ops_waiting)),
            resumed,
        })
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Sends an op. Returns false when the session is gone.
    pub async fn send(&self, op: Op) -> bool {
        self.ops.send(op).await.is_ok()
    }

    pub async fn say(&self, text: impl Into<String>) -> bool {
        self.send(Op::Say(UserMessage::text(text))).await
    }

    pub async fn interrupt(&self) -> bool {
        self.send(Op::Interrupt).await
    }

    pub async fn answer(&self, approval: ApprovalId, verdict: Verdict) -> bool {
        self.send(Op::Answer { approval, verdict }).await
    }

    pub async fn respond(&self, enquiry: EnquiryId, response: Response) -> bool {
        self.send(Op::Respond { enquiry, response }).await
    }
}

struct SessionTask {
    ports: Ports,
    settings: AgentSettings,
    events: mpsc::Sender<Event>,
    recorder: Recorder,
    history: History,
    /// What to write with the first message.
    unwritten: Option<Unwritten>,
    claim: Option<Claim>,
    open_turn: Option<OpenTurn>,
    queue: VecDeque<UserMessage>,
    steering: Steering,
    questions: Questions,
    enquiries: Enquiries,
    nested: NestedContext,
    kept: Kept,
    /// Room for subagents.
    permits: Arc<Semaphore>,
    background: Background,
    /// The store refused something: what is in memory may be ahead of it.
    is_stale: bool,
}

/// What a turn begins with.
enum Input {
    Said(UserMessage),
    /// What subagents found that ran in the background.
    Reported(Report),
}

/// A session that is not in the store yet.
struct Unwritten {
    row: NewSession,
    inherited: Vec<Entry>,
}

impl SessionTask {
    fn new(ports: Ports, settings: AgentSettings, events: mpsc::Sender<Event>) -> Self {
        let id = SessionId::generate(ports.clock.now(), &ports.random);
        Self {
            recorder: Recorder::new(ports.store.clone(), ports.clock.clone(), id),
            nested: NestedContext::below(&settings.cwd, settings.nested_context),
            history: History::new(Prefix::default(), Vec::new()),
            unwritten: None,
            claim: None,
            open_turn: None,
            queue: VecDeque::new(),
            steering: Steering::default(),
            questions: Questions::default(),
            enquiries: Enquiries::default(),
            kept: Kept::default(),
            permits: Arc::new(Semaphore::new(settings.delegation.subagents_max)),
            background: Background::default(),
            is_stale: false,
            ports,
            settings,
            events,
        }
    }

    fn begin_new(&mut self, source: String, title: Option<String>, prefix: Prefix) {
        self.history = History::new(prefix.clone(), Vec::new());
        self.unwritten = Some(Unwritten {
            row: self.row(source, title, prefix),
            inherited: Vec::new(),
        });
    }

    fn begin_errand(&mut self, id: SessionId, parent: SessionId, prefix: Prefix) {
        self.recorder = self.recorder_of(id);
        self.history = History::new(prefix.clone(), Vec::new());
        let row = self.row(SUBAGENT_SOURCE.to_owned(), None, prefix);
        self.unwritten = Some(Unwritten {
            row: NewSession {
                parent: Some(parent),
                ..row
            },
            inherited: Vec::new(),
        });
    }

    /// Begins a session with what another has said, in the same prefix, so that caches go on to serve it.
    async fn branch(
        &mut self,
        of: SessionId,
        source: String,
        title: Option<String>,
    ) -> Result<Resumed, StoreError> {
        let parent = self.ports.store.load(&of).await?;
        if parent.open_turn.is_some() {
            return Err(StoreError::Refused {
                detail: format!("session `{of}` has a turn that has not ended"),
            });
        }
        let row = self.row(source, title, parent.prefix.clone());
        self.unwritten = Some(Unwritten {
            row: NewSession {
                parent: Some(of),
                ..row
            },
            inherited: inherited(&parent.messages, &self.ports),
        });
        self.history = History::new(parent.prefix, parent.messages);
        Ok(Resumed {
            record: parent.record,
            messages: self.history.share(),
            has_open_turn: false,
        })
    }

    fn recorder_of(&self, session: SessionId) -> Recorder {
        let (store, clock) = (self.ports.store.clone(), self.ports.clock.clone());
        Recorder::new(store, clock, session)
    }

    fn row(&self, source: String, title: Option<String>, prefix: Prefix) -> NewSession {
        NewSession {
            id: self.recorder.session().clone(),
            created: self.ports.clock.now(),
            source,
            title,
            cwd: Some(self.settings.cwd.clone()),
            model: self.ports.model.name(),
            parent: None,
            prefix,
        }
    }

    async fn resume(&mut self, id: SessionId) -> Result<Resumed, StoreError> {
        self.recorder = self.recorder_of(id.clone());
        self.claim = Some(self.ports.store.claim(&id).await?);
        let loaded = self.ports.store.load(&id).await?;
        self.history = History::new(loaded.prefix, loaded.messages);
        self.open_turn = loaded.open_turn;
        Ok(Resumed {
            record: loaded.record,
            messages: self.history.share(),
            has_open_turn: self.open_turn.is_some(),
        })
    }

    /// Takes ops until every door is closed and the work is done.
    async fn run(mut self, mut ops: mpsc::Receiver<Op>) {
        self.take_up_background();
        loop {
            if let Some(open) = self.open_turn.take() {
                self.take_up(open, &mut ops).await;
                continue;
            }
            let Some(input) = self.next_input(&mut ops).await else {
                return self.background.close().await;
            };
            self.begin_turn(input, &mut ops).await;
        }
    }

    /// Goes on waiting for subagents that this conversation sent out before it was closed, where a person follows it.
    fn take_up_background(&mut self) {
        if !self.settings.is_attended {
            return;
        }
        let crew = |call| Crew {
            parent: self.recorder.session().clone(),
            ports: self.ports.clone(),
            settings: self.settings.clone(),
            permits: Arc::clone(&self.permits),
            events: self.events.clone(),
            call,
            person: Person::default(),
        };
        self.background.take_up(crew, self.history.messages());
    }

    /// Returns what to begin a turn with, or nothing when every door is closed.
    async fn next_input(&mut self, ops: &mut mpsc::Receiver<Op>) -> Option<Input> {
        loop {
            if let Some(message) = self.queue.pop_front() {
                return Some(Input::Said(message));
            }
            if let Some(report) = self.background.next_report() {
                return Some(Input::Reported(report));
            }
            let op = match ops.try_recv() {
                Ok(op) => op,
                Err(_) => {
                    self.tell(Event::Idle).await;
                    tokio::select! {
                        op = ops.recv() => op?,
                        () = self.background.reported() => continue,
                    }
                }
            };
            match op {
                Op::Say(message) | Op::Steer(message) => self.queue.push_back(message),
                Op::Rewind { turns } => {
                    self.rewind(turns).await;
                }
                Op::Retry => {
                    let again = self.rewind(1).await;
                    self.queue.extend(again);
                }
                Op::Interrupt => self.background.interrupt(),
                Op::Answer { .. } | Op::Respond { .. } => {}
            }
        }
    }

    /// Takes the last turns back, and returns what the user had said in the first of them.
    async fn rewind(&mut self, turns: u32) -> Option<UserMessage> {
        let refusal = match self.try_rewind(turns).await {
            Ok(Some((turns, message))) => {
                let said = Message::from(message.clone()).text();
                self.tell(Event::Rewound { turns, said }).await;
                return Some(message);
            }
            Ok(None) => "there is nothing to take back".into(),
            Err(error) => format!("{error}; {}", error.hint()),
        };
        let notice = Notice::NotTaken { reason: refusal };
        self.tell(Event::Notice { notice }).await;
        None
    }

    /// Rewinds in the store first: what is on disk is what happened.
    async fn try_rewind(&mut self, turns: u32) -> Result<Option<(u32, UserMessage)>, StoreError> {
        if self.is_stale {
            self.reload().await?;
        }
        let Some((turns, rest)) = self.history.before_last(turns) else {
            return Ok(None);
        };
        match &mut self.unwritten {
            Some(unwritten) => {
                let kept = unwritten.inherited.len() - turns as usize;
                unwritten.inherited.truncate(kept);
            }
            None => {
                self.recorder.add(Entry::Rewound { turns });
                if let Err(error) = self.recorder.commit().await {
                    self.is_stale = true;
                    return Err(error);
                }
            }
        }
        Ok(Some((turns, as_said(self.history.cut(rest)))))
    }

    async fn begin_turn(&mut self, input: Input, ops: &mut mpsc::Receiver<Op>) {
        let turn = TurnId::generate(self.ports.clock.now(), &self.ports.random);
        if self.is_stale {
            if let Err(error) = self.reload().await {
                return self.tell_broken(turn, &error).await;
            }
            if self.open_turn.is_some() {
                return self.put_back(input);
            }
        }
        let message = self.message_of(input).await;
        if let Err(error) = self.record_start(&turn, &message).await {
            return self.tell_broken(turn, &error).await;
        }
        self.history.push(message);
        self.tell(Event::TurnStarted { turn: turn.clone() }).await;
        self.finish_turn(turn, TurnStart::default(), ops).await;
    }

    fn put_back(&mut self, input: Input) {
        match input {
            Input::Said(message) => self.queue.push_front(message),
            Input::Reported(report) => self.background.put_back(report),
        }
    }

    async fn message_of(&self, input: Input) -> Message {
        match input {
            // What a model wrote is taken by the letter.
            Input::Said(message) if self.settings.delegation.depth > 0 => message.into(),
            Input::Said(message) => self.with_references(message).await,
            Input::Reported(report) => {
                let subagents = report.subagents();
                let notice = Notice::SubagentsDone { subagents };
                self.tell(Event::Notice { notice }).await;
                report.message().into()
            }
        }
    }

    /// Makes the user's message durable; the first one with its session.
    async fn record_start(&mut self, turn: &TurnId, message: &Message) -> Result<(), StoreError> {
        let started = Entry::TurnStarted {
            turn: turn.clone(),
            message: message.clone(),
        };
        let Some(Unwritten { row, inherited }) = &self.unwritten else {
            self.recorder.add(started);
            return self.recorder.commit().await;
        };
        if self.claim.is_none() {
            self.claim = Some(self.ports.store.claim(&row.id).await?);
        }
        let entries = inherited.iter().cloned().chain([started]).collect();
        self.ports.store.create(row.clone(), entries).await?;
        self.unwritten = None;
        Ok(())
    }

    /// Goes on with a turn that a crash cut short, unless it was the turn that crashed us.
    async fn take_up(&mut self, open: OpenTurn, ops: &mut mpsc::Receiver<Op>) {
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
        })
        .await;
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
            },
            ops,
        )
        .await;
    }

    async fn finish_turn(&mut self, turn: TurnId, start: TurnStart, ops: &mut mpsc::Receiver<Op>) {
        match self.drive_turn(&turn, start, ops).await {
            Ok(end) => self.end_turn(turn, end).await,
            Err(error) => self.tell_broken(turn, &error).await,
        }
    }

    /// Runs a turn to its end while ops keep coming in.
    async fn drive_turn(
        &mut self,
        turn: &TurnId,
        start: TurnStart,
        ops: &mut mpsc::Receiver<Op>,
    ) -> Result<TurnEnd, StoreError> {
        let stop = CancellationToken::new();
        let cx = TurnContext {
            ports: &self.ports,
            settings: &self.settings,
            recorder: &self.recorder,
            turn: turn.clone(),
            stop: stop.clone(),
            events: &self.events,
            steering: &self.steering,
            questions: &self.questions,
            enquiries: &self.enquiries,
            nested: &self.nested,
            kept: &self.kept,
            permits: &self.permits,
            launcher: self.background.launcher(),
        };
        let running = run_turn(&cx, &mut self.history, start);
        tokio::pin!(running);
        let mut doors_open = true;
        loop {
            let op = tokio::select! {
                biased;
                op = ops.recv(), if doors_open => op,
                () = self.background.tend() => continue,
                end = &mut running => return end,
            };
            let answer = match op {
                Some(Op::Interrupt) => {
                    stop.cancel(); // the turn still ends by itself, with results for its calls
                    forget(&mut self.queue, &self.steering)
                }
                Some(Op::Say(message)) => wait_in_line(&mut self.queue, message),
                Some(Op::Steer(message)) => self.steering.push(message),
                Some(Op::Rewind { .. } | Op::Retry) => Some(Notice::NotTaken {
                    reason: "a turn runs; stop it first".into(),
                }),
                Some(Op::Answer { approval, verdict }) => {
                    let taken = self.questions.answer(&approval, verdict);
                    taken.err().map(|reason| Notice::NotTaken { reason })
                }
                Some(Op::Respond { enquiry, response }) => {
                    let taken = self.enquiries.respond(&enquiry, response);
                    taken.err().map(|reason| Notice::NotTaken { reason })
                }
                None => {
                    doors_open = false;
                    None
                }
            };
            if let Some(notice) = answer {
                let _ = self.events.send(Event::Notice { notice }).await;
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
            return self.tell_broken(turn, &error).await;
        }
        if let Some(closing) = closing {
            self.history.push(closing);
        }
        let late = self.steering.take();
        if !late.is_empty() {
            self.tell(Event::Notice {
                notice: Notice::SteeringQueued,
            })
            .await;
            late.into_iter()
                .rev()
                .for_each(|message| self.queue.push_front(message));
        }
        self.tell(Event::TurnEnded { turn, end }).await;
    }

    async fn tell_broken(&mut self, turn: TurnId, error: &StoreError) {
        self.is_stale = true;
        let end = TurnEnd::Broken {
            error: error.to_string(),
            hint: error.hint(),
        };
        self.tell(Event::TurnEnded { turn, end }).await;
    }

    /// Goes back to what the store has: what is in memory may be ahead of it.
    async fn reload(&mut self) -> Result<(), StoreError> {
        if self.unwritten.is_none() {
            let loaded = self.ports.store.load(self.recorder.session()).await?;
            self.history = History::new(loaded.prefix, loaded.messages);
            self.open_turn = loaded.open_turn;
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
        let text = message.text();
        if !text.contains('@') {
            return message;
        }
        let cwd = self.settings.cwd.clone();
        let attaching = tokio::task::spawn_blocking(move || references::attach(&text, &cwd));
        let attached = attaching
            .await
            .unwrap_or_else(|error| references::Attached {
                text: String::new(),
                warnings: vec![format!("the references could not be read: {error}")],
            });
        for text in attached.warnings {
            self.tell(Event::Notice {
                notice: Notice::Context { text },
            })
            .await;
        }
        if !attached.text.is_empty() {
            message
                .parts
                .push(Part::text(format!("\n\n{}", attached.text)));
        }
        message
    }

    async fn tell(&self, event: Event) {
        let _ = self.events.send(event).await;
    }
}

/// Returns a conversation as entries of a branch: each turn begins with what the user said.
fn inherited(messages: &[Message], ports: &Ports) -> Vec<Entry> {
    let mut turns: Vec<Vec<Message>> = Vec::new();
    for message in messages {
        match turns.last_mut() {
            Some(turn) if message.role != Role::User => turn.push(message.clone()),
            _ => turns.push(vec![message.clone()]),
        }
    }
    let entry = |messages| Entry::Inherited {
        turn: TurnId::generate(ports.clock.now(), &ports.random),
        messages,
    };
    turns.into_iter().map(entry).collect()
}

/// Returns a message without the files that its references brought along: they are read anew.
fn as_said(message: Message) -> UserMessage {
    let mut has_words = false;
    let mut parts = message.parts;
    parts.retain(|part| match part {
        Part::Text { .. } => !std::mem::replace(&mut has_words, true),
        _ => true,
    });
    UserMessage { parts }
}

/// Puts a message behind those that wait already, unless there are too many.
fn wait_in_line(queue: &mut VecDeque<UserMessage>, message: UserMessage) -> Option<Notice> {
    if queue.len() < SAYS_WAITING_MAX {
        queue.push_back(message);
        return None;
    }
    let reason = format!("{SAYS_WAITING_MAX} messages wait already");
    Some(Notice::NotTaken { reason })
}

/// Forgets everything that waits: who stops the agent does not want it to go on with the next thing.
fn forget(queue: &mut VecDeque<UserMessage>, steering: &Steering) -> Option<Notice> {
    let messages = queue.len() + steering.take().len();
    queue.clear();
    (messages > 0).then_some(Notice::Forgotten { messages })
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
