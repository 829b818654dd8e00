//! `patch`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use hermes_core::{Effect, Parallel};
use serde_json::{Value, json};

use crate::{Place, plan};

const PATCH: &str = "patch";

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_string": old, "new_string": new})
}

fn patch(text: &str) -> Value {
    json!({"mode": "patch", "patch": text})
}

#[tokio::test]
async fn a_text_is_replaced_and_the_difference_shown() {
    let place = Place::new();
    place.write("a.rs", "fn a() {}\nfn b() {}\n");
    let text = place
        .call(PATCH, replace("a.rs", "fn b() {}", "fn c() {}"))
        .await
        .unwrap();
    assert_eq!(
        text,
        "changed `a.rs`\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n fn a() {}\n-fn b() {}\n+fn c() {}\n"
    );
    assert_eq!(place.read("a.rs"), "fn a() {}\nfn c() {}\n");
}

#[tokio::test]
async fn mode_line_endings_and_byte_order_mark_are_kept() {
    let place = Place::new();
    let path = place.write("run.sh", "\u{feff}a\r\n  b\r\nc\r\n");
    fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
    let text = place
        .call(PATCH, replace("run.sh", "a\n  b", "x\ny"))
        .await
        .unwrap();
    assert!(!text.contains("to the letter"), "{text}");
    assert_eq!(place.read("run.sh"), "\u{feff}x\r\ny\r\nc\r\n");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o750);
}

#[tokio::test]
async fn a_slip_is_forgiven_and_told() {
    let place = Place::new();
    place.write("a.py", "class A:\n    def f(self):\n        return 1\n");
    let arguments = replace(
        "a.py",
        "def f(self):\n  return 1",
        "def f(self):\n    return 2",
    );
    let text = place.call(PATCH, arguments).await.unwrap();
    assert!(text.contains("(found by line_trimmed)"), "{text}");
    assert_eq!(
        place.read("a.py"),
        "class A:\n    def f(self):\n        return 2\n"
    );
}

#[tokio::test]
async fn all_occurrences_are_replaced_only_on_request() {
    let place = Place::new();
    place.write("a.txt", "x\ny\nx\n");
    let answer = place.answer(PATCH, replace("a.txt", "x", "z")).await;
    assert!(answer.contains("2 times (lines 1, 3)"), "{answer}");
    assert_eq!(place.read("a.txt"), "x\ny\nx\n");
    let arguments =
        json!({"path": "a.txt", "old_string": "x", "new_string": "z", "replace_all": true});
    let text = place.call(PATCH, arguments).await.unwrap();
    assert!(text.starts_with("changed `a.txt`, 2 times\n"), "{text}");
    assert_eq!(place.read("a.txt"), "z\ny\nz\n");
}

#[tokio::test]
async fn what_does_not_fit_is_explained() {
    let place = Place::new();
    place.write("config.toml", "name = \"hermes\"\n");
    place.write("image.png", b"\x89PNG\0\xff");
    for (arguments, expected) in [
        (
            replace("config.toml", "nane = \"herms\"", "x"),
            "is not in `config.toml`; similar to its first line are line 1: `name = \"hermes\"`",
        ),
        (replace("confg.toml", "a", "b"), "similar names in"),
        (replace("config.toml", "", "b"), "`old_string` is empty"),
        (replace("config.toml", "a", "a"), "are the same"),
        (
            replace("config.toml", "= \"hermes\"", "= hermes"),
            "would break: the content is not valid TOML",
        ),
        (replace("image.png", "a", "b"), "is not UTF-8 text"),
        (json!({"path": "config.toml"}), "`old_string` is missing"),
        (json!({"mode": "patch"}), "`patch` is missing"),
        (json!({"mode": "sed"}), "there is no mode `sed`"),
    ] {
        let answer = place.answer(PATCH, arguments).await;
        assert!(answer.contains(expected), "{answer}");
        assert!(answer.starts_with("nothing was changed: "), "{answer}");
    }
    assert_eq!(place.read("config.toml"), "name = \"hermes\"\n");
}

#[tokio::test]
async fn several_files_change_together() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\n");
    place.write("gone.txt", "x\n");
    let script = place.write("old/run.sh", "echo 1\n");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let text = place
        .call(
            PATCH,
            patch(
                "*** Begin Patch\n*** Update File: a.txt\n one\n-two\n+three\n*** Add File: new/b.txt\n+b\n\
                 *** Delete File: gone.txt\n*** Update File: old/run.sh\n*** Move to: new/run.sh\n-echo 1\n+echo 2\n\
                 *** End Patch",
            ),
        )
        .await
        .unwrap();
    assert!(
        text.starts_with(
            "changed `a.txt`\ncreated `new/b.txt`\ndeleted `gone.txt`\nmoved `old/run.sh` to `new/run.sh`\n---"
        ),
        "{text}"
    );
    assert!(text.ends_with("-echo 1\n+echo 2\n"), "{text}");
    assert_eq!(place.read("a.txt"), "one\nthree\n");
    assert_eq!(place.read("new/b.txt"), "b\n");
    assert_eq!(place.read("new/run.sh"), "echo 2\n");
    let mode = fs::metadata(place.path("new/run.sh")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert!(!place.path("gone.txt").exists() && !script.exists());
}

#[tokio::test]
async fn a_patch_of_which_a_part_does_not_fit_changes_nothing() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    place.write("b.json", "{\"a\": 1}\n");
    for (rest, expected) in [
        ("*** Update File: a.txt\n-nine\n+x", "not in the file"),
        ("*** Delete File: missing.txt", "does not exist"),
        ("*** Add File: a.txt\n+x", "`a.txt` exists"),
        ("*** Move File: a.txt -> b.json", "moved over another file"),
        (
            "*** Update File: b.json\n-{\"a\": 1}\n+{\"a\": }",
            "would break",
        ),
        (
            "*** Update File: b.json\n-no\n+x\n*** Delete File: nowhere",
            "\n- `b.json`, hunk at line 7 of the patch: its context and removed lines are not in the file",
        ),
    ] {
        let text =
            format!("*** Add File: new.txt\n+new\n*** Update File: a.txt\n-one\n+two\n{rest}\n");
        // The second update of `a.txt` sees what the first one left.
        let answer = place.answer(PATCH, patch(&text)).await;
        assert!(answer.starts_with("nothing was changed: "), "{answer}");
        assert!(answer.contains(expected), "{expected}: {answer}");
        assert_eq!(place.read("a.txt"), "one\n");
        assert!(!place.path("new.txt").exists());
    }
    let files = fs::read_dir(place.root()).unwrap().count();
    assert_eq!(files, 2);
}

#[tokio::test]
async fn guarded_files_are_neither_patched_nor_shown() {
    let place = Place::new();
    place.write("project/.env", "KEY=secret");
    place.write(".ssh/config", "Host x");
    symlink(place.path("project/.env"), place.path("innocent.txt")).unwrap();
    symlink(place.path(".ssh"), place.path("keys")).unwrap();
    for arguments in [
        replace("project/.env", "KEZ=secret", "x"),
        replace("innocent.txt", "KEZ=secret", "x"),
        replace(".ssh/config", "Host", "x"),
        patch("*** Add File: keys/authorized_keys\n+me\n"),
        patch("*** Move File: project/.env -> shown.txt\n"),
        patch("*** Delete File: ~/.ssh/config\n"),
    ] {
        let answer = place.answer(PATCH, arguments).await;
        assert!(
            answer.contains("is not written:") || answer.contains("is not read:"),
            "{answer}"
        );
        assert!(!answer.contains("secret\n"), "{answer}");
    }
    assert_eq!(place.read("project/.env"), "KEY=secret");
    assert_eq!(place.read(".ssh/config"), "Host x");
}

#[tokio::test]
async fn a_link_is_patched_through_but_not_deleted() {
    let place = Place::new();
    place.write("real.txt", "a\n");
    symlink("real.txt", place.path("link.txt")).unwrap();
    place
        .call(PATCH, replace("link.txt", "a", "b"))
        .await
        .unwrap();
    assert_eq!(place.read("real.txt"), "b\n");
    assert!(place.path("link.txt").is_symlink());
    let answer = place
        .answer(PATCH, patch("*** Delete File: link.txt"))
        .await;
    assert!(answer.contains("is a link"), "{answer}");
}

#[tokio::test]
async fn a_file_that_others_changed_is_patched_with_a_note() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\n");
    place
        .call("read_file", json!({"path": "a.txt"}))
        .await
        .unwrap();
    place.write("a.txt", "zero\none\ntwo\n");
    let text = place
        .call(PATCH, replace("a.txt", "two", "three"))
        .await
        .unwrap();
    assert!(text.contains("had been changed on disk"), "{text}");
    assert_eq!(place.read("a.txt"), "zero\none\nthree\n");
    let whole = json!({"path": "a.txt", "content": "x\n"});
    let answer = place.answer("write_file", whole.clone()).await;
    assert!(answer.contains("has changed on disk"), "{answer}");

    place
        .call("read_file", json!({"path": "a.txt"}))
        .await
        .unwrap();
    let text = place
        .call(PATCH, replace("a.txt", "three", "four"))
        .await
        .unwrap();
    assert!(!text.contains("had been changed"), "{text}");
    place.call("write_file", whole).await.unwrap();
}

#[tokio::test]
async fn patches_of_one_file_at_once_all_arrive() {
    let place = Place::new();
    let lines: Vec<String> = (0..20).map(|n| format!("line {n};")).collect();
    place.write("a.txt", lines.join("\n"));
    let calls = lines.iter().map(|line| {
        let new = line.replace("line", "done");
        place.call(PATCH, replace("a.txt", line, &new))
    });
    let results = futures_util::future::join_all(calls).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert!(!place.read("a.txt").contains("line"));
}

#[test]
fn patching_is_an_effect_on_the_paths_it_names() {
    let place = Place::new();
    let tool = place.tool(PATCH);
    let arguments = patch("*** Move File: a -> b/../c\n");
    assert_eq!(plan(&tool, &arguments, place.root()).effect, Effect::Effect);
    let expected = Parallel::Writes(vec![place.path("a"), place.path("c")]);
    assert_eq!(plan(&tool, &arguments, place.root()).parallel, expected);
    let broken = patch("nothing");
    assert_eq!(plan(&tool, &broken, place.root()).parallel, Parallel::Never);
}
