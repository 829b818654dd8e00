//! Which URLs would carry a secret out. A page may talk a model into asking for `https://elsewhere/?key=…`.

use hermes_core::redact::holds_token;
use percent_encoding::percent_decode_str;
use reqwest::Url;

/// How often something may be encoded and still be looked at.
const LAYERS_MAX: usize = 3;

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

/// Says what in a URL looks like a secret.
pub(crate) fn find(url: &str) -> Option<String> {
    let mut text = url.to_owned();
    for _ in 0..=LAYERS_MAX {
        if holds_token(&text) {
            return Some("what looks like a key".to_owned());
        }
        if let Some(name) = secret_parameter(&text) {
            return Some(format!("the parameter `{name}`"));
        }
        let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            break;
        }
        text = decoded;
    }
    None
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
    use super::*;

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
            assert!(find(&url).is_some(), "{url}");
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
            assert_eq!(find(url), None, "{url}");
        }
    }
}
