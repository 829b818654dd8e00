//! What a title may look like.

/// Characters in a title: a line in a list, on a phone too.
const TITLE_CHARS_MAX: usize = 100;

/// Removes what must not stand in a title and cuts it to length. `None` when nothing is left.
pub(crate) fn clean(title: &str) -> Option<String> {
    let visible: String = title
        .chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !c.is_control() && !is_bidi_control(*c))
        .collect();
    let cut: String = visible.trim().chars().take(TITLE_CHARS_MAX).collect();
    let title = cut.trim_end();
    (!title.is_empty()).then(|| title.to_owned())
}

/// Returns whether a title is `base #N`.
pub(crate) fn is_numbered(title: &str, base: &str) -> bool {
    let number = title
        .strip_prefix(base)
        .and_then(|rest| rest.strip_prefix(" #"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Characters that reorder the text around them, and so can make one title look like another.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_trimmed_cut_and_cleaned() {
        let check =
            |title: &str, expected: Option<&str>| assert_eq!(clean(title).as_deref(), expected);
        check("  plan\tfor\nMay ", Some("plan for May"));
        check("a\u{0}b\u{202e}c\u{7}", Some("abc"));
        check(" \u{200f}\n", None);
        check(&"é".repeat(150), Some(&"é".repeat(100)));
        check(&format!("{} tail", "x".repeat(99)), Some(&"x".repeat(99)));
    }

    #[test]
    fn a_numbered_title_ends_in_its_number() {
        assert!(is_numbered("plan #12", "plan"));
        assert!(!is_numbered("plan", "plan"));
        assert!(!is_numbered("plan #", "plan"));
        assert!(!is_numbered("plan #2b", "plan"));
        assert!(!is_numbered("planning #2", "plan"));
    }
}
