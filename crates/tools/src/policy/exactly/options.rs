//! Reads the options of a program by a table of them. What is not in the table is not understood.

use crate::shell::exact::Arg;

/// The options of a program, up to its first operand.
#[derive(Debug, Default)]
pub(super) struct Options {
    /// One-letter options without a value.
    pub(super) flags: &'static str,
    /// One-letter options with a value, in the same word or the next.
    pub(super) values: &'static str,
    /// One-letter options with a value in the same word, or none.
    pub(super) attached: &'static str,
    pub(super) long_flags: &'static [&'static str],
    pub(super) long_values: &'static [&'static str],
}

/// Options as they are given, and what follows them.
pub(super) struct Given<'a> {
    pub(super) options: Vec<(String, Option<Arg>)>,
    pub(super) rest: &'a [Arg],
}

impl Given<'_> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(other, _)| other == name)
    }

    pub(super) fn value(&self, name: &str) -> Option<&Arg> {
        let found = self.options.iter().find(|(other, _)| other == name);
        found.and_then(|(_, value)| value.as_ref())
    }
}

impl Options {
    /// Reads options up to the first word that is none.
    pub(super) fn read<'a>(&self, args: &'a [Arg]) -> Result<Given<'a>, String> {
        let mut given = Given {
            options: Vec::new(),
            rest: args,
        };
        while let Some((first, after)) = given.rest.split_first() {
            let Some(text) = first.literal() else {
                if first.may_be_option() || first.is_many {
                    return Err("an option that is only known when it runs".to_owned());
                }
                break;
            };
            if text == "--" {
                given.rest = after;
                break;
            }
            if text == "-" || !text.starts_with('-') {
                break;
            }
            given.rest = after;
            match text.strip_prefix("--") {
                Some(long) => self.long(long, &mut given)?,
                None => self.cluster(&text[1..], &mut given)?,
            }
        }
        Ok(given)
    }

    fn long(&self, text: &str, given: &mut Given<'_>) -> Result<(), String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(Arg::text(value))),
            None => (text, None),
        };
        let unknown = || format!("the option `--{name}`");
        let all: Vec<&str> = self
            .long_flags
            .iter()
            .chain(self.long_values)
            .copied()
            .collect();
        let fitting: Vec<&str> = if all.contains(&name) {
            vec![name]
        } else {
            all.into_iter()
                .filter(|other| other.starts_with(name))
                .collect()
        };
        let [name] = fitting.as_slice() else {
            return Err(unknown());
        };
        let takes_value = self.long_values.contains(name);
        let value = match (takes_value, value) {
            (true, None) => Some(next(given).ok_or_else(unknown)?),
            (true, value) => value,
            (false, None) => None,
            (false, Some(_)) => return Err(unknown()),
        };
        given.options.push(((*name).to_owned(), value));
        Ok(())
    }

    fn cluster(&self, letters: &str, given: &mut Given<'_>) -> Result<(), String> {
        for (at, letter) in letters.char_indices() {
            let rest = &letters[at + letter.len_utf8()..];
            let name = letter.to_string();
            if self.flags.contains(letter) {
                given.options.push((name, None));
            } else if self.attached.contains(letter) {
                given.options.push((name, Some(Arg::text(rest))));
                return Ok(());
            } else if self.values.contains(letter) {
                let value = if rest.is_empty() {
                    next(given).ok_or_else(|| format!("the option `-{letter}`"))?
                } else {
                    Arg::text(rest)
                };
                given.options.push((name, Some(value)));
                return Ok(());
            } else {
                return Err(format!("the option `-{letter}`"));
            }
        }
        Ok(())
    }
}

/// Takes the next word as a value.
fn next(given: &mut Given<'_>) -> Option<Arg> {
    let (first, after) = given.rest.split_first()?;
    given.rest = after;
    (!first.is_many).then(|| first.clone())
}

/// Returns whether a word is one of these long options, whole or shortened, with a value or without.
pub(super) fn is_long(word: &str, names: &[&str]) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    word.starts_with("--") && name.len() > 2 && names.iter().any(|other| other.starts_with(name))
}

/// Returns whether a word is a cluster of one-letter options that holds one of these. Letters after one that takes a value
/// are its value.
pub(super) fn has_letter(word: &str, letters: &str, values: &str) -> bool {
    let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return false;
    };
    for letter in cluster.chars() {
        if letters.contains(letter) {
            return true;
        }
        if values.contains(letter) {
            return false;
        }
    }
    false
}
