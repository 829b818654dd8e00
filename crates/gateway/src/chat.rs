//! Chat platforms: what they say becomes turns, and what turns say goes back, exactly once.
//!
//! ```text
//! channel ─▶ inlet (who may ask) ─▶ inbox ─▶ lane (one per conversation) ─▶ session
//!    ▲                                                                        │ events
//!    └──────────── delivery (one per channel) ◀─ outbox ◀─ reply ◀────────────┘
//! ```
//!
//! Nothing here knows a platform by name: what differs is in [`hermes_core::ChannelFacts`]. Start at [`ChatGateway`].

pub mod access;
mod called;
pub mod delivery;
mod directory;
pub mod files;
pub mod identity;
mod inlet;
pub mod key;
mod lane;
mod lanes;
pub mod manner;
mod media;
mod mirror;
mod observed;
mod outbound;
pub mod owner;
pub mod pairing;
mod ports;
mod reply;
mod reset;
mod room;
pub mod supervisor;
mod words;
pub mod work;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use hermes_core::command::{self, Surface};
use hermes_core::{
    Address, Body, BoxFuture, CancellationToken, Channel, ChatCommand, Inlet, Stage, StoreError,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use self::access::PlatformAccess;
use self::delivery::Delivery;
use self::directory::Directory;
use self::identity::IdentityLock;
use self::inlet::ChannelInlet;
use self::lanes::{ChannelParts, Lanes, LeftTurn};
use self::manner::Manner;
pub use self::outbound::ToChats;
pub use self::ports::{
    Aliases, ChatCommands, ChatPorts, ChatSettings, CommandAnswer, CommandLine, Limits,
    LiveSettings, Then, WhenBusy,
};
pub use self::reset::{ResetPolicy, ResetReason, ResetRule};
use self::supervisor::{ChannelState, ChannelStatus, Supervisor};
use crate::hooks::Hooks;
use crate::presence::Holder;
use crate::shutdown::Shutdown;
use crate::steady::steadily;

/// For what a channel has on its way out, when the settings want it no more.
const RETIRING: Duration = Duration::from_secs(10);
/// How often lanes are looked for that nobody woke: another process may have put something there.
const SWEEP: Duration = Duration::from_secs(2);
/// How often what is old is forgotten.
const CLEANING: Duration = Duration::from_secs(600);
/// Entries of the outbox that are looked at when the gateway starts.
const LEFT_MAX: usize = 100_000;
/// How long updates are kept word for word once they are answered, and sent messages at all: long enough to find out
/// what went wrong.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How soon a platform that was connected is told which commands to suggest, and how often that is tried.
const MENU_LOOK: Duration = Duration::from_secs(1);
const MENU_RETRY: Duration = Duration::from_secs(300);

/// A channel, and who may use it.
pub struct ChatChannel {
    pub channel: Arc<dyn Channel>,
    pub access: PlatformAccess,
    pub manner: Manner,
    /// The chat for what has no other place.
    pub home: Option<Address>,
}

/// All chat platforms of a gateway.
pub struct ChatGateway {
    lanes: Arc<Lanes>,
    identities: Option<(PathBuf, Holder)>,
    changes: (mpsc::Sender<Change>, mpsc::Receiver<Change>),
    shutdown: Shutdown,
}

/// Looks at the chat platforms of a gateway that runs, and changes them.
#[derive(Clone)]
pub struct ChatControl {
    lanes: Arc<Lanes>,
    changes: mpsc::Sender<Change>,
}

/// What the settings want otherwise than before.
struct Change {
    settings: ChatSettings,
    /// Names of platforms that are not wanted any more, or otherwise.
    removed: Vec<&'static str>,
    added: Vec<ChatChannel>,
    done: oneshot::Sender<()>,
}

impl ChatControl {
    /// What each channel is doing.
    pub fn status(&self) -> Vec<ChannelStatus> {
        let channels = self.lanes.channels.now();
        let status = channels.iter().map(|parts| parts.supervisor.status());
        status.collect()
    }

    /// Conversations that something happens in.
    pub fn lanes_count(&self) -> usize {
        self.lanes.running_count()
    }

    /// Takes over new settings, and lets channels go and come. Turns that run go on, and so does what is on its way out.
    pub async fn change(
        &self,
        settings: ChatSettings,
        removed: Vec<&'static str>,
        added: Vec<ChatChannel>,
    ) {
        let (done, is_done) = oneshot::channel();
        let change = Change {
            settings,
            removed,
            added,
            done,
        };
        // A gateway that ends reads its settings when it begins again.
        if self.changes.send(change).await.is_ok() {
            _ = is_done.await;
        }
    }
}

/// A channel with its tasks.
struct RunningChannel {
    parts: Arc<ChannelParts>,
    tasks: JoinSet<()>,
}

impl RunningChannel {
    /// Ends it: it receives nothing more at once, and what is on its way out comes to its end.
    async fn retire(mut self, successor: Option<&Arc<ChannelParts>>) {
        let successor = successor.map(|parts| Arc::clone(&parts.delivery));
        self.parts.retired.cancel();
        self.parts.delivery.retire(successor);
        let ended = timeout(RETIRING, async {
            while self.tasks.join_next().await.is_some() {}
        });
        if ended.await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}

impl ChatGateway {
    pub fn new(ports: ChatPorts, channels: Vec<ChatChannel>, shutdown: Shutdown) -> Self {
        let ports = Arc::new(ports);
        let parts = channels.into_iter().map(|one| parts(&ports, one)).collect();
        Self {
            lanes: Arc::new(Lanes::new(ports, parts, shutdown.clone())),
            identities: None,
            changes: mpsc::channel(1),
            shutdown,
        }
    }

    /// Receives with an account only while no other process on this machine does: their locks are in this folder.
    pub fn with_identity_locks(self, folder: PathBuf, holder: Holder) -> Self {
        Self {
            identities: Some((folder, holder)),
            ..self
        }
    }

    /// Hooks that hear of what happens in chats.
    pub fn with_hooks(self, hooks: Arc<dyn Hooks>) -> Self {
        _ = self.lanes.hooks.set(hooks);
        self
    }

    /// The way to these chats for what no turn there began.
    pub fn outbound(&self) -> ToChats {
        ToChats::new(Arc::clone(&self.lanes.channels), &self.lanes.ports)
    }

    /// Only sends what waits to be sent, for as long as it is let: for a process that is no gateway, while none runs.
    pub async fn deliver(&self) {
        let channels = self.lanes.channels.now();
        let deliveries = channels
            .iter()
            .map(|parts| parts.delivery.run(&self.shutdown));
        futures_util::future::join_all(deliveries).await;
    }

    pub fn control(&self) -> ChatControl {
        ChatControl {
            lanes: Arc::clone(&self.lanes),
            changes: self.changes.0.clone(),
        }
    }

    /// Serves until the gateway ends: what runs then comes to its end, and what waits is found by the next process.
    pub async fn run(mut self) {
        let (_, none) = mpsc::channel(1);
        let mut changes = std::mem::replace(&mut self.changes.1, none);
        let mut running = Vec::new();
        for parts in self.lanes.channels.now() {
            running.push(self.begin(parts).await);
        }
        let sweeping = steadily("lanes", || self.sweep());
        tokio::pin!(sweeping);
        loop {
            tokio::select! {
                () = &mut sweeping => {}
                () = self.shutdown.draining() => break,
                Some(change) = changes.recv() => running = self.apply(change, running).await,
            }
        }
        self.lanes.ended().await;
        self.flush().await;
        for mut channel in running {
            channel.tasks.shutdown().await;
        }
    }

    /// Begins what a channel needs.
    async fn begin(&self, parts: Arc<ChannelParts>) -> RunningChannel {
        if let Some((folder, holder)) = &self.identities {
            let lock = IdentityLock::new(folder, parts.channel.facts(), holder.clone());
            parts.supervisor.alone(lock);
        }
        let mut tasks = JoinSet::new();
        let (delivery, shutdown) = (Arc::clone(&parts.delivery), self.shutdown.clone());
        tasks.spawn(async move { steadily("delivery", || delivery.run(&shutdown)).await });
        let inlet = Arc::new(ChannelInlet {
            channel: Arc::clone(&parts.channel),
            supervisor: Arc::clone(&parts.supervisor),
            access: Arc::clone(&parts.access),
            observed: Arc::clone(&parts.observed),
            ports: Arc::clone(&self.lanes.ports),
            lanes: Arc::clone(&self.lanes),
            cursor: Mutex::new(self.cursor(&parts).await),
            home: parts.home(),
            told_moves: Mutex::default(),
        });
        let until_retired = |work: BoxFuture<'static, ()>| {
            let retired = parts.retired.clone();
            async move {
                tokio::select! {
                    () = work => {}
                    () = retired.cancelled() => {}
                }
            }
        };
        if let Some(place) = parts.channel.webhook() {
            let (channel, shutdown) = (Arc::clone(&parts.channel), self.shutdown.clone());
            let inlet = Arc::clone(&inlet) as Arc<dyn Inlet>;
            let serving = called::serve(channel, inlet, place, shutdown);
            tasks.spawn(until_retired(Box::pin(serving)));
        }
        let (channel, watched) = (Arc::clone(&parts.channel), Arc::clone(&parts.supervisor));
        tasks.spawn(until_retired(Box::pin(async move {
            suggest_commands(channel.as_ref(), &watched).await;
        })));
        let (supervisor, shutdown) = (Arc::clone(&parts.supervisor), self.shutdown.clone());
        tasks.spawn(until_retired(Box::pin(async move {
            steadily("platform", || supervisor.run(inlet.as_ref(), &shutdown)).await;
        })));
        RunningChannel { parts, tasks }
    }

    /// Makes a change; returns the channels there are then.
    async fn apply(&self, change: Change, running: Vec<RunningChannel>) -> Vec<RunningChannel> {
        let ports = &self.lanes.ports;
        self.lanes.room.resize(change.settings.turns_max);
        ports.settings.replace(change.settings);
        let added = change.added.into_iter().map(|one| parts(ports, one));
        let added: Vec<_> = added.collect();
        let platform = |parts: &ChannelParts| parts.channel.facts().platform;
        let is_removed = |one: &RunningChannel| change.removed.contains(&platform(&one.parts));
        let (removed, mut running): (Vec<_>, Vec<_>) = running.into_iter().partition(is_removed);
        let kept = running.iter().map(|one| Arc::clone(&one.parts));
        let now = kept.chain(added.iter().cloned()).collect();
        self.lanes.channels.replace(now);
        for channel in removed {
            let name = platform(&channel.parts);
            let successor = added.iter().find(|parts| platform(parts) == name);
            channel.retire(successor).await;
        }
        for parts in added {
            running.push(self.begin(parts).await);
        }
        // What waits for a platform that is there now is answered now.
        if let Err(error) = self.look_around().await {
            tracing::warn!(%error, "the inbox cannot be looked at");
        }
        _ = change.done.send(());
        running
    }

    async fn cursor(&self, parts: &ChannelParts) -> Option<String> {
        let facts = parts.channel.facts();
        let cursor = self
            .lanes
            .ports
            .inbox
            .read_cursor(facts.platform, &facts.account)
            .await;
        cursor.unwrap_or_else(|error| {
            tracing::warn!(platform = facts.platform, %error, "how far it was read is not known");
            None
        })
    }

    /// Begins lanes that something waits in, first those that the last process left, and forgets what is old.
    async fn sweep(&self) {
        while let Err(error) = self.take_up().await {
            tracing::warn!(%error, "what the last process left cannot be looked at");
            tokio::time::sleep(SWEEP).await;
        }
        let mut next_cleaning = Instant::now();
        loop {
            if let Err(error) = self.look_around().await {
                tracing::warn!(%error, "the inbox cannot be looked at");
            }
            if next_cleaning <= Instant::now() {
                next_cleaning = Instant::now() + CLEANING;
                if let Err(error) = self.forget_old().await {
                    tracing::warn!(%error, "what is old cannot be forgotten");
                }
            }
            tokio::time::sleep(SWEEP).await;
        }
    }

    /// Has lanes go on with what no entry of the inbox stands for: turns that a remark or a report began, and answers of theirs
    /// that are not in the outbox yet.
    async fn take_up(&self) -> Result<(), StoreError> {
        let ports = &self.lanes.ports;
        let unfinished = ports.store.unfinished().await?.into_iter();
        let mut left: Vec<LeftTurn> = unfinished
            .map(|session| LeftTurn {
                session,
                turn: None,
            })
            .collect();
        for parts in self.lanes.channels.now() {
            let platform = parts.channel.facts().platform;
            let open = ports.outbox.open_outgoing(platform, LEFT_MAX).await?;
            let written = open.iter().filter(|entry| entry.stage == Stage::Writing);
            let turns = written.filter_map(|entry| reply::turn_of(&entry.key));
            left.extend(turns.map(|(session, turn)| LeftTurn {
                session,
                turn: Some(turn),
            }));
        }
        for left in left {
            if let Some(chat) = ports.chats.chat_of(&left.session).await? {
                self.lanes.take_up(chat.key, left);
            }
        }
        Ok(())
    }

    async fn look_around(&self) -> Result<(), StoreError> {
        for lane in self.lanes.ports.inbox.open_lanes().await? {
            self.lanes.wake(lane);
        }
        Ok(())
    }

    async fn forget_old(&self) -> Result<(), StoreError> {
        let ports = &self.lanes.ports;
        let before = ports.clock.now().minus(KEPT);
        ports.inbox.forget_raw_updates(before).await?;
        ports.outbox.forget_outgoing(before).await?;
        ports
            .records
            .forget_expired_records(ports.clock.now())
            .await?;
        let (media, now) = (ports.settings.now().media.clone(), ports.clock.now());
        if media.is_dir() {
            let now = UNIX_EPOCH + Duration::from_millis(now.as_millis().unsigned_abs());
            let (waiting, files) = (self.waiting_files().await?, Arc::clone(&ports.files));
            let forget = move || {
                media::forget_old(&media, now);
                files.forget_taken(now - media::KEPT, &waiting);
            };
            _ = tokio::task::spawn_blocking(forget).await;
        }
        Ok(())
    }

    /// Files that are not sent yet.
    async fn waiting_files(&self) -> Result<Vec<PathBuf>, StoreError> {
        let mut files = Vec::new();
        for parts in self.lanes.channels.now() {
            let platform = parts.channel.facts().platform;
            let outbox = &self.lanes.ports.outbox;
            for entry in outbox.open_outgoing(platform, LEFT_MAX).await? {
                let bodies = entry.parts.into_iter().filter_map(|part| part.body);
                files.extend(bodies.filter_map(|body| match body {
                    Body::File { path, .. } => Some(path),
                    Body::Text { .. } => None,
                }));
            }
        }
        Ok(files)
    }

    /// Gives what was said last the time to be delivered.
    async fn flush(&self) {
        for parts in self.lanes.channels.now() {
            let platform = parts.channel.facts().platform;
            while !self.shutdown.is_stopped() {
                let open = self.lanes.ports.outbox.open_outgoing(platform, 64).await;
                let now = self.lanes.ports.clock.now();
                let is_due = |entry: &hermes_core::OutboxEntry| {
                    entry.stage != Stage::Writing && entry.due <= now
                };
                if !open.is_ok_and(|open| open.iter().any(is_due)) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

fn parts(ports: &ChatPorts, one: ChatChannel) -> Arc<ChannelParts> {
    let ChatChannel {
        channel,
        access,
        manner,
        home,
    } = one;
    let (clock, random) = (&ports.clock, &ports.random);
    let supervisor = Supervisor::new(Arc::clone(&channel), Arc::clone(clock), Arc::clone(random));
    let outbox = Arc::clone(&ports.outbox);
    let delivery = Delivery::new(
        Arc::clone(&channel),
        outbox,
        Arc::clone(clock),
        Arc::clone(random),
    );
    let delivery = delivery.with_replies(manner.reply_to);
    Arc::new(ChannelParts {
        channel,
        delivery: Arc::new(delivery),
        access: Arc::new(access),
        manner,
        directory: Directory::default(),
        observed: Arc::default(),
        supervisor: Arc::new(supervisor),
        home: Mutex::new(home),
        retired: CancellationToken::new(),
    })
}

/// Tells a platform which commands to suggest, once it is there. Nobody waits for that.
async fn suggest_commands(channel: &dyn Channel, supervisor: &Supervisor) {
    let commands: Vec<ChatCommand> = command::of(Surface::Chat)
        .map(|command| ChatCommand {
            name: command.name.to_owned(),
            description: command.help.to_owned(),
        })
        .collect();
    loop {
        tokio::time::sleep(MENU_LOOK).await;
        if supervisor.status().state != ChannelState::Connected {
            continue;
        }
        match channel.set_commands(&commands).await {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, "commands are not suggested yet"),
        }
        tokio::time::sleep(MENU_RETRY).await;
    }
}
