//! Goes through the characters of a line, and says where it is when it cannot go on.

use super::odd::{self, Quoted};
use super::{NotUnderstood, Outcome};

pub(super) struct Cursor {
    chars: Vec<char>,
    at: usize,
}

impl Cursor {
    pub(super) fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    pub(super) fn previous(&self) -> Option<char> {
        self.at.checked_sub(1).map(|at| self.chars[at])
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn starts_with(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(ahead, c)| self.peek_at(ahead) == Some(c))
    }

    /// Takes the text, if it is next.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let is_next = self.starts_with(text);
        if is_next {
            self.at += text.chars().count();
        }
        is_next
    }

    /// Takes the next character, which must be one that everybody reads alike.
    pub(super) fn next(&mut self, place: Quoted) -> Outcome<Option<char>> {
        let Some(c) = self.peek() else {
            return Ok(None);
        };
        if let Some(why) = odd::why_odd(c, place) {
            return Err(self.not_understood(&format!("holds {}, {why},", odd::name(c))));
        }
        self.at += 1;
        Ok(Some(c))
    }

    /// Takes a line without its end. None at the end of the text.
    pub(super) fn line(&mut self) -> Option<String> {
        if self.at == self.chars.len() {
            return None;
        }
        let rest = &self.chars[self.at..];
        let end = rest.iter().position(|c| *c == '\n');
        let line = rest[..end.unwrap_or(rest.len())].iter().collect();
        self.at += end.map_or(rest.len(), |end| end + 1);
        Some(line)
    }

    /// Says what is not understood, and where. The text completes "this command …".
    pub(super) fn not_understood(&self, why: &str) -> NotUnderstood {
        let before = &self.chars[..self.at.min(self.chars.len())];
        let line = before.iter().filter(|c| **c == '\n').count() + 1;
        let start = before.iter().rposition(|c| *c == '\n');
        let column = self.at - start.map_or(0, |at| at + 1) + 1;
        NotUnderstood {
            why: why.to_owned(),
            line,
            column,
        }
    }
}
