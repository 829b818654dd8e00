//! Hooks of the home, as the gateway knows them.

use std::sync::Arc;

use hermes_core::BoxFuture;
use hermes_gateway::hooks::{HookEvent, HookVerdict, Hooks};
use hermes_runtime::hooks::HomeHooks;
use serde_json::json;

use super::chats::SetUp;
use super::desk::Desk;

pub(super) struct ChatHooks(pub(super) Arc<HomeHooks>);

impl Hooks for ChatHooks {
    fn tell(&self, event: HookEvent) {
        let input = event.to_json();
        self.0.run_aside(event.name, input);
    }

    fn ask(&self, event: HookEvent) -> BoxFuture<'_, HookVerdict> {
        Box::pin(async move {
            let printed = self.0.run(&event.name, &event.to_json()).await;
            let mut verdicts = printed.iter().map(|printed| HookVerdict::read(printed));
            let decided = verdicts.find(|verdict| *verdict != HookVerdict::Allow);
            decided.unwrap_or_default()
        })
    }
}

/// Hooks hear that the gateway is ready.
pub(super) fn tell_startup(desk: &Desk, platforms: &[SetUp]) {
    let names: Vec<_> = platforms.iter().map(SetUp::name).collect();
    let event = HookEvent::new("gateway:startup", json!({"platforms": names}));
    ChatHooks(Arc::clone(&desk.hooks)).tell(event);
}
