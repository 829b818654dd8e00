//! Finds the programs that `scripts/peers` has installed.

use std::path::PathBuf;

/// Says where they are, if not in the cache.
const FOLDER: &str = "HERMES_TEST_PEERS";
/// Lets the tests pass without them. Nobody sets it by accident.
const SKIP: &str = "HERMES_SKIP_TEST_PEERS";

/// One installed program.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    folder: PathBuf,
}

impl Peer {
    /// Returns the program, or `None` if the user wants to do without.
    ///
    /// # Panics
    /// If it is not installed: a proof that was not made must not look like one.
    pub(crate) fn installed(name: &'static str) -> Option<Self> {
        let folder = peers_folder().join(name);
        match (folder.join("installed").exists(), variable(SKIP)) {
            (true, _) => Some(Self { name, folder }),
            (false, Some(_)) => {
                println!("SKIPPED: `{name}` is not installed and {SKIP} is set");
                None
            }
            (false, None) => panic!(
                "`{name}` is not in {}; run scripts/peers, or set {SKIP}=1 to do without this proof",
                folder.display()
            ),
        }
    }

    /// Returns the command that runs our server with this interpreter's libraries.
    pub(crate) fn python(&self, arguments: &[&str]) -> Vec<String> {
        self.python_program("server.py", arguments)
    }

    /// Returns the command that runs a program of ours with this interpreter's libraries.
    pub(crate) fn python_program(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let python = self.folder.join("bin/python").display().to_string();
        command(&[&python, &ours(program)], arguments)
    }

    /// Returns the command that runs a program of ours, which is told where the installed npm package is.
    pub(crate) fn node_program(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let folder = self.folder.display().to_string();
        command(&["node", &ours(program), &folder], arguments)
    }

    /// Returns the command that runs a file of an installed npm package.
    pub(crate) fn node(&self, file: &str, arguments: &[&str]) -> Vec<String> {
        let file = self.folder.join("node_modules").join(file);
        command(&["node", &file.display().to_string()], arguments)
    }
}

fn ours(program: &str) -> String {
    format!("{}/tests/real/{program}", env!("CARGO_MANIFEST_DIR"))
}

fn command(program: &[&str], arguments: &[&str]) -> Vec<String> {
    let words = program.iter().chain(arguments);
    words.map(|word| (*word).to_owned()).collect()
}

fn peers_folder() -> PathBuf {
    let in_cache = |cache: PathBuf| cache.join("hermes-test-peers");
    let of_user = || variable("HOME").map(|home| PathBuf::from(home).join(".cache"));
    variable(FOLDER)
        .map(PathBuf::from)
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| in_cache(cache.into())))
        .or_else(|| of_user().map(in_cache))
        .expect("HOME is set")
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests are told this way where their peers are"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
