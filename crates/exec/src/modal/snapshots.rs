//! Remembers from which image the next sandbox begins: `modal_snapshots.json`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hermes_os::{Access, Durability};
use serde_json::{Map, Value};

/// Sandboxes that are made with a token of one's own, and by whom: all conversations share one.
const KEY: &str = "direct:default";

pub(super) struct Snapshots {
    file: PathBuf,
}

impl Snapshots {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file }
    }

    pub(super) fn image(&self) -> Option<String> {
        let image = read(&self.file).remove(KEY)?;
        image.as_str().map(str::to_owned)
    }

    pub(super) fn remember(&self, image: &str) -> io::Result<()> {
        self.change(|records| records.insert(KEY.to_owned(), image.into()))
    }

    pub(super) fn forget(&self) -> io::Result<()> {
        self.change(|records| records.remove(KEY))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Map<String, Value>) -> T) -> io::Result<()> {
        let mut records = read(&self.file);
        change(&mut records);
        let content = Value::from(records).to_string();
        hermes_os::replace(
            &self.file,
            content.as_bytes(),
            Access::Usual,
            Durability::Unsynced,
        )
    }
}

/// Records that cannot be read are none: the next sandbox begins from its image.
fn read(file: &Path) -> Map<String, Value> {
    let records = fs::read(file).ok();
    let records = records.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    records.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("modal_snapshots.json");
        fs::write(&file, r#"{"direct:other":"im-1"}"#).unwrap();
        let snapshots = Snapshots::new(file.clone());
        assert_eq!(snapshots.image(), None);
        snapshots.remember("im-2").unwrap();
        assert_eq!(snapshots.image().as_deref(), Some("im-2"));
        snapshots.forget().unwrap();
        assert_eq!(snapshots.image(), None);
        assert_eq!(
            fs::read_to_string(file).unwrap(),
            r#"{"direct:other":"im-1"}"#
        );
    }
}
