//! Which URLs and addresses may be asked at all.
//!
//! A URL is judged before anything is sent, and so is every address its host has. What a URL parser makes of odd
//! spellings (`0x7f.1`, `2130706433`, `127。0。0。1`) is judged, not the spelling.

use std::net::IpAddr;

use reqwest::Url;

use super::address::{Sort, sort};

/// Whether addresses of this machine and its network may be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PrivateUrls {
    #[default]
    Refused,
    /// All but those of metadata services.
    Allowed,
}

/// Names of metadata services. They are refused before they are resolved, since a proxy or a hosts file may know them
/// by other addresses.
const METADATA_HOSTS: &[&str] = &[
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.tencentyun.com",
];

/// Why something is not asked. The model reads it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("this is no web address: {reason}; write it as `https://host/path`")]
    Malformed { reason: String },
    #[error("`{scheme}:` is not fetched, only `http:` and `https:` are")]
    Scheme { scheme: String },
    #[error(
        "a URL with a user name or password in it is not fetched; leave out what is before the `@`"
    )]
    Login,
    #[error("`{host}` is a metadata service, which hands out keys; it is never asked")]
    Metadata { host: String },
    #[error(
        "`{host}` is {sort} ({address}), which is not asked unless the user sets `security.allow_private_urls`; tell \
         them if the task needs this server"
    )]
    Private {
        host: String,
        address: IpAddr,
        sort: &'static str,
    },
    #[error("no address is known of `{host}`: {reason}; check its spelling")]
    Unresolved { host: String, reason: String },
}

impl PrivateUrls {
    /// Reads and judges an address that somebody wrote.
    pub(super) fn parse(self, text: &str) -> Result<Url, Refusal> {
        let url = Url::parse(text.trim()).map_err(|error| Refusal::Malformed {
            reason: error.to_string(),
        })?;
        self.judge_url(&url)?;
        Ok(url)
    }

    /// Judges all that a URL says. What its host's name resolves to is judged by [`PrivateUrls::judge_address`].
    pub(super) fn judge_url(self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            let scheme = url.scheme().to_owned();
            return Err(Refusal::Scheme { scheme });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Login);
        }
        let host = host(url);
        if METADATA_HOSTS.contains(&host) {
            let host = host.to_owned();
            return Err(Refusal::Metadata { host });
        }
        match host.trim_matches(['[', ']']).parse() {
            Ok(address) => self.judge_address(host, address),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn judge_address(self, host: &str, address: IpAddr) -> Result<(), Refusal> {
        match (sort(address), self) {
            (Sort::Public, _) | (Sort::Private(_), Self::Allowed) => Ok(()),
            (Sort::Metadata, _) => Err(Refusal::Metadata {
                host: host.to_owned(),
            }),
            (Sort::Private(sort), Self::Refused) => Err(Refusal::Private {
                host: host.to_owned(),
                address,
                sort,
            }),
        }
    }
}

/// The host of a web address, without the dot that may end it.
pub(super) fn host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.strip_suffix('.').unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdict(text: &str, private: PrivateUrls) -> &'static str {
        match private.parse(text) {
            Ok(_) => "ok",
            Err(Refusal::Malformed { .. }) => "malformed",
            Err(Refusal::Scheme { .. }) => "scheme",
            Err(Refusal::Login) => "login",
            Err(Refusal::Metadata { .. }) => "metadata",
            Err(Refusal::Private { .. }) => "private",
            Err(Refusal::Unresolved { .. }) => "unresolved",
        }
    }

    /// URL, verdict as usual, verdict when private addresses are allowed.
    const CASES: &[(&str, &str, &str)] = &[
        ("https://example.com/", "ok", "ok"),
        ("HTTP://EXAMPLE.COM", "ok", "ok"),
        ("  https://example.com/a?b=c#d  ", "ok", "ok"),
        ("https://bücher.example/", "ok", "ok"),
        ("https://8.8.8.8/", "ok", "ok"),
        ("https://[2606:4700:4700::1111]/", "ok", "ok"),
        // No web addresses.
        ("", "malformed", "malformed"),
        ("example.com", "malformed", "malformed"),
        ("//example.com/", "malformed", "malformed"),
        ("http://", "malformed", "malformed"),
        ("https:///", "malformed", "malformed"),
        ("http://exa mple.com/", "malformed", "malformed"),
        ("http://example.com:99999/", "malformed", "malformed"),
        ("http://256.256.256.256/", "malformed", "malformed"),
        ("http://127.0.0.1.1/", "malformed", "malformed"),
        ("http://[::1/", "malformed", "malformed"),
        ("http://[fe80::1%25eth0]/", "malformed", "malformed"),
        ("http://0x100000000/", "malformed", "malformed"),
        ("http://a%00b/", "malformed", "malformed"),
        ("file:///etc/passwd", "scheme", "scheme"),
        ("ftp://example.com/", "scheme", "scheme"),
        ("gopher://127.0.0.1:6379/_x", "scheme", "scheme"),
        ("javascript:alert(1)", "scheme", "scheme"),
        ("data:text/html,hi", "scheme", "scheme"),
        ("ws://example.com/", "scheme", "scheme"),
        ("view-source:http://example.com/", "scheme", "scheme"),
        ("https://me@example.com/", "login", "login"),
        ("https://me:word@example.com/", "login", "login"),
        ("https://example.com@127.0.0.1/", "login", "login"),
        ("https://:word@example.com/", "login", "login"),
        // Spellings of loopback.
        ("http://127.0.0.1/", "private", "ok"),
        ("http://127.0.0.1./", "private", "ok"),
        ("http://127.1/", "private", "ok"),
        ("http://127.0.1/", "private", "ok"),
        ("http://2130706433/", "private", "ok"),
        ("http://0x7f000001/", "private", "ok"),
        ("http://0x7F.1/", "private", "ok"),
        ("http://0177.0.0.1/", "private", "ok"),
        ("http://0177.0.0.01/", "private", "ok"),
        ("http://017700000001/", "private", "ok"),
        ("http://0x7f.0x0.0x0.0x1/", "private", "ok"),
        ("http://%31%32%37.0.0.1/", "private", "ok"),
        ("http://127。0。0。1/", "private", "ok"),
        ("http://１２７.0.0.1/", "private", "ok"),
        ("http://①②⑦.⓪.⓪.①/", "private", "ok"),
        ("http:\\\\127.0.0.1\\", "private", "ok"),
        ("http:127.0.0.1", "private", "ok"),
        ("http:////127.0.0.1/", "private", "ok"),
        ("http://127.0.0.1#@example.com/", "private", "ok"),
        ("http://127.0.0.1?.example.com/", "private", "ok"),
        ("http://12\t7.0.\n0.1/", "private", "ok"),
        ("http://0/", "private", "ok"),
        ("http://0.0.0.0:8080/", "private", "ok"),
        ("http://[::]/", "private", "ok"),
        ("http://[::1]:80/", "private", "ok"),
        ("http://[0:0:0:0:0:0:0:1]/", "private", "ok"),
        ("http://[::127.0.0.1]/", "private", "ok"),
        ("http://[::ffff:127.0.0.1]/", "private", "ok"),
        ("http://[::ffff:7f00:1]/", "private", "ok"),
        ("http://[64:ff9b::7f00:1]/", "private", "ok"),
        ("http://[2002:7f00:1::]/", "private", "ok"),
        // Other addresses that are not anybody's.
        ("http://10.0.0.1/", "private", "ok"),
        ("http://0xA000001/", "private", "ok"),
        ("http://172.16.0.1/", "private", "ok"),
        ("http://192.168.0.1/", "private", "ok"),
        ("http://100.64.0.1/", "private", "ok"),
        ("http://[fd00::1]/", "private", "ok"),
        ("http://[fe80::1]/", "private", "ok"),
        ("http://224.0.0.1/", "private", "ok"),
        ("http://255.255.255.255/", "private", "ok"),
        // Metadata services, whatever is allowed.
        ("http://169.254.169.254/latest/", "metadata", "metadata"),
        ("http://169.254.169.254./", "metadata", "metadata"),
        ("http://169.254.43518/", "metadata", "metadata"),
        ("http://2852039166/", "metadata", "metadata"),
        ("http://0xA9FEA9FE/", "metadata", "metadata"),
        ("http://0251.0376.0251.0376/", "metadata", "metadata"),
        ("http://169.254.170.2/", "metadata", "metadata"),
        ("http://100.100.100.200/", "metadata", "metadata"),
        ("http://[fd00:ec2::254]/", "metadata", "metadata"),
        ("http://[::ffff:169.254.169.254]/", "metadata", "metadata"),
        ("http://[::ffff:a9fe:a9fe]/", "metadata", "metadata"),
        ("http://metadata.google.internal/", "metadata", "metadata"),
        ("http://METADATA.google.internal./", "metadata", "metadata"),
        ("http://metadata.goog/", "metadata", "metadata"),
        ("http://metadata/", "metadata", "metadata"),
        ("http://%6detadata.goog/", "metadata", "metadata"),
    ];

    #[test]
    fn urls_are_judged_by_where_they_lead() {
        for (url, usual, allowed) in CASES {
            assert_eq!(verdict(url, PrivateUrls::Refused), *usual, "{url}");
            assert_eq!(verdict(url, PrivateUrls::Allowed), *allowed, "{url}");
        }
        assert!(CASES.len() >= 60, "{}", CASES.len());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_judge_panic(text in "\\PC{0,60}") {
            let _ = PrivateUrls::Refused.parse(&text);
        }

        #[test]
        fn every_spelling_of_an_address_gets_the_same_verdict(bits in any::<u32>()) {
            let [a, b, c, d] = bits.to_be_bytes();
            let plain = verdict(&format!("http://{a}.{b}.{c}.{d}/"), PrivateUrls::Refused);
            let low = u32::from(c) << 8 | u32::from(d);
            for host in [
                format!("{bits}"),
                format!("{bits:#x}"),
                format!("0{bits:o}"),
                format!("{a}.{b}.{low}"),
                format!("{a:#x}.0{b:o}.{c}.{d:#X}", ).replace("0X", "0x"),
                format!("{a}.{b}.{c}.{d}."),
                format!("[::ffff:{a}.{b}.{c}.{d}]"),
            ] {
                let found = verdict(&format!("http://{host}/"), PrivateUrls::Refused);
                prop_assert_eq!(found, plain, "{}", host);
            }
        }
    }
}
