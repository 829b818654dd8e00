//! What is known of the values of variables at a place in a line.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::reading::{Arg, Origin, Piece};

/// What is known of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// Exactly this.
    Text(String),
    /// The home folder, and behind it this.
    BelowHome(String),
    /// Some whole number.
    Number,
    /// Some text that is no option and no absolute path.
    Relative,
    /// What a harmless program printed.
    Plain,
}

/// Names with what they were set to.
type Log = Vec<(String, Option<Known>)>;

/// The variables of which something is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    known: BTreeMap<String, Known>,
    /// Set inside functions, which may run at any time.
    uncertain: BTreeSet<String>,
    /// Everything that was set.
    pub(super) set: BTreeSet<String>,
    /// Every value that was set, in order, on whatever way.
    log: Rc<RefCell<Log>>,
}

impl Values {
    pub(super) fn get(&self, name: &str) -> Option<&Known> {
        self.known
            .get(name)
            .filter(|_| !self.uncertain.contains(name))
    }

    pub(super) fn set(&mut self, name: &str, value: Option<Known>) {
        self.set.insert(name.to_owned());
        self.log.borrow_mut().push((name.to_owned(), value.clone()));
        match value {
            Some(value) => self.known.insert(name.to_owned(), value),
            None => self.known.remove(name),
        };
    }

    pub(super) fn is_number(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Known::Text(text)) => is_number(text),
            Some(Known::Number) => true,
            _ => false,
        }
    }

    /// Forgets the values of these for good.
    pub(super) fn distrust(&mut self, names: BTreeSet<String>) {
        self.uncertain.extend(names);
    }

    /// Returns values as the body of a function finds them.
    pub(super) fn in_function(&self) -> Self {
        Self {
            uncertain: self.uncertain.clone(),
            ..Self::default()
        }
    }

    /// Keeps what is known on both ways to a place.
    pub(super) fn joined(&self, other: &Self) -> Self {
        let both = self.known.iter().filter_map(|(name, value)| {
            let joined = join(value, other.known.get(name)?)?;
            Some((name.clone(), joined))
        });
        Self {
            known: both.collect(),
            uncertain: self.uncertain.union(&other.uncertain).cloned().collect(),
            set: self.set.union(&other.set).cloned().collect(),
            log: Rc::clone(&self.log),
        }
    }

    /// Returns a mark of what has been set so far.
    pub(super) fn mark(&self) -> usize {
        self.log.borrow().len()
    }

    /// Returns what is known wherever any of the values set since a mark may be the last: a loop can be left, and begun
    /// anew, at any place in it.
    pub(super) fn with_any_since(&self, mark: usize, now: &Self) -> Self {
        let mut any = self.joined(now);
        any.known = self.known.clone();
        for (name, value) in &self.log.borrow()[mark..] {
            let before = any.known.remove(name);
            let joined = before
                .zip(value.as_ref())
                .and_then(|(one, other)| join(&one, other));
            if let Some(joined) = joined {
                any.known.insert(name.clone(), joined);
            }
        }
        any
    }

    /// Returns whether the same is known.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        self.known == other.known && self.uncertain == other.uncertain
    }

    /// Goes back to earlier values, as the end of a subshell does.
    pub(super) fn back_to(&mut self, earlier: Self) {
        let uncertain = std::mem::take(&mut self.uncertain);
        let set = std::mem::take(&mut self.set);
        *self = earlier;
        self.uncertain.extend(uncertain);
        self.set.extend(set);
    }
}

/// Returns what is known of a value that is one or the other.
pub(super) fn join(one: &Known, other: &Known) -> Option<Known> {
    use Known::{Number, Plain, Relative};
    if one == other {
        return Some(one.clone());
    }
    let rank = |known: &Known| match known {
        Known::Text(text) if is_number(text) => Some(0),
        Number => Some(0),
        Known::Text(text) if is_relative(text) => Some(1),
        Relative => Some(1),
        Plain => Some(2),
        Known::Text(_) | Known::BelowHome(_) => None,
    };
    match rank(one)?.max(rank(other)?) {
        0 => Some(Number),
        1 => Some(Relative),
        _ => Some(Plain),
    }
}

/// Returns what is known of what a word becomes.
pub(super) fn value_of(arg: &Arg) -> Option<Known> {
    if let Some((Piece::Home, behind)) = arg.pieces.split_first() {
        let behind = behind.iter().map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        return behind.collect::<Option<String>>().map(Known::BelowHome);
    }
    if let Some(text) = arg.literal() {
        return Some(Known::Text(text));
    }
    let is_digits = |piece: &Piece| match piece {
        Piece::Text(text) => is_number(text),
        Piece::Any(origin) => *origin == Origin::Number,
        _ => false,
    };
    if arg.pieces.len() == 1 && arg.pieces.iter().all(is_digits) {
        return Some(Known::Number);
    }
    match arg.pieces.first()? {
        Piece::Text(text) if is_relative(text) => Some(Known::Relative),
        Piece::Glob(_) | Piece::Any(Origin::Relative | Origin::Number) => Some(Known::Relative),
        Piece::Any(Origin::Plain) => Some(Known::Plain),
        _ => None,
    }
}

pub(super) fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // With a leading zero it is a number in another base, or none.
    let has_base = digits.len() > 1 && digits.starts_with('0');
    !digits.is_empty()
        && !has_base
        && digits.len() < 18
        && digits.chars().all(|c| c.is_ascii_digit())
}

pub(super) fn is_relative(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['/', '~', '-', '+']) && !text.contains("..")
}
