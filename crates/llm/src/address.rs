//! What a base URL says about where a server is.

use std::net::IpAddr;

/// Returns the host of a URL, without port, user or brackets.
pub(crate) fn host_of(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Returns whether a server is on this machine or the network around it.
pub(crate) fn is_local(base_url: &str) -> bool {
    let host = host_of(base_url);
    let is_private = |address: IpAddr| match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    };
    host == "localhost" || host.ends_with(".local") || host.parse().is_ok_and(is_private)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_in_every_kind_of_url() {
        let check = |url, host| assert_eq!(host_of(url), host);
        check("https://api.openai.com/v1", "api.openai.com");
        check("http://user:pass@box.lan:8080/v1", "box.lan");
        check("http://[::1]:8080", "::1");
        check("localhost", "localhost");
    }

    #[test]
    fn what_is_near_is_local() {
        for url in [
            "http://127.0.0.1:1/v1",
            "http://localhost",
            "http://[::1]:1",
            "http://192.168.0.2",
            "http://box.local",
        ] {
            assert!(is_local(url), "{url}");
        }
        for url in [
            "https://api.openai.com/v1",
            "http://8.8.8.8",
            "https://localhost.example",
        ] {
            assert!(!is_local(url), "{url}");
        }
    }
}
