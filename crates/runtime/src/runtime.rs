//! The process: opens the store, models, MCP servers and terminals once, and owns the tasks of all sessions.
//!
//! Start at [`Runtime::start`], then [`Runtime::set_up`] and [`Runtime::begin`], which every way to a session goes through.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use hermes_core::deliver::Deliver;
use hermes_core::{BoxFuture, Clock, Random, SessionOptions};
use hermes_exec::CheckpointStore;
use hermes_learning::user_model::honcho::Honcho;
use hermes_store::SqliteStore;
use tokio::sync::{Notify, OnceCell};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::base::Base;
use crate::checkpoints;
use crate::clock::SystemClock;
use crate::error::Result;
use crate::mcp::Servers;
use crate::models::Models;
use crate::schedules::{Desk, TellPlatforms};
use crate::sessions::OpenSessions;
use crate::setup::Setup;
use crate::toolkit::Toolkit;
use crate::user_model;

/// How long what was read for one conversation counts for the next: nobody notices that a setting counts a second later.
const SETUP_SHARED: Duration = Duration::from_secs(1);
/// What conversations work with, once somebody has put it together.
type SharedSetup = Arc<OnceCell<Arc<Setup>>>;

/// Options that differ within that time. Each takes some ten kilobytes.
const SETUPS_MAX: usize = 64;

/// Guests whose tools outlive their conversations: enough for a household, and little memory.
const RECENT_GUESTS_MAX: usize = 16;

/// Tells how the gateway of a home is.
pub type TellGateway = Arc<dyn Fn() -> BoxFuture<'static, String> + Send + Sync>;

/// Toolkits, for whoever wants the same, by what the settings say about tools. Of the owner's there are as many as projects
/// with settings of their own; of guests there may be any number, so that only the last ones outlive their conversations.
#[derive(Default)]
struct Toolkits {
    of_owner: HashMap<String, Arc<Toolkit>>,
    of_guests: HashMap<String, Weak<Toolkit>>,
    recent: VecDeque<Arc<Toolkit>>,
}

impl Toolkits {
    fn get(&mut self, key: &str) -> Option<Arc<Toolkit>> {
        if let Some(toolkit) = self.of_owner.get(key) {
            return Some(Arc::clone(toolkit));
        }
        let toolkit = self.of_guests.get(key)?.upgrade()?;
        self.remember(&toolkit);
        Some(toolkit)
    }

    fn add(&mut self, key: String, toolkit: &Arc<Toolkit>) {
        if toolkit.ports.private.is_none() {
            self.of_owner.insert(key, Arc::clone(toolkit));
            return;
        }
        self.remember(toolkit);
        self.of_guests.retain(|_, one| one.strong_count() > 0);
        self.of_guests.insert(key, Arc::downgrade(toolkit));
    }

    /// What a guest runs in the background is still there when they come back.
    fn remember(&mut self, toolkit: &Arc<Toolkit>) {
        self.recent.retain(|one| !Arc::ptr_eq(one, toolkit));
        self.recent.push_back(Arc::clone(toolkit));
        if self.recent.len() > RECENT_GUESTS_MAX {
            self.recent.pop_front();
        }
    }

    fn all(&self) -> Vec<Arc<Toolkit>> {
        let of_guests = self.of_guests.values().filter_map(Weak::upgrade);
        self.of_owner.values().cloned().chain(of_guests).collect()
    }
}

/// What is there once for all conversations of a process.
pub struct Runtime {
    base: Arc<Base>,
    store: Arc<SqliteStore>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    models: Arc<Models>,
    servers: Arc<Servers>,
    toolkits: Mutex<Toolkits>,
    /// What conversations work with that were opened a moment ago, by their options.
    setups: Mutex<HashMap<SessionOptions, (Instant, SharedSetup)>>,
    /// The Honcho that the settings name, so that all conversations know how it is.
    honcho: Mutex<Option<Arc<Honcho>>>,
    /// How the gateway of the home is, for those who ask: this crate does not know it.
    gateway: OnceLock<TellGateway>,
    /// Work that nobody waits for; it ends with us.
    housekeeping: Mutex<JoinSet<()>>,
    /// The way to chats, where platforms are set up.
    chats: OnceLock<Arc<dyn Deliver>>,
    /// Which chat platforms there are, for those who name one: this crate does not know them.
    platforms: OnceLock<TellPlatforms>,
    /// Told when a job was made or changed here.
    jobs_changed: Arc<Notify>,
    pub(crate) sessions: OpenSessions,
}

impl Runtime {
    /// Opens what conversations share. Nothing is asked and no server is started before one needs it.
    pub fn start(base: Arc<Base>) -> Result<Arc<Self>> {
        let store = Arc::new(open_store(&base)?);
        let random = Arc::new(Random::from_system());
        let models = Arc::<Models>::default();
        let known = Arc::clone(&store);
        let servers = Servers::new(known, Arc::clone(&random), Arc::clone(&models));
        Ok(Arc::new(Self {
            base,
            store,
            clock: Arc::new(SystemClock),
            random,
            models,
            servers: Arc::new(servers),
            toolkits: Mutex::default(),
            setups: Mutex::default(),
            honcho: Mutex::default(),
            gateway: OnceLock::new(),
            housekeeping: Mutex::default(),
            chats: OnceLock::new(),
            platforms: OnceLock::new(),
            jobs_changed: Arc::default(),
            sessions: OpenSessions::default(),
        }))
    }

    /// Puts together what a conversation with these options works with.
    pub async fn set_up(&self, options: &SessionOptions) -> Result<Setup> {
        let base = self.base.with_options(options)?;
        Setup::new(self, &base, options).await
    }

    /// The same for those who change nothing in it, shared with whoever asked for it a moment ago: reading all settings
    /// takes longer than a turn of a fast model.
    pub(crate) async fn shared_setup(&self, options: &SessionOptions) -> Result<Arc<Setup>> {
        let options = SessionOptions {
            title: None,
            ..options.clone()
        };
        // Whoever comes while one is made waits for that: sixty that come at once would read everything sixty times.
        let setup = self.setup_of(&options);
        let made = setup.get_or_try_init(async || Ok(Arc::new(self.set_up(&options).await?)));
        made.await.cloned()
    }

    /// The place of what these options want, which is made by the first who needs it.
    fn setup_of(&self, options: &SessionOptions) -> SharedSetup {
        let mut setups = lock(&self.setups);
        if let Some((since, setup)) = setups.get(options)
            && since.elapsed() < SETUP_SHARED
        {
            return Arc::clone(setup);
        }
        setups.retain(|_, (since, _)| since.elapsed() < SETUP_SHARED);
        let setup = SharedSetup::default();
        if setups.len() < SETUPS_MAX {
            setups.insert(options.clone(), (Instant::now(), Arc::clone(&setup)));
        }
        setup
    }

    /// Says how to find out how the gateway is.
    pub fn set_gateway_standing(&self, tell: TellGateway) {
        let _ = self.gateway.set(tell);
    }

    /// How the gateway of this home is; `None` where nobody can say.
    pub(crate) async fn gateway_standing(&self) -> Option<String> {
        Some(self.gateway.get()?().await)
    }

    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }

    pub fn store(&self) -> &Arc<SqliteStore> {
        &self.store
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    pub fn random(&self) -> &Arc<Random> {
        &self.random
    }

    pub fn models(&self) -> &Arc<Models> {
        &self.models
    }

    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// Conversations from now on may write to chats.
    pub fn set_chats(&self, chats: Arc<dyn Deliver>) {
        // Whoever was first is as good.
        _ = self.chats.set(chats);
    }

    /// Says how to find out which chat platforms there are.
    pub fn set_platforms(&self, tell: TellPlatforms) {
        _ = self.platforms.set(tell);
    }

    pub(crate) fn chats(&self) -> Option<&Arc<dyn Deliver>> {
        self.chats.get()
    }

    /// Where jobs of schedules are made and changed.
    pub fn desk(&self) -> Arc<Desk> {
        let store = Arc::clone(&self.store);
        let (clock, random) = (Arc::clone(&self.clock), Arc::clone(&self.random));
        let desk = Desk::new(Arc::clone(&self.base), store, clock, random);
        let desk = desk.telling(Arc::clone(&self.jobs_changed));
        Arc::new(match self.platforms.get() {
            Some(platforms) => desk.knowing(Arc::clone(platforms)),
            None => desk,
        })
    }

    /// Comes when a job was made or changed in this process.
    pub async fn jobs_changed(&self) {
        self.jobs_changed.notified().await;
    }

    /// The tools that these settings want, shared with everybody whose settings want the same.
    pub(crate) fn toolkit(&self, base: &Base) -> Result<Arc<Toolkit>> {
        let key = Toolkit::key(base);
        if let Some(toolkit) = lock(&self.toolkits).get(&key) {
            return Ok(toolkit);
        }
        let toolkit = Arc::new(Toolkit::new(base, &self.store)?);
        let mut toolkits = lock(&self.toolkits);
        // Somebody may have been quicker.
        if let Some(toolkit) = toolkits.get(&key) {
            return Ok(toolkit);
        }
        toolkits.add(key, &toolkit);
        Ok(toolkit)
    }

    /// Honcho as the settings want it; `None` where its own settings switch it off.
    pub(crate) fn honcho(&self, base: &Base) -> Result<Option<Arc<Honcho>>> {
        let Some(settings) = user_model::honcho_settings(base)? else {
            return Ok(None);
        };
        let mut known = lock(&self.honcho);
        let honcho = match known.take().filter(|known| known.settings == settings) {
            Some(honcho) => honcho,
            None => Arc::new(Honcho::new(settings)),
        };
        *known = Some(Arc::clone(&honcho));
        Ok(Some(honcho))
    }

    /// Where checkpoints are kept, when the settings want any. The old ones are kept few, once in the life of a process.
    pub(crate) fn checkpoints(
        &self,
        base: &Base,
        toolkit: &Toolkit,
    ) -> Result<Option<CheckpointStore>> {
        if !base.settings.bool("checkpoints.enabled")? {
            return Ok(None);
        }
        let store = match toolkit.checkpoints.get() {
            Some(store) => store.clone(),
            None => {
                let store = checkpoints::store(base)?;
                toolkit.checkpoints.get_or_init(|| store).clone()
            }
        };
        let mut housekeeping = lock(&self.housekeeping);
        if housekeeping.is_empty() && base.settings.bool("checkpoints.auto_prune")? {
            let store = store.clone();
            housekeeping.spawn(async move {
                if let Err(error) = store.prune_when_due().await {
                    tracing::warn!("checkpoints were not pruned: {error}");
                }
            });
        }
        Ok(Some(store))
    }

    /// Closes every conversation and ends what runs beside them. Returns what the user should know of it.
    pub async fn stop(&self) -> Vec<String> {
        // Before sessions let go of them.
        let toolkits = lock(&self.toolkits).all();
        self.sessions.close_all().await;
        let mut notices = Vec::new();
        for toolkit in toolkits {
            notices.extend(toolkit.stop().await);
        }
        self.servers.stop().await;
        notices
    }
}

pub fn open_store(base: &Base) -> Result<SqliteStore> {
    Ok(SqliteStore::open(base.home.database(), base.home.locks())?)
}

/// Opens the database for looking; `None` when there is none yet.
pub fn open_archive(base: &Base) -> Result<Option<SqliteStore>> {
    let path = base.home.database();
    match path.try_exists() {
        Ok(false) => Ok(None),
        _ => Ok(Some(SqliteStore::open_read_only(path)?)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
