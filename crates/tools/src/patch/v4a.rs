//! The V4A patch format: several files in one text.
//!
//! ```text
//! *** Begin Patch
//! *** Update File: src/main.rs
//! @@ fn main() {
//!      let a = 1;
//! -    let b = 2;
//! +    let b = 3;
//! *** Add File: notes.md
//! +text
//! *** Delete File: old.txt
//! *** Move File: a.txt -> b.txt
//! *** End Patch
//! ```
//!
//! Pure. What models write is read generously: the frame is optional, an empty line inside a hunk is an empty line of
//! context, `*** Move to:` after an update is understood.

/// What is to happen to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Add {
        path: String,
        text: String,
    },
    Update {
        path: String,
        /// Where the file goes afterwards, if it moves.
        to: Option<String>,
        hunks: Vec<Hunk>,
    },
    Delete {
        path: String,
    },
    Move {
        from: String,
        to: String,
    },
}

impl Change {
    /// Returns the paths it is about.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::Add { path, .. } | Self::Delete { path } => vec![path],
            Self::Update { path, to, .. } => [Some(path), to.as_ref()]
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect(),
            Self::Move { from, to } => vec![from, to],
        }
    }
}

/// One place of a file that changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Number of its first line in the patch.
    pub line: usize,
    /// Lines above the place, outermost first: a class, then its method.
    pub hints: Vec<String>,
    pub lines: Vec<HunkLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    Context(String),
    Removed(String),
    Added(String),
}

/// What is wrong with a patch, and on which of its lines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {reason}")]
pub struct ParseError {
    pub line: usize,
    pub reason: String,
}

/// Reads a patch. One that changes nothing is an error.
pub fn parse(patch: &str) -> Result<Vec<Change>, ParseError> {
    let mut parser = Parser::default();
    for (index, line) in patch.lines().enumerate() {
        parser.line = index + 1;
        if is_marker(line, "End Patch") {
            break;
        }
        parser.read(line)?;
    }
    parser.close()?;
    if parser.changes.is_empty() {
        Err(parser.error(
            "it names no file; begin with `*** Update File: path`, `*** Add File: path`, `*** Delete File: path` or \
             `*** Move File: from -> to`",
        ))
    } else {
        Ok(parser.changes)
    }
}

#[derive(Default)]
struct Parser {
    /// Number of the line that is being read.
    line: usize,
    changes: Vec<Change>,
    /// The change whose lines are being read.
    open: Option<Change>,
}

impl Parser {
    fn read(&mut self, line: &str) -> Result<(), ParseError> {
        if is_marker(line, "Begin Patch") || is_marker(line, "End of File") {
            return Ok(());
        }
        if let Some(change) = self.header(line)? {
            self.close()?;
            self.open = Some(change);
            return Ok(());
        }
        if let Some(path) = marker(line, "Move to:") {
            return self.move_to(path);
        }
        let number = self.line;
        match &mut self.open {
            Some(Change::Update { hunks, .. }) => read_hunk_line(hunks, line, number),
            Some(Change::Add { text, .. }) => match line.strip_prefix('+') {
                Some(added) => push_line(text, added),
                None if line.trim().is_empty() => push_line(text, ""),
                None => return Err(self.error("each line of an added file begins with `+`")),
            },
            // Fences and empty lines around the patch.
            _ if line.trim().is_empty() || line.starts_with("```") => {}
            _ => {
                let reason =
                    format!("`{line}` belongs to no file; `*** Update File: path` must come first");
                return Err(self.error(&reason));
            }
        }
        Ok(())
    }

    fn header(&self, line: &str) -> Result<Option<Change>, ParseError> {
        let path = |path: &str| match path {
            "" => Err(self.error("the path is missing")),
            path => Ok(path.to_owned()),
        };
        let change = if let Some(updated) = marker(line, "Update File:") {
            Change::Update {
                path: path(updated)?,
                to: None,
                hunks: Vec::new(),
            }
        } else if let Some(added) = marker(line, "Add File:") {
            Change::Add {
                path: path(added)?,
                text: String::new(),
            }
        } else if let Some(deleted) = marker(line, "Delete File:") {
            Change::Delete {
                path: path(deleted)?,
            }
        } else if let Some(moved) = marker(line, "Move File:") {
            let Some((from, to)) = moved.split_once("->") else {
                return Err(self.error("a move is written `*** Move File: from -> to`"));
            };
            Change::Move {
                from: path(from.trim())?,
                to: path(to.trim())?,
            }
        } else {
            return Ok(None);
        };
        Ok(Some(change))
    }

    fn move_to(&mut self, target: &str) -> Result<(), ParseError> {
        match &mut self.open {
            Some(Change::Update { to, .. }) if !target.is_empty() => {
                *to = Some(target.to_owned());
                Ok(())
            }
            _ => Err(self.error("`*** Move to: path` follows `*** Update File: path`")),
        }
    }

    /// Ends the change that is being read.
    fn close(&mut self) -> Result<(), ParseError> {
        let Some(mut change) = self.open.take() else {
            return Ok(());
        };
        match &mut change {
            Change::Update { path, to, hunks } => {
                check_hunks(hunks)?;
                if hunks.is_empty() && to.is_none() {
                    let reason = format!("nothing of `{path}` changes; add lines with `-` and `+`");
                    return Err(self.error(&reason));
                }
            }
            Change::Add { text, .. } => {
                // Empty lines before the next header separate; they were not written with `+`.
                let end = text.trim_end_matches('\n').len();
                text.truncate((end + 1).min(text.len()));
            }
            Change::Delete { .. } | Change::Move { .. } => {}
        }
        self.changes.push(change);
        Ok(())
    }

    fn error(&self, reason: &str) -> ParseError {
        ParseError {
            line: self.line,
            reason: reason.to_owned(),
        }
    }
}

fn read_hunk_line(hunks: &mut Vec<Hunk>, line: &str, number: usize) {
    if let Some(hint) = line.strip_prefix("@@") {
        if hunks.last().is_none_or(|hunk| !hunk.lines.is_empty()) {
            hunks.push(Hunk {
                line: number,
                ..Hunk::default()
            });
        }
        if let Some(hunk) = hunks.last_mut()
            && let Some(hint) = hint_of(hint)
        {
            hunk.hints.push(hint.to_owned());
        }
        return;
    }
    let line = match line.split_at_checked(1) {
        Some(("+", text)) => HunkLine::Added(text.to_owned()),
        Some(("-", text)) => HunkLine::Removed(text.to_owned()),
        Some((" ", text)) => HunkLine::Context(text.to_owned()),
        // `\ No newline at end of file`
        Some(("\\", _)) => return,
        _ => HunkLine::Context(line.to_owned()),
    };
    if hunks.is_empty() {
        hunks.push(Hunk {
            line: number,
            ..Hunk::default()
        });
    }
    if let Some(hunk) = hunks.last_mut() {
        hunk.lines.push(line);
    }
}

/// Returns what stands after `@@`, without a closing `@@` and without the line numbers of other formats.
fn hint_of(after: &str) -> Option<&str> {
    let hint = match after.trim().split_once("@@") {
        Some((numbers, hint)) if is_line_numbers(numbers) => hint,
        Some((hint, "")) => hint,
        _ => after,
    };
    let hint = hint.trim();
    (!hint.is_empty()).then_some(hint)
}

fn is_line_numbers(text: &str) -> bool {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | ',' | ' ');
    text.trim_start().starts_with('-') && text.chars().all(is_number)
}

fn check_hunks(hunks: &mut Vec<Hunk>) -> Result<(), ParseError> {
    for hunk in &mut *hunks {
        // Empty lines before the next header or hunk separate.
        while matches!(hunk.lines.last(), Some(HunkLine::Context(text)) if text.is_empty()) {
            hunk.lines.pop();
        }
    }
    let changes = |hunk: &Hunk| {
        let mut lines = hunk.lines.iter();
        lines.any(|line| !matches!(line, HunkLine::Context(_)))
    };
    hunks.retain(|hunk| !hunk.lines.is_empty() || !hunk.hints.is_empty());
    match hunks.iter().find(|hunk| !changes(hunk)) {
        None => Ok(()),
        Some(hunk) => Err(ParseError {
            line: hunk.line,
            reason: "this hunk has only context; mark what changes with `-` and `+`".to_owned(),
        }),
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn is_marker(line: &str, word: &str) -> bool {
    marker(line, word) == Some("")
}

/// Returns what follows a marker such as `*** Add File:`.
fn marker<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let after = line.trim_end().strip_prefix("***")?.trim_start();
    after.strip_prefix(word).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(text: &str) -> HunkLine {
        HunkLine::Context(text.to_owned())
    }

    #[test]
    fn every_kind_of_change_is_read() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@ class A @@\n@@ fn f\n x\n\n-y\n+z\n\n*** Add File: b.md\n\
                     +one\n+\n+two\n\n***Delete File: c.txt\n*** Move File: d -> e\n*** End Patch\nrest";
        let hunk = Hunk {
            line: 3,
            hints: vec!["class A".to_owned(), "fn f".to_owned()],
            lines: vec![
                context("x"),
                context(""),
                HunkLine::Removed("y".to_owned()),
                HunkLine::Added("z".to_owned()),
            ],
        };
        let expected = [
            Change::Update {
                path: "a.rs".to_owned(),
                to: None,
                hunks: vec![hunk],
            },
            Change::Add {
                path: "b.md".to_owned(),
                text: "one\n\ntwo\n".to_owned(),
            },
            Change::Delete {
                path: "c.txt".to_owned(),
            },
            Change::Move {
                from: "d".to_owned(),
                to: "e".to_owned(),
            },
        ];
        assert_eq!(parse(patch).unwrap(), expected);
    }

    #[test]
    fn other_ways_to_write_it_are_understood() {
        let patch = "```\n*** Update File: a\n*** Move to: b\n@@ -1,2 +1,2 @@ fn f\nx\n-y\n\\ No newline\n+z\n*** End of File\n```";
        let changes = parse(patch).unwrap_or_else(|error| panic!("{error}"));
        let [Change::Update { to, hunks, .. }] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!(to.as_deref(), Some("b"));
        assert_eq!(hunks[0].hints, ["fn f"]);
        assert_eq!(hunks[0].lines[0], context("x"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (patch, expected) in [
            ("", "line 0 of the patch: it names no file"),
            ("hello", "line 1 of the patch: `hello` belongs to no file"),
            ("*** Add File: a\ntext", "line 2 of the patch: each line"),
            (
                "*** Update File: a\n x\n",
                "line 2 of the patch: this hunk has only context",
            ),
            (
                "*** Update File: a\n",
                "line 1 of the patch: nothing of `a` changes",
            ),
            (
                "*** Update File:",
                "line 1 of the patch: the path is missing",
            ),
            ("*** Move File: a", "line 1 of the patch: a move is written"),
        ] {
            let error = parse(patch).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_gets_an_answer(patch in "([*]{3} (Update|Add|Move|Delete) File: [a>-]{0,4}\n|[@+ \\\\-]{0,3}[a-c]?\n){0,12}") {
            let _ = parse(&patch);
        }
    }
}
