//! Word documents: a line per paragraph, cells of tables separated by tabs.

use std::ops::ControlFlow;

use super::xml::{self, Piece};
use super::{Package, TEXT_BYTES_MAX};

pub(super) fn text(package: &mut Package<'_>) -> Option<String> {
    let mut text = String::new();
    let mut is_in_run = false;
    let mut cells = 0_usize;
    xml::each(package.part("word/document.xml")?, |piece| {
        match piece {
            Piece::Open("t", _) => is_in_run = true,
            Piece::Close("t") => is_in_run = false,
            Piece::Text(part) if is_in_run => text.push_str(part),
            Piece::Close("tab") => text.push('\t'),
            Piece::Close("br" | "cr") => text.push('\n'),
            Piece::Open("tc", _) => cells += 1,
            Piece::Close("tc") => {
                cells = cells.saturating_sub(1);
                text.push('\t');
            }
            Piece::Close("tr") => {
                text.truncate(text.trim_end_matches('\t').len());
                text.push('\n');
            }
            Piece::Close("p") if cells == 0 => text.push('\n'),
            // Paragraphs of one cell stay on its line.
            Piece::Close("p") if !text.ends_with(['\t', '\n', ' ']) => text.push(' '),
            _ => {}
        }
        if text.len() < TEXT_BYTES_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Some(text)
}
