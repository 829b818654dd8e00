//! `||hidden||`, which markdown does not know.

use super::{Span, push};

const SIGN: &str = "||";

/// Hides what stands between two signs. Signs with a blank inside of them are others' (`a || b || c`).
pub(super) fn hide(spans: Vec<Span>) -> Vec<Span> {
    let has_two = spans
        .iter()
        .filter(|span| !span.style.is_code)
        .map(|span| span.text.matches(SIGN).count())
        .sum::<usize>()
        >= 2;
    if !has_two {
        return spans;
    }
    let pieces = cut(&spans);
    let mut hidden = Vec::new();
    let mut at = 0;
    while at < pieces.len() {
        match closing(&pieces, at) {
            Some(end) => {
                for piece in &pieces[at + 1..end] {
                    let mut style = piece.style.clone();
                    style.is_spoiler = true;
                    push(&mut hidden, &piece.text, &style);
                }
                at = end + 1;
            }
            None => {
                push(&mut hidden, &pieces[at].text, &pieces[at].style);
                at += 1;
            }
        }
    }
    hidden
}

/// Cuts spans so that every sign is a piece of its own.
fn cut(spans: &[Span]) -> Vec<Span> {
    let mut pieces = Vec::new();
    for span in spans {
        let mut piece = |text: &str| {
            if !text.is_empty() {
                pieces.push(Span {
                    text: text.to_owned(),
                    style: span.style.clone(),
                });
            }
        };
        if span.style.is_code {
            piece(&span.text);
            continue;
        }
        for (at, text) in span.text.split(SIGN).enumerate() {
            if at > 0 {
                piece(SIGN);
            }
            piece(text);
        }
    }
    pieces
}

fn is_sign(piece: &Span) -> bool {
    piece.text == SIGN && !piece.style.is_code
}

/// Where the sign is that closes the one at `start`.
fn closing(pieces: &[Span], start: usize) -> Option<usize> {
    if !is_sign(&pieces[start]) {
        return None;
    }
    let end = start + 1 + pieces[start + 1..].iter().position(is_sign)?;
    let inner = &pieces[start + 1..end];
    let begins_well = !inner.first()?.text.starts_with(char::is_whitespace);
    let ends_well = !inner.last()?.text.ends_with(char::is_whitespace);
    (begins_well && ends_well).then_some(end)
}
