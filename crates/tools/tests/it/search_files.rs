//! `search_files`.

use std::os::unix::fs::symlink;
use std::time::Duration;

use hermes_core::{Effect, Parallel};
use serde_json::{Value, json};

use crate::{Place, plan};

const SEARCH: &str = "search_files";

async fn search(place: &Place, arguments: Value) -> String {
    place.call(SEARCH, arguments).await.unwrap()
}

#[tokio::test]
async fn lines_are_found_in_the_order_of_paths() {
    let place = Place::new();
    place.write("b.txt", "no\nneedle two\n");
    place.write("a/deep/c.txt", "needle one\r\n\r\nneedle again\r\n");
    let text = search(&place, json!({"pattern": "needle( \\w+)?$"})).await;
    assert_eq!(
        text,
        "a/deep/c.txt\n  1: needle one\n  3: needle again\nb.txt\n  2: needle two"
    );
}

#[tokio::test]
async fn context_is_shown_once_and_gaps_are_marked() {
    let place = Place::new();
    place.write("a.txt", "x1\nhit\nx2\nhit\nx3\nx4\nx5\nhit\n");
    let text = search(&place, json!({"pattern": "hit", "context": 1})).await;
    assert_eq!(
        text,
        "a.txt\n  1- x1\n  2: hit\n  3- x2\n  4: hit\n  5- x3\n  --\n  7- x5\n  8: hit"
    );
    let text = search(
        &place,
        json!({"pattern": "hit", "context": 1, "limit": 1, "offset": 1}),
    )
    .await;
    assert_eq!(
        text,
        "a.txt\n  4: hit\n  5- x3\n[matches 2-2 of 3 in 1 files; continue with offset=2]"
    );
}

#[tokio::test]
async fn results_come_in_pages() {
    let place = Place::new();
    for n in 0..30 {
        place.write(&format!("{n:02}.txt"), "hit\nhit\n");
    }
    let first = search(&place, json!({"pattern": "hit", "limit": 3})).await;
    assert_eq!(
        first,
        "00.txt\n  1: hit\n  2: hit\n01.txt\n  1: hit\n[matches 1-3 of 60 in 30 files; continue with offset=3]"
    );
    let last = search(&place, json!({"pattern": "hit", "limit": 3, "offset": 58})).await;
    assert_eq!(
        last,
        "29.txt\n  1: hit\n  2: hit\n[matches 59-60 of 60 in 30 files; the last]"
    );
    let beyond = search(&place, json!({"pattern": "hit", "offset": 100})).await;
    assert!(beyond.contains("only 60 matches in 30 files"), "{beyond}");
}

#[tokio::test]
async fn files_and_counts_are_listed() {
    let place = Place::new();
    place.write("a.rs", "x\nx\n");
    place.write("b.rs", "x\n");
    place.write("c.py", "x\n");
    let files = search(&place, json!({"pattern": "x", "output_mode": "files_only"})).await;
    assert_eq!(files, "a.rs\nb.rs\nc.py");
    let arguments = json!({"pattern": "x", "output_mode": "count", "file_glob": "*.rs"});
    assert_eq!(search(&place, arguments).await, "a.rs: 2\nb.rs: 1");
}

#[tokio::test]
async fn files_are_found_by_name_newest_first() {
    let place = Place::new();
    let old = place.write("src/old_main.rs", "");
    place.write("src/main.rs", "");
    place.write("src/other.rs", "");
    let file = std::fs::File::options().write(true).open(&old).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    for pattern in ["main", "*main.rs", "src/*main*", "**/*main.rs"] {
        let text = search(&place, json!({"pattern": pattern, "target": "files"})).await;
        assert_eq!(text.trim_end(), "src/main.rs\nsrc/old_main.rs", "{pattern}");
    }
    let page = json!({"pattern": "*.rs", "target": "find", "limit": 2});
    let text = search(&place, page).await;
    assert!(
        text.contains("[files 1-2 of 3; continue with offset=2]"),
        "{text}"
    );
}

#[tokio::test]
async fn ignored_hidden_and_binary_files_are_left_out() {
    let place = Place::new();
    std::fs::create_dir(place.path(".git")).unwrap();
    place.write(".gitignore", "target\n");
    place.write("target/out.txt", "hit");
    place.write(".hidden.txt", "hit");
    place.write("binary.dat", b"hit\0hit\n");
    place.write("late.dat", format!("hit\n{}\0", "x\n".repeat(100_000)));
    place.write("seen.txt", "hit");
    let text = search(&place, json!({"pattern": "hit"})).await;
    assert_eq!(text, "seen.txt\n  1: hit");
    let text = search(&place, json!({"pattern": "hit", "path": "binary.dat"})).await;
    assert!(text.contains("the file is binary"), "{text}");
    let text = search(&place, json!({"pattern": "hit", "path": "target"})).await;
    assert_eq!(
        text, "target/out.txt\n  1: hit",
        "what is named is searched"
    );
    let text = search(&place, json!({"pattern": ".gitignore", "target": "files"})).await;
    assert_eq!(text.trim_end(), ".gitignore");
}

#[tokio::test]
async fn circles_of_links_and_pipes_do_no_harm() {
    let place = Place::new();
    place.write("a/b.txt", "hit");
    symlink("..", place.path("a/up")).unwrap();
    symlink("self", place.path("self")).unwrap();
    let pipe = place.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let call = search(&place, json!({"pattern": "hit"}));
    let text = tokio::time::timeout(Duration::from_secs(5), call).await;
    assert_eq!(text.unwrap(), "a/b.txt\n  1: hit");
    symlink("a", place.path("alias")).unwrap();
    let text = search(&place, json!({"pattern": "hit", "path": "alias"})).await;
    assert!(text.contains("b.txt\n  1: hit"), "{text}");
}

#[tokio::test]
async fn secrets_are_not_shown() {
    let place = Place::new();
    place.write("project/.env", "KEY=hit");
    place.write(".hermes/auth.json", "hit");
    let glob = json!({"pattern": "hit", "file_glob": ".env"});
    let text = search(&place, glob).await;
    assert!(!text.contains("KEY"), "{text}");
    assert!(
        text.contains("[1 files that hold secrets also match"),
        "{text}"
    );
    for path in ["project/.env", ".hermes/auth.json"] {
        let answer = place
            .answer(SEARCH, json!({"pattern": "hit", "path": path}))
            .await;
        assert!(answer.contains("is not read:"), "{answer}");
    }
    let text = search(&place, json!({"pattern": "hit", "path": ".hermes"})).await;
    assert!(text.contains("files that hold secrets"), "{text}");
}

#[tokio::test]
async fn what_cannot_be_searched_is_explained() {
    let place = Place::new();
    place.write("source/a.txt", "");
    for (arguments, expected) in [
        (json!({"pattern": "x", "path": "sorce"}), ": source"),
        (json!({"pattern": "("}), "not a valid regular expression"),
        (json!({"pattern": "a\nb"}), "line by line"),
        (
            json!({"pattern": "x", "file_glob": "["}),
            "not a valid glob",
        ),
        (json!({"pattern": "x", "target": "web"}), "no target `web`"),
        (
            json!({"pattern": "x", "output_mode": "json"}),
            "no output_mode",
        ),
        (
            json!({"pattern": "x", "path": "/dev/null"}),
            "neither a folder",
        ),
    ] {
        let answer = place.answer(SEARCH, arguments).await;
        assert!(answer.contains(expected), "{answer}");
    }
    let text = search(&place, json!({"pattern": "zzz"})).await;
    assert!(text.starts_with("no matches for `zzz`"), "{text}");
}

#[tokio::test]
async fn long_lines_take_little_room() {
    let place = Place::new();
    let line = format!("{}needle{}", "a".repeat(1_000_000), "b".repeat(1_000_000));
    place.write("min.js", line);
    place.write("huge.txt", "x".repeat(40_000_000));
    let text = search(&place, json!({"pattern": "needle"})).await;
    assert!(text.len() < 700 && text.contains("aaneedlebb"), "{text}");
    assert!(
        text.ends_with("[1 files have a line too long to be searched]"),
        "{text}"
    );
}

#[test]
fn searching_is_a_read_of_its_folder() {
    let place = Place::new();
    let tool = place.tool(SEARCH);
    let arguments = json!({"pattern": "x", "path": "src"});
    assert_eq!(plan(&tool, &arguments, place.root()).effect, Effect::Read);
    let expected = Parallel::Reads(vec![place.path("src")]);
    assert_eq!(plan(&tool, &arguments, place.root()).parallel, expected);
}
