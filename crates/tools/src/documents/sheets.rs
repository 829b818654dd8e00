//! Excel workbooks: the visible sheets, a line per row, cells separated by tabs. Values as they were last calculated.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::xml::{self, Piece};
use super::{Package, TEXT_BYTES_MAX};

/// Rows and columns shown of one sheet.
const ROWS_MAX: usize = 5000;
const COLUMNS_MAX: usize = 256;

/// Texts that cells share.
const STRINGS_MAX: usize = 1_000_000;

pub(super) fn text(package: &mut Package<'_>) -> Option<String> {
    let sheets = sheets(package)?;
    let strings = shared_strings(package);
    let mut text = String::new();
    for sheet in sheets {
        text.push_str(&format!("# --- Sheet {} ---\n", sheet.name));
        let Some(part) = package.part(&sheet.part) else {
            continue;
        };
        let mut rows = Rows {
            text,
            strings: &strings,
            rows: 0,
            cells: Vec::new(),
            cell: Cell::default(),
            is_value: false,
        };
        xml::each(part, |piece| rows.read(piece))?;
        text = rows.text;
        if text.len() >= TEXT_BYTES_MAX {
            break;
        }
    }
    Some(text)
}

struct Sheet {
    name: String,
    part: String,
}

/// Returns the visible sheets in their order.
fn sheets(package: &mut Package<'_>) -> Option<Vec<Sheet>> {
    let mut parts = HashMap::new();
    xml::each(package.part("xl/_rels/workbook.xml.rels")?, |piece| {
        if let Piece::Open("Relationship", attributes) = piece
            && let (Some(id), Some(target)) = (attributes.get("Id"), attributes.get("Target"))
        {
            let part = match target.strip_prefix('/') {
                Some(absolute) => absolute.to_owned(),
                None => format!("xl/{target}"),
            };
            parts.insert(id, part);
        }
        ControlFlow::Continue(())
    })?;
    let mut sheets = Vec::new();
    xml::each(package.part("xl/workbook.xml")?, |piece| {
        if let Piece::Open("sheet", attributes) = piece
            && attributes
                .get("state")
                .is_none_or(|state| state == "visible")
            && let Some(part) = attributes.get("r:id").and_then(|id| parts.remove(&id))
        {
            let name = attributes.get("name").unwrap_or_default();
            sheets.push(Sheet { name, part });
        }
        ControlFlow::Continue(())
    })?;
    Some(sheets)
}

/// Returns the texts that cells refer to by number; none if the workbook has none.
fn shared_strings(package: &mut Package<'_>) -> Vec<String> {
    let mut strings = Vec::new();
    let Some(part) = package.part("xl/sharedStrings.xml") else {
        return strings;
    };
    let (mut is_text, mut is_phonetic) = (false, false);
    // A broken end leaves the cells that refer to it empty.
    let _ = xml::each(part, |piece| {
        match piece {
            Piece::Open("si", _) => strings.push(String::new()),
            Piece::Open("rPh", _) => is_phonetic = true,
            Piece::Close("rPh") => is_phonetic = false,
            Piece::Open("t", _) => is_text = true,
            Piece::Close("t") => is_text = false,
            Piece::Text(part) if is_text && !is_phonetic => {
                if let Some(last) = strings.last_mut() {
                    last.push_str(part);
                }
            }
            _ => {}
        }
        if strings.len() < STRINGS_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    strings
}

/// The cell that is being read.
#[derive(Default)]
struct Cell {
    column: usize,
    kind: String,
    value: String,
}

struct Rows<'a> {
    text: String,
    strings: &'a [String],
    rows: usize,
    cells: Vec<String>,
    cell: Cell,
    is_value: bool,
}

impl Rows<'_> {
    fn read(&mut self, piece: Piece<'_>) -> ControlFlow<()> {
        match piece {
            Piece::Open("c", attributes) => {
                let place = attributes.get("r");
                self.cell = Cell {
                    column: place
                        .and_then(|place| column(&place))
                        .unwrap_or(self.cells.len()),
                    kind: attributes.get("t").unwrap_or_default(),
                    value: String::new(),
                };
            }
            Piece::Open("v" | "t", _) => self.is_value = true,
            Piece::Close("v" | "t") => self.is_value = false,
            Piece::Text(part) if self.is_value => self.cell.value.push_str(part),
            Piece::Close("c") => self.end_cell(),
            Piece::Close("row") => return self.end_row(),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn end_cell(&mut self) {
        let cell = std::mem::take(&mut self.cell);
        if cell.column >= COLUMNS_MAX {
            return;
        }
        if self.cells.len() <= cell.column {
            self.cells.resize(cell.column + 1, String::new());
        }
        let value = match cell.kind.as_str() {
            "s" => {
                let index = cell.value.trim().parse::<usize>().ok();
                let shared = index.and_then(|index| self.strings.get(index));
                shared.cloned().unwrap_or_default()
            }
            "b" if cell.value == "1" => "TRUE".to_owned(),
            "b" => "FALSE".to_owned(),
            _ => cell.value,
        };
        self.cells[cell.column] = value.replace(['\n', '\t', '\r'], " ");
    }

    fn end_row(&mut self) -> ControlFlow<()> {
        let cells = std::mem::take(&mut self.cells);
        self.text.push_str(&cells.join("\t"));
        self.text.push('\n');
        self.rows += 1;
        if self.rows < ROWS_MAX && self.text.len() < TEXT_BYTES_MAX {
            return ControlFlow::Continue(());
        }
        self.text.push_str("[more rows are not shown]\n");
        ControlFlow::Break(())
    }
}

/// Returns the number of the column in a place such as `AB12`, from 0.
fn column(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic).take(4);
    let number = letters.fold(0, |number, letter| {
        number * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1
    });
    number.checked_sub(1)
}
