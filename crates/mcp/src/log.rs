//! Keeps what a server has to say for itself, on standard error or as log messages: all of it in a file of limited size,
//! the end of what it wrote at hand.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

/// Two files of this size are kept: the current one and the one before.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The last words of a server that fails to start usually say why.
const LAST_WORDS_BYTES_MAX: usize = 500;

/// The log of one server, over all its connections.
#[derive(Debug, Clone)]
pub(crate) struct ServerLog {
    file: Arc<LogFile>,
    last_words: Arc<Mutex<VecDeque<u8>>>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    /// The open file and its size.
    open: tokio::sync::Mutex<Option<(File, u64)>>,
}

impl ServerLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            file: Arc::new(LogFile {
                path,
                open: tokio::sync::Mutex::default(),
            }),
            last_words: Arc::default(),
        }
    }

    /// Returns the same log for a new process, which has said nothing yet.
    pub(crate) fn afresh(&self) -> Self {
        Self {
            file: Arc::clone(&self.file),
            last_words: Arc::default(),
        }
    }

    /// Writes a line. A log that cannot be written is no reason to stop.
    pub(crate) async fn note(&self, line: &str) {
        self.file.write(format!("{line}\n").as_bytes()).await;
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

    /// Copies until the server closes its end.
    pub(crate) async fn copy(self, mut source: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = source.read(&mut buffer).await {
            self.remember(&buffer[..count]);
            self.file.write(&buffer[..count]).await;
        }
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

impl LogFile {
    /// Appends to the file, and begins a new one when it is full. What cannot be written is lost.
    async fn write(&self, bytes: &[u8]) {
        let mut open = self.open.lock().await;
        if open.is_none() {
            *open = self.open().await;
        }
        let Some((file, size)) = open.as_mut() else {
            return;
        };
        let is_written = file.write_all(bytes).await.is_ok() && file.flush().await.is_ok();
        *size += bytes.len() as u64;
        if *size >= FILE_BYTES_MAX {
            let before = self.path.with_extension("log.old");
            // A file that cannot be renamed goes on growing; that is better than losing what it holds.
            let _ = tokio::fs::rename(&self.path, before).await;
        }
        if !is_written || *size >= FILE_BYTES_MAX {
            *open = None;
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_leaves_two_files_of_limited_size_and_the_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/mcp-files.log");
        let log = ServerLog::new(path.clone());
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
    async fn lines_and_errors_share_a_file_and_a_new_process_has_said_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp-files.log");
        let log = ServerLog::new(path.clone());
        log.clone().copy(&b"from stderr\n"[..]).await;
        log.note("a message").await;
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text, "from stderr\na message\n");
        assert_eq!(log.last_words(), "from stderr");
        assert_eq!(log.afresh().last_words(), "");
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_written_does_not_stop_the_reading() {
        let log = ServerLog::new(PathBuf::from("/proc/nowhere/mcp.log"));
        log.clone().copy(&b"words"[..]).await;
        assert_eq!(log.last_words(), "words");
    }
}
