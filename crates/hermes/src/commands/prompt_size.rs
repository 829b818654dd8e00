//! `hermes prompt-size`: what every request begins with, and how large it is. Asks nobody anything.

use std::io;

use hermes_agent::prompt;
use hermes_core::{ModelName, Prefix};
use serde_json::{Value, json};

use super::layout::{OnTerminal as _, Table, print_json};
use crate::args::{PromptSizeArgs, RunFlags};
use crate::base::Base;
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::models::chosen::ChosenModel;
use hermes_runtime::setup::prefix_without_servers;

/// What prompt and default tools may take: they are paid for with every request.
const BUDGET_BYTES: usize = 20 * 1024;
/// English text and JSON have about this many bytes to a token.
const BYTES_PER_TOKEN: usize = 4;

pub(crate) fn run(base: &Base, flags: &RunFlags, args: &PromptSizeArgs) -> Outcome<()> {
    let (prefix, inputs) = prefix_without_servers(base, &flags.options(), &model_name(base))?;
    let Prefix { system, tools } = prefix;
    if args.text {
        return println(&system);
    }
    let mut parts = vec![Part::new("system prompt", system.len())];
    parts.extend(tools.iter().map(|tool| {
        Part::new(
            &format!("tool {}", tool.name),
            json!(tool).to_string().len(),
        )
    }));
    if args.json.json {
        return print_json(&to_json(&parts));
    }
    print_table(&parts, Style::of(&io::stdout(), &base.environment))?;
    match prompt::context_path(&inputs) {
        Some(path) => println(&format!("the prompt includes `{}`", path.display())),
        None => Ok(()),
    }
}

/// The model's name, which the prompt mentions; a stand-in where none is chosen.
fn model_name(base: &Base) -> ModelName {
    match ChosenModel::of(base) {
        Ok(chosen) => chosen.route.name,
        Err(_) => ModelName {
            provider: "none".into(),
            model: "none".into(),
        },
    }
}

struct Part {
    name: String,
    bytes: usize,
}

impl Part {
    fn new(name: &str, bytes: usize) -> Self {
        Self {
            name: name.to_owned(),
            bytes,
        }
    }
}

fn total_bytes(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.bytes).sum()
}

fn print_table(parts: &[Part], style: Style) -> Outcome<()> {
    let total = Part::new("total", total_bytes(parts));
    let mut table = Table::new(["PART", "BYTES", "ABOUT"]);
    for part in parts.iter().chain([&total]) {
        table.row([
            part.name.clone(),
            part.bytes.to_string(),
            format!("{} tokens", part.bytes / BYTES_PER_TOKEN),
        ]);
    }
    table.print(style)?;
    let percent = total.bytes * 100 / BUDGET_BYTES;
    println(&format!(
        "\n{percent} % of the budget of {BUDGET_BYTES} bytes"
    ))
}

fn to_json(parts: &[Part]) -> Value {
    let total = total_bytes(parts);
    let list = parts
        .iter()
        .map(|part| json!({"name": part.name, "bytes": part.bytes}));
    json!({
        "parts": list.collect::<Vec<_>>(),
        "total_bytes": total,
        "tokens_estimated": total / BYTES_PER_TOKEN,
        "budget_bytes": BUDGET_BYTES,
    })
}
