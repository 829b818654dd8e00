//! One skill from elsewhere in place of another, or of none, with what the books say of it. It is written down in
//! `skills/.hub/changes/` before it is made, so that a crash leaves one or the other, and so that it can be taken back.

use std::fs;
use std::path::{Path, PathBuf};

use hermes_core::{Author, ChangeId, LearnedChange, NewLearnedChange, Subject};
use serde::{Deserialize, Serialize};

use super::install::FilesThere;
use super::records::{self, Installed, Lock, content_hash};
use crate::skills::change::{ARCHIVE, archive};
use crate::skills::error::Doing as _;
use crate::skills::folders::{READ_CHARS_MAX, SKILL_FILE};
use crate::skills::{Made, SkillError, Skills, blocking, names};

/// Changes of the hub that can be taken back. Nobody goes back further, and each is a page.
const KEPT_MAX: usize = 500;

/// Of a text for the log; no character has more than four bytes.
const TEXT_BYTES_MAX: u64 = READ_CHARS_MAX as u64 * 4;

/// A skill as it stands: in its folder and in the books.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Standing {
    /// Of all its files; `None` where there are none.
    pub hash: Option<String>,
    /// What the books say of it.
    pub entry: Option<Installed>,
}

/// What is to stand in a folder instead of what is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::skills) struct Swap {
    pub(super) name: String,
    /// Below the folder of skills.
    pub(super) path: String,
    pub(super) before: Standing,
    pub(super) after: Standing,
}

/// Who swaps, and how the log tells of it.
pub(super) struct Why {
    pub author: Author,
    pub summary: String,
    pub undoes: Option<ChangeId>,
}

impl Swap {
    /// What was written down of a change, if it is one of the hub's.
    pub(in crate::skills) fn of(
        home: &Path,
        change: &LearnedChange,
    ) -> Result<Option<Self>, SkillError> {
        let Subject::Skill { name, .. } = &change.change.subject else {
            return Ok(None);
        };
        let swap: Option<Self> = records::read(&file(home, change.id))?;
        // The number may be that of another database.
        Ok(swap.filter(|swap| swap.name == *name))
    }

    fn place(&self, home: &Path) -> Result<PathBuf, SkillError> {
        names::below(home, &self.path)
    }

    fn save(&self, home: &Path, change: ChangeId) -> Result<(), SkillError> {
        forget_oldest(home);
        records::write(&file(home, change), self)
    }

    fn keep_books(&self, home: &Path, standing: &Standing) -> Result<(), SkillError> {
        let mut books = Lock::read(home)?;
        match &standing.entry {
            Some(entry) => books.installed.insert(self.name.clone(), entry.clone()),
            None => books.installed.remove(&self.name),
        };
        books.save(home)
    }

    /// Whether it was made. What is neither the one nor the other was edited since: whoever did, the skill was there.
    fn is_made(&self, there: Option<&String>) -> bool {
        if there == self.after.hash.as_ref() {
            return true;
        }
        self.after.hash.is_some() && there.is_some() && there != self.before.hash.as_ref()
    }

    /// Brings back what was there, if it is gone already, and what the books said.
    fn roll_back(&self, home: &Path) -> Result<(), SkillError> {
        let place = self.place(home)?;
        if let Some(hash) = &self.before.hash
            && place.symlink_metadata().is_err()
        {
            let archived = archived(home, &self.name, hash);
            let archived = archived.ok_or_else(|| not_archived(home, &self.name))?;
            fs::rename(&archived, &place).doing("bring back", &archived)?;
        }
        self.keep_books(home, &self.before)
    }
}

impl Skills {
    /// Puts a skill in place of what is there: that of a folder, or without one that of the archive. The lock is held.
    pub(super) async fn swap(
        &self,
        swap: Swap,
        incoming: Option<PathBuf>,
        why: Why,
    ) -> Result<ChangeId, SkillError> {
        let home = self.sources.home.clone();
        let place = swap.place(&home)?;
        let incoming_now = match (&incoming, &swap.after.hash) {
            (None, Some(hash)) => archived(&home, &swap.name, hash),
            _ => incoming.clone(),
        };
        if swap.after.hash.is_some() && incoming_now.is_none() {
            return Err(not_archived(&home, &swap.name));
        }
        let log = self.log()?;
        let change = log
            .begin(NewLearnedChange {
                at: self.clock.now(),
                subject: Subject::Skill {
                    name: swap.name.clone(),
                    path: SKILL_FILE.to_owned(),
                },
                author: why.author,
                session: None,
                turn: None,
                summary: why.summary,
                before: text_of(&place),
                after: incoming_now.as_deref().and_then(text_of),
                undoes: why.undoes,
            })
            .await?;
        let made = blocking({
            let (skills, swap) = (self.clone(), swap.clone());
            move || skills.make_swap(change, &swap, incoming)
        })
        .await;
        if let Err(error) = made {
            swap.roll_back(&home)?;
            log.abandon(change).await?;
            forget(&home, change);
            return Err(error);
        }
        log.finish(change).await?;
        Ok(change)
    }

    /// The books are kept first: what they say and is not there yet is settled at the next change.
    fn make_swap(
        &self,
        change: ChangeId,
        swap: &Swap,
        incoming: Option<PathBuf>,
    ) -> Result<(), SkillError> {
        let home = &self.sources.home;
        let place = swap.place(home)?;
        swap.save(home, change)?;
        if swap.after.hash.is_some() {
            self.update_usage(|usage, _| usage.entry(&swap.name).replaced())?;
        }
        swap.keep_books(home, &swap.after)?;
        if place.symlink_metadata().is_ok() {
            archive(home, &place.join(SKILL_FILE), &swap.name, self.clock.now())?;
        }
        let Some(hash) = &swap.after.hash else {
            return Ok(());
        };
        // In the archive it may have stepped aside for what was there until now.
        let incoming = incoming.or_else(|| archived(home, &swap.name, hash));
        let incoming = incoming.ok_or_else(|| not_archived(home, &swap.name))?;
        if let Some(above) = place.parent() {
            fs::create_dir_all(above).doing("make the folder", above)?;
        }
        fs::rename(&incoming, &place).doing("put into place", &place)
    }

    /// Settles a swap that a crash cut off. The lock is held.
    pub(in crate::skills) async fn settle_swap(
        &self,
        change: ChangeId,
        swap: Swap,
    ) -> Result<(), SkillError> {
        let home = self.sources.home.clone();
        let log = self.log()?;
        let there = hash_at(swap.place(&home)?).await;
        if swap.is_made(there.as_ref()) {
            swap.keep_books(&home, &swap.after)?;
            if swap.after.hash.is_some() {
                self.update_usage(|usage, _| usage.entry(&swap.name).replaced())?;
            }
            return Ok(log.finish(change).await?);
        }
        swap.roll_back(&home)?;
        log.abandon(change).await?;
        forget(&home, change);
        Ok(())
    }

    /// Takes a swap back, if what it put there still stands. The lock is held.
    pub(in crate::skills) async fn swap_back(
        &self,
        change: &LearnedChange,
        swap: Swap,
    ) -> Result<Made, SkillError> {
        let home = &self.sources.home;
        let place = swap.place(home)?;
        let there = hash_at(place.clone()).await;
        if there != swap.after.hash {
            let name = &swap.name;
            return Err(match swap.after.hash {
                Some(_) => SkillError::asked(format!("`{name}` was changed since")).hint(format!(
                    "`hermes skills uninstall {name}` takes it away as it is; nothing is deleted"
                )),
                None => {
                    SkillError::asked(format!("there is a skill in `{}` again", place.display()))
                        .hint(format!(
                            "`hermes skills archive {name}` takes that one away first"
                        ))
                }
            });
        }
        let entry = Lock::read(home)?.installed.remove(&swap.name);
        let back = Swap {
            before: Standing { hash: there, entry },
            after: swap.before,
            name: swap.name,
            path: swap.path,
        };
        let why = Why {
            author: Author::Person,
            summary: format!("takes back: {}", change.change.summary),
            undoes: Some(change.id),
        };
        let change = self.swap(back, None, why).await?;
        Ok(Made::Done {
            change,
            file: place.join(SKILL_FILE),
        })
    }
}

/// What a folder holds, in short; `None` where there is none.
pub(super) async fn hash_at(place: PathBuf) -> Option<String> {
    blocking(move || hash_of(&place)).await
}

fn hash_of(place: &Path) -> Option<String> {
    place.symlink_metadata().ok()?;
    Some(content_hash(&FilesThere::of(place).files))
}

/// The archived folder of a skill with these files: others of its name may be there too.
fn archived(home: &Path, name: &str, hash: &str) -> Option<PathBuf> {
    let folder = home.join(ARCHIVE);
    let aside = format!("{name}.");
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let of_name = entries.filter(|entry| {
        let called = entry.file_name();
        let called = called.to_string_lossy();
        called == name || called.starts_with(&aside)
    });
    let mut folders: Vec<PathBuf> = of_name.map(|entry| entry.path()).collect();
    folders.sort();
    folders
        .into_iter()
        .find(|folder| folder.is_dir() && hash_of(folder).as_deref() == Some(hash))
}

fn not_archived(home: &Path, name: &str) -> SkillError {
    let folder = home.join(ARCHIVE);
    SkillError::asked(format!(
        "`{name}` as it was is not in `{}` any more",
        folder.display()
    ))
    .hint("`hermes skills install` brings one from elsewhere again")
}

/// What a skill says, for the log; nothing where that is too much for anybody to read.
fn text_of(folder: &Path) -> Option<String> {
    let file = folder.join(SKILL_FILE);
    let is_short = file.metadata().ok()?.len() <= TEXT_BYTES_MAX;
    let text = is_short.then(|| fs::read(&file).ok()).flatten()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

fn changes(home: &Path) -> PathBuf {
    records::folder(home).join("changes")
}

fn file(home: &Path, change: ChangeId) -> PathBuf {
    changes(home).join(format!("{change}.json"))
}

fn forget(home: &Path, change: ChangeId) {
    _ = fs::remove_file(file(home, change));
}

fn forget_oldest(home: &Path) {
    let entries = changes(home).read_dir().into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let path = entry.path();
        path.file_stem()?.to_str()?.parse().ok()
    });
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    let too_many = (numbers.len() + 1).saturating_sub(KEPT_MAX);
    for number in numbers.into_iter().take(too_many) {
        forget(home, ChangeId(number));
    }
}
