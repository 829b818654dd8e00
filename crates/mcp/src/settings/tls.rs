//! Whom a server on the network must be, and who we say we are.

use std::path::PathBuf;

use super::SettingsError;
use super::section::{Section, SwitchOrText};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    pub verify: Verify,
    pub identity: Option<ClientIdentity>,
}

/// Which certificates of the server are accepted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Verify {
    /// Those that this machine trusts.
    #[default]
    System,
    /// Those of the authorities in this PEM file, and no others.
    Authorities(PathBuf),
    /// Any.
    Nothing,
}

/// The certificate that we show, as PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientIdentity {
    pub certificate: PathBuf,
    /// `None`: it is in the same file.
    pub key: Option<PathBuf>,
}

pub(super) fn tls(section: &mut Section<'_>) -> Result<TlsSettings, SettingsError> {
    let verify = match section.switch_or_text("ssl_verify")? {
        None | Some(SwitchOrText::Switch(true)) => Verify::System,
        Some(SwitchOrText::Switch(false)) => {
            section.warn(format!(
                "`mcp_servers.{}.ssl_verify` is off: whoever is between us and the server can pretend to be it; \
                 better set it to the PEM file of the server's authority",
                section.server()
            ));
            Verify::Nothing
        }
        Some(SwitchOrText::Text(path)) => Verify::Authorities(path.into()),
    };
    Ok(TlsSettings {
        verify,
        identity: identity(section)?,
    })
}

fn identity(section: &mut Section<'_>) -> Result<Option<ClientIdentity>, SettingsError> {
    let certificate = section.texts("client_cert")?;
    let separate_key = section.text("client_key")?;
    let Some(files) = certificate else {
        if separate_key.is_some() {
            section.warn(format!(
                "`mcp_servers.{}.client_key` has no effect without `client_cert`",
                section.server()
            ));
        }
        return Ok(None);
    };
    let mut files = files.into_iter().map(PathBuf::from);
    let (certificate, key, passphrase) = (files.next(), files.next(), files.next());
    match (certificate, passphrase) {
        (Some(certificate), None) => Ok(Some(ClientIdentity {
            certificate,
            key: separate_key.map(PathBuf::from).or(key),
        })),
        _ => Err(section.wrong_list(
            "client_cert",
            "a PEM file, or two of them: certificate and key (a key with a passphrase cannot be read here; \
             `openssl pkey -in KEY -out PLAIN` writes one without)",
        )),
    }
}
