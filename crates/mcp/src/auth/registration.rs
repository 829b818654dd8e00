//! Who we are to an authorisation server.

use hermes_core::Secret;
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationMetadata};

use super::client::Client;
use super::http::LibraryHttp;
use super::login::{LoginError, explain, files};
use super::store::Store;
use crate::settings::OAuthSettings;

/// Decides who we are to the authorisation server.
pub(super) struct Registrar<'a> {
    pub(super) settings: &'a OAuthSettings,
    pub(super) store: &'a Store,
    pub(super) found: &'a AuthorizationMetadata,
    pub(super) redirect_uri: &'a str,
    pub(super) scopes: &'a [String],
}

impl Registrar<'_> {
    /// Returns the client, and whether it is one to keep: registered by hand, registered before, described by a
    /// document, or registered now.
    pub(super) async fn client(
        &self,
        manager: &mut AuthorizationManager,
        http: &LibraryHttp,
    ) -> Result<(Client, bool), LoginError> {
        if let Some(client) = Client::configured(self.settings) {
            return Ok((client, false));
        }
        if let Some(client) = self.registered_before()? {
            return Ok((client, true));
        }
        if let Some(client) = self.described() {
            return Ok((client, true));
        }
        let scopes: Vec<&str> = self.scopes.iter().map(String::as_str).collect();
        let name = &self.settings.client_name;
        let registered = manager.register_client(name, self.redirect_uri, &scopes);
        let registered = registered
            .await
            .map_err(|error| self.unregistered(&error, http))?;
        let secret = registered.client_secret.map(Secret::new);
        Ok((self.named(registered.client_id, secret), true))
    }

    /// A registration is of use at the same server, for the same way back.
    fn registered_before(&self) -> Result<Option<Client>, LoginError> {
        let metadata = self.store.metadata().map_err(files)?;
        let is_same_server = metadata.is_some_and(|metadata| metadata.issuer == self.found.issuer);
        let client = self.store.client().map_err(files)?;
        let knows_way_back = |client: &Client| {
            client
                .redirect_uris
                .iter()
                .any(|uri| uri == self.redirect_uri)
        };
        Ok(client.filter(|client| is_same_server && knows_way_back(client)))
    }

    fn described(&self) -> Option<Client> {
        let url = self.settings.client_metadata_url.clone()?;
        let supported = self
            .found
            .additional_fields
            .get("client_id_metadata_document_supported");
        (supported?.as_bool() == Some(true)).then(|| self.named(url, None))
    }

    fn named(&self, id: String, secret: Option<Secret>) -> Client {
        Client {
            id,
            secret,
            redirect_uris: vec![self.redirect_uri.to_owned()],
            name: self.settings.client_name.clone(),
        }
    }

    fn unregistered(&self, error: &AuthError, http: &LibraryHttp) -> LoginError {
        LoginError::Unregistered {
            reason: format!(
                "{}; register one there by hand, with the return address `{}`, and set `oauth.client_id`",
                explain(error, http),
                self.redirect_uri
            ),
        }
    }
}
