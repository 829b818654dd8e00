//! Refuses settings that do not parse: a broken file often shows much later and elsewhere.

use std::path::Path;

use saphyr_parser::Parser;
use serde::de::IgnoredAny;

/// Larger files are machine-made; checking them costs more than it saves.
const CHECKED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Returns what is wrong with the new content of a file, and where, by the format that its name stands for.
///
/// A file that did not parse before, such as JSON with comments, need not start to.
pub(crate) fn check(path: &Path, new: &str, old: Option<&str>) -> Result<(), String> {
    let Some((format, parse)) = format_of(path) else {
        return Ok(());
    };
    if new.len() > CHECKED_BYTES_MAX {
        return Ok(());
    }
    let Err(error) = parse(new.trim_start_matches('\u{feff}')) else {
        return Ok(());
    };
    if old.is_some_and(|old| parse(old.trim_start_matches('\u{feff}')).is_err()) {
        return Ok(());
    }
    Err(format!("the content is not valid {format}: {error}"))
}

type Parse = fn(&str) -> Result<(), String>;

fn format_of(path: &Path) -> Option<(&'static str, Parse)> {
    match path.extension()?.to_str()? {
        "json" if !allows_comments(path) => Some(("JSON", json)),
        "yaml" | "yml" => Some(("YAML", yaml)),
        "toml" => Some(("TOML", toml)),
        _ => None,
    }
}

fn json(text: &str) -> Result<(), String> {
    let parsed: Result<IgnoredAny, _> = serde_json::from_str(text);
    parsed.map(|_| ()).map_err(|error| error.to_string())
}

fn yaml(text: &str) -> Result<(), String> {
    // Templates become YAML only when they are filled in.
    if text.contains("{{") || text.contains("{%") {
        return Ok(());
    }
    for event in Parser::new_from_str(text) {
        event.map_err(|error| {
            let place = error.marker();
            let (line, column) = (place.line(), place.col() + 1);
            format!("{} at line {line} column {column}", error.info())
        })?;
    }
    Ok(())
}

fn toml(text: &str) -> Result<(), String> {
    let Err(error) = toml::from_str::<toml::Table>(text) else {
        return Ok(());
    };
    let before = error.span().map_or("", |span| &text[..span.start]);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    Err(format!(
        "{} at line {line} column {column}",
        error.message()
    ))
}

/// Some programs read their `.json` with comments.
fn allows_comments(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ["tsconfig", "jsconfig", "devcontainer", ".eslintrc"]
        .iter()
        .any(|start| name.starts_with(start))
        || path.components().any(|part| part.as_os_str() == ".vscode")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(path: &str, new: &str) -> String {
        check(Path::new(path), new, None).unwrap_err()
    }

    #[test]
    fn what_does_not_parse_is_refused_with_its_place() {
        for (path, new, place) in [
            ("/x/a.json", "{\n  \"a\": 1,\n}", "line 3 column 1"),
            ("/x/a.yaml", "a: 1\nb: [1, 2\nc: 3\n", "line 3"),
            ("/x/a.yml", "a: \"open\nb: 1\n", "YAML"),
            ("/x/a.toml", "[a]\nb = \n", "line 2 column 5"),
            ("/x/a.toml", "a = 1\na = 2\n", "line 2 column 1"),
        ] {
            assert!(error(path, new).contains(place), "{}", error(path, new));
        }
    }

    #[test]
    fn what_parses_is_accepted() {
        for (path, new) in [
            ("/x/a.json", "\u{feff}{\"a\": [1, 2]}"),
            ("/x/a.yaml", "a: !Ref b\n---\n- 1\n"),
            ("/x/a.yaml", ""),
            ("/x/chart.yaml", "{{- if .x }}\na: {{ .y }}\n{{- end }}"),
            ("/x/a.toml", "a = 1\n"),
            ("/x/tsconfig.json", "// c\n{}"),
            ("/x/.vscode/settings.json", "// c\n{}"),
            ("/x/notes.txt", "{"),
        ] {
            assert_eq!(check(Path::new(path), new, None), Ok(()), "{path}");
        }
    }

    #[test]
    fn what_did_not_parse_before_need_not_start_to() {
        let path = Path::new("/x/a.json");
        assert!(check(path, "// new\n{}", Some("// old\n{}")).is_ok());
        assert!(check(path, "// new\n{}", Some("{}")).is_err());
    }
}
