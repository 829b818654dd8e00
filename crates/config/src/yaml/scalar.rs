//! Scalars: what a plain word means, and how a value is written on one line.

use saphyr_parser::Tag;
use serde_json::{Number, Value};

/// Returns what a plain (unquoted) scalar means in the core schema of YAML 1.2.
///
/// A number that no machine number can hold stays text, so that no digit is lost.
pub(crate) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

/// Reads a scalar by its explicit tag; `None` when the text does not fit or the tag is none of YAML's own.
pub(super) fn resolve_tagged(text: &str, tag: &Tag) -> Option<Value> {
    let is_plain_text = tag.handle.is_empty() && tag.suffix == "!";
    if is_plain_text {
        return Some(text.into());
    }
    if !tag.is_yaml_core_schema() {
        return None;
    }
    let value = resolve(text);
    let fits = match tag.suffix.as_str() {
        "str" => return Some(text.into()),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        "bool" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    fits.then_some(value)
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return unsigned(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return unsigned(digits, 8);
    }
    let magnitude = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !magnitude.is_empty() && magnitude.bytes().all(|byte| byte.is_ascii_digit()) {
        let signed = text.parse::<i64>().ok().map(Number::from);
        return signed.or_else(|| text.parse::<u64>().ok().map(Number::from));
    }
    if !is_decimal(magnitude) {
        return None;
    }
    text.parse().ok().and_then(Number::from_f64)
}

fn unsigned(digits: &str, radix: u32) -> Option<Number> {
    if digits.starts_with('+') {
        return None;
    }
    u64::from_str_radix(digits, radix).ok().map(Number::from)
}

/// Tells whether `text` is `digits[.digits][e[sign]digits]`, with a digit before or after the dot.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_is_fine = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    digits(whole) && digits(fraction) && (whole.len() + fraction.len()) > 0 && exponent_is_fine
}

/// Writes text so that every YAML reader takes it for exactly this text, plainly where that is safe.
pub(crate) fn quote(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text.chars().any(needs_escape) {
        quote_double(text)
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Tells whether `text` may stand unquoted, in brackets too, for readers of YAML 1.1 and 1.2 alike.
fn is_plain(text: &str) -> bool {
    let starts_plainly = text.starts_with(|c: char| c.is_alphabetic() || c == '/' || c == '_');
    let is_word = |c: char| c.is_alphanumeric() || "_-./@+=%: ".contains(c);
    let colons_are_harmless = || {
        text.match_indices(':')
            .all(|(at, _)| text[at + 1..].starts_with('/'))
    };
    starts_plainly
        && !text.ends_with(' ')
        && text.chars().all(is_word)
        && colons_are_harmless()
        && !is_word_with_meaning(text)
}

fn is_word_with_meaning(text: &str) -> bool {
    const WORDS: [&str; 7] = ["null", "true", "false", "yes", "no", "on", "off"];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

fn quote_double(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if needs_escape(c) => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_words_mean_what_the_core_schema_says() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("True", json!(true)),
            ("off", json!("off")),
            ("-12", json!(-12)),
            ("+12", json!(12)),
            ("18446744073709551615", json!(u64::MAX)),
            ("99999999999999999999999", json!("99999999999999999999999")),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("0x", json!("0x")),
            ("0.5", json!(0.5)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("1e400", json!("1e400")),
            (".", json!(".")),
            ("e5", json!("e5")),
            ("1_000", json!("1_000")),
            (".inf", json!(".inf")),
            ("127.0.0.1", json!("127.0.0.1")),
        ] {
            assert_eq!(resolve(text), value, "{text}");
        }
    }

    #[test]
    fn text_is_quoted_only_where_a_reader_could_mistake_it() {
        for (text, written) in [
            ("gpt-5", "gpt-5"),
            ("openai/gpt 5", "openai/gpt 5"),
            ("http://localhost/v1", "http://localhost/v1"),
            ("off", "'off'"),
            ("", "''"),
            ("5m", "'5m'"),
            ("a: b", "'a: b'"),
            ("it's #1", "'it''s #1'"),
            ("two\nlines", "\"two\\nlines\""),
            (" led", "' led'"),
            ("trailed ", "'trailed '"),
            ("*star", "'*star'"),
        ] {
            assert_eq!(quote(text), written);
        }
    }
}
