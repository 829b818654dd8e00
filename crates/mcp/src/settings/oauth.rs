//! `auth: oauth` and the `oauth` section.

use std::time::Duration;

use hermes_core::Secret;

use super::section::Section;
use super::{SettingsError, TransportSettings};

const CLIENT_NAME: &str = "Hermes Agent";
const REDIRECT_HOST: &str = "127.0.0.1";
/// Long enough to find a password, short enough that a forgotten login does not wait for days.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);

/// How to log in at a server.
#[derive(Debug, Clone, PartialEq)]
pub struct OAuthSettings {
    /// A client registered by hand. Without one we register ourselves.
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// The address of a document that describes the client, for servers that accept one instead of a registration.
    pub client_metadata_url: Option<String>,
    /// What the server shows to the person who logs in.
    pub client_name: String,
    /// What to ask for; when empty, what the server says it needs.
    pub scopes: Vec<String>,
    /// Where the browser comes back to. `None`: any free port.
    pub redirect_port: Option<u16>,
    pub redirect_host: String,
    /// Replaces the address made of host and port, for a proxy before them.
    pub redirect_uri: Option<String>,
    pub login_timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Auth {
    OAuth,
    Header,
}

pub(super) fn oauth(
    section: &mut Section<'_>,
    transport: &mut TransportSettings,
) -> Result<Option<OAuthSettings>, SettingsError> {
    const WORDS: &[(&str, Auth)] = &[("oauth", Auth::OAuth), ("header", Auth::Header)];
    let server = section.server().to_owned();
    let auth = section.word("auth", WORDS)?;
    let has_section = section.has("oauth");
    let settings = section.inside("oauth", details)?;
    match (auth, transport) {
        (Some(Auth::OAuth), TransportSettings::Http { headers, .. }) => {
            let count = headers.len();
            headers.retain(|name, _| !name.eq_ignore_ascii_case("authorization"));
            if headers.len() < count {
                section.warn(format!(
                    "`mcp_servers.{server}.headers.Authorization` is not sent: with `auth: oauth` the token takes its place"
                ));
            }
            Ok(Some(settings))
        }
        (Some(Auth::OAuth), TransportSettings::Stdio { .. }) => {
            section.warn(format!(
                "`mcp_servers.{server}.auth` has no effect on a server that is a program"
            ));
            Ok(None)
        }
        (None | Some(Auth::Header), _) => {
            if has_section {
                section.warn(format!(
                    "`mcp_servers.{server}.oauth` has no effect without `auth: oauth`"
                ));
            }
            Ok(None)
        }
    }
}

fn details(oauth: &mut Section<'_>) -> Result<OAuthSettings, SettingsError> {
    let scopes = oauth.texts("scope")?.unwrap_or_default();
    let words = scopes.iter().flat_map(|text| text.split_whitespace());
    Ok(OAuthSettings {
        client_id: oauth.text("client_id")?,
        client_secret: oauth.secret("client_secret")?,
        client_metadata_url: oauth.text("client_metadata_url")?,
        client_name: oauth.text("client_name")?.unwrap_or(CLIENT_NAME.to_owned()),
        scopes: words.map(str::to_owned).collect(),
        redirect_port: oauth.port("redirect_port")?,
        redirect_host: oauth
            .text("redirect_host")?
            .unwrap_or(REDIRECT_HOST.to_owned()),
        redirect_uri: oauth.text("redirect_uri")?,
        login_timeout: oauth.seconds("timeout")?.unwrap_or(LOGIN_TIMEOUT),
    })
}
