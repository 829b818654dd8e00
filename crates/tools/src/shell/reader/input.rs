//! Redirections, here-documents, and what commands read from them and from pipes.

use super::Reader;
use crate::shell::draft::{Draft, Word};
use crate::shell::printed::{all_printed, printed};
use crate::shell::{Command, TooComplex};

/// A here-document whose text is still to come.
pub(super) struct Pending {
    delimiter: Word,
    strips_tabs: bool,
    body: usize,
}

/// The text of a here-document.
#[derive(Default)]
pub(super) struct Body {
    pub(super) text: String,
    pub(super) substitutions: Vec<Command>,
}

impl Reader<'_> {
    /// Reads what follows a `<` or `>`.
    pub(super) fn redirect(
        &mut self,
        first: char,
        draft: &mut Draft<'_>,
    ) -> Result<(), TooComplex> {
        if self.skip_if('(') {
            let commands = self.substitution()?;
            let text = all_printed(&commands, self.budget)?;
            draft.command.files.extend(text.filter(|_| first == '<'));
            draft.command.substitutions.extend(commands);
            draft.push_quoted("/dev/fd/63");
            return Ok(());
        }
        draft.end_word_before_redirect()?;
        let second = match (first, self.peek()) {
            ('>', Some(c @ ('>' | '|' | '&'))) | ('<', Some(c @ ('<' | '>' | '&'))) => {
                self.at += 1;
                Some(c)
            }
            _ => None,
        };
        if (first, second) == ('<', Some('<')) {
            return self.here_document(draft);
        }
        let target = self.single_word(draft)?.text;
        let is_descriptor =
            second == Some('&') && target.chars().all(|c| c.is_ascii_digit() || c == '-');
        if !is_descriptor {
            draft.add_redirect(target, first == '>' || second == Some('>'));
        }
        Ok(())
    }

    /// Reads what follows `<<`.
    pub(super) fn here_document(&mut self, draft: &mut Draft<'_>) -> Result<(), TooComplex> {
        draft.command.reads_here_document = true;
        if self.skip_if('<') {
            draft.command.input = Some(self.single_word(draft)?.text);
            return Ok(());
        }
        let strips_tabs = self.skip_if('-');
        let delimiter = self.single_word(draft)?;
        let body = self.bodies.len();
        self.bodies.push(Body::default());
        draft.here_documents.push((draft.done.len(), body));
        self.pending.push(Pending {
            delimiter,
            strips_tabs,
            body,
        });
        Ok(())
    }

    /// Reads the texts of here-documents after the line that announced them.
    pub(super) fn read_here_documents(&mut self) -> Result<(), TooComplex> {
        for pending in std::mem::take(&mut self.pending) {
            let mut text = String::new();
            while self.peek().is_some() {
                let mut line = self.take_while(|c| c != '\n');
                self.next();
                if pending.strips_tabs {
                    line = line.trim_start_matches('\t').to_owned();
                }
                if line == pending.delimiter.text {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            self.bodies[pending.body] = if pending.delimiter.is_quoted {
                Body {
                    text,
                    ..Body::default()
                }
            } else {
                self.expanded_text(&text)?
            };
        }
        Ok(())
    }

    /// Reads the word after a redirection.
    pub(super) fn single_word(&mut self, draft: &mut Draft<'_>) -> Result<Word, TooComplex> {
        self.take_while(|c| matches!(c, ' ' | '\t'));
        let mut target = Draft::new(self.budget);
        while let Some(c) = self.peek() {
            if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')') {
                // `>&1` and `>&-` have their target right after the sign, so no sign begins a word.
                break;
            }
            self.at += 1;
            self.part_of_word(c, &mut target)?;
        }
        target.end_word()?;
        let inner = &mut target.command.substitutions;
        draft.command.substitutions.append(inner);
        let texts: Vec<&str> = target.words.iter().map(|word| word.text.as_str()).collect();
        Ok(Word {
            text: texts.join(" "),
            is_quoted: target.words.iter().any(|word| word.is_quoted),
        })
    }

    /// Gives commands the input that is known by now.
    pub(super) fn fill_in_input(&mut self, draft: Draft<'_>) -> Result<Vec<Command>, TooComplex> {
        let mut commands = draft.done;
        for (command, body) in draft.here_documents {
            if let Some(command) = commands.get_mut(command) {
                let body = std::mem::take(&mut self.bodies[body]);
                command.input = Some(body.text);
                command.substitutions.extend(body.substitutions);
            }
        }
        for at in 1..commands.len() {
            if commands[at].reads_pipe && commands[at].input.is_none() {
                commands[at].input = printed(&commands[at - 1], self.budget)?;
            }
        }
        Ok(commands)
    }
}
