//! Every backend keeps the contract of a terminal.

use std::sync::Arc;

use hermes_exec::{Background, ProcessFolder};
use hermes_testkit::TestClock;
use hermes_testkit::contract::{processes, terminal};

use crate::{Machine, environment};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_machine_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    terminal::check(&Machine::new(environment()), cwd).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_on_this_machine_keep_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().canonicalize().unwrap();
    let open = || {
        Background::new(
            Arc::new(Machine::new(environment())),
            ProcessFolder::Here(home.join("processes")),
            home.join("records"),
            Arc::new(TestClock::default()),
        )
    };
    processes::check(open, &home).await;
}
