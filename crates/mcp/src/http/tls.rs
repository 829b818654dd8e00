//! Certificates: read anew for each connection, so that a renewed one is used without a restart.

use std::path::{Path, PathBuf};

use reqwest::{Certificate, ClientBuilder, Identity};

use crate::failure::{Failure, with_sources};
use crate::settings::{ClientIdentity, TlsSettings, Verify};

/// Adds what the settings say about certificates. `home` is what `~` stands for.
pub(super) async fn with_certificates(
    builder: ClientBuilder,
    tls: &TlsSettings,
    home: Option<&str>,
) -> Result<ClientBuilder, Failure> {
    let builder = match &tls.verify {
        Verify::System => builder,
        Verify::Nothing => builder.tls_danger_accept_invalid_certs(true),
        Verify::Authorities(path) => builder.tls_certs_only(authorities(path, home).await?),
    };
    match &tls.identity {
        None => Ok(builder),
        Some(files) => Ok(builder.identity(identity(files, home).await?)),
    }
}

async fn authorities(path: &Path, home: Option<&str>) -> Result<Vec<Certificate>, Failure> {
    let pem = read("ssl_verify", path, home).await?;
    let certificates = Certificate::from_pem_bundle(&pem)
        .map_err(|error| unusable("ssl_verify", path, &with_sources(&error)))?;
    if certificates.is_empty() {
        Err(unusable("ssl_verify", path, "it has no certificate in it"))
    } else {
        Ok(certificates)
    }
}

async fn identity(files: &ClientIdentity, home: Option<&str>) -> Result<Identity, Failure> {
    let mut pem = read("client_cert", &files.certificate, home).await?;
    if let Some(key) = &files.key {
        pem.push(b'\n');
        pem.extend(read("client_key", key, home).await?);
    }
    let path = &files.certificate;
    Identity::from_pem(&pem).map_err(|error| unusable("client_cert", path, &with_sources(&error)))
}

async fn read(key: &str, path: &Path, home: Option<&str>) -> Result<Vec<u8>, Failure> {
    let read = tokio::fs::read(expanded(path, home)).await;
    read.map_err(|error| unusable(key, path, &error.to_string()))
}

fn unusable(key: &str, path: &Path, cause: &str) -> Failure {
    Failure::Misconfigured {
        cause: format!(
            "the file of its `{key}`, `{}`, cannot be used: {cause}",
            path.display()
        ),
    }
}

fn expanded(path: &Path, home: Option<&str>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Path::new(home).join(rest),
        _ => path.to_owned(),
    }
}

/// Says what to do about a failure that certificates caused; `None` for any other.
pub(super) fn advice(cause: &str) -> Option<&'static str> {
    const ADVICE: &[(&[&str], &str)] = &[
        (
            &["certificate: UnknownIssuer", "certificate: BadSignature"],
            "nobody whom this machine trusts has signed its certificate; set `ssl_verify` to the PEM file of the \
             authority that has",
        ),
        (
            &["certificate: Expired", "certificate: certificate expired"],
            "its certificate has expired, or this machine's clock is wrong",
        ),
        (
            &[
                "certificate: NotValidForName",
                "certificate: certificate not valid for name",
            ],
            "its certificate is for another name; use that name in `url`",
        ),
        (
            &["invalid peer certificate"],
            "its certificate is not acceptable; `ssl_verify` says whom to trust",
        ),
        (
            &["alert: CertificateRequired"],
            "it asks for a client certificate; set `client_cert` (and `client_key`)",
        ),
        (
            &["alert: CertificateExpired"],
            "our certificate has expired; renew the file of `client_cert`",
        ),
        (
            &[
                "alert: UnknownCA",
                "alert: BadCertificate",
                "alert: CertificateUnknown",
                "alert: DecryptError",
            ],
            "it does not accept our certificate; check `client_cert` and `client_key`",
        ),
    ];
    let fits = |(signs, _): &&(&[&str], &str)| signs.iter().any(|sign| cause.contains(sign));
    ADVICE.iter().find(fits).map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_folder() {
        let expand = |path: &str| expanded(Path::new(path), Some("/home/me"));
        assert_eq!(expand("~/ca.pem"), Path::new("/home/me/ca.pem"));
        assert_eq!(expand("/etc/ca.pem"), Path::new("/etc/ca.pem"));
        assert_eq!(expand("~other/ca.pem"), Path::new("~other/ca.pem"));
    }

    #[test]
    fn only_certificates_get_advice_about_certificates() {
        assert!(
            advice("invalid peer certificate: UnknownIssuer")
                .is_some_and(|advice| advice.contains("ssl_verify"))
        );
        assert!(
            advice("received fatal alert: CertificateRequired")
                .is_some_and(|advice| advice.contains("client_cert"))
        );
        assert_eq!(advice("connection refused"), None);
    }
}
