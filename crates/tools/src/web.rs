//! How tools reach the web, and what of it they may reach.
//!
//! One place for each rule, for every tool that follows an address somebody else wrote:
//!
//! - [`address`]: what sort of network an IP address belongs to;
//! - [`destination`]: which URLs and addresses may be asked at all;
//! - [`website`]: which sites the user does not want to be visited;
//! - [`secret`]: which URLs would carry a secret out.
//!
//! [`fetch`] keeps them all: it resolves a name once, judges every address, connects to what it judged, and judges every
//! redirect anew. [`page`] makes readable text of what came, [`shelf`] keeps what is too long for a conversation.

mod address;
mod charset;
mod destination;
mod download;
pub(crate) mod fetch;
mod markdown;
mod names;
pub(crate) mod page;
pub(crate) mod secret;
pub(crate) mod shelf;
pub(crate) mod website;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hermes_core::HiddenKeys;

pub use destination::PrivateUrls;
pub use download::{DownloadError, Downloads};
pub use names::{Names, SystemNames};
pub use website::Blocklist;

/// How tools reach the web.
#[derive(Clone)]
pub struct WebSettings {
    /// `security.allow_private_urls`
    pub private_urls: PrivateUrls,
    /// `security.website_blocklist`
    pub blocklist: Blocklist,
    /// Keys that no address may hold, in whatever form.
    pub keys: HiddenKeys,
    /// `web.extract_char_limit`: how much of a page a conversation gets, unless a call says otherwise.
    pub page_chars_max: usize,
    /// Where pages are kept that are longer than that.
    pub shelf: PathBuf,
    /// Who knows the addresses of hosts.
    pub names: Arc<dyn Names>,
    /// For one page, its redirects included.
    pub page_time_max: Duration,
    /// For one page, packed or unpacked. More is not read.
    pub page_bytes_max: usize,
}

impl WebSettings {
    /// The usual settings, with a folder for long pages.
    pub fn new(shelf: PathBuf) -> Self {
        Self {
            private_urls: PrivateUrls::Refused,
            blocklist: Blocklist::default(),
            keys: HiddenKeys::default(),
            page_chars_max: 15_000,
            shelf,
            names: Arc::new(SystemNames),
            page_time_max: Duration::from_secs(30),
            page_bytes_max: 8 * 1024 * 1024,
        }
    }
}
