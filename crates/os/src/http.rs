//! HTTP clients: TLS is rustls with ring and the system's certificates, so that a build needs no C library.

use std::sync::Arc;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use rustls::crypto::ring;

pub const USER_AGENT: &str = concat!("hermes/", env!("CARGO_PKG_VERSION"));

/// Begins a client. It follows no redirects: a redirected request would carry keys to wherever it is sent.
///
/// Building it reads the system's certificates, which takes milliseconds; see [`without_tls`].
pub fn client() -> ClientBuilder {
    // An error means that somebody installed one before, which is as good.
    let _ = ring::default_provider().install_default();
    Client::builder()
        .user_agent(USER_AGENT)
        .redirect(Policy::none())
}

/// Lets a client speak plain HTTP only: it trusts no certificate, so that none need be read.
pub fn without_tls(builder: ClientBuilder) -> ClientBuilder {
    let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default versions of TLS")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    builder.tls_backend_preconfigured(config)
}
