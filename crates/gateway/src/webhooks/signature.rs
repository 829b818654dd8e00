//! Whether an event comes from who it says: the signatures of GitHub, GitLab, Svix, and our own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_core::Timestamp;
use http::HeaderMap;
use ring::hmac;

/// Clocks differ, and events take a while; what was signed longer ago is sent again by somebody else.
const SIGNED_SECONDS_MAX: i64 = 300;

/// What of an event its signature covers, beside the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Signed {
    /// This id and the time: nobody else can send it later, or under another id.
    Id(String),
    /// This time: whoever saw it could send it again for a while, and name it as they like.
    Time(String),
    /// Nothing: whoever saw it could send it again whenever they like.
    Body,
    /// There is no signature: the sender knows the secret.
    Token,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureError {
    #[error("the event is not signed")]
    Missing,
    #[error("the event has no id, which its signature covers")]
    WithoutId,
    #[error("the signature is not that of the secret")]
    Wrong,
    #[error("the event was signed too long ago, or in the future")]
    Late,
}

/// Checks the signature that an event came with.
pub(super) fn verify(
    headers: &HeaderMap,
    body: &[u8],
    secret: &str,
    now: Timestamp,
) -> Result<Signed, SignatureError> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    for family in ["svix", "webhook"] {
        if let Some(signatures) = header(&format!("{family}-signature")) {
            let id = header(&format!("{family}-id")).filter(|id| !id.is_empty());
            let id = id.ok_or(SignatureError::WithoutId)?;
            let time = header(&format!("{family}-timestamp")).unwrap_or_default();
            return svix(signatures, id, time, body, secret, now);
        }
    }
    if let Some(signature) = header("x-hub-signature-256") {
        return is_hex_mac(signature, &[body], secret).map(|()| Signed::Body);
    }
    if let Some(token) = header("x-gitlab-token") {
        return is_token(token, secret).map(|()| Signed::Token);
    }
    if let Some(signature) = header("x-webhook-signature-v2") {
        let time = header("x-webhook-timestamp").unwrap_or_default();
        is_fresh(time, now)?;
        return is_hex_mac(signature, &[time.as_bytes(), b".", body], secret)
            .map(|()| Signed::Time(time.to_owned()));
    }
    if let Some(signature) = header("x-webhook-signature") {
        return is_hex_mac(signature, &[body], secret).map(|()| Signed::Body);
    }
    Err(SignatureError::Missing)
}

/// One of several signatures may be right: senders that change their secret sign with both.
fn svix(
    signatures: &str,
    id: &str,
    time: &str,
    body: &[u8],
    secret: &str,
    now: Timestamp,
) -> Result<Signed, SignatureError> {
    is_fresh(time, now)?;
    let written = secret.strip_prefix("whsec_");
    let decoded = written.and_then(|text| STANDARD.decode(text).ok());
    let key = decoded.unwrap_or_else(|| secret.as_bytes().to_vec());
    let signed = [id.as_bytes(), b".", time.as_bytes(), b".", body].concat();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let is_right = |signature: &str| {
        let mac = signature
            .strip_prefix("v1,")
            .and_then(|mac| STANDARD.decode(mac).ok());
        mac.is_some_and(|mac| hmac::verify(&key, &signed, &mac).is_ok())
    };
    if signatures.split(' ').any(is_right) {
        Ok(Signed::Id(id.to_owned()))
    } else {
        Err(SignatureError::Wrong)
    }
}

/// Checks `sha256=` and hexadecimal digits, or the digits alone.
fn is_hex_mac(signature: &str, parts: &[&[u8]], secret: &str) -> Result<(), SignatureError> {
    let digits = signature.trim();
    let digits = digits.strip_prefix("sha256=").unwrap_or(digits);
    let mac = from_hex(digits).ok_or(SignatureError::Wrong)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let verified = hmac::verify(&key, &parts.concat(), &mac);
    verified.map_err(|_| SignatureError::Wrong)
}

/// Compares as long for every token.
fn is_token(token: &str, secret: &str) -> Result<(), SignatureError> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"token");
    let given = hmac::sign(&key, token.as_bytes());
    let verified = hmac::verify(&key, secret.as_bytes(), given.as_ref());
    verified.map_err(|_| SignatureError::Wrong)
}

fn is_fresh(time: &str, now: Timestamp) -> Result<(), SignatureError> {
    let signed: i64 = time.trim().parse().map_err(|_| SignatureError::Late)?;
    let age = (now.as_millis() / 1000).saturating_sub(signed);
    if age.unsigned_abs() > SIGNED_SECONDS_MAX as u64 {
        return Err(SignatureError::Late);
    }
    Ok(())
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}

/// Signs a body as our own senders do: the value of `X-Webhook-Signature-V2`.
pub fn signed(secret: &str, time: i64, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let time = time.to_string();
    let mac = hmac::sign(&key, &[time.as_bytes(), b".", body].concat());
    mac.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    const NOW: i64 = 1_794_777_845;
    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    /// From GitHub's documentation of how its signatures are made.
    const GITHUB: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn check(headers: &[(&str, &str)], body: &[u8]) -> Result<Signed, SignatureError> {
        let read = headers.iter().map(|(name, value)| {
            let name: HeaderName = name.parse().unwrap();
            (name, HeaderValue::from_str(value).unwrap())
        });
        verify(
            &read.collect(),
            body,
            SECRET,
            Timestamp::from_millis(NOW * 1000),
        )
    }

    #[test]
    fn the_example_of_github_is_right_and_anything_else_is_not() {
        assert_eq!(
            check(&[("x-hub-signature-256", GITHUB)], BODY),
            Ok(Signed::Body)
        );
        assert_eq!(
            check(&[("x-hub-signature-256", GITHUB)], b"Hello, World?"),
            Err(SignatureError::Wrong)
        );
        for signature in ["", "sha256=", "sha256=zz", "sha1=757107ea", "sha256=ü"] {
            let header = [("x-hub-signature-256", signature)];
            if HeaderValue::from_str(signature).is_ok() {
                assert!(check(&header, BODY).is_err(), "{signature}");
            }
        }
        assert_eq!(check(&[], BODY), Err(SignatureError::Missing));
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert_eq!(
            check(&[("x-gitlab-token", SECRET)], BODY),
            Ok(Signed::Token)
        );
        assert_eq!(
            check(&[("x-gitlab-token", "It's a Secret")], BODY),
            Err(SignatureError::Wrong)
        );
    }

    #[test]
    fn our_own_signatures_have_a_time() {
        let signature = signed(SECRET, NOW, BODY);
        let with = |time: i64| {
            let time = time.to_string();
            check(
                &[
                    ("x-webhook-signature-v2", &signature),
                    ("x-webhook-timestamp", &time),
                ],
                BODY,
            )
        };
        assert_eq!(with(NOW), Ok(Signed::Time(NOW.to_string())));
        assert_eq!(with(NOW - 1), Err(SignatureError::Wrong));
        for time in [NOW - 301, NOW + 301, i64::MIN, i64::MAX] {
            assert_eq!(with(time), Err(SignatureError::Late), "{time}");
        }
        let legacy = GITHUB.strip_prefix("sha256=").unwrap();
        assert_eq!(
            check(&[("x-webhook-signature", legacy)], BODY),
            Ok(Signed::Body)
        );
    }
}
