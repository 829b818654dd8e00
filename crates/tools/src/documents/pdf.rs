//! PDF: the text of each page, as far as its fonts say what their letters are.
//!
//! `docs/decisions/0012` says why this is our own. Reading order: `file` (where objects are), `object` (what they are),
//! `content` (what a page says), `font`. Left out on purpose: encrypted documents, forms and comments, text in pictures.

mod budget;
mod cmap;
mod content;
mod encoding;
mod file;
mod filter;
mod font;
mod object;

use std::io::Read;

use self::budget::Budget;
use self::content::Painter;
use self::file::Document;
use super::TEXT_BYTES_MAX;
use crate::files::Bytes;

/// The whole file is in memory.
const FILE_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Where a document must say that it is one.
const SIGNATURE_BYTES: usize = 1024;
const ELSEWHERE: &str = "`pdftotext -layout FILE -` in `terminal` may show its text";

/// Returns the text of a document; `None` if the file is none, and an error that says why it has no text.
pub(super) fn text(file: &mut dyn Bytes) -> Option<Result<String, String>> {
    let mut bytes = Vec::new();
    let limit = FILE_BYTES_MAX + 1;
    file.take(limit).read_to_end(&mut bytes).ok()?;
    let beginning = &bytes[..bytes.len().min(SIGNATURE_BYTES)];
    if !beginning.windows(4).any(|window| window == b"%PDF") {
        return None;
    }
    if bytes.len() as u64 == limit {
        return Some(Err(format!(
            "is a PDF document of more than {} MB; {ELSEWHERE}, some pages at a time (-f, -l)",
            FILE_BYTES_MAX / 1024 / 1024
        )));
    }
    Some(text_of(&bytes))
}

fn text_of(bytes: &[u8]) -> Result<String, String> {
    let budget = Budget::new();
    let document = Document::read(bytes, &budget);
    if document.is_encrypted {
        return Err(format!(
            "is an encrypted PDF document; {ELSEWHERE} if it opens without a password, otherwise ask the user for it"
        ));
    }
    let mut painter = Painter::new(&document);
    let mut text = String::new();
    let (mut pages, mut has_text) = (0_usize, false);
    document.each_page(&mut |page| {
        pages += 1;
        let said = painter.page(&page, TEXT_BYTES_MAX.saturating_sub(text.len()));
        has_text |= !said.trim().is_empty();
        text.push_str(&format!("# --- Page {pages} ---\n{}\n", said.trim_end()));
        text.len() < TEXT_BYTES_MAX && !budget.is_spent()
    });
    if !has_text {
        return Err(without_text(pages, painter.has_unknown, budget.is_spent()));
    }
    if painter.has_unknown {
        text.push_str("[some text is missing: its fonts do not say which letters they show]\n");
    }
    if budget.is_spent() || text.len() >= TEXT_BYTES_MAX {
        text.push_str(&format!(
            "[the rest is left out: the document is too large; {ELSEWHERE}]\n"
        ));
    }
    Ok(text)
}

fn without_text(pages: usize, has_unknown: bool, is_spent: bool) -> String {
    if is_spent {
        return format!("is a PDF document that takes too much to read; {ELSEWHERE}");
    }
    match (pages, has_unknown) {
        (0, _) => format!("is a PDF document without pages, perhaps a damaged one; {ELSEWHERE}"),
        (_, true) => format!(
            "is a PDF document whose fonts do not say which letters they show ({pages} pages); an OCR program such as \
             `ocrmypdf` can read it"
        ),
        (_, false) => format!(
            "is a PDF document without text ({pages} pages): scanned, perhaps; an OCR program such as `ocrmypdf` can \
             read it"
        ),
    }
}

#[cfg(test)]
mod tests;
