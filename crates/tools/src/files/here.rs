//! The files of this machine.

use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use hermes_core::{CancellationToken, FenceArea};
use hermes_os::folder::Folder;
use hermes_os::paths::{self, Followed};
use hermes_os::replace::{Access, Attributes, Durability, StagedFile, stage};

use super::{Bytes, Entry, Files, JudgedWrite, Kind, Meta, Opened, SAMPLE_BYTES, Source, Staged};
use crate::guard::{Guard, PinnedGuard};
use crate::lines::{Page, PageText, read_page};

pub(crate) struct Here {
    home: Option<PathBuf>,
    guard: Guard,
}

impl Here {
    pub(crate) fn new(home: Option<PathBuf>, guard: Guard) -> Self {
        Self { home, guard }
    }

    /// The same files behind a fence.
    pub(super) fn fenced(&self, area: FenceArea) -> Self {
        Self {
            home: self.home.clone(),
            guard: self.guard.clone().fenced(area),
        }
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(super) fn pinned(&self) -> PinnedGuard {
        self.guard.pinned()
    }

    /// Judges a write by the name of its file and by where that leads. Takes a few system calls.
    pub(super) fn judge_write(&self, path: &str, cwd: &Path, guard: &PinnedGuard) -> JudgedWrite {
        let named = paths::joined(path, cwd, self.home());
        // A path that leads nowhere is refused when it is written.
        let target = paths::follow(&named).map_or(named.clone(), |followed| followed.target);
        let clean = paths::without_dots(&named);
        let shown = if clean == target {
            target.display().to_string()
        } else {
            format!("{} (which leads to {})", clean.display(), target.display())
        };
        JudgedWrite {
            judgement: guard.judge_write(&named).or(guard.judge_write(&target)),
            name: target.display().to_string(),
            shown,
        }
    }
}

impl Files for Here {
    fn absolute(&self, path: &str, cwd: &Path) -> io::Result<PathBuf> {
        Ok(paths::joined(path, cwd, self.home()))
    }

    fn guard(&self) -> io::Result<PinnedGuard> {
        Ok(self.guard.pinned())
    }

    fn follow(&self, path: &Path) -> io::Result<Followed> {
        paths::follow(path)
    }

    fn look(&self, target: &Path, content_bytes_max: u64) -> io::Result<Option<Entry>> {
        let folder = match Folder::open(folder_of(target)) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let name = name_of(target);
        let Some(metadata) = folder.look(name)? else {
            return Ok(None);
        };
        let meta = Meta::of(&metadata);
        let is_wanted = meta.kind == Kind::File && meta.bytes <= content_bytes_max;
        let content = (is_wanted && content_bytes_max > 0).then(|| read(&folder, name, meta.bytes));
        Ok(Some(Entry {
            meta,
            may_write: folder.may_write(name),
            content,
        }))
    }

    /// Opens a regular file by a path without links. Should it have become a pipe since, opening it does not hang.
    fn open(&self, path: &Path, _page: Page) -> io::Result<Opened> {
        let target = path.canonicalize()?;
        let (folder, name) = (Folder::open(folder_of(&target))?, name_of(&target));
        let metadata = folder.look(name)?.ok_or(io::ErrorKind::NotFound)?;
        let meta = Meta::of(&metadata);
        if meta.kind != Kind::File {
            return Ok(Opened {
                target,
                meta,
                source: None,
            });
        }
        let file = folder.open_file(name)?;
        let meta = Meta::of(&file.metadata()?);
        let is_file = meta.kind == Kind::File;
        Ok(Opened {
            target,
            meta,
            source: is_file.then(|| Box::new(file) as Box<dyn Source>),
        })
    }

    fn stage(
        &self,
        target: &Path,
        content: &[u8],
        model: Option<&Meta>,
    ) -> io::Result<(Box<dyn Staged>, Vec<PathBuf>)> {
        let (folder, made) = Folder::open_or_create(folder_of(target))?;
        let like = |model: &Meta| {
            Access::Like(Attributes {
                mode: model.mode,
                user: model.user,
                group: model.group,
            })
        };
        let access = model.map_or(Access::Usual, like);
        match stage(folder, content, access, Durability::Synced) {
            Ok(file) => {
                let name = name_of(target).to_owned();
                Ok((Box::new(StagedHere { file, name }), made))
            }
            Err(error) => {
                self.remove_folders(&made);
                Err(error)
            }
        }
    }

    fn write(
        &self,
        target: &Path,
        content: &[u8],
        model: Option<&Meta>,
    ) -> io::Result<Vec<PathBuf>> {
        let (staged, made) = self.stage(target, content, model)?;
        match staged.put() {
            Ok(()) => Ok(made),
            Err(error) => {
                self.remove_folders(&made);
                Err(error)
            }
        }
    }

    fn remove(&self, target: &Path) -> io::Result<()> {
        let folder = Folder::open(folder_of(target))?;
        folder.remove(name_of(target))?;
        // As for a replaced file: only a power cut could bring it back.
        let _ = folder.sync();
        Ok(())
    }

    fn remove_folders(&self, folders: &[PathBuf]) {
        for folder in folders.iter().rev() {
            // One that is no longer empty is somebody else's by now.
            let _ = std::fs::remove_dir(folder);
        }
    }

    fn nearest_folder(&self, path: &Path) -> PathBuf {
        let mut ancestors = path.ancestors();
        let nearest = ancestors.find(|ancestor| ancestor.is_dir());
        nearest.unwrap_or(Path::new("/")).to_owned()
    }

    fn names(&self, folder: &Path, names_max: usize) -> io::Result<Vec<String>> {
        let entries = folder.read_dir()?.take(names_max);
        let name = |entry: io::Result<DirEntry>| {
            Some(entry.ok()?.file_name().to_string_lossy().into_owned())
        };
        Ok(entries.filter_map(name).collect())
    }
}

impl Source for File {
    fn sample(&mut self) -> io::Result<Vec<u8>> {
        let mut sample = Vec::new();
        self.by_ref().take(SAMPLE_BYTES).read_to_end(&mut sample)?;
        self.rewind()?;
        Ok(sample)
    }

    fn page(&mut self, page: Page, stop: &CancellationToken) -> io::Result<Option<PageText>> {
        read_page(self, page, stop)
    }

    fn whole(&mut self) -> io::Result<Box<dyn Bytes + '_>> {
        self.rewind()?;
        Ok(Box::new(self))
    }
}

struct StagedHere {
    file: StagedFile,
    name: OsString,
}

impl Staged for StagedHere {
    fn put(self: Box<Self>) -> io::Result<()> {
        self.file.put(&self.name)
    }
}

fn read(folder: &Folder, name: &OsStr, bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let file = folder.open_file(name)?;
    // What grows while it is read is not read for ever.
    file.take(bytes.saturating_add(1))
        .read_to_end(&mut content)?;
    Ok(content)
}

fn folder_of(target: &Path) -> &Path {
    target.parent().unwrap_or(Path::new("/"))
}

/// The name of a file in its folder; the root has none.
fn name_of(target: &Path) -> &OsStr {
    target.file_name().unwrap_or(OsStr::new("."))
}
