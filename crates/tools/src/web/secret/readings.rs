//! What a URL says once it is read as somebody at its other end may read it: decoded, put together, or both, several
//! times over.

use percent_encoding::percent_decode_str;
use reqwest::Url;

/// How often something may be encoded and still be looked at.
const LAYERS_MAX: usize = 4;

/// Readings of one URL. An ordinary one has about ten; each encoding of something long brings a few more.
const READINGS_MAX: usize = 256;

/// The shortest run of an encoding that is decoded, in characters.
const ENCODED_CHARS_MIN: usize = 16;

/// The shortest run of readable characters for which a decoded text is kept: no key is shorter.
const READABLE_CHARS_MIN: usize = 12;

/// One way to read a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) text: String,
    /// Parts of the URL were put together that do not stand together in it.
    pub(super) is_joined: bool,
}

/// There are more ways to read it than are looked at. Nobody writes such a URL who has nothing to hide.
#[derive(Debug)]
pub(super) struct TooMany;

/// Returns all readings of a URL, itself included.
pub(super) fn readings(url: &str) -> Result<Vec<Reading>, TooMany> {
    let mut readings = Vec::new();
    add(&mut readings, url.to_owned(), false);
    add(&mut readings, url.replace(['.', '/'], ""), true);
    if let Ok(parsed) = Url::parse(url.trim()) {
        // Without tabs and line breaks, and with the host as it is looked up.
        add(&mut readings, parsed.as_str().to_owned(), false);
        for joined in joined(&parsed) {
            // Also without what stands between the digits of an encoding.
            let bare = joined.chars().filter(char::is_ascii_alphanumeric);
            add(&mut readings, bare.collect(), true);
            add(&mut readings, joined, true);
        }
    }
    let mut from = 0;
    for _ in 0..LAYERS_MAX {
        let to = readings.len();
        for at in from..to {
            let Reading { text, is_joined } = readings[at].clone();
            for decoded in decoded(&text) {
                add(&mut readings, decoded, is_joined);
            }
            if readings.len() > READINGS_MAX {
                return Err(TooMany);
            }
        }
        from = to;
    }
    Ok(readings)
}

fn add(readings: &mut Vec<Reading>, text: String, is_joined: bool) {
    if !readings.iter().any(|known| known.text == text) {
        readings.push(Reading { text, is_joined });
    }
}

/// Puts together what a URL can be split over: its parameters, in their order or that of their names, the labels of its
/// host, the parts of its path, and all of them.
fn joined(url: &Url) -> Vec<String> {
    let host = url.host_str().unwrap_or_default().replace('.', "");
    let path: String = url.path().split('/').collect();
    let fragment = url.fragment().unwrap_or_default();
    let mut parameters: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let values = |parameters: &[(String, String)]| -> String {
        parameters.iter().map(|(_, value)| value.as_str()).collect()
    };
    let names: String = parameters.iter().map(|(name, _)| name.as_str()).collect();
    let in_order = values(&parameters);
    let all = [host.as_str(), &path, &in_order, fragment].concat();
    parameters.sort_by_key(|(name, _)| (name.len(), name.clone()));
    vec![host, path, values(&parameters), in_order, names, all]
}

/// Decodes a text in every way that it may be encoded in.
fn decoded(text: &str) -> Vec<String> {
    let mut texts = Vec::new();
    if text.contains('%') {
        texts.push(percent_decode_str(text).decode_utf8_lossy().into_owned());
    }
    for encoding in ENCODINGS {
        for run in text.split(|c: char| (encoding.value)(c).is_none()) {
            texts.extend(encoding.decode(run));
        }
    }
    texts.retain(|decoded| decoded != text);
    texts
}

/// An encoding whose characters stand for some bits each.
struct Encoding {
    bits: u32,
    /// Characters that make up whole bytes: a text may begin at each of them in a run.
    group: usize,
    value: fn(char) -> Option<u32>,
}

const ENCODINGS: &[Encoding] = &[
    Encoding {
        bits: 4,
        group: 2,
        value: |c| c.to_digit(16),
    },
    Encoding {
        bits: 5,
        group: 8,
        value: base_32,
    },
    Encoding {
        bits: 6,
        group: 4,
        value: base_64,
    },
];

fn base_32(c: char) -> Option<u32> {
    match c.to_ascii_uppercase() {
        c @ 'A'..='Z' => Some(u32::from(c) - u32::from('A')),
        c @ '2'..='7' => Some(u32::from(c) - u32::from('2') + 26),
        _ => None,
    }
}

fn base_64(c: char) -> Option<u32> {
    match c {
        'A'..='Z' => Some(u32::from(c) - u32::from('A')),
        'a'..='z' => Some(u32::from(c) - u32::from('a') + 26),
        '0'..='9' => Some(u32::from(c) - u32::from('0') + 52),
        '+' | '-' => Some(62),
        '/' | '_' => Some(63),
        _ => None,
    }
}

impl Encoding {
    /// Decodes a run from each place where a text may begin in it. What cannot hold a key is left out.
    fn decode(&self, run: &str) -> impl Iterator<Item = String> {
        let values: Vec<u32> = if run.len() >= ENCODED_CHARS_MIN {
            run.chars().filter_map(self.value).collect()
        } else {
            Vec::new()
        };
        let begins = 0..self.group.min(values.len());
        begins.filter_map(move |begin| self.bytes(&values[begin..]))
    }

    /// Returns the readable characters of what some values stand for, and spaces for the others.
    fn bytes(&self, values: &[u32]) -> Option<String> {
        let (mut pending, mut bits) = (0u32, 0);
        let mut text = String::new();
        let (mut readable, mut longest) = (0, 0);
        for value in values {
            pending = (pending << self.bits | value) & 0xffff;
            bits += self.bits;
            if bits < 8 {
                continue;
            }
            bits -= 8;
            let c = char::from((pending >> bits) as u8);
            let is_readable = c.is_ascii_graphic();
            text.push(if is_readable { c } else { ' ' });
            readable = if is_readable { readable + 1 } else { 0 };
            longest = longest.max(readable);
        }
        (longest >= READABLE_CHARS_MIN).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_text_is_read_wherever_it_begins() {
        let (hex, base_32, base_64) = (
            "68656C6c6f2c20776f726c642121",
            "NBSWY3DPFQQHO33SNRSCCII",
            "aGVsbG8sX3dvcmxkISE",
        );
        for encoded in [
            hex.replace("20", "5f"),
            base_32.replace("FQQHO", "FRPXO"),
            base_64.into(),
        ] {
            for front in ["", "a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg"] {
                let text = format!("https://x.example/{front}{encoded}.png");
                let readings = readings(&text).unwrap();
                let is_read = readings
                    .iter()
                    .any(|reading| reading.text.contains("hello,_world!!"));
                assert!(is_read, "{text}");
            }
        }
    }

    #[test]
    fn ordinary_urls_have_few_readings() {
        let long = format!(
            "https://example.com/{}",
            "some-words-of-a-title/".repeat(80)
        );
        for url in ["https://example.com/a?b=c", &long] {
            assert!(readings(url).unwrap().len() < 20, "{url}");
        }
    }
}
