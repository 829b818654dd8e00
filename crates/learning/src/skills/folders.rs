//! Finds skills in folders: `<category>/<skill>/SKILL.md`, or `<skill>.md` beside the categories.
//!
//! Nothing outside the folders is read, whatever links say, and one bad file hides no other.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::document::{self, Document};
use super::names;

pub(super) const SKILL_FILE: &str = "SKILL.md";
/// Describes a category.
const DESCRIPTION_FILE: &str = "DESCRIPTION.md";
/// What a skill may fill of a conversation; the rest belongs into files beside it.
pub(super) const SKILL_CHARS_MAX: usize = 100_000;
/// What is read: others wrote longer ones.
pub(super) const READ_CHARS_MAX: usize = 500_000;
/// A file beside a skill that is read or written.
pub(super) const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Categories, one in another.
const DEPTH_MAX: usize = 5;
/// Entries of all folders: whoever names their whole disk still gets an answer.
const ENTRIES_MAX: usize = 20_000;
/// Files beside a skill that are named to the model.
const FILES_MAX: usize = 100;
/// Folders that hold no skills; hidden ones do not either.
const NO_SKILLS: [&str; 4] = ["node_modules", "venv", "__pycache__", "target"];

/// A skill as it was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Folders from the root down to it, `dev/rust`; empty right below the root.
    pub category: String,
    /// What it is called unless it says so itself: the name of its folder or file.
    pub given_name: String,
    pub file: PathBuf,
    pub document: Document,
}

/// What one folder holds.
#[derive(Debug, Default)]
pub(super) struct SkillFolder {
    pub found: Vec<Found>,
    /// Categories and what they are for.
    pub categories: Vec<(String, String)>,
    /// Files that cannot be used, and why.
    pub problems: Vec<String>,
}

/// Looks through folders, the first one first.
pub(super) fn look_through(roots: &[PathBuf]) -> Vec<SkillFolder> {
    let within: Vec<PathBuf> = roots
        .iter()
        .filter_map(|root| root.canonicalize().ok())
        .collect();
    let mut walk = Walk {
        within: &within,
        entries_left: ENTRIES_MAX,
        seen: HashSet::new(),
    };
    let skill_folder = |root: &PathBuf| {
        let mut skill_folder = SkillFolder::default();
        walk.folder(root, "", 0, &mut skill_folder);
        skill_folder
    };
    within.iter().map(skill_folder).collect()
}

/// The files beside a skill, by their paths in its folder.
pub(super) fn files_beside(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for (name, path) in entries(&folder.join(&below)) {
            let relative = below.join(&name);
            // A link may lead anywhere, and is not followed.
            match path.symlink_metadata() {
                Ok(data) if data.is_dir() && may_hold_skills(&name) => folders.push(relative),
                Ok(data) if data.is_file() && relative != Path::new(SKILL_FILE) => {
                    files.push(relative.display().to_string());
                }
                _ => {}
            }
            if files.len() + folders.len() > FILES_MAX {
                files.sort();
                files.truncate(FILES_MAX);
                files.push("(and more)".to_owned());
                return files;
            }
        }
    }
    files.sort();
    files
}

struct Walk<'a> {
    within: &'a [PathBuf],
    entries_left: usize,
    /// Folders that were looked at: a link may lead back.
    seen: HashSet<PathBuf>,
}

impl Walk<'_> {
    fn folder(
        &mut self,
        folder: &Path,
        category: &str,
        depth: usize,
        skill_folder: &mut SkillFolder,
    ) {
        let real = folder.canonicalize();
        if !real.is_ok_and(|real| self.seen.insert(real)) {
            return;
        }
        for (name, path) in entries(folder) {
            if self.entries_left == 0 {
                let folder = folder.display();
                let why = format!("more than {ENTRIES_MAX} files; the rest is not looked at");
                skill_folder.problems.push(format!("{folder}: {why}"));
                return;
            }
            self.entries_left -= 1;
            if path.is_dir() {
                if may_hold_skills(&name) {
                    self.entry(&path, &name, category, depth, skill_folder);
                }
            } else if name == DESCRIPTION_FILE {
                if let Ok(document) = self.read(&path) {
                    let described = (category.to_owned(), document.description);
                    skill_folder.categories.push(described);
                }
            } else if let Some(name) = flat_name(&name) {
                self.add(path, name, category, skill_folder);
            }
        }
    }

    /// A folder inside another: a skill, or a category of them.
    fn entry(
        &mut self,
        path: &Path,
        name: &str,
        category: &str,
        depth: usize,
        skill_folder: &mut SkillFolder,
    ) {
        if let Err(why) = self.stays_within(path) {
            skill_folder
                .problems
                .push(format!("{}: {why}", path.display()));
            return;
        }
        let file = path.join(SKILL_FILE);
        if file.symlink_metadata().is_ok() {
            return self.add(file, name, category, skill_folder);
        }
        if depth < DEPTH_MAX {
            let category = match category {
                "" => name.to_owned(),
                category => format!("{category}/{name}"),
            };
            self.folder(path, &category, depth + 1, skill_folder);
        }
    }

    fn add(&self, file: PathBuf, name: &str, category: &str, skill_folder: &mut SkillFolder) {
        match self.read(&file) {
            Ok(mut document) => {
                let bad_name = document.name.take_if(|said| !names::is_plain(said));
                if let Some(bad_name) = bad_name {
                    skill_folder.problems.push(format!(
                        "{}: `{bad_name}` cannot be the name of a skill; it is called `{name}`",
                        file.display()
                    ));
                }
                skill_folder.found.push(Found {
                    category: category.to_owned(),
                    given_name: name.to_owned(),
                    file,
                    document,
                });
            }
            Err(why) => skill_folder
                .problems
                .push(format!("{}: {why}", file.display())),
        }
    }

    fn read(&self, file: &Path) -> Result<Document, String> {
        self.stays_within(file)?;
        if !file.is_file() {
            return Err("it is not a file".into());
        }
        // No character has more than four bytes.
        let bytes_max = READ_CHARS_MAX as u64 * 4;
        let mut bytes = Vec::new();
        let opened = File::open(file).map_err(|error| error.to_string())?;
        let read = opened.take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| error.to_string())?;
        let is_cut = bytes.len() as u64 > bytes_max;
        let too_long = || {
            format!(
                "it has more than {READ_CHARS_MAX} characters; move parts of it into files beside it"
            )
        };
        if is_cut {
            return Err(too_long());
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n');
            format!("line {} is not UTF-8; save it as UTF-8", line.count() + 1)
        })?;
        if text.chars().count() > READ_CHARS_MAX {
            return Err(too_long());
        }
        Ok(document::read(&text))
    }

    /// Refuses a link that leads out of the folders with skills.
    fn stays_within(&self, path: &Path) -> Result<(), String> {
        let real = path.canonicalize().map_err(|error| error.to_string())?;
        if self.within.iter().any(|root| real.starts_with(root)) {
            Ok(())
        } else {
            Err(format!(
                "it is a link to {}, outside the folders of skills; name that folder in `skills.external_dirs`",
                real.display()
            ))
        }
    }
}

/// The entries of a folder in order. What cannot be read has none.
fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let named =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    let mut entries: Vec<_> = named.filter(|(name, _)| !name.starts_with('.')).collect();
    entries.sort();
    entries
}

fn may_hold_skills(folder: &str) -> bool {
    !NO_SKILLS.contains(&folder)
}

/// The name of a skill that is one file. `README.md` and its like are about skills, and none themselves.
fn flat_name(file: &str) -> Option<&str> {
    let name = file.strip_suffix(".md")?;
    name.contains(char::is_lowercase).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(root: &Path, path: &str, text: impl AsRef<[u8]>) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn look(root: &Path) -> SkillFolder {
        look_through(&[root.to_owned()]).remove(0)
    }

    fn names(skill_folder: &SkillFolder) -> Vec<String> {
        let named = |found: &Found| format!("{}:{}", found.category, found.given_name);
        skill_folder.found.iter().map(named).collect()
    }

    #[test]
    fn skills_are_found_in_categories_beside_them_and_as_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, "dev/rust/lint/SKILL.md", "Lint.");
        put(root, "dev/rust/lint/references/nested/SKILL.md", "Not one.");
        put(root, "dev/review/SKILL.md", "Review.");
        put(
            root,
            "dev/DESCRIPTION.md",
            "---\ndescription: for developers\n---\n",
        );
        put(root, "alone/SKILL.md", "Alone.");
        put(root, "standup.md", "Stand up.");
        put(root, "README.md", "About them.");
        put(root, ".archive/old/SKILL.md", "Old.");
        put(root, "node_modules/x/SKILL.md", "Foreign.");
        let skill_folder = look(root);
        assert_eq!(
            names(&skill_folder),
            [":alone", "dev:review", "dev/rust:lint", ":standup"]
        );
        assert_eq!(
            skill_folder.categories,
            [("dev".to_owned(), "for developers".to_owned())]
        );
        assert!(
            skill_folder.problems.is_empty(),
            "{:?}",
            skill_folder.problems
        );
    }

    #[test]
    fn a_bad_file_is_told_of_and_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, "big/SKILL.md", "x".repeat(READ_CHARS_MAX + 1));
        put(root, "huge/SKILL.md", "x".repeat(READ_CHARS_MAX * 5));
        put(root, "bytes/SKILL.md", b"one\ntwo \xff\n");
        put(root, "folder/SKILL.md/x", "");
        put(root, "fits/SKILL.md", "ä".repeat(READ_CHARS_MAX));
        put(root, "good/SKILL.md", "Good.");
        let skill_folder = look(root);
        assert_eq!(names(&skill_folder), [":fits", ":good"]);
        let told = skill_folder.problems.join("\n");
        assert_eq!(skill_folder.problems.len(), 4, "{told}");
        assert!(told.contains("big/SKILL.md: it has more than 500000 characters"));
        assert!(told.contains("bytes/SKILL.md: line 2 is not UTF-8"));
        assert!(told.contains("folder/SKILL.md: it is not a file"));
    }

    #[test]
    fn a_link_may_lead_about_but_not_out() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("skills"), folder.path().join("outside"));
        put(&root, "real/SKILL.md", "Real.");
        put(&outside, "SKILL.md", "Secret.");
        symlink(root.join("real"), root.join("again")).unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink(&root, root.join("round")).unwrap();
        fs::create_dir(root.join("file")).unwrap();
        symlink(outside.join("SKILL.md"), root.join("file/SKILL.md")).unwrap();
        let skill_folder = look(&root);
        assert_eq!(names(&skill_folder), [":again", ":real"]);
        assert_eq!(
            skill_folder.problems.len(),
            2,
            "{:?}",
            skill_folder.problems
        );
        assert!(
            skill_folder
                .problems
                .iter()
                .all(|told| told.contains("outside the folders of skills"))
        );
        // Who names the folder wants it.
        let skill_folders = look_through(&[root, outside]);
        assert_eq!(
            names(&skill_folders[0]),
            [":again", ":file", ":out", ":real"]
        );
    }

    #[test]
    fn the_files_beside_a_skill_are_named_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, "SKILL.md", "It.");
        put(root, "references/style.md", "");
        put(root, "scripts/run.sh", "");
        put(root, ".git/config", "");
        symlink("/etc/passwd", root.join("passwd")).unwrap();
        assert_eq!(
            files_beside(root),
            ["references/style.md", "scripts/run.sh"]
        );
        (0..200).for_each(|n| put(root, &format!("assets/{n}"), ""));
        let many = files_beside(root);
        assert_eq!(many.len(), FILES_MAX + 1);
        assert_eq!(many.last().unwrap(), "(and more)");
    }
}
