//! `hermes sessions search`: where something was said.

use std::io;

use hermes_core::{Archive as _, SearchQuery};
use serde_json::json;

use crate::args::JsonFlag;
use crate::base::Base;
use crate::commands::layout::print_json;
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;
use hermes_runtime::open_archive;
use hermes_runtime::shown::search;
use hermes_runtime::shown::sessions::NONE_YET;

pub(super) async fn run(
    base: &Base,
    text: &str,
    session: Option<&str>,
    limit: usize,
    json: &JsonFlag,
) -> Outcome<()> {
    let Some(store) = open_archive(base)? else {
        return if json.json {
            println("[]")
        } else {
            println(NONE_YET)
        };
    };
    let session = match session {
        Some(name) => Some(store.find(name).await?),
        None => None,
    };
    let query = SearchQuery {
        text: text.to_owned(),
        session,
        limit,
        ..SearchQuery::default()
    };
    let hits = store.search(query).await?;
    if json.json {
        return print_json(&json!(hits));
    }
    let style = Style::of(&io::stdout(), &base.environment);
    println(&search::text(text, &hits, style))
}
