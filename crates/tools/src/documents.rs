//! The text of documents that are not text files: notebooks, Word, Excel and PowerPoint.
//!
//! Only what a reader needs to know what a document says; layout, images and formulas are left out. PDF is left out too:
//! no small library reads it well, and `pdftotext` does.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use zip::ZipArchive;

mod notebook;
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

/// Returns the text of a document, recognised by the end of its name; `None` for other files and broken documents.
pub(crate) fn extract(path: &Path, file: &mut File) -> Option<Extracted> {
    let extract: (fn(&mut File) -> Option<String>, &'static str) =
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "ipynb" => (notebook::text, "a notebook"),
            "docx" => (
                |file| word::text(&mut Package::open(file)?),
                "a Word document",
            ),
            "xlsx" => (
                |file| sheets::text(&mut Package::open(file)?),
                "an Excel workbook",
            ),
            "pptx" => (
                |file| slides::text(&mut Package::open(file)?),
                "a PowerPoint presentation",
            ),
            _ => return None,
        };
    let (extract, kind) = extract;
    let text = extract(file);
    file.rewind().ok()?;
    Some(Extracted { text: text?, kind })
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
