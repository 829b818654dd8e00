//! Checkpoints, with the system's git.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Change, CheckpointError, Random, SessionId};
use hermes_exec::{Checkpoint, CheckpointLimits, CheckpointSettings, CheckpointStore, Restored};
use hermes_testkit::TestClock;
use tokio::task::JoinSet;

use crate::environment;

/// A project, a home beside it, and a store with the given limits.
struct Scene {
    folder: tempfile::TempDir,
    project: PathBuf,
    clock: Arc<TestClock>,
    settings: CheckpointSettings,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let project = root.join("project");
        fs::create_dir(&project).unwrap();
        let settings = CheckpointSettings {
            home: root.join("hermes"),
            user_home: Some(root.join("user")),
            environment: environment(),
            limits: CheckpointLimits::default(),
        };
        Self {
            folder,
            project,
            clock: Arc::new(TestClock::default()),
            settings,
        }
    }

    /// A scene with files in its project.
    fn with(files: &[(&str, &str)]) -> Self {
        let scene = Self::new();
        for (path, content) in files {
            scene.write(path, content);
        }
        scene
    }

    fn store(&self) -> CheckpointStore {
        CheckpointStore::new(self.settings.clone(), self.clock.clone())
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.project.join(path)
    }

    fn write(&self, path: impl AsRef<Path>, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    async fn keep(&self) -> Checkpoint {
        self.clock.advance(Duration::from_secs(1));
        self.try_keep().await.unwrap()
    }

    async fn try_keep(&self) -> Result<Checkpoint, CheckpointError> {
        self.store().keep(&self.project, &change(&[])).await
    }

    async fn restore(&self, checkpoint: &Checkpoint) -> Restored {
        self.try_restore(checkpoint, None).await.unwrap()
    }

    async fn try_restore(
        &self,
        checkpoint: &Checkpoint,
        only: Option<&Path>,
    ) -> Result<Restored, CheckpointError> {
        self.clock.advance(Duration::from_secs(1));
        let store = self.store();
        store
            .restore(&self.project, checkpoint, only, &SessionId::from("session"))
            .await
    }

    async fn count(&self) -> usize {
        self.store().list(&self.project).await.unwrap().len()
    }

    /// Lets a program of ours stand before git: it gets the arguments, and `$GIT` is the real one.
    fn disturb_git(&mut self, script: &str) {
        let bin = self.folder.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test finds its git")]
        let found = Command::new("sh").args(["-c", "command -v git"]).output();
        let git = String::from_utf8(found.unwrap().stdout).unwrap();
        let script = format!("#!/bin/sh\nGIT={git}{script}\nexec \"$GIT\" \"$@\"\n");
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        self.settings.environment = vec![("PATH".into(), path.into())];
    }
}

fn change(paths: &[PathBuf]) -> Change {
    Change {
        session: "session".into(),
        reason: "patch a.txt".into(),
        paths: paths.to_vec(),
    }
}

/// Everything below a folder: contents of files, targets of links.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in next.read_dir().unwrap().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.insert(path, target.as_os_str().as_bytes().to_vec());
            } else {
                let content = fs::read(&path).unwrap();
                found.insert(path, content);
            }
        }
    }
    found
}

fn git(folder: &Path, args: &[&str]) {
    #[expect(clippy::disallowed_methods, reason = "a test prepares a repository")]
    let output = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
}

#[tokio::test]
async fn a_restore_brings_back_what_changed_removes_what_came_and_can_be_undone() {
    let scene = Scene::with(&[("a.txt", "old"), ("deep/er/b.txt", "b"), ("same", "same")]);
    let kept = scene.keep().await;
    let before = contents(&scene.project);
    scene.write("a.txt", "new");
    scene.write("created/c.txt", "c");
    fs::remove_dir_all(scene.path("deep")).unwrap();
    let after = contents(&scene.project);

    let restored = scene.restore(&kept).await;
    assert_eq!(contents(&scene.project), before);
    assert!(!scene.path("created").exists(), "no empty folder is left");
    let names = |list: &[&str]| list.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(restored.written, names(&["a.txt", "deep/er/b.txt"]));
    assert_eq!(restored.removed, names(&["created/c.txt"]));

    scene.restore(&restored.undo).await;
    assert_eq!(contents(&scene.project), after);
}

#[tokio::test]
async fn one_file_or_folder_is_restored_alone() {
    let scene = Scene::with(&[("a.txt", "a"), ("sub/b.txt", "b"), ("sub/c.txt", "c")]);
    let kept = scene.keep().await;
    for file in ["a.txt", "sub/b.txt", "sub/new.txt"] {
        scene.write(file, "changed");
    }
    let restored = scene.try_restore(&kept, Some(&scene.path("sub"))).await;
    assert_eq!(restored.unwrap().removed, [PathBuf::from("sub/new.txt")]);
    let read = |path: &str| fs::read_to_string(scene.path(path)).unwrap();
    assert_eq!(
        (read("sub/b.txt"), read("a.txt")),
        ("b".into(), "changed".into())
    );
    scene
        .try_restore(&kept, Some(&scene.path("a.txt")))
        .await
        .unwrap();
    assert_eq!(read("a.txt"), "a");

    for outside in ["../elsewhere", "/etc/passwd"] {
        let error = scene.try_restore(&kept, Some(&scene.path(outside))).await;
        assert!(
            matches!(error, Err(CheckpointError::Outside { .. })),
            "{error:?}"
        );
    }
    let error = scene.try_restore(&kept, Some(&scene.path("nothing"))).await;
    assert!(error.unwrap_err().to_string().contains("has no `nothing`"));
}

#[tokio::test]
async fn an_unchanged_project_is_kept_once() {
    let scene = Scene::with(&[("a.txt", "a")]);
    let first = scene.keep().await;
    assert_eq!(scene.keep().await.id, first.id);
    // The same size and perhaps the same time: what a look at the file alone would miss.
    scene.write("a.txt", "b");
    assert_ne!(scene.keep().await.id, first.id);
    assert_eq!(scene.count().await, 2);
}

#[tokio::test]
async fn the_users_repository_is_not_touched_and_their_git_settings_do_not_matter() {
    let mut scene = Scene::with(&[("a.txt", "a"), ("hooked", "")]);
    git(&scene.project, &["init", "-q"]);
    git(&scene.project, &["add", "a.txt"]);
    let id = ["-c", "user.name=n", "-c", "user.email=e"];
    git(
        &scene.project,
        &[&id[..], &["commit", "-qm", "first"]].concat(),
    );
    scene.write("a.txt", "staged");
    git(&scene.project, &["add", "a.txt"]);
    // A home that signs everything, runs hooks, and points elsewhere.
    let user = scene.folder.path().join("user");
    fs::create_dir_all(user.join("hooks")).unwrap();
    let hook = user.join("hooks/reference-transaction");
    fs::write(
        &hook,
        format!("#!/bin/sh\necho >> {}/hook-ran\n", user.display()),
    )
    .unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!(
        "[commit]\n gpgSign = true\n[core]\n hooksPath = {}/hooks\n excludesFile = {0}/excludes\n autocrlf = true\n",
        user.display()
    );
    fs::write(user.join(".gitconfig"), config).unwrap();
    fs::write(user.join("excludes"), "*\n").unwrap();
    let theirs = scene.project.join(".git");
    scene.settings.environment.extend([
        ("HOME".into(), user.clone().into_os_string()),
        ("GIT_DIR".into(), theirs.clone().into_os_string()),
        (
            "GIT_INDEX_FILE".into(),
            theirs.join("index").into_os_string(),
        ),
        ("GIT_CONFIG_COUNT".into(), OsString::from("nonsense")),
    ]);
    let before = contents(&theirs);

    let kept = scene.keep().await;
    scene.write("a.txt", "changed");
    scene.store().diff(&scene.project, &kept).await.unwrap();
    scene.restore(&kept).await;
    scene.store().prune().await.unwrap();

    assert_eq!(fs::read_to_string(scene.path("a.txt")).unwrap(), "staged");
    assert_eq!(contents(&theirs), before);
    assert!(!user.join("hook-ran").exists(), "no hook was run");
}

#[tokio::test]
async fn odd_names_links_and_line_ends_come_back_to_the_byte() {
    let scene = Scene::new();
    let odd: &[&[u8]] = &[
        b"with space",
        b"new\nline",
        b"\"quoted\"",
        b"-dash",
        b"*",
        b":(top)x",
        b"back\\slash",
        b"\xff\xfe not text",
        "ünï→".as_bytes(),
        b"#hash",
        b"GIT~1",
        b"tab\there",
        b".git.txt",
    ];
    for name in odd {
        scene.write(OsStr::from_bytes(name), "content");
    }
    scene.write(".gitattributes", "* text=auto eol=crlf ident filter=lfs\n");
    scene.write("crlf", "one\r\ntwo\n$Id$\r\n");
    symlink("nowhere", scene.path("dangling")).unwrap();
    symlink("/etc/passwd", scene.path("outside")).unwrap();
    fs::create_dir(scene.path("real")).unwrap();
    scene.write("real/file", "in");
    symlink("real", scene.path("to-folder")).unwrap();
    let before = contents(&scene.project);
    let kept = scene.keep().await;

    fs::remove_dir_all(&scene.project).unwrap();
    // A folder where a link was, a link where a folder was.
    scene.write("to-folder/file", "other");
    symlink("to-folder", scene.path("real")).unwrap();
    scene.restore(&kept).await;
    assert_eq!(contents(&scene.project), before);
    assert!(fs::read_to_string("/etc/passwd").unwrap().contains("root"));
}

#[tokio::test]
async fn a_folder_that_became_a_link_out_of_the_project_is_shown_and_brought_back() {
    let scene = Scene::with(&[("data/a", "ours"), ("b", "too")]);
    let checkpoint = scene.keep().await;
    let outside = scene.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "theirs").unwrap();
    fs::remove_dir_all(scene.path("data")).unwrap();
    symlink(&outside, scene.path("data")).unwrap();
    let diff = scene.store().diff(&scene.project, &checkpoint).await;
    let diff = diff.unwrap();
    assert!(diff.contains("-ours") && !diff.contains("theirs"), "{diff}");
    scene.restore(&checkpoint).await;
    assert_eq!(fs::read_to_string(scene.path("data/a")).unwrap(), "ours");
    let theirs = fs::read_to_string(outside.join("a")).unwrap();
    assert_eq!(theirs, "theirs", "what the link led to is left alone");
}

#[tokio::test]
async fn what_can_be_made_again_is_too_large_or_secret_is_left_out() {
    let mut scene = Scene::with(&[
        (".gitignore", "ign*\n"),
        ("ignored/x", "x"),
        ("node_modules/m/index.js", "m"),
        ("target/debug/app", "t"),
        (".env", "KEY=secret"),
        ("nested/.git/HEAD", "ref"),
        ("nested/file", "n"),
        ("large", "0123456789"),
        ("small", "012345"),
    ]);
    scene.settings.limits.file_bytes_max = 9;
    let kept = scene.keep().await;
    fs::remove_dir_all(&scene.project).unwrap();
    fs::create_dir(&scene.project).unwrap();
    scene.restore(&kept).await;
    let left: Vec<_> = contents(&scene.project).into_keys().collect();
    let kept = [".gitignore", "nested/file", "small"].map(|path| scene.path(path));
    assert_eq!(left, kept);
}

#[tokio::test]
async fn a_file_that_is_about_to_change_is_kept_whatever_its_kind() {
    let mut scene = Scene::with(&[
        (".gitignore", "*.local\n"),
        ("my.local", "mine"),
        ("big", "0123456789"),
    ]);
    scene.settings.limits.file_bytes_max = 9;
    let paths = ["my.local", "big", "new"].map(|path| scene.path(path));
    let kept = scene
        .store()
        .keep(&scene.project, &change(&paths))
        .await
        .unwrap();
    for path in ["my.local", "big"] {
        scene.write(path, "overwritten with something longer");
    }
    let restored = scene.restore(&kept).await;
    assert_eq!(fs::read_to_string(scene.path("big")).unwrap(), "0123456789");
    assert_eq!(fs::read_to_string(scene.path("my.local")).unwrap(), "mine");
    scene.restore(&restored.undo).await;
    assert!(
        fs::read_to_string(scene.path("big"))
            .unwrap()
            .starts_with("over")
    );
}

#[tokio::test]
async fn what_stands_in_the_way_and_could_not_be_kept_stops_the_whole_restore() {
    let scene = Scene::with(&[("a", "a"), ("b", "b")]);
    let kept = scene.keep().await;
    scene.write("a", "changed");
    fs::remove_file(scene.path("b")).unwrap();
    scene.write("b/node_modules/precious", "p");
    let error = scene.try_restore(&kept, None).await.unwrap_err();
    assert!(error.to_string().contains('b'), "{error}");
    assert_eq!(fs::read_to_string(scene.path("a")).unwrap(), "changed");
    assert!(scene.path("b/node_modules/precious").exists());
}

#[tokio::test]
async fn permissions_survive_where_git_would_forget_them() {
    let scene = Scene::with(&[("private", "old"), ("run", "old")]);
    let mode = |path: &str| fs::metadata(scene.path(path)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(scene.path("private"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::set_permissions(scene.path("run"), fs::Permissions::from_mode(0o755)).unwrap();
    let kept = scene.keep().await;
    scene.write("private", "new");
    fs::set_permissions(scene.path("run"), fs::Permissions::from_mode(0o644)).unwrap();
    scene.restore(&kept).await;
    assert_eq!((mode("private"), mode("run")), (0o600, 0o755));
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_left_out_and_left_alone() {
    let scene = Scene::with(&[("a", "a"), ("closed", "c")]);
    fs::set_permissions(scene.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let kept = scene.keep().await;
    scene.write("a", "changed");
    scene.restore(&kept).await;
    assert_eq!(fs::read_to_string(scene.path("a")).unwrap(), "a");
    fs::set_permissions(scene.path("closed"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(fs::read_to_string(scene.path("closed")).unwrap(), "c");
}

#[tokio::test]
async fn sessions_that_keep_the_same_project_at_once_do_not_disturb_each_other() {
    let scene = Scene::with(&[("a", "a"), ("b", "b")]);
    let mut keeping = JoinSet::new();
    for number in 0..8 {
        let (store, project) = (scene.store(), scene.project.clone());
        fs::write(project.join(format!("{number}")), "new").unwrap();
        keeping.spawn(async move { store.keep(&project, &change(&[])).await });
    }
    let kept = keeping.join_all().await;
    for checkpoint in kept {
        scene.restore(&checkpoint.unwrap()).await;
        assert!(scene.path("a").exists() && scene.path("b").exists());
    }
}

#[tokio::test]
async fn a_copy_that_is_killed_half_way_leaves_nothing_that_hinders_the_next() {
    for step in [
        "init",
        "update-index",
        "write-tree",
        "commit-tree",
        "update-ref",
        "repack",
    ] {
        let mut scene = Scene::with(&[("a", "a")]);
        if step == "repack" {
            scene.keep().await;
        }
        let reached = scene.folder.path().join("reached");
        let script = format!(
            "case \" $* \" in *\" {step} \"*) echo > {}; exec sleep 100;; esac",
            reached.display()
        );
        scene.disturb_git(&script);
        let store = scene.store();
        let mut working = JoinSet::new();
        let project = scene.project.clone();
        working.spawn(async move {
            match step {
                "repack" => drop(store.prune().await),
                _ => drop(store.keep(&project, &change(&[])).await),
            }
        });
        while !reached.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        working.shutdown().await;
        // What git leaves when it is killed at other moments.
        let store = scene.settings.home.join("checkpoints");
        if store.join("kept.git").is_dir() {
            fs::write(store.join("kept.git/packed-refs.lock"), "").unwrap();
            fs::write(store.join("kept.git/HEAD.lock"), "").unwrap();
        }
        scene.settings.environment = environment();
        scene.settings.limits.per_project_max = 1;
        scene.write("a", "b");
        let kept = scene.keep().await;
        scene.write("a", "c");
        scene.restore(&kept).await;
        assert_eq!(fs::read_to_string(scene.path("a")).unwrap(), "b", "{step}");
        scene.store().prune().await.unwrap();
        assert_eq!(scene.count().await, 1, "{step}");
    }
}

#[tokio::test]
async fn without_git_it_says_so() {
    let mut scene = Scene::with(&[("a", "a")]);
    scene.settings.environment = vec![("PATH".into(), "/nowhere".into())];
    let error = scene.try_keep().await.unwrap_err();
    assert!(matches!(error, CheckpointError::NoGit { .. }), "{error}");
}

#[tokio::test]
async fn a_disk_that_takes_no_more_is_an_error_and_not_a_broken_store() {
    let mut scene = Scene::with(&[("a", "a")]);
    let first = scene.keep().await;
    scene.disturb_git("trap '' XFSZ; ulimit -f 0");
    scene.write("a", "b");
    let error = scene.try_keep().await.unwrap_err();
    assert!(matches!(error, CheckpointError::Failed { .. }), "{error}");
    scene.settings.environment = environment();
    scene.keep().await;
    scene.restore(&first).await;
    assert_eq!(fs::read_to_string(scene.path("a")).unwrap(), "a");
}

#[tokio::test]
async fn a_project_that_is_too_large_is_not_walked_to_its_end() {
    let mut scene = Scene::with(&[("a", ""), ("b", ""), ("c", "")]);
    scene.settings.limits.files_max = 2;
    let error = scene.try_keep().await.unwrap_err();
    assert!(
        matches!(error, CheckpointError::TooManyFiles { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn the_limits_hold_and_what_is_left_still_restores() {
    let mut scene = Scene::new();
    scene.settings.limits.per_project_max = 3;
    for number in 0..6 {
        scene.write("a", &number.to_string());
        scene.keep().await;
    }
    assert_eq!(scene.count().await, 3);
    // Contents that no compression makes small.
    let random = Random::from_system();
    let noise: String = (0..40_000)
        .map(|_| format!("{:016x}", random.next_u64()))
        .collect();
    scene.write("noise", &noise);
    scene.keep().await;
    scene.write("noise", &noise.chars().rev().collect::<String>());
    scene.keep().await;
    scene.settings.limits.total_bytes_max = 500_000;
    let tidied = scene.store().prune().await.unwrap();
    assert!(
        tidied.bytes_after <= 500_000 && tidied.dropped > 0,
        "{tidied:?}"
    );
    assert_eq!(tidied.kept, scene.count().await);

    fs::remove_file(scene.path("noise")).unwrap();
    let kept = scene.keep().await;
    scene.write("a", "lost");
    scene.restore(&kept).await;
    assert_eq!(fs::read_to_string(scene.path("a")).unwrap(), "5");
    scene.clock.advance(Duration::from_secs(8 * 24 * 60 * 60));
    scene.store().prune_when_due().await.unwrap();
    assert_eq!(scene.count().await, 0, "all are too old");
}

#[tokio::test]
async fn a_checkpoint_is_found_by_number_or_by_the_beginning_of_its_id() {
    let scene = Scene::with(&[("a", "1")]);
    let old = scene.keep().await;
    scene.write("a", "2");
    let new = scene.keep().await;
    let store = scene.store();
    for (name, expected) in [("1", &new), ("2", &old), (old.short_id(), &old)] {
        let found = store.find(&scene.project, name).await.unwrap();
        assert_eq!(found, *expected, "{name}");
    }
    for name in ["0", "3", "", "zzzzzzz", "-1"] {
        let error = store.find(&scene.project, name).await.unwrap_err();
        assert!(matches!(error, CheckpointError::NotFound { .. }), "{name}");
    }
    let diff = store.diff(&scene.project, &old).await.unwrap();
    assert!(diff.contains("-1\n") && diff.contains("+2\n"), "{diff}");
    assert!(store.diff(&scene.project, &new).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_home_of_hermes_inside_a_project_is_not_part_of_it() {
    let mut scene = Scene::with(&[("a", "a"), ("hermes/hermes.db", "now")]);
    scene.settings.home = scene.path("hermes");
    let kept = scene.keep().await;
    scene.write("hermes/hermes.db", "later");
    scene.restore(&kept).await;
    let database = fs::read_to_string(scene.path("hermes/hermes.db")).unwrap();
    assert_eq!(database, "later");
    assert_eq!(
        scene
            .store()
            .project(&scene.path("hermes"), &scene.path("hermes")),
        None
    );
}

/// Prints figures: `cargo test -p hermes-exec --test it -- --ignored --nocapture five_thousand`.
#[tokio::test]
#[ignore = "a measurement"]
async fn five_thousand_files_take() {
    let scene = Scene::new();
    for number in 0..5_000 {
        scene.write(
            format!("d{}/f{number}.txt", number % 50),
            &format!("file {number}"),
        );
    }
    for round in 0..6 {
        if round == 4 {
            scene.write("d1/f1.txt", "changed");
        }
        let started = std::time::Instant::now();
        scene.keep().await;
        println!("round {round}: {:?}", started.elapsed());
    }
}
