//! The user's own pager.

use std::io;
use std::path::Path;

use hermes_config::Environment;

use crate::editor::Draft;
use crate::failure::{Failure, Outcome};

/// Tried in this order when `PAGER` is not set. `-R` shows colours, `+G` begins at the end.
const PAGERS: [&str; 2] = ["less -R +G", "more"];

/// Shows a text in the first pager that can be started, and waits for it.
pub fn page(environment: &Environment, folder: &Path, text: &str) -> Outcome<()> {
    let file = Draft::create(folder, text)?;
    let own = environment
        .get("PAGER")
        .filter(|pager| !pager.trim().is_empty());
    let pagers: Vec<&str> = own.into_iter().chain(PAGERS).collect();
    for pager in &pagers {
        let mut words = pager.split_whitespace();
        let Some(program) = words.next() else {
            continue;
        };
        let arguments = words.map(Path::new).chain([file.path()]);
        match hermes_exec::interactive(program, arguments, folder) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(
                    Failure::new(format!("cannot start the pager `{pager}`: {error}"))
                        .hint("set PAGER to another one"),
                );
            }
        }
    }
    let tried = pagers.join("`, `");
    Err(Failure::new(format!("no pager found: there is no `{tried}`")).hint("install `less`"))
}
