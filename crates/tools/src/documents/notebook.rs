//! Jupyter notebooks: the source of each cell.

use std::io::{BufReader, Read};

use serde::Deserialize;

use super::PART_BYTES_MAX;
use crate::files::Bytes;

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default)]
    source: Source,
}

/// One text, or its lines with their breaks.
#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Text(String),
    Lines(Vec<String>),
}

impl Default for Source {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

pub(super) fn text(file: &mut dyn Bytes) -> Option<String> {
    let source = BufReader::new(file.take(PART_BYTES_MAX));
    let notebook: Notebook = serde_json::from_reader(source).ok()?;
    let mut text = String::new();
    for (index, cell) in notebook.cells.into_iter().enumerate() {
        let kind = match cell.cell_type.as_str() {
            "markdown" => "Markdown",
            "code" => "Code",
            _ => "Raw",
        };
        let source = match cell.source {
            Source::Text(text) => text,
            Source::Lines(lines) => lines.concat(),
        };
        text.push_str(&format!(
            "# --- {kind} cell {} ---\n{}\n",
            index + 1,
            source.trim_end()
        ));
    }
    Some(text)
}
