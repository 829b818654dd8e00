//! `hermes prompt-size`.

use std::fs;

use super::{contains, json, refused, run, stdout};
use crate::setting::bare;

#[test]
fn it_measures_every_part_without_a_model() {
    let hermes = bare();
    contains(
        &stdout(&hermes, &["prompt-size"]),
        &[
            "system prompt",
            "tool terminal",
            "total",
            "20480 bytes",
            "tokens",
        ],
    );
    let sizes = json(&hermes, &["prompt-size", "--json"]);
    let parts = sizes["parts"].as_array().unwrap();
    let sum: u64 = parts
        .iter()
        .map(|part| part["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(sizes["total_bytes"], sum);
    assert!(sum <= 20 * 1024, "over the budget: {sum} bytes");
    let text = stdout(&hermes, &["prompt-size", "--text"]);
    assert_eq!(parts[0]["bytes"], text.trim_end().len());
}

#[test]
fn context_files_and_toolsets_count() {
    let hermes = bare();
    fs::write(hermes.work_folder().join("AGENTS.md"), "Always whisper.").unwrap();
    contains(
        &stdout(&hermes, &["prompt-size"]),
        &["includes", "AGENTS.md"],
    );
    contains(
        &stdout(&hermes, &["prompt-size", "--text"]),
        &["Always whisper."],
    );
    assert!(!stdout(&hermes, &["--ignore-rules", "prompt-size", "--text"]).contains("whisper"));
    assert!(!stdout(&hermes, &["-t", "none", "prompt-size"]).contains("tool "));
    refused(
        &run(&hermes, &["-t", "terminl", "prompt-size"]),
        2,
        &["`terminl`", "terminal"],
    );
}
