//! Patterns with `*`, `?` and `[…]`, as in the lists of the settings and in paths. `*` also stands for slashes.

/// Returns whether a text is what a pattern describes. Takes at most as many steps as both are long, multiplied.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // Where the last star was, and how much of the text it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, t));
            p += 1;
        } else if let Some(after) = one(&pattern, p, text[t]) {
            p = after;
            t += 1;
        } else if let Some((at, taken)) = star {
            star = Some((at, taken + 1));
            p = at + 1;
            t = taken + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Writes a text so that as a pattern it describes only itself.
pub(super) fn escape(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' => pattern.extend(['[', c, ']']),
            c => pattern.push(c),
        }
    }
    pattern
}

/// Returns where the pattern goes on when its next piece describes this character.
fn one(pattern: &[char], at: usize, c: char) -> Option<usize> {
    match *pattern.get(at)? {
        '?' => Some(at + 1),
        '[' => match set(&pattern[at + 1..], c) {
            Some((is_member, length)) => is_member.then_some(at + 1 + length),
            // A bracket that never closes means itself.
            None => (c == '[').then_some(at + 1),
        },
        other => (other == c).then_some(at + 1),
    }
}

/// The longest set that is looked at; longer ones are text.
const SET_CHARS_MAX: usize = 256;

/// Reads a set after its `[`. Returns whether a character is in it, and how long it is with its `]`.
fn set(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let is_negated = matches!(pattern.first(), Some('!' | '^'));
    let start = usize::from(is_negated);
    let body = pattern.get(start..)?;
    let body = &body[..body.len().min(SET_CHARS_MAX)];
    // A `]` in first place is a member.
    let end = body.iter().skip(1).position(|other| *other == ']')? + 1;
    let mut members = &body[..end];
    let mut is_member = false;
    while let Some((first, rest)) = members.split_first() {
        match rest {
            ['-', last, rest @ ..] => {
                is_member |= (*first..=*last).contains(&c);
                members = rest;
            }
            rest => {
                is_member |= *first == c;
                members = rest;
            }
        }
    }
    Some((is_member != is_negated, start + end + 1))
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
