//! Pictures as models take them: told by their first bytes, measured by their headers. None is ever decoded.

use std::fmt;

/// The largest picture that is shown. Its base64 has 5 MiB, which is what Anthropic takes of one; others take more.
pub const PICTURE_BYTES_MAX: usize = 3_840 * 1024;
/// The longest side of a picture that is shown: Anthropic refuses longer ones, and no model sees that much.
pub const PICTURE_SIDE_MAX: u32 = 8_000;
/// Pictures of one result that are shown. Half of what a request carries, so that one result does not push out all that
/// the model looked at before.
pub const RESULT_PICTURES_MAX: usize = 10;

/// A format that the models of all providers read, or nearly all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureFormat {
    Png,
    Jpeg,
    Gif,
    WebP,
}

/// What the header of a picture says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picture {
    pub format: PictureFormat,
    pub width: u32,
    pub height: u32,
}

/// Why a picture is not shown, in words that go on after "it": for a model, which can do something about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unshowable {
    #[error("has a broken header or is cut off, so no model could see it")]
    Broken,
    #[error("is more than the {} that can be shown", size(PICTURE_BYTES_MAX as u64))]
    TooManyBytes,
    #[error("is {width}×{height}, and no side may have more than {PICTURE_SIDE_MAX} pixels")]
    TooLong { width: u32, height: u32 },
}

impl PictureFormat {
    /// Tells a picture by its first bytes, whatever its name says.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, rest @ ..] if rest.starts_with(b"WEBP") => {
                Some(Self::WebP)
            }
            _ => None,
        }
    }

    pub fn mime(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }
}

impl fmt::Display for PictureFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::WebP => "WebP",
        })
    }
}

impl Picture {
    /// Looks whether a picture of this format, whole in memory, can be shown to a model.
    pub fn showable(format: PictureFormat, bytes: &[u8]) -> Result<Self, Unshowable> {
        if bytes.len() > PICTURE_BYTES_MAX {
            return Err(Unshowable::TooManyBytes);
        }
        let sides = match format {
            PictureFormat::Png => png_sides(bytes),
            PictureFormat::Jpeg => jpeg_sides(bytes),
            PictureFormat::Gif => gif_sides(bytes),
            PictureFormat::WebP => webp_sides(bytes),
        };
        match sides {
            None | Some((0, _) | (_, 0)) => Err(Unshowable::Broken),
            Some((width, height)) if width.max(height) > PICTURE_SIDE_MAX => {
                Err(Unshowable::TooLong { width, height })
            }
            Some((width, height)) => Ok(Self {
                format,
                width,
                height,
            }),
        }
    }
}

/// `PNG image, 1280×720`.
impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            format,
            width,
            height,
        } = self;
        write!(f, "{format} image, {width}×{height}")
    }
}

/// Says a number of bytes so that people can compare it: `312 KB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        _ => format!("{} KB", bytes.div_ceil(1024)),
    }
}

type Sides = (u32, u32);

fn png_sides(bytes: &[u8]) -> Option<Sides> {
    if bytes.get(12..16)? != b"IHDR" {
        return None;
    }
    let side = |at: usize| array(bytes, at).map(u32::from_be_bytes);
    Some((side(16)?, side(20)?))
}

fn gif_sides(bytes: &[u8]) -> Option<Sides> {
    let side = |at: usize| array(bytes, at).map(|side| u32::from(u16::from_le_bytes(side)));
    Some((side(6)?, side(8)?))
}

/// Goes from segment to segment until one describes the frame. Each step moves on by at least two bytes.
fn jpeg_sides(bytes: &[u8]) -> Option<Sides> {
    let side = |at: usize| array(bytes, at).map(|side| u32::from(u16::from_be_bytes(side)));
    let mut at = 2;
    loop {
        let [0xff, marker] = array(bytes, at)? else {
            return None;
        };
        match marker {
            // A byte that fills up, before the marker.
            0xff => at += 1,
            // Nothing belongs to these.
            0x01 | 0xd0..=0xd7 => at += 2,
            // The picture itself, or its end, and no frame was described.
            0xd9 | 0xda => return None,
            // Tables that share the numbers of the frames.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((side(at + 7)?, side(at + 5)?));
            }
            _ => {
                let length = side(at + 2)?;
                at += 2 + usize::try_from(length).ok().filter(|length| *length >= 2)?;
            }
        }
    }
}

/// Reads the first chunk, which is one of three: lossy, lossless, or extended.
fn webp_sides(bytes: &[u8]) -> Option<Sides> {
    const SIDE_BITS: u32 = 0x3fff;
    match bytes.get(12..16)? {
        b"VP8 " => {
            let is_key_frame = bytes.get(23..26)? == [0x9d, 0x01, 0x2a];
            let side = |at: usize| array(bytes, at).map(|side| u32::from(u16::from_le_bytes(side)));
            let sides = (side(26)? & SIDE_BITS, side(28)? & SIDE_BITS);
            is_key_frame.then_some(sides)
        }
        b"VP8L" => {
            let is_signed = *bytes.get(20)? == 0x2f;
            let bits = u32::from_le_bytes(array(bytes, 21)?);
            let sides = ((bits & SIDE_BITS) + 1, (bits >> 14 & SIDE_BITS) + 1);
            is_signed.then_some(sides)
        }
        b"VP8X" => {
            let side = |at: usize| {
                let [low, middle, high] = array(bytes, at)?;
                Some(u32::from_le_bytes([low, middle, high, 0]) + 1)
            };
            Some((side(24)?, side(27)?))
        }
        _ => None,
    }
}

/// Returns so many bytes from a place, if they are there.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    let end = at.checked_add(N)?;
    bytes.get(at..end)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend(b"\x08\x06\0\0\0");
        bytes
    }

    fn gif(width: u16, height: u16) -> Vec<u8> {
        let mut bytes = b"GIF89a".to_vec();
        bytes.extend(width.to_le_bytes());
        bytes.extend(height.to_le_bytes());
        bytes
    }

    /// With a segment before the frame, and a byte that fills up.
    fn jpeg(width: u16, height: u16) -> Vec<u8> {
        let mut bytes = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08".to_vec();
        bytes.extend(height.to_be_bytes());
        bytes.extend(width.to_be_bytes());
        bytes
    }

    fn webp(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WEBP".to_vec();
        bytes.extend(kind);
        bytes.extend([0; 4]);
        bytes.extend(data);
        bytes
    }

    fn all() -> Vec<(Vec<u8>, &'static str)> {
        let lossy = b"\0\0\0\x9d\x01\x2a\x80\x02\xe0\xc1";
        let lossless = b"\x2f\x7f\xc2\x77\x00";
        let extended = b"\0\0\0\0\x7f\x02\0\xdf\x01\0";
        vec![
            (png(1280, 720), "PNG image, 1280×720"),
            (gif(640, 480), "GIF image, 640×480"),
            (jpeg(640, 480), "JPEG image, 640×480"),
            (webp(b"VP8 ", lossy), "WebP image, 640×480"),
            (webp(b"VP8L", lossless), "WebP image, 640×480"),
            (webp(b"VP8X", extended), "WebP image, 640×480"),
        ]
    }

    fn showable(bytes: &[u8]) -> Option<Result<Picture, Unshowable>> {
        let format = PictureFormat::of(bytes)?;
        Some(Picture::showable(format, bytes))
    }

    #[test]
    fn a_header_says_what_a_picture_is() {
        for (bytes, expected) in all() {
            let picture = showable(&bytes).unwrap().unwrap();
            assert_eq!(picture.to_string(), expected);
        }
        assert_eq!(showable(b"hello, world"), None);
        assert_eq!(showable(b"RIFF\0\0\0\0WAVE"), None);
        assert_eq!(showable(b""), None);
    }

    #[test]
    fn a_header_that_is_cut_off_anywhere_is_broken() {
        for (bytes, what) in all() {
            // The last bytes of some headers say nothing about the size.
            let needed = match what {
                what if what.starts_with("PNG") => 24,
                _ => bytes.len(),
            };
            for end in 0..needed {
                let shown = showable(&bytes[..end]);
                assert!(
                    matches!(shown, None | Some(Err(Unshowable::Broken))),
                    "{what} until {end}: {shown:?}"
                );
            }
        }
    }

    #[test]
    fn hostile_headers_are_broken_and_come_to_an_end() {
        let broken = [
            png(0, 10),
            gif(10, 0),
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dXXXX\0\0\0\x01\0\0\0\x01".to_vec(),
            // A segment that does not even hold its own length, and one that reaches past the end.
            b"\xff\xd8\xff\xe0\0\0\xff\xe0\0\0".to_vec(),
            b"\xff\xd8\xff\xe0\xff\xff".to_vec(),
            // The picture begins before its frame was described.
            b"\xff\xd8\xff\xda\0\x02\xff\xc0\0\x11\x08\0\x01\0\x01".to_vec(),
            [&b"\xff\xd8"[..], &[0xff; 100_000]].concat(),
            [&b"\xff\xd8"[..], &b"\xff\xd0".repeat(50_000)].concat(),
            webp(b"VP8 ", &[0; 32]),
            webp(b"VP8L", &[0; 32]),
            webp(b"JUNK", &[0; 32]),
        ];
        for bytes in broken {
            let head = &bytes[..bytes.len().min(24)];
            assert_eq!(showable(&bytes), Some(Err(Unshowable::Broken)), "{head:?}");
        }
    }

    #[test]
    fn no_side_is_longer_than_models_see() {
        assert!(showable(&png(PICTURE_SIDE_MAX, 1)).unwrap().is_ok());
        let refused = showable(&png(9_000, 1)).unwrap().unwrap_err();
        let (width, height) = (9_000, 1);
        assert_eq!(refused, Unshowable::TooLong { width, height });
        assert!(refused.to_string().contains("9000×1"), "{refused}");
        let huge = webp(b"VP8X", &[0xff; 16]);
        assert!(showable(&huge).unwrap().is_err());
    }

    #[test]
    fn a_picture_may_have_so_many_bytes_and_no_more() {
        let mut bytes = png(1, 1);
        bytes.resize(PICTURE_BYTES_MAX, 0);
        assert!(showable(&bytes).unwrap().is_ok());
        bytes.push(0);
        assert_eq!(showable(&bytes), Some(Err(Unshowable::TooManyBytes)));
    }

    #[test]
    fn sizes_are_said_in_kilobytes() {
        assert_eq!(size(70), "70 bytes");
        assert_eq!(size(1024), "1 KB");
        assert_eq!(size(318_900), "312 KB");
        assert_eq!(size(PICTURE_BYTES_MAX as u64), "3840 KB");
    }
}
