//! The merge key `<<`, which takes the keys of another mapping.

use super::{Content, Entry, Role, YamlError};

/// Adds the keys that `<<` brings in and the mapping does not have; returns how many nodes that were.
pub(super) fn inherit(entries: &mut Vec<Entry>) -> Result<usize, YamlError> {
    let Some(merge) = entries.iter().find(|entry| entry.role == Role::Merge) else {
        return Ok(0);
    };
    let sources = match &merge.value.content {
        Content::List(items) => items.as_slice(),
        _ => std::slice::from_ref(&merge.value),
    };
    let mut inherited: Vec<Entry> = Vec::new();
    for source in sources {
        if !matches!(source.content, Content::Map(_)) {
            return Err(YamlError {
                at: source.at,
                message: "`<<` merges mappings, and this is none".to_owned(),
            });
        }
        for entry in source.entries() {
            let known = |other: &Entry| other.key == entry.key && other.role != Role::Merge;
            if !entries.iter().any(known) && !inherited.iter().any(known) {
                inherited.push(Entry {
                    role: Role::Inherited,
                    ..entry.clone()
                });
            }
        }
    }
    let added = inherited.iter().map(|entry| entry.value.size()).sum();
    entries.append(&mut inherited);
    Ok(added)
}
