//! Finds the last line of a command's output: its mark and its exit code.

/// More than the longest exit code and its line end.
const CODE_BYTES_MAX: usize = 8;

#[derive(Debug)]
pub(super) struct EndOfOutput {
    /// What stands before the code.
    words: Vec<u8>,
    /// Bytes that may be the beginning of the end.
    held: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Output(Vec<u8>),
    End(Vec<u8>, i32),
}

impl EndOfOutput {
    pub(super) fn new(mark: &str) -> Self {
        Self {
            words: format!("\x1e{mark} ").into_bytes(),
            held: Vec::new(),
        }
    }

    pub(super) fn hear(&mut self, chunk: &[u8]) -> Heard {
        let mut bytes = std::mem::take(&mut self.held);
        bytes.extend_from_slice(chunk);
        let place = bytes
            .windows(self.words.len())
            .position(|window| window == self.words);
        if let Some(place) = place {
            let code = &bytes[place + self.words.len()..];
            if let Some(code) = parse_code(code) {
                bytes.truncate(place);
                return Heard::End(bytes, code);
            }
            self.held = bytes.split_off(place);
            return Heard::Output(bytes);
        }
        let held = self.beginning_at_the_end_of(&bytes);
        self.held = bytes.split_off(bytes.len() - held);
        Heard::Output(bytes)
    }

    /// What was held back and was no end after all.
    pub(super) fn rest(&self) -> &[u8] {
        &self.held
    }

    fn beginning_at_the_end_of(&self, bytes: &[u8]) -> usize {
        let longest = self.words.len().min(bytes.len());
        (0..=longest)
            .rev()
            .find(|len| bytes.ends_with(&self.words[..*len]))
            .unwrap_or(0)
    }
}

/// Returns the code once its line is whole.
fn parse_code(bytes: &[u8]) -> Option<i32> {
    let end = bytes
        .iter()
        .take(CODE_BYTES_MAX)
        .position(|byte| *byte == b'\n')?;
    std::str::from_utf8(&bytes[..end]).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_wherever_the_bytes_are_cut() {
        let whole = b"a\nb\n\x1e0123 x\n\x1e0123abcd 42\n";
        for cut in 0..whole.len() {
            let mut end = EndOfOutput::new("0123abcd");
            let mut output = Vec::new();
            let mut code = None;
            for chunk in [&whole[..cut], &whole[cut..]] {
                match end.hear(chunk) {
                    Heard::Output(bytes) => output.extend(bytes),
                    Heard::End(bytes, found) => {
                        output.extend(bytes);
                        code = Some(found);
                    }
                }
            }
            assert_eq!(code, Some(42), "cut at {cut}");
            assert_eq!(output, b"a\nb\n\x1e0123 x\n", "cut at {cut}");
        }
    }

    #[test]
    fn a_cut_line_gives_back_what_was_held() {
        let mut end = EndOfOutput::new("0123abcd");
        assert_eq!(end.hear(b"x\x1e0123"), Heard::Output(b"x".to_vec()));
        assert_eq!(end.rest(), b"\x1e0123");
    }
}
