//! Sends the body of an answer, with its faults. [`plan`] decides every byte and cut beforehand;
//! [`play`] only writes and waits.

use std::{io, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::sleep,
};

use super::{
    fault::{Ending, Faults, Point},
    http::Connection,
    wire::{Frame, Wire},
};

/// Collects this much before it writes, when nothing asks for single writes.
const WRITE_BYTES: usize = 64 * 1024;

/// Ends a body that is sent in HTTP chunks.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Lets the client read what was sent before a reset, which would discard it.
const RESET_GRACE: Duration = Duration::from_millis(20);

/// A body, decided.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Each is written as one HTTP chunk.
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) finale: Finale,
}

/// What follows the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finale {
    /// The end of the HTTP body.
    End,
    /// The end of the HTTP body and of the connection.
    EndAndClose,
    Stall,
    Reset,
    Truncate,
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    KeepAlive,
    Close,
    Reset,
}

/// Decides what is written: the frames up to the break, with the noise, in slices.
pub(crate) fn plan(wire: Wire, frames: Vec<Frame>, faults: &Faults) -> Plan {
    let (mut pieces, is_broken) = up_to_break(wire, frames, faults);
    let mut finale = Finale::End;
    if let (true, Some(broken)) = (is_broken, &faults.break_off) {
        if let Ending::Error { kind, message } = &broken.how {
            pieces.push(wire.error(kind, message).bytes);
        }
        finale = Finale::of(&broken.how);
    }
    if !faults.slice_bytes.is_empty() {
        pieces = slice(&pieces.concat().into(), &faults.slice_bytes);
    }
    Plan { pieces, finale }
}

/// Writes the head of the response and the planned body.
pub(crate) async fn play(
    connection: &mut Connection,
    head: String,
    plan: &Plan,
    faults: &Faults,
) -> io::Result<After> {
    let mut unsent = head.into_bytes();
    if !faults.body_delay().is_zero() {
        send(connection, &mut unsent).await?;
        sleep(faults.body_delay()).await;
    }
    let is_paced = faults.chunk_delay_ms > 0;
    let is_sliced = !faults.slice_bytes.is_empty();
    for (index, piece) in plan.pieces.iter().enumerate() {
        if is_paced && index > 0 {
            sleep(faults.chunk_delay()).await;
        }
        push_http_chunk(&mut unsent, piece);
        if is_paced || is_sliced || unsent.len() >= WRITE_BYTES {
            send(connection, &mut unsent).await?;
        }
    }
    if matches!(plan.finale, Finale::End | Finale::EndAndClose) {
        unsent.extend_from_slice(LAST_CHUNK);
    }
    send(connection, &mut unsent).await?;
    finish(connection, plan.finale).await
}

/// Ends an answer of which nothing has been sent.
pub(crate) async fn end_before_headers(
    connection: &mut Connection,
    how: &Ending,
) -> io::Result<After> {
    match how {
        Ending::Stall => finish(connection, Finale::Stall).await,
        Ending::Reset => finish(connection, Finale::Reset).await,
        Ending::Truncate | Ending::Close | Ending::Error { .. } => Ok(After::Close),
    }
}

impl Finale {
    fn of(ending: &Ending) -> Self {
        match ending {
            Ending::Stall => Self::Stall,
            Ending::Reset => Self::Reset,
            Ending::Truncate => Self::Truncate,
            Ending::Close => Self::EndAndClose,
            Ending::Error { .. } => Self::End,
        }
    }
}

/// Returns what is written before the break, and whether the break is reached.
fn up_to_break(wire: Wire, frames: Vec<Frame>, faults: &Faults) -> (Vec<Bytes>, bool) {
    match faults.break_off.as_ref().map(|broken| broken.at) {
        Some(Point::Chunks(count)) => up_to_chunk(wire, frames, faults, count),
        Some(Point::Bytes(count)) => {
            let (pieces, _) = up_to_chunk(wire, frames, faults, usize::MAX);
            up_to_byte(pieces, count)
        }
        Some(Point::BeforeHeaders) | None => up_to_chunk(wire, frames, faults, usize::MAX),
    }
}

/// Returns the frames up to the end of the chunk with this number, with the noise between them.
fn up_to_chunk(
    wire: Wire,
    frames: Vec<Frame>,
    faults: &Faults,
    chunks_max: usize,
) -> (Vec<Bytes>, bool) {
    let noise_after = |count: usize| {
        let here = faults.noise.iter().filter(move |n| n.after_chunks == count);
        here.map(|noise| wire.noise(&noise.kind).bytes)
    };
    let mut pieces: Vec<Bytes> = noise_after(0).collect();
    let mut chunk_count = 0;
    for frame in frames {
        if chunk_count == chunks_max {
            return (pieces, true);
        }
        let is_chunk = frame.is_chunk;
        let frame = if faults.crlf {
            frame.with_crlf()
        } else {
            frame
        };
        pieces.push(frame.bytes);
        if is_chunk {
            chunk_count += 1;
            pieces.extend(noise_after(chunk_count));
        }
    }
    (pieces, chunk_count == chunks_max)
}

fn up_to_byte(pieces: Vec<Bytes>, bytes_max: usize) -> (Vec<Bytes>, bool) {
    let mut bytes_left = bytes_max;
    let mut kept = Vec::new();
    for mut piece in pieces {
        piece.truncate(bytes_left);
        bytes_left -= piece.len();
        kept.push(piece);
        if bytes_left == 0 {
            return (kept, true);
        }
    }
    (kept, false)
}

/// Cuts a body into slices of these sizes, over and over.
fn slice(body: &Bytes, sizes: &[usize]) -> Vec<Bytes> {
    let mut slices = Vec::new();
    let mut sizes = sizes.iter().cycle();
    let mut rest = body.clone();
    while let (false, Some(&size)) = (rest.is_empty(), sizes.next()) {
        // An empty HTTP chunk would end the body.
        let size = size.clamp(1, rest.len());
        slices.push(rest.split_to(size));
    }
    slices
}

pub(crate) fn push_http_chunk(unsent: &mut Vec<u8>, piece: &[u8]) {
    if piece.is_empty() {
        return;
    }
    unsent.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
    unsent.extend_from_slice(piece);
    unsent.extend_from_slice(b"\r\n");
}

async fn send(connection: &mut Connection, unsent: &mut Vec<u8>) -> io::Result<()> {
    connection.write_all(unsent).await?;
    unsent.clear();
    Ok(())
}

/// Does what follows the last byte that is sent.
pub(crate) async fn finish(connection: &mut Connection, finale: Finale) -> io::Result<After> {
    match finale {
        Finale::End => Ok(After::KeepAlive),
        Finale::EndAndClose | Finale::Truncate => Ok(After::Close),
        Finale::Stall => {
            wait_until_client_leaves(connection).await;
            Ok(After::Close)
        }
        Finale::Reset => {
            sleep(RESET_GRACE).await;
            Ok(After::Reset)
        }
    }
}

async fn wait_until_client_leaves(connection: &mut Connection) {
    let mut ignored = [0; 1024];
    while let Ok(1..) = connection.read(&mut ignored).await {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{
        answer::Answer,
        fault::NoiseKind,
        wire::{Ask, Wire},
    };

    fn planned(answer: &Answer) -> Plan {
        let ask = Ask {
            model: "m".to_owned(),
            number: 1,
            is_streaming: true,
            includes_usage: false,
        };
        let frames = Wire::Ollama.render(answer, &ask);
        plan(Wire::Ollama, frames, &answer.faults)
    }

    fn text(plan: &Plan) -> String {
        String::from_utf8_lossy(&plan.pieces.concat()).into_owned()
    }

    #[test]
    fn a_break_comes_after_the_chunk_and_before_the_closing_frames() {
        let answer = Answer::text("abc").pieces(3);
        let whole = planned(&answer);
        assert_eq!((whole.pieces.len(), whole.finale), (4, Finale::End));
        let broken = planned(&answer.clone().reset_after(2));
        assert_eq!((broken.pieces.len(), broken.finale), (2, Finale::Reset));
        let nothing = planned(&answer.clone().stall_after(0));
        assert_eq!((nothing.pieces.len(), nothing.finale), (0, Finale::Stall));
        let unreached = planned(&answer.reset_after(9));
        assert_eq!(unreached, whole);
    }

    #[test]
    fn a_break_after_bytes_cuts_within_a_frame() {
        let answer = Answer::text("abc").break_off(Point::Bytes(7), Ending::Truncate);
        let plan = planned(&answer);
        assert_eq!(text(&plan), "{\"model");
        assert_eq!(plan.finale, Finale::Truncate);
    }

    #[test]
    fn an_error_ends_the_body_in_the_words_of_the_wire() {
        let plan = planned(
            &Answer::text("ab")
                .pieces(2)
                .error_after(1, "k", "out of luck"),
        );
        assert!(text(&plan).ends_with("{\"error\":\"out of luck\"}\n"));
        assert_eq!(plan.finale, Finale::End);
    }

    #[test]
    fn slices_have_the_sizes_asked_for_and_lose_nothing() {
        let answer = Answer::text("h€llo");
        let whole = text(&planned(&answer));
        let sliced = planned(&answer.cut_at([1, 4]));
        let sizes: Vec<usize> = sliced.pieces.iter().map(Bytes::len).collect();
        assert_eq!(sizes[..4], [1, 4, 1, 4]);
        assert_eq!(text(&sliced), whole);
    }

    #[test]
    fn noise_stands_where_it_was_put() {
        let answer = Answer::text("ab").pieces(2);
        let noisy = answer.noise_after(1, NoiseKind::Raw("?!\n".to_owned()));
        let plan = planned(&noisy);
        assert_eq!(plan.pieces[1], "?!\n");
    }

    #[test]
    fn crlf_ends_every_line() {
        let body = text(&planned(&Answer::text("ab").crlf()));
        assert_eq!(body.matches('\n').count(), body.matches("\r\n").count());
    }
}
