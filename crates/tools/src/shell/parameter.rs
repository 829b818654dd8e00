//! `${name…}`: what the text after a name does to its value.

/// What `${name…}` asks for.
pub(super) enum Parameter<'a> {
    /// The value, changed.
    Value(String),
    /// Another text instead, itself to be expanded.
    Instead(&'a str),
    /// Nobody can say before it runs.
    Unknown,
}

/// Applies the operation after a name to its value, if that is known.
pub(super) fn apply<'a>(value: Option<&str>, operation: &'a str) -> Parameter<'a> {
    let (is_strict, rest) = match operation.strip_prefix(':') {
        Some(rest) => (true, rest),
        None => (false, operation),
    };
    let is_missing = value.is_none_or(|value| is_strict && value.is_empty());
    match (rest.chars().next(), value) {
        (Some('-' | '='), _) if is_missing => return Parameter::Instead(&rest[1..]),
        (Some('+'), _) => return Parameter::Instead(&rest[1..]),
        (Some('-' | '=' | '?'), Some(value)) => return Parameter::Value(value.to_owned()),
        _ => {}
    }
    match value.and_then(|value| changed(value, operation)) {
        Some(value) => Parameter::Value(value),
        None => Parameter::Unknown,
    }
}

/// Returns the value after one of the operations that need no knowledge of patterns.
fn changed(value: &str, operation: &str) -> Option<String> {
    if operation.is_empty() {
        return Some(value.to_owned());
    }
    if let Some(rest) = operation.strip_prefix("//") {
        let (from, to) = rest.split_once('/').unwrap_or((rest, ""));
        return is_literal(from).then(|| value.replace(from, to));
    }
    if let Some(rest) = operation.strip_prefix('/') {
        let (from, to) = rest.split_once('/').unwrap_or((rest, ""));
        return is_literal(from).then(|| value.replacen(from, to, 1));
    }
    if let Some(prefix) = operation.strip_prefix('#') {
        let prefix = prefix.trim_start_matches('#');
        return is_literal(prefix).then(|| value.strip_prefix(prefix).unwrap_or(value).to_owned());
    }
    if let Some(suffix) = operation.strip_prefix('%') {
        let suffix = suffix.trim_start_matches('%');
        return is_literal(suffix).then(|| value.strip_suffix(suffix).unwrap_or(value).to_owned());
    }
    match operation {
        "^^" | "@U" => return Some(value.to_uppercase()),
        ",," | "@L" => return Some(value.to_lowercase()),
        "@Q" | "@E" => return Some(value.to_owned()),
        _ => {}
    }
    slice(value, operation.strip_prefix(':')?)
}

/// Returns part of a value: `2`, `0:3`, ` -4`.
fn slice(value: &str, range: &str) -> Option<String> {
    let (start, length) = range.split_once(':').unwrap_or((range, ""));
    let count = value.chars().count();
    let start: isize = start.trim().parse().ok()?;
    let start = if start < 0 {
        count.checked_sub(start.unsigned_abs())?
    } else {
        start.unsigned_abs()
    };
    let length = match length.trim() {
        "" => count,
        length => length.parse().ok()?,
    };
    Some(value.chars().skip(start).take(length).collect())
}

fn is_literal(pattern: &str) -> bool {
    !pattern.is_empty() && !pattern.contains(['*', '?', '[', '$', '`', '\\', '\'', '"'])
}
