//! A pattern in the words of `grep -E`, for places that have no `rg`.

use std::iter::Peekable;
use std::str::Chars;

/// What `grep -E` is told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Extended {
    pub(super) pattern: String,
    pub(super) ignores_case: bool,
}

/// Translates a pattern; `None` when it says what `grep` cannot. It is a valid one already.
pub(super) fn extended(pattern: &str) -> Option<Extended> {
    let without_flag = pattern.strip_prefix("(?i)");
    let mut chars = without_flag.unwrap_or(pattern).chars().peekable();
    let mut translated = String::new();
    while let Some(c) = chars.next() {
        match c {
            '\\' => translated.push_str(&escape(chars.next()?)?),
            '[' => class(&mut chars, &mut translated)?,
            '(' if chars.peek() == Some(&'?') => {
                chars.next();
                // Without names and flags a group is only a group.
                (chars.next()? == ':').then(|| translated.push('('))?;
            }
            '*' | '+' | '?' | '}' => {
                translated.push(c);
                // How much is matched makes no difference to whether a line is.
                chars.next_if_eq(&'?');
            }
            c => translated.push(c),
        }
    }
    Some(Extended {
        pattern: translated,
        ignores_case: without_flag.is_some(),
    })
}

fn escape(c: char) -> Option<String> {
    Some(match c {
        'd' => "[0-9]".to_owned(),
        'D' => "[^0-9]".to_owned(),
        'w' => "[[:alnum:]_]".to_owned(),
        'W' => "[^[:alnum:]_]".to_owned(),
        's' => "[[:space:]]".to_owned(),
        'S' => "[^[:space:]]".to_owned(),
        't' => "\t".to_owned(),
        'b' | 'B' | '^' | '\\' => format!("\\{c}"),
        c if c.is_ascii_punctuation() => format!("[{c}]"),
        _ => return None,
    })
}

/// Translates a class of characters after its opening bracket.
fn class(chars: &mut Peekable<Chars<'_>>, translated: &mut String) -> Option<()> {
    translated.push('[');
    if chars.next_if_eq(&'^').is_some() {
        translated.push('^');
    }
    if chars.next_if_eq(&']').is_some() {
        translated.push(']');
    }
    loop {
        match chars.next()? {
            ']' => {
                translated.push(']');
                return Some(());
            }
            '\\' => match chars.next()? {
                'd' => translated.push_str("0-9"),
                'w' => translated.push_str("[:alnum:]_"),
                's' => translated.push_str("[:space:]"),
                't' => translated.push('\t'),
                ']' | '-' | '[' | '^' => return None,
                c if c.is_ascii_punctuation() => translated.push(c),
                _ => return None,
            },
            '[' if chars.peek() == Some(&':') => {
                translated.push('[');
                for c in chars.by_ref() {
                    translated.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            // A class in a class, or two that are combined.
            '[' | '&' | '~' => return None,
            c => translated.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_translated_as_far_as_they_can_be() {
        for (pattern, expected) in [
            ("fn main", Some("fn main")),
            (r"\bfoo\(\d+\)", Some(r"\bfoo[(][0-9]+[)]")),
            (r"a.*?b|(?:c)+?", Some("a.*b|(c)+")),
            (r"[\w.]+@[^\s]+", Some("[[:alnum:]_.]+@[^[:space:]]+")),
            ("[]a-z[:digit:]]", Some("[]a-z[:digit:]]")),
            (r"a\\b\^", Some(r"a\\b\^")),
            (r"x{2,3}", Some("x{2,3}")),
            (r"\p{Greek}", None),
            ("(?P<name>x)", None),
            (r"[a&&b]", None),
            (r"[\]]", None),
        ] {
            let translated = extended(pattern).map(|extended| extended.pattern);
            assert_eq!(translated.as_deref(), expected, "{pattern}");
        }
        assert!(extended("(?i)x").unwrap().ignores_case);
    }
}
