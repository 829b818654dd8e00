//! Works out what every file of a patch will contain, without touching any.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hermes_core::fuzzy::{self, Occurrences, ReplaceError, Strategy};

use super::document::Document;
use super::v4a::Change;
use super::{answer, hunks};
use crate::files::Meta;
use crate::target::Target;
use crate::{neighbours, syntax};

/// Larger files are not patched: old and new content are held in memory.
const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// A file before and after.
pub(super) struct Planned {
    /// As the model named it.
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) before: Option<Before>,
    /// `None`: there will be no file.
    pub(super) after: Option<Vec<u8>>,
    /// The file that was moved here.
    pub(super) origin: Option<Origin>,
}

/// Where a moved file comes from.
pub(super) struct Origin {
    pub(super) path: PathBuf,
    /// Its mode goes with it.
    pub(super) meta: Option<Meta>,
}

pub(super) struct Before {
    pub(super) bytes: Vec<u8>,
    pub(super) meta: Meta,
}

impl Planned {
    pub(super) fn is_changed(&self) -> bool {
        self.before.as_ref().map(|before| &before.bytes) != self.after.as_ref()
    }
}

/// One text for another in one file.
pub(super) struct Replacement<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) occurrences: Occurrences,
}

/// All files of a patch in the order they are named, each once.
#[derive(Default)]
pub(super) struct PatchPlan {
    pub(super) files: Vec<Planned>,
    by_path: HashMap<PathBuf, usize>,
}

impl PatchPlan {
    /// Reads the files that are to change. An error is written for the model.
    pub(super) fn read(targets: &[(String, Target)]) -> Result<Self, String> {
        let mut plan = Self::default();
        for (name, target) in targets {
            if plan.by_path.contains_key(target.path()) {
                continue;
            }
            let before = read(name, target)?;
            plan.by_path
                .insert(target.path().to_owned(), plan.files.len());
            plan.files.push(Planned {
                name: name.clone(),
                target: target.clone(),
                after: before.as_ref().map(|before| before.bytes.clone()),
                before,
                origin: None,
            });
        }
        Ok(plan)
    }

    /// Replaces a text; returns how often and how it was found.
    pub(super) fn replace(
        &mut self,
        target: &Target,
        replacement: &Replacement<'_>,
    ) -> Result<(usize, Strategy), String> {
        let file = self.file(target)?;
        let bytes = file.content()?;
        let document = Document::read(bytes).ok_or_else(|| not_text(&file.name))?;
        // Only a file that mixes line breaks is searched for them.
        let (old, new) = if document.text.contains('\r') {
            (replacement.old.to_owned(), replacement.new.to_owned())
        } else {
            (
                replacement.old.replace("\r\n", "\n"),
                replacement.new.replace("\r\n", "\n"),
            )
        };
        let replaced = fuzzy::replace(&document.text, &old, &new, replacement.occurrences)
            .map_err(|error| explain(&file.name, &document.text, &old, &error))?;
        let after = document.stored(&replaced.text);
        file.after = Some(after);
        Ok((replaced.count, replaced.strategy))
    }

    /// Applies one change of a V4A patch to what the earlier ones left.
    pub(super) fn apply(&mut self, change: &Change, targets: &[Target]) -> Result<(), String> {
        match (change, targets) {
            (Change::Add { text, path }, [target]) => {
                let file = self.file(target)?;
                if file.after.is_some() {
                    return Err(format!(
                        "`{path}` exists; change it with `*** Update File`, or delete it first"
                    ));
                }
                file.after = Some(text.clone().into_bytes());
                Ok(())
            }
            (Change::Delete { .. }, [target]) => {
                self.take(target)?;
                Ok(())
            }
            (Change::Move { .. }, [from, to]) => self.relocate(from, to),
            (Change::Update { hunks, .. }, [from, to @ ..]) => {
                let file = self.file(from)?;
                let document =
                    Document::read(file.content()?).ok_or_else(|| not_text(&file.name))?;
                let text = hunks::apply(&document.text, hunks).map_err(|misfit| {
                    format!(
                        "`{}`, hunk at line {} of the patch: {}",
                        file.name, misfit.line, misfit.reason
                    )
                })?;
                let after = document.stored(&text);
                file.after = Some(after);
                match to.first() {
                    Some(to) => self.relocate(from, to),
                    None => Ok(()),
                }
            }
            _ => Err("a file of the patch has no place".to_owned()),
        }
    }

    fn relocate(&mut self, from: &Target, to: &Target) -> Result<(), String> {
        if from.path() == to.path() {
            return Err(format!("`{}` is moved to itself", from.asked().display()));
        }
        let file = self.file(to)?;
        if file.after.is_some() {
            return Err(format!(
                "`{}` exists; nothing is moved over another file",
                file.name
            ));
        }
        let (bytes, origin) = self.take(from)?;
        let file = self.file(to)?;
        file.after = Some(bytes);
        file.origin = Some(origin);
        Ok(())
    }

    /// Takes a file away; returns what it would contain, and where that comes from.
    fn take(&mut self, target: &Target) -> Result<(Vec<u8>, Origin), String> {
        let file = self.file(target)?;
        if target.is_link() {
            return Err(format!(
                "`{}` is a link; remove or move it with `terminal`",
                file.name
            ));
        }
        file.content()?;
        let bytes = file.after.take().unwrap_or_default();
        let ours = Origin {
            path: target.path().to_owned(),
            meta: file.before.as_ref().map(|before| before.meta.clone()),
        };
        Ok((bytes, file.origin.take().unwrap_or(ours)))
    }

    fn file(&mut self, target: &Target) -> Result<&mut Planned, String> {
        let index = self.by_path.get(target.path());
        index
            .and_then(|index| self.files.get_mut(*index))
            .ok_or_else(|| format!("`{}` was not read", target.asked().display()))
    }

    /// Returns what a file is compared with: itself before, or the file that was moved to its place.
    pub(super) fn source<'a>(&'a self, file: &'a Planned) -> Option<&'a Planned> {
        if file.before.is_some() {
            return Some(file);
        }
        let origin = file.origin.as_ref()?;
        let index = self.by_path.get(&origin.path)?;
        let source = self.files.get(*index)?;
        source.before.is_some().then_some(source)
    }

    /// Refuses a plan that changes nothing or breaks settings that parsed before.
    pub(super) fn check(&self) -> Result<(), String> {
        if !self.files.iter().any(Planned::is_changed) {
            return Err("nothing would change: the file already is as you want it".to_owned());
        }
        for file in self.files.iter().filter(|file| file.is_changed()) {
            let Some(Ok(new)) = file.after.as_deref().map(str::from_utf8) else {
                continue;
            };
            let old = file.before.as_ref().map(|before| before.bytes.as_slice());
            let old = old.and_then(|bytes| str::from_utf8(bytes).ok());
            syntax::check(file.target.path(), new, old)
                .map_err(|error| format!("`{}` would break: {error}", file.name))?;
        }
        Ok(())
    }
}

impl Planned {
    fn content(&self) -> Result<&[u8], String> {
        let missing = || match self.before {
            Some(_) => format!("`{}` is deleted earlier in the patch", self.name),
            None => neighbours::describe_missing(self.target.files(), self.target.asked()),
        };
        self.after.as_deref().ok_or_else(missing)
    }
}

fn read(name: &str, target: &Target) -> Result<Option<Before>, String> {
    let Some(existing) = target.existing(FILE_BYTES_MAX)? else {
        return Ok(None);
    };
    let meta = existing.meta;
    let too_large = || {
        format!(
            "`{name}` has {} bytes, too many to patch; use `sed`, `mv` or `rm` in `terminal`",
            meta.bytes
        )
    };
    let bytes = existing
        .content
        .ok_or_else(too_large)?
        .map_err(|error| target.explain(&error))?;
    Ok(Some(Before { bytes, meta }))
}

fn not_text(name: &str) -> String {
    format!("`{name}` is not UTF-8 text, which is all that can be patched")
}

fn explain(name: &str, text: &str, old: &str, error: &ReplaceError) -> String {
    match error {
        ReplaceError::EmptyOld => {
            "`old_string` is empty; quote the text to replace, or use `write_file`".to_owned()
        }
        ReplaceError::OldEqualsNew => {
            "`old_string` and `new_string` are the same: nothing would change".to_owned()
        }
        ReplaceError::NotFound => format!(
            "`old_string` is not in `{name}`{}",
            answer::near_lines(text, old)
        ),
        ReplaceError::Ambiguous { lines } => answer::ambiguous(
            &format!("in `{name}` the lines of `old_string`"),
            lines,
            "include a neighbouring line so that it occurs once, or set `replace_all`",
        ),
        ReplaceError::EscapeDrift => format!("`{name}`: {}", answer::ESCAPE_DRIFT),
    }
}

/// Returns the paths of all files, for those who lock them.
pub(super) fn paths_of(targets: &[(String, Target)]) -> Vec<PathBuf> {
    let paths = targets.iter().map(|(_, target)| target.path());
    paths.map(Path::to_owned).collect()
}
