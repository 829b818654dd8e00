//! Whether local commands can be fenced in, and whether they are.

use hermes_exec::FenceMeans;

use super::Check;
use crate::base::Base;
use crate::failure::Outcome;
use crate::terminals::{local_environment, sandbox};

const NAME: &str = "sandbox";

/// Says what the settings ask for and what this machine has. That it works is for `commands` to say.
pub(super) fn check(base: &Base) -> Outcome<Check> {
    let means = FenceMeans::of_this_machine(&local_environment(base)?);
    let landlock = match &means.landlock {
        Ok(version) => format!("Landlock version {version}"),
        Err(why) => why.clone(),
    };
    let bubblewrap = match &means.bubblewrap {
        Ok(path) => format!("bubblewrap at {}", path.display()),
        Err(why) => why.clone(),
    };
    let state = match sandbox(base)? {
        None => "off".to_owned(),
        Some(_) => base.settings.string("terminal.sandbox")?,
    };
    let text = format!("{state}; this machine has: {landlock}; {bubblewrap}");
    Ok(Check::good(NAME, text))
}
