//! Patterns with `*`, `?` and `[…]`, as in the lists of the settings and in paths. `*` also stands for slashes.

/// Returns whether a text is what a pattern describes. Takes at most as many steps as both are long, multiplied.
pub fn matches(mut pattern: &str, mut text: &str) -> bool {
    // What follows the last star, and the text it has not taken so far.
    let mut star: Option<(&str, &str)> = None;
    while let Some(c) = text.chars().next() {
        if let Some(after) = pattern.strip_prefix('*') {
            star = Some((after, text));
            pattern = after;
        } else if let Some(after) = one(pattern, c) {
            pattern = after;
            text = &text[c.len_utf8()..];
        } else if let Some((after, left)) = star {
            let mut left = left.chars();
            left.next();
            star = Some((after, left.as_str()));
            pattern = after;
            text = left.as_str();
        } else {
            return false;
        }
    }
    pattern.chars().all(|c| c == '*')
}

/// Returns whether a text describes more than itself.
pub fn is_pattern(text: &str) -> bool {
    let has_set = || Some(text.split_once('[')?.1.contains(']'));
    text.contains(['*', '?']) || has_set() == Some(true)
}

/// Writes a text so that as a pattern it describes only itself.
pub fn escape(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' => pattern.extend(['[', c, ']']),
            c => pattern.push(c),
        }
    }
    pattern
}

/// Returns the rest of the pattern when its next piece describes this character.
fn one(pattern: &str, c: char) -> Option<&str> {
    let mut rest = pattern.chars();
    match rest.next()? {
        '?' => Some(rest.as_str()),
        '[' => match set(rest.as_str(), c) {
            Some((is_member, rest)) => is_member.then_some(rest),
            // A bracket that never closes means itself.
            None => (c == '[').then_some(rest.as_str()),
        },
        other => (other == c).then_some(rest.as_str()),
    }
}

/// The longest set that is looked at; longer ones are text.
const SET_CHARS_MAX: usize = 256;

/// Reads a set after its `[`. Returns whether a character is in it, and what follows its `]`.
fn set(pattern: &str, c: char) -> Option<(bool, &str)> {
    let inside = pattern.strip_prefix(['!', '^']);
    let is_negated = inside.is_some();
    let inside = inside.unwrap_or(pattern);
    // A `]` in first place is a member.
    let (end, _) = inside
        .char_indices()
        .take(SET_CHARS_MAX)
        .skip(1)
        .find(|(_, other)| *other == ']')?;
    let mut members = inside[..end].chars();
    let mut is_member = false;
    while let Some(first) = members.next() {
        let mut range = members.clone();
        is_member |= match (range.next(), range.next()) {
            (Some('-'), Some(last)) => {
                members = range;
                (first..=last).contains(&c)
            }
            _ => first == c,
        };
    }
    Some((is_member != is_negated, &inside[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_describe_texts() {
        for (pattern, text, expected) in [
            ("git push*", "git push origin main", true),
            ("git push*", "git pull", false),
            ("*", "", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("/et[c]", "/etc", true),
            ("/[!a]tc", "/etc", true),
            ("/[a-f]tc", "/etc", true),
            ("[", "[", true),
            ("a]", "a]", true),
            ("[]]", "]", true),
            ("r?boot", "reboot", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn an_escaped_text_describes_itself_only() {
        let text = "rm *.o [a]?";
        assert!(matches(&escape(text), text));
        assert!(!matches(&escape(text), "rm x.o [a]y"));
    }
}
