//! The text of documents that are not text files: notebooks, Word, Excel, PowerPoint and PDF.
//!
//! Only what a reader needs to know what a document says; layout, images and formulas are left out.

use std::ffi::OsStr;
use std::io::{BufReader, Read};
use std::path::Path;

use zip::ZipArchive;

use crate::files::{Bytes, Source};

mod notebook;
mod pdf;
mod sheets;
mod slides;
mod word;
mod xml;

/// Larger parts of a document are cut: they may be packed a thousandfold.
const PART_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// More text than this is cut; it is read page by page anyway.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How the names of documents end.
const ENDS: &[&str] = &["ipynb", "docx", "xlsx", "pptx", "pdf"];

/// Text taken out of a document.
pub(crate) struct Extracted {
    pub(crate) text: String,
    pub(crate) kind: &'static str,
}

/// Returns the text of a document, recognised by the end of its name; `None` for other files and broken documents. An
/// error says what is wrong with a document that has no text to show, and what to do: the file `is …`.
pub(crate) fn extract(path: &Path, source: &mut dyn Source) -> Result<Option<Extracted>, String> {
    let end = path.extension().and_then(OsStr::to_str);
    let end = end.unwrap_or_default().to_ascii_lowercase();
    if !ENDS.contains(&end.as_str()) {
        return Ok(None);
    }
    let Ok(mut file) = source.whole() else {
        return Ok(None);
    };
    let file = file.as_mut();
    let office = |file, text: fn(&mut Package<'_>) -> Option<String>| {
        Package::open(file).and_then(|mut package| text(&mut package))
    };
    let (text, kind) = match end.as_str() {
        "ipynb" => (notebook::text(file), "a notebook"),
        "docx" => (office(file, word::text), "a Word document"),
        "xlsx" => (office(file, sheets::text), "an Excel workbook"),
        "pptx" => (office(file, slides::text), "a PowerPoint presentation"),
        "pdf" => (pdf::text(file).transpose()?, "a PDF document"),
        _ => return Ok(None),
    };
    match file.rewind() {
        Ok(()) => Ok(text.map(|text| Extracted { text, kind })),
        Err(_) => Ok(None),
    }
}

/// Returns the text of a PDF document; `None` if it is none. An error says why it has no text: it `is …`.
pub(crate) fn pdf_text(file: &mut dyn Bytes) -> Option<Result<String, String>> {
    pdf::text(file)
}

/// An office document: parts in an archive.
struct Package<'a> {
    archive: ZipArchive<BufReader<&'a mut dyn Bytes>>,
}

impl<'a> Package<'a> {
    fn open(file: &'a mut dyn Bytes) -> Option<Self> {
        let archive = ZipArchive::new(BufReader::new(file)).ok()?;
        Some(Self { archive })
    }

    /// Opens a part for reading; it ends early when it is too long.
    fn part(&mut self, name: &str) -> Option<impl std::io::BufRead + '_> {
        let part = self.archive.by_name(name).ok()?;
        Some(BufReader::new(part.take(PART_BYTES_MAX)))
    }

    fn names(&self) -> Vec<String> {
        let names = self.archive.file_names();
        names
            .filter_map(|name| Some(name.ok()?.into_owned()))
            .collect()
    }
}

#[cfg(test)]
mod tests;
