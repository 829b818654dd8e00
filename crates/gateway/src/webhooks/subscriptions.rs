//! Routes that were added with `hermes webhook subscribe`: a file that is read again whenever it has changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hermes_os::replace::{Access, Durability, replace};
use serde_json::{Map, Value};

use super::route::Route;

/// A file that is larger is none of ours.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The routes of the settings, and those of the file.
pub struct Routes {
    fixed: BTreeMap<String, Arc<Route>>,
    file: PathBuf,
    read: Mutex<Read>,
}

/// What the file said when it was last read.
#[derive(Default)]
struct Read {
    state: Option<(SystemTime, u64)>,
    routes: BTreeMap<String, Arc<Route>>,
}

impl Routes {
    pub fn new(fixed: Vec<Route>, file: PathBuf) -> Self {
        let named = fixed
            .into_iter()
            .map(|route| (route.name.clone(), Arc::new(route)));
        Self {
            fixed: named.collect(),
            file,
            read: Mutex::default(),
        }
    }

    /// A route by its name; those of the settings come first.
    pub(super) fn get(&self, name: &str) -> Option<Arc<Route>> {
        if let Some(route) = self.fixed.get(name) {
            return Some(Arc::clone(route));
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let state = state(&self.file);
        if state != read.state {
            // One that cannot be read now may be half written by hand: what was known counts on.
            match read_routes(&self.file) {
                Ok(routes) => read.routes = routes,
                Err(error) => tracing::warn!("the webhook subscriptions were not read: {error}"),
            }
            read.state = state;
        }
        read.routes.get(name).cloned()
    }

    /// Those of the settings.
    pub fn fixed(&self) -> Vec<Route> {
        self.fixed
            .values()
            .map(|route| Route::clone(route))
            .collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        let written = read_routes(&self.file).unwrap_or_default();
        self.fixed.len()
            + written
                .keys()
                .filter(|name| !self.fixed.contains_key(*name))
                .count()
    }
}

fn state(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read_routes(file: &Path) -> Result<BTreeMap<String, Arc<Route>>, String> {
    let mut routes = BTreeMap::new();
    for (name, written) in read_file(file)? {
        match Route::read(&name, &written) {
            Ok(route) => {
                routes.insert(name, Arc::new(route));
            }
            Err(error) => tracing::warn!("the webhook subscription `{name}` is left out: {error}"),
        }
    }
    Ok(routes)
}

/// The subscriptions as they stand in the file; none when there is no file.
pub fn read_file(file: &Path) -> Result<Map<String, Value>, String> {
    match fs::metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(format!("`{}`: {error}", file.display())),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            return Err(format!(
                "`{}` is larger than {FILE_BYTES_MAX} bytes",
                file.display()
            ));
        }
        Ok(_) => {}
    }
    let text =
        fs::read_to_string(file).map_err(|error| format!("`{}`: {error}", file.display()))?;
    serde_json::from_str(&text)
        .map_err(|error| format!("`{}` is not what is expected: {error}", file.display()))
}

/// Replaces the file.
pub fn write_file(file: &Path, subscriptions: &Map<String, Value>) -> io::Result<()> {
    let mut text = serde_json::to_string_pretty(subscriptions).map_err(io::Error::other)?;
    text.push('\n');
    replace(file, text.as_bytes(), Access::Private, Durability::Synced)
}
