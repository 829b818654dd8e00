use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn package(&self, name: &str, parts: &[(&str, &str)]) -> PathBuf {
        let path = self.0.path().join(name);
        let mut archive = ZipWriter::new(File::create(&path).unwrap());
        for (name, content) in parts {
            archive
                .start_file(*name, SimpleFileOptions::default())
                .unwrap();
            archive.write_all(content.as_bytes()).unwrap();
        }
        archive.finish().unwrap();
        path
    }

    fn text(&self, path: &Path) -> Option<String> {
        let extracted = extract(path, &mut File::open(path).unwrap()).unwrap();
        extracted.map(|extracted| extracted.text)
    }
}

#[test]
fn a_notebook_shows_its_cells() {
    let place = Place::new();
    let path = place.0.path().join("a.ipynb");
    let notebook = r##"{"nbformat": 4, "cells": [
        {"cell_type": "markdown", "source": "# Title\n"},
        {"cell_type": "code", "source": ["x = 1\n", "print(x)"], "outputs": [{"data": {"image/png": "aaaa"}}]}
    ]}"##;
    std::fs::write(&path, notebook).unwrap();
    assert_eq!(
        place.text(&path).unwrap(),
        "# --- Markdown cell 1 ---\n# Title\n# --- Code cell 2 ---\nx = 1\nprint(x)\n"
    );
    std::fs::write(&path, "{").unwrap();
    assert_eq!(place.text(&path), None);
}

#[test]
fn a_word_document_shows_paragraphs_and_tables() {
    let place = Place::new();
    let document = "<w:document xmlns:w='x'><w:body>\
        <w:p><w:r><w:t>Hello &amp; good</w:t><w:tab/><w:t>day</w:t></w:r></w:p>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc>\
        </w:tr></w:tbl><w:p/></w:body></w:document>";
    let path = place.package("a.docx", &[("word/document.xml", document)]);
    assert_eq!(place.text(&path).unwrap(), "Hello & good\tday\na \tb \n\n");
}

#[test]
fn a_presentation_shows_its_slides_in_order() {
    let place = Place::new();
    let slide = |text: &str| format!("<p:sld><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:sld>");
    let (second, tenth) = (slide("two"), slide("ten"));
    let path = place.package(
        "a.pptx",
        &[
            ("ppt/slides/slide10.xml", &tenth),
            ("ppt/slides/slide2.xml", &second),
        ],
    );
    assert_eq!(
        place.text(&path).unwrap(),
        "# --- Slide 2 ---\ntwo\n# --- Slide 10 ---\nten\n"
    );
}

#[test]
fn a_workbook_shows_its_visible_sheets() {
    let place = Place::new();
    let path = place.package(
        "a.xlsx",
        &[
            (
                "xl/workbook.xml",
                "<workbook><sheets><sheet name='One' r:id='r1'/><sheet name='Two' state='hidden' r:id='r2'/></sheets></workbook>",
            ),
            (
                "xl/_rels/workbook.xml.rels",
                "<Relationships><Relationship Id='r1' Target='worksheets/sheet1.xml'/>\
                 <Relationship Id='r2' Target='/xl/worksheets/sheet2.xml'/></Relationships>",
            ),
            (
                "xl/sharedStrings.xml",
                "<sst><si><t>name</t></si><si><r><t>to</t></r><r><t>tal</t></r><rPh><t>x</t></rPh></si></sst>",
            ),
            (
                "xl/worksheets/sheet1.xml",
                "<worksheet><sheetData><row><c r='A1' t='s'><v>0</v></c><c r='C1' t='s'><v>1</v></c></row>\
                 <row><c r='A2' t='inlineStr'><is><t>a b</t></is></c><c r='C2'><f>1+1</f><v>2</v></c></row>\
                 <row><c r='B3' t='b'><v>1</v></c></row></sheetData></worksheet>",
            ),
            ("xl/worksheets/sheet2.xml", "<worksheet/>"),
        ],
    );
    assert_eq!(
        place.text(&path).unwrap(),
        "# --- Sheet One ---\nname\t\ttotal\na b\t\t2\n\tTRUE\n"
    );
}

#[test]
fn a_broken_document_is_not_taken_for_one() {
    let place = Place::new();
    for (name, parts) in [
        ("a.docx", &[("word/document.xml", "<a><b></a>")][..]),
        ("b.docx", &[]),
        ("c.xlsx", &[("xl/workbook.xml", "")]),
    ] {
        let path = place.package(name, parts);
        assert_eq!(place.text(&path), None, "{name}");
    }
    let path = place.0.path().join("d.docx");
    std::fs::write(&path, "PK\x03\x04 not a zip").unwrap();
    assert_eq!(place.text(&path), None);
}

#[test]
fn a_part_that_unpacks_without_end_is_cut() {
    let place = Place::new();
    let line = "x".repeat(64 * 1024) + "<w:br/>";
    let document = format!("<w:p><w:t>{}</w:t></w:p>", line.repeat(200));
    let path = place.package("bomb.docx", &[("word/document.xml", &document)]);
    let text = place.text(&path).unwrap();
    assert!((TEXT_BYTES_MAX..TEXT_BYTES_MAX + 100_000).contains(&text.len()));
}
