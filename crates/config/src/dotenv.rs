//! `.env` files: reading them as people write them, and changing one line without touching the others.

mod parse;

use std::path::{Path, PathBuf};

use crate::disk::{self, ReadError, WriteError};

use parse::{Assignment, parse};

/// Names that a `.env` must not set: they decide which code runs, or where Hermes finds this very file.
const FORBIDDEN_NAMES: [&str; 16] = [
    "PATH",
    "SHELL",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "GIT_SSH_COMMAND",
    "GIT_EXEC_PATH",
    "HERMES_HOME",
    "HERMES_PROFILE",
];
const FORBIDDEN_PREFIXES: [&str; 5] = [
    "LD_",
    "DYLD_",
    "HERMES_CONFIG",
    "HERMES_ENV",
    "HERMES_MANAGED",
];

/// A `.env` file in memory.
pub struct DotEnv {
    path: PathBuf,
    text: String,
    assignments: Vec<Assignment>,
    problems: Vec<DotEnvProblem>,
}

/// A line that has no effect: it is no assignment, or sets what a `.env` file must not set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DotEnvProblem {
    pub line: usize,
    pub message: &'static str,
}

/// A variable that cannot be put into a `.env` file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    #[error(
        "`{name}` is not the name of a variable; use letters, digits and `_`, and no digit first"
    )]
    BadName { name: String },
    #[error(
        "`{name}` decides which programs run or where Hermes looks for its files, so a `.env` file must not set it; \
         set it in your shell instead"
    )]
    Forbidden { name: String },
    #[error("the value of `{name}` contains a NUL character, which no variable can hold")]
    BadValue { name: String },
}

impl DotEnv {
    /// Reads a file; one that does not exist is empty.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let text = disk::read_text(path)?.unwrap_or_default();
        Ok(Self::parse(path, text))
    }

    fn parse(path: &Path, text: String) -> Self {
        let (assignments, problems) = parse(&text);
        Self {
            path: path.to_path_buf(),
            text,
            assignments,
            problems,
        }
    }

    /// Returns the variables in the order of the file; of two with one name the later wins.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.assignments
            .iter()
            .map(|assignment| (assignment.name.as_str(), assignment.value.as_str()))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs()
            .filter(|(known, _)| *known == name)
            .last()
            .map(|(_, value)| value)
    }

    pub fn problems(&self) -> &[DotEnvProblem] {
        &self.problems
    }

    /// Sets a variable in place, or at the end when it is new.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), VariableError> {
        check_name(name)?;
        if value.contains('\0') {
            return Err(VariableError::BadValue {
                name: name.to_owned(),
            });
        }
        let line = format!("{name}={}", quote(value));
        let mut text = self.text.clone();
        match self
            .assignments
            .iter()
            .rfind(|assignment| assignment.name == name)
        {
            Some(assignment) => text.replace_range(assignment.span.clone(), &line),
            None => {
                let newline = self.newline();
                if !text.is_empty() && !text.ends_with('\n') {
                    text.push_str(newline);
                }
                text.push_str(&line);
                text.push_str(newline);
            }
        }
        *self = Self::parse(&self.path, text);
        Ok(())
    }

    /// Removes every assignment of a variable; tells whether there was one.
    pub fn unset(&mut self, name: &str) -> bool {
        let mut text = self.text.clone();
        let mut is_changed = false;
        for assignment in self
            .assignments
            .iter()
            .rev()
            .filter(|assignment| assignment.name == name)
        {
            let end = text[assignment.span.end..]
                .find('\n')
                .map_or(text.len(), |newline| assignment.span.end + newline + 1);
            text.replace_range(assignment.line_start..end, "");
            is_changed = true;
        }
        *self = Self::parse(&self.path, text);
        is_changed
    }

    /// Writes the file in one step, readable by its owner only when it is new.
    pub fn save(&self) -> Result<(), WriteError> {
        disk::write_atomically(&self.path, &self.text)
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }
}

/// Checks that a `.env` file may set `name`.
fn check_name(name: &str) -> Result<(), VariableError> {
    if !is_name(name) {
        return Err(VariableError::BadName {
            name: name.to_owned(),
        });
    }
    if is_forbidden(name) {
        return Err(VariableError::Forbidden {
            name: name.to_owned(),
        });
    }
    Ok(())
}

fn is_forbidden(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    FORBIDDEN_NAMES.contains(&upper.as_str())
        || FORBIDDEN_PREFIXES
            .iter()
            .any(|prefix| upper.starts_with(prefix))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn quote(value: &str) -> String {
    let is_plain = value
        .chars()
        .all(|c| c.is_alphanumeric() || "_-./:@+=,%~".contains(c));
    if is_plain {
        return value.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in value.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '"' | '\\' => quoted.extend(['\\', c]),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> DotEnv {
        DotEnv::parse(Path::new(".env"), text.to_owned())
    }

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let file = open(text);
        assert_eq!(file.pairs().collect::<Vec<_>>(), expected);
        assert_eq!(file.problems(), []);
    }

    #[test]
    fn lines_are_read_as_people_write_them() {
        check(
            "\u{feff}A=1\r\nexport B = two words  # note\r\n\r\n# C=3\r\n",
            &[("A", "1"), ("B", "two words")],
        );
        check(
            "A='it\\'s #1' # note\nB=\"x\\n\\\"y\\\"\"",
            &[("A", "it's #1"), ("B", "x\n\"y\"")],
        );
        check(
            "A=\nB= # no\nC=#yes\nD=a#b\n",
            &[("A", ""), ("B", ""), ("C", "#yes"), ("D", "a#b")],
        );
        check(
            "KEY=\"-----BEGIN\nline\n-----END\"\nB=1\n",
            &[("KEY", "-----BEGIN\nline\n-----END"), ("B", "1")],
        );
        check("exported=1\n", &[("exported", "1")]);
    }

    #[test]
    fn a_line_without_effect_is_named() {
        let file = open("A=1\njust words\nB=\"open\nC=3\n2X=1\nPATH=/evil\n");
        assert_eq!(file.pairs().collect::<Vec<_>>(), [("A", "1"), ("C", "3")]);
        assert_eq!(
            file.problems()
                .iter()
                .map(|problem| problem.line)
                .collect::<Vec<_>>(),
            [2, 3, 5, 6]
        );
    }

    #[test]
    fn a_change_touches_its_own_line_only() {
        let mut file = open("# keys\r\nA=1\r\nexport B='x y' # why\r\nD= # later\r\n# end\r\n");
        file.set("B", "new value").unwrap();
        file.set("C", "3").unwrap();
        file.set("D", "4").unwrap();
        assert!(file.unset("A"));
        assert!(!file.unset("A"));
        assert_eq!(
            file.text,
            "# keys\r\nexport B=\"new value\" # why\r\nD=4 # later\r\n# end\r\nC=3\r\n"
        );
    }

    #[test]
    fn every_value_reads_back_as_it_was_set() {
        for value in [
            "",
            "plain",
            "two words",
            "a#b",
            "\"q\"",
            "it's",
            "back\\slash",
            "line\nline\r",
            "$HOME",
            "é ✓",
        ] {
            let mut file = open("");
            file.set("A", value).unwrap();
            assert_eq!(file.get("A"), Some(value));
        }
    }

    #[test]
    fn names_that_decide_which_code_runs_are_refused() {
        for name in [
            "PATH",
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "HERMES_HOME",
            "pythonpath",
            "HERMES_ENV_FILE",
        ] {
            assert!(
                matches!(check_name(name), Err(VariableError::Forbidden { .. })),
                "{name}"
            );
        }
        for name in ["", "1A", "A-B", "A B", "É"] {
            assert!(
                matches!(check_name(name), Err(VariableError::BadName { .. })),
                "{name}"
            );
        }
        assert_eq!(check_name("OPENAI_API_KEY"), Ok(()));
    }
}
