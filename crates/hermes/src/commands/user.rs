//! `hermes user`: what is known of you, seen, asked, edited and forgotten.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;

use hermes_core::{Clock as _, FactId, UserModel as _};
use hermes_learning::user_model::ask::with_sources;
use hermes_learning::user_model::honcho::{HonchoError, HonchoUserModel};
use hermes_learning::user_model::{LocalUserModel, edit};
use hermes_runtime::models::Models;
use hermes_runtime::user_model::{self, History};
use hermes_runtime::{SystemClock, open_store};
use hermes_store::SqliteStore;
use serde_json::json;

use super::layout::print_json;
use crate::args::{JsonFlag, UserArgs, UserCommand};
use crate::base::Base;
use crate::editor;
use crate::failure::{Failure, Outcome};
use crate::output::println;

pub(crate) async fn run(base: &Base, args: UserArgs) -> Outcome<()> {
    let store = Arc::new(open_store(base)?);
    let by_default = UserCommand::Show {
        all: false,
        json: JsonFlag { json: false },
    };
    let command = args.command.unwrap_or(by_default);
    let honcho = user_model::honcho_for_commands(base, args.person.clone(), store.clone())?;
    if let Some(honcho) = honcho {
        return of_honcho(base, &honcho, command).await;
    }
    let known = user_model::for_commands(base, args.person.clone(), store.clone())?;
    match command {
        UserCommand::Show { all, json } => show(&known, all, json.json).await,
        UserCommand::Ask { question, json } => {
            let question = question.join(" ");
            ask(base, args.person, store, &question, json.json).await
        }
        UserCommand::Forget { facts, all } => {
            let gone = if all {
                known.forget_all().await
            } else {
                known.forget(&named(&facts)?).await
            };
            println(&user_model::changed(gone)?)
        }
        UserCommand::Edit { fact, words } => match fact {
            Some(fact) => {
                let id = named(&[fact])?[0];
                let made = known.reword(id, &words.join(" ")).await;
                println(&user_model::changed(made)?)
            }
            None => edit_all(base, &known).await,
        },
    }
}

/// The same where Honcho keeps it.
async fn of_honcho(base: &Base, honcho: &HonchoUserModel, command: UserCommand) -> Outcome<()> {
    let failure = |error: HonchoError| Failure::new(format!("Honcho: {error}"));
    match command {
        UserCommand::Show { json: as_json, .. } => {
            let known = honcho.known().await.map_err(failure)?;
            if as_json.json {
                let told = json!({"peer_card": known.card, "representation": known.representation});
                return print_json(&told);
            }
            println(&user_model::shown_honcho(&known))
        }
        UserCommand::Ask {
            question,
            json: as_json,
        } => {
            let answer = honcho.ask(&question.join(" ")).await;
            let answer = answer.map_err(Failure::new)?;
            if as_json.json {
                return print_json(&json!(answer));
            }
            println(&answer.text)
        }
        UserCommand::Forget { facts, all: false } => {
            for id in &facts {
                let timeout = honcho.timeout();
                honcho
                    .honcho
                    .delete_conclusion(id, timeout)
                    .await
                    .map_err(failure)?;
            }
            println(&format!("Honcho has forgotten {}", facts.join(", ")))
        }
        UserCommand::Forget { all: true, .. } => Err(Failure::usage(
            "Honcho keeps what was said; all of it is deleted there",
        )
        .hint("`hermes user forget ID` deletes one conclusion")),
        UserCommand::Edit { fact: Some(_), .. } => Err(Failure::usage(
            "Honcho's conclusions are not edited one by one",
        )
        .hint("`hermes user edit` opens the card; `hermes user forget ID` deletes a conclusion")),
        UserCommand::Edit { fact: None, .. } => {
            require_terminal()?;
            let known = honcho.known().await.map_err(failure)?;
            let text = known.card.join("\n");
            let edited = editor::edit(&base.environment, base.home.directory(), &text)?;
            let lines = edited
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty());
            let card: Vec<String> = lines.map(str::to_owned).collect();
            let peer = honcho.peer();
            let card = honcho.honcho.set_card(&peer, &card, honcho.timeout());
            let card = card.await.map_err(failure)?;
            println(&format!("the card has {} lines", card.len()))
        }
    }
}

fn require_terminal() -> Outcome<()> {
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage("an editor needs a terminal")
        .hint("`hermes user edit FACT WORDS` changes one fact without"))
}

async fn show(known: &LocalUserModel, all: bool, as_json: bool) -> Outcome<()> {
    let facts = known.known().await.map_err(user_model::told)?;
    if as_json {
        return print_json(&json!(facts));
    }
    let history = if all {
        History::Shown
    } else {
        History::LeftOut
    };
    println(&user_model::shown(&facts, history, SystemClock.now()))
}

async fn ask(
    base: &Base,
    person: Option<String>,
    store: Arc<SqliteStore>,
    question: &str,
    as_json: bool,
) -> Outcome<()> {
    let known = user_model::for_questions(base, person, store, &Models::default()).await?;
    let answer = known.ask(question).await.map_err(Failure::new)?;
    if as_json {
        return print_json(&json!(answer));
    }
    let facts = known.known().await.map_err(user_model::told)?;
    println(&with_sources(&answer, &facts))
}

async fn edit_all(base: &Base, known: &LocalUserModel) -> Outcome<()> {
    require_terminal()?;
    let facts = known.known().await.map_err(user_model::told)?;
    let text = edit::text(&facts);
    let edited = editor::edit(&base.environment, base.home.directory(), &text)?;
    println(&user_model::changed(known.edit(&edited).await)?)
}

fn named(names: &[String]) -> Outcome<Vec<FactId>> {
    let ids = names.iter().map(|name| name.parse());
    let ids: Result<Vec<FactId>, _> = ids.collect();
    ids.map_err(|error: hermes_core::user_model::NoFactId| {
        Failure::usage(error.to_string()).hint("`hermes user show` lists them")
    })
}
