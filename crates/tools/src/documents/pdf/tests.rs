use std::io::Write as _;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;

use super::*;

/// Hostile documents must come to an end; how soon depends on the machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Writes a document of these objects, numbered from 1; the first is the catalogue.
fn document<T: AsRef<[u8]>>(objects: &[T]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    for (at, object) in objects.iter().enumerate() {
        bytes.extend(format!("{} 0 obj\n", at + 1).into_bytes());
        bytes.extend(object.as_ref());
        bytes.extend(b"\nendobj\n");
    }
    bytes.extend(b"trailer << /Root 1 0 R >>\n%%EOF");
    bytes
}

fn stream(entries: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = format!("<< {entries} /Length {} >>\nstream\n", content.len()).into_bytes();
    bytes.extend(content);
    bytes.extend(b"\nendstream");
    bytes
}

fn packed(entries: &str, content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    let packed = encoder.finish().unwrap();
    stream(&format!("{entries} /Filter /FlateDecode"), &packed)
}

const CATALOGUE: &str = "<< /Type /Catalog /Pages 2 0 R >>";
const FONT: &str =
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

/// A document with one page in one font.
fn page(content: &[u8]) -> Vec<u8> {
    page_in(FONT, content)
}

fn page_in(font: &str, content: &[u8]) -> Vec<u8> {
    document(&[
        CATALOGUE.as_bytes(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 /Resources << /Font << /F 4 0 R >> >> >>",
        b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>",
        font.as_bytes(),
        &packed("", content),
        &stream("", b"1 beginbfrange <0001> <001a> <0061> endbfrange"),
    ])
}

/// The text of the only page.
fn said(bytes: &[u8]) -> String {
    let text = text_of(bytes).unwrap();
    text.strip_prefix("# --- Page 1 ---\n").unwrap().to_owned()
}

#[test]
fn words_and_lines_are_told_apart_by_where_they_stand() {
    for (content, text) in [
        (
            "BT /F 10 Tf (Hello) Tj 0 -12 Td (World) Tj ET",
            "Hello\nWorld\n",
        ),
        (
            "BT /F 10 Tf [(Hel) 20 (lo) -300 (World)] TJ ET",
            "Hello World\n",
        ),
        ("BT /F 10 Tf (one) Tj 80 0 Td (two) Tj ET", "one two\n"),
        (
            "BT /F 10 Tf 12 TL (a) Tj T* (b) Tj (c) ' 1 1 (d) \" ET",
            "a\nb\nc\nd\n",
        ),
        (
            "BT /F 1 Tf 0 10 -10 0 50 50 Tm (up) Tj 1.2 0 Td (wards) Tj ET",
            "up wards\n",
        ),
        ("BT /F 10 Tf (caf\\351 \\200 5) Tj ET", "café € 5\n"),
        (
            "BI /W 1 ID \0\x01(no) Tj EI BT /F 10 Tf (yes) Tj ET",
            "yes\n",
        ),
    ] {
        assert_eq!(said(&page(content.as_bytes())), text, "{content}");
    }
}

#[test]
fn fonts_say_which_letters_they_show() {
    let composite = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R \
        /DescendantFonts [<< /DW 500 >>] >>";
    let content = b"BT /F 10 Tf <000300010014> Tj ET";
    assert_eq!(said(&page_in(composite, content)), "cat\n");
    let differences =
        "<< /Type /Font /Subtype /Type1 /Encoding << /Differences [65 /ffi /Adieresis] >> >>";
    assert_eq!(
        said(&page_in(differences, b"BT /F 10 Tf (oAceB) Tj ET")),
        "oficeÄ\n".replace("fi", "ffi")
    );
    let unmapped = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H >>";
    let error = text_of(&page_in(unmapped, content)).unwrap_err();
    assert!(error.contains("do not say which letters"), "{error}");
}

#[test]
fn pages_are_marked_and_objects_may_be_packed() {
    let kids = "2 0 3 40 4 80 << /Kids [3 0 R 4 0 R] >>                 ";
    let header = 16;
    let second = format!("{:<40}", "<< /Contents [5 0 R 6 0 R] >>");
    let third =
        "<< /Contents 6 0 R /Resources << /Font << /F 7 0 R >> /XObject << /X 8 0 R >> >> >>";
    let objects = format!(
        "{:<16}{:<40}{second}{third}",
        "2 0 3 40 4 80",
        &kids[header - 2..].trim()
    );
    let mut bytes = document(&[CATALOGUE]);
    let mut add = |number: u32, object: &[u8]| {
        bytes.extend(format!("{number} 0 obj ").into_bytes());
        bytes.extend(object);
        bytes.extend(b" endobj\n");
    };
    add(
        9,
        &packed(
            &format!("/Type /ObjStm /N 3 /First {header}"),
            objects.as_bytes(),
        ),
    );
    add(5, &stream("", b"BT"));
    add(6, &stream("", b"BT /F 9 Tf (page) Tj ET /X Do"));
    add(7, FONT.as_bytes());
    add(
        8,
        &stream("/Subtype /Form", b"BT /F 9 Tf 0 -20 Td (form) Tj ET"),
    );
    assert_eq!(
        text_of(&bytes).unwrap(),
        "# --- Page 1 ---\n\n# --- Page 2 ---\npage\nform\n"
    );
}

#[test]
fn a_document_without_text_says_why() {
    let scanned = page(b"q 600 0 0 800 0 0 cm /Image Do Q");
    let locked = [page(b"BT ET"), b"trailer << /Encrypt 9 0 R >>".to_vec()].concat();
    for (bytes, why) in [
        (scanned, "without text (1 pages): scanned"),
        (locked, "is an encrypted PDF"),
        (
            b"%PDF-1.7 and then garbage \xff\0(((".to_vec(),
            "without pages",
        ),
    ] {
        let error = text_of(&bytes).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn hostile_documents_come_to_an_end() {
    let start = Instant::now();
    let deep = "[".repeat(1_000_000);
    let zeros = vec![b'0'; 2 * 1024 * 1024];
    let pairs = "1 0 ".repeat(20_000);
    let catalogue = CATALOGUE.as_bytes();
    let form = "/Subtype /Form /Resources << /XObject << /X 4 0 R >> >>";
    let documents = [
        // A tree of pages, and references, that lead to themselves.
        document(&[catalogue, b"<< /Kids [2 0 R 2 0 R] >>"]),
        document(&[catalogue, b"2 0 R"]),
        // A form that draws itself twice, and so on.
        document(&[
            catalogue,
            b"<< /Kids [3 0 R] /Resources << /XObject << /X 4 0 R >> >> >>",
            b"<< /Contents 4 0 R >>",
            &stream(form, "/X Do ".repeat(50).as_bytes()),
        ]),
        document(&[catalogue, deep.as_bytes()]),
        // A few bytes that become many, several times.
        document(&vec![packed("/Type /ObjStm /N 1 /First 10", &zeros); 12]),
        // Thousands of objects that are all the same large one.
        document(&[packed(
            "/Type /ObjStm /N 20000 /First 80000",
            format!("{pairs}[{pairs}").as_bytes(),
        )]),
        document(&[
            catalogue,
            b"<< /Kids [3 0 R] >>",
            b"<< /Contents 4 0 R >>",
            &packed("", &zeros),
        ]),
    ];
    for bytes in documents {
        text_of(&bytes).unwrap_err();
    }
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
}

proptest! {
    #[test]
    fn a_damaged_document_never_panics(at in 0_usize..700, bytes in prop::collection::vec(any::<u8>(), 1..8)) {
        let mut document = page(b"BT /F 10 Tf 1 0 0 1 5 5 Tm [(Hel) 20 (lo)] TJ <41> Tj ET q Q 1 2 3 cm");
        let at = at % document.len();
        let end = document.len().min(at + bytes.len());
        document.splice(at..end, bytes);
        let _ = text_of(&document);
    }

    #[test]
    fn a_damaged_page_never_panics(content in "[\\[\\]()<>/ A-Za-z0-9'\".*-]{0,200}") {
        let _ = text_of(&page(format!("BT /F 9 Tf {content}").as_bytes()));
    }
}
