//! What a session leaves behind when it is closed: nothing.

use std::sync::{Arc, Mutex};

use hermes_core::{
    Effect, Exposure, Parallel, Plan, PlanContext, SessionId, Tool, ToolGroup, ToolOutput,
    ToolSpec, TurnEnd,
};
use hermes_testkit::{Step, World};
use serde_json::{Value, json};

use crate::run::say;

/// Notes which sessions it was told to forget.
struct Forgetful {
    spec: ToolSpec,
    forgotten: Arc<Mutex<Vec<SessionId>>>,
}

impl Tool for Forgetful {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        static EXPOSURE: Exposure = Exposure::everywhere_but_in_scripts(ToolGroup::Toolset("test"));
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, _: &Value, _: PlanContext<'_>) -> Plan {
        Plan::doing(Effect::Read, Parallel::Never, |_| {
            Box::pin(async { Ok(ToolOutput::text("done")) })
        })
    }

    fn close_session(&self, session: &SessionId) {
        let mut forgotten = self.forgotten.lock().expect("the notes");
        forgotten.push(session.clone());
    }
}

#[tokio::test]
async fn tools_forget_a_session_once_it_is_closed() {
    let forgotten = Arc::new(Mutex::new(Vec::new()));
    let world = World::new([Step::text("hello")]).tool(Forgetful {
        spec: ToolSpec {
            name: "forgetful".into(),
            description: "Forgets.".into(),
            parameters: json!({"type": "object", "properties": {}}),
        },
        forgotten: Arc::clone(&forgotten),
    });
    let (running, end) = say(&world, "hi").await;
    assert_eq!(end, TurnEnd::Finished);
    let id = running.session.id().clone();
    assert!(forgotten.lock().expect("the notes").is_empty());
    running.close().join_all().await;
    assert_eq!(*forgotten.lock().expect("the notes"), [id]);
}
