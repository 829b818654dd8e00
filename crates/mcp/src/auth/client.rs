//! Who we are to an authorisation server, and what is known about it: the two files beside a token.

use hermes_core::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::settings::OAuthSettings;

/// Our registration. Its `Debug` shows no secret.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret>,
    pub(super) redirect_uris: Vec<String>,
    pub(super) name: String,
}

impl Client {
    /// Returns the client that the user registered by hand, if there is one.
    pub(super) fn configured(settings: &OAuthSettings) -> Option<Self> {
        Some(Self {
            id: settings.client_id.clone()?,
            secret: settings.client_secret.clone(),
            redirect_uris: Vec::new(),
            name: settings.client_name.clone(),
        })
    }
}

/// `<server>.client.json`. Has no `Debug`: it may hold a secret.
#[derive(Serialize, Deserialize)]
pub(super) struct ClientFile {
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    #[serde(default)]
    client_name: Option<String>,
    #[serde(default)]
    grant_types: Vec<String>,
    #[serde(default)]
    response_types: Vec<String>,
}

impl ClientFile {
    pub(super) fn of(client: &Client) -> Self {
        Self {
            client_id: client.id.clone(),
            client_secret: client
                .secret
                .as_ref()
                .map(|secret| secret.expose().to_owned()),
            redirect_uris: client.redirect_uris.clone(),
            client_name: Some(client.name.clone()),
            grant_types: vec!["authorization_code".to_owned(), "refresh_token".to_owned()],
            response_types: vec!["code".to_owned()],
        }
    }

    pub(super) fn into_client(self) -> Client {
        Client {
            id: self.client_id,
            secret: self.client_secret.map(Secret::new),
            redirect_uris: self.redirect_uris,
            name: self.client_name.unwrap_or_default(),
        }
    }
}

/// `<server>.meta.json`: what the authorisation server published, and which resource the token is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Metadata {
    pub(super) token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Absent from files that other programs wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource: Option<String>,
    /// The rest, kept for whoever else reads the file.
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

impl Metadata {
    /// Returns whether a secret belongs into the body of a request instead of its header.
    pub(super) fn wants_secret_in_body(&self) -> bool {
        let methods = self
            .token_endpoint_auth_methods_supported
            .as_deref()
            .unwrap_or_default();
        let has = |name: &str| methods.iter().any(|method| method == name);
        has("client_secret_post") && !has("client_secret_basic")
    }
}
