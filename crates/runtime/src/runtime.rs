//! The process: opens the store, models, MCP servers and terminals once, and owns the tasks of all sessions.
//!
//! Start at [`Runtime::start`], then [`Runtime::set_up`] and [`Runtime::begin`], which every way to a session goes through.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hermes_core::{Clock, LearningLog, Random, SessionOptions};
use hermes_exec::CheckpointStore;
use hermes_store::SqliteStore;
use tokio::task::JoinSet;

use crate::base::Base;
use crate::checkpoints;
use crate::clock::SystemClock;
use crate::error::Result;
use crate::mcp::Servers;
use crate::models::Models;
use crate::sessions::OpenSessions;
use crate::setup::Setup;
use crate::toolkit::Toolkit;

/// What is there once for all conversations of a process.
pub struct Runtime {
    base: Arc<Base>,
    store: Arc<SqliteStore>,
    clock: Arc<dyn Clock>,
    random: Arc<Random>,
    models: Arc<Models>,
    servers: Arc<Servers>,
    /// By what the settings say about tools. There are as many as projects with settings of their own.
    toolkits: Mutex<HashMap<String, Arc<Toolkit>>>,
    /// Work that nobody waits for; it ends with us.
    housekeeping: Mutex<JoinSet<()>>,
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
            housekeeping: Mutex::default(),
            sessions: OpenSessions::default(),
        }))
    }

    /// Puts together what a conversation with these options works with.
    pub async fn set_up(&self, options: &SessionOptions) -> Result<Setup> {
        let base = self.base.with_options(options)?;
        Setup::new(self, &base, options).await
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

    /// The tools that these settings want, shared with everybody whose settings want the same.
    pub(crate) fn toolkit(&self, base: &Base) -> Result<Arc<Toolkit>> {
        let key = Toolkit::key(base);
        if let Some(toolkit) = lock(&self.toolkits).get(&key) {
            return Ok(Arc::clone(toolkit));
        }
        let toolkit = Arc::new(Toolkit::new(
            base,
            Arc::clone(&self.store) as Arc<dyn LearningLog>,
        )?);
        Ok(Arc::clone(
            lock(&self.toolkits).entry(key).or_insert(toolkit),
        ))
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
        self.sessions.close_all().await;
        let toolkits: Vec<_> = lock(&self.toolkits).values().cloned().collect();
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
