//! Files that leave this machine: what was looked at is what is sent.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use hermes_runtime::files_out::FilesOut;

use crate::support::Process;

#[tokio::test]
async fn what_is_sent_is_what_was_looked_at() {
    let process = Process::start().await;
    let base = process.runtime.base();
    let files = FilesOut::chosen(base).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.txt");
    fs::write(base.home.dot_env(), "TOKEN=secret").unwrap();
    for guest in [None, Some("telegram:7")] {
        fs::write(&out, "fine").unwrap();
        let taken = files.take(&out, guest, 100).unwrap();
        fs::remove_file(&out).unwrap();
        symlink(base.home.dot_env(), &out).unwrap();
        assert_eq!(fs::read_to_string(&taken).unwrap(), "fine");
        assert_eq!(taken.file_name(), out.file_name());
        assert!(files.take(&out, guest, 100).is_err(), "{guest:?}");
        fs::remove_file(&out).unwrap();
    }
}

#[tokio::test]
async fn what_is_empty_or_too_large_stays_and_nothing_of_it_is_kept() {
    let process = Process::start().await;
    let base = process.runtime.base();
    let files = FilesOut::chosen(base).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.txt");
    for (words, why) in [("", "it is empty"), ("12345", "this platform takes")] {
        fs::write(&out, words).unwrap();
        let refused = files.take(&out, None, 4).unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    let refused = files.take(folder.path(), None, 4).unwrap_err();
    assert_eq!(refused, "it is no file");
    let outgoing = base.home.cache().join("outgoing");
    assert!(!outgoing.exists() || fs::read_dir(outgoing).unwrap().next().is_none());
}

#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "files have the time of the machine"
)]
async fn copies_are_forgotten_in_time_but_for_those_that_wait() {
    let process = Process::start().await;
    let files = FilesOut::chosen(process.runtime.base()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.txt");
    fs::write(&out, "fine").unwrap();
    let take = || files.take(&out, None, 100).unwrap();
    let (waiting, sent) = (take(), take());
    let now = SystemTime::now();
    files.forget(now - Duration::from_secs(60), &[]);
    assert!(waiting.exists() && sent.exists());
    files.forget(
        now + Duration::from_secs(60),
        std::slice::from_ref(&waiting),
    );
    assert!(waiting.exists() && !sent.exists());
}
