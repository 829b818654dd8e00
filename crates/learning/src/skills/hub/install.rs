//! Puts skills from elsewhere into place, takes them away, and looks after them.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use hermes_core::Author;
use hermes_os::{Access, Durability};

use super::records::{self, Installed, Lock, content_hash, note};
use super::swap::{Standing, Swap, Why, hash_at};
use super::{Candidate, FILES_MAX, Hub, ScanReport, SkillFile, TOTAL_BYTES_MAX, scan};
use crate::skills::error::Doing as _;
use crate::skills::{SkillError, blocking, names};

/// Files and folders below an installed skill that are looked at; no skill has so many.
const ENTRIES_MAX: usize = 5_000;

/// Whether what should be looked at first, or was changed by hand, is overridden. What is dangerous never is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    No,
    Yes,
}

/// What looking after an installed skill found.
#[derive(Debug)]
pub struct Audited {
    pub name: String,
    /// Whether its files are not what was installed.
    pub is_changed: bool,
    pub report: ScanReport,
}

/// What asking for a newer version came to.
#[derive(Debug)]
pub enum Updated {
    UpToDate,
    /// There is another version; a person decides.
    Newer(Box<Candidate>),
}

impl Hub {
    pub fn installed(&self) -> Result<Lock, SkillError> {
        Lock::read(self.home())
    }

    pub fn taps(&self) -> Result<Vec<String>, SkillError> {
        records::taps(self.home())
    }

    pub fn set_tap(&self, tap: &str, is_wanted: bool) -> Result<bool, SkillError> {
        records::set_tap(self.home(), tap, is_wanted)
    }

    /// Installs a skill that a person agreed to. It waits in quarantine until everything of it is written, and is then
    /// moved into place at once; what was there before is archived.
    pub async fn install(
        &self,
        candidate: &Candidate,
        force: Force,
    ) -> Result<PathBuf, SkillError> {
        if let Some(why) = candidate.refusal(force) {
            return Err(SkillError::asked(format!(
                "`{}` is not installed: {why}",
                candidate.name
            )));
        }
        let _lock = self.skills.hold().await?;
        self.skills.settle().await?;
        let home = self.home().to_owned();
        let known = Lock::read(&home)?.installed.remove(&candidate.name);
        let path = match &known {
            Some(known) if !known.install_path.is_empty() => known.install_path.clone(),
            _ => candidate.name.clone(),
        };
        let place = names::below(&home, &path)?;
        self.check_place(candidate, known.as_ref(), &place, force)
            .await?;
        let quarantined = blocking({
            let (home, candidate) = (home.clone(), candidate.clone());
            move || quarantine(&home, &candidate)
        })
        .await?;
        let swap = Swap {
            name: candidate.name.clone(),
            before: Standing {
                hash: hash_at(place.clone()).await,
                entry: known.clone(),
            },
            after: Standing {
                hash: Some(content_hash(&candidate.files)),
                entry: Some(self.entry(candidate, known, &path)),
            },
            path,
        };
        let why = Why {
            author: Author::Hub,
            summary: format!(
                "installed the skill `{}` from {}",
                candidate.name, candidate.identifier
            ),
            undoes: None,
        };
        let swapped = self.skills.swap(swap, Some(quarantined.clone()), why).await;
        if let Err(error) = swapped {
            _ = fs::remove_dir_all(quarantined);
            return Err(error);
        }
        let verdict = candidate.report.verdict().as_str();
        self.note(&format!(
            "INSTALL {} from {} ({verdict})",
            candidate.name, candidate.identifier
        ));
        Ok(place)
    }

    /// What the books are to say of a skill.
    fn entry(&self, candidate: &Candidate, known: Option<Installed>, path: &str) -> Installed {
        let now = self.skills.clock.now().to_iso();
        let files = candidate.files.iter().map(|file| file.path.clone());
        let installed_at = known.as_ref().map(|known| known.installed_at.clone());
        Installed {
            source: candidate.source.to_owned(),
            identifier: candidate.identifier.clone(),
            trust_level: candidate.trust.as_str().to_owned(),
            scan_verdict: candidate.report.verdict().as_str().to_owned(),
            content_hash: content_hash(&candidate.files),
            install_path: path.to_owned(),
            files: files.collect(),
            installed_at: installed_at.unwrap_or_else(|| now.clone()),
            updated_at: now,
            metadata: known.map(|known| known.metadata).unwrap_or_default(),
        }
    }

    /// Refuses to put a skill where somebody else's is.
    async fn check_place(
        &self,
        candidate: &Candidate,
        known: Option<&Installed>,
        place: &Path,
        force: Force,
    ) -> Result<(), SkillError> {
        let name = &candidate.name;
        match known {
            Some(known) if place.exists() => {
                let there = FilesThere::of(place);
                let is_changed = there.is_cut || content_hash(&there.files) != known.content_hash;
                if is_changed && force == Force::No {
                    return Err(SkillError::asked(format!(
                        "`{name}` was changed since it was installed"
                    ))
                    .hint("--force replaces it; what is there is archived"));
                }
            }
            _ => {
                let library = self.skills.library().await;
                if library.called(name).is_some() || place.symlink_metadata().is_ok() {
                    return Err(
                        SkillError::asked(format!("there is a skill `{name}` already"))
                            .hint(format!("`hermes skills archive {name}` takes that one away first; `hermes skills restore {name}` brings it back")),
                    );
                }
            }
        }
        Ok(())
    }

    /// Whether there is another version of an installed skill.
    pub async fn newer(&self, name: &str) -> Result<Updated, SkillError> {
        let known = self.known(name)?;
        let candidate = self.fetch(&known.identifier).await?;
        if content_hash(&candidate.files) == known.content_hash {
            return Ok(Updated::UpToDate);
        }
        Ok(Updated::Newer(Box::new(Candidate {
            name: name.to_owned(),
            ..candidate
        })))
    }

    /// Archives an installed skill and takes it off the books.
    pub async fn uninstall(&self, name: &str) -> Result<(), SkillError> {
        let _lock = self.skills.hold().await?;
        self.skills.settle().await?;
        let known = self.known(name)?;
        let place = names::below(self.home(), &known.install_path)?;
        let swap = Swap {
            name: name.to_owned(),
            path: known.install_path.clone(),
            before: Standing {
                hash: hash_at(place).await,
                entry: Some(known),
            },
            after: Standing::default(),
        };
        let why = Why {
            author: Author::Hub,
            summary: format!("uninstalled the skill `{name}`"),
            undoes: None,
        };
        self.skills.swap(swap, None, why).await?;
        self.note(&format!("UNINSTALL {name}"));
        Ok(())
    }

    /// Looks at installed skills again: whether they are as they were installed, and what is in them.
    pub async fn audit(&self, name: Option<&str>) -> Result<Vec<Audited>, SkillError> {
        let books = self.installed()?;
        if let Some(name) = name {
            self.known(name)?;
        }
        let home = self.home().to_owned();
        let wanted = books
            .installed
            .into_iter()
            .filter(|(known, _)| name.is_none_or(|name| name == known));
        let wanted: Vec<_> = wanted.collect();
        Ok(blocking(move || {
            let audited = wanted
                .into_iter()
                .map(|(name, known)| audited(&home, name, &known));
            audited.collect()
        })
        .await)
    }

    fn known(&self, name: &str) -> Result<Installed, SkillError> {
        let found = self.installed()?.installed.get(name).cloned();
        found.ok_or_else(|| {
            SkillError::asked(format!("`{name}` was not installed from elsewhere"))
                .hint("`hermes skills audit` lists what was")
        })
    }

    fn home(&self) -> &Path {
        &self.skills.sources.home
    }

    fn note(&self, what: &str) {
        note(self.home(), self.skills.clock.now(), what);
    }
}

/// Writes a skill where nobody looks for any.
fn quarantine(home: &Path, candidate: &Candidate) -> Result<PathBuf, SkillError> {
    let folder = names::within(&records::folder(home).join("quarantine"), &candidate.name)?;
    if folder.exists() {
        fs::remove_dir_all(&folder).doing("clear", &folder)?;
    }
    for file in &candidate.files {
        let Some(path) = super::archive::safe_path(&file.path) else {
            return Err(SkillError::Fetch(format!(
                "`{}` leads out of the skill",
                file.path
            )));
        };
        let path = folder.join(path);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).doing("make the folder", above)?;
        }
        let is_script = file.bytes.starts_with(b"#!");
        let access = if is_script {
            Access::Mode(0o755)
        } else {
            Access::Usual
        };
        hermes_os::replace(&path, &file.bytes, access, Durability::Unsynced)
            .doing("write", &path)?;
    }
    Ok(folder)
}

fn audited(home: &Path, name: String, known: &Installed) -> Audited {
    let there = match names::below(home, &known.install_path) {
        Ok(place) => FilesThere::of(&place),
        Err(_) => FilesThere {
            is_cut: true,
            ..FilesThere::default()
        },
    };
    let mut report = scan(&there.files);
    if there.is_cut {
        report.not_whole();
    }
    Audited {
        name,
        is_changed: there.is_cut || content_hash(&there.files) != known.content_hash,
        report,
    }
}

/// The files of an installed skill, as many and as much of them as a skill may have.
#[derive(Default)]
pub(in crate::skills) struct FilesThere {
    pub(in crate::skills) files: Vec<SkillFile>,
    /// Not everything there was read.
    pub(in crate::skills) is_cut: bool,
}

impl FilesThere {
    pub(in crate::skills) fn of(folder: &Path) -> Self {
        let mut there = Self::default();
        let mut bytes_left = TOTAL_BYTES_MAX as u64;
        let mut folders = vec![PathBuf::new()];
        let mut entries_left = ENTRIES_MAX;
        while let Some(below) = folders.pop() {
            for entry in folder
                .join(&below)
                .read_dir()
                .into_iter()
                .flatten()
                .flatten()
            {
                if entries_left == 0 || there.files.len() >= FILES_MAX {
                    there.is_cut = true;
                    return there;
                }
                entries_left -= 1;
                let path = below.join(entry.file_name());
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(kind) if kind.is_file() => {
                        there.add(&entry.path(), &path, &mut bytes_left);
                    }
                    // A link, or something stranger: no skill is installed with one.
                    _ => there.is_cut = true,
                }
            }
        }
        there
    }

    fn add(&mut self, file: &Path, below: &Path, bytes_left: &mut u64) {
        let mut bytes = Vec::new();
        let read = fs::File::open(file)
            .and_then(|opened| opened.take(*bytes_left + 1).read_to_end(&mut bytes));
        if read.is_err() || bytes.len() as u64 > *bytes_left {
            self.is_cut = true;
            return;
        }
        *bytes_left -= bytes.len() as u64;
        let path = below.display().to_string();
        self.files.push(SkillFile { path, bytes });
    }
}
