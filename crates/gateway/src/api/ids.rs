//! The names that clients give and get.

use hermes_core::{Random, SessionId};
use http::{HeaderMap, HeaderName};
use ring::digest;

use super::error::{ApiError, ApiResult};

pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("x-hermes-session-id");
pub(crate) const SESSION_KEY: HeaderName = HeaderName::from_static("x-hermes-session-key");
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

const NAME_CHARS_MAX: usize = 256;
/// Longer names become others: file systems take 255 bytes.
const FILE_NAME_BYTES_MAX: usize = 128;

/// Reads a name from a header. It becomes part of answers and of file names.
pub(crate) fn header(headers: &HeaderMap, name: &HeaderName) -> ApiResult<Option<String>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let wrong =
        |what: &str| ApiError::invalid(format!("the header `{name}` {what}")).param(name.as_str());
    // Two programs on the way may each choose one.
    if values.any(|other| other != value) {
        return Err(wrong("says two things"));
    }
    let text = value
        .to_str()
        .map_err(|_| wrong("holds characters that no name has"))?;
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    check_name(text).map_err(wrong)?;
    Ok(Some(text.to_owned()))
}

/// What is wrong with a name, if anything is.
pub(crate) fn check_name(text: &str) -> Result<(), &'static str> {
    if text.chars().count() > NAME_CHARS_MAX {
        return Err("is longer than 256 characters");
    }
    if text.chars().any(char::is_control) {
        return Err("holds control characters");
    }
    if text.contains("..") || text.contains(['/', '\\']) {
        return Err("looks like a path");
    }
    Ok(())
}

/// The session that clients mean by a name: the name itself, or what stands for it where it cannot be one.
pub(crate) fn session(name: &str) -> SessionId {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.len() <= FILE_NAME_BYTES_MAX && name.bytes().all(is_plain) {
        return SessionId::from(name);
    }
    SessionId::from(format!("api-{}", hex(sha256(&[name]).as_ref(), 16)))
}

/// A name for a conversation that begins with these words. Two that begin alike are two.
pub(crate) fn new_session(system: &str, first: &str, random: &Random) -> SessionId {
    let words = hex(sha256(&[system, "\n", first]).as_ref(), 8);
    // Programs say the same first words for years.
    let own = random.next_u64() & 0xffff_ffff_ffff;
    SessionId::from(format!("api-{words}-{own:012x}"))
}

/// A name such as `resp_` and so many hexadecimal digits.
pub(crate) fn new(prefix: &str, digits: usize, random: &Random) -> String {
    let mut text = String::from(prefix);
    while text.len() < prefix.len() + digits {
        text.push_str(&format!("{:016x}", random.next_u64()));
    }
    text.truncate(prefix.len() + digits);
    text
}

pub(crate) fn sha256(parts: &[&str]) -> digest::Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part.as_bytes());
    }
    context.finish()
}

pub(crate) fn sha256_of(bytes: &[u8]) -> digest::Digest {
    digest::digest(&digest::SHA256, bytes)
}

/// The first bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8], count: usize) -> String {
    let bytes = bytes.iter().take(count);
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn names_that_could_do_harm_are_refused() {
        let read = |value: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(SESSION_ID, HeaderValue::from_bytes(value).unwrap());
            header(&headers, &SESSION_ID)
        };
        assert_eq!(read(b" my-talk ").unwrap().as_deref(), Some("my-talk"));
        assert_eq!(read(b"").unwrap(), None);
        let long = "x".repeat(257);
        for name in ["../../etc/passwd", "a/b", "a\\b", "a\tb", "\u{fc}", &long] {
            assert!(read(name.as_bytes()).is_err(), "{name:?}");
        }
    }

    #[test]
    fn two_names_at_once_are_refused() {
        let mut headers = HeaderMap::new();
        headers.append(SESSION_ID, HeaderValue::from_static("a"));
        headers.append(SESSION_ID, HeaderValue::from_static("a"));
        assert_eq!(header(&headers, &SESSION_ID).unwrap().as_deref(), Some("a"));
        headers.append(SESSION_ID, HeaderValue::from_static("b"));
        assert!(header(&headers, &SESSION_ID).is_err());
    }

    #[test]
    fn a_name_always_means_the_same_session() {
        assert_eq!(session("my-talk_1").as_str(), "my-talk_1");
        let odd = session("user@example.org:42");
        assert_eq!(odd, session("user@example.org:42"));
        assert_ne!(odd, session("user@example.org:43"));
        assert!(odd.as_str().starts_with("api-"), "{odd}");
        assert_eq!(session(&"y".repeat(200)).as_str().len(), 36);
    }

    #[test]
    fn conversations_that_begin_alike_are_many() {
        let random = Random::seeded(1);
        let names: std::collections::HashSet<_> = (0..50_000)
            .map(|_| new_session("", "ping", &random))
            .collect();
        assert_eq!(names.len(), 50_000);
    }

    #[test]
    fn new_names_have_as_many_digits_as_wanted() {
        let name = new("resp_", 28, &Random::seeded(1));
        assert_eq!(name.len(), 33);
    }
}
