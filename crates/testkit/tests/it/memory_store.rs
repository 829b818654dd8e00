//! The store of in-process tests keeps the promises of the real one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

use hermes_testkit::MemoryStore;
use hermes_testkit::contract::store::log_contract;

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    let stores: Mutex<HashMap<PathBuf, MemoryStore>> = Mutex::default();
    let open = async |folder: PathBuf| {
        let mut stores = stores.lock().expect("no panic before");
        stores.entry(folder).or_default().clone()
    };
    log_contract(&open).await;
}
