//! `hermes config edit`: the user's own editor, and a look at the result.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use hermes_config::{Environment, Home};

use super::check;
use crate::commands::already_told;
use crate::commands::confirm::{Enter, confirm};
use crate::editor;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};

pub(super) fn run(home: &Home, environment: &Environment) -> Outcome<()> {
    let path = home.config_yaml();
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::usage("an editor needs a terminal").hint(format!(
            "use `hermes config set KEY VALUE`, or edit `{}` yourself",
            path.display()
        )));
    }
    home.create()?;
    create_private(&path)?;
    loop {
        editor::open(environment, &path, home.directory())?;
        let problems = check::problems(home, environment);
        if problems.is_empty() {
            return println("ok");
        }
        problems.iter().for_each(|problem| note(problem));
        if !confirm("edit again?", Enter::MeansYes)? {
            return Err(already_told());
        }
    }
}

/// Makes the file before an editor does: it may come to hold secrets.
fn create_private(path: &Path) -> Outcome<()> {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match created {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(Failure::new(format!(
            "cannot create `{}`: {error}",
            path.display()
        ))
        .hint("check that you own the folder and may write to it: `hermes doctor`")),
        _ => Ok(()),
    }
}
