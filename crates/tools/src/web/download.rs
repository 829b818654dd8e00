//! Files for others than models, by the same rules: every address on the way is judged, and every site.

use std::time::Duration;

use super::fetch::{FetchError, Fetcher};
use super::website::Websites;
use super::{Blocklist, WebSettings};

/// Brings files from the web.
pub struct Downloads {
    fetcher: Fetcher,
    blocklist: Blocklist,
    time_max: Duration,
}

/// Why a file did not come.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct DownloadError {
    pub message: String,
    /// What the server answered, if it did.
    pub status: Option<u16>,
}

impl Downloads {
    pub fn new(settings: &WebSettings) -> Self {
        Self {
            fetcher: Fetcher::new(settings),
            blocklist: settings.blocklist.clone(),
            time_max: settings.page_time_max,
        }
    }

    /// All of what an address names.
    pub async fn get(&self, url: &str) -> Result<Vec<u8>, DownloadError> {
        let list = self.blocklist.clone();
        let websites = tokio::task::spawn_blocking(move || Websites::read(&list)).await;
        let websites = match websites {
            Ok(read) => read.map_err(|error| failed(error.to_string()))?,
            Err(error) => return Err(failed(error.to_string())),
        };
        let fetching = self.fetcher.fetch(url, &websites);
        let fetched = match tokio::time::timeout(self.time_max, fetching).await {
            Ok(fetched) => fetched.map_err(|error| DownloadError {
                status: match &error {
                    FetchError::Status(status) => Some(status.as_u16()),
                    _ => None,
                },
                message: error.to_string(),
            })?,
            Err(_) => {
                return Err(failed(format!(
                    "nothing came within {} s",
                    self.time_max.as_secs()
                )));
            }
        };
        if fetched.is_cut {
            return Err(failed(
                "it is larger than anything that is wanted here".to_owned(),
            ));
        }
        Ok(fetched.body)
    }
}

fn failed(message: String) -> DownloadError {
    DownloadError {
        message,
        status: None,
    }
}
