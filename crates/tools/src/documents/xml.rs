//! Goes through XML piece by piece, in little memory.

use std::io::BufRead;
use std::ops::ControlFlow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// One piece of a document. Names are without their prefix.
pub(super) enum Piece<'a> {
    Open(&'a str, Attributes<'a>),
    Text(&'a str),
    Close(&'a str),
}

#[derive(Clone, Copy)]
pub(super) struct Attributes<'a>(&'a BytesStart<'a>);

impl Attributes<'_> {
    /// Returns an attribute by its name with its prefix.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let attribute = self.0.try_get_attribute(name).ok()??;
        let value = quick_xml::escape::unescape(&attribute.value).ok()?;
        Some(value.into_owned())
    }
}

/// Shows each piece to `visit`, until it has seen enough. Returns `None` for what is not well-formed.
pub(super) fn each(
    source: impl BufRead,
    mut visit: impl FnMut(Piece<'_>) -> ControlFlow<()>,
) -> Option<()> {
    let mut reader = Reader::from_reader(source);
    let mut buffer = Vec::new();
    loop {
        let flow = match reader.read_event_into(&mut buffer).ok()? {
            Event::Start(start) => visit(open(&start)),
            Event::Empty(start) => match visit(open(&start)) {
                ControlFlow::Continue(()) => visit(Piece::Close(start.local_name().as_ref())),
                flow => flow,
            },
            Event::End(end) => visit(Piece::Close(end.local_name().as_ref())),
            Event::Text(text) => visit(Piece::Text(&text.xml10_content())),
            Event::CData(text) => visit(Piece::Text(&text.xml10_content())),
            Event::GeneralRef(name) => {
                let escaped = format!("&{};", name.into_inner());
                // What a document defines itself is not resolved.
                let text = quick_xml::escape::unescape(&escaped).unwrap_or_default();
                visit(Piece::Text(&text))
            }
            Event::Eof => return Some(()),
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                ControlFlow::Continue(())
            }
        };
        if flow.is_break() {
            return Some(());
        }
        buffer.clear();
    }
}

fn open<'a>(start: &'a BytesStart<'a>) -> Piece<'a> {
    Piece::Open(start.local_name().into_inner(), Attributes(start))
}
