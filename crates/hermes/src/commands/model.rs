//! `hermes model`: which model answers, who else could, and choosing another.

mod list;

use std::io::{self, IsTerminal as _};

use hermes_runtime::models::choice::choose;

use super::layout::{OnTerminal as _, Table};
use super::setup;
use crate::args::{ModelArgs, ModelCommand};
use crate::base::Base;
use crate::failure::Outcome;
use crate::output::{note, println};
use crate::style::Style;
use hermes_runtime::models::chosen::ChosenModel;

pub(crate) async fn run(base: &Base, args: ModelArgs) -> Outcome<()> {
    match args.command {
        None => {
            show(base)?;
            if io::stdout().is_terminal() {
                setup::choose_model(base).await
            } else {
                Ok(())
            }
        }
        Some(ModelCommand::List { provider, json }) => {
            list::run(base, provider.as_deref(), &json).await
        }
        Some(ModelCommand::Set { model, provider }) => {
            let saved = choose(base, &model, provider.as_deref())?;
            saved.notes.iter().for_each(|text| note(text));
            println(&saved.what)
        }
    }
}

fn show(base: &Base) -> Outcome<()> {
    match ChosenModel::of(base) {
        Ok(chosen) => print_chosen(&chosen)?,
        Err(error) => {
            println(&format!("no model can be asked: {error}"))?;
            if let Some(hint) = error.hint() {
                println(&format!(" hint: {hint}"))?;
            }
        }
    }
    println("")?;
    println("hermes model list                   shows providers and models")?;
    println("hermes model set PROVIDER:MODEL     chooses one")?;
    println("hermes config set NAME_API_KEY KEY  saves a key in .env")
}

fn print_chosen(chosen: &ChosenModel) -> Outcome<()> {
    let route = &chosen.route;
    let origin = chosen
        .origin
        .as_ref()
        .map_or("the provider's default".to_owned(), ToString::to_string);
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    if let Some(mixture) = &chosen.mixture {
        row("mixture", mixture.to_string());
    }
    row("model", route.name.model.clone());
    row("provider", route.name.provider.clone());
    row("endpoint", route.base_url.clone());
    row("set in", origin);
    row("key", chosen.key.to_string());
    if let Some(tokens) = route.context_window {
        row("context", format!("{tokens} tokens"));
    }
    table.print(Style::PLAIN)
}
