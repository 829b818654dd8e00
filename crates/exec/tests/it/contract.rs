//! Every backend keeps the contract of a terminal.

use hermes_testkit::contract::terminal;

use crate::{Machine, environment};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_machine_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    terminal::check(&Machine::new(environment()), cwd).await;
}
