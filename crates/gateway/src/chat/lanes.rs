//! The lanes: one for each conversation that something waits for. A lane without work has no task and costs nothing.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use futures_util::FutureExt as _;
use hermes_core::{
    Address, ApprovalId, ApprovalRequest, CancellationToken, Channel, ChannelFacts, SessionHandle,
    SessionId, StoreError, TurnId,
};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use super::access::PlatformAccess;
use super::delivery::Delivery;
use super::directory::Directory;
use super::lane::Lane;
use super::manner::Manner;
use super::observed::Observed;
use super::ports::ChatPorts;
use super::room::Room;
use super::supervisor::Supervisor;
use crate::hooks::Hooks;
use crate::shutdown::Shutdown;
use crate::steady::pause_after;

/// A channel and what belongs to it.
pub(super) struct ChannelParts {
    pub(super) channel: Arc<dyn Channel>,
    pub(super) delivery: Arc<Delivery>,
    pub(super) access: Arc<PlatformAccess>,
    pub(super) manner: Manner,
    pub(super) directory: Directory,
    pub(super) observed: Arc<Observed>,
    pub(super) supervisor: Arc<Supervisor>,
    /// The settings want it no more, or otherwise.
    pub(super) retired: CancellationToken,
    /// The chat for what has no other place; `/sethome` changes it.
    pub(super) home: Mutex<Option<Address>>,
}

impl ChannelParts {
    pub(super) fn home(&self) -> Option<Address> {
        let home = self.home.lock();
        home.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_home(&self, home: Address) {
        let mut place = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(home);
    }
}

/// The channels there are; settings that are read again change them.
pub(super) struct Channels(RwLock<Vec<Arc<ChannelParts>>>);

impl Channels {
    pub(super) fn now(&self) -> Vec<Arc<ChannelParts>> {
        self.0
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn replace(&self, channels: Vec<Arc<ChannelParts>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = channels;
    }
}

pub(super) struct Lanes {
    pub(super) ports: Arc<ChatPorts>,
    pub(super) channels: Arc<Channels>,
    running: Mutex<HashMap<String, Arc<Signal>>>,
    /// Questions for consent that wait for an answer, whichever lane asked them.
    asked: Mutex<Vec<AskedQuestion>>,
    /// How often lanes broke one time after the other.
    broken: Mutex<HashMap<String, u32>>,
    /// What the last process left to lanes, and no entry of the inbox stands for.
    left: Mutex<HashMap<String, Vec<LeftTurn>>>,
    tasks: TaskTracker,
    /// Room for turns.
    pub(super) room: Arc<Room>,
    pub(super) shutdown: Shutdown,
    pub(super) hooks: OnceLock<Arc<dyn Hooks>>,
}

/// A conversation that the last process left in the middle, or a turn whose answer may not be in the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftTurn {
    pub(super) session: SessionId,
    pub(super) turn: Option<TurnId>,
}

/// A question for consent as others than its lane need it.
#[derive(Clone)]
pub(super) struct AskedQuestion {
    pub(super) request: ApprovalRequest,
    pub(super) handle: Arc<dyn SessionHandle>,
    /// Who began the turn, on whatever platform.
    pub(super) person: Option<String>,
}

/// How a lane hears that something came.
#[derive(Default)]
pub(super) struct Signal {
    notify: Notify,
    is_set: AtomicBool,
}

impl Signal {
    fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    pub(super) async fn wait(&self) {
        self.notify.notified().await;
    }

    /// Something came since this was asked last.
    pub(super) fn take(&self) -> bool {
        self.is_set.swap(false, Ordering::AcqRel)
    }
}

impl Lanes {
    pub(super) fn new(
        ports: Arc<ChatPorts>,
        channels: Vec<Arc<ChannelParts>>,
        shutdown: Shutdown,
    ) -> Self {
        let room = Room::new(ports.settings.now().turns_max);
        Self {
            ports,
            channels: Arc::new(Channels(RwLock::new(channels))),
            running: Mutex::default(),
            asked: Mutex::default(),
            broken: Mutex::default(),
            left: Mutex::default(),
            tasks: TaskTracker::new(),
            room,
            shutdown,
            hooks: OnceLock::new(),
        }
    }

    /// Something waits in a lane: its task looks, or begins.
    pub(super) fn wake(self: &Arc<Self>, key: String) {
        let mut running = self.running();
        if let Some(signal) = running.get(&key) {
            return signal.set();
        }
        let signal = Arc::new(Signal::default());
        running.insert(key.clone(), Arc::clone(&signal));
        let lanes = Arc::clone(self);
        self.tasks.spawn(async move {
            let lane = Lane::new(Arc::clone(&lanes), key.clone(), Arc::clone(&signal));
            match AssertUnwindSafe(lane.run()).catch_unwind().await {
                Ok(()) => _ = lanes.broken().remove(&key),
                Err(_) => lanes.rest_broken(&key).await,
            }
            // What still waits is found by the next look around.
            let mut running = lanes.running();
            if running
                .get(&key)
                .is_some_and(|one| Arc::ptr_eq(one, &signal))
            {
                running.remove(&key);
            }
        });
    }

    /// Lanes that have something to do, or had a while ago.
    pub(super) fn count(&self) -> usize {
        self.running().len()
    }

    /// A lane broke: it is begun again after a while, so that what broke it does not keep the machine busy.
    async fn rest_broken(&self, key: &str) {
        let times = {
            let mut broken = self.broken();
            let times = broken.entry(key.to_owned()).or_default();
            *times += 1;
            *times
        };
        let pause = pause_after(times);
        tracing::error!(lane = key, times, ?pause, "a lane broke; it is begun again");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.shutdown.draining() => {}
        }
    }

    fn broken(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever may answer a question may do so from any chat.
    pub(super) fn ask(&self, question: AskedQuestion) {
        let mut asked = self.all_asked();
        asked.retain(|one| one.request.approval != question.request.approval);
        asked.push(question);
    }

    pub(super) fn asked_no_more(&self, approval: &ApprovalId) {
        let mut asked = self.all_asked();
        asked.retain(|one| one.request.approval != *approval);
    }

    pub(super) fn asked(&self, approval: &ApprovalId) -> Option<AskedQuestion> {
        let asked = self.all_asked();
        let mut asked = asked.iter();
        asked.find(|one| one.request.approval == *approval).cloned()
    }

    pub(super) fn asked_under(&self, code: &str) -> Option<AskedQuestion> {
        let asked = self.all_asked();
        let mut asked = asked.iter();
        asked.find(|one| one.request.code.is(code)).cloned()
    }

    pub(super) fn is_asked_under(&self, code: &str) -> bool {
        self.asked_under(code).is_some()
    }

    fn all_asked(&self) -> MutexGuard<'_, Vec<AskedQuestion>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a lane go on with what the last process left.
    pub(super) fn take_up(self: &Arc<Self>, key: String, left: LeftTurn) {
        self.left().entry(key.clone()).or_default().push(left);
        self.wake(key);
    }

    /// What was left to a lane: each thing once.
    pub(super) fn take_left(&self, key: &str) -> Vec<LeftTurn> {
        self.left().remove(key).unwrap_or_default()
    }

    fn left(&self) -> MutexGuard<'_, HashMap<String, Vec<LeftTurn>>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane has nothing to do. False: something came in the meantime.
    pub(super) fn leave(&self, key: &str, signal: &Signal) -> bool {
        let mut running = self.running();
        if signal.take() {
            return false;
        }
        running.remove(key);
        true
    }

    /// Somebody wrote there: what could not be delivered is tried again.
    pub(super) async fn heard_from(
        &self,
        address: &Address,
        facts: &ChannelFacts,
    ) -> Result<(), StoreError> {
        match self.channel(facts.platform, &facts.account) {
            Some(parts) => parts.delivery.heard_from(address).await,
            None => Ok(()),
        }
    }

    pub(super) fn wake_delivery(&self, platform: &str, account: &str) {
        if let Some(parts) = self.channel(platform, account) {
            parts.delivery.wake();
        }
    }

    /// The channel of an account; of the platform's only one, where the account changed.
    pub(super) fn channel(&self, platform: &str, account: &str) -> Option<Arc<ChannelParts>> {
        let channels = self.channels.now();
        let of_platform = || {
            channels
                .iter()
                .filter(|parts| parts.channel.facts().platform == platform)
        };
        of_platform()
            .find(|parts| parts.channel.facts().account == account)
            .or_else(|| of_platform().next())
            .map(Arc::clone)
    }

    /// Lanes that have a task.
    pub(super) fn running_count(&self) -> usize {
        self.running().len()
    }

    /// Waits until every lane has come to rest.
    pub(super) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<Signal>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
