//! `hermes config` at a terminal: look through the settings, and change them. Every change goes the way of
//! `hermes config set`, with its checks.

use hermes_config::{Settings, choices, help, mask, set, unset};
use hermes_core::text::shorten;
use serde_json::{Value, json};

use crate::args::RunFlags;
use crate::base::Base;
use crate::commands::interview::Interview;
use crate::commands::layout::one_line;
use crate::failure::{Failure, Outcome};
use crate::output::note;

/// Settings that stand in no section.
const OTHERS: &str = "others";
/// So that all of them fit on a screen.
const SECTIONS_IN_ROW: usize = 3;
/// Enough of a value or an explanation to know it by.
const VALUE_CHARS_MAX: usize = 40;
const HELP_CHARS_MAX: usize = 60;

pub(super) fn run(
    profile: Option<&str>,
    flags: &RunFlags,
    mut interview: Interview,
) -> Outcome<()> {
    let base = Base::load(profile, &flags.options())?;
    let mut browser = Browser {
        base,
        defaults: Settings::defaults(),
        flags,
        interview: &mut interview,
    };
    let mut pages = vec![Page::Sections];
    while let Some(page) = pages.last() {
        match browser.show(page)? {
            Next::Open(page) => pages.push(page),
            Next::Stay => {}
            Next::Back => _ = pages.pop(),
            Next::Leave => break,
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Page {
    Sections,
    /// Settings by their names, under a title.
    List(String, Vec<String>),
    One(String),
}

#[derive(Debug, PartialEq, Eq)]
enum Next {
    Open(Page),
    Stay,
    Back,
    Leave,
}

struct Browser<'a> {
    base: Base,
    defaults: Settings,
    flags: &'a RunFlags,
    interview: &'a mut Interview,
}

impl Browser<'_> {
    fn show(&mut self, page: &Page) -> Outcome<Next> {
        match page {
            Page::Sections => self.sections(),
            Page::List(title, names) => self.list(title, names),
            Page::One(name) => self.one(name),
        }
    }

    fn sections(&mut self) -> Outcome<Next> {
        let file = self.base.home.config_yaml();
        self.interview
            .title(&format!("Settings; yours are in {}", file.display()));
        let (mut names, _) = self.base.settings.sections_and_others();
        names.push(OTHERS.to_owned());
        let style = self.interview.style;
        let cells: Vec<_> = (1..)
            .zip(&names)
            .map(|(number, name)| format!("{} {name:<20} ", style.cyan(format!("{number:>3}"))))
            .collect();
        for row in cells.chunks(SECTIONS_IN_ROW) {
            note(row.concat().trim_end());
        }
        self.ask(&names)
    }

    fn list(&mut self, title: &str, names: &[String]) -> Outcome<Next> {
        self.interview.title(title);
        let longest = names.iter().map(|name| name.chars().count()).max();
        for (number, name) in (1..).zip(names) {
            self.row(number, name, longest.unwrap_or(0));
        }
        note(&self.interview.style.dim("  • is not the built-in value"));
        self.ask(names)
    }

    fn row(&self, number: usize, name: &str, name_chars: usize) {
        let (style, settings) = (self.interview.style, &self.base.settings);
        let value = shorten(&one_line(&value_of(settings, name)), VALUE_CHARS_MAX);
        let mark = if settings.get(name) == self.defaults.get(name) {
            " "
        } else {
            "•"
        };
        let help = shorten(&help(name).unwrap_or_default(), HELP_CHARS_MAX);
        let (number, name) = (style.cyan(format!("{number:>3}")), one_line(name));
        note(&format!(
            "{number} {mark} {}  {value}  {}",
            style.bold(format!("{name:<name_chars$}")),
            style.dim(help)
        ));
    }

    fn ask(&mut self, names: &[String]) -> Outcome<Next> {
        let question = "a number, a name or words to look for (Enter goes back, q leaves)";
        let answer = self.interview.line(question, "")?;
        let next = read(&answer, names, &self.base.settings);
        if next == Next::Stay {
            self.interview.bad(&format!("no setting fits `{answer}`"));
        }
        Ok(next)
    }

    /// Shows a setting with where its value comes from, and takes a new one.
    fn one(&mut self, name: &str) -> Outcome<Next> {
        let settings = &self.base.settings;
        self.interview.title(name);
        if let Some(help) = help(name) {
            note(&format!("  {help}"));
        }
        if let Some(choices) = choices(name) {
            note(&format!("  one of: {choices}"));
        }
        note(settings.explain(name)?.to_string().trim_end());
        if let Some(default) = self.defaults.get(name) {
            note(&format!("built in: {}", written(default)));
        }
        let question = "new value (Enter keeps it, - takes the built-in one)";
        let answer = if is_secret(name) {
            self.interview.secret(question)?
        } else {
            self.interview.line(question, "")?
        };
        match self.change(name, &answer) {
            Ok(()) => Ok(Next::Back),
            Err(failure) => {
                self.interview.bad(&failure.to_string());
                Ok(Next::Stay)
            }
        }
    }

    fn change(&mut self, name: &str, answer: &str) -> Outcome<()> {
        let Base { home, settings, .. } = &self.base;
        let changed = match answer {
            "" => return Ok(()),
            "-" => unset(home, settings, name)?,
            answer => Some(set(home, settings, name, answer)?),
        };
        let Some(changed) = changed else {
            return Err(Failure::new(format!("`{name}` is not in your settings")));
        };
        if let Some(warning) = &changed.warning {
            self.interview.bad(warning);
        }
        self.interview
            .good(&format!("saved in {}", changed.file.display()));
        self.base = self.base.with_options(&self.flags.options())?;
        Ok(())
    }
}

/// What an answer to a list asks for.
fn read(answer: &str, names: &[String], settings: &Settings) -> Next {
    match answer {
        "" => return Next::Back,
        "q" | "quit" | "exit" => return Next::Leave,
        _ => {}
    }
    let number = answer.parse::<usize>().ok();
    let name = match number {
        Some(number) => number
            .checked_sub(1)
            .and_then(|at| names.get(at))
            .map(String::as_str),
        None if answer == OTHERS => Some(answer),
        None => settings.get(answer).map(|_| answer),
    };
    if let Some(name) = name {
        let below = match name {
            OTHERS => settings.sections_and_others().1,
            name => settings.names_below(name),
        };
        return Next::Open(match below.as_slice() {
            [only] if only == name => Page::One(name.to_owned()),
            _ => Page::List(name.to_owned(), below),
        });
    }
    let found = settings.names_with(answer);
    if found.is_empty() || number.is_some() {
        Next::Stay
    } else {
        Next::Open(Page::List(format!("with `{answer}`"), found))
    }
}

fn value_of(settings: &Settings, name: &str) -> String {
    let value = settings.get(name).cloned().unwrap_or_default();
    written(&mask(name, &value))
}

/// A value in one line, as it may be typed.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "''".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Whether a value of this name is never shown.
fn is_secret(name: &str) -> bool {
    let sample = json!("sk-0123456789abcdef0123");
    mask(name, &sample) != sample
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn answers_open_sections_settings_and_searches() {
        let settings = Settings::defaults();
        let shown = names(&["goals", "timezone"]);
        let read = |answer| read(answer, &shown, &settings);
        let list = |title: &str, list: &[&str]| Next::Open(Page::List(title.into(), names(list)));
        assert_eq!(read("1"), list("goals", &["goals.max_turns"]));
        assert_eq!(read("2"), Next::Open(Page::One("timezone".into())));
        assert_eq!(
            read("display.skin"),
            Next::Open(Page::One("display.skin".into()))
        );
        assert_eq!(
            read("collapse char"),
            list("with `collapse char`", &["paste_collapse_char_threshold"])
        );
        assert_eq!(
            [read("3"), read("0"), read("zzz")],
            [Next::Stay, Next::Stay, Next::Stay]
        );
        let Next::Open(Page::List(_, others)) = read("others") else {
            panic!("a list");
        };
        assert!(others.contains(&"timezone".into()) && !others.contains(&"goals".into()));
        assert_eq!([read(""), read("q")], [Next::Back, Next::Leave]);
    }

    #[test]
    fn secrets_are_known() {
        assert!(is_secret("model.api_key") && !is_secret("display.skin"));
    }
}
