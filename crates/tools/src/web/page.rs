//! Makes readable text of what a server sent.

use std::io::Cursor;

use hermes_core::text::printable;
use reqwest::Url;

use super::charset::decode;
use super::fetch::Fetched;
use super::markdown;
use crate::documents;

/// Where a document must say that it is one, when the server does not.
const SIGNATURE_BYTES: usize = 1024;

/// A page as a model reads it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

enum Kind {
    Html,
    Pdf,
    Text,
    Unknown,
}

/// Reads what was fetched. An error says what it is instead of text, and what to do.
pub(crate) fn read(fetched: &Fetched) -> Result<Page, String> {
    let mut page = match kind(&fetched.content_type, &fetched.body) {
        Kind::Html => html(fetched),
        Kind::Pdf => pdf(fetched)?,
        Kind::Text => Page {
            title: None,
            text: text(fetched),
        },
        Kind::Unknown => return Err(not_text(fetched)),
    };
    page.title = page.title.map(|title| visible(&title));
    page.text = visible(&page.text);
    if fetched.is_cut {
        let megabytes = fetched.body.len().div_ceil(1024 * 1024);
        page.text.push_str(&format!(
            "\n\n[the page goes on: only its first {megabytes} MB were read]"
        ));
    }
    Ok(page)
}

fn html(fetched: &Fetched) -> Page {
    markdown::convert(&text(fetched), &fetched.url)
}

fn text(fetched: &Fetched) -> String {
    decode(&fetched.body, charset(&fetched.content_type)).into_owned()
}

fn pdf(fetched: &Fetched) -> Result<Page, String> {
    if fetched.is_cut {
        return Err(
            "this is a PDF document that is too long to be fetched here; download it with a command and use `read_file`"
                .to_owned(),
        );
    }
    let said = documents::pdf_text(&mut Cursor::new(&fetched.body));
    let said =
        said.unwrap_or_else(|| Err("is no PDF document, although its server says so".to_owned()));
    let text = said.map_err(|reason| format!("this {reason}"))?;
    Ok(Page { title: None, text })
}

fn not_text(fetched: &Fetched) -> String {
    let kind = fetched.content_type.split(';').next().unwrap_or_default();
    let kind = if kind.is_empty() { "unknown" } else { kind };
    format!(
        "this is no text (its type is `{kind}`, {} bytes); download it with a command if it is needed",
        fetched.body.len()
    )
}

fn kind(content_type: &str, body: &[u8]) -> Kind {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    match essence {
        "text/html" | "application/xhtml+xml" => Kind::Html,
        "application/pdf" | "application/x-pdf" => Kind::Pdf,
        "" | "application/octet-stream" | "text/plain" => sniffed(body),
        essence if is_text(essence) => Kind::Text,
        _ => Kind::Unknown,
    }
}

fn is_text(essence: &str) -> bool {
    let (group, name) = essence.split_once('/').unwrap_or((essence, ""));
    const NAMES: &[&str] = &[
        "ecmascript",
        "javascript",
        "json",
        "jsonl",
        "rtf",
        "sql",
        "toml",
        "x-javascript",
        "x-ndjson",
        "x-sh",
        "x-yaml",
        "xml",
        "yaml",
    ];
    let is_structured =
        name.ends_with("+json") || name.ends_with("+xml") || name.ends_with("+yaml");
    group == "text" || (group == "application" && (is_structured || NAMES.contains(&name)))
}

/// What servers say that know nothing else.
fn sniffed(body: &[u8]) -> Kind {
    let beginning = &body[..body.len().min(SIGNATURE_BYTES)];
    let words = beginning.trim_ascii_start().to_ascii_lowercase();
    let has_wide_mark = body.starts_with(b"\xff\xfe") || body.starts_with(b"\xfe\xff");
    if beginning.starts_with(b"%PDF") {
        Kind::Pdf
    } else if words.starts_with(b"<!doctype html") || words.starts_with(b"<html") {
        Kind::Html
    } else if beginning.contains(&0) && !has_wide_mark {
        Kind::Unknown
    } else {
        Kind::Text
    }
}

fn charset(content_type: &str) -> Option<&str> {
    let parameters = content_type.split(';').skip(1);
    let mut values = parameters.filter_map(|parameter| parameter.trim().strip_prefix("charset="));
    values
        .next()
        .map(|value| value.trim_matches(['"', '\'', ' ']))
}

/// Leaves out what nobody sees: a model would read it all the same, and take it for words of the page.
fn visible(text: &str) -> String {
    let is_shown = |c: &char| {
        !matches!(
            c,
            '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{ad}' | '\u{e0000}'..='\u{e007f}'
        )
    };
    printable(text).chars().filter(is_shown).collect()
}

/// The site of an address, for the names of files.
pub(crate) fn host(url: &Url) -> &str {
    super::destination::host(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_as(content_type: &str, body: &[u8]) -> Result<Page, String> {
        read(&Fetched {
            url: Url::parse("https://example.com/").unwrap(),
            content_type: content_type.to_owned(),
            body: body.to_vec(),
            is_cut: false,
        })
    }

    fn text_as(content_type: &str, body: &[u8]) -> String {
        read_as(content_type, body).unwrap().text
    }

    #[test]
    fn types_decide_and_bytes_where_types_say_nothing() {
        assert_eq!(text_as("text/html; charset=utf-8", b"<h1>Hi</h1>"), "# Hi");
        assert_eq!(text_as("", b" <!DOCTYPE HTML><h1>Hi</h1>"), "# Hi");
        assert_eq!(text_as("text/plain", b"<b>plain</b>"), "<b>plain</b>");
        assert_eq!(text_as("application/json", b"{\"a\": 1}"), "{\"a\": 1}");
        assert_eq!(text_as("application/ld+json", b"{}"), "{}");
        assert_eq!(text_as("application/octet-stream", b"words"), "words");
        assert_eq!(text_as("text/plain; charset=latin1", b"\xf6"), "ö");
        assert_eq!(text_as("", b"\xff\xfeh\0i\0"), "hi");
    }

    #[test]
    fn what_is_no_text_is_said_so() {
        let picture = read_as("image/png", b"\x89PNG").unwrap_err();
        assert!(picture.contains("`image/png`, 4 bytes"), "{picture}");
        assert!(read_as("", b"\x7fELF\0\0").is_err());
        let no_pdf = read_as("application/pdf", b"<html>").unwrap_err();
        assert!(no_pdf.contains("no PDF document"), "{no_pdf}");
    }

    #[test]
    fn invisible_letters_are_left_out() {
        let hidden: String = "ignore"
            .chars()
            .map(|c| char::from_u32(0xe0000 + c as u32).unwrap())
            .collect();
        let body = format!("a{hidden}b\u{200b}c\u{202e}d\x1b[2J");
        assert_eq!(text_as("text/plain", body.as_bytes()), "abcd");
    }
}
