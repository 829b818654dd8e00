//! `hermes config edit`: the user's own editor, and a look at the result.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use hermes_config::{Environment, Home};

use super::check;
use crate::commands::already_told;
use crate::commands::confirm::{Enter, confirm};
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};

/// Tried in this order when neither `VISUAL` nor `EDITOR` is set.
const EDITORS: [&str; 2] = ["nano", "vi"];

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
    let editors = editors(environment);
    loop {
        open(&editors, &path, home.directory())?;
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

/// The command lines to try, the user's own choice alone where there is one.
fn editors(environment: &Environment) -> Vec<String> {
    let chosen = ["VISUAL", "EDITOR"]
        .iter()
        .filter_map(|name| environment.get(name))
        .find(|editor| !editor.trim().is_empty());
    match chosen {
        Some(editor) => vec![editor.to_owned()],
        None => EDITORS.map(str::to_owned).to_vec(),
    }
}

/// Opens the file in the first editor that can be started, and waits for it.
fn open(editors: &[String], file: &Path, folder: &Path) -> Outcome<()> {
    for editor in editors {
        let mut words = editor.split_whitespace();
        let Some(program) = words.next() else {
            continue;
        };
        let arguments = words.map(Path::new).chain([file]);
        match hermes_exec::interactive(program, arguments, folder) {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => {
                return Err(
                    Failure::new(format!("the editor `{editor}` ended with {status}"))
                        .hint(format!("`{}` is as the editor left it", file.display())),
                );
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(
                    Failure::new(format!("cannot start the editor `{editor}`: {error}"))
                        .hint("set EDITOR to another one"),
                );
            }
        }
    }
    let tried = editors.join("`, `");
    Err(
        Failure::new(format!("no editor found: there is no `{tried}`"))
            .hint("set EDITOR to the one you use, such as `export EDITOR=vim`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_editor_goes_first_and_alone() {
        let check = |pairs: &[(&str, &str)], expected: &[&str]| {
            let environment = Environment::from_pairs(pairs.iter().copied());
            assert_eq!(editors(&environment), expected);
        };
        check(
            &[("VISUAL", "code --wait"), ("EDITOR", "vim")],
            &["code --wait"],
        );
        check(&[("VISUAL", " "), ("EDITOR", "vim")], &["vim"]);
        check(&[], &["nano", "vi"]);
    }
}
