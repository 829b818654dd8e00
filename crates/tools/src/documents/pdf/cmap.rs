//! Maps from a font's codes to text, as `ToUnicode` streams have them.

use std::collections::HashMap;

use super::budget::Budget;
use super::object::{Object, Reader};

/// All codes of two bytes. Longer codes exist and are rare.
const CODES_MAX: usize = 65_536;

pub(super) struct CodeMap {
    texts: HashMap<u32, String>,
    /// Bytes of a code, as far as the map says.
    pub(super) code_bytes: Option<usize>,
}

impl CodeMap {
    pub(super) fn read(bytes: &[u8], budget: &Budget) -> Self {
        let mut map = Self {
            texts: HashMap::new(),
            code_bytes: None,
        };
        let mut reader = Reader::new(bytes, 0, budget);
        // What stands between `begin…` and `end…`.
        let mut operands: Vec<Object> = Vec::new();
        while let Some(object) = reader.next() {
            let Object::Keyword(word) = object else {
                operands.push(object);
                continue;
            };
            match word.as_slice() {
                b"endcodespacerange" => map.note_length(&operands),
                b"endbfchar" => map.note_characters(&operands),
                b"endbfrange" => map.note_ranges(operands.drain(..)),
                _ => {}
            }
            operands.clear();
        }
        map
    }

    pub(super) fn text(&self, code: u32) -> Option<&str> {
        self.texts.get(&code).map(String::as_str)
    }

    fn note_length(&mut self, operands: &[Object]) {
        if let Some(Object::Text(low)) = operands.first() {
            self.code_bytes = Some(low.len().clamp(1, 4));
        }
    }

    fn note_characters(&mut self, operands: &[Object]) {
        for pair in operands.chunks_exact(2) {
            if let [Object::Text(code), Object::Text(text)] = pair {
                self.insert(number(code), utf_16(text));
            }
        }
    }

    fn note_ranges(&mut self, operands: impl Iterator<Item = Object>) {
        let operands: Vec<Object> = operands.collect();
        for range in operands.chunks_exact(3) {
            let [Object::Text(low), Object::Text(high), target] = range else {
                continue;
            };
            let codes = number(low)..=number(high);
            match target {
                Object::Text(first) => {
                    for (step, code) in codes.take(CODES_MAX).enumerate() {
                        self.insert(code, utf_16(&raised(first, step)));
                    }
                }
                Object::Array(texts) => {
                    for (code, text) in codes.zip(texts) {
                        if let Object::Text(text) = text {
                            self.insert(code, utf_16(text));
                        }
                    }
                }
                _ => {}
            }
            if self.texts.len() >= CODES_MAX {
                return;
            }
        }
    }

    fn insert(&mut self, code: u32, text: String) {
        if self.texts.len() < CODES_MAX {
            self.texts.insert(code, text);
        }
    }
}

pub(super) fn number(code: &[u8]) -> u32 {
    let bytes = code.iter().take(4);
    bytes.fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Adds to the last character of a text.
fn raised(text: &[u8], step: usize) -> Vec<u8> {
    let mut raised = text.to_vec();
    if let Some(at) = raised.len().checked_sub(2) {
        let last = u16::from_be_bytes([raised[at], raised[at + 1]]).wrapping_add(step as u16);
        raised[at..].copy_from_slice(&last.to_be_bytes());
    } else if let [last] = raised.as_mut_slice() {
        *last = last.wrapping_add(step as u8);
    }
    raised
}

pub(super) fn utf_16(bytes: &[u8]) -> String {
    if let [byte] = bytes {
        return char::from(*byte).to_string();
    }
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_ranges_are_mapped() {
        let map = "1 begincodespacerange <0000> <ffff> endcodespacerange
            2 beginbfchar <0001> <0041> <0002> <D83DDE00> endbfchar
            2 beginbfrange <0010> <0012> <0061> <0020> <0021> [<0066 0069> <00E9>] endbfrange";
        let map = CodeMap::read(map.as_bytes(), &Budget::new());
        assert_eq!(map.code_bytes, Some(2));
        for (code, text) in [(1, "A"), (2, "😀"), (0x12, "c"), (0x20, "fi"), (0x21, "é")] {
            assert_eq!(map.text(code), Some(text));
        }
        assert_eq!(map.text(0x13), None);
    }

    #[test]
    fn absurd_ranges_end() {
        let map = "1 beginbfrange <00000000> <ffffffff> <0041> endbfrange";
        assert_eq!(
            CodeMap::read(map.as_bytes(), &Budget::new()).texts.len(),
            CODES_MAX
        );
    }
}
