//! Reads errors of the HTTP client: what broke, and whether asking again can help.

use std::error::Error;
use std::io;

use hermes_core::ModelErrorKind;

use crate::classify::{Failure, Remedy};

const UNTRUSTED_HINT: &str = "if the server is yours, put its certificate into the file that SSL_CERT_FILE names; \
     if it is not, something on the way reads along";

/// Says why no client could be made.
pub(crate) fn no_client(error: &reqwest::Error) -> String {
    format!("cannot set up TLS: {}", root_cause(error))
}

/// No byte of an answer came.
pub(crate) fn unanswered(error: &reqwest::Error) -> Failure {
    let cause = root_cause(error);
    if is_untrusted(error) {
        let message = format!("the certificate of the server is not trusted: {cause}");
        let failure = Failure::new(ModelErrorKind::Network, Remedy::OtherModel, message);
        return failure.with_hint(UNTRUSTED_HINT);
    }
    let message = format!("no answer came: {cause}");
    Failure::new(ModelErrorKind::Network, Remedy::Again, message)
}

/// The answer had begun.
pub(crate) fn broken_off(error: &reqwest::Error) -> Failure {
    let message = format!("the connection broke: {}", root_cause(error));
    Failure::new(ModelErrorKind::Broken, Remedy::Again, message)
}

/// The error and its causes, from the outside in.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let cause = next?;
        // An I/O error leaves what it wraps out of the chain.
        let wrapped = cause.downcast_ref().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
        Some(cause)
    })
}

/// Returns the innermost cause: the outer layers only say that something failed, and name the URL.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let root = causes(error).last().unwrap_or(error);
    root.to_string()
}

fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    let is_refused = |error: &rustls::Error| matches!(error, rustls::Error::InvalidCertificate(_));
    causes(error)
        .filter_map(|cause| cause.downcast_ref())
        .any(is_refused)
}
