//! One settings file as its owner wrote it, open for changes that keep everything else as it is.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{
    change::ChangeError,
    disk,
    key::Key,
    layer::{LoadError, parse_settings},
    yaml::{
        Node,
        edit::{self, EditError},
    },
};

const BOM: char = '\u{feff}';

/// A settings file in memory. Changes reach the disk with [`ConfigFile::save`].
pub struct ConfigFile {
    path: PathBuf,
    /// What the disk held when we read it; `None` when there was no file.
    on_disk: Option<String>,
    /// The text without its byte-order mark.
    text: String,
    root: Option<Node>,
}

impl ConfigFile {
    /// Reads a file; one that does not exist is empty, one that does not parse is an error.
    pub fn open(path: &Path) -> Result<Self, LoadError> {
        let on_disk = disk::read_text(path)?;
        let text = on_disk
            .as_deref()
            .unwrap_or("")
            .trim_start_matches(BOM)
            .to_owned();
        Ok(Self {
            root: parse_settings(path, &text)?,
            path: path.to_path_buf(),
            on_disk,
            text,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns a value as written in this file.
    pub fn get(&self, key: &Key) -> Option<Value> {
        self.root.as_ref()?.find(key.segments()).map(Node::to_value)
    }

    pub(crate) fn root(&self) -> Option<&Node> {
        self.root.as_ref()
    }

    /// Sets a value, creating the sections it stands in.
    pub fn set(&mut self, key: &Key, value: &Value) -> Result<(), ChangeError> {
        self.set_path(key.segments(), value)
    }

    pub(crate) fn set_path(&mut self, path: &[String], value: &Value) -> Result<(), ChangeError> {
        let text = edit::set(&self.text, self.root.as_ref(), path, value);
        let text = text.map_err(|error| self.refusal(error))?;
        self.replace(text)
    }

    /// Removes a value and the sections that are empty without it; tells whether there was one.
    pub fn unset(&mut self, key: &Key) -> Result<bool, ChangeError> {
        self.unset_path(key.segments())
    }

    pub(crate) fn unset_path(&mut self, path: &[String]) -> Result<bool, ChangeError> {
        let text = edit::unset(&self.text, self.root.as_ref(), path);
        match text.map_err(|error| self.refusal(error))? {
            Some(text) => self.replace(text).map(|()| true),
            None => Ok(false),
        }
    }

    fn replace(&mut self, text: String) -> Result<(), ChangeError> {
        self.root = parse_settings(&self.path, &text)?;
        self.text = text;
        Ok(())
    }

    /// Writes the file in one step, and keeps the previous text beside it as `config.yaml.bak`.
    ///
    /// Refuses when the file has changed since it was read: somebody else's change would be lost.
    pub fn save(&mut self) -> Result<(), ChangeError> {
        let now = disk::read_text(&self.path)?;
        if now != self.on_disk {
            return Err(ChangeError::ChangedMeanwhile {
                path: self.path.clone(),
            });
        }
        let has_bom = now.as_ref().is_some_and(|text| text.starts_with(BOM));
        let text = if has_bom {
            format!("{BOM}{}", self.text)
        } else {
            self.text.clone()
        };
        if now.as_ref() == Some(&text) {
            return Ok(());
        }
        if let Some(previous) = &now {
            disk::write_atomically(&backup_path(&self.path), previous)?;
        }
        disk::write_atomically(&self.path, &text)?;
        self.on_disk = Some(text);
        Ok(())
    }

    fn refusal(&self, error: EditError) -> ChangeError {
        let file = self.path.clone();
        let name = |path: Vec<String>| {
            Key::from_segments(path).map_or(String::new(), |key| key.to_string())
        };
        match error {
            EditError::NotASection { path, at } => ChangeError::NotASection {
                key: name(path),
                file,
                at,
            },
            EditError::NoSuchItem { path, length, at } => ChangeError::NoSuchItem {
                key: name(path),
                length,
                file,
                at,
            },
            EditError::Shared { path, at } => ChangeError::Shared {
                key: name(path),
                file,
                at,
            },
            EditError::Unsupported { path } => ChangeError::Unsupported {
                key: name(path),
                file,
            },
        }
    }
}

/// Returns where the text before the last change is kept.
pub(crate) fn backup_path(path: &Path) -> PathBuf {
    path.with_added_extension("bak")
}
