//! A document as a table of objects. The table in the file is not used: objects are looked for, so that files with a
//! broken table are read like others.

use std::collections::{HashMap, HashSet};

use super::budget::Budget;
use super::filter;
use super::object::{Dictionary, Object, Reader};

/// Enough to see what a stream is for.
const STREAM_HEAD_BYTES: usize = 512;
/// Objects that are kept in mind.
const OBJECTS_MAX: usize = 2_000_000;
/// References that lead to references.
const HOPS_MAX: usize = 16;
/// Trees of pages are shallow.
const TREE_DEPTH_MAX: usize = 32;

pub(super) struct Document<'a> {
    bytes: &'a [u8],
    pub(super) budget: &'a Budget,
    places: HashMap<u32, ObjectOffset>,
    /// Unpacked streams that hold objects.
    unpacked: Vec<Vec<u8>>,
    root: Option<u32>,
    pub(super) is_encrypted: bool,
}

#[derive(Clone, Copy)]
enum ObjectOffset {
    /// Behind `obj` in the file.
    File(usize),
    Stream {
        stream: usize,
        at: usize,
    },
}

/// A page, with the resources it may have from the nodes above it.
pub(super) struct Page {
    pub(super) contents: Vec<u32>,
    pub(super) resources: Dictionary,
}

impl<'a> Document<'a> {
    /// Looks for all objects. Of several with one number the last is the newest.
    pub(super) fn read(bytes: &'a [u8], budget: &'a Budget) -> Self {
        let mut document = Self {
            bytes,
            budget,
            places: HashMap::new(),
            unpacked: Vec::new(),
            root: None,
            is_encrypted: false,
        };
        for at in occurrences(bytes, b"obj") {
            if document.places.len() == OBJECTS_MAX || budget.is_spent() {
                break;
            }
            if let Some(number) = number_before(bytes, at) {
                document.note(number, at + b"obj".len());
            }
        }
        for at in occurrences(bytes, b"trailer") {
            let trailer = Reader::new(bytes, at + b"trailer".len(), budget).next();
            if let Some(trailer) = trailer.and_then(Object::dictionary) {
                document.note_trailer(&trailer);
            }
        }
        document
    }

    fn note(&mut self, number: u32, at: usize) {
        self.places.insert(number, ObjectOffset::File(at));
        let head = &self.bytes[at..self.bytes.len().min(at + STREAM_HEAD_BYTES)];
        let head = &head[..occurrences(head, b"stream").next().unwrap_or(head.len())];
        let is_of = |kind: &[u8]| occurrences(head, kind).next().is_some();
        if is_of(b"/ObjStm") {
            self.note_packed(number);
        } else if is_of(b"/XRef") {
            let object = Reader::new(self.bytes, at, self.budget).next();
            if let Some(trailer) = object.and_then(Object::dictionary) {
                self.note_trailer(&trailer);
            }
        }
    }

    fn note_trailer(&mut self, trailer: &Dictionary) {
        self.is_encrypted |= !matches!(trailer.get("Encrypt"), None | Some(Object::Null));
        if let Some(Object::Reference(root)) = trailer.get("Root") {
            self.root = Some(*root);
        }
    }

    /// Notes the objects inside of an object stream: their numbers and places stand at its beginning.
    fn note_packed(&mut self, number: u32) -> Option<()> {
        let (dictionary, bytes) = self.stream(number)?;
        let first = self.get(&dictionary, "First").count()?;
        let count = self.get(&dictionary, "N").count()?;
        let stream = self.unpacked.len();
        let mut reader = Reader::new(&bytes[..first.min(bytes.len())], 0, self.budget);
        for _ in 0..count {
            let (Some(number), Some(at)) = (reader.next(), reader.next()) else {
                break;
            };
            let (Some(number), Some(at)) = (number.count(), at.count()) else {
                break;
            };
            if self.places.len() == OBJECTS_MAX {
                break;
            }
            if let Ok(number) = u32::try_from(number) {
                let at = first.saturating_add(at);
                self.places
                    .insert(number, ObjectOffset::Stream { stream, at });
            }
        }
        self.unpacked.push(bytes);
        Some(())
    }

    /// Returns an object; of a stream, the dictionary before it.
    fn object(&self, number: u32) -> Option<Object> {
        match *self.places.get(&number)? {
            ObjectOffset::File(at) => Reader::new(self.bytes, at, self.budget).next(),
            ObjectOffset::Stream { stream, at } => {
                Reader::new(self.unpacked.get(stream)?, at, self.budget).next()
            }
        }
    }

    /// Follows references to what they stand for.
    pub(super) fn resolve(&self, object: Object) -> Object {
        let mut object = object;
        for _ in 0..HOPS_MAX {
            match object {
                Object::Reference(number) => object = self.object(number).unwrap_or(Object::Null),
                object => return object,
            }
        }
        Object::Null
    }

    pub(super) fn get(&self, dictionary: &Dictionary, name: &str) -> Object {
        let object = dictionary.get(name).cloned();
        self.resolve(object.unwrap_or(Object::Null))
    }

    /// Returns a stream, unpacked.
    pub(super) fn stream(&self, number: u32) -> Option<(Dictionary, Vec<u8>)> {
        let ObjectOffset::File(at) = *self.places.get(&number)? else {
            return None;
        };
        let mut reader = Reader::new(self.bytes, at, self.budget);
        let dictionary = reader.next()?.dictionary()?;
        if !reader.next()?.is_keyword("stream") {
            return None;
        }
        let line_end = match reader.rest() {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => 0,
        };
        reader.skip(line_end);
        let length = self.get(&dictionary, "Length").count();
        let raw = stream_bytes(reader.rest(), length);
        let bytes = filter::decode(self, &dictionary, raw)?;
        Some((dictionary, bytes))
    }

    /// Visits the pages in their order, until one is too many.
    pub(super) fn each_page(&self, visit: &mut dyn FnMut(Page) -> bool) {
        let Some(pages) = self.catalogue().and_then(|catalogue| {
            let pages = catalogue.get("Pages");
            pages.cloned()
        }) else {
            return;
        };
        let mut seen = HashSet::new();
        self.each_page_below(
            pages,
            &Dictionary::default(),
            TREE_DEPTH_MAX,
            &mut seen,
            visit,
        );
    }

    fn catalogue(&self) -> Option<Dictionary> {
        let catalogue = |number: u32| {
            let object = self.object(number)?.dictionary()?;
            object.get("Pages").is_some().then_some(object)
        };
        let root = self.root.and_then(catalogue);
        let is_catalogue = |object: &Dictionary| object.has_name("Type", "Catalog");
        // Without a way to the catalogue, it is still somewhere.
        root.or_else(|| {
            let numbers = self.places.keys().copied();
            numbers.filter_map(catalogue).find(is_catalogue)
        })
    }

    /// Returns whether to go on.
    fn each_page_below(
        &self,
        node: Object,
        inherited: &Dictionary,
        depth: usize,
        seen: &mut HashSet<u32>,
        visit: &mut dyn FnMut(Page) -> bool,
    ) -> bool {
        if let Object::Reference(number) = node
            && !seen.insert(number)
        {
            return true;
        }
        let Some(node) = self.resolve(node).dictionary() else {
            return !self.budget.is_spent();
        };
        let own = self.get(&node, "Resources").dictionary();
        let resources = own.unwrap_or_else(|| inherited.clone());
        let Some(kids) = self.get(&node, "Kids").array() else {
            return visit(Page {
                contents: self.streams_of(node.get("Contents")),
                resources,
            });
        };
        let Some(depth) = depth.checked_sub(1) else {
            return true;
        };
        kids.into_iter()
            .all(|kid| self.each_page_below(kid, &resources, depth, seen, visit))
    }

    /// Returns the numbers of the streams a page is drawn by: one, or several in a list.
    fn streams_of(&self, contents: Option<&Object>) -> Vec<u32> {
        let number = |object: &Object| match object {
            Object::Reference(number) => Some(*number),
            _ => None,
        };
        let Some(contents) = contents else {
            return Vec::new();
        };
        match self.resolve(contents.clone()).array() {
            Some(several) => several.iter().filter_map(number).collect(),
            None => number(contents).into_iter().collect(),
        }
    }
}

/// Returns the places of a word.
fn occurrences<'a>(bytes: &'a [u8], word: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let windows = bytes.windows(word.len()).enumerate();
    windows.filter_map(move |(at, window)| (window == word).then_some(at))
}

/// Returns the number of an object whose `obj` stands here: `12 0 obj`.
fn number_before(bytes: &[u8], at: usize) -> Option<u32> {
    /// Longer ones are no numbers of objects.
    const DIGITS_MAX: usize = 10;
    let before = bytes[..at].trim_ascii_end();
    let generation = digits_at_end(before, DIGITS_MAX)?;
    let before = &before[..before.len() - generation.len()];
    if before.trim_ascii_end().len() == before.len() {
        return None;
    }
    let number = digits_at_end(before.trim_ascii_end(), DIGITS_MAX)?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

fn digits_at_end(bytes: &[u8], digits_max: usize) -> Option<&[u8]> {
    let digits = bytes.iter().rev().take(digits_max);
    let count = digits.take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| &bytes[bytes.len() - count..])
}

/// Returns what belongs to a stream. Its length is believed if the stream ends there.
fn stream_bytes(rest: &[u8], length: Option<usize>) -> &[u8] {
    const END: &[u8] = b"endstream";
    if let Some((stream, after)) = length.and_then(|length| rest.split_at_checked(length))
        && after.trim_ascii_start().starts_with(END)
    {
        return stream;
    }
    let end = occurrences(rest, END).next();
    rest[..end.unwrap_or(rest.len())].trim_ascii_end()
}
