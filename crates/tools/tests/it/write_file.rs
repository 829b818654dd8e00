//! `write_file`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use hermes_core::{Effect, Parallel};
use serde_json::{Value, json};

use crate::{Place, plan};

const WRITE: &str = "write_file";

fn arguments(path: &str, content: &str) -> Value {
    json!({"path": path, "content": content})
}

#[tokio::test]
async fn a_file_is_created_with_its_folders() {
    let place = Place::new();
    let text = place
        .call(WRITE, arguments("a/b/c.txt", "one\ntwo\n"))
        .await
        .unwrap();
    assert_eq!(place.read("a/b/c.txt"), "one\ntwo\n");
    assert!(text.starts_with("created, with its folder"), "{text}");
    assert!(text.ends_with("8 bytes, 2 lines"), "{text}");
}

#[tokio::test]
async fn an_existing_file_is_replaced_and_keeps_its_mode() {
    let place = Place::new();
    let path = place.write("run.sh", "old");
    fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    let text = place
        .call(WRITE, arguments("run.sh", "new\n"))
        .await
        .unwrap();
    assert!(text.starts_with("replaced"), "{text}");
    assert_eq!(place.read("run.sh"), "new\n");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
}

#[tokio::test]
async fn line_endings_and_byte_order_mark_are_kept() {
    let place = Place::new();
    place.write("dos.txt", "\u{feff}a\r\nb\r\n");
    place
        .call(WRITE, arguments("dos.txt", "c\nd\n"))
        .await
        .unwrap();
    assert_eq!(place.read("dos.txt"), "\u{feff}c\r\nd\r\n");
}

#[tokio::test]
async fn a_write_goes_through_a_link_to_its_target() {
    let place = Place::new();
    place.write("real/target.txt", "old");
    symlink("real/target.txt", place.path("link")).unwrap();
    symlink("real/later.txt", place.path("dangling")).unwrap();
    place.call(WRITE, arguments("link", "new")).await.unwrap();
    place
        .call(WRITE, arguments("dangling", "made"))
        .await
        .unwrap();
    assert_eq!(place.read("real/target.txt"), "new");
    assert_eq!(place.read("real/later.txt"), "made");
    assert!(
        fs::symlink_metadata(place.path("link"))
            .unwrap()
            .is_symlink()
    );
}

#[tokio::test]
async fn guarded_files_are_not_written_whatever_way_leads_there() {
    let place = Place::new();
    place.write(".ssh/authorized_keys", "old");
    place.write(".hermes/config.yaml", "old");
    symlink(place.path(".ssh"), place.path("keys")).unwrap();
    symlink(place.path(".hermes/config.yaml"), place.path("notes.txt")).unwrap();
    for path in [
        "~/.ssh/authorized_keys",
        "keys/authorized_keys",
        "keys/new_file",
        "notes.txt",
        ".hermes/auth.json",
        "x/../.bashrc",
        "/etc/hermes-test",
    ] {
        let answer = place.answer(WRITE, arguments(path, "new")).await;
        assert!(answer.contains("is not written:"), "{path}: {answer}");
    }
    assert_eq!(place.read(".ssh/authorized_keys"), "old");
    assert_eq!(place.read(".hermes/config.yaml"), "old");
    assert!(!place.path(".ssh/new_file").exists());
}

#[tokio::test]
async fn what_cannot_be_a_file_is_refused() {
    let place = Place::new();
    place.write("folder/inside.txt", "x");
    let read_only = place.write("read_only.txt", "old");
    fs::set_permissions(&read_only, Permissions::from_mode(0o444)).unwrap();
    for (path, expected) in [
        ("folder", "is a folder"),
        ("folder/", "names a folder"),
        ("folder/inside.txt/x", "not written"),
        ("read_only.txt", "is read-only (mode 444)"),
    ] {
        let answer = place.answer(WRITE, arguments(path, "new")).await;
        assert!(answer.contains(expected), "{path}: {answer}");
    }
    assert_eq!(place.read("read_only.txt"), "old");
}

#[tokio::test]
async fn broken_json_and_displayed_lines_are_not_written() {
    let place = Place::new();
    place.write("a.json", "{}");
    let answer = place.answer(WRITE, arguments("a.json", "{\"a\": }")).await;
    assert!(
        answer.contains("not valid JSON") && answer.contains("line 1"),
        "{answer}"
    );
    assert_eq!(place.read("a.json"), "{}");
    let answer = place
        .answer(WRITE, arguments("a.rs", "1|fn main() {\n2|}\n"))
        .await;
    assert!(answer.contains("line numbers"), "{answer}");
    assert!(!place.path("a.rs").exists());
}

#[tokio::test]
async fn a_failed_write_leaves_nothing_behind() {
    let place = Place::new();
    let name = "x".repeat(256);
    let answer = place.answer(WRITE, arguments(&name, "new")).await;
    assert!(
        answer.contains("was not written and is as it was before"),
        "{answer}"
    );
    assert_eq!(fs::read_dir(place.root()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_full_disk_leaves_the_old_file() {
    let place = Place::new();
    let disk = place.root().to_str().unwrap();
    if !run("mount", &["-t", "tmpfs", "-o", "size=64k", "tmpfs", disk]) {
        println!("SKIPPED: no small disk can be mounted here");
        return;
    }
    place.write("a.txt", "old");
    let content = "x".repeat(1 << 20);
    let answer = place.answer(WRITE, arguments("a.txt", &content)).await;
    let old = place.read("a.txt");
    let files = fs::read_dir(place.root()).unwrap().count();
    assert!(run("umount", &["--lazy", disk]));
    assert!(answer.contains("the disk is full"), "{answer}");
    assert_eq!((old.as_str(), files), ("old", 1));
}

#[expect(clippy::disallowed_methods, reason = "mounting is a program's work")]
fn run(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn nothing_is_left_beside_the_file() {
    let place = Place::new();
    for n in 0..5 {
        place
            .call(WRITE, arguments("a.txt", &n.to_string()))
            .await
            .unwrap();
    }
    assert_eq!(fs::read_dir(place.root()).unwrap().count(), 1);
}

#[test]
fn writing_is_idempotent_and_claims_its_path() {
    let place = Place::new();
    let tool = place.tool(WRITE);
    let arguments = arguments("a.txt", "x");
    assert_eq!(
        plan(&tool, &arguments, place.root()).effect,
        Effect::Idempotent
    );
    let expected = Parallel::Writes(vec![place.path("a.txt")]);
    assert_eq!(plan(&tool, &arguments, place.root()).parallel, expected);
}

#[tokio::test]
async fn broken_yaml_and_toml_are_not_written() {
    let place = Place::new();
    for (name, content, expected) in [
        ("a.yaml", "a: [1\nb: 2\n", "not valid YAML"),
        ("a.toml", "[a\n", "not valid TOML"),
    ] {
        let answer = place.answer(WRITE, arguments(name, content)).await;
        assert!(
            answer.contains(expected) && answer.contains("line"),
            "{answer}"
        );
        assert!(!place.path(name).exists());
    }
}

#[tokio::test]
async fn a_file_that_others_changed_is_read_again_before_it_is_written() {
    let place = Place::new();
    place.write("a.txt", "mine\n");
    let read = json!({"path": "a.txt"});
    place.call("read_file", read.clone()).await.unwrap();
    place.write("a.txt", "theirs, longer\n");
    let answer = place.answer(WRITE, arguments("a.txt", "new\n")).await;
    assert!(answer.contains("has changed on disk since"), "{answer}");
    assert_eq!(place.read("a.txt"), "theirs, longer\n");

    place.call("read_file", read).await.unwrap();
    for content in ["new\n", "newer\n"] {
        place
            .call(WRITE, arguments("a.txt", content))
            .await
            .unwrap();
    }
    assert_eq!(place.read("a.txt"), "newer\n");
}

#[tokio::test]
async fn a_file_that_was_never_read_is_written() {
    let place = Place::new();
    place.write("a.txt", "old\n");
    place
        .call(WRITE, arguments("a.txt", "new\n"))
        .await
        .unwrap();
    assert_eq!(place.read("a.txt"), "new\n");
}
