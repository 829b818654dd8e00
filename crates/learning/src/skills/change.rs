//! Changes of skills: one file from what it was to what it is to be. Who may make one at once, and how it is made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use hermes_core::skill::slash_name;
use hermes_core::{
    Author, ChangeFilter, ChangeId, LearnedChange, NewLearnedChange, Subject, Timestamp,
};
use hermes_os::{Access, Durability};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::document;
use super::error::Doing as _;
use super::folders::{SKILL_CHARS_MAX, SKILL_FILE};
use super::hub::{Lock, Swap};
use super::library::{Library, Lookup, Skill};
use super::usage::{Happened, State, Usage};
use super::{By, SkillError, Skills, blocking, folders, names};

/// Folders beside `SKILL.md` that files may be written to.
pub(super) const FILE_FOLDERS: [&str; 4] = ["references", "templates", "scripts", "assets"];
/// Where skills go that are taken away: nothing is deleted.
pub(super) const ARCHIVE: &str = ".archive";
/// A folder of a category is a plain name, and no deeper than they are looked for.
const CATEGORY_CHARS_MAX: usize = 100;
/// Changes that are looked at for what a crash cut off: it was among the last.
const RECENT_CHANGES: usize = 16;
/// Names tried for an archived skill of which there are others.
const ARCHIVED_MAX: usize = 1_000;

/// Why a skill that the agent wrote is not its own any more.
const EDITED: &str = "a person has changed the skill since you wrote it";

/// What one file of a skill is to become.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub skill: String,
    /// Where a new skill is to stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Below the skill's folder; `SKILL.md` is the skill itself.
    pub path: String,
    /// What it must be now for the change to be made; `None` where there is nothing.
    pub before: Option<String>,
    /// `None` takes it away: a file, or with `SKILL.md` the whole skill, which is archived.
    pub after: Option<String>,
    /// In one line, for people.
    pub summary: String,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// It is made, under this number in the log.
    Done { change: ChangeId, file: PathBuf },
    /// It waits for consent, under this number.
    Proposed { number: u64, why: String },
}

impl Edit {
    fn is_of_skill(&self) -> bool {
        self.path == SKILL_FILE
    }

    fn is_new(&self) -> bool {
        self.is_of_skill() && self.before.is_none()
    }

    fn archives(&self) -> bool {
        self.is_of_skill() && self.after.is_none()
    }

    /// The change as it is in the log; `None` where it is not of a skill.
    fn of(change: &LearnedChange) -> Option<Self> {
        let Subject::Skill { name, path } = &change.change.subject else {
            return None;
        };
        Some(Self {
            skill: name.clone(),
            category: None,
            path: path.clone(),
            before: change.change.before.clone(),
            after: change.change.after.clone(),
            summary: change.change.summary.clone(),
        })
    }

    fn subject(&self) -> Subject {
        Subject::Skill {
            name: self.skill.clone(),
            path: self.path.clone(),
        }
    }
}

impl Skills {
    /// Makes a change, or turns it into a proposal where it is not theirs to make.
    pub async fn change(&self, mut edit: Edit, by: &By) -> Result<Made, SkillError> {
        edit.path = normal_path(&edit.path)?;
        let lock = self.hold().await?;
        let file = self.checked(&edit).await?;
        if let Some(why) = self.why_ask(&edit, &file, by).await? {
            if why == EDITED {
                // Noted, for the agent's text may be what is there again once they agree to this change.
                self.update_usage(|usage, _| usage.entry(&edit.skill).edited_by_person = true)?;
            }
            let number = self.propose(vec![edit], by, &why)?;
            return Ok(Made::Proposed { number, why });
        }
        let made = self.make(edit, by, file, None).await;
        drop(lock);
        made
    }

    /// Writes a change down, makes it, and says that it is made. The lock is held.
    pub(super) async fn make(
        &self,
        edit: Edit,
        by: &By,
        file: PathBuf,
        undoes: Option<ChangeId>,
    ) -> Result<Made, SkillError> {
        let log = self.log()?;
        let change = log
            .begin(NewLearnedChange {
                at: self.clock.now(),
                subject: edit.subject(),
                author: by.author,
                session: by.session.clone(),
                turn: None,
                summary: edit.summary.clone(),
                before: edit.before.clone(),
                after: edit.after.clone(),
                undoes,
            })
            .await?;
        let acting = Acting {
            skills: self.sources.home.clone(),
            file: file.clone(),
            edit: edit.clone(),
            now: self.clock.now(),
        };
        let done = blocking(move || acting.act()).await;
        let archived_from = match done {
            Ok(archived_from) => archived_from,
            Err(error) => {
                log.abandon(change).await?;
                return Err(error);
            }
        };
        // Whose it is stands before the end of the change: a crash between them leaves something to settle.
        self.note(&edit, by, archived_from);
        log.finish(change).await?;
        Ok(Made::Done { change, file })
    }

    /// Where the file of a change is, once it is sure that the change can be made there. The lock is held.
    pub(super) async fn checked(&self, edit: &Edit) -> Result<PathBuf, SkillError> {
        if !self.is_in_archive(edit) {
            check_text(edit)?;
        }
        // It may come from a file that anybody wrote: a proposal, or the log of another version.
        names::within(&self.sources.home, &edit.skill)?;
        self.settle().await?;
        let library = self.library().await;
        let file = if edit.is_new() {
            self.new_file(edit, &library)?
        } else {
            place(&library, &edit.skill, &edit.path)?
        };
        let is_now = content(&file)?;
        if is_now != edit.before {
            return Err(SkillError::asked(format!(
                "`{}` of `{}` was changed since",
                edit.path, edit.skill
            ))
            .hint("look at it again, and make the change anew"));
        }
        Ok(file)
    }

    /// Moves a skill into the archive for a person.
    pub async fn archive(&self, name: &str) -> Result<Made, SkillError> {
        let library = self.library().await;
        let skill = found(&library, name)?;
        let name = &skill.name;
        if skill.is_external {
            return Err(SkillError::asked(format!(
                "`{name}` is in a folder of others, which is not touched"
            ))
            .hint(format!(
                "`hermes config set skills.disabled '[\"{name}\"]'` leaves it out"
            )));
        }
        let home = &self.sources.home;
        if let Some((installed, _)) = Lock::read(home)?.at(home, &skill.folder) {
            return Err(
                SkillError::asked(format!("`{name}` was installed from elsewhere"))
                    .hint(format!("`hermes skills uninstall {installed}` archives it")),
            );
        }
        let edit = Edit {
            skill: name.clone(),
            category: None,
            path: SKILL_FILE.to_owned(),
            before: content(&skill.file)?,
            after: None,
            summary: format!("archived the skill `{name}`"),
        };
        self.change(edit, &By::PERSON).await
    }

    /// Brings an archived skill back to where it was, with the files beside it.
    pub async fn restore(&self, name: &str) -> Result<Made, SkillError> {
        let usage = self.usage();
        let is_called = |known: &str| {
            known.eq_ignore_ascii_case(name) || slash_name(known).as_deref() == Some(name)
        };
        let mut archived = usage
            .iter()
            .filter(|(_, record)| record.state == State::Archived);
        let name = archived
            .find(|(known, _)| is_called(known))
            .map_or(name, |(known, _)| known);
        let text = self.archived_text(name).ok_or_else(|| {
            SkillError::asked(format!("there is no archived skill `{name}`")).hint(
                "`hermes skills history` lists what was archived; `hermes skills undo NAME` takes the last change of a skill back",
            )
        })?;
        let edit = Edit {
            skill: name.to_owned(),
            category: None,
            path: SKILL_FILE.to_owned(),
            before: None,
            after: Some(text),
            summary: format!("brought the skill `{name}` back from the archive"),
        };
        self.change(edit, &By::PERSON).await
    }

    /// What an archived skill says.
    fn archived_text(&self, name: &str) -> Option<String> {
        let usage = self.usage();
        let record = usage.get(name)?;
        if record.state != State::Archived {
            return None;
        }
        let archive = self.sources.home.join(ARCHIVE);
        let in_folder = names::within(&archive, name).ok()?.join(SKILL_FILE);
        let alone = record.archived_from.as_deref().and_then(|from| {
            let file = Path::new(from).file_name()?.to_str()?;
            names::within(&archive, file).ok()
        });
        let files = std::iter::once(in_folder).chain(alone);
        files.into_iter().find_map(|file| content(&file).ok()?)
    }

    /// Whether a change brings back what is archived, however long that is.
    fn is_in_archive(&self, edit: &Edit) -> bool {
        edit.is_new() && edit.after.is_some() && self.archived_text(&edit.skill) == edit.after
    }

    /// Settles changes that a crash cut off, before somebody goes by what is there.
    pub async fn settle_changes(&self) -> Result<(), SkillError> {
        let _lock = self.hold().await?;
        self.settle().await
    }

    /// Settles changes that a crash cut off: each was made, or it was not. The lock is held.
    pub(super) async fn settle(&self) -> Result<(), SkillError> {
        let Some(log) = &self.log else {
            return Ok(());
        };
        let recent = ChangeFilter {
            kind: Some("skill".to_owned()),
            limit: RECENT_CHANGES,
            ..ChangeFilter::default()
        };
        let mut open = log.changes(recent).await?;
        open.retain(|change| !change.is_finished);
        if open.is_empty() {
            return Ok(());
        }
        let library = self.library().await;
        // In the order they were begun.
        for change in open.into_iter().rev() {
            if let Some(swap) = Swap::of(&self.sources.home, &change)? {
                self.settle_swap(change.id, swap).await?;
                continue;
            }
            if change.change.author == Author::Hub {
                // It is written down elsewhere too before anything is moved: nothing was.
                log.abandon(change.id).await?;
                continue;
            }
            let Some(edit) = Edit::of(&change) else {
                continue;
            };
            let is_now = match place(&library, &edit.skill, &edit.path) {
                Ok(file) => content(&file)?,
                Err(_) => None,
            };
            // What is neither was edited since: whoever did, the change may have been made.
            if is_now == edit.before && is_now != edit.after {
                log.abandon(change.id).await?;
                continue;
            }
            let by = By {
                author: change.change.author,
                session: change.change.session.clone(),
            };
            self.note(&edit, &by, None);
            log.finish(change.id).await?;
        }
        Ok(())
    }

    fn new_file(&self, edit: &Edit, library: &Library) -> Result<PathBuf, SkillError> {
        let name = &edit.skill;
        if let Some(file) = self.file_before(name)? {
            return Ok(file);
        }
        if let Some(problem) = document::name_problem(name) {
            return Err(SkillError::asked(problem));
        }
        if let Lookup::One(skill) = library.look_up(name) {
            return Err(SkillError::asked(format!(
                "there is a skill `{}` in `{}` already",
                skill.name,
                skill.folder.display()
            ))
            .hint("change that one, or take another name"));
        }
        let category = edit.category.as_deref().unwrap_or_default();
        let folder = self
            .sources
            .home
            .join(category_folder(category)?)
            .join(name);
        if folder.symlink_metadata().is_ok() && !is_left_empty(&folder) {
            return Err(SkillError::asked(format!(
                "`{}` is there already, although it holds no skill that is used here",
                folder.display()
            ))
            .hint("take another name"));
        }
        Ok(folder.join(SKILL_FILE))
    }

    /// Where an archived skill was, if nothing else is there now.
    fn file_before(&self, name: &str) -> Result<Option<PathBuf>, SkillError> {
        let usage = self.usage();
        let from = usage
            .get(name)
            .and_then(|record| record.archived_from.as_deref());
        let place = from.map(|from| names::below(&self.sources.home, from));
        let Some(Ok(place)) = place else {
            return Ok(None);
        };
        if place.symlink_metadata().is_ok() {
            return Ok(None);
        }
        let is_one_file = place.extension().is_some_and(|ending| ending == "md");
        Ok(Some(if is_one_file {
            place
        } else {
            place.join(SKILL_FILE)
        }))
    }

    /// Why a person must agree to a change first, if they must.
    async fn why_ask(
        &self,
        edit: &Edit,
        file: &Path,
        by: &By,
    ) -> Result<Option<String>, SkillError> {
        if by.author == Author::Person || by.author == Author::Hub {
            return Ok(None);
        }
        if self.wants_approval {
            return Ok(Some(
                "changes of skills wait for the user's consent".to_owned(),
            ));
        }
        if edit.is_new() {
            return Ok(None);
        }
        if edit.archives() {
            return self.why_not_own_whole(&edit.skill).await;
        }
        self.why_not_own(&edit.skill, &edit.path, file).await
    }

    /// Why a skill is not the agent's own with everything beside it, if it is not.
    pub(super) async fn why_not_own_whole(&self, name: &str) -> Result<Option<String>, SkillError> {
        let library = self.library().await;
        let skill = found(&library, name)?;
        let why_not = self.why_not_own(name, SKILL_FILE, &skill.file).await?;
        if why_not.is_some() {
            return Ok(why_not);
        }
        let usage = self.usage();
        for path in skill.files() {
            let file = skill.folder.join(&path);
            // Of very many not all are listed.
            if !file.is_file() || !self.is_as_we_left_it(name, &path, &file, &usage).await? {
                return Ok(Some(EDITED.to_owned()));
            }
        }
        Ok(None)
    }

    /// Why a skill is not the agent's own, if it is not.
    pub(super) async fn why_not_own(
        &self,
        name: &str,
        path: &str,
        file: &Path,
    ) -> Result<Option<String>, SkillError> {
        let usage = self.usage();
        let said = |text: &str| Ok(Some(text.to_owned()));
        let library = self.library().await;
        let skill = found(&library, name)?;
        if skill.is_external {
            return said("the skill is in a folder of others");
        }
        if !usage.is_of_agent(name) {
            return said("the skill is not yours: a person wrote or installed it");
        }
        if usage.get(name).is_some_and(|record| record.pinned) {
            return said("the skill is pinned");
        }
        if usage
            .get(name)
            .is_some_and(|record| record.edited_by_person)
        {
            return said(EDITED);
        }
        for (path, file) in [(SKILL_FILE, skill.file.as_path()), (path, file)] {
            if !self.is_as_we_left_it(name, path, file, &usage).await? {
                return said(EDITED);
            }
        }
        Ok(None)
    }

    /// Whether a file is what our last change of it made it, or what it was before one that a crash cut off. One beside a skill
    /// of which we know no change was put there by somebody else.
    async fn is_as_we_left_it(
        &self,
        name: &str,
        path: &str,
        file: &Path,
        usage: &Usage,
    ) -> Result<bool, SkillError> {
        let last = self.last_change(name, path).await?;
        if last.is_none() && path == SKILL_FILE {
            return Ok(true);
        }
        let given_back = usage
            .get(name)
            .and_then(|record| record.given_back.get(path));
        if given_back.is_some() && file_digest(file).as_ref() == given_back {
            return Ok(true);
        }
        // What is no text is nothing that we wrote.
        let Ok(is_now) = content(file) else {
            return Ok(false);
        };
        Ok(match last {
            None => is_now.is_none(),
            Some(last) => {
                let was_cut_off = !last.is_finished && is_now == last.change.before;
                is_now == last.change.after || was_cut_off
            }
        })
    }

    /// The last change of a file.
    async fn last_change(
        &self,
        name: &str,
        path: &str,
    ) -> Result<Option<LearnedChange>, SkillError> {
        let Some(log) = &self.log else {
            return Ok(None);
        };
        let changes = log
            .changes(ChangeFilter {
                subject: Some(Subject::Skill {
                    name: name.to_owned(),
                    path: path.to_owned(),
                }),
                limit: 1,
                ..ChangeFilter::default()
            })
            .await?;
        Ok(changes.into_iter().next())
    }

    /// Keeps count of a change that was made.
    fn note(&self, edit: &Edit, by: &By, archived_from: Option<String>) {
        let is_of_agent = matches!(by.author, Author::Agent | Author::Review);
        let noted = self.update_usage(|usage, now| {
            if edit.archives() {
                let record = usage.entry(&edit.skill);
                record.state = State::Archived;
                record.archived_at = Some(now.to_iso());
                record.archived_from = archived_from;
                return;
            }
            let record = usage.entry(&edit.skill);
            if record.state == State::Archived {
                record.state = State::Active;
                record.archived_at = None;
                record.archived_from = None;
            }
            match (edit.is_new(), is_of_agent) {
                (true, true) => usage.happened(&edit.skill, Happened::Created, now),
                (false, true) => usage.happened(&edit.skill, Happened::Patched, now),
                _ => {}
            }
        });
        if let Err(error) = noted {
            tracing::warn!("the change of `{}` was not counted: {error}", edit.skill);
        }
    }
}

/// A change that is written down and about to be made.
struct Acting {
    skills: PathBuf,
    file: PathBuf,
    edit: Edit,
    now: Timestamp,
}

impl Acting {
    /// Makes it. Returns where the skill was, if it is archived now.
    fn act(&self) -> Result<Option<String>, SkillError> {
        match &self.edit.after {
            Some(_) if self.edit.is_new() && self.restore()? => Ok(None),
            Some(text) => self.write(text).map(|()| None),
            None if self.edit.archives() => {
                archive(&self.skills, &self.file, &self.edit.skill, self.now)
            }
            None => fs::remove_file(&self.file)
                .doing("remove", &self.file)
                .map(|()| None),
        }
    }

    fn write(&self, text: &str) -> Result<(), SkillError> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder).doing("make the folder", folder)?;
        }
        let is_script = self.edit.path.starts_with("scripts/") && text.starts_with("#!");
        let access = if is_script {
            Access::Mode(0o755)
        } else {
            Access::Usual
        };
        hermes_os::replace(&self.file, text.as_bytes(), access, Durability::Synced)
            .doing("write", &self.file)
    }

    /// Brings a skill back from the archive, with all its files, if it is the same that is to be there.
    fn restore(&self) -> Result<bool, SkillError> {
        let usage = Usage::read(&self.skills);
        let record = usage.get(&self.edit.skill);
        if record.is_none_or(|record| record.state != State::Archived) {
            return Ok(false);
        }
        let archived = names::within(&self.skills.join(ARCHIVE), &self.edit.skill)?;
        let text = fs::read_to_string(archived.join(SKILL_FILE)).ok();
        let Some(folder) = self.file.parent() else {
            return Ok(false);
        };
        if text != self.edit.after || folder.exists() {
            return Ok(false);
        }
        if let Some(above) = folder.parent() {
            fs::create_dir_all(above).doing("make the folder", above)?;
        }
        fs::rename(&archived, folder).doing("bring back", &archived)?;
        Ok(true)
    }
}

/// Moves a skill into the archive. Returns where it was.
pub(super) fn archive(
    skills: &Path,
    file: &Path,
    name: &str,
    now: Timestamp,
) -> Result<Option<String>, SkillError> {
    // A skill that is one file is moved alone.
    let what = if file.ends_with(SKILL_FILE) {
        file.parent().unwrap_or(file)
    } else {
        file
    };
    if what.symlink_metadata().doing("look at", what)?.is_symlink() {
        return Err(SkillError::asked(format!("`{}` is a link", what.display()))
            .hint("remove the link yourself; what it leads to is not touched"));
    }
    let folder = skills.join(ARCHIVE);
    fs::create_dir_all(&folder).doing("make the folder", &folder)?;
    let base = what
        .file_name()
        .map_or(name.into(), |base| base.to_string_lossy());
    let base = if file.ends_with(SKILL_FILE) {
        name.into()
    } else {
        base
    };
    let target = free_name(&folder, &base, now)?;
    fs::rename(what, &target).doing("archive", what)?;
    let home = skills.canonicalize().unwrap_or_else(|_| skills.to_owned());
    let from = what
        .strip_prefix(&home)
        .or_else(|_| what.strip_prefix(skills));
    Ok(Some(from.unwrap_or(what).display().to_string()))
}

/// The name itself goes to the newest: an older one of it steps aside.
fn free_name(folder: &Path, name: &str, now: Timestamp) -> Result<PathBuf, SkillError> {
    let target = names::within(folder, name)?;
    if target.symlink_metadata().is_err() {
        return Ok(target);
    }
    let date = now.date_text();
    for number in 1..ARCHIVED_MAX {
        let aside = folder.join(format!("{name}.{date}.{number}"));
        if aside.symlink_metadata().is_err() {
            fs::rename(&target, &aside).doing("set aside", &target)?;
            return Ok(target);
        }
    }
    Err(SkillError::asked(format!(
        "`{}` holds {ARCHIVED_MAX} skills called `{name}`",
        folder.display()
    ))
    .hint("move some of them away"))
}

/// What the files of a skill say, in short.
pub(super) fn digests(skill: &Skill) -> BTreeMap<String, String> {
    let beside = skill.files();
    let beside = beside
        .iter()
        .map(|path| (path.clone(), skill.folder.join(path)));
    let all = std::iter::once((SKILL_FILE.to_owned(), skill.file.clone())).chain(beside);
    let digested = all.filter_map(|(path, file)| Some((path, file_digest(&file)?)));
    digested.collect()
}

/// What a file says, in short; nothing where there is none, or one that is too long to be looked at.
pub fn file_digest(file: &Path) -> Option<String> {
    let length = file.metadata().ok()?.len();
    if length > folders::FILE_BYTES_MAX {
        return None;
    }
    let digest = Sha256::digest(fs::read(file).ok()?);
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether a folder holds nothing but what a crash left of a file that was being written.
fn is_left_empty(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else {
        return false;
    };
    let is_real = folder
        .symlink_metadata()
        .is_ok_and(|data| !data.is_symlink());
    let is_hidden = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    is_real && entries.map_while(Result::ok).all(is_hidden)
}

/// Checks what a file is to become.
fn check_text(edit: &Edit) -> Result<(), SkillError> {
    let Some(text) = &edit.after else {
        return Ok(());
    };
    let chars = text.chars().count();
    if chars > SKILL_CHARS_MAX {
        return Err(SkillError::asked(format!(
            "`{}` would have {chars} characters; {SKILL_CHARS_MAX} are allowed",
            edit.path
        ))
        .hint("move parts of it into files of their own, under references/"));
    }
    if text.contains('\0') {
        return Err(SkillError::asked("a skill is text, and this is not"));
    }
    Ok(())
}

/// The file of a skill by its path below the skill's folder.
pub(super) fn place(library: &Library, name: &str, path: &str) -> Result<PathBuf, SkillError> {
    let skill = found(library, name)?;
    if path == SKILL_FILE {
        return Ok(skill.file.clone());
    }
    if !skill.has_files {
        return Err(SkillError::asked(format!(
            "`{}` is a single file and has no folder for others",
            skill.name
        )));
    }
    let relative = file_path(path)?;
    let file = skill.folder.join(relative);
    stays_within(&skill.folder, &file)?;
    Ok(file)
}

/// The skill that a name means, or what to say instead.
pub(super) fn found<'a>(library: &'a Library, name: &str) -> Result<&'a Skill, SkillError> {
    match library.look_up(name) {
        Lookup::One(skill) => Ok(skill),
        Lookup::Several(all) => Err(SkillError::asked(format!(
            "`{name}` is the name of several skills: {}",
            all.join(", ")
        ))
        .hint("name one of these")),
        Lookup::None(near) => {
            let name = hermes_core::text::shorten(name, document::NAME_CHARS_MAX);
            let error = SkillError::asked(format!("there is no skill `{name}`"));
            Err(match near.as_slice() {
                [] => error,
                near => error.hint(format!("did you mean {}?", near.join(" or "))),
            })
        }
    }
}

/// A path of a skill as it is written down, however it was spelt: one file has one history.
pub(super) fn normal_path(path: &str) -> Result<String, SkillError> {
    if path == SKILL_FILE {
        return Ok(path.to_owned());
    }
    Ok(file_path(path)?.display().to_string())
}

/// A path that models may write to: below one of the four folders, and nowhere else.
pub(super) fn file_path(path: &str) -> Result<PathBuf, SkillError> {
    let parts: Option<Vec<&str>> = Path::new(path)
        .components()
        .map(|part| match part {
            Component::Normal(part) => part.to_str().filter(|part| !part.starts_with('.')),
            _ => None,
        })
        .collect();
    let parts = parts.unwrap_or_default();
    match parts.as_slice() {
        [folder, _, ..] if FILE_FOLDERS.contains(folder) && parts.len() <= 8 => {
            Ok(parts.iter().collect())
        }
        _ => Err(SkillError::asked(format!(
            "`{}` is no place for a file of a skill",
            hermes_core::text::shorten(path, 200)
        ))
        .hint("files go below references/, templates/, scripts/ or assets/")),
    }
}

fn category_folder(category: &str) -> Result<PathBuf, SkillError> {
    let category = category.trim().trim_matches('/');
    let is_plain = |part: &str| {
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty() && part.chars().all(is_letter)
    };
    let parts: Vec<&str> = category.split('/').collect();
    let is_good = category.len() <= CATEGORY_CHARS_MAX
        && parts.len() <= 3
        && parts.iter().all(|part| is_plain(part));
    if category.is_empty() || is_good {
        return Ok(PathBuf::from(category));
    }
    Err(SkillError::asked(format!(
        "`{}` cannot be a category",
        hermes_core::text::shorten(category, CATEGORY_CHARS_MAX)
    ))
    .hint("it is one word of a-z, 0-9 and hyphens, or up to three with slashes between"))
}

/// Refuses a path that links lead out of the skill's folder.
fn stays_within(folder: &Path, file: &Path) -> Result<(), SkillError> {
    let real = folder.canonicalize().doing("look at", folder)?;
    let mut there = file;
    while there.symlink_metadata().is_err() {
        match there.parent() {
            Some(above) => there = above,
            None => break,
        }
    }
    let leads_to = there.canonicalize().doing("look at", there)?;
    if leads_to.starts_with(&real) && !file.is_symlink() {
        return Ok(());
    }
    Err(SkillError::asked(format!(
        "`{}` leads out of the skill's folder",
        file.display()
    )))
}

/// What a file holds now; `None` where there is none.
pub(super) fn content(file: &Path) -> Result<Option<String>, SkillError> {
    match fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).doing("look at", file),
        Ok(data) if data.len() > folders::FILE_BYTES_MAX => {
            return Err(SkillError::asked(format!(
                "`{}` has more than {} bytes",
                file.display(),
                folders::FILE_BYTES_MAX
            )));
        }
        Ok(_) => {}
    }
    let bytes = fs::read(file).doing("read", file)?;
    String::from_utf8(bytes).map(Some).map_err(|_| {
        SkillError::asked(format!("`{}` is no text", file.display()))
            .hint("only a person can change it")
    })
}
