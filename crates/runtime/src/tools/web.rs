//! How tools reach the web, as the settings say: `security.allow_private_urls`, `security.website_blocklist`, `web`.

use std::path::{Path, PathBuf};

use hermes_tools::{Blocklist, PrivateUrls, WebSettings};

use crate::base::Base;
use crate::error::Result;
use crate::safety;

pub(crate) fn settings(base: &Base) -> Result<WebSettings> {
    let private_urls = if base.settings.bool("security.allow_private_urls")? {
        PrivateUrls::Allowed
    } else {
        PrivateUrls::Refused
    };
    Ok(WebSettings {
        private_urls,
        blocklist: blocklist(base)?,
        keys: safety::own_keys(base)?,
        page_chars_max: base.settings.u64("web.extract_char_limit")? as usize,
        ..WebSettings::new(base.web_pages())
    })
}

fn blocklist(base: &Base) -> Result<Blocklist> {
    let setting = |name: &str| format!("security.website_blocklist.{name}");
    if !base.settings.bool(&setting("enabled"))? {
        return Ok(Blocklist::default());
    }
    let files = base.settings.strings(&setting("shared_files"))?;
    Ok(Blocklist {
        domains: base.settings.strings(&setting("domains"))?,
        shared_files: files.iter().map(|file| shared(base, file)).collect(),
    })
}

/// A file of the settings: below the user's home folder after `~/`, otherwise relative to that of Hermes.
fn shared(base: &Base, file: &str) -> PathBuf {
    match (file.strip_prefix("~/"), base.environment.user_home()) {
        (Some(below), Some(home)) => home.join(below),
        _ => base.home.directory().join(Path::new(file)),
    }
}
