//! How streams are packed. Filters of images are not here: no text is in them.

use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use super::file::Document;
use super::object::Dictionary;
use super::object::{Object, from_hexadecimal, is_space};

/// Longer streams are cut: no page has that much text.
const STREAM_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Writers use one filter, sometimes two.
const FILTERS_MAX: usize = 4;

/// Unpacks a stream; `None` if it is packed in a way that no text is.
pub(super) fn decode(
    document: &Document<'_>,
    dictionary: &Dictionary,
    raw: &[u8],
) -> Option<Vec<u8>> {
    let filters = listed(document.get(dictionary, "Filter"));
    let parameters = listed(document.get(dictionary, "DecodeParms"));
    if filters.len() > FILTERS_MAX {
        return None;
    }
    let bytes_max = STREAM_BYTES_MAX.min(document.budget.decoded_bytes_left());
    let mut bytes = raw[..raw.len().min(bytes_max)].to_vec();
    document.budget.take_decoded(bytes.len());
    for (at, filter) in filters.iter().enumerate() {
        bytes = match filter.name()? {
            "FlateDecode" | "Fl" => inflate(&bytes, bytes_max),
            "ASCIIHexDecode" | "AHx" => from_hexadecimal(until(&bytes, b'>')),
            "ASCII85Decode" | "A85" => from_ascii85(until(&bytes, b'~')),
            "LZWDecode" | "LZW" => expand(&bytes, bytes_max),
            "RunLengthDecode" | "RL" => repeat(&bytes, bytes_max),
            "Crypt" => bytes,
            _ => return None,
        };
        let parameters = parameters.get(at).cloned();
        if let Some(parameters) = parameters.and_then(|it| document.resolve(it).dictionary()) {
            bytes = without_prediction(document, &parameters, bytes);
        }
        document.budget.take_decoded(bytes.len());
    }
    Some(bytes)
}

fn listed(object: Object) -> Vec<Object> {
    match object {
        Object::Array(array) => array,
        Object::Null => Vec::new(),
        one => vec![one],
    }
}

fn until(bytes: &[u8], end: u8) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == end);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// Takes what comes before an error: many streams are cut or have a wrong checksum.
fn inflate(packed: &[u8], bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let limit = bytes_max as u64;
    let ended = ZlibDecoder::new(packed).take(limit).read_to_end(&mut bytes);
    if ended.is_err() && bytes.is_empty() && packed.len() > 2 {
        // The header is wrong; what follows may be right.
        let rest = DeflateDecoder::new(&packed[2..]);
        rest.take(limit).read_to_end(&mut bytes).ok();
    }
    bytes
}

fn from_ascii85(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    let mut group = Vec::with_capacity(5);
    for byte in text.iter().filter(|byte| !is_space(**byte)) {
        match byte {
            b'z' if group.is_empty() => bytes.extend([0; 4]),
            b'!'..=b'u' => group.push(byte - b'!'),
            _ => {}
        }
        if group.len() == 5 {
            bytes.extend(ascii85_group(&group));
            group.clear();
        }
    }
    if group.len() > 1 {
        let length = group.len() - 1;
        group.resize(5, 84);
        bytes.extend(&ascii85_group(&group)[..length]);
    }
    bytes
}

fn ascii85_group(group: &[u8]) -> [u8; 4] {
    let value = group.iter().fold(0_u32, |value, digit| {
        value.wrapping_mul(85).wrapping_add(u32::from(*digit))
    });
    value.to_be_bytes()
}

fn repeat(packed: &[u8], bytes_max: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = packed;
    while let Some((length, after)) = rest.split_first() {
        let length = usize::from(*length);
        match (length, after) {
            (128, _) => break,
            (0..128, _) => {
                let (copied, after) = after.split_at((length + 1).min(after.len()));
                bytes.extend_from_slice(copied);
                rest = after;
            }
            (_, [byte, after @ ..]) => {
                bytes.resize(bytes.len() + 257 - length, *byte);
                rest = after;
            }
            (_, []) => break,
        }
        if bytes.len() >= bytes_max {
            break;
        }
    }
    bytes
}

/// LZW as PDF has it: codes grow from 9 to 12 bits, one code early.
fn expand(packed: &[u8], bytes_max: usize) -> Vec<u8> {
    const CLEAR: usize = 256;
    const END: usize = 257;
    const CODES_MAX: usize = 4096;
    let mut bytes: Vec<u8> = Vec::new();
    // Where each code's bytes stand in the output, and how many there are.
    let mut codes: Vec<(usize, usize)> = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    let (mut bits, mut bits_held) = (0_u32, 0);
    for byte in packed {
        bits = bits << 8 | u32::from(*byte);
        bits_held += 8;
        let width = match codes.len() + END + 2 {
            ..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        };
        if bits_held < width {
            continue;
        }
        bits_held -= width;
        let code = (bits >> bits_held) as usize & ((1 << width) - 1);
        if code == END || bytes.len() >= bytes_max {
            break;
        }
        if code == CLEAR {
            codes.clear();
            last = None;
            continue;
        }
        let start = bytes.len();
        match (code.checked_sub(END + 1), last) {
            (None, _) => bytes.push(code as u8),
            (Some(known), _) if known < codes.len() => {
                let (from, length) = codes[known];
                bytes.extend_from_within(from..from + length);
            }
            // The code that is being made: the last bytes, and their first once more.
            (Some(_), Some((from, length))) => {
                bytes.extend_from_within(from..from + length);
                bytes.push(bytes[from]);
            }
            (Some(_), None) => break,
        }
        if let Some((from, length)) = last
            && codes.len() + END + 1 < CODES_MAX
        {
            codes.push((from, length + 1));
        }
        last = Some((start, bytes.len() - start));
    }
    bytes
}

/// Undoes what writers do to rows of numbers before they pack them.
fn without_prediction(document: &Document<'_>, parameters: &Dictionary, bytes: Vec<u8>) -> Vec<u8> {
    let number = |name, default| document.get(parameters, name).count().unwrap_or(default);
    if number("Predictor", 1) < 10 {
        return bytes;
    }
    let bits = number("Colors", 1).clamp(1, 32) * number("BitsPerComponent", 8).clamp(1, 16);
    let step = bits.div_ceil(8);
    let row_bytes = (bits * number("Columns", 1).clamp(1, 65_536)).div_ceil(8);
    let mut rows: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut above = vec![0; row_bytes];
    for packed in bytes.chunks(row_bytes + 1) {
        let Some((kind, packed)) = packed.split_first() else {
            break;
        };
        let mut row = vec![0; row_bytes];
        for at in 0..packed.len() {
            let left = at.checked_sub(step).map_or(0, |at| row[at]);
            let corner = at.checked_sub(step).map_or(0, |at| above[at]);
            let predicted = match kind {
                1 => left,
                2 => above[at],
                3 => ((u16::from(left) + u16::from(above[at])) / 2) as u8,
                4 => paeth(left, above[at], corner),
                _ => 0,
            };
            row[at] = packed[at].wrapping_add(predicted);
        }
        rows.extend_from_slice(&row[..packed.len()]);
        above = row;
    }
    rows
}

fn paeth(left: u8, above: u8, corner: u8) -> u8 {
    let estimate = i16::from(left) + i16::from(above) - i16::from(corner);
    let distance = |value: u8| (estimate - i16::from(value)).abs();
    [left, above, corner]
        .into_iter()
        .min_by_key(|value| distance(*value))
        .unwrap_or(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_bytes_come_back() {
        assert_eq!(from_ascii85(b"87cURD]i,\"Ebo80"), b"Hello World!");
        assert_eq!(repeat(b"\x02abc\xfed\x80zzz", 100), b"abcddd");
        let packed = [0x80, 0x0b, 0x60, 0x50, 0x22, 0x0c, 0x0c, 0x85, 0x01];
        assert_eq!(expand(&packed, 100), b"-----A---B");
    }

    #[test]
    fn broken_bytes_are_read_as_far_as_they_go() {
        assert_eq!(inflate(b"not zlib at all", 100).len(), 0);
        assert_eq!(from_ascii85(b"~~~"), b"");
        assert_eq!(repeat(b"\xff", 100), b"");
        assert_eq!(expand(&[0xff; 9], 100), b"");
    }
}
