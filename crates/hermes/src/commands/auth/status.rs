//! `hermes auth status`: where one can ask, and with what.

use std::io;

use hermes_core::Clock as _;
use hermes_runtime::SystemClock;
use hermes_runtime::models::keys::provider_of;
use hermes_runtime::models::ways_in::{Way, all};

use crate::base::Base;
use crate::commands::already_told;
use crate::commands::layout::{OnTerminal as _, Table, print_json};
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;

/// Fails without another word when a provider was named and there is no way in.
pub(super) fn run(base: &Base, provider: Option<&str>, as_json: bool) -> Outcome<()> {
    let named = provider.map(|name| provider_of(base, name)).transpose()?;
    let now = SystemClock.now();
    let ways = all(base, named.as_deref(), now)?;
    match (as_json, ways.as_slice()) {
        (true, _) => print_json(&ways.iter().map(|way| way.to_json(now)).collect())?,
        (false, []) => println(&nothing(named.as_deref()))?,
        (false, _) => {
            let mut table = Table::new(["PROVIDER", "WITH", "FROM", "STATE"]);
            ways.iter().for_each(|way| table.row(way.cells(now)));
            table.print(Style::of(&io::stdout(), &base.environment))?;
        }
    }
    if named.is_none() || ways.iter().any(Way::is_good) {
        Ok(())
    } else {
        Err(already_told())
    }
}

fn nothing(provider: Option<&str>) -> String {
    let provider = provider.unwrap_or("PROVIDER");
    format!("neither a key nor a login; `hermes auth add {provider}` adds one")
}
