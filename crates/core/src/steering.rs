//! How words from the user stand in the result of a tool, when they came while it ran.

/// The system prompt tells the model that text between these lines, and no other, comes from the user. Tools cannot write them.
pub const OPENING: &str = "[[the user says, while you work:]]";
pub const CLOSING: &str = "[[end of the user's words]]";

/// What a result says without the user's words.
pub fn without(result: &str) -> String {
    let mut parts = result.split(OPENING);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once(CLOSING).map(|(_, rest)| rest);
        text.push_str(rest.unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_words_are_no_part_of_what_a_tool_says() {
        let result = format!("one\n{OPENING}\nuse tabs\n{CLOSING}\ntwo{OPENING}x{CLOSING}three");
        assert_eq!(without(&result), "one\n\ntwothree");
        assert_eq!(without("plain"), "plain");
    }
}
