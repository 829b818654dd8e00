//! Proxies, as the environment names them. The environment is given: this crate does not read it.

use reqwest::{ClientBuilder, NoProxy, Proxy, Url};

use crate::failure::{Failure, with_sources};

/// Sends requests through the proxy that the environment names for this address, if it names one.
///
/// Our own machine is always reached directly. Returns whether there is a proxy.
pub(super) fn with_proxy(
    builder: ClientBuilder,
    url: &Url,
    environment: &[(String, String)],
) -> Result<(ClientBuilder, bool), Failure> {
    let builder = builder.no_proxy();
    let named = if is_this_machine(url) {
        None
    } else {
        proxy_for(url.scheme(), environment)
    };
    let Some((name, address)) = named else {
        return Ok((builder, false));
    };
    let proxy = Proxy::all(address).map_err(|error| Failure::Misconfigured {
        cause: format!(
            "the proxy in `{name}` cannot be used: {}",
            with_sources(&error.without_url())
        ),
    })?;
    let exceptions =
        variable("no_proxy", environment).and_then(|(_, list)| NoProxy::from_string(list));
    Ok((builder.proxy(proxy.no_proxy(exceptions)), true))
}

fn proxy_for<'a>(scheme: &str, environment: &'a [(String, String)]) -> Option<(&'a str, &'a str)> {
    let own = variable(&format!("{scheme}_proxy"), environment);
    own.or_else(|| variable("all_proxy", environment))
}

/// Finds a variable, in small letters or in capitals. An empty one is as good as none.
fn variable<'a>(name: &str, environment: &'a [(String, String)]) -> Option<(&'a str, &'a str)> {
    let capital = name.to_ascii_uppercase();
    let find = |wanted: &str| {
        let mut matching = environment
            .iter()
            .filter(|(name, value)| name == wanted && !value.is_empty());
        matching
            .next()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    };
    find(name).or_else(|| find(&capital))
}

fn is_this_machine(url: &Url) -> bool {
    match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host
            .parse::<std::net::Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn small_letters_win_and_the_general_proxy_is_the_last_resort() {
        let both = environment(&[
            ("HTTPS_PROXY", "http://a"),
            ("https_proxy", "http://b"),
            ("ALL_PROXY", "http://c"),
        ]);
        assert_eq!(proxy_for("https", &both), Some(("https_proxy", "http://b")));
        assert_eq!(proxy_for("http", &both), Some(("ALL_PROXY", "http://c")));
        assert_eq!(
            proxy_for("https", &environment(&[("HTTPS_PROXY", "")])),
            None
        );
    }

    #[test]
    fn a_proxy_that_is_no_address_is_named_without_its_password() {
        let environment = environment(&[("HTTPS_PROXY", "http://user:secret@[bad")]);
        let url = Url::parse("https://example.com/mcp").unwrap();
        let failure = with_proxy(reqwest::Client::builder(), &url, &environment).unwrap_err();
        let text = failure.to_string();
        assert!(
            text.contains("HTTPS_PROXY") && !text.contains("secret"),
            "{text}"
        );
    }
}
