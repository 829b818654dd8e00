//! What a tool keeps is there at its next call, whatever became of its results.

use std::sync::Arc;

use hermes_core::{
    Effect, Exposure, Op, Parallel, Plan, PlanContext, Store as _, Tool, ToolGroup, ToolOutput,
    ToolSpec,
};
use hermes_testkit::{Step, World};
use serde_json::{Value, json};

use crate::run::{Running, branch, resume, say};

const NAME: &str = "collect";

/// Keeps every text it was ever given. Its results are longer than results may be, so that the list is not in them.
struct Collect {
    spec: ToolSpec,
}

impl Tool for Collect {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        static EXPOSURE: Exposure = Exposure::everywhere_but_in_scripts(ToolGroup::Toolset("test"));
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _: PlanContext<'_>) -> Plan {
        let text = arguments["text"].clone();
        Plan::doing(Effect::Read, Parallel::Never, move |cx| {
            let mut list = cx.state.clone().unwrap_or_else(|| json!([]));
            Box::pin(async move {
                if let Some(list) = list.as_array_mut() {
                    list.push(text);
                }
                Ok(ToolOutput::text("x\n".repeat(1_000_000)).keeping(list))
            })
        })
    }
}

/// A world whose model collects these texts, each in a turn of its own.
fn collecting(texts: &[&str]) -> World {
    World::new(steps(texts)).tool(Collect {
        spec: ToolSpec {
            name: NAME.into(),
            description: "Collects texts.".into(),
            parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
        },
    })
}

fn steps(texts: &[&str]) -> Vec<Step> {
    let turn = |text: &&str| {
        [
            Step::call("c1", NAME, &json!({ "text": text })),
            Step::text("ok"),
        ]
    };
    texts.iter().flat_map(turn).collect()
}

async fn kept(world: &World, running: &Running) -> Value {
    let loaded = world.store.load(running.session.id()).await;
    let mut states = loaded.expect("the store answers").tool_states;
    states.remove(NAME).unwrap_or_default()
}

async fn go_on(running: &mut Running) {
    running.session.say("go on").await;
    running.turn_end().await;
}

#[tokio::test]
async fn it_survives_results_that_were_cut_and_a_restart() {
    let world = collecting(&["a", "b"]);
    let (mut running, _) = say(&world, "begin").await;
    go_on(&mut running).await;
    assert_eq!(kept(&world, &running).await, json!(["a", "b"]));
    let id = running.session.id().clone();
    running.crash().await;

    let world = world.restarted(steps(&["c"]));
    let mut running = resume(&world, &id).await;
    go_on(&mut running).await;
    assert_eq!(kept(&world, &running).await, json!(["a", "b", "c"]));
}

#[tokio::test]
async fn it_is_as_it_was_before_a_turn_that_is_taken_back() {
    let world = collecting(&["a", "b", "c"]);
    let (mut running, _) = say(&world, "begin").await;
    go_on(&mut running).await;
    running.send(Op::Rewind { turns: 1 }).await;
    go_on(&mut running).await;
    assert_eq!(kept(&world, &running).await, json!(["a", "c"]));
}

#[tokio::test]
async fn a_branch_has_its_own_from_where_it_left() {
    let world = collecting(&["a", "in the branch", "b"]);
    let (mut parent, _) = say(&world, "begin").await;
    let mut branched = branch(&world, parent.session.id()).await;
    assert_eq!(kept(&world, &branched).await, json!(["a"]));
    go_on(&mut branched).await;
    go_on(&mut parent).await;
    assert_eq!(kept(&world, &branched).await, json!(["a", "in the branch"]));
    assert_eq!(kept(&world, &parent).await, json!(["a", "b"]));
}
