//! A sandbox of Modal, as the settings say, with a token from the environment or from the file of Modal's own programs.

use std::path::PathBuf;
use std::time::Duration;

use hermes_core::Secret;
use hermes_exec::{Modal, ModalSettings};

use super::remote_folder;
use crate::base::Base;
use crate::failure::{Failure, Outcome};

pub const TOKEN_ID: &str = "MODAL_TOKEN_ID";
pub const TOKEN_SECRET: &str = "MODAL_TOKEN_SECRET";

const ADDRESS: &str = "https://api.modal.com";

/// How long a sandbox lives at most, should nobody end it.
const LIFETIME: Duration = Duration::from_secs(3600);

/// What shows Modal who we are, and which Modal that is.
struct Account {
    id: Secret,
    secret: Secret,
    address: Option<String>,
    environment: Option<String>,
}

pub(super) fn modal(base: &Base) -> Outcome<Modal> {
    check_mode(base)?;
    let account = account(base)?.ok_or_else(|| {
        Failure::usage("`terminal.backend` is `modal`, but there is no token for it").hint(
            "put MODAL_TOKEN_ID=… and MODAL_TOKEN_SECRET=… into the `.env` file of Hermes' home, or run `modal token new`",
        )
    })?;
    let settings = &base.settings;
    let variable = |name: &str| base.environment.get(name).map(str::to_owned);
    let address = variable("MODAL_SERVER_URL").or(account.address);
    let environment = variable("MODAL_ENVIRONMENT").or(account.environment);
    Ok(Modal::new(ModalSettings {
        address: address.unwrap_or_else(|| ADDRESS.to_owned()),
        token_id: account.id,
        token_secret: account.secret,
        environment: environment.unwrap_or_default(),
        image: image(base)?,
        cpus: settings.f64("terminal.container_cpu")?,
        memory_mb: settings.u64("terminal.container_memory")?,
        lifetime: LIFETIME,
        persistent: settings.bool("terminal.container_persistent")?,
        snapshots: base.home.directory().join("modal_snapshots.json"),
        folder: Some(remote_folder(base)?),
    }))
}

/// Whether there is a token already.
pub fn has_token(base: &Base) -> Outcome<bool> {
    Ok(account(base)?.is_some())
}

fn check_mode(base: &Base) -> Outcome<()> {
    match base.settings.string("terminal.modal_mode")?.as_str() {
        "auto" | "direct" => Ok(()),
        "managed" => Err(Failure::usage(
            "`terminal.modal_mode` is `managed`, but this version uses Modal with a token of your own only",
        )
        .hint("run: hermes config set terminal.modal_mode direct")),
        other => Err(Failure::usage(format!(
            "`terminal.modal_mode` is `{other}`, which is no way to use Modal"
        ))
        .hint("known: auto, direct")),
    }
}

fn image(base: &Base) -> Outcome<String> {
    let image = base.settings.string("terminal.modal_image")?;
    if image.contains(char::is_whitespace) || image.is_empty() {
        Err(Failure::usage(format!(
            "`terminal.modal_image` is `{image}`, which is no image"
        ))
        .hint("run: hermes config set terminal.modal_image python:3.13"))
    } else {
        Ok(image)
    }
}

fn account(base: &Base) -> Outcome<Option<Account>> {
    match (base.variable(TOKEN_ID), base.variable(TOKEN_SECRET)) {
        (Some(id), Some(secret)) => Ok(Some(Account {
            id,
            secret,
            address: None,
            environment: None,
        })),
        (None, None) => account_on_file(base),
        (id, _) => {
            let missing = if id.is_none() { TOKEN_ID } else { TOKEN_SECRET };
            let message = format!("a token of Modal's has two halves, but there is no {missing}");
            Err(Failure::usage(message).hint("put both into the `.env` file of Hermes' home"))
        }
    }
}

/// Reads the file that `modal token new` writes.
fn account_on_file(base: &Base) -> Outcome<Option<Account>> {
    let named = base.environment.get("MODAL_CONFIG_PATH").map(PathBuf::from);
    let usual = || Some(base.environment.user_home()?.join(".modal.toml"));
    let Some(file) = named.or_else(usual) else {
        return Ok(None);
    };
    let Ok(text) = std::fs::read_to_string(&file) else {
        return Ok(None);
    };
    let profiles: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let message = format!("cannot read `{}`: {}", file.display(), error.message());
        Failure::usage(message).hint("`modal token new` writes it anew")
    })?;
    Ok(chosen(&profiles, base.environment.get("MODAL_PROFILE")))
}

/// The profile that was asked for, or the one that is active, or the usual one.
fn chosen(profiles: &toml::Table, asked: Option<&str>) -> Option<Account> {
    let is_active = |profile: &toml::Value| profile.get("active")?.as_bool();
    let active = || {
        let mut values = profiles.values();
        values.find(|profile| is_active(profile) == Some(true))
    };
    let profile = match asked {
        Some(asked) => profiles.get(asked),
        None => active().or_else(|| profiles.get("default")),
    }?;
    let text = |name: &str| Some(profile.get(name)?.as_str()?.to_owned());
    Some(Account {
        id: Secret::new(text("token_id")?),
        secret: Secret::new(text("token_secret")?),
        address: text("server_url"),
        environment: text("environment"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
        [default]
        token_id = 'ak-1'
        token_secret = 'as-1'
        [work]
        token_id = 'ak-2'
        token_secret = 'as-2'
        server_url = 'https://modal.example'
        environment = 'dev'
        active = true
        [half]
        token_id = 'ak-3'
    ";

    #[test]
    fn the_profile_asked_for_comes_before_the_active_one() {
        let profiles: toml::Table = FILE.parse().unwrap();
        let id = |asked| chosen(&profiles, asked).map(|account| account.id.expose().to_owned());
        assert_eq!(id(None).as_deref(), Some("ak-2"));
        assert_eq!(id(Some("default")).as_deref(), Some("ak-1"));
        assert_eq!((id(Some("half")), id(Some("nobody"))), (None, None));
        let work = chosen(&profiles, Some("work")).unwrap();
        assert_eq!(work.address.as_deref(), Some("https://modal.example"));
        assert_eq!(work.environment.as_deref(), Some("dev"));
    }
}
