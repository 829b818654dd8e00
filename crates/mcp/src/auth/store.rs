//! The files of one server's login: `<name>.json` (token), `<name>.client.json`, `<name>.meta.json`, `<name>.lock`.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hermes_core::Timestamp;
use hermes_os::FileLock;
use reqwest::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::{Client, ClientFile, Metadata};
use super::disk::{self, Stamp};
use super::token::{Token, TokenFile};
use crate::failure::Failure;

/// A renewal takes at most half of this; whoever waits longer waits for something that hangs.
const LOCK_WAIT: Duration = Duration::from_secs(60);
const NAME_CHARS_MAX: usize = 128;

#[derive(Debug, Clone)]
pub(super) struct Store {
    folder: PathBuf,
    name: String,
}

impl Store {
    pub(super) fn new(folder: &Path, server: &str) -> Self {
        Self {
            folder: folder.to_owned(),
            name: file_name(server),
        }
    }

    /// Returns what tells this state of the token file from the next.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        Stamp::of(&self.token_path())
    }

    /// Takes the right to change these files.
    pub(super) async fn lock(&self) -> Result<FileLock, Failure> {
        let path = self.path("lock");
        disk::lock(&path, LOCK_WAIT)
            .await
            .map_err(|error| unusable(&path, "lock", &error))
    }

    /// Reads the token, if there is one. A file that makes no sense is set aside.
    pub(super) fn token(&self) -> Result<Option<Token>, Failure> {
        let path = self.token_path();
        let file: Option<TokenFile> = self.read(&path)?;
        Ok(file.map(|file| file.into_token(written_at(&path))))
    }

    /// Reads the token, unless it was given out for another server: the address in the settings may have changed.
    pub(super) fn token_for(&self, url: &str) -> Result<Option<Token>, Failure> {
        let resource = self.metadata()?.and_then(|metadata| metadata.resource);
        match resource {
            Some(resource) if !is_same_origin(&resource, url) => Ok(None),
            _ => self.token(),
        }
    }

    pub(super) fn save_token(&self, token: &Token) -> Result<(), Failure> {
        self.write(&self.token_path(), &TokenFile::of(token))
    }

    pub(super) fn client(&self) -> Result<Option<Client>, Failure> {
        let file: Option<ClientFile> = self.read(&self.path("client.json"))?;
        Ok(file.map(ClientFile::into_client))
    }

    pub(super) fn save_client(&self, client: &Client) -> Result<(), Failure> {
        self.write(&self.path("client.json"), &ClientFile::of(client))
    }

    pub(super) fn metadata(&self) -> Result<Option<Metadata>, Failure> {
        self.read(&self.path("meta.json"))
    }

    pub(super) fn save_metadata(&self, metadata: &Metadata) -> Result<(), Failure> {
        self.write(&self.path("meta.json"), metadata)
    }

    /// Sets the registration aside: the next login makes another.
    pub(super) fn set_client_aside(&self) {
        for path in [self.path("client.json"), self.path("meta.json")] {
            // Without the file there is nothing to set aside.
            let _ = fs::rename(&path, with_suffix(&path, "bak"));
        }
    }

    /// Removes everything but the lock.
    pub(super) fn forget(&self) -> Result<(), Failure> {
        for path in [
            self.token_path(),
            self.path("client.json"),
            self.path("meta.json"),
        ] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(unusable(&path, "remove", &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn token_path(&self) -> PathBuf {
        self.path("json")
    }

    fn path(&self, extension: &str) -> PathBuf {
        self.folder.join(format!("{}.{extension}", self.name))
    }

    fn read<T: DeserializeOwned>(&self, path: &Path) -> Result<Option<T>, Failure> {
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(path, "read", &error)),
        };
        match serde_json::from_slice(&text) {
            Ok(value) => Ok(Some(value)),
            // What is wrong with it is not told in detail: the detail may be a secret.
            Err(error) => {
                let aside = with_suffix(path, "corrupt");
                let (line, file) = (error.line(), path.display());
                tracing::warn!(
                    "`{file}` makes no sense in line {line}; it is set aside as `{}`",
                    aside.display()
                );
                fs::rename(path, &aside).map_err(|error| unusable(path, "set aside", &error))?;
                Ok(None)
            }
        }
    }

    fn write<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), Failure> {
        serde_json::to_string_pretty(value)
            .map_err(io::Error::other)
            .and_then(|text| disk::write_private(path, &text))
            .map_err(|error| unusable(path, "write", &error))
    }
}

fn is_same_origin(one: &str, other: &str) -> bool {
    let origin = |text: &str| Some(Url::parse(text).ok()?.origin());
    origin(one).is_some() && origin(one) == origin(other)
}

fn unusable(path: &Path, verb: &str, error: &io::Error) -> Failure {
    let cause = format!("cannot {verb} `{}`: {error}", path.display());
    Failure::Misconfigured { cause }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

fn written_at(path: &Path) -> Timestamp {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = modified.map(|time| {
        time.duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
    });
    Timestamp::from_millis(since.unwrap_or_default().as_millis() as i64)
}

/// Makes a file name of a server's name, the way that existing token folders were made.
fn file_name(server: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let name: String = server
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .collect();
    match name.trim_matches('_') {
        "" => "default".to_owned(),
        name => name.chars().take(NAME_CHARS_MAX).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hermes_core::Secret;
    use std::os::unix::fs::PermissionsExt;

    fn token(access: &str) -> Token {
        let (refresh, scope) = (Some(Secret::new("refresh-1")), Some("read".to_owned()));
        let lifetime = Some(Duration::from_secs(3600));
        let now = Timestamp::from_millis(1_700_000_000_000);
        Token::granted(Secret::new(access), refresh, lifetime, scope, now)
    }

    fn store() -> (tempfile::TempDir, Store) {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(&home.path().join("mcp-tokens"), "my server/one");
        (home, store)
    }

    #[test]
    fn a_token_comes_back_as_it_was_saved_from_a_file_that_only_its_owner_reads() {
        let (home, store) = store();
        store.save_token(&token("access-1")).unwrap();
        assert_eq!(store.token().unwrap(), Some(token("access-1")));
        let folder = home.path().join("mcp-tokens");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(&folder.join("my_server_one.json")), 0o600);
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            1,
            "no temporary file stays"
        );
    }

    #[test]
    fn a_token_file_of_the_known_program_is_read() {
        let (home, store) = store();
        let folder = home.path().join("mcp-tokens");
        fs::create_dir(&folder).unwrap();
        let text = r#"{"access_token":"a","token_type":"Bearer","expires_in":3600,"scope":"x","refresh_token":"r","expires_at":1700000000.5}"#;
        fs::write(folder.join("my_server_one.json"), text).unwrap();
        let read = store.token().unwrap().unwrap();
        assert_eq!(
            read.expires_at,
            Some(Timestamp::from_millis(1_700_000_000_500))
        );
        assert_eq!(read.refresh.unwrap().expose(), "r");
    }

    #[test]
    fn a_corrupt_file_is_set_aside_and_counts_as_none() {
        let (home, store) = store();
        store.save_token(&token("a")).unwrap();
        let path = home.path().join("mcp-tokens/my_server_one.json");
        fs::write(&path, "{\"access_token\": 5").unwrap();
        assert_eq!(store.token().unwrap(), None);
        assert!(!path.exists() && with_suffix(&path, "corrupt").exists());
    }

    #[test]
    fn names_become_file_names_that_stay_in_the_folder() {
        assert_eq!(file_name("../../etc/passwd"), "etc_passwd");
        assert_eq!(file_name("..."), "default");
        assert_eq!(file_name("my-files_2"), "my-files_2");
        assert_eq!(file_name(&"x".repeat(500)).len(), 128);
    }

    #[tokio::test]
    async fn a_lock_is_waited_for_and_free_after_its_holder() {
        let (_home, store) = store();
        let held = store.lock().await.unwrap();
        let path = store.path("lock");
        let refused = disk::lock(&path, Duration::from_millis(50)).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::TimedOut);
        drop(held);
        store.lock().await.unwrap();
    }
}
