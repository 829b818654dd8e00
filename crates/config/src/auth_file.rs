//! Keys and logins in `auth.json`: of keys several per provider, for rotation; of logins one.
//!
//! Several processes share the file. Whoever changes it holds `auth.lock` beside it, reads it anew, and replaces it in
//! one step; whatever is in it that we do not know stays. Start at [`AuthFile::change`].

mod entry;
mod login;

use std::{
    collections::BTreeMap,
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use hermes_core::{Secret, Timestamp};
use hermes_os::{FileLock, lock::Sharing};
use serde_json::{Map, Value, json};

use crate::{
    disk::{PRIVATE_FILE_MODE, ReadError, WriteError, read_text, write_atomically},
    home::Home,
};

pub use entry::{KeyState, Refusal, StoredKey};
pub use login::{StoredLogin, UsedLogin, used_logins};

const FILE: &str = "auth.json";
const LOCK: &str = "auth.lock";
const VERSION: u64 = 1;
const POOL: &str = "credential_pool";
const LOGINS: &str = "providers";

/// A change takes milliseconds. Whoever holds the lock for longer than all these tries together renews a login over a
/// slow network, or hangs.
const LOCK_TRIES: u32 = 250;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// Why stored keys cannot be read or changed. The file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("`{}` is damaged: {detail}", path.display())]
    Damaged { path: PathBuf, detail: String },
    #[error("another process keeps `{}` locked", path.display())]
    Locked { path: PathBuf },
}

impl AuthError {
    /// Returns what the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Read(error) => error.hint().to_owned(),
            Self::Write(error) => error.hint().to_owned(),
            Self::Damaged { path, .. } => {
                let path = path.display();
                format!(
                    "mend it, or move it aside (`mv '{path}' '{path}.corrupt'`), add the keys again and log in again"
                )
            }
            Self::Locked { .. } => "try again; end the other `hermes` if it hangs".to_owned(),
        }
    }
}

/// The stored keys of one home.
#[derive(Debug)]
pub struct AuthFile {
    path: PathBuf,
    root: Map<String, Value>,
}

impl AuthFile {
    /// Reads the file in a home's folder; one that is not there holds no keys.
    pub fn open(folder: &Path) -> Result<Self, AuthError> {
        let path = folder.join(FILE);
        let damaged = |detail: String| AuthError::Damaged {
            path: path.clone(),
            detail,
        };
        let root = match read_text(&path)?.as_deref().map(str::trim) {
            None | Some("") => Map::new(),
            // Not read as an object at once: the error would quote what is there instead, which may be a key.
            Some(text) => match serde_json::from_str(text) {
                Ok(Value::Object(root)) => root,
                Ok(_) => return Err(damaged("it should hold an object".to_owned())),
                Err(error) => return Err(damaged(error.to_string())),
            },
        };
        if !is_object_of(&root, POOL, Value::is_array) {
            return Err(damaged(format!(
                "`{POOL}` should hold a list for every provider"
            )));
        }
        if !is_object_of(&root, LOGINS, Value::is_object) {
            return Err(damaged(format!(
                "`{LOGINS}` should hold an object for every provider"
            )));
        }
        Ok(Self { path, root })
    }

    /// Takes the file for oneself, to look at it and change it in several steps; `None` while another process has it.
    pub fn try_lock(folder: &Path) -> Result<Option<LockedAuthFile>, AuthError> {
        let Some(lock) = try_lock(&folder.join(LOCK))? else {
            return Ok(None);
        };
        let file = Self::open(folder)?;
        Ok(Some(LockedAuthFile { file, _lock: lock }))
    }

    /// Reads the file, lets `work` change it, and saves it, while no other process can. Nothing is saved when `work` fails
    /// or changes nothing.
    pub fn change<T, E: From<AuthError>>(
        folder: &Path,
        now: Timestamp,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut locked = lock(folder)?;
        locked.change(now, work)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns every stored key, by provider and in its order of priority.
    pub fn keys(&self) -> Vec<StoredKey> {
        let pool = self.root.get(POOL).and_then(Value::as_object);
        let keys = pool.into_iter().flatten().flat_map(|(provider, entries)| {
            let entries = entries.as_array().into_iter().flatten().enumerate();
            let mut keys: Vec<StoredKey> = entries
                .filter_map(|(position, entry)| StoredKey::read(provider, position, entry))
                .collect();
            keys.sort_by_key(|key| key.priority);
            keys
        });
        keys.collect()
    }

    /// Adds a key behind the others of its provider, under a label of its own, and returns how it is kept.
    pub fn add(&mut self, provider: &str, secret: &Secret, label: Option<&str>) -> StoredKey {
        let there: Vec<StoredKey> = self.keys_of(provider).collect();
        let last = there.iter().map(|key| key.priority).max();
        let priority = last.map_or(0, |last| last.saturating_add(1));
        let label = match label {
            Some(label) => label.to_owned(),
            None => entry::free_label(&there),
        };
        let key = StoredKey::new(provider, secret, label, priority);
        self.entries(provider).push(key.to_entry());
        key
    }

    /// Takes a key out; it must have been read from this very file.
    pub fn remove(&mut self, key: &StoredKey) {
        let entries = self.entries(&key.provider);
        if key.position < entries.len() {
            entries.remove(key.position);
        }
        if entries.is_empty()
            && let Some(pool) = self.root.get_mut(POOL).and_then(Value::as_object_mut)
        {
            pool.shift_remove(&key.provider);
        }
    }

    /// Lets every key of a provider be used again at once. Returns how many were not.
    pub fn wake(&mut self, provider: &str) -> usize {
        let entries = self.entries_there(provider);
        entries.map(|entry| usize::from(entry::wake(entry))).sum()
    }

    /// Writes down that a key was refused. Returns whether it is one of these.
    pub fn rest(&mut self, provider: &str, secret: &Secret, refusal: &Refusal) -> bool {
        let mut is_here = false;
        for entry in self.entries_there(provider) {
            if entry::holds(entry, secret) {
                entry::rest(entry, refusal);
                is_here = true;
            }
        }
        is_here
    }

    fn keys_of(&self, provider: &str) -> impl Iterator<Item = StoredKey> {
        let keys = self.keys().into_iter();
        keys.filter(move |key| key.provider == provider)
    }

    fn entries_there(&mut self, provider: &str) -> impl Iterator<Item = &mut Map<String, Value>> {
        let pool = self.root.get_mut(POOL).and_then(Value::as_object_mut);
        let entries = pool.and_then(|pool| pool.get_mut(provider)?.as_array_mut());
        let entries = entries.into_iter().flatten();
        entries.filter_map(Value::as_object_mut)
    }

    /// The list of a provider, made when there is none. `open` saw to it that nothing else is in its place.
    fn entries(&mut self, provider: &str) -> &mut Vec<Value> {
        let list = &mut self.root.entry(POOL).or_insert_with(|| json!({}))[provider];
        if !list.is_array() {
            *list = json!([]);
        }
        match list {
            Value::Array(entries) => entries,
            _ => unreachable!("a list was just put here"),
        }
    }

    fn save(&mut self, now: Timestamp) -> Result<(), WriteError> {
        self.root.entry("version").or_insert(VERSION.into());
        self.root.insert("updated_at".into(), now.to_text().into());
        make_private(&self.path)?;
        let text = format!("{:#}\n", Value::Object(self.root.clone()));
        write_atomically(&self.path, &text)
    }
}

/// The file, while no other process can change it. It is free again when this is dropped, also by a crash.
#[derive(Debug)]
pub struct LockedAuthFile {
    file: AuthFile,
    _lock: FileLock,
}

impl LockedAuthFile {
    pub fn file(&self) -> &AuthFile {
        &self.file
    }

    /// Lets `work` change the file and saves it, unless `work` fails or changes nothing.
    pub fn change<T, E: From<AuthError>>(
        &mut self,
        now: Timestamp,
        work: impl FnOnce(&mut AuthFile) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = self.file.root.clone();
        let done = work(&mut self.file)?;
        if self.file.root != before {
            self.file.save(now).map_err(AuthError::from)?;
        }
        Ok(done)
    }
}

/// Whether what is under this name, if anything, is an object with only such values.
fn is_object_of(root: &Map<String, Value>, name: &str, is_such: fn(&Value) -> bool) -> bool {
    match root.get(name) {
        None => true,
        Some(Value::Object(object)) => object.values().all(is_such),
        Some(_) => false,
    }
}

/// Closes an existing file to others before a secret is put into it: a replaced file keeps its permissions.
fn make_private(path: &Path) -> Result<(), WriteError> {
    let closed = match fs::metadata(path) {
        Ok(file) if file.permissions().mode() & 0o777 != PRIVATE_FILE_MODE => {
            fs::set_permissions(path, Permissions::from_mode(PRIVATE_FILE_MODE))
        }
        _ => Ok(()),
    };
    closed.map_err(|source| WriteError {
        path: path.to_path_buf(),
        source,
    })
}

fn lock(folder: &Path) -> Result<LockedAuthFile, AuthError> {
    for _ in 0..LOCK_TRIES {
        match AuthFile::try_lock(folder)? {
            Some(locked) => return Ok(locked),
            None => thread::sleep(LOCK_PAUSE),
        }
    }
    Err(AuthError::Locked {
        path: folder.join(LOCK),
    })
}

fn try_lock(path: &Path) -> Result<Option<FileLock>, AuthError> {
    let unwritable = |source: io::Error| WriteError {
        path: path.to_path_buf(),
        source,
    };
    let locked = hermes_os::lock::try_lock(path, Sharing::Alone);
    Ok(locked.map_err(unwritable)?)
}

/// Returns the stored keys that a home uses, each with the folder it is kept in: its own and, for providers that a
/// profile keeps no key of, the root's.
pub fn used_keys(home: &Home) -> Result<Vec<(PathBuf, StoredKey)>, AuthError> {
    let with = |folder: &Path| {
        let folder = folder.to_path_buf();
        move |key| (folder.clone(), key)
    };
    let own = AuthFile::open(home.directory())?.keys();
    let own: Vec<_> = own.into_iter().map(with(home.directory())).collect();
    if home.root() == home.directory() {
        return Ok(own);
    }
    let is_missing = |key: &StoredKey| own.iter().all(|(_, known)| known.provider != key.provider);
    let mut roots = AuthFile::open(home.root())?.keys();
    roots.retain(is_missing);
    let roots = roots.into_iter().map(with(home.root()));
    Ok(own.iter().cloned().chain(roots).collect())
}

/// Returns the API keys that a home uses by provider, in their order of priority.
///
/// A file that does not parse holds no keys we could use; it is left alone, and `None` says so.
pub fn stored_keys(home: &Home) -> Result<Option<BTreeMap<String, Vec<Secret>>>, ReadError> {
    let used = match used_keys(home) {
        Ok(used) => used,
        Err(AuthError::Read(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let mut keys: BTreeMap<String, Vec<Secret>> = BTreeMap::new();
    for (_, key) in used.into_iter().filter(|(_, key)| key.is_usable()) {
        keys.entry(key.provider).or_default().push(key.secret);
    }
    Ok(Some(keys))
}
