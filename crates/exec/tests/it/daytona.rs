//! Commands in a sandbox of Daytona, whose cloud the test kit stands in for over real HTTP.

use std::path::Path;
use std::sync::Arc;

use hermes_core::{Secret, Terminal};
use hermes_exec::{Background, Daytona, DaytonaSettings, ProcessFolder};
use hermes_testkit::TestClock;
use hermes_testkit::contract::{forwarded, processes, terminal};
use hermes_testkit::daytona::{DaytonaServer, KEY};

use crate::command;

/// A cloud, and the folder its sandbox has.
fn cloud() -> (DaytonaServer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (DaytonaServer::start(folder.path()), folder)
}

fn settings(server: &DaytonaServer) -> DaytonaSettings {
    DaytonaSettings {
        address: server.address().to_owned(),
        key: Secret::new(KEY),
        image: None,
        profile: "test".into(),
        cpus: 1,
        memory_mb: 5120,
        disk_mb: 51200,
        persistent: true,
        idle_minutes: 5,
        folder: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_in_the_cloud_keeps_the_contract() {
    let (server, folder) = cloud();
    let cwd = folder.path().canonicalize().unwrap();
    terminal::check(&Daytona::new(settings(&server)), cwd).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_along_to_the_cloud_keeps_the_contract() {
    let (server, folder) = cloud();
    let open = |home: &Path| Daytona::new(settings(&server)).forwarding(crate::forwarded(home));
    forwarded::check(open, folder.path().canonicalize().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_in_the_cloud_keep_the_contract() {
    let (server, folder) = cloud();
    let open = || {
        Background::new(
            Arc::new(Daytona::new(settings(&server))),
            ProcessFolder::Cache,
            folder.path().join("records"),
            Arc::new(TestClock::default()),
        )
    };
    processes::check(open, &folder.path().canonicalize().unwrap()).await;
}

#[tokio::test]
async fn a_sandbox_is_found_again_and_woken() {
    let (server, _folder) = cloud();
    let daytona = Daytona::new(settings(&server));
    daytona.run(command("cd /usr; A=1")).await.unwrap();
    assert_eq!(server.wanted()["autoStopInterval"], 5);
    drop(daytona);
    let daytona = Daytona::new(settings(&server));
    let look = "echo $PWD $A";
    let output = daytona.run(command(look)).await.unwrap();
    assert_eq!((output.text.as_str(), server.starts()), ("/usr 1\n", 1));
    server.put_to_sleep();
    let output = daytona.run(command(look)).await.unwrap();
    assert_eq!((output.text.as_str(), server.starts()), ("/usr 1\n", 2));
}

#[tokio::test]
async fn what_daytona_refuses_is_told_in_its_words() {
    let (server, _folder) = cloud();
    let stranger = DaytonaSettings {
        key: Secret::new("wrong"),
        ..settings(&server)
    };
    let error = Daytona::new(stranger).run(command("true")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("Daytona says: Unauthorized"), "{error}");
    assert!(!error.contains("wrong"), "{error}");
    let nobody = DaytonaSettings {
        address: "http://127.0.0.1:1/api".into(),
        ..settings(&server)
    };
    let error = Daytona::new(nobody).run(command("true")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cannot ask Daytona"), "{error}");
}
