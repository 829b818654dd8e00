//! Takes thinking out of text: models without a field for it write `<think>…</think>` before they answer.
//!
//! A block opens only at the beginning of a line, so that prose and code that mention a tag stay as they are.

/// The names models use. Matched in any case.
const TAGS: [&str; 4] = ["think", "thinking", "reasoning", "REASONING_SCRATCHPAD"];

/// Splits a stream of text into what is said and what is thought, wherever the stream was cut.
#[derive(Debug, Default)]
pub(crate) struct ThinkSplitter {
    /// The tag whose block is open.
    inside: Option<&'static str>,
    /// Text that may turn out to be the beginning of a tag.
    held: String,
    /// Something other than white space came since the last line break.
    in_line: bool,
    /// White space between a block and what follows it is nobody's text.
    after_block: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Split {
    Said(String),
    Thought(String),
}

impl ThinkSplitter {
    pub(crate) fn push(&mut self, text: &str, out: &mut impl FnMut(Split)) {
        if self.held.is_empty() {
            self.split(text, out);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.push_str(text);
            self.split(&joined, out);
        }
    }

    /// Lets go of what was held back: the text is over.
    pub(crate) fn finish(&mut self, out: &mut impl FnMut(Split)) {
        let held = std::mem::take(&mut self.held);
        match self.inside {
            Some(_) => think(&held, out),
            None => self.say(&held, out),
        }
    }

    fn split(&mut self, text: &str, out: &mut impl FnMut(Split)) {
        let mut rest = text;
        while !rest.is_empty() {
            rest = match self.inside {
                Some(tag) => self.until_closed(tag, rest, out),
                None => self.until_opened(rest, out),
            };
        }
    }

    /// Passes thinking on up to the closing tag and returns what comes after it.
    fn until_closed<'a>(
        &mut self,
        tag: &str,
        text: &'a str,
        out: &mut impl FnMut(Split),
    ) -> &'a str {
        for (at, _) in text.match_indices('<') {
            match match_tag(&text[at..], "</", tag) {
                TagMatch::Whole(length) => {
                    think(&text[..at], out);
                    self.inside = None;
                    self.in_line = false;
                    self.after_block = true;
                    return &text[at + length..];
                }
                TagMatch::Beginning => {
                    think(&text[..at], out);
                    text[at..].clone_into(&mut self.held);
                    return "";
                }
                TagMatch::No => {}
            }
        }
        think(text, out);
        ""
    }

    /// Passes text on up to an opening tag and returns what comes after it.
    fn until_opened<'a>(&mut self, text: &'a str, out: &mut impl FnMut(Split)) -> &'a str {
        for (at, c) in text.char_indices() {
            match c {
                '\n' => self.in_line = false,
                '<' if !self.in_line => {
                    for tag in TAGS {
                        match match_tag(&text[at..], "<", tag) {
                            TagMatch::Whole(length) => {
                                self.say(&text[..at], out);
                                self.inside = Some(tag);
                                return &text[at + length..];
                            }
                            TagMatch::Beginning => {
                                self.say(&text[..at], out);
                                text[at..].clone_into(&mut self.held);
                                return "";
                            }
                            TagMatch::No => {}
                        }
                    }
                    self.in_line = true;
                }
                c if !c.is_whitespace() => self.in_line = true,
                _ => {}
            }
        }
        self.say(text, out);
        ""
    }

    fn say(&mut self, text: &str, out: &mut impl FnMut(Split)) {
        let text = if self.after_block {
            text.trim_start()
        } else {
            text
        };
        if !text.is_empty() {
            self.after_block = false;
            out(Split::Said(text.to_owned()));
        }
    }
}

fn think(text: &str, out: &mut impl FnMut(Split)) {
    if !text.is_empty() {
        out(Split::Thought(text.to_owned()));
    }
}

enum TagMatch {
    /// The whole tag, of this many bytes.
    Whole(usize),
    /// All there is of the text is the beginning of the tag.
    Beginning,
    No,
}

fn match_tag(text: &str, open: &str, name: &str) -> TagMatch {
    let mut tag = open.bytes().chain(name.bytes()).chain(*b">");
    let length = open.len() + name.len() + 1;
    for byte in text.bytes().take(length) {
        if !tag
            .next()
            .is_some_and(|wanted| wanted.eq_ignore_ascii_case(&byte))
        {
            return TagMatch::No;
        }
    }
    if text.len() >= length {
        TagMatch::Whole(length)
    } else {
        TagMatch::Beginning
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split_pieces<'a>(pieces: impl IntoIterator<Item = &'a str>) -> (String, String) {
        let (mut said, mut thought) = (String::new(), String::new());
        let mut splitter = ThinkSplitter::default();
        let mut out = |split| match split {
            Split::Said(text) => said.push_str(&text),
            Split::Thought(text) => thought.push_str(&text),
        };
        for piece in pieces {
            splitter.push(piece, &mut out);
        }
        splitter.finish(&mut out);
        (said, thought)
    }

    fn check(text: &str, said: &str, thought: &str) {
        assert_eq!(split_pieces([text]), (said.to_owned(), thought.to_owned()));
    }

    #[test]
    fn blocks_become_thought_and_the_rest_stays() {
        check("<think>hm</think>\n\nHello", "Hello", "hm");
        check(
            "\n<thinking>\nhm\n</thinking> Hello\nyou",
            "\nHello\nyou",
            "\nhm\n",
        );
        check("<THINK>a</think><reasoning>b</reasoning>c", "c", "ab");
        check(
            "one\n<REASONING_SCRATCHPAD>two</REASONING_SCRATCHPAD>three",
            "one\nthree",
            "two",
        );
    }

    #[test]
    fn prose_that_mentions_a_tag_is_left_alone() {
        for text in [
            "use <think> here",
            "a < b",
            "<thin",
            "<thinker>x",
            "x</think>",
        ] {
            check(text, text, "");
        }
    }

    #[test]
    fn an_unclosed_block_is_all_thought() {
        check("<think>never ends </thi", "", "never ends </thi");
    }

    proptest! {
        #[test]
        fn the_split_does_not_depend_on_where_the_stream_is_cut(
            tokens in prop::collection::vec(
                prop::sample::select(vec!["<think>", "</think>", "<thinking>", "</thinking>", "\n", " ", "a", "é€", "<", "</", "th", ">"]),
                0..20,
            ),
            cuts in prop::collection::vec(0_usize..200, 0..10),
        ) {
            let text = tokens.concat();
            let mut places: Vec<usize> = cuts
                .into_iter()
                .map(|cut| text.floor_char_boundary(cut.min(text.len())))
                .collect();
            places.extend([0, text.len()]);
            places.sort_unstable();
            let pieces = places.windows(2).map(|pair| &text[pair[0]..pair[1]]);
            prop_assert_eq!(split_pieces(pieces), split_pieces([text.as_str()]));
        }
    }
}
