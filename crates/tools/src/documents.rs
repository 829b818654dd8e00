//! The text of documents that are not text files: notebooks, Word, Excel, PowerPoint and PDF.
//!
//! Only what a reader needs to know what a document says; layout, images and formulas are left out.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use zip::ZipArchive;

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

/// Text taken out of a document.
pub(crate) struct Extracted {
    pub(crate) text: String,
    pub(crate) kind: &'static str,
}

/// Returns the text of a document, recognised by the end of its name; `None` for other files and broken documents. An
/// error says what is wrong with a document that has no text to show, and what to do: the file `is …`.
pub(crate) fn extract(path: &Path, file: &mut File) -> Result<Option<Extracted>, String> {
    let Some(end) = path.extension().and_then(OsStr::to_str) else {
        return Ok(None);
    };
    let office = |file, text: fn(&mut Package<'_>) -> Option<String>| {
        Package::open(file).and_then(|mut package| text(&mut package))
    };
    let (text, kind) = match end.to_ascii_lowercase().as_str() {
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

/// An office document: parts in an archive.
struct Package<'a> {
    archive: ZipArchive<BufReader<&'a mut File>>,
}

impl<'a> Package<'a> {
    fn open(file: &'a mut File) -> Option<Self> {
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
