//! The commands beside the conversation. Every one is met with what it is for, and with what it cannot use.

mod auth;
mod completion;
mod config;
mod cron;
mod doctor;
mod insights;
mod logins;
mod logs;
mod mcp;
mod model;
mod prompt_size;
mod recover;
mod sessions;
mod setup;
pub(crate) mod setup_terminal;
mod status;
mod tools;

use hermes_testkit::process::{Hermes, Output};
use hermes_testkit::server::{Answer, Script};
use serde_json::Value;

use crate::setting::Setting;

const KEY: &str = "sk-test-0123456789abcdef0123";

fn run(hermes: &Hermes, args: &[&str]) -> Output {
    hermes.clone().args(args.iter().copied()).run()
}

/// Runs a command that must succeed, and returns what it printed.
fn stdout(hermes: &Hermes, args: &[&str]) -> String {
    let output = run(hermes, args);
    assert_eq!(output.code, Some(0), "{args:?}: {output:?}");
    output.stdout
}

fn json(hermes: &Hermes, args: &[&str]) -> Value {
    let text = stdout(hermes, args);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in:\n{text}"))
}

fn contains(text: &str, phrases: &[&str]) {
    for phrase in phrases {
        assert!(text.contains(phrase), "no `{phrase}` in:\n{text}");
    }
}

/// A refusal: the code, what is said on standard error, and nothing on standard output.
fn refused(output: &Output, code: i32, phrases: &[&str]) {
    assert_eq!(output.code, Some(code), "{output:?}");
    contains(&output.stderr, phrases);
    contains(&output.stderr, &["error: ", " hint: "]);
    assert_eq!(output.stdout, "", "errors are not answers");
}

/// A home in which these prompts were answered, oldest first.
async fn talked(prompts: &[&str]) -> Setting {
    let setting = Setting::new(Script::always(Answer::text("a fine answer"))).await;
    for prompt in prompts {
        stdout(&setting.hermes, &["-z", prompt]);
    }
    setting
}

/// The ids of all sessions, newest first.
fn ids(hermes: &Hermes) -> Vec<String> {
    let records = json(hermes, &["sessions", "list", "--json"]);
    let records = records.as_array().expect("a list");
    let id = |record: &Value| record["id"].as_str().expect("an id").to_owned();
    records.iter().map(id).collect()
}
