//! `read_file`.

use std::os::unix::fs::symlink;
use std::time::Duration;

use hermes_core::{Effect, MediaSource, Parallel, Reader, ToolContext};
use serde_json::json;

use crate::{Place, context, plan};

const READ: &str = "read_file";

#[tokio::test]
async fn a_small_file_is_shown_whole() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\n");
    let text = place.call(READ, json!({"path": "a.txt"})).await.unwrap();
    assert_eq!(text, "1|one\n2|two\n");
    let home = place.call(READ, json!({"path": "~/a.txt"})).await.unwrap();
    assert_eq!(home, text);
}

#[tokio::test]
async fn a_long_file_comes_in_pages() {
    let place = Place::new();
    let lines: String = (1..=1200).map(|n| format!("line {n}\n")).collect();
    place.write("long.txt", lines);
    let first = place.call(READ, json!({"path": "long.txt"})).await.unwrap();
    assert!(first.ends_with("500|line 500\n[lines 1-500 of 1200; continue with offset=501]"));
    let arguments = json!({"path": "long.txt", "offset": 1199, "limit": 10});
    let last = place.call(READ, arguments).await.unwrap();
    assert_eq!(
        last,
        "1199|line 1199\n1200|line 1200\n[lines 1199-1200 of 1200; end of file]"
    );
    let beyond = json!({"path": "long.txt", "offset": 5000});
    let answer = place.answer(READ, beyond).await;
    assert!(
        answer.contains("has 1200 lines; offset 5000 is past its end"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_page_has_a_limit_of_characters_and_so_has_a_line() {
    let place = Place::new();
    let line = "x".repeat(1500) + "\n";
    place.write("wide.txt", line.repeat(200));
    let text = place.call(READ, json!({"path": "wide.txt"})).await.unwrap();
    assert!(text.len() < 101_000);
    assert!(
        text.ends_with("of 200; continue with offset=67]"),
        "{}",
        &text[text.len() - 80..]
    );
    place.write("one.txt", "y".repeat(5_000_000));
    let text = place.call(READ, json!({"path": "one.txt"})).await.unwrap();
    assert!(text.len() < 2100 && text.ends_with("… [line cut]\n"));
}

#[tokio::test]
async fn odd_text_is_shown_as_well_as_can_be() {
    let place = Place::new();
    for (content, expected) in [
        (&b""[..], "[the file is empty]"),
        (b"\xef\xbb\xbfbom\r\ncrlf\r\n", "1|bom\n2|crlf\n"),
        (b"no newline", "1|no newline\n"),
        (b"\n\n", "1|\n2|\n"),
    ] {
        place.write("odd.txt", content);
        let text = place.call(READ, json!({"path": "odd.txt"})).await.unwrap();
        assert_eq!(text, expected);
    }
    place.write("latin1.txt", b"caf\xe9\n");
    let text = place
        .call(READ, json!({"path": "latin1.txt"}))
        .await
        .unwrap();
    assert!(
        text.starts_with("1|caf\u{fffd}\n[bytes that are not UTF-8"),
        "{text}"
    );
}

#[tokio::test]
async fn what_is_not_text_is_described() {
    let place = Place::new();
    place.write("image.png", b"\x89PNG\r\n\x1a\n\0\0\0");
    let answer = place.answer(READ, json!({"path": "image.png"})).await;
    assert!(
        answer.contains("a PNG image of 11 bytes and has a broken header"),
        "{answer}"
    );
    place.write("paper.pdf", "%PDF-1.7");
    let answer = place.answer(READ, json!({"path": "paper.pdf"})).await;
    assert!(answer.contains("`pdftotext"), "{answer}");
    place.write("folder/inside.txt", "x");
    let answer = place.answer(READ, json!({"path": "folder"})).await;
    assert!(
        answer.ends_with("is a folder; name a file in it: inside.txt"),
        "{answer}"
    );
}

/// The header of a picture, which is all that is looked at, and nothing behind it.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes
}

#[tokio::test]
async fn a_picture_is_shown_unless_it_is_too_large() {
    let place = Place::new();
    let read = async |name: &str, context: &ToolContext| {
        let tool = place.tool(READ);
        tool.run(json!({ "path": name }), context).await
    };
    let model = context(place.root());
    place.write("photo.png", png(1280, 720));
    let output = read("photo.png", &model).await.unwrap();
    assert_eq!(output.text, "photo.png: PNG image, 1280×720, 24 bytes");
    let [picture] = output.images.as_slice() else {
        panic!("{output:?}");
    };
    assert_eq!(picture.mime, "image/png");
    let MediaSource::Base64(data) = &picture.source else {
        panic!("{picture:?}");
    };
    assert!(
        data.starts_with("iVBORw0KGgoAAAANSUhEUgAABQAAAALQ"),
        "{data}"
    );

    place.write("wall.png", png(9_000, 100));
    let answer = place.answer(READ, json!({"path": "wall.png"})).await;
    assert!(answer.contains("is 9000×100, and no side"), "{answer}");
    assert!(answer.contains("make a smaller copy"), "{answer}");

    let program = ToolContext {
        reader: Reader::Program,
        ..context(place.root())
    };
    let answer = read("photo.png", &program).await.unwrap_err().to_string();
    assert!(
        answer.contains("open the file in the script itself"),
        "{answer}"
    );
}

#[tokio::test]
async fn pipes_and_devices_are_refused_without_waiting() {
    let place = Place::new();
    let pipe = place.path("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    for (path, kind) in [
        (pipe.to_str().unwrap(), "a named pipe"),
        ("/dev/zero", "a device"),
    ] {
        let call = place.answer(READ, json!({"path": path}));
        let answer = tokio::time::timeout(Duration::from_secs(5), call)
            .await
            .unwrap();
        assert!(answer.contains(kind), "{answer}");
    }
}

#[tokio::test]
async fn a_missing_file_suggests_near_names() {
    let place = Place::new();
    place.write("config.toml", "");
    let answer = place.answer(READ, json!({"path": "confg.toml"})).await;
    assert!(
        answer.contains("does not exist; similar names in"),
        "{answer}"
    );
    assert!(answer.ends_with(": config.toml"), "{answer}");
    let answer = place.answer(READ, json!({"path": "a/b/c.txt"})).await;
    let root = place.root().display();
    assert!(
        answer.ends_with(&format!("only as far as `{root}`")),
        "{answer}"
    );
}

#[tokio::test]
async fn a_circle_of_links_is_an_answer() {
    let place = Place::new();
    symlink("b", place.path("a")).unwrap();
    symlink("a", place.path("b")).unwrap();
    let answer = place.answer(READ, json!({"path": "a"})).await;
    assert!(answer.contains("symbolic links"), "{answer}");
}

#[tokio::test]
async fn secrets_are_not_read_not_even_through_a_link() {
    let place = Place::new();
    place.write(".hermes/auth.json", "{}");
    place.write("project/.env", "KEY=value");
    symlink(place.path("project/.env"), place.path("innocent.txt")).unwrap();
    symlink(place.path(".hermes"), place.path("alias")).unwrap();
    for path in [
        ".hermes/auth.json",
        "project/.env",
        "innocent.txt",
        "alias/auth.json",
        "project/../project/.env",
    ] {
        let answer = place.answer(READ, json!({"path": path})).await;
        assert!(answer.contains("is not read:"), "{path}: {answer}");
    }
}

#[test]
fn reading_is_a_read_of_its_path() {
    let place = Place::new();
    let tool = place.tool(READ);
    let arguments = json!({"path": "src/../a.txt"});
    assert_eq!(plan(&tool, &arguments, place.root()).effect, Effect::Read);
    let expected = Parallel::Reads(vec![place.path("a.txt")]);
    assert_eq!(plan(&tool, &arguments, place.root()).parallel, expected);
}

#[tokio::test]
async fn a_page_that_is_in_the_conversation_is_not_repeated_at_once() {
    let place = Place::new();
    let lines: String = (1..=300).map(|n| format!("line {n}\n")).collect();
    place.write("a.txt", &lines);
    let arguments = json!({"path": "a.txt"});
    let first = place.call(READ, arguments.clone()).await.unwrap();
    let second = place.call(READ, arguments.clone()).await.unwrap();
    assert!(
        second.contains("has not changed since you read it"),
        "{second}"
    );
    let third = place.call(READ, arguments.clone()).await.unwrap();
    assert_eq!(first, third);
    let page = json!({"path": "a.txt", "offset": 2});
    assert!(
        place
            .call(READ, page)
            .await
            .unwrap()
            .starts_with("2|line 2")
    );

    place.write("a.txt", lines.replace("line 1\n", "changed\n"));
    let changed = place.call(READ, arguments).await.unwrap();
    assert!(changed.starts_with("1|changed\n"), "{changed}");
}

#[tokio::test]
async fn a_notebook_is_read_by_its_cells() {
    let place = Place::new();
    let notebook = json!({"cells": [{"cell_type": "code", "source": ["x = 1\n", "x"]}]});
    place.write("a.ipynb", notebook.to_string());
    let text = place.call(READ, json!({"path": "a.ipynb"})).await.unwrap();
    assert!(text.starts_with("[the text of a notebook;"), "{text}");
    assert!(
        text.ends_with("1|# --- Code cell 1 ---\n2|x = 1\n3|x\n"),
        "{text}"
    );
    place.write("broken.ipynb", "{\"cells\": 1}\n");
    let text = place
        .call(READ, json!({"path": "broken.ipynb"}))
        .await
        .unwrap();
    assert_eq!(text, "1|{\"cells\": 1}\n");
}
