//! PowerPoint presentations: the paragraphs of each slide.

use std::ops::ControlFlow;

use super::xml::{self, Piece};
use super::{Package, TEXT_BYTES_MAX};

pub(super) fn text(package: &mut Package<'_>) -> Option<String> {
    let mut numbers: Vec<u32> = package
        .names()
        .iter()
        .filter_map(|name| slide_number(name))
        .collect();
    numbers.sort_unstable();
    let mut text = String::new();
    for number in numbers {
        text.push_str(&format!("# --- Slide {number} ---\n"));
        let part = package.part(&format!("ppt/slides/slide{number}.xml"))?;
        let mut is_in_run = false;
        xml::each(part, |piece| {
            match piece {
                Piece::Open("t", _) => is_in_run = true,
                Piece::Close("t") => is_in_run = false,
                Piece::Text(part) if is_in_run => text.push_str(part),
                Piece::Close("br" | "p") if !text.ends_with('\n') => text.push('\n'),
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        if text.len() >= TEXT_BYTES_MAX {
            break;
        }
    }
    Some(text)
}

fn slide_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("ppt/slides/slide")?;
    number.strip_suffix(".xml")?.parse().ok()
}
