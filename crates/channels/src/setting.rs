//! How platforms list what they can be told.

use hermes_core::{PlatformSetting, PlatformSettingError, PlatformSettings, Secret};

use crate::http::PROXY_HINT;

/// A setting that setup asks for.
pub(crate) const fn asked(
    key: &'static str,
    variable: &'static str,
    question: &'static str,
) -> PlatformSetting {
    PlatformSetting {
        key,
        variable,
        is_secret: false,
        is_needed: false,
        question,
    }
}

/// A setting that nobody is asked for.
pub(crate) const fn known(key: &'static str, variable: &'static str) -> PlatformSetting {
    asked(key, variable, "")
}

/// One that the platform cannot do without.
pub(crate) const fn needed(
    key: &'static str,
    variable: &'static str,
    question: &'static str,
) -> PlatformSetting {
    PlatformSetting {
        is_needed: true,
        ..asked(key, variable, question)
    }
}

/// One that nobody sees.
pub(crate) const fn secret(setting: PlatformSetting) -> PlatformSetting {
    PlatformSetting {
        is_secret: true,
        ..setting
    }
}

/// The proxy that leads to a platform.
pub(crate) fn proxy(
    settings: &PlatformSettings,
    platform: &str,
) -> Result<Option<Secret>, PlatformSettingError> {
    let proxy = settings.text("proxy");
    let is_none = |proxy: &String| reqwest::Proxy::all(proxy).is_err();
    if proxy.as_ref().is_some_and(is_none) {
        return Err(PlatformSettingError {
            key: "proxy",
            message: format!("the proxy for {platform} is not an address"),
            hint: PROXY_HINT.to_owned(),
        });
    }
    Ok(proxy.map(Secret::new))
}
