//! What is near a path that is not what was asked for.

use std::path::Path;

use hermes_core::text::nearest;

use crate::files::Files;

/// Names of a folder that are shown, or searched for near ones.
const NAMES_MAX: usize = 1000;
const NAMES_SHOWN: usize = 30;

/// Says what is in a folder that was taken for a file.
pub(crate) fn describe_folder(files: &dyn Files, path: &Path) -> String {
    let shown = path.display();
    let mut names = match files.names(path, NAMES_MAX) {
        Ok(names) => names,
        Err(error) => return format!("`{shown}` is a folder that cannot be listed: {error}"),
    };
    names.sort();
    let more = names.len().saturating_sub(NAMES_SHOWN);
    names.truncate(NAMES_SHOWN);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more (find them with `search_files`)"),
    };
    match names.as_slice() {
        [] => format!("`{shown}` is an empty folder"),
        names => format!(
            "`{shown}` is a folder; name a file in it: {}{more}",
            names.join(", ")
        ),
    }
}

/// Says that there is nothing at a path, and what there is instead.
pub(crate) fn describe_missing(files: &dyn Files, path: &Path) -> String {
    let shown = path.display();
    let Some(folder) = path.parent() else {
        return format!("`{shown}` does not exist");
    };
    let existing = files.nearest_folder(folder);
    if existing != folder {
        let existing = existing.display();
        return format!("`{shown}` does not exist; the path exists only as far as `{existing}`");
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let names = files.names(folder, NAMES_MAX).unwrap_or_default();
    let folder = folder.display();
    match nearest(&name, names.iter().map(String::as_str)).as_slice() {
        [] => format!("`{shown}` does not exist; nothing in `{folder}` has a similar name"),
        near => format!(
            "`{shown}` does not exist; similar names in `{folder}`: {}",
            near.join(", ")
        ),
    }
}
