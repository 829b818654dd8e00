//! A question for consent that waits for its answer: what keys mean to it, and the rows below it that say so. How the
//! question itself is printed is in `approval_request.rs`.

use std::time::Duration;

use hermes_core::exact::{exact, parts};
use hermes_core::{ApprovalAnswer, ApprovalRequest, Verdict};
use ratatui_core::text::{Line, Span};

use crate::editor::Edit;
use crate::item::Item;
use crate::keymap::Key;
use crate::theme;
use crate::wrap::{self, Margin};

/// What a person tells the model with a no is a sentence or two.
const WORDS_CHARS_MAX: usize = 500;

#[derive(Debug)]
pub(crate) struct ApprovalDialog {
    pub(crate) question: ApprovalRequest,
    pub(crate) at: Duration,
    pub(crate) is_printed: bool,
    /// Whether all of its change was shown.
    is_whole: bool,
    /// Of what would run, so many parts were shown.
    parts_shown: usize,
    parts: usize,
    /// Which pattern a yes for longer covers: 0 for exactly this, then those of the question.
    picked: usize,
    /// What the model is told with a no, while it is typed.
    words: Option<String>,
}

/// What a key did.
#[derive(Debug)]
pub(crate) enum Heard {
    /// It is not for the question.
    Passed,
    Nothing,
    /// More of what is asked about, to be printed.
    Shown(Item),
    /// Why it is no answer yet.
    NotYet(&'static str),
    Answered(ApprovalAnswer),
}

impl ApprovalDialog {
    pub(crate) fn new(question: ApprovalRequest, at: Duration) -> Self {
        let parts = parts(&exact(&question.what)).len();
        Self {
            question,
            at,
            is_printed: false,
            is_whole: false,
            parts_shown: 1,
            parts,
            picked: 0,
            words: None,
        }
    }

    /// Whether the person is typing to it, so that every key is meant for it.
    pub(crate) fn is_typed_to(&self) -> bool {
        self.words.is_some()
    }

    pub(crate) fn key(&mut self, key: Key) -> Heard {
        if self.words.is_some() {
            return self.word(key);
        }
        let Key::Edit(Edit::Insert(letter)) = key else {
            return match key {
                Key::Cancel => self.answer(Verdict::Deny),
                _ => Heard::Passed,
            };
        };
        match letter.to_ascii_lowercase() {
            'y' => self.answer(Verdict::Once),
            's' => self.answer(Verdict::Session),
            'a' => self.answer(Verdict::Always),
            'n' => self.answer(Verdict::Deny),
            'r' => {
                self.words = Some(String::new());
                Heard::Nothing
            }
            'p' if !self.question.patterns.is_empty() && self.offers_more() => {
                self.picked = (self.picked + 1) % (self.question.patterns.len() + 1);
                Heard::Nothing
            }
            'd' => self.show_more(),
            _ => Heard::Passed,
        }
    }

    /// Takes what was pasted as words for the model.
    pub(crate) fn paste(&mut self, text: &str) {
        let pasted = text.chars().map(|c| if c == '\n' { ' ' } else { c });
        for c in pasted {
            self.add(c);
        }
    }

    fn add(&mut self, c: char) {
        if let Some(words) = &mut self.words
            && words.chars().count() < WORDS_CHARS_MAX
            && !c.is_control()
        {
            words.push(c);
        }
    }

    /// A key while words for the model are typed.
    fn word(&mut self, key: Key) -> Heard {
        match key {
            Key::Edit(Edit::Insert(c)) => self.add(c),
            Key::Edit(Edit::Backspace) => {
                self.words.as_mut().and_then(String::pop);
            }
            Key::Cancel => self.words = None,
            Key::Send => {
                let words = self.words.take().unwrap_or_default();
                let words = words.trim();
                return Heard::Answered(ApprovalAnswer {
                    words: (!words.is_empty()).then(|| words.to_owned()),
                    ..Verdict::Deny.into()
                });
            }
            Key::Interrupt | Key::End | Key::Redraw | Key::Suspend => return Heard::Passed,
            _ => {}
        }
        Heard::Nothing
    }

    fn answer(&self, verdict: Verdict) -> Heard {
        if !self.question.choices.contains(&verdict) {
            return Heard::Passed;
        }
        if verdict != Verdict::Deny && self.parts_shown < self.parts {
            return Heard::NotYet("not all of it was shown yet: d shows more");
        }
        let pattern = match verdict {
            Verdict::Session | Verdict::Always => self.pattern().map(str::to_owned),
            Verdict::Once | Verdict::Deny => None,
        };
        Heard::Answered(ApprovalAnswer {
            pattern,
            ..verdict.into()
        })
    }

    /// Shows the next part of what would run, or all of a change. Once is enough: it stays above.
    fn show_more(&mut self) -> Heard {
        if self.parts_shown < self.parts {
            let what = exact(&self.question.what);
            let parts = parts(&what);
            let text = parts[self.parts_shown].to_owned();
            self.parts_shown += 1;
            return Heard::Shown(Item::Part {
                text,
                number: self.parts_shown,
                of: self.parts,
            });
        }
        match &self.question.diff {
            None if self.parts > 1 => Heard::Nothing,
            None => Heard::Passed,
            Some(_) if self.is_whole => Heard::Nothing,
            Some(diff) => {
                self.is_whole = true;
                Heard::Shown(Item::Diff(diff.clone()))
            }
        }
    }

    /// The pattern that a yes for longer covers, unless it is exactly this.
    fn pattern(&self) -> Option<&str> {
        let at = self.picked.checked_sub(1)?;
        self.question.patterns.get(at).map(String::as_str)
    }

    fn offers_more(&self) -> bool {
        let choices = &self.question.choices;
        choices.contains(&Verdict::Session) || choices.contains(&Verdict::Always)
    }

    /// The keys that answer it, and what they would mean.
    pub(crate) fn rows(&self, now: Duration, columns: usize) -> Vec<Line<'static>> {
        let margin = Margin::same(vec![Span::styled("▎ ", theme::WARNING)]);
        if let Some(words) = &self.words {
            let spans = [
                Span::styled("no, because: ", theme::WARNING),
                Span::raw(format!("{}▏ ", wrap::clean(words))),
                Span::styled("(Enter tells the model, Esc goes back)", theme::DIM),
            ];
            return wrap::words(&spans, columns, &margin);
        }
        let mut rows = wrap::words(&self.choices(now), columns, &margin);
        if !self.question.patterns.is_empty() && self.offers_more() {
            rows.extend(wrap::words(&self.coverage(), columns, &margin));
        }
        rows
    }

    fn choices(&self, now: Duration) -> Vec<Span<'static>> {
        let expires = Duration::from_millis(self.question.expires_in_ms);
        let left = expires.saturating_sub(now.saturating_sub(self.at));
        let mut spans = vec![Span::styled("allow? ", theme::WARNING)];
        let mut offer = |key: &'static str, words: &'static str| {
            spans.extend([Span::styled(key, theme::HEADING), Span::raw(words)]);
        };
        let is_read = self.parts_shown == self.parts;
        if !is_read {
            offer("d", " read on first  ");
        }
        for verdict in &self.question.choices {
            match verdict {
                Verdict::Once | Verdict::Session | Verdict::Always if !is_read => {}
                Verdict::Once => offer("y", " once  "),
                Verdict::Session => offer("s", " for this session  "),
                Verdict::Always => offer("a", " always  "),
                Verdict::Deny => offer("n", " no  "),
            }
        }
        offer("r", " no, because…  ");
        spans.push(Span::styled(format!("({} s)", left.as_secs()), theme::DIM));
        spans
    }

    /// What a yes for longer means, and how to change that.
    fn coverage(&self) -> Vec<Span<'static>> {
        let covered = match self.pattern() {
            None => "exactly this".to_owned(),
            Some(pattern) => exact(pattern),
        };
        let keys = if self.question.choices.contains(&Verdict::Always) {
            "s and a allow: "
        } else {
            "s allows: "
        };
        vec![
            Span::styled(keys, theme::DIM),
            Span::styled(covered, theme::BOLD),
            Span::styled("  p", theme::HEADING),
            Span::styled(" another", theme::DIM),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(what: &str, patterns: &[&str]) -> ApprovalRequest {
        ApprovalRequest {
            approval: "a1".into(),
            code: hermes_core::ApprovalCode::stored("k7m2pq".into()),
            call: "c".into(),
            tool: "terminal".into(),
            what: what.into(),
            diff: None,
            folder: Some("/srv/p".into()),
            reason: "uploads".into(),
            patterns: patterns.iter().map(|one| (*one).to_owned()).collect(),
            choices: Verdict::ALL.to_vec(),
            expires_in_ms: 300_000,
        }
    }

    fn asked(what: &str, patterns: &[&str]) -> ApprovalDialog {
        ApprovalDialog::new(question(what, patterns), Duration::ZERO)
    }

    fn press(asked: &mut ApprovalDialog, letters: &str) -> Option<ApprovalAnswer> {
        let mut answer = None;
        for letter in letters.chars() {
            if let Heard::Answered(given) = asked.key(Key::Edit(Edit::Insert(letter))) {
                answer = Some(given);
            }
        }
        answer
    }

    fn text(asked: &ApprovalDialog) -> String {
        let rows = asked.rows(Duration::ZERO, 100);
        let rows: Vec<_> = rows.iter().map(ToString::to_string).collect();
        rows.join("\n")
    }

    #[test]
    fn a_yes_for_longer_covers_the_pattern_that_was_picked() {
        let patterns = ["git push origin *", "git push *"];
        for (letters, covered) in [
            ("s", None),
            ("ps", Some("git push origin *")),
            ("ppa", Some("git push *")),
            ("pppa", None),
            ("py", None),
        ] {
            let answer = press(&mut asked("git push origin main", &patterns), letters);
            assert_eq!(answer.unwrap().pattern.as_deref(), covered, "{letters}");
        }
        let mut asked = asked("git push origin main", &patterns);
        assert!(text(&asked).contains("s and a allow: exactly this  p another"));
        press(&mut asked, "pp");
        assert!(text(&asked).contains("s and a allow: git push *"));
    }

    #[test]
    fn a_no_can_say_what_to_do_instead() {
        let mut asked = asked("git push", &[]);
        assert_eq!(
            press(&mut asked, "ruse staging, say"),
            None,
            "all of it is words"
        );
        asked.paste("\nplease");
        asked.key(Key::Edit(Edit::Backspace));
        assert!(text(&asked).contains("no, because: use staging, say pleas▏"));
        let Heard::Answered(answer) = asked.key(Key::Send) else {
            panic!("{asked:?}")
        };
        assert_eq!(answer.verdict, Verdict::Deny);
        assert_eq!(answer.words.as_deref(), Some("use staging, say pleas"));
        press(&mut asked, "rx");
        assert!(
            matches!(asked.key(Key::Cancel), Heard::Nothing),
            "goes back"
        );
        assert!(!asked.is_typed_to());
    }

    #[test]
    fn a_line_too_long_to_be_shown_at_once_is_read_to_its_end_first() {
        let mut asked = asked(&"x".repeat(9_000), &[]);
        let offered = "▎ allow? d read on first  n no  r no, because…  (300 s)";
        assert_eq!(text(&asked), offered);
        assert_eq!(press(&mut asked, "ysadysa"), None);
        assert!(press(&mut asked, "dy").is_some());
        assert!(!text(&asked).contains("read on"));
        assert!(
            press(
                &mut ApprovalDialog::new(question(&"x".repeat(9_000), &[]), Duration::ZERO),
                "n"
            )
            .is_some()
        );
    }
}
