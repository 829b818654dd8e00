//! Handing a mail over to a server. Knows how far it came when something went wrong.

use std::error::Error as _;
use std::time::Duration;

use hermes_core::{ChannelError, Trouble};
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail as MailFrom, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};

use super::compose::Mail;
use super::connect::ADDRESS_MAX;
use super::refusal::{self, Answer, Stage, classify};
use super::settings::{Security, Settings};
use super::tls::CERTIFICATE_HINT;

/// What a server needs for one command, on a bad line.
const CALL_MAX: Duration = Duration::from_secs(30);
/// Twenty-five megabytes over a slow line.
const TEXT_MAX: Duration = Duration::from_secs(180);

/// Hands a mail over.
pub(super) async fn deliver(settings: &Settings, mail: &Mail) -> Result<(), ChannelError> {
    let mut connection = open(settings).await?;
    let delivered = hand_over(&mut connection, mail).await;
    // The mail is there, or not: how we part does not change that.
    let _ = tokio::time::timeout(CALL_MAX, connection.abort()).await;
    delivered
}

/// Finds out whether the server lets us in.
pub(super) async fn probe(settings: &Settings) -> Result<(), ChannelError> {
    let mut connection = open(settings).await?;
    let _ = tokio::time::timeout(CALL_MAX, connection.abort()).await;
    Ok(())
}

async fn open(settings: &Settings) -> Result<AsyncSmtpConnection, ChannelError> {
    let server = &settings.smtp;
    let tls = match server.security {
        Security::None => None,
        _ => Some(tls(settings)?),
    };
    let hello = ClientId::default();
    let at = (server.host.as_str(), server.port);
    let implicit = tls.clone().filter(|_| server.security == Security::Tls);
    // The addresses of the server are tried one after another, each for so long.
    let connecting =
        AsyncSmtpConnection::connect_tokio1(at, Some(ADDRESS_MAX), &hello, implicit, None);
    let mut connection = bounded(Stage::Connect, CALL_MAX, connecting).await?;
    if let Some(tls) = tls.filter(|_| server.security == Security::StartTls) {
        let securing = connection.starttls(tls, &hello);
        bounded(Stage::Connect, CALL_MAX, securing).await?;
    }
    log_in(&mut connection, settings).await?;
    Ok(connection)
}

async fn log_in(
    connection: &mut AsyncSmtpConnection,
    settings: &Settings,
) -> Result<(), ChannelError> {
    let mechanisms = [Mechanism::Plain, Mechanism::Login];
    // A relay on this machine may know us without a password.
    let wants_none = !mechanisms
        .iter()
        .any(|mechanism| connection.server_info().supports_auth_mechanism(*mechanism));
    if wants_none && settings.smtp.security == Security::None {
        return Ok(());
    }
    let password = settings.password.expose().to_owned();
    let credentials = Credentials::new(settings.address.clone(), password);
    let login = connection.auth(&mechanisms, &credentials);
    bounded(Stage::LogIn, CALL_MAX, login).await.map(|_| ())
}

async fn hand_over(connection: &mut AsyncSmtpConnection, mail: &Mail) -> Result<(), ChannelError> {
    let options = options(connection, mail)?;
    let from = MailFrom::new(mail.envelope.from().cloned(), options);
    bounded(Stage::Sender, CALL_MAX, connection.command(from)).await?;
    for to in mail.envelope.to() {
        let to = Rcpt::new(to.clone(), Vec::new());
        bounded(Stage::Recipient, CALL_MAX, connection.command(to)).await?;
    }
    bounded(Stage::Recipient, CALL_MAX, connection.command(Data)).await?;
    bounded(Stage::Text, TEXT_MAX, connection.message(&mail.bytes)).await?;
    Ok(())
}

fn options(
    connection: &AsyncSmtpConnection,
    mail: &Mail,
) -> Result<Vec<MailParameter>, ChannelError> {
    let server = connection.server_info();
    let mut options = Vec::new();
    let addresses = mail.envelope.to().iter().chain(mail.envelope.from());
    let is_plain = |address: &lettre::Address| AsRef::<str>::as_ref(address).is_ascii();
    if !addresses.into_iter().all(is_plain) {
        if !server.supports_feature(Extension::SmtpUtfEight) {
            let words = "our mail server writes to addresses with plain letters only";
            return Err(ChannelError::new(Trouble::NotFound, words));
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    if !mail.bytes.is_ascii() && server.supports_feature(Extension::EightBitMime) {
        options.push(MailParameter::Body(MailBodyParameter::EightBitMime));
    }
    Ok(options)
}

fn tls(settings: &Settings) -> Result<TlsParameters, ChannelError> {
    let broken = |error: Error| {
        let words = format!("TLS cannot be set up: {}", words(&error));
        ChannelError::new(Trouble::Passing, words)
    };
    let mut builder = TlsParameters::builder(settings.smtp.host.clone());
    if let Some(path) = &settings.ca_file {
        let pem = std::fs::read(path).map_err(|error| {
            let words = format!("`{}` cannot be read: {error}", path.display());
            ChannelError::new(Trouble::NotAuthorised, words)
        })?;
        builder = builder.add_root_certificate(Certificate::from_pem(&pem).map_err(broken)?);
    }
    builder.build_rustls().map_err(broken)
}

async fn bounded<T>(
    stage: Stage,
    patience: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, ChannelError> {
    match tokio::time::timeout(patience, call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failed(stage, &error)),
        Err(_) => {
            let words = format!("no answer for {} s", patience.as_secs());
            Err(classify(stage, &Answer { code: None, words }))
        }
    }
}

fn failed(stage: Stage, error: &Error) -> ChannelError {
    if refusal::is_of_certificate(error) {
        return ChannelError::new(Trouble::NotAuthorised, words(error)).with_hint(CERTIFICATE_HINT);
    }
    let answer = Answer {
        code: error.status().map(u16::from),
        words: words(error),
    };
    classify(stage, &answer)
}

/// What the server said; else what went wrong, with its reason.
fn words(error: &Error) -> String {
    match error.source() {
        Some(source) if error.status().is_some() => source.to_string(),
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
