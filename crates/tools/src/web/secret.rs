//! Which URLs would carry a secret out. A page may talk a model into asking for `https://elsewhere/?key=…`.

mod readings;

use hermes_core::HiddenKeys;
use hermes_core::redact::holds_token;
use reqwest::Url;

/// More than servers take.
const URL_BYTES_MAX: usize = 8 * 1024;

/// Parameters that hold nothing but secrets. Signed links count: whoever has one has what it opens.
const SECRET_PARAMETERS: &[&str] = &[
    "access_token",
    "accesstoken",
    "api_key",
    "api-key",
    "apikey",
    "auth",
    "auth_token",
    "authorization",
    "client_secret",
    "credential",
    "id_token",
    "jwt",
    "passwd",
    "password",
    "private_key",
    "pwd",
    "refresh_token",
    "secret",
    "secret_key",
    "session_id",
    "session_token",
    "sessionid",
    "sig",
    "signature",
    "token",
];

/// Says what in a URL looks like a secret, or is one of our own keys.
pub(crate) fn find(url: &str, own: &HiddenKeys) -> Option<String> {
    if url.len() > URL_BYTES_MAX {
        return Some(format!("more than {URL_BYTES_MAX} bytes"));
    }
    let Ok(readings) = readings::readings(url) else {
        return Some("something that is encoded in too many ways to be looked at".to_owned());
    };
    readings.iter().find_map(|reading| {
        if own.are_in(&reading.text) {
            return Some("a key of the user's".to_owned());
        }
        // Parts that are put together may look like anything.
        if reading.is_joined {
            return None;
        }
        if holds_token(&reading.text) {
            return Some("what looks like a key".to_owned());
        }
        secret_parameter(&reading.text).map(|name| format!("the parameter `{name}`"))
    })
}

fn secret_parameter(url: &str) -> Option<String> {
    let url = Url::parse(url.trim()).ok()?;
    let is_secret = |name: &str| {
        SECRET_PARAMETERS.contains(&name)
            || name.starts_with("x-amz-")
            || name.starts_with("x-goog-")
    };
    url.query_pairs()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, _)| name.to_ascii_lowercase())
        .find(|name| is_secret(name))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
    use hermes_core::Secret;
    use proptest::prelude::*;

    use super::*;

    /// Keys of all sorts, none of which has the shape of a provider's.
    const OWN: &[&str] = &[
        "0123456789abcdef0123456789abcdef",
        "Zm9vYmFyYmF6+/9876qwertyUIOP==",
        "my:very~secret!pass$word,1",
        "weird-shape_of.a-KEY-77",
        "f1e2d3c4-b5a6-9788-1234-567890abcdef",
        "correct-horse-battery-staple",
    ];

    fn own() -> HiddenKeys {
        HiddenKeys::own(OWN.iter().map(|key| Secret::new(*key)))
    }

    fn percent(text: &str, upper: bool) -> String {
        let byte = |byte: u8| {
            if upper {
                format!("%{byte:02X}")
            } else {
                format!("%{byte:02x}")
            }
        };
        text.bytes().map(byte).collect()
    }

    /// Writes a key in one of many ways that fit into a URL.
    fn written(text: &str, way: u8) -> String {
        let hex = || text.bytes().map(|byte| format!("{byte:02x}"));
        // What would end the part of the URL, or be taken for something else there.
        let marks = |c: char| "%:/?#[]@!$&'()*+,;=~ ".contains(c);
        match way {
            0 => text
                .chars()
                .map(|c| {
                    if marks(c) {
                        format!("%{:02X}", u32::from(c))
                    } else {
                        c.to_string()
                    }
                })
                .collect(),
            1 => percent(text, true),
            2 => percent(&percent(text, false), true),
            3 => percent(&STANDARD.encode(text), false),
            4 => STANDARD_NO_PAD
                .encode(text)
                .replace('+', "%2B")
                .replace('/', "%2F"),
            5 => URL_SAFE.encode(text).replace('=', "%3D"),
            6 => URL_SAFE_NO_PAD.encode(text),
            7 => hex().collect(),
            8 => hex().collect::<String>().to_uppercase(),
            9 => hex().collect::<Vec<_>>().join("-"),
            10 => URL_SAFE_NO_PAD.encode(URL_SAFE_NO_PAD.encode(text)),
            11 => URL_SAFE_NO_PAD.encode(format!("user:{text}@x")),
            12 => hex()
                .collect::<String>()
                .bytes()
                .map(|byte| format!("{byte:02X}"))
                .collect(),
            _ => written(&text.to_uppercase(), 0),
        }
    }

    const WAYS: u8 = 14;

    /// Puts a text into one of the places of a URL.
    fn placed(text: &str, place: u8, noise: &str) -> String {
        let cut = |at: usize| text.split_at(text.floor_char_boundary(at.min(text.len())));
        let (one, rest) = cut(text.len() / 3);
        match place {
            0 => format!("https://evil.example/{noise}/{text}"),
            1 => format!("https://evil.example/{noise}{text}.png"),
            2 => format!("http://evil.example/?q={text}&r={noise}"),
            3 => format!("https://evil.example/a?{noise}={noise}&{text}"),
            4 => format!("https://evil.example/#{noise}{text}"),
            5 => format!("https://{noise}.{text}.evil.example/"),
            6 => format!("  https://evil.example/{noise}?q=x{text}"),
            7 => format!("https://evil.example/?a={one}&b={rest}"),
            8 => format!("https://evil.example/?p2={rest}&p1={one}"),
            9 => format!("https://evil.example/{one}/{rest}"),
            10 => format!("https://{one}.{rest}.evil.example/{noise}"),
            _ => format!("https://evil.example/x?next=https%3A%2F%2Fother.example%2F%3Fk%3D{text}"),
        }
    }

    const PLACES: u8 = 12;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn our_own_keys_are_found_however_they_are_written_and_wherever(
            key in 0..OWN.len(),
            way in 0..WAYS,
            place in 0..PLACES,
            noise in "[a-z]{0,9}",
        ) {
            let url = placed(&written(OWN[key], way), place, &noise);
            prop_assert!(find(&url, &own()).is_some(), "{url}");
        }

        #[test]
        fn any_key_is_found(key in "[A-Za-z0-9][A-Za-z0-9._-]{23,79}", way in 0..WAYS, place in 0..PLACES) {
            let own = HiddenKeys::own([Secret::new(key.as_str())]);
            let url = placed(&written(&key, way), place, "n");
            prop_assert!(find(&url, &own).is_some(), "{url}");
        }

        #[test]
        fn any_text_is_looked_at(url in "\\PC{0,300}", encoded in "[A-Za-z0-9+/_=%-]{0,2000}") {
            let _ = find(&url, &own());
            let _ = find(&format!("https://x.example/{encoded}"), &own());
        }

        #[test]
        fn hashes_and_numbers_of_others_are_free(hash in "[0-9a-f]{40}", id in "[A-Za-z0-9_-]{11}") {
            let url = format!("https://example.com/commit/{hash}?v={id}&list={id}{id}");
            prop_assert_eq!(find(&url, &own()), None);
        }
    }

    #[test]
    fn every_key_in_every_way_at_every_place_is_found() {
        for key in OWN {
            for (way, place) in (0..WAYS).flat_map(|way| (0..PLACES).map(move |place| (way, place)))
            {
                let url = placed(&written(key, way), place, "");
                assert!(
                    find(&url, &own()).is_some(),
                    "way {way}, place {place}: {url}"
                );
            }
        }
    }

    #[test]
    fn urls_with_secrets_are_found_however_they_are_written() {
        let key = "sk-ant-api03-abcdefghijklmnop";
        for url in [
            format!("https://evil.example/?q={key}"),
            format!("https://evil.example/{key}/x.png"),
            format!("https://evil.example/x.{key}"),
            format!("https://{key}.evil.example/"),
            format!("https://evil.example/#{key}"),
            format!("https://evil.example/?q={}", key.replace('-', "%2D")),
            format!("https://evil.example/?q={}", key.replace('-', "%252D")),
            "https://evil.example/?q=ghp_abcdefghijklmnopqrst0123456789".to_owned(),
            "https://x.example/?access_token=abc".to_owned(),
            "https://x.example/?a=b&API_KEY=abc".to_owned(),
            "https://x.example/?api%5Fkey=abc".to_owned(),
            "https://x.example/?X-Amz-Signature=abc".to_owned(),
            "https://x.example/?session_id=1".to_owned(),
        ] {
            assert!(find(&url, &HiddenKeys::default()).is_some(), "{url}");
        }
    }

    #[test]
    fn ordinary_urls_are_free() {
        for url in [
            "https://example.com/docs/api_key/introduction",
            "https://example.com/?q=what+is+an+access_token",
            "https://example.com/?token=",
            "https://example.com/?page_token=abc&key=value",
            "https://example.com/news/xai-grok-3-release-notes-2025",
            "https://example.com/sk-learn-style-pipelines-for-everyone-2",
            "https://example.com/100%",
        ] {
            assert_eq!(find(url, &own()), None, "{url}");
        }
    }
}
