//! How long a search takes beside `rg` itself, on a tree the size of a large project. Run in a release build:
//! `cargo test --release -p hermes-tools --test it -- --ignored --nocapture search_speed`

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Place;

const FOLDERS: usize = 600;
const FILES_PER_FOLDER: usize = 100;
const LINES_PER_FILE: usize = 300;
const ROUNDS: usize = 9;

fn generate(place: &Place) {
    for folder in 0..FOLDERS {
        let path = place.path(&format!("drivers/group{}/part{folder}", folder % 40));
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..FILES_PER_FOLDER {
            let mut text = String::new();
            for line in 0..LINES_PER_FILE {
                let value = folder * 31 + file * 7 + line;
                text.push_str(&format!(
                    "static int value_{value} = compute(device, {line}); /* {file} */\n"
                ));
            }
            if file == folder % FILES_PER_FOLDER {
                text.push_str("int needle_in_the_haystack(void);\n");
            }
            std::fs::write(path.join(format!("file{file}.c")), text).unwrap();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "`rg` is what we compare with")]
fn ripgrep(root: &Path, arguments: &[&str]) -> Option<Duration> {
    let started = Instant::now();
    let output = Command::new("rg")
        .args(arguments)
        .current_dir(root)
        .output();
    output.ok().map(|_| started.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[tokio::test]
#[ignore = "generates a gigabyte of files; run by hand in a release build"]
async fn a_search_takes_hardly_longer_than_rg_itself() {
    let place = Place::new();
    if ripgrep(place.root(), &["--version"]).is_none() {
        println!("SKIPPED: `rg` is not installed");
        return;
    }
    generate(&place);
    for (what, arguments, rg) in [
        (
            "rare word",
            json!({"pattern": "needle_in_the_haystack"}),
            vec!["-n", "needle_in_the_haystack"],
        ),
        (
            "expression",
            json!({"pattern": "value_\\d+7 = .*\\b29\\)"}),
            vec!["-n", "value_\\d+7 = .*\\b29\\)"],
        ),
        (
            "every line, counted",
            json!({"pattern": "static", "output_mode": "count"}),
            vec!["-c", "static"],
        ),
        (
            "files",
            json!({"pattern": "file7*.c", "target": "files"}),
            vec!["--files", "-g", "file7*.c"],
        ),
    ] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let started = Instant::now();
            place.call("search_files", arguments.clone()).await.unwrap();
            ours.push(started.elapsed());
            theirs.extend(ripgrep(place.root(), &rg));
        }
        let (ours, theirs) = (median(ours), median(theirs));
        let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
        println!("{what}: ours {ours:?}, rg {theirs:?}, {ratio:.2} times");
        assert!(ratio <= 1.2, "{what}: {ratio:.2} times as long as rg");
    }
}
