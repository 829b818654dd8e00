//! What a mailbox can be told.

use std::path::PathBuf;
use std::time::Duration;

use hermes_core::{PlatformSetting, PlatformSettingError, PlatformSettings, Secret};

use super::address;
use crate::setting::{asked, known, needed, secret};

pub(super) const PASSWORD_VARIABLE: &str = "EMAIL_PASSWORD";

const IMAP_PORT: u64 = 993;
const IMAP_STARTTLS_PORT: u64 = 143;
const SMTP_PORT: u64 = 587;
const SMTP_TLS_PORT: u64 = 465;
/// How often a server without IDLE is asked.
const POLL_SECS: u64 = 15;
const POLL_SECS_MAX: u64 = 3600;

/// Servers that write what they found out about senders, and write it above everything a sender can: what their
/// Authentication-Results begin with, or whatever the topmost begin with.
const KNOWN_SERVERS: &[(&str, Option<&str>)] = &[
    ("gmail.com", Some("mx.google.com")),
    ("googlemail.com", Some("mx.google.com")),
    ("mail.me.com", Some("dmarc.icloud.com")),
    ("office365.com", None),
    ("outlook.com", None),
    ("fastmail.com", None),
    ("mail.yahoo.com", None),
];

pub(super) const SETTINGS: &[PlatformSetting] = &[
    needed(
        "address",
        "EMAIL_ADDRESS",
        "Mail address that Hermes is to have",
    ),
    secret(needed(
        "password",
        PASSWORD_VARIABLE,
        "Password (an app password, where the provider has them)",
    )),
    needed(
        "imap_host",
        "EMAIL_IMAP_HOST",
        "IMAP server (imap.gmail.com)",
    ),
    needed(
        "smtp_host",
        "EMAIL_SMTP_HOST",
        "SMTP server (smtp.gmail.com)",
    ),
    asked(
        "allow_from",
        "EMAIL_ALLOWED_USERS",
        "Addresses of people who may ask, with commas",
    ),
    asked(
        "authserv_id",
        "EMAIL_AUTHSERV_ID",
        "What your server calls itself in Authentication-Results (empty for Gmail, iCloud, Outlook, Fastmail and Yahoo)",
    ),
    known("allow_all_users", "EMAIL_ALLOW_ALL_USERS"),
    known("home_channel", "EMAIL_HOME_ADDRESS"),
    known("imap_port", "EMAIL_IMAP_PORT"),
    known("smtp_port", "EMAIL_SMTP_PORT"),
    known("imap_security", "EMAIL_IMAP_SECURITY"),
    known("smtp_security", "EMAIL_SMTP_SECURITY"),
    known("ca_file", "EMAIL_CA_FILE"),
    known("poll_interval", "EMAIL_POLL_INTERVAL"),
    known("trust_from_header", "EMAIL_TRUST_FROM_HEADER"),
    known(
        "require_authenticated_sender",
        "EMAIL_REQUIRE_AUTHENTICATED_SENDER",
    ),
    known("skip_attachments", "EMAIL_SKIP_ATTACHMENTS"),
];

/// The settings, checked.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// Ours, as [`address::canonical`] writes it.
    pub(super) address: String,
    pub(super) password: Secret,
    pub(super) imap: Server,
    pub(super) smtp: Server,
    /// Certificates that are trusted beside the system's.
    pub(super) ca_file: Option<PathBuf>,
    pub(super) poll_interval: Duration,
    pub(super) proof: Proof,
    pub(super) skip_attachments: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) security: Security,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Security {
    Tls,
    StartTls,
    /// For servers on this machine only.
    None,
}

/// What proves that a mail is from whom it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proof {
    /// Nothing: the address is believed.
    Trusted,
    /// The topmost Authentication-Results, whoever wrote them.
    Topmost,
    /// The topmost Authentication-Results of this server.
    Of(String),
    /// Nobody said what our server calls itself: nothing is proven.
    Missing,
}

impl Settings {
    /// The part of our address behind the `@`.
    pub(super) fn domain(&self) -> &str {
        address::domain(&self.address)
    }
}

pub(super) fn read(settings: &PlatformSettings) -> Result<Settings, PlatformSettingError> {
    check_people(settings)?;
    let imap = server(settings, &IMAP)?;
    Ok(Settings {
        address: our_address(settings)?,
        password: password(settings)?,
        smtp: server(settings, &SMTP)?,
        ca_file: ca_file(settings)?,
        poll_interval: poll_interval(settings)?,
        proof: proof(settings, &imap.host),
        imap,
        skip_attachments: settings.switch("skip_attachments", false),
    })
}

fn our_address(settings: &PlatformSettings) -> Result<String, PlatformSettingError> {
    let given = settings.text("address").unwrap_or_default();
    address::canonical(&given).ok_or_else(|| PlatformSettingError {
        key: "address",
        message: match given.as_str() {
            "" => "there is no mail address".to_owned(),
            given => format!("`{given}` is not a mail address"),
        },
        hint:
            "set `EMAIL_ADDRESS` to the address of a mailbox of Hermes' own: `hermes@example.org`"
                .to_owned(),
    })
}

fn password(settings: &PlatformSettings) -> Result<Secret, PlatformSettingError> {
    let refused = |message: &str| PlatformSettingError {
        key: "password",
        message: message.to_owned(),
        hint: format!(
            "set `{PASSWORD_VARIABLE}` to the mailbox's password; Gmail, iCloud, Yahoo and Fastmail want an app password, made in the account's security settings"
        ),
    };
    let password = settings
        .text("password")
        .ok_or_else(|| refused("there is no password for the mailbox"))?;
    if password.chars().any(char::is_control) {
        return Err(refused("the password has characters that no server takes"));
    }
    Ok(Secret::new(password))
}

/// Who is named in a list must be an address: only that is proven of a sender.
fn check_people(settings: &PlatformSettings) -> Result<(), PlatformSettingError> {
    const LISTS: [&str; 3] = ["allow_from", "allowed_users", "allow_admin_from"];
    let is_right = |entry: &String| *entry == "*" || address::canonical(entry).is_some();
    for key in LISTS {
        if let Some(entry) = settings.list(key).iter().find(|entry| !is_right(entry)) {
            return Err(PlatformSettingError {
                key,
                message: format!("`{entry}` is not a mail address"),
                hint: "write whole addresses, with commas between them: `alice@example.org`"
                    .to_owned(),
            });
        }
    }
    Ok(())
}

/// What differs between the two servers.
struct Kind {
    host: &'static str,
    port: &'static str,
    security: &'static str,
    usual_port: u64,
    starttls_port: u64,
    tls_port: u64,
    usual: Security,
    example: &'static str,
}

const IMAP: Kind = Kind {
    host: "imap_host",
    port: "imap_port",
    security: "imap_security",
    usual_port: IMAP_PORT,
    starttls_port: IMAP_STARTTLS_PORT,
    tls_port: IMAP_PORT,
    usual: Security::Tls,
    example: "imap.gmail.com",
};

const SMTP: Kind = Kind {
    host: "smtp_host",
    port: "smtp_port",
    security: "smtp_security",
    usual_port: SMTP_PORT,
    starttls_port: SMTP_PORT,
    tls_port: SMTP_TLS_PORT,
    usual: Security::StartTls,
    example: "smtp.gmail.com",
};

fn server(settings: &PlatformSettings, kind: &Kind) -> Result<Server, PlatformSettingError> {
    let host = settings.text(kind.host).unwrap_or_default();
    let is_of_a_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | ':' | '_');
    if host.is_empty() || !host.chars().all(is_of_a_name) {
        return Err(PlatformSettingError {
            key: kind.host,
            message: format!("`{host}` is not the name of a mail server"),
            hint: format!("it looks like `{}`", kind.example),
        });
    }
    let port = settings.number(kind.port).unwrap_or(kind.usual_port);
    let security = security(settings, kind, &host, port)?;
    let port = u16::try_from(port).ok().filter(|port| *port > 0);
    let port = port.ok_or_else(|| PlatformSettingError {
        key: kind.port,
        message: "there is no such port".to_owned(),
        hint: format!("it is a number like {}", kind.usual_port),
    })?;
    Ok(Server {
        host,
        port,
        security,
    })
}

fn security(
    settings: &PlatformSettings,
    kind: &Kind,
    host: &str,
    port: u64,
) -> Result<Security, PlatformSettingError> {
    let refused = |message: String, hint: &str| PlatformSettingError {
        key: kind.security,
        message,
        hint: hint.to_owned(),
    };
    let said = settings
        .text(kind.security)
        .map(|said| said.to_ascii_lowercase());
    match said.as_deref() {
        Some("tls" | "ssl") => Ok(Security::Tls),
        Some("starttls") => Ok(Security::StartTls),
        Some("none") if is_this_machine(host) => Ok(Security::None),
        Some("none") => Err(refused(
            format!("the password would go to `{host}` for everybody to read"),
            "use `tls` or `starttls`; `none` is for servers on this machine",
        )),
        Some(said) => Err(refused(
            format!("`{said}` is no way to secure a connection"),
            "write `tls`, `starttls` or `none`",
        )),
        None if port == kind.tls_port => Ok(Security::Tls),
        None if port == kind.starttls_port => Ok(Security::StartTls),
        None => Ok(kind.usual),
    }
}

fn is_this_machine(host: &str) -> bool {
    let address: Option<std::net::IpAddr> = host.parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

fn ca_file(settings: &PlatformSettings) -> Result<Option<PathBuf>, PlatformSettingError> {
    let Some(path) = settings.text("ca_file").map(PathBuf::from) else {
        return Ok(None);
    };
    if path.is_file() {
        return Ok(Some(path));
    }
    Err(PlatformSettingError {
        key: "ca_file",
        message: format!("`{}` is not there", path.display()),
        hint:
            "it is a file of certificates in PEM, for a server whose own the system does not trust"
                .to_owned(),
    })
}

fn poll_interval(settings: &PlatformSettings) -> Result<Duration, PlatformSettingError> {
    let secs = match settings.text("poll_interval") {
        None => Some(POLL_SECS),
        Some(_) => settings.number("poll_interval"),
    };
    secs.filter(|secs| (1..=POLL_SECS_MAX).contains(secs))
        .map(Duration::from_secs)
        .ok_or_else(|| PlatformSettingError {
            key: "poll_interval",
            message: "mail cannot be looked for that often".to_owned(),
            hint: format!("it is a number of seconds, from 1 to {POLL_SECS_MAX}"),
        })
}

fn proof(settings: &PlatformSettings, imap_host: &str) -> Proof {
    let is_believed = settings.switch("trust_from_header", false)
        || !settings.switch("require_authenticated_sender", true);
    if is_believed {
        return Proof::Trusted;
    }
    if let Some(server) = settings.text("authserv_id") {
        return Proof::Of(server.to_ascii_lowercase());
    }
    let host = imap_host.to_ascii_lowercase();
    let is_of = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
    let known = KNOWN_SERVERS.iter().find(|(domain, _)| is_of(domain));
    match known {
        Some((_, Some(server))) => Proof::Of((*server).to_owned()),
        Some((_, None)) => Proof::Topmost,
        None => Proof::Missing,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::*;

    fn read_of(values: &[(&str, Value)]) -> Result<Settings, PlatformSettingError> {
        let mut all = BTreeMap::from([
            ("address".to_owned(), json!("Hermes@Example.org")),
            ("password".to_owned(), json!("open sesame")),
            ("imap_host".to_owned(), json!("imap.gmail.com")),
            ("smtp_host".to_owned(), json!("smtp.gmail.com")),
        ]);
        for (key, value) in values {
            all.insert((*key).to_owned(), value.clone());
        }
        read(&PlatformSettings::new(all))
    }

    fn refused(values: &[(&str, Value)]) -> &'static str {
        let error = read_of(values).expect_err("settings that are wrong");
        assert!(!error.hint.is_empty() && !error.message.contains("sesame"));
        error.key
    }

    #[test]
    fn what_is_not_said_is_as_providers_have_it() {
        let settings = read_of(&[]).expect("settings");
        assert_eq!(settings.address, "hermes@example.org");
        assert_eq!(settings.imap.security, Security::Tls);
        assert_eq!((settings.imap.port, settings.smtp.port), (993, 587));
        assert_eq!(settings.smtp.security, Security::StartTls);
        assert_eq!(settings.poll_interval, Duration::from_secs(15));
        assert_eq!(settings.proof, Proof::Of("mx.google.com".to_owned()));
        assert!(!format!("{settings:?}").contains("sesame"));
    }

    #[test]
    fn ports_say_how_connections_are_secured() {
        let ports = [("imap_port", json!(143)), ("smtp_port", json!("465"))];
        let settings = read_of(&ports).expect("settings");
        assert_eq!(settings.imap.security, Security::StartTls);
        assert_eq!(settings.smtp.security, Security::Tls);
        let said = read_of(&[("imap_port", json!(1993)), ("imap_security", json!("tls"))]);
        assert_eq!(said.expect("settings").imap.security, Security::Tls);
        assert_eq!(refused(&[("imap_port", json!(0))]), "imap_port");
        assert_eq!(refused(&[("smtp_port", json!(99_999))]), "smtp_port");
    }

    #[test]
    fn passwords_are_sent_in_the_clear_on_this_machine_only() {
        let plain = ("imap_security", json!("none"));
        assert_eq!(refused(std::slice::from_ref(&plain)), "imap_security");
        for host in ["localhost", "127.0.0.1", "::1"] {
            assert!(read_of(&[plain.clone(), ("imap_host", json!(host))]).is_ok());
        }
        assert_eq!(
            refused(&[("smtp_security", json!("maybe"))]),
            "smtp_security"
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        assert_eq!(refused(&[("address", json!("hermes"))]), "address");
        assert_eq!(refused(&[("address", json!(""))]), "address");
        assert_eq!(refused(&[("password", json!(" "))]), "password");
        assert_eq!(refused(&[("password", json!("a\r\nb"))]), "password");
        assert_eq!(refused(&[("imap_host", json!("a b"))]), "imap_host");
        assert_eq!(refused(&[("smtp_host", json!("https://x/y"))]), "smtp_host");
        assert_eq!(refused(&[("poll_interval", json!(0))]), "poll_interval");
        assert_eq!(refused(&[("poll_interval", json!("x"))]), "poll_interval");
        assert_eq!(refused(&[("ca_file", json!("/no/such"))]), "ca_file");
    }

    #[test]
    fn a_name_without_a_domain_lets_nobody_in() {
        for key in ["allow_from", "allowed_users", "allow_admin_from"] {
            assert_eq!(refused(&[(key, json!("alice"))]), key);
        }
        assert!(read_of(&[("allow_from", json!("alice@example.org, *"))]).is_ok());
    }

    #[test]
    fn senders_are_believed_only_where_somebody_says_so() {
        let proof = |values: &[(&str, Value)]| read_of(values).expect("settings").proof;
        let own = ("imap_host", json!("mail.example.org"));
        assert_eq!(proof(std::slice::from_ref(&own)), Proof::Missing);
        let named = ("authserv_id", json!("MX.Example.org"));
        assert_eq!(
            proof(&[own.clone(), named]),
            Proof::Of("mx.example.org".to_owned())
        );
        assert_eq!(
            proof(&[("imap_host", json!("outlook.office365.com"))]),
            Proof::Topmost
        );
        assert_eq!(
            proof(&[("imap_host", json!("evilgmail.com"))]),
            Proof::Missing
        );
        let trust = ("trust_from_header", json!("true"));
        assert_eq!(proof(&[own.clone(), trust]), Proof::Trusted);
        let lenient = ("require_authenticated_sender", json!(false));
        assert_eq!(proof(&[own, lenient]), Proof::Trusted);
    }
}
