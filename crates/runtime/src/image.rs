//! Images as parts of messages: read from files, told by their first bytes rather than by their names.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use hermes_core::picture::PictureFormat;
use hermes_core::{Media, MediaSource, Part};

use crate::error::{Error, Result};

/// What providers take at most, before encoding.
const IMAGE_BYTES_MAX: u64 = 20 * 1024 * 1024;

/// Reads an image.
pub fn read(path: &Path) -> Result<Part> {
    let fail = |what: String| {
        Error::asked(format!("cannot attach `{}`: {what}", path.display()))
            .with_hint("only a PNG, JPEG, GIF or WebP file can be attached")
    };
    let is_file = path
        .metadata()
        .map_err(|error| fail(error.to_string()))?
        .is_file();
    if !is_file {
        return Err(fail("it is not a file".into()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| fail(error.to_string()))?;
    let read = file.take(IMAGE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > IMAGE_BYTES_MAX {
        return Err(
            fail(format!("it has more than {IMAGE_BYTES_MAX} bytes")).with_hint("make it smaller")
        );
    }
    let Some(format) = PictureFormat::of(&bytes) else {
        return Err(
            fail("it is not a PNG, JPEG, GIF or WebP image".into()).with_hint("convert it first")
        );
    };
    Ok(Part::Image(Media {
        mime: format.mime().into(),
        source: in_base64(&bytes),
    }))
}

/// Bytes as they travel in messages.
pub fn in_base64(bytes: &[u8]) -> MediaSource {
    MediaSource::Base64(base64(bytes))
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0_u32, |group, byte| group << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let is_padding = position > chunk.len();
            let index = (group >> (18 - 6 * position)) as usize & 63;
            text.push(if is_padding {
                '='
            } else {
                char::from(ALPHABET[index])
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_as_the_standard_says() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
