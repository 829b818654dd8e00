//! Characters that a person reads as another than the shell does.

/// Where a character stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoted {
    Bare,
    DoubleQuotes,
    SingleQuotes,
    /// A comment, or a here-document.
    Text,
}

/// Names of the characters that are seen most; others are named by their number.
const NAMES: &[(char, &str)] = &[
    ('\u{0}', "NULL"),
    ('\u{1}', "START OF HEADING"),
    ('\u{3}', "END OF TEXT (Ctrl-C)"),
    ('\u{4}', "END OF TRANSMISSION (Ctrl-D)"),
    ('\u{7}', "BELL"),
    ('\u{8}', "BACKSPACE"),
    ('\u{b}', "LINE TABULATION"),
    ('\u{c}', "FORM FEED"),
    ('\r', "CARRIAGE RETURN"),
    ('\u{12}', "DEVICE CONTROL TWO (Ctrl-R)"),
    ('\u{15}', "NEGATIVE ACKNOWLEDGE (Ctrl-U)"),
    ('\u{16}', "SYNCHRONOUS IDLE (Ctrl-V)"),
    ('\u{17}', "END OF TRANSMISSION BLOCK (Ctrl-W)"),
    ('\u{1a}', "SUBSTITUTE (Ctrl-Z)"),
    ('\u{1b}', "ESCAPE"),
    ('\u{7f}', "DELETE"),
    ('\u{85}', "NEXT LINE"),
    ('\u{a0}', "NO-BREAK SPACE"),
    ('\u{ad}', "SOFT HYPHEN"),
    ('\u{37e}', "GREEK QUESTION MARK"),
    ('\u{1680}', "OGHAM SPACE MARK"),
    ('\u{180e}', "MONGOLIAN VOWEL SEPARATOR"),
    ('\u{2002}', "EN SPACE"),
    ('\u{2003}', "EM SPACE"),
    ('\u{2007}', "FIGURE SPACE"),
    ('\u{2009}', "THIN SPACE"),
    ('\u{200b}', "ZERO WIDTH SPACE"),
    ('\u{200c}', "ZERO WIDTH NON-JOINER"),
    ('\u{200d}', "ZERO WIDTH JOINER"),
    ('\u{200e}', "LEFT-TO-RIGHT MARK"),
    ('\u{200f}', "RIGHT-TO-LEFT MARK"),
    ('\u{2018}', "LEFT SINGLE QUOTATION MARK"),
    ('\u{2019}', "RIGHT SINGLE QUOTATION MARK"),
    ('\u{201c}', "LEFT DOUBLE QUOTATION MARK"),
    ('\u{201d}', "RIGHT DOUBLE QUOTATION MARK"),
    ('\u{2028}', "LINE SEPARATOR"),
    ('\u{2029}', "PARAGRAPH SEPARATOR"),
    ('\u{202a}', "LEFT-TO-RIGHT EMBEDDING"),
    ('\u{202b}', "RIGHT-TO-LEFT EMBEDDING"),
    ('\u{202d}', "LEFT-TO-RIGHT OVERRIDE"),
    ('\u{202e}', "RIGHT-TO-LEFT OVERRIDE"),
    ('\u{202f}', "NARROW NO-BREAK SPACE"),
    ('\u{205f}', "MEDIUM MATHEMATICAL SPACE"),
    ('\u{2060}', "WORD JOINER"),
    ('\u{2066}', "LEFT-TO-RIGHT ISOLATE"),
    ('\u{2067}', "RIGHT-TO-LEFT ISOLATE"),
    ('\u{3000}', "IDEOGRAPHIC SPACE"),
    ('\u{feff}', "ZERO WIDTH NO-BREAK SPACE"),
    ('\u{ff02}', "FULLWIDTH QUOTATION MARK"),
    ('\u{ff03}', "FULLWIDTH NUMBER SIGN"),
    ('\u{ff04}', "FULLWIDTH DOLLAR SIGN"),
    ('\u{ff06}', "FULLWIDTH AMPERSAND"),
    ('\u{ff07}', "FULLWIDTH APOSTROPHE"),
    ('\u{ff1b}', "FULLWIDTH SEMICOLON"),
    ('\u{ff40}', "FULLWIDTH GRAVE ACCENT"),
    ('\u{ff5c}', "FULLWIDTH VERTICAL LINE"),
];

/// What looks like the double quote, the single quote, and other characters that mean something to a shell.
const LIKE_DOUBLE_QUOTE: &str = "\u{2ba}\u{2dd}\u{2ee}\u{2f6}\u{5f2}\u{5f4}\u{1cd3}\u{201c}\u{201d}\u{201e}\u{201f}\u{2033}\u{2036}\u{275d}\u{275e}\u{301d}\u{301e}\u{301f}\u{3003}\u{ff02}";
const LIKE_SINGLE_QUOTE: &str = "\u{b4}\u{2b9}\u{2bb}\u{2bc}\u{2bd}\u{2be}\u{2bf}\u{2c8}\u{2ca}\u{2cb}\u{2f4}\u{374}\u{384}\u{55a}\u{55d}\u{5d9}\u{5f3}\u{7f4}\u{7f5}\u{144a}\u{16cc}\u{1fbd}\u{1fbf}\u{1fef}\u{1ffd}\u{1ffe}\u{2018}\u{2019}\u{201a}\u{201b}\u{2032}\u{2035}\u{275b}\u{275c}\u{a78c}\u{ff07}\u{ff40}";
const LIKE_OPERATORS: &str = "\u{a6}\u{1c0}\u{1c3}\u{2c2}\u{2c3}\u{37e}\u{5c0}\u{5c3}\u{60d}\u{61b}\u{66a}\u{204f}\u{2016}\u{2024}\u{2039}\u{203a}\u{2044}\u{204e}\u{2052}\u{2053}\u{2215}\u{2216}\u{2217}\u{2223}\u{223c}\u{2212}\u{226a}\u{226b}\u{2758}\u{2768}\u{2769}\u{276e}\u{276f}\u{2774}\u{2775}\u{2985}\u{2986}\u{29f5}\u{29f8}\u{29f9}\u{2cf9}\u{3008}\u{3009}\u{3014}\u{3015}\u{a4fd}\u{a778}\u{a789}";

/// Says why a character cannot stay where it is, if so.
pub(super) fn why_odd(c: char, place: Quoted) -> Option<&'static str> {
    if is_control(c) {
        return Some("a control character, which moves or hides what a terminal shows");
    }
    if c.is_ascii() {
        return None;
    }
    if is_invisible(c) && !(c == EMOJI_STYLE && place != Quoted::Bare) {
        return Some("which cannot be seen");
    }
    if place == Quoted::Text {
        return None;
    }
    if c.is_whitespace() {
        return Some("which looks like a blank and is none");
    }
    let (double, single) = (LIKE_DOUBLE_QUOTE.contains(c), LIKE_SINGLE_QUOTE.contains(c));
    let is_lookalike = match place {
        Quoted::DoubleQuotes => double || (is_wide(c) && is_mark(narrow(c))),
        Quoted::SingleQuotes => single || (is_wide(c) && is_mark(narrow(c))),
        Quoted::Bare => double || single || LIKE_OPERATORS.contains(c) || is_wide(c),
        Quoted::Text => false,
    };
    if is_lookalike {
        return Some("which looks like a character of the shell and is none");
    }
    if place == Quoted::Bare && (is_mark_on_letter(c) || splits_bytes(c)) {
        return Some("which shells do not take apart alike");
    }
    None
}

/// Names a character as a person can look it up.
pub(super) fn name(c: char) -> String {
    let known = NAMES.iter().find(|(other, _)| *other == c);
    let name = known
        .map(|(_, name)| format!(" {name}"))
        .unwrap_or_default();
    format!("U+{:04X}{name}", u32::from(c))
}

/// Asks for the coloured form of the character before it.
const EMOJI_STYLE: char = '\u{fe0f}';

fn is_control(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t') || is_direction(c)
}

/// Changes the order in which text is shown.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}'
    )
}

/// Wide and small forms of ASCII.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{ff01}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffee}' | '\u{fe10}'..='\u{fe19}' | '\u{fe30}'..='\u{fe6b}')
}

/// Returns the ASCII character that a wide one looks like, or the same.
fn narrow(c: char) -> char {
    match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        other => other,
    }
}

/// Quotes, and what means something between double quotes. Wide commas and full stops are how some languages are written.
fn is_mark(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '$' | '\\')
}

fn is_mark_on_letter(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

/// Some systems take the bytes `85` and `A0` inside a letter for blanks.
fn splits_bytes(c: char) -> bool {
    let mut bytes = [0; 4];
    let bytes = c.encode_utf8(&mut bytes).as_bytes();
    bytes.contains(&0x85) || bytes.contains(&0xa0)
}
