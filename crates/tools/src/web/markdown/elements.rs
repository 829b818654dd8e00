//! What the names and attributes of HTML elements mean to a reader.

use html5gum::StartTag;

/// The deepest nesting that is followed; what is deeper counts as part of what it is in.
pub(super) const DEPTH_MAX: usize = 128;

/// Elements without content.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];

/// Elements whose content is not for readers: code, controls, ways around the site.
const DROPPED: &[&str] = &[
    "audio", "button", "canvas", "datalist", "dialog", "iframe", "math", "nav", "noembed",
    "noframes", "noscript", "object", "script", "select", "style", "svg", "template", "textarea",
    "video",
];

/// Elements that begin a new paragraph, and end an open `p`.
const PARAGRAPHS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "details",
    "dl",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "ul",
];

/// Elements that begin a new line, and end an open `p`.
const LINES: &[&str] = &[
    "center",
    "dd",
    "div",
    "dt",
    "figcaption",
    "legend",
    "li",
    "menu",
    "summary",
];

/// Elements that an end tag inside them cannot end.
const BOUNDARIES: &[&str] = &[
    "caption", "marquee", "object", "table", "td", "template", "th",
];

/// Roles of what is a way around the site.
const DROPPED_ROLES: &[&str] = &["navigation", "search"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Inline,
    Line,
    Paragraph,
}

pub(super) fn flow(name: &str) -> Flow {
    if PARAGRAPHS.contains(&name) {
        Flow::Paragraph
    } else if LINES.contains(&name) {
        Flow::Line
    } else {
        Flow::Inline
    }
}

pub(super) fn is_void(name: &str) -> bool {
    VOID.contains(&name)
}

/// Elements that an opening tag ends, although nobody wrote their end, and the elements beyond which it does not look.
pub(super) fn implied_ends(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "li" => (&["li"], &["menu", "ol", "table", "td", "th", "ul"]),
        "dd" | "dt" => (&["dd", "dt"], &["dl", "table", "td", "th"]),
        "td" | "th" => (&["td", "th"], &["table", "tr"]),
        "tr" => (&["caption", "tr"], &["table"]),
        "tbody" | "tfoot" | "thead" => (&["caption", "tbody", "tfoot", "thead"], &["table"]),
        name if flow(name) != Flow::Inline => (&["p"], BOUNDARIES),
        _ => (&[], &[]),
    }
}

/// The elements beyond which an end tag does not look for its beginning.
pub(super) fn end_boundaries(name: &str) -> &'static [&'static str] {
    match name {
        "table" => &[],
        "caption" | "tbody" | "td" | "tfoot" | "th" | "thead" | "tr" => &["table"],
        _ => BOUNDARIES,
    }
}

/// Whether a reader of the page in a browser would not see the element.
pub(super) fn is_dropped(name: &str, tag: &StartTag<()>) -> bool {
    let role = attribute(tag, "role").unwrap_or_default();
    DROPPED.contains(&name)
        || tag.attributes.contains_key(b"hidden".as_slice())
        || attribute(tag, "aria-hidden").is_some_and(|value| value == "true")
        || DROPPED_ROLES.contains(&role.as_str())
        || attribute(tag, "style").is_some_and(|style| hides(&style))
}

fn hides(style: &str) -> bool {
    let style = style.to_ascii_lowercase();
    style.split(';').any(|declaration| {
        let Some((property, value)) = declaration.split_once(':') else {
            return false;
        };
        let value = value.replace("!important", "");
        let value = value.trim();
        let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
        let is_nothing = number.trim().parse() == Ok(0.0_f64);
        match property.trim() {
            "display" => value == "none",
            "visibility" => matches!(value, "hidden" | "collapse"),
            "font-size" | "opacity" => is_nothing,
            _ => false,
        }
    })
}

pub(super) fn attribute(tag: &StartTag<()>, name: &str) -> Option<String> {
    let value = tag.attributes.get(name.as_bytes())?;
    Some(String::from_utf8_lossy(value).into_owned())
}
