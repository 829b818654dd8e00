//! Every key and login there is, masked: where it comes from and whether it is used.

use std::io;

use hermes_core::Clock as _;
use hermes_runtime::SystemClock;
use hermes_runtime::models::keys::{all, provider_of};

use crate::base::Base;
use crate::commands::layout::{OnTerminal as _, Table, print_json};
use crate::failure::Outcome;
use crate::output::println;
use crate::style::Style;

pub(super) fn run(base: &Base, provider: Option<&str>, as_json: bool) -> Outcome<()> {
    let provider = provider.map(|name| provider_of(base, name)).transpose()?;
    let now = SystemClock.now();
    let keys = all(base, provider.as_deref(), now)?;
    if as_json {
        return print_json(&keys.iter().map(|key| key.to_json(now)).collect());
    }
    if keys.is_empty() {
        let whose = provider.unwrap_or_else(|| "PROVIDER".to_owned());
        return println(&format!(
            "no keys yet, and no logins; `hermes auth add {whose}` adds one, `hermes model list` shows the providers"
        ));
    }
    let mut table = Table::new(["PROVIDER", "N", "LABEL", "ID", "KEY", "FROM", "STATE"]);
    keys.iter().for_each(|key| table.row(key.cells(now)));
    table.print(Style::of(&io::stdout(), &base.environment))
}
