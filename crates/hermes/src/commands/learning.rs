//! `hermes learning`: what was learned, by whom and from what, and how to take it back.

use std::sync::Arc;

use hermes_core::{Archive as _, ChangeFilter, Clock as _, LearningLog as _};
use hermes_runtime::{SystemClock, learned, open_store};
use serde_json::json;

use super::layout::print_json;
use super::memory;
use crate::args::{JsonFlag, LearningArgs, LearningCommand};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::println;

pub(crate) async fn run(base: &Base, args: LearningArgs) -> Outcome<()> {
    let store = Arc::new(open_store(base)?);
    let by_default = LearningCommand::Log {
        session: None,
        json: JsonFlag { json: false },
    };
    match args.command.unwrap_or(by_default) {
        LearningCommand::Log { session, json } => {
            let session = match session {
                Some(name) => Some(store.find(&name).await?),
                None => None,
            };
            let filter = ChangeFilter {
                session,
                limit: learned::LISTED_MAX,
                ..ChangeFilter::default()
            };
            let changes = store.changes(filter).await?;
            if json.json {
                print_json(&json!(changes))
            } else {
                println(&learned::listed(&changes, SystemClock.now()))
            }
        }
        LearningCommand::Show { change, json } => {
            let id = change.parse().map_err(|_| {
                Failure::usage(format!("`{change}` is not the number of a change"))
                    .hint("`hermes learning log` lists them")
            })?;
            let change = learned::find(store.as_ref(), id).await?;
            if json.json {
                print_json(&json!(change))
            } else {
                println(&learned::shown(&change))
            }
        }
        LearningCommand::Undo { change } => memory::undo(base, store, &change).await,
    }
}
