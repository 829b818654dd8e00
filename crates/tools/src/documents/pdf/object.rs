//! The objects a PDF is written in, and a reader that takes what it can from broken ones.

use super::budget::Budget;

/// Deeper than any writer nests, and shallow enough for a thread's stack.
const DEPTH_MAX: usize = 48;
/// Objects inside one object. They are in memory together.
const PARTS_MAX: usize = 400_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Object {
    Null,
    Number(f64),
    Name(String),
    Text(Vec<u8>),
    Array(Vec<Object>),
    Dictionary(Dictionary),
    /// The number of another object. Generations are left out: only the newest is read.
    Reference(u32),
    /// Anything else: `obj`, `true`, operators.
    Keyword(Vec<u8>),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Dictionary(Vec<(String, Object)>);

impl Dictionary {
    /// Returns an entry; of several with one name, the first.
    pub(super) fn get(&self, name: &str) -> Option<&Object> {
        let entry = self.0.iter().find(|(key, _)| key == name);
        entry.map(|(_, value)| value)
    }

    pub(super) fn has_name(&self, key: &str, name: &str) -> bool {
        matches!(self.get(key), Some(Object::Name(found)) if found == name)
    }
}

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a whole number that is not negative.
    pub(super) fn count(&self) -> Option<usize> {
        self.number()
            .filter(|number| *number >= 0.0 && *number <= f64::from(u32::MAX))
            .map(|number| number as usize)
    }

    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(super) fn dictionary(self) -> Option<Dictionary> {
        match self {
            Self::Dictionary(dictionary) => Some(dictionary),
            _ => None,
        }
    }

    pub(super) fn array(self) -> Option<Vec<Object>> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    pub(super) fn is_keyword(&self, word: &str) -> bool {
        matches!(self, Self::Keyword(found) if found == word.as_bytes())
    }
}

/// Reads objects one after another.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    budget: &'a Budget,
    parts_left: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize, budget: &'a Budget) -> Self {
        Self {
            bytes,
            at: at.min(bytes.len()),
            budget,
            parts_left: PARTS_MAX,
        }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes).min(self.bytes.len());
    }

    /// Returns the next object; `None` at the end, or when the budget is spent.
    pub(super) fn next(&mut self) -> Option<Object> {
        self.parts_left = PARTS_MAX;
        self.object(DEPTH_MAX)
    }

    fn object(&mut self, depth: usize) -> Option<Object> {
        self.budget.take_object()?;
        self.parts_left = self.parts_left.checked_sub(1)?;
        self.skip_space();
        let byte = self.peek()?;
        Some(match byte {
            b'/' => Object::Name(self.name()),
            b'(' => Object::Text(self.literal()),
            b'<' if self.bytes.get(self.at + 1) == Some(&b'<') => {
                self.at += 2;
                Object::Dictionary(self.entries(depth.checked_sub(1)?)?)
            }
            b'<' => Object::Text(self.hexadecimal()),
            b'[' => {
                self.at += 1;
                Object::Array(self.elements(depth.checked_sub(1)?)?)
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => self.number_or_reference(),
            byte if is_regular(byte) => Object::Keyword(self.word().to_vec()),
            // A stray bracket.
            byte => {
                self.at += 1;
                Object::Keyword(vec![byte])
            }
        })
    }

    fn elements(&mut self, depth: usize) -> Option<Vec<Object>> {
        let mut elements = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => return Some(elements),
                Some(b']') => {
                    self.at += 1;
                    return Some(elements);
                }
                Some(_) => {}
            }
            let before = self.at;
            let element = self.object(depth)?;
            if is_end(&element) {
                self.at = before;
                return Some(elements);
            }
            elements.push(element);
        }
    }

    fn entries(&mut self, depth: usize) -> Option<Dictionary> {
        let mut entries = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                None => return Some(Dictionary(entries)),
                Some(b'>') => {
                    let is_pair = self.bytes.get(self.at + 1) == Some(&b'>');
                    self.skip(if is_pair { 2 } else { 1 });
                    return Some(Dictionary(entries));
                }
                Some(_) => {}
            }
            let before = self.at;
            let key = self.object(depth)?;
            if is_end(&key) {
                self.at = before;
                return Some(Dictionary(entries));
            }
            // What is no name is skipped, in the hope that the next one is.
            if let Object::Name(key) = key {
                let value = self.object(depth).unwrap_or(Object::Null);
                entries.push((key, value));
            }
        }
    }

    fn number_or_reference(&mut self) -> Object {
        let word = self.word();
        let number = parse_number(word);
        if word.iter().all(u8::is_ascii_digit)
            && let Some(end) = self.end_of_reference()
        {
            self.at = end;
            return match u32::try_from(number as u64) {
                Ok(number) => Object::Reference(number),
                Err(_) => Object::Null,
            };
        }
        Object::Number(number)
    }

    /// Returns where a reference ends whose first number was just read: ` 0 R`.
    fn end_of_reference(&self) -> Option<usize> {
        let mut ahead = Self { ..*self };
        ahead.skip_space();
        let generation = ahead.word();
        if generation.is_empty() || !generation.iter().all(u8::is_ascii_digit) {
            return None;
        }
        ahead.skip_space();
        (ahead.word() == b"R").then_some(ahead.at)
    }

    fn name(&mut self) -> String {
        self.at += 1;
        let word = self.word();
        let mut name = Vec::with_capacity(word.len());
        let mut rest = word;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            match (byte, after) {
                (b'#', [high, low, after @ ..])
                    if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
                {
                    name.push(nibble(*high) << 4 | nibble(*low));
                    rest = after;
                }
                (byte, _) => name.push(*byte),
            }
        }
        String::from_utf8_lossy(&name).into_owned()
    }

    fn literal(&mut self) -> Vec<u8> {
        self.at += 1;
        let mut text = Vec::new();
        let mut open = 1_usize;
        while let Some(byte) = self.take() {
            match byte {
                b'(' => open += 1,
                b')' if open == 1 => break,
                b')' => open -= 1,
                b'\\' => {
                    text.extend(self.escaped());
                    continue;
                }
                _ => {}
            }
            text.push(byte);
        }
        text
    }

    /// Reads what follows a backslash.
    fn escaped(&mut self) -> Option<u8> {
        Some(match self.take()? {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'f' => 12,
            b'\n' => return None,
            b'\r' => {
                if self.peek() == Some(b'\n') {
                    self.at += 1;
                }
                return None;
            }
            digit @ b'0'..=b'7' => {
                let mut code = u32::from(digit - b'0');
                for _ in 0..2 {
                    match self.peek() {
                        Some(digit @ b'0'..=b'7') => code = code * 8 + u32::from(digit - b'0'),
                        _ => break,
                    }
                    self.at += 1;
                }
                code as u8
            }
            byte => byte,
        })
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        self.at += 1;
        let end = self.rest().iter().position(|byte| *byte == b'>');
        let digits = &self.rest()[..end.unwrap_or(self.rest().len())];
        self.skip(digits.len() + 1);
        from_hexadecimal(digits)
    }

    fn word(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|byte| !is_regular(*byte));
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }

    pub(super) fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b'%' => {
                    let line = self
                        .rest()
                        .iter()
                        .position(|byte| matches!(byte, b'\n' | b'\r'));
                    self.at += line.unwrap_or(self.rest().len());
                }
                byte if is_space(byte) => self.at += 1,
                _ => return,
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }
}

/// An object that was never closed ends here.
fn is_end(object: &Object) -> bool {
    object.is_keyword("endobj") || object.is_keyword("stream")
}

pub(super) fn from_hexadecimal(digits: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .iter()
        .filter(|digit| digit.is_ascii_hexdigit())
        .map(|digit| nibble(*digit))
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0))
        .collect()
}

fn nibble(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}

/// Reads a number as most readers do: what is no number is zero.
fn parse_number(word: &[u8]) -> f64 {
    let text = std::str::from_utf8(word).unwrap_or_default();
    let number: f64 = text.parse().unwrap_or_default();
    if number.is_finite() { number } else { 0.0 }
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, 0 | b'\t' | b'\n' | 12 | b'\r' | b' ')
}

fn is_regular(byte: u8) -> bool {
    !is_space(byte) && !b"()<>[]{}/%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Object {
        let budget = Budget::new();
        Reader::new(text.as_bytes(), 0, &budget).next().unwrap()
    }

    #[test]
    fn objects_are_read_as_they_are_written() {
        let text = |text: &[u8]| Object::Text(text.to_vec());
        for (written, object) in [
            (" % a comment\n-1.5", Object::Number(-1.5)),
            ("12 0 R", Object::Reference(12)),
            ("12 0 RG", Object::Number(12.0)),
            ("/A#42c", Object::Name("ABc".into())),
            (
                r"(a\(b\)(c)\101\n\
d)",
                text(b"a(b)(c)A\nd"),
            ),
            ("<48 65 6>", text(b"He`")),
            ("true", Object::Keyword(b"true".to_vec())),
            (
                "[1 [2] /x",
                Object::Array(vec![
                    Object::Number(1.0),
                    Object::Array(vec![Object::Number(2.0)]),
                    Object::Name("x".into()),
                ]),
            ),
        ] {
            assert_eq!(read(written), object, "{written}");
        }
        let dictionary = read("<</A<</B(c)>>/D 1 0 R/E").dictionary().unwrap();
        assert_eq!(dictionary.get("D"), Some(&Object::Reference(1)));
    }

    #[test]
    fn nesting_has_an_end() {
        let budget = Budget::new();
        let deep = "[".repeat(1_000_000);
        assert_eq!(Reader::new(deep.as_bytes(), 0, &budget).next(), None);
    }
}
