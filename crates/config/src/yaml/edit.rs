//! Changing one value in a text and leaving every other byte alone.
//!
//! The tree says which bytes to replace ([`put`], [`remove`]); what is put there is checked by reading the whole
//! text again ([`verify`]). What cannot be done safely is refused. No edit removes a comment: those inside a
//! replaced or removed value stay, on lines of their own.

use serde_json::Value;

use super::{Node, Position, page::Page, put, remove, verify};

/// Why a value cannot be changed in place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum EditError {
    /// A plain value stands where the path needs a section.
    NotASection { path: Vec<String>, at: Position },
    /// The list is too short for the index, or the segment is no index.
    NoSuchItem {
        path: Vec<String>,
        length: usize,
        at: Position,
    },
    /// The value is an alias: it stands elsewhere, and others share it.
    Shared { path: Vec<String>, at: Position },
    /// The text is laid out in a way we cannot change without disturbing the rest.
    Unsupported { path: Vec<String> },
}

/// Returns `text` with the value at `path` set, creating the sections on the way.
pub(crate) fn set(
    text: &str,
    root: Option<&Node>,
    path: &[String],
    value: &Value,
) -> Result<String, EditError> {
    let splice = put::plan(&Page::new(text, root), path, value)?;
    let mut expected = verify::read(root);
    verify::set_value(&mut expected, path, value.clone()).ok_or_else(|| unsupported(path))?;
    verify::apply(text, &splice, &expected).ok_or_else(|| unsupported(path))
}

/// Returns `text` without the value at `path` and the sections this empties; `None` when there is no such value.
pub(crate) fn unset(
    text: &str,
    root: Option<&Node>,
    path: &[String],
) -> Result<Option<String>, EditError> {
    let Some(root) = root else {
        return Ok(None);
    };
    let mut expected = verify::read(Some(root));
    if verify::unset_value(&mut expected, path).is_none() {
        return Ok(None);
    }
    let splice = remove::plan(&Page::new(text, Some(root)), root, path)?;
    let changed = verify::apply(text, &splice, &expected);
    changed.map(Some).ok_or_else(|| unsupported(path))
}

pub(super) fn unsupported(path: &[String]) -> EditError {
    EditError::Unsupported {
        path: path.to_vec(),
    }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
