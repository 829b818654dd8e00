//! Suggestions while typing: commands behind a slash, their arguments, files behind an `@`.

mod arguments;

pub(crate) use arguments::Lists;
use hermes_core::command::{self, Argument, Surface, Typed};
use hermes_core::quick::{Quick, QuickCommands};
use hermes_core::skill::SkillNames;
use ratatui_core::text::{Line, Span};

use crate::{fuzzy, theme, wrap};

/// More suggestions than this are scrolled through.
const SHOWN_MAX: usize = 7;
/// Nobody looks further down.
const FOUND_MAX: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suggestion {
    /// What takes the place of the word that is typed.
    pub(crate) word: String,
    label: String,
    detail: String,
    /// Nothing has to follow it: it can be sent at once.
    pub(crate) is_complete: bool,
}

/// The word that suggestions are for: from `start` to the cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) start: usize,
    pub(crate) kind: Kind,
    /// Without its slash or `@`.
    pub(crate) letters: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Command,
    Argument(Argument),
    File,
}

/// What suggestions are made of.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) files: Vec<String>,
    pub(crate) quick: QuickCommands,
    pub(crate) skills: SkillNames,
    pub(crate) lists: Lists,
}

/// Finds the word before the cursor that suggestions can be made for.
pub(crate) fn word<'a>(before_cursor: &'a str) -> Option<Word<'a>> {
    let start = before_cursor.rfind(char::is_whitespace).map_or(0, |at| {
        at + before_cursor[at..].chars().next().map_or(1, char::len_utf8)
    });
    let word = &before_cursor[start..];
    if start == 0
        && let Some(letters) = word.strip_prefix('/')
    {
        let is_path = letters.contains('/');
        return (!is_path).then_some(Word {
            start,
            kind: Kind::Command,
            letters,
        });
    }
    if let Some(letters) = word.strip_prefix('@') {
        return Some(Word {
            start,
            kind: Kind::File,
            letters: letters.strip_prefix("file:").unwrap_or(letters),
        });
    }
    let typed = command::argument(before_cursor, Surface::Terminal);
    let of_argument = |typed: Typed<'a>| Word {
        start: typed.start,
        kind: Kind::Argument(typed.argument),
        letters: typed.letters,
    };
    typed.map(of_argument)
}

/// The suggestions for a word, if there are any.
pub(crate) fn suggest(word: Word<'_>, known: &Known) -> Option<Completion> {
    let letters = word.letters;
    let (suggestions, selected) = match word.kind {
        Kind::Command => {
            let mut found = own_commands(letters, &known.quick);
            found.extend(named(letters, &known.skills));
            (found, Some(0))
        }
        Kind::Argument(argument) => {
            let found = arguments::suggestions(argument, letters, &known.lists);
            let is_obvious = arguments::is_obvious(argument, letters, found.len());
            (found, is_obvious.then_some(0))
        }
        Kind::File => (paths(letters, &known.files), Some(0)),
    };
    (!suggestions.is_empty()).then_some(Completion {
        suggestions,
        selected,
    })
}

/// The person's own commands come first: there are few, and they were wanted.
fn own_commands(letters: &str, quick: &QuickCommands) -> Vec<Suggestion> {
    let fitting = quick.iter().filter(|(name, _)| {
        name.starts_with(letters) && !command::is_name(name, Surface::Terminal)
    });
    let suggestion = |(name, quick): (&str, &Quick)| {
        let (Quick::Exec(meaning) | Quick::Alias(meaning)) = quick;
        Suggestion {
            word: format!("/{name}"),
            label: format!("/{}", wrap::clean(name)),
            detail: wrap::clean(meaning).replace('\n', " "),
            is_complete: true,
        }
    };
    fitting.map(suggestion).collect()
}

/// Commands and then skills: those that begin so, or else those that are like it.
fn named(letters: &str, skills: &SkillNames) -> Vec<Suggestion> {
    let commands = command::of(Surface::Terminal).map(|command| {
        let names = std::iter::once(command.name).chain(command.aliases.iter().copied());
        (names.collect::<Vec<_>>(), built_in(command))
    });
    let skills = skills.iter().map(|one| (vec![one.0], skill(one)));
    let all: Vec<_> = commands.chain(skills).collect();
    let begins = |names: &[&str]| names.iter().any(|name| name.starts_with(letters));
    let mut fitting: Vec<usize> = (0..all.len()).filter(|at| begins(&all[*at].0)).collect();
    if fitting.is_empty() {
        fitting = fuzzy::matching(letters, all.iter().map(|(names, _)| names[0]));
    }
    let fitting = fitting.into_iter();
    fitting.map(|index| all[index].1.clone()).collect()
}

fn built_in(command: &command::Command) -> Suggestion {
    Suggestion {
        word: format!("/{}", command.name),
        label: format!("/{} {}", command.name, command.arguments),
        detail: command.help.into(),
        is_complete: command.arguments.is_empty() || command.arguments.starts_with('['),
    }
}

/// Words usually follow a skill, so that it is not sent at once.
fn skill((name, description): (&str, &str)) -> Suggestion {
    Suggestion {
        word: format!("/{name}"),
        label: format!("/{} [TEXT]", wrap::clean(name)),
        detail: wrap::clean(description).replace('\n', " "),
        is_complete: false,
    }
}

fn paths(letters: &str, files: &[String]) -> Vec<Suggestion> {
    let found = fuzzy::matching(letters, files.iter().map(String::as_str));
    let found = found.into_iter().take(FOUND_MAX);
    found
        .map(|index| {
            let path = &files[index];
            let kind = if path.ends_with('/') {
                "folder"
            } else {
                "file"
            };
            let path_words = if path.contains(char::is_whitespace) {
                format!("\"{path}\"")
            } else {
                path.clone()
            };
            Suggestion {
                word: format!("@{kind}:{path_words}"),
                label: wrap::clean(path),
                detail: String::new(),
                is_complete: false,
            }
        })
        .collect()
}

/// Suggestions on the screen. Enter takes the selected one, if one is.
#[derive(Debug)]
pub(crate) struct Completion {
    suggestions: Vec<Suggestion>,
    selected: Option<usize>,
}

impl Completion {
    pub(crate) fn selected(&self) -> Option<&Suggestion> {
        self.suggestions.get(self.selected?)
    }

    /// The one that Tab takes.
    pub(crate) fn best(&self) -> Option<&Suggestion> {
        self.selected().or(self.suggestions.first())
    }

    pub(crate) fn up(&mut self) {
        let count = self.suggestions.len().max(1);
        let above = self.selected.unwrap_or(0) + count - 1;
        self.selected = Some(above % count);
    }

    pub(crate) fn down(&mut self) {
        let below = self.selected.map_or(0, |selected| selected + 1);
        self.selected = Some(below % self.suggestions.len().max(1));
    }

    /// Selects what was selected before more was known, if it is still there.
    pub(crate) fn select_again(&mut self, word: &str) {
        let mut suggestions = self.suggestions.iter();
        let again = suggestions.position(|suggestion| suggestion.word == word);
        self.selected = again.or(self.selected);
    }

    pub(crate) fn rows(&self, columns: usize, rows_max: usize) -> Vec<Line<'static>> {
        let shown = SHOWN_MAX.min(rows_max);
        let selected = self.selected.unwrap_or(0);
        let first = selected.saturating_sub(shown.saturating_sub(1));
        let labels = self.suggestions.iter().map(|one| wrap::width(&one.label));
        let label_columns = labels.max().unwrap_or(0).min(columns / 2);
        let rows = self.suggestions.iter().enumerate().skip(first).take(shown);
        rows.map(|(index, suggestion)| {
            let is_selected = Some(index) == self.selected;
            let style = if is_selected {
                theme::HEADING
            } else {
                theme::PLAIN
            };
            let gap = label_columns.saturating_sub(wrap::width(&suggestion.label));
            let row = Line::from(vec![
                Span::styled(if is_selected { "› " } else { "  " }, theme::ACCENT),
                Span::styled(suggestion.label.clone(), style),
                Span::raw(" ".repeat(gap + 2)),
                Span::styled(suggestion.detail.clone(), theme::DIM),
            ]);
            wrap::cut(row, columns)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::command::List;

    use super::*;

    #[test]
    fn commands_stand_first_and_files_anywhere() {
        let kind = |text| word(text).map(|word| (word.kind, word.start, word.letters));
        assert_eq!(kind("/mo"), Some((Kind::Command, 0, "mo")));
        assert_eq!(kind("see @src/ma"), Some((Kind::File, 4, "src/ma")));
        assert_eq!(kind("@file:a"), Some((Kind::File, 0, "a")));
        let models = Kind::Argument(Argument::Of(List::Models));
        assert_eq!(kind("/model gp"), Some((models, 7, "gp")));
        assert_eq!(
            [kind("/etc/ho"), kind("/title x"), kind("a /b"), kind("")],
            [None; 4]
        );
    }

    #[test]
    fn names_that_begin_so_come_alone_and_near_ones_otherwise() {
        let words = |letters| -> Vec<String> {
            let found = named(letters, &SkillNames::NONE).into_iter();
            found.map(|one| one.word).collect()
        };
        assert_eq!(words("st"), ["/stop", "/steer", "/status"]);
        assert!(words("vrs").contains(&"/version".to_owned()));
        assert_eq!(words("").len(), command::of(Surface::Terminal).count());
    }

    #[test]
    fn skills_come_behind_commands_with_what_they_are_for() {
        let skills = [("statistics", "counts\nthings"), ("review", "looks")];
        let skills = SkillNames::new(skills.map(|(a, b)| (a.to_owned(), b.to_owned())));
        let found = named("stat", &skills);
        let words: Vec<_> = found.iter().map(|one| one.word.as_str()).collect();
        assert_eq!(words, ["/status", "/statistics"]);
        assert_eq!(found[1].detail, "counts things");
        assert!(!found[1].is_complete);
        assert_eq!(named("rvw", &skills)[0].word, "/review");
    }

    #[test]
    fn files_become_references() {
        let files = ["src/main.rs".into(), "my notes.md".into(), "src/".into()];
        let words = |letters| paths(letters, &files)[0].word.clone();
        assert_eq!(words("main"), "@file:src/main.rs");
        assert_eq!(words("notes"), "@file:\"my notes.md\"");
        assert_eq!(words("src/"), "@folder:src/");
    }
}
