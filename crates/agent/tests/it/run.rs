//! Runs a session in a [`World`] and collects what it tells.

use std::sync::Arc;
use std::time::Duration;

use hermes_agent::{
    AgentSettings, CompactionSettings, ConsentPolicy, DelegationSettings, Follower, Limits, Opened,
    Ports, Safety, Session, SessionStart,
};
use hermes_core::{
    Event, FollowFrom, Message, ModeSwitch, Op, Prefix, SessionId, Store as _, TurnEnd,
};
use hermes_testkit::World;
use tokio::task::JoinSet;

pub(crate) struct Running {
    pub(crate) session: Session,
    pub(crate) events: Vec<Event>,
    incoming: Follower,
    tasks: JoinSet<()>,
}

pub(crate) fn settings(world: &World) -> AgentSettings {
    AgentSettings {
        cwd: world.folder.path().to_owned(),
        results_folder: world.folder.path().join("results"),
        consent: ConsentPolicy::Refuse,
        mode: ModeSwitch::default(),
        is_attended: true,
        limits: Limits::default(),
        nested_context: true,
        delegation: DelegationSettings::default(),
        compaction: CompactionSettings::default(),
    }
}

fn ports(world: &World) -> Ports {
    Ports {
        model: world
            .answering
            .clone()
            .unwrap_or_else(|| world.model.clone()),
        store: Arc::new(world.store.clone()),
        clock: world.clock.clone(),
        random: world.random.clone(),
        tools: world.tools.clone(),
        unlisted: Vec::new(),
        tool_source: None,
        checkpoints: world.checkpoints.clone(),
        subagent_model: world.subagent_model.clone().map(|model| model as _),
        compression_model: world.compression_model.clone(),
        safety: Safety::default(),
        references: None,
    }
}

fn prefix(world: &World) -> Prefix {
    let tools = world.tools.iter().map(|tool| tool.spec().clone()).collect();
    Prefix {
        system: "You are under test.".into(),
        tools,
    }
}

pub(crate) async fn start(world: &World) -> Running {
    start_with(world, settings(world)).await
}

pub(crate) async fn start_with(world: &World, settings: AgentSettings) -> Running {
    start_watched(world, settings, Safety::default()).await
}

/// Starts a session with others who look at its calls.
pub(crate) async fn start_watched(
    world: &World,
    settings: AgentSettings,
    safety: Safety,
) -> Running {
    let new = SessionStart::New {
        source: "test".into(),
        title: None,
        prefix: prefix(world),
    };
    Running::begin(
        Session::open(
            Ports {
                safety,
                ..ports(world)
            },
            settings,
            new,
        )
        .await
        .expect("the session opens"),
    )
}

pub(crate) async fn resume(world: &World, id: &SessionId) -> Running {
    resume_with(world, settings(world), id).await
}

pub(crate) async fn resume_with(world: &World, settings: AgentSettings, id: &SessionId) -> Running {
    Running::begin(
        Session::open(ports(world), settings, SessionStart::Resume(id.clone()))
            .await
            .expect("the store answers"),
    )
}

pub(crate) async fn branch(world: &World, of: &SessionId) -> Running {
    let start = SessionStart::Branch {
        of: of.clone(),
        source: "test".into(),
        title: None,
    };
    let opened = Session::open(ports(world), settings(world), start).await;
    Running::begin(opened.expect("the store answers"))
}

/// Says one thing in a new session and waits for the turn's end.
pub(crate) async fn say(world: &World, text: &str) -> (Running, TurnEnd) {
    let mut running = start(world).await;
    running.session.say(text).await;
    let end = running.turn_end().await;
    (running, end)
}

/// The conversation as the store has it.
pub(crate) async fn stored(world: &World, running: &Running) -> Vec<Message> {
    world
        .store
        .load(running.session.id())
        .await
        .expect("the store answers")
        .messages
}

impl Running {
    fn begin(opened: Opened) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(opened.task);
        Self {
            incoming: opened.session.follow(FollowFrom::Turn),
            session: opened.session,
            events: Vec::new(),
            tasks,
        }
    }

    pub(crate) async fn next(&mut self) -> Event {
        let followed = tokio::time::timeout(Duration::from_secs(20), self.incoming.next()).await;
        let followed = followed
            .expect("an event within 20 s")
            .expect("the session is alive");
        let event = followed.into_event().expect("nothing is missed");
        self.events.push(event.clone());
        event
    }

    pub(crate) async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        loop {
            let event = self.next().await;
            if wanted(&event) {
                return event;
            }
        }
    }

    pub(crate) async fn turn_end(&mut self) -> TurnEnd {
        match self
            .until(|event| matches!(event, Event::TurnEnded { .. }))
            .await
        {
            Event::TurnEnded { end, .. } => end,
            _ => unreachable!("waited for the end"),
        }
    }

    pub(crate) async fn send(&self, op: Op) {
        assert!(self.session.send(op).await);
    }

    pub(crate) fn text(&self) -> String {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Stops the process: the task is gone at once, whatever it was doing.
    pub(crate) async fn crash(mut self) {
        self.tasks.shutdown().await;
    }
}

impl Running {
    /// Drops the handle and stops listening; the task goes on.
    pub(crate) fn close(self) -> JoinSet<()> {
        self.tasks
    }
}
