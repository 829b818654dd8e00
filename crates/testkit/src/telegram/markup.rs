//! Reads MarkdownV2 as strictly as Telegram does. TDLib is asked in tests whether it would say the same.

use serde_json::{Value, json};

const RESERVED: &str = "_*[]()~`>#+-=|{}.!";

/// What a text shows, and its entities as the Bot API tells them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    pub text: String,
    pub entities: Vec<Value>,
}

/// Reads a text; the error is worded like Telegram's.
pub fn parse(markdown: &str) -> Result<Marked, String> {
    let mut reader = Reader {
        rest: markdown,
        whole: markdown,
        shown: String::new(),
        units: 0,
        open: Vec::new(),
        entities: Vec::new(),
        is_line_start: true,
    };
    reader.read()?;
    Ok(Marked {
        text: reader.shown,
        entities: reader.entities,
    })
}

struct Reader<'a> {
    rest: &'a str,
    whole: &'a str,
    shown: String,
    /// How long `shown` is by UTF-16.
    units: usize,
    open: Vec<Open>,
    entities: Vec<Value>,
    is_line_start: bool,
}

struct Open {
    kind: &'static str,
    /// What it ends with.
    end: &'static str,
    from: usize,
    byte: usize,
    language: String,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.chars().next() {
            let was_line_start = std::mem::take(&mut self.is_line_start);
            if self.escaped() || self.closes()? {
                continue;
            }
            let is_code = self
                .open
                .last()
                .is_some_and(|open| open.end.starts_with('`'));
            if is_code && c == '`' {
                return Err(format!(
                    "a sign of code inside code at byte offset {}",
                    self.byte()
                ));
            }
            if is_code || !RESERVED.contains(c) {
                self.show(c);
                self.after_line(c, is_code)?;
            } else {
                self.opens(c, was_line_start)?;
            }
        }
        self.end_quote();
        match self.open.last() {
            Some(open) => Err(format!(
                "can't find end of the {} entity starting at byte offset {}",
                open.kind, open.byte
            )),
            None => Ok(()),
        }
    }

    fn show(&mut self, c: char) {
        self.shown.push(c);
        self.units += c.len_utf16();
        self.rest = &self.rest[c.len_utf8()..];
    }

    fn escaped(&mut self) -> bool {
        let escaped = self.rest.strip_prefix('\\');
        let next = escaped.and_then(|rest| rest.chars().next());
        match next {
            Some(c) if ('\u{1}'..='\u{7e}').contains(&c) => {
                self.rest = &self.rest[1..];
                self.show(c);
                true
            }
            _ => false,
        }
    }

    /// Closes the innermost entity, if it ends here.
    fn closes(&mut self) -> Result<bool, String> {
        let Some(open) = self.open.last() else {
            return Ok(false);
        };
        let is_underline = open.end == "_" && self.rest.starts_with("__");
        if open.end.is_empty() || is_underline || !self.rest.starts_with(open.end) {
            return Ok(false);
        }
        self.rest = &self.rest[open.end.len()..];
        let Some(open) = self.open.pop() else {
            return Ok(false);
        };
        let mut extra = json!({});
        if open.kind == "text_link" {
            extra = json!({"url": self.address()?});
        } else if !open.language.is_empty() {
            extra = json!({"language": open.language});
        }
        self.keep(&open, extra);
        Ok(true)
    }

    fn keep(&mut self, open: &Open, extra: Value) {
        let length = self.units - open.from;
        if length > 0 {
            let mut entity = json!({"type": open.kind, "offset": open.from, "length": length});
            for (key, value) in extra.as_object().into_iter().flatten() {
                entity[key] = value.clone();
            }
            self.entities.push(entity);
        }
    }

    /// What is in the parentheses behind a link's text.
    fn address(&mut self) -> Result<String, String> {
        let Some(rest) = self.rest.strip_prefix('(') else {
            return Ok(String::new());
        };
        let mut address = String::new();
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                ')' => {
                    self.rest = &rest[at + 1..];
                    return Ok(address);
                }
                '\\' => address.extend(chars.next().map(|(_, c)| c)),
                c => address.push(c),
            }
        }
        Err(format!(
            "can't find end of a URL at byte offset {}",
            self.byte()
        ))
    }

    fn opens(&mut self, c: char, is_line_start: bool) -> Result<(), String> {
        let (kind, start, end) = match c {
            '_' if self.rest.starts_with("__") => ("underline", "__", "__"),
            '_' => ("italic", "_", "_"),
            '*' if is_line_start && self.rest.starts_with("**>") => {
                ("expandable_blockquote", "**>", "")
            }
            '*' => ("bold", "*", "*"),
            '~' => ("strikethrough", "~", "~"),
            '|' if self.rest.starts_with("||") => ("spoiler", "||", "||"),
            '[' => ("text_link", "[", "]"),
            '`' if self.rest.starts_with("```") => ("pre", "```", "```"),
            '`' => ("code", "`", "`"),
            '>' if is_line_start => ("blockquote", ">", ""),
            c => {
                return Err(format!(
                    "character '{c}' is reserved and must be escaped with the preceding '\\'"
                ));
            }
        };
        let byte = self.byte();
        self.rest = &self.rest[start.len()..];
        let language = if kind == "pre" {
            self.language()
        } else {
            String::new()
        };
        self.open.push(Open {
            kind,
            end,
            from: self.units,
            byte,
            language,
        });
        Ok(())
    }

    /// The word behind a fence, if a blank or the end of the line is behind it.
    fn language(&mut self) -> String {
        let end = self.rest.find(|c: char| c.is_whitespace() || c == '`');
        let (word, after) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if !after.starts_with(char::is_whitespace) {
            return String::new();
        }
        self.rest = after.strip_prefix('\n').unwrap_or(after);
        word.to_owned()
    }

    fn after_line(&mut self, c: char, is_code: bool) -> Result<(), String> {
        if c != '\n' || is_code {
            return Ok(());
        }
        if !self.open.iter().any(|open| open.end.is_empty()) {
            self.is_line_start = true;
        } else if let Some(rest) = self.rest.strip_prefix('>') {
            self.rest = rest;
        } else if let Some(open) = self.open.last().filter(|open| !open.end.is_empty()) {
            let (kind, byte) = (open.kind, open.byte);
            return Err(format!(
                "can't find end of the {kind} entity starting at byte offset {byte}"
            ));
        } else {
            // The line break behind a quote is not part of it.
            self.units -= 1;
            self.end_quote();
            self.units += 1;
            self.is_line_start = true;
        }
        Ok(())
    }

    fn end_quote(&mut self) {
        if self.open.last().is_some_and(|open| open.end.is_empty())
            && let Some(open) = self.open.pop()
        {
            self.keep(&open, json!({}));
        }
    }

    fn byte(&self) -> usize {
        self.whole.len() - self.rest.len()
    }
}
