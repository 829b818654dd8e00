//! TLS with the system's certificates, and with those that settings name.

use std::path::Path;
use std::sync::Arc;

use hermes_core::{ChannelError, Trouble};
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;

/// How connections are secured. Making it reads the system's certificates, which takes milliseconds.
pub(super) fn config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, ChannelError> {
    let extra = ca_file.map(certificates).transpose()?.unwrap_or_default();
    let broken = |error: rustls::Error| {
        let words = format!("TLS cannot be set up: {error}");
        ChannelError::new(Trouble::Passing, words)
    };
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(broken)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(broken)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ChannelError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let read: Result<Vec<_>, rustls::pki_types::pem::Error> = read;
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(unreadable(path, "there is none in it")),
        Err(error) => Err(unreadable(path, &error.to_string())),
    }
}

fn unreadable(path: &Path, why: &str) -> ChannelError {
    ChannelError::new(
        Trouble::NotAuthorised,
        format!(
            "the certificates in `{}` cannot be read: {why}",
            path.display()
        ),
    )
    .with_hint("`EMAIL_CA_FILE` must name a file of certificates in PEM")
}

/// What to do about a certificate that is not accepted.
pub(super) const CERTIFICATE_HINT: &str = "the server's certificate is not one that this system trusts: check the name of the server and this machine's clock; for a server of your own, put its certificate into a file and name it in `EMAIL_CA_FILE`";
