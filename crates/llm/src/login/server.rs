//! Where a provider lets people log in.

use std::time::Duration;

use crate::address::{host_of, is_local};
use crate::resolve::Env;

/// The login of a provider: OAuth 2.0 for devices without a browser (RFC 8628), with a public client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceLogin {
    pub base_url: &'static str,
    /// The variables that replace `base_url`; the first that is set counts.
    pub base_url_envs: &'static [&'static str],
    pub device_path: &'static str,
    pub token_path: &'static str,
    /// Where a login can be ended (RFC 7009).
    pub revoke_path: Option<&'static str>,
    pub client_id: &'static str,
    /// What is asked for, separated by spaces.
    pub scope: &'static str,
    /// What requests to models need of it.
    pub needed_scope: &'static str,
    pub refresh_token_in: RefreshTokenIn,
    /// Tokens are renewed this long before they expire.
    pub renew_before: Duration,
    /// Where a person sees and ends logins.
    pub page: &'static str,
}

/// How the refresh token is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefreshTokenIn {
    Form,
    Header(&'static str),
}

/// The login of a provider, at its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginServer {
    /// The id of the provider.
    pub provider: &'static str,
    pub login: &'static DeviceLogin,
    base_url: String,
}

/// Tokens would be readable by everybody on the way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is not an https URL; tokens would be sent in the clear")]
pub struct InsecureServer {
    pub variable: &'static str,
}

impl LoginServer {
    pub fn new(
        provider: &'static str,
        login: &'static DeviceLogin,
        base_url: impl Into<String>,
    ) -> Self {
        let base_url: String = base_url.into();
        Self {
            provider,
            login,
            base_url: base_url.trim_end_matches('/').to_owned(),
        }
    }

    /// Finds the address: the user's, if a variable names one, or the provider's.
    pub fn of(
        provider: &'static str,
        login: &'static DeviceLogin,
        env: Env<'_>,
    ) -> Result<Self, InsecureServer> {
        let mut variables = login.base_url_envs.iter();
        let set = variables.find_map(|name| Some((*name, (env)(name)?)));
        match set {
            None => Ok(Self::new(provider, login, login.base_url)),
            Some((_, url)) if is_safe(url.expose()) => Ok(Self::new(provider, login, url.expose())),
            Some((variable, _)) => Err(InsecureServer { variable }),
        }
    }

    pub(super) fn host(&self) -> &str {
        host_of(&self.base_url)
    }

    pub(super) fn device_url(&self) -> String {
        format!("{}{}", self.base_url, self.login.device_path)
    }

    pub(super) fn token_url(&self) -> String {
        format!("{}{}", self.base_url, self.login.token_path)
    }

    pub(super) fn revoke_url(&self) -> Option<String> {
        let path = self.login.revoke_path?;
        Some(format!("{}{path}", self.base_url))
    }
}

/// Whether nobody on the way can read along.
pub(super) fn is_safe(url: &str) -> bool {
    url.starts_with("https://") || (url.starts_with("http://") && is_local(url))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers;
    use hermes_core::Secret;

    fn server(url: Option<&str>) -> Result<LoginServer, InsecureServer> {
        let provider = providers::find("nous").unwrap();
        LoginServer::of(provider.id, provider.login.unwrap(), &|name| {
            (name == "NOUS_PORTAL_BASE_URL")
                .then_some(url)
                .flatten()
                .map(Secret::new)
        })
    }

    #[test]
    fn a_variable_replaces_the_address_unless_tokens_would_be_seen() {
        let usual = server(None).unwrap();
        assert!(
            usual
                .token_url()
                .starts_with("https://portal.nousresearch.com/")
        );
        let other = server(Some("http://127.0.0.1:9/")).unwrap();
        assert!(other.device_url().starts_with("http://127.0.0.1:9/api/"));
        let error = server(Some("http://portal.example")).unwrap_err();
        assert_eq!(error.variable, "NOUS_PORTAL_BASE_URL");
    }
}
