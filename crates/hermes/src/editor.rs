//! The user's own editor.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use hermes_config::Environment;

use crate::failure::{Failure, Outcome};

/// Tried in this order when neither `VISUAL` nor `EDITOR` is set.
const EDITORS: [&str; 2] = ["nano", "vi"];

/// Opens the file in the first editor that can be started, and waits for it.
pub fn open(environment: &Environment, file: &Path, folder: &Path) -> Outcome<()> {
    let editors = editors(environment);
    for editor in &editors {
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

/// Lets the user edit a text, in a file that only they can read. Returns the text as the editor left it.
pub fn edit(environment: &Environment, folder: &Path, text: &str) -> Outcome<String> {
    let draft = Draft::create(folder, text)?;
    open(environment, &draft.path, folder)?;
    std::fs::read_to_string(&draft.path).map_err(|error| draft.failure("read", &error))
}

/// A file that is gone when it is dropped.
pub struct Draft {
    path: PathBuf,
}

impl Draft {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file that only its owner can read.
    pub fn create(folder: &Path, text: &str) -> Outcome<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("draft-{}-{number}.md", std::process::id()));
        let draft = Self { path };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options
            .open(&draft.path)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        match written {
            Ok(()) => Ok(draft),
            Err(error) => Err(draft.failure("write", &error)),
        }
    }

    fn failure(&self, what: &str, error: &io::Error) -> Failure {
        Failure::new(format!("cannot {what} `{}`: {error}", self.path.display()))
            .hint("what you typed is still here")
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
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
