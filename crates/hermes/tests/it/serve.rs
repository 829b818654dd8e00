//! `hermes mcp serve` as its clients meet it: over pipes and over HTTP, with what they should and should not send.

mod http;
mod stdio;

use hermes_testkit::server::{Answer, Script};
use serde_json::Value;

use crate::setting::Setting;

/// A home in which these prompts were answered, oldest first.
async fn talked(prompts: &[&str]) -> Setting {
    let setting = Setting::new(Script::always(Answer::text("a fine answer"))).await;
    for prompt in prompts {
        say(&setting, prompt);
    }
    setting
}

fn say(setting: &Setting, prompt: &str) {
    let output = setting.run(&["-z", prompt]);
    assert_eq!(output.code, Some(0), "{output:?}");
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key]
        .as_array()
        .unwrap_or_else(|| panic!("no list `{key}` in {value}"))
}
