//! `hermes config` at a terminal: look through the settings, and change them. Every change goes the way of
//! `hermes config set`, with its checks.

use hermes_config::{Settings, help, mask, set, unset};
use hermes_core::text::shorten;
use serde_json::{Value, json};

use super::collect_names;
use crate::args::RunFlags;
use crate::base::Base;
use crate::commands::interview::Interview;
use crate::commands::layout::one_line;
use crate::failure::{Failure, Outcome};
use crate::output::note;

/// Enough of a value or an explanation to know it by.
const VALUE_CHARS_MAX: usize = 40;
const HELP_CHARS_MAX: usize = 60;

pub(super) fn run(
    profile: Option<&str>,
    flags: &RunFlags,
    mut interview: Interview,
) -> Outcome<()> {
    let base = Base::load(profile, flags)?;
    let mut browser = Browser {
        base,
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
        let names = top_names(&self.base.settings);
        for (number, name) in (1..).zip(&names) {
            let count = names_below(&self.base.settings, name).len();
            let about = match count {
                1 => value_of(&self.base.settings, name),
                count => format!("{count} settings"),
            };
            self.row(number, name, &about, name);
        }
        self.ask(&names)
    }

    fn list(&mut self, title: &str, names: &[String]) -> Outcome<Next> {
        self.interview.title(title);
        for (number, name) in (1..).zip(names) {
            let value = value_of(&self.base.settings, name);
            self.row(number, name, &value, name);
        }
        self.ask(names)
    }

    fn row(&self, number: usize, name: &str, value: &str, explained: &str) {
        let style = self.interview.style;
        let value = shorten(&one_line(value), VALUE_CHARS_MAX);
        let help = help(explained).unwrap_or_default();
        let help = style.dim(shorten(&help, HELP_CHARS_MAX));
        let number = style.cyan(format!("{number:>3}"));
        note(&format!(
            "{number}  {}  {value}  {help}",
            style.bold(one_line(name))
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
        note(settings.explain(name)?.to_string().trim_end());
        if let Some(default) = Settings::defaults().get(name) {
            note(&format!("built in: {}", written(default)));
        }
        let question = "new value (Enter keeps it, `default` takes the built-in one)";
        let answer = match is_secret(name) {
            true => self.interview.secret(question)?,
            false => self.interview.line(question, "")?,
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
            "default" => unset(home, settings, name)?,
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
        self.base = self.base.with_flags(self.flags)?;
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
    let number = answer.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let name = match number {
        Some(at) => names.get(at).map(String::as_str),
        None => settings.get(answer).map(|_| answer),
    };
    if let Some(name) = name {
        let below = names_below(settings, name);
        return Next::Open(match below.as_slice() {
            [only] if only == name => Page::One(name.to_owned()),
            _ => Page::List(name.to_owned(), below),
        });
    }
    let found = found(settings, answer);
    match found.is_empty() || number.is_some() {
        true => Next::Stay,
        false => Next::Open(Page::List(format!("with `{answer}`"), found)),
    }
}

fn top_names(settings: &Settings) -> Vec<String> {
    let all = settings.masked();
    let names = all.as_object().map(|fields| fields.keys().cloned());
    names.into_iter().flatten().collect()
}

/// The settings in a section, or the setting itself; those that hold a single value, a list, or nothing yet.
fn names_below(settings: &Settings, name: &str) -> Vec<String> {
    let value = settings.get(name).cloned().unwrap_or_default();
    let mut below = Vec::new();
    collect_names(&value, name, &mut below);
    below.retain(|name| !is_section(settings, name));
    match below.is_empty() {
        true => vec![name.to_owned()],
        false => below,
    }
}

fn is_section(settings: &Settings, name: &str) -> bool {
    let value = settings.get(name).and_then(Value::as_object);
    value.is_some_and(|fields| !fields.is_empty())
}

/// The settings whose name or explanation has all of the words.
fn found(settings: &Settings, words: &str) -> Vec<String> {
    let words = words.to_lowercase();
    let mut names = Vec::new();
    collect_names(&settings.masked(), "", &mut names);
    names.retain(|name| !is_section(settings, name) && fits(name, &words));
    names
}

fn fits(name: &str, words: &str) -> bool {
    let text = format!("{name} {}", help(name).unwrap_or_default()).to_lowercase();
    words.split_whitespace().all(|word| text.contains(word))
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
        assert_eq!([read(""), read("q")], [Next::Back, Next::Leave]);
    }

    #[test]
    fn settings_are_found_by_their_explanation_too_and_secrets_are_known() {
        let settings = Settings::defaults();
        assert!(found(&settings, "requests in one turn").contains(&"agent.max_turns".to_owned()));
        assert!(is_secret("model.api_key") && !is_secret("display.skin"));
    }
}
