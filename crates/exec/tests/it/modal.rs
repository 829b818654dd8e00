//! Commands in a sandbox of Modal, whose cloud the test kit stands in for over real gRPC.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{CommandExit, Progress, Secret, Terminal};
use hermes_exec::{Background, Modal, ModalSettings, ProcessFolder};
use hermes_testkit::TestClock;
use hermes_testkit::contract::{forwarded, processes, terminal};
use hermes_testkit::modal::{BROKEN_IMAGE, ModalServer, TOKEN_ID, TOKEN_SECRET};

use crate::{NEVER, command, is_alive, pid_in, wait_until};

const HOUR: Duration = Duration::from_secs(3600);

/// A cloud, and a folder for what it and we keep.
fn cloud() -> (ModalServer, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let cloud = folder.path().join("cloud");
    std::fs::create_dir(&cloud).unwrap();
    (ModalServer::start(&cloud.canonicalize().unwrap()), folder)
}

fn settings(server: &ModalServer, folder: &Path) -> ModalSettings {
    ModalSettings {
        address: server.address().to_owned(),
        token_id: Secret::new(TOKEN_ID),
        token_secret: Secret::new(TOKEN_SECRET),
        environment: String::new(),
        image: "python:3.13".into(),
        cpus: 0.5,
        memory_mb: 512,
        lifetime: HOUR,
        persistent: true,
        snapshots: folder.join("modal_snapshots.json"),
        folder: Some("~".into()),
    }
}

async fn said(modal: &Modal, line: &str) -> String {
    modal.run(command(line)).await.unwrap().text
}

async fn until(is_so: impl Fn() -> bool) {
    let look = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(NEVER, look).await.unwrap();
}

async fn refused(settings: ModalSettings) -> String {
    let ran = Modal::new(settings).run(command("true")).await;
    ran.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_of_modal_keeps_the_contract() {
    let (server, folder) = cloud();
    let settings = ModalSettings {
        folder: None,
        ..settings(&server, folder.path())
    };
    let modal = Modal::new(settings);
    terminal::check(&modal, server.home()).await;
    modal.leave().await;
    assert_eq!((server.wanted().len(), server.is_running()), (1, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_goes_along_to_a_sandbox_of_modal_keeps_the_contract() {
    let (server, folder) = cloud();
    let open = |home: &Path| {
        Modal::new(settings(&server, folder.path())).forwarding(crate::forwarded(home))
    };
    forwarded::check_alone(open, server.home()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_in_a_sandbox_of_modal_keep_the_contract() {
    let (server, folder) = cloud();
    // It ends with whoever made it; what begins anew in this suite is all that stands on it.
    let modal = Arc::new(Modal::new(settings(&server, folder.path())));
    let open = || {
        let modal = Arc::<Modal>::clone(&modal);
        Background::new(
            modal,
            ProcessFolder::Cache,
            folder.path().join("records"),
            Arc::new(TestClock::default()),
        )
    };
    processes::check(open, "~").await;
}

#[tokio::test]
async fn a_sandbox_is_what_was_asked_for_and_sees_nothing_of_ours() {
    let (server, folder) = cloud();
    let modal = Modal::new(settings(&server, folder.path()));
    let variables = said(&modal, "env").await;
    assert!(!variables.contains(TOKEN_ID) && !variables.contains(TOKEN_SECRET));
    let wanted = server.wanted().remove(0);
    assert_eq!(wanted.entrypoint_args, ["sleep", "infinity"]);
    assert_eq!(wanted.timeout_secs, 3600);
    assert!(wanted.secret_ids.is_empty());
    let resources = wanted.resources.unwrap();
    assert_eq!((resources.memory_mb, resources.milli_cpu), (512, 500));
}

#[tokio::test]
async fn files_and_shells_outlive_their_sandbox() {
    let (server, folder) = cloud();
    let modal = Modal::new(settings(&server, folder.path()));
    said(&modal, "mkdir work; cd work; echo kept >file; A=1").await;
    modal.leave().await;
    assert_eq!((server.is_running(), server.snapshots()), (false, 1));
    assert!(!server.home().exists());
    let modal = Modal::new(settings(&server, folder.path()));
    assert_eq!(said(&modal, "cat file; echo $A").await, "kept\n1\n");
    assert_eq!(server.wanted()[1].image_id, "im-snapshot1");
}

#[tokio::test]
async fn a_sandbox_that_is_not_kept_leaves_nothing() {
    let (server, folder) = cloud();
    let forgetful = || ModalSettings {
        persistent: false,
        ..settings(&server, folder.path())
    };
    let modal = Modal::new(forgetful());
    said(&modal, "echo >file").await;
    modal.leave().await;
    assert_eq!((server.is_running(), server.snapshots()), (false, 0));
    assert_eq!(said(&Modal::new(forgetful()), "ls").await, "");
}

#[tokio::test]
async fn a_snapshot_that_is_gone_gives_way_to_the_image() {
    let (server, folder) = cloud();
    let modal = Modal::new(settings(&server, folder.path()));
    said(&modal, "echo >file").await;
    modal.leave().await;
    server.lose_images();
    let modal = Modal::new(settings(&server, folder.path()));
    assert_eq!(said(&modal, "ls").await, "");
    let record = std::fs::read_to_string(folder.path().join("modal_snapshots.json"));
    assert_eq!(record.unwrap(), "{}");
}

#[tokio::test]
async fn a_sandbox_near_its_end_is_left_for_another_with_its_files() {
    let (server, folder) = cloud();
    let modal = Modal::new(ModalSettings {
        lifetime: Duration::ZERO,
        ..settings(&server, folder.path())
    });
    said(&modal, "echo kept >file").await;
    assert_eq!(said(&modal, "cat file").await, "kept\n");
    assert_eq!((server.wanted().len(), server.snapshots()), (2, 1));
}

#[tokio::test]
async fn a_sandbox_nobody_waits_for_any_more_is_ended() {
    let (server, folder) = cloud();
    let modal = Modal::new(settings(&server, folder.path()));
    let command = command("true");
    let stop = command.stop.clone();
    let wait = async {
        until(|| server.is_running()).await;
        stop.cancel();
    };
    let (output, ()) = tokio::join!(modal.run(command), wait);
    assert_eq!(output.unwrap().exit, CommandExit::Stopped);
    until(|| !server.is_running()).await;
    assert_eq!(said(&modal, "echo well").await, "well\n");
}

#[tokio::test]
async fn another_sandbox_takes_the_place_of_one_that_died() {
    let (server, folder) = cloud();
    let modal = Modal::new(settings(&server, folder.path()));
    said(&modal, "A=1").await;
    server.lose_sandbox();
    let text = said(&modal, "echo ${A-none}").await;
    assert!(
        text.contains("was lost") && text.ends_with("none\n"),
        "{text}"
    );
    assert_eq!(server.wanted().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sandbox_that_dies_under_a_command_is_told() {
    let (server, folder) = cloud();
    let modal = Arc::new(Modal::new(settings(&server, folder.path())));
    let running = tokio::task::JoinSet::from_iter([{
        let modal = Arc::clone(&modal);
        async move { modal.run(command("echo up; : >up; sleep 60")).await }
    }]);
    let up = server.home().join("up");
    tokio::task::block_in_place(|| wait_until("the command", || up.exists()));
    server.lose_sandbox();
    let error = running.join_all().await.remove(0).unwrap_err().to_string();
    assert!(
        error.contains("does not answer any more after: up"),
        "{error}"
    );
    assert_eq!(said(&modal, "echo again").await, "again\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_connection_is_taken_up_where_it_broke() {
    let (server, folder) = cloud();
    let modal = Modal::new(settings(&server, folder.path()));
    said(&modal, "mkfifo go").await;
    let (watcher, mut lines) = tokio::sync::mpsc::channel(10);
    let mut told = command("echo one; read -r word <go; echo $word; cat; exit 7");
    told.stdin = b"input\n".to_vec();
    told.progress = Progress::to(watcher);
    let cut = async {
        assert_eq!(lines.recv().await.as_deref(), Some("one"));
        server.cut_connections();
        let go = server.home().join("go");
        tokio::task::block_in_place(|| std::fs::write(go, "two\n")).unwrap();
    };
    let (output, ()) = tokio::join!(modal.run(told), cut);
    let output = output.unwrap();
    assert_eq!(output.text, "one\ntwo\ninput\n");
    assert_eq!(output.exit, CommandExit::Code(7));
}

/// Takes as long as a sandbox waits for a sign of us.
#[test]
fn a_command_whose_hermes_was_killed_ends() {
    let (server, folder) = cloud();
    let settings = settings(&server, folder.path());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let modal = Arc::new(Modal::new(settings));
    let running = Arc::clone(&modal);
    let task = async move { running.run(command("echo $$ >pid; sleep 60")).await };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn_on(task, runtime.handle());
    let pid = pid_in(&server.home().join("pid"));
    // Nothing is said any more, not even goodbye.
    runtime.shutdown_background();
    assert!(is_alive(&pid));
    wait_until("the end of the command", || !is_alive(&pid));
}

#[tokio::test]
async fn the_key_to_a_sandbox_is_renewed() {
    let (server, folder) = cloud();
    let modal = Modal::new(settings(&server, folder.path()));
    said(&modal, "A=1").await;
    server.expire_access();
    assert_eq!(said(&modal, "echo $A").await, "1\n");
    assert_eq!((server.accesses(), server.wanted().len()), (2, 1));
}

#[tokio::test]
async fn a_line_longer_than_modal_takes_arguments_runs() {
    let (server, folder) = cloud();
    let modal = Modal::new(settings(&server, folder.path()));
    let line = format!("echo 'it'\"'\"'s' {} | wc -c", "x".repeat(60_000));
    assert_eq!(said(&modal, &line).await, "60006\n");
}

#[tokio::test]
async fn what_modal_refuses_is_told_in_its_words() {
    let (server, folder) = cloud();
    let good = || settings(&server, folder.path());
    let error = refused(ModalSettings {
        token_secret: Secret::new("wrong"),
        ..good()
    });
    let error = error.await;
    assert!(
        error.contains("Modal says: Token ID or secret is wrong"),
        "{error}"
    );
    let error = refused(ModalSettings {
        token_id: Secret::new("two\nlines"),
        ..good()
    });
    let error = error.await;
    assert!(
        error.contains("x-modal-token-id") && !error.contains("lines"),
        "{error}"
    );
    let error = refused(ModalSettings {
        address: "http://127.0.0.1:1".into(),
        ..good()
    });
    let error = error.await;
    assert!(error.contains("cannot ask Modal"), "{error}");
    let error = refused(ModalSettings {
        image: format!("{BROKEN_IMAGE}:latest"),
        ..good()
    });
    let error = error.await;
    let words = "the image `broken:latest` cannot be built: Image build failed\npulling broken";
    assert!(error.contains(words), "{error}");
    assert!(server.wanted().is_empty());
}
