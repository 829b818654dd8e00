//! A real full disk, where this machine lets us mount a small one. The rule itself is also tested without a mount,
//! beside the writer.

use std::path::{Path, PathBuf};
use std::process::Command;

use hermes_core::{SessionId, Store, StoreError};
use hermes_store::Health;
use tempfile::TempDir;

use crate::{NOW, exchange, new_session, open};

#[tokio::test]
async fn a_full_disk_is_said_and_work_goes_on_when_there_is_space() {
    let Some(disk) = SmallDisk::mount() else {
        println!("SKIPPED: no small disk can be mounted here");
        return;
    };
    let store = open(disk.path());
    let session = SessionId::from("s1");
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 2 << 20]).unwrap();

    let mut turns = 0;
    let error = loop {
        let entries = exchange(&format!("t{turns}"), &"words ".repeat(2000), "noted");
        match store.append(&session, NOW, entries).await {
            Ok(()) => turns += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(
        error,
        StoreError::DiskFull {
            path: store.path().to_owned()
        }
    );
    assert_eq!(
        store.load(&session).await.unwrap().messages.len(),
        2 * turns
    );

    std::fs::remove_file(&ballast).unwrap();
    let entries = exchange("after", "space again", "noted");
    store.append(&session, NOW, entries).await.unwrap();
    drop(store);
    let store = open(disk.path());
    let messages = store.load(&session).await.unwrap().messages;
    assert_eq!(messages.len(), 2 * turns + 2);
    assert_eq!(store.check().await, Ok(Health::Sound));
}

#[tokio::test]
async fn a_session_cannot_be_claimed_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount() else {
        println!("SKIPPED: no small disk can be mounted here");
        return;
    };
    let store = open(disk.path());
    store.create(new_session("s1"), Vec::new()).await.unwrap();
    // Writes as much as fits, and fails.
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 4 << 20]).unwrap_err();

    let error = store.claim(&"s1".into()).await.err();
    assert!(
        matches!(error, Some(StoreError::DiskFull { .. })),
        "{error:?}"
    );
    std::fs::remove_file(&ballast).unwrap();
    assert!(store.claim(&"s1".into()).await.is_ok());
}

struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str()?;
        run("mount", &["-t", "tmpfs", "-o", "size=5m", "tmpfs", path]).then_some(Self { folder })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let path: PathBuf = self.path().to_owned();
        assert!(run("umount", &["--lazy", &path.to_string_lossy()]));
    }
}

#[expect(clippy::disallowed_methods, reason = "mounting is a program's work")]
fn run(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}
