//! What stands in for the real parts keeps their contracts, so that a test with it says something about them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hermes_core::Tool;
use hermes_testkit::contract::model::{Carries, model_contract};
use hermes_testkit::contract::store::log_contract;
use hermes_testkit::contract::tool;
use hermes_testkit::{MemoryStore, ScriptedModel, Step, TestTool};
use serde_json::json;

#[tokio::test]
async fn the_scripted_model_keeps_the_contract() {
    model_contract(Carries::Everything, async |answer| {
        (ScriptedModel::new([Step::from(answer)]), ())
    })
    .await;
}

#[tokio::test]
async fn the_test_tool_keeps_the_contract() {
    let tool: Arc<dyn Tool> = Arc::new(TestTool::new("echo"));
    tool::check(&tool, json!({"text": "hello"}), Path::new("/")).await;
}

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    let stores: Mutex<HashMap<PathBuf, MemoryStore>> = Mutex::default();
    let open = async |folder: PathBuf| {
        let mut stores = stores.lock().expect("no panic before");
        stores.entry(folder).or_default().clone()
    };
    log_contract(&open).await;
}
