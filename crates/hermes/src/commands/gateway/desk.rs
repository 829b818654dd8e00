//! What a gateway that runs knows of itself, and what may be asked of it from inside: how it is, and to begin anew.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hermes_core::{Address, BoxFuture, Clock as _, Inbox as _, Outbox as _, Sessions as _};
use hermes_gateway::Shutdown;
use hermes_gateway::chat::ChatControl;
use hermes_gateway::deliver::Deliver;
use hermes_gateway::presence::Holder;
use hermes_gateway::report::{GatewayState, PlatformReport, Report};
use hermes_runtime::hooks::HomeHooks;
use hermes_runtime::{Runtime, SystemClock};
use tokio::sync::Notify;

use super::restart_note;
use crate::output::note;

/// Who this is, for others who look.
pub(super) fn this_process(service: Option<String>) -> Holder {
    Holder {
        pid: std::process::id(),
        started: SystemClock.now(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        service,
    }
}

pub(super) struct Desk {
    pub(super) runtime: Arc<Runtime>,
    pub(super) holder: Holder,
    pub(super) shutdown: Shutdown,
    pub(super) hooks: Arc<HomeHooks>,
    /// Once there are chats.
    pub(super) chats: OnceLock<ChatControl>,
    pub(super) deliver: OnceLock<Arc<dyn Deliver>>,
    serves: Mutex<Vec<String>>,
    /// Platforms whose settings cannot be used.
    refused: Mutex<Vec<PlatformReport>>,
    restart: Notify,
}

impl Desk {
    pub(super) fn new(runtime: Arc<Runtime>, holder: Holder, shutdown: Shutdown) -> Self {
        Self {
            hooks: HomeHooks::of(runtime.base()),
            runtime,
            holder,
            shutdown,
            chats: OnceLock::new(),
            deliver: OnceLock::new(),
            serves: Mutex::default(),
            refused: Mutex::default(),
            restart: Notify::new(),
        }
    }

    /// Adds to what it says it serves.
    pub(super) fn serves(&self, what: String) {
        let serves = self.serves.lock();
        serves.unwrap_or_else(PoisonError::into_inner).push(what);
    }

    pub(super) fn served(&self) -> Vec<String> {
        let serves = self.serves.lock();
        serves.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says which platforms cannot be used, and why.
    pub(super) fn refuses(&self, platforms: Vec<PlatformReport>) {
        for report in &platforms {
            let error = report.error.as_deref().unwrap_or_default();
            note(&format!(
                "gateway: {} is not connected: {error}",
                report.platform
            ));
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        *refused = platforms;
    }

    fn refused(&self) -> Vec<PlatformReport> {
        let refused = self.refused.lock();
        refused.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for a restart; this chat hears when it is done.
    pub(super) fn ask_restart(&self, chat: Option<&Address>) {
        if let Some(chat) = chat {
            let home = self.runtime.base().home.directory();
            restart_note::leave(home, chat, self.runtime.clock().now());
        }
        self.restart.notify_one();
    }

    pub(super) async fn restart_asked(&self) {
        self.restart.notified().await;
    }

    pub(super) fn report(self: &Arc<Self>) -> BoxFuture<'static, Report> {
        let desk = Arc::clone(self);
        Box::pin(async move { desk.look().await })
    }

    async fn look(&self) -> Report {
        let (runtime, base) = (&self.runtime, self.runtime.base());
        let status = self.chats.get().map(ChatControl::status);
        let platforms = status.into_iter().flatten().map(PlatformReport::from);
        let platforms = platforms.chain(self.refused());
        let open = runtime.list_open();
        // A store that does not answer is told of elsewhere.
        let inbox = runtime.store().inbox_depth().await.unwrap_or_default();
        let outbox = runtime.store().outbox_depth().await.unwrap_or_default();
        Report {
            pid: self.holder.pid,
            version: self.holder.version.clone(),
            home: base.home.directory().to_owned(),
            profile: base.home.profile().map(str::to_owned),
            state: if self.shutdown.is_draining() {
                GatewayState::Draining
            } else {
                GatewayState::Running
            },
            started: self.holder.started,
            service: self.holder.service.clone(),
            platforms: platforms.collect(),
            serves: self.served(),
            turns: open.iter().filter(|session| session.idle.is_none()).count(),
            undelivered: outbox.failed,
            inbox: inbox.into(),
            outbox: outbox.into(),
        }
    }

    /// Whether the store answers: without it nothing goes on.
    pub(super) async fn is_well(&self) -> bool {
        self.runtime.store().inbox_depth().await.is_ok()
    }
}
