//! What the codes in a page's strings stand for, and how wide they are.

use std::collections::HashMap;

use super::cmap::{CodeMap, number, utf_16};
use super::encoding::{Base, glyph};
use super::file::Document;
use super::object::{Dictionary, Object};

/// Of fonts that do not say: the fonts every reader has, mostly.
const WIDTH_USUAL: f64 = 0.5;
/// Of fonts with large sets of characters that do not say.
const WIDTH_USUAL_COMPOSITE: f64 = 1.0;
const WIDTHS_MAX: usize = 65_536;

pub(super) struct Font {
    map: Option<CodeMap>,
    code_bytes: usize,
    letters: Letters,
    /// In parts of the font's size.
    widths: HashMap<u32, f64>,
    width_usual: f64,
}

/// What codes stand for that the map does not have.
enum Letters {
    Simple {
        base: Base,
        differences: HashMap<u32, String>,
    },
    Utf16,
    Unknown,
}

/// One code of a string.
pub(super) struct Glyph {
    /// `None` if nobody knows.
    pub(super) text: Option<String>,
    pub(super) width: f64,
    pub(super) is_space: bool,
}

impl Font {
    pub(super) fn read(document: &Document<'_>, font: &Dictionary) -> Self {
        let map = match font.get("ToUnicode") {
            Some(Object::Reference(number)) => document.stream(*number),
            _ => None,
        };
        let map = map.map(|(_, bytes)| CodeMap::read(&bytes, document.budget));
        if font.has_name("Subtype", "Type0") {
            Self::composite(document, font, map)
        } else {
            Self::simple(document, font, map)
        }
    }

    fn simple(document: &Document<'_>, font: &Dictionary, map: Option<CodeMap>) -> Self {
        let encoding = document.get(font, "Encoding");
        let mut base = encoding.name().and_then(Base::named);
        let mut differences = HashMap::new();
        if let Some(encoding) = encoding.dictionary() {
            base = document
                .get(&encoding, "BaseEncoding")
                .name()
                .and_then(Base::named);
            let listed = document.get(&encoding, "Differences").array();
            differences = read_differences(&listed.unwrap_or_default());
        }
        let is_truetype = font.has_name("Subtype", "TrueType");
        let base = base.unwrap_or(if is_truetype {
            Base::WinAnsi
        } else {
            Base::Standard
        });
        let first = document.get(font, "FirstChar").count().unwrap_or(0) as u32;
        let widths = document.get(font, "Widths").array().unwrap_or_default();
        // The glyphs of such a font are drawn in a space of their own.
        let unit = if font.has_name("Subtype", "Type3") {
            type3_unit(document, font)
        } else {
            0.001
        };
        let widths = widths.into_iter().take(WIDTHS_MAX).zip(first..);
        Self {
            map,
            code_bytes: 1,
            letters: Letters::Simple { base, differences },
            widths: widths
                .filter_map(|(width, code)| Some((code, document.resolve(width).number()? * unit)))
                .collect(),
            width_usual: WIDTH_USUAL,
        }
    }

    fn composite(document: &Document<'_>, font: &Dictionary, map: Option<CodeMap>) -> Self {
        let encoding = document.get(font, "Encoding");
        let is_utf16 = |name: &str| name.contains("UTF16") || name.contains("UCS2");
        let letters = if encoding.name().is_some_and(is_utf16) {
            Letters::Utf16
        } else {
            Letters::Unknown
        };
        let descendant = document.get(font, "DescendantFonts").array();
        let descendant = descendant.and_then(|fonts| fonts.into_iter().next());
        let descendant = descendant.and_then(|font| document.resolve(font).dictionary());
        let descendant = descendant.unwrap_or_default();
        let usual = document.get(&descendant, "DW").number();
        let listed = document.get(&descendant, "W").array().unwrap_or_default();
        let listed: Vec<Object> = listed.into_iter().map(|it| document.resolve(it)).collect();
        Self {
            code_bytes: map.as_ref().and_then(|map| map.code_bytes).unwrap_or(2),
            map,
            letters,
            widths: read_widths(&listed),
            width_usual: usual.map_or(WIDTH_USUAL_COMPOSITE, |width| width / 1000.0),
        }
    }

    /// Returns what a string shows.
    pub(super) fn glyphs<'a>(&'a self, string: &'a [u8]) -> impl Iterator<Item = Glyph> + 'a {
        string.chunks(self.code_bytes).map(|bytes| {
            let code = number(bytes);
            let width = self.widths.get(&code).copied();
            Glyph {
                text: self.text(code, bytes),
                width: width.unwrap_or(self.width_usual),
                is_space: self.code_bytes == 1 && code == 32,
            }
        })
    }

    fn text(&self, code: u32, bytes: &[u8]) -> Option<String> {
        let mapped = self.map.as_ref().and_then(|map| map.text(code));
        if let Some(text) = mapped {
            return Some(text.to_owned());
        }
        match &self.letters {
            Letters::Simple { base, differences } => {
                let byte = u8::try_from(code).ok()?;
                let different = differences.get(&code).cloned();
                Some(different.unwrap_or_else(|| base.character(byte).to_string()))
            }
            Letters::Utf16 => Some(utf_16(bytes)),
            Letters::Unknown => None,
        }
    }
}

/// Reads `[32 /space /exclam 65 /A]`. Names that say nothing leave the byte as it is.
fn read_differences(listed: &[Object]) -> HashMap<u32, String> {
    let mut differences = HashMap::new();
    let mut code = 0;
    for object in listed {
        match object {
            Object::Number(number) => code = *number as u32,
            Object::Name(name) => {
                if let Some(text) = glyph(name) {
                    differences.insert(code, text);
                }
                code = code.wrapping_add(1);
            }
            _ => {}
        }
    }
    differences
}

/// Reads `[10 [500 600] 20 30 700]`: widths from code 10 on, and one for the codes from 20 to 30.
fn read_widths(listed: &[Object]) -> HashMap<u32, f64> {
    let mut widths = HashMap::new();
    let mut rest = listed;
    loop {
        rest = match rest {
            [first, Object::Array(several), rest @ ..] => {
                let first = first.count().unwrap_or(0) as u32;
                for (code, width) in (first..).zip(several) {
                    widths.extend(width.number().map(|width| (code, width / 1000.0)));
                }
                rest
            }
            [first, last, width, rest @ ..] => {
                if let (Some(first), Some(last), Some(width)) =
                    (first.count(), last.count(), width.number())
                {
                    let codes = (first as u32..=last as u32).take(WIDTHS_MAX);
                    widths.extend(codes.map(|code| (code, width / 1000.0)));
                }
                rest
            }
            _ => return widths,
        };
        if widths.len() >= WIDTHS_MAX {
            return widths;
        }
    }
}

fn type3_unit(document: &Document<'_>, font: &Dictionary) -> f64 {
    let matrix = document.get(font, "FontMatrix").array().unwrap_or_default();
    matrix.first().and_then(Object::number).unwrap_or(0.001)
}
