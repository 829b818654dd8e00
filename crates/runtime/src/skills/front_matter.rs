//! A skill's text: what its front matter says, and the body behind it. Pure; files are read elsewhere.

use serde_json::Value;

/// A name that a person could not read in a list any more.
const NAME_CHARS_MAX: usize = 64;
const DESCRIPTION_CHARS_MAX: usize = 1_024;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Document {
    pub name: Option<String>,
    pub description: String,
    /// The systems it is for; every one if none is named.
    pub platforms: Vec<String>,
    pub body: String,
}

/// Reads a text. No text is refused: front matter that is no YAML is read line by line, and what it does not say is taken
/// from the body.
pub(super) fn read(text: &str) -> Document {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (front, body) = match split(&text) {
        Some((front, body)) => (fields(front), body),
        None => (Value::Null, text.as_str()),
    };
    let body = body.trim();
    let said = words(&front["description"], DESCRIPTION_CHARS_MAX);
    Document {
        name: words(&front["name"], NAME_CHARS_MAX),
        description: said.unwrap_or_else(|| first_words(body)),
        platforms: list(&front["platforms"]),
        body: body.to_owned(),
    }
}

/// Splits at the lines of three hyphens. A first one without a second begins no front matter.
fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

fn fields(front: &str) -> Value {
    match hermes_config::from_yaml(front) {
        Ok(fields @ Value::Object(_)) => fields,
        _ => lines(front),
    }
}

/// `key: value`, line by line: a colon in a description is the usual reason why front matter is no YAML.
fn lines(front: &str) -> Value {
    let fields = front.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim().trim_matches(['"', '\'']);
        Some((key.trim().to_owned(), Value::from(value)))
    });
    Value::Object(fields.collect())
}

/// A text on one line.
fn words(value: &Value, chars_max: usize) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = hermes_core::text::shorten(&words.join(" "), chars_max);
    (!words.is_empty()).then_some(words)
}

/// A list of words, or one text with commas between them.
fn list(value: &Value) -> Vec<String> {
    let words: Vec<&str> = match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => text.trim_matches(['[', ']']).split(',').collect(),
        _ => Vec::new(),
    };
    let words = words.iter().map(|word| word.trim().to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// The first line of a body that is no heading.
fn first_words(body: &str) -> String {
    let line = body
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    words(&line.unwrap_or_default().into(), DESCRIPTION_CHARS_MAX).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: Option<&str>, description: &str, body: &str) {
        let read = read(text);
        let found = (
            read.name.as_deref(),
            read.description.as_str(),
            read.body.as_str(),
        );
        assert_eq!(found, (name, description, body), "{text:?}");
    }

    #[test]
    fn front_matter_is_read_however_it_is_written() {
        let usual = "---\nname: review\ndescription: looks at code\n---\n# Review\n\nLook.\n";
        let expected = (Some("review"), "looks at code", "# Review\n\nLook.");
        let (name, description, body) = expected;
        check(usual, name, description, body);
        check(&usual.replace('\n', "\r\n"), name, description, body);
        check(&format!("\u{feff}{usual}"), name, description, body);
        let folded = "---\nname: \"review\"\ndescription: >-\n  looks\n  at code\nmetadata:\n  hermes: {tags: [a]}\n--- \n\n# Review\n\nLook.";
        check(folded, name, description, body);
    }

    #[test]
    fn broken_front_matter_is_read_line_by_line() {
        check(
            "---\nname: review\ndescription: Use when: code, or [tests\n---\nLook.",
            Some("review"),
            "Use when: code, or [tests",
            "Look.",
        );
        check("---\n- a\n- b\n---\nLook.", None, "Look.", "Look.");
        let read = read("---\nplatforms: [macos, linux\nname: x\n---\n");
        assert_eq!(read.platforms, ["macos", "linux"]);
    }

    #[test]
    fn what_is_missing_comes_from_the_body() {
        check("# Title\n\nDo it.\n", None, "Do it.", "# Title\n\nDo it.");
        check("---\nname: 7\n---\n", Some("7"), "", "");
        check(
            "---\nname: x\ndescription:\n---\n# T\nDo.",
            Some("x"),
            "Do.",
            "# T\nDo.",
        );
        check(
            "---\nname: never closed\n",
            None,
            "---",
            "---\nname: never closed",
        );
        check("", None, "", "");
        check("---", None, "---", "---");
        check("---\n---\n", None, "", "");
    }

    #[test]
    fn names_and_descriptions_have_a_limit() {
        let read = read(&format!(
            "---\nname: {}\ndescription: {}\n---\n",
            "n".repeat(500),
            "d".repeat(5_000)
        ));
        assert_eq!(read.name.unwrap().chars().count(), NAME_CHARS_MAX);
        assert_eq!(read.description.chars().count(), DESCRIPTION_CHARS_MAX);
    }

    #[test]
    fn platforms_are_a_list_or_one_word() {
        for (written, platforms) in [
            ("[macos, Linux]", vec!["macos", "linux"]),
            ("linux", vec!["linux"]),
            ("\"macos, windows\"", vec!["macos", "windows"]),
            ("[]", vec![]),
            ("7", vec![]),
        ] {
            let read = read(&format!("---\nplatforms: {written}\n---\n"));
            assert_eq!(read.platforms, platforms, "{written}");
        }
    }
}
