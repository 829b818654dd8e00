//! Keeps what a server writes to standard error: all of it in a file of limited size, the end of it at hand.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// Two files of this size are kept: the current one and the one before.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The last words of a server that fails to start usually say why.
const LAST_WORDS_BYTES_MAX: usize = 500;

#[derive(Debug, Clone)]
pub(crate) struct ErrorLog {
    path: PathBuf,
    last_words: Arc<Mutex<VecDeque<u8>>>,
}

impl ErrorLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            last_words: Arc::default(),
        }
    }

    /// Returns the end of what the server wrote.
    pub(crate) fn last_words(&self) -> String {
        let words = self
            .last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = words.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Copies until the server closes its end. A log that cannot be written is no reason to stop reading.
    pub(crate) async fn copy(self, mut source: impl AsyncRead + Unpin) {
        let mut file = self.open().await;
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = source.read(&mut buffer).await {
            self.remember(&buffer[..count]);
            if let Some((mut current, bytes)) = file.take() {
                let written = current.write_all(&buffer[..count]).await;
                let _ = current.flush().await;
                let bytes = bytes + count as u64;
                file = match written {
                    Ok(()) if bytes < FILE_BYTES_MAX => Some((current, bytes)),
                    Ok(()) => self.rotate().await,
                    Err(_) => None,
                };
            }
        }
    }

    async fn open(&self) -> Option<(File, u64)> {
        if let Some(folder) = self.path.parent() {
            tokio::fs::create_dir_all(folder).await.ok()?;
        }
        let mut options = OpenOptions::new();
        let file = options
            .create(true)
            .append(true)
            .open(&self.path)
            .await
            .ok()?;
        let bytes = file.metadata().await.ok()?.len();
        Some((file, bytes))
    }

    async fn rotate(&self) -> Option<(File, u64)> {
        let before = self.path.with_extension("log.old");
        tokio::fs::rename(&self.path, before).await.ok()?;
        self.open().await
    }

    fn remember(&self, bytes: &[u8]) {
        let mut words = self
            .last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        words.extend(&bytes[bytes.len().saturating_sub(LAST_WORDS_BYTES_MAX)..]);
        let surplus = words.len().saturating_sub(LAST_WORDS_BYTES_MAX);
        words.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_leaves_two_files_of_limited_size_and_the_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/mcp-files.log");
        let log = ErrorLog::new(path.clone());
        let flood = [b"noise\n".repeat(1_000_000), b"the end".to_vec()].concat();
        log.clone().copy(flood.as_slice()).await;

        assert!(log.last_words().ends_with("the end"));
        assert!(log.last_words().len() <= LAST_WORDS_BYTES_MAX);
        for file in [&path, &path.with_extension("log.old")] {
            let bytes = std::fs::metadata(file).unwrap().len();
            assert!(bytes <= FILE_BYTES_MAX + 8 * 1024, "{bytes}");
        }
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_written_does_not_stop_the_reading() {
        let log = ErrorLog::new(PathBuf::from("/proc/nowhere/mcp.log"));
        log.clone().copy(&b"words"[..]).await;
        assert_eq!(log.last_words(), "words");
    }
}
