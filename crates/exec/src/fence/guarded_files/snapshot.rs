//! The guarded files of a folder as they are at one moment, and how they are put back.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_os::{Access, Durability};

use super::survey::Survey;
use super::{Root, git_config, is_harmless, is_scratch};

/// A file that is larger is not remembered.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Files and folders that are looked at below one folder.
const ENTRIES_MAX: usize = 2000;

const DEPTH_MAX: usize = 8;

#[derive(Debug, Clone, Default)]
pub(super) struct Snapshot {
    root: PathBuf,
    entries: BTreeMap<PathBuf, Was>,
    /// What lies below the top, if this is a project.
    survey: Survey,
}

#[derive(Debug, Clone)]
pub(super) enum Was {
    Folder,
    File {
        stamp: Stamp,
        mode: u32,
        /// Not there when it is too large.
        content: Option<Arc<[u8]>>,
    },
    Link(PathBuf),
    Other,
}

/// What a file holds.
pub(super) enum Content<'a> {
    Of(&'a [u8]),
    Folder,
    /// Nothing is there, or nothing that is known.
    None,
}

/// Tells one state of a file from the next; the time of the last change of its entry cannot be forged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(data: &Metadata) -> Self {
        Self {
            inode: data.ino(),
            bytes: data.len(),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

impl PartialEq for Was {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder, Self::Folder) | (Self::Other, Self::Other) => true,
            (Self::Link(one), Self::Link(other)) => one == other,
            (
                Self::File {
                    stamp,
                    mode,
                    content,
                },
                Self::File {
                    stamp: other_stamp,
                    mode: other_mode,
                    content: other_content,
                },
            ) => match (content, other_content) {
                (Some(one), Some(other)) => one == other && mode == other_mode,
                _ => stamp == other_stamp,
            },
            _ => false,
        }
    }
}

impl Snapshot {
    /// Looks at what is there. Files that are as they were in `before` are not read again.
    pub(super) fn of(root: &Root, before: Option<&Self>) -> Self {
        let nothing = Survey::default();
        let known = before.map_or(&nothing, |before| &before.survey);
        let (survey, below) = match root {
            Root::Project(root) => Survey::of(root, known),
            Root::Git(_) => (Survey::default(), Vec::new()),
        };
        let mut snapshot = Self {
            root: root.path().to_owned(),
            entries: BTreeMap::new(),
            survey,
        };
        for name in root.names().into_iter().chain(below) {
            let is_whole = !(name.ends_with(".git") || name.ends_with(".github"));
            let depth = if is_whole { DEPTH_MAX } else { 0 };
            snapshot.add(&name, before, depth);
        }
        snapshot
    }

    /// What is at a path.
    pub(super) fn content(&self, path: &Path) -> Content<'_> {
        match self.entries.get(path) {
            Some(Was::File {
                content: Some(content),
                ..
            }) => Content::Of(content),
            Some(Was::Folder) => Content::Folder,
            _ => Content::None,
        }
    }

    /// Returns the repository that a path is a part of: the folder its `.git` is in.
    fn repository_of<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let inside = path.ancestors().take_while(|folder| *folder != self.root);
        let git = inside.filter(|folder| folder.ends_with(".git")).last()?;
        git.parent()
    }

    fn has_git(&self, repository: &Path) -> bool {
        self.entries.contains_key(&repository.join(".git"))
    }

    /// Returns whether a path is in a repository below the top that this does not have: somebody fetched it, with all it
    /// brings along.
    fn is_in_new_repository(&self, now: &Self, path: &Path) -> bool {
        let folders = path.ancestors().skip(1);
        let mut inside = folders.take_while(|folder| *folder != self.root);
        inside.any(|folder| now.has_git(folder) && !self.has_git(folder))
    }

    fn add(&mut self, path: &Path, before: Option<&Self>, depth: usize) {
        let Ok(data) = path.symlink_metadata() else {
            return;
        };
        // A link on the way is guarded itself; what is behind it is not ours.
        let parents = path.ancestors().skip(1);
        let mut inside = parents.take_while(|parent| *parent != self.root);
        if inside.any(|parent| {
            parent
                .symlink_metadata()
                .is_ok_and(|data| data.is_symlink())
        }) {
            return;
        }
        if self.entries.len() >= ENTRIES_MAX || is_scratch(path) {
            return;
        }
        let known = before.and_then(|before| before.entries.get(path));
        self.entries
            .insert(path.to_owned(), was(path, &data, known));
        if data.is_dir() && depth > 0 {
            let entries = path.read_dir().into_iter().flatten().flatten();
            for entry in entries.take(ENTRIES_MAX) {
                self.add(&entry.path(), before, depth - 1);
            }
        }
    }

    /// Returns the paths at which something else is now than was, without what does no harm.
    pub(super) fn changes(&self, now: &Self) -> Vec<PathBuf> {
        // One that was removed has nothing that runs; of a new one, only what runs something counts.
        let counts = |path: &Path| match self.repository_of(path) {
            Some(repository) => match (self.has_git(repository), now.has_git(repository)) {
                (true, true) => true,
                (false, true) => now
                    .entries
                    .get(path)
                    .is_some_and(|was| runs_something(path, was)),
                _ => false,
            },
            None => !self.is_in_new_repository(now, path),
        };
        let is_changed = |path: &&PathBuf| match (self.entries.get(*path), now.entries.get(*path)) {
            (Some(before), Some(now)) => before != now && !is_harmless(path, before, now),
            (Some(_), None) => path.symlink_metadata().is_err(),
            // A folder that only holds something is not guarded itself.
            (None, Some(now)) => !(path.ends_with(".github") && *now == Was::Folder),
            (None, None) => false,
        };
        let paths = self.entries.keys().chain(now.entries.keys());
        let mut changed: Vec<PathBuf> = paths
            .filter(|path| counts(path))
            .filter(is_changed)
            .cloned()
            .collect();
        changed.sort();
        changed.dedup();
        changed
    }

    /// What is to be remembered after `now` was looked at: of a repository that is gone, what it had.
    pub(super) fn followed_by(self, mut now: Self) -> Self {
        if self.root == now.root {
            let is_gone = |path: &Path| {
                let repository = self.repository_of(path);
                repository.is_some_and(|repository| !now.has_git(repository))
            };
            let gone = self.entries.iter().filter(|(path, _)| is_gone(path));
            let gone: Vec<_> = gone
                .map(|(path, was)| (path.clone(), was.clone()))
                .collect();
            now.entries.extend(gone);
        }
        now
    }

    /// Takes over one path, and what is below it, from `now`.
    pub(super) fn with(mut self, now: &Self, path: &Path) -> Self {
        self.entries.retain(|known, _| !known.starts_with(path));
        let new = now.entries.iter().filter(|(known, _)| {
            known.starts_with(path)
                || (path.starts_with(known) && !self.entries.contains_key(*known))
        });
        let new: Vec<_> = new.map(|(path, was)| (path.clone(), was.clone())).collect();
        self.entries.extend(new);
        self
    }

    /// Puts back what was. What cannot be is left; whoever looks again sees it.
    pub(super) fn put_back(&self, changed: &[PathBuf], now: &Self) {
        // What came is removed from the inside out, what went is made from the outside in.
        for path in changed.iter().rev() {
            let is_other_kind = match (self.entries.get(path), now.entries.get(path)) {
                (None, _) => true,
                (Some(Was::Folder), Some(now)) => *now != Was::Folder,
                (Some(_), Some(Was::Folder)) => true,
                _ => false,
            };
            if is_other_kind {
                let _ = remove(path);
            }
        }
        let github = self.root.join(".github");
        if !self.entries.contains_key(&github) {
            // One that holds something else is let be.
            let _ = fs::remove_dir(github);
        }
        for path in changed {
            let _ = match self.entries.get(path) {
                Some(Was::Folder) => fs::create_dir_all(path),
                Some(Was::Link(target)) => remove(path).and_then(|()| symlink(target, path)),
                Some(Was::File {
                    mode,
                    content: Some(content),
                    ..
                }) => write(path, content, *mode),
                Some(Was::File { content: None, .. } | Was::Other) | None => Ok(()),
            };
        }
    }
}

/// Returns whether a file of a repository that was just made has git run something.
fn runs_something(path: &Path, was: &Was) -> bool {
    let is_hook = path
        .parent()
        .is_some_and(|folder| folder.ends_with("hooks"));
    match was {
        Was::Folder => false,
        Was::File { content, .. }
            if path.ends_with("config") || path.ends_with("config.worktree") =>
        {
            !content
                .as_ref()
                .is_some_and(|content| git_config::only_describes(content))
        }
        Was::File { .. } if is_hook => path.extension().is_none_or(|ending| ending != "sample"),
        Was::File { .. } => path.ends_with("info/attributes") || path.ends_with("commondir"),
        Was::Link(_) | Was::Other => true,
    }
}

fn was(path: &Path, data: &Metadata, known: Option<&Was>) -> Was {
    if data.is_dir() {
        return Was::Folder;
    }
    if data.is_symlink() {
        return fs::read_link(path).map_or(Was::Other, Was::Link);
    }
    if !data.is_file() {
        return Was::Other;
    }
    let now = Stamp::of(data);
    if let Some(Was::File { stamp, .. }) = known
        && *stamp == now
    {
        return known.cloned().unwrap_or(Was::Other);
    }
    let content = (data.len() <= FILE_BYTES_MAX).then(|| fs::read(path).ok());
    Was::File {
        stamp: now,
        mode: data.mode() & 0o7777,
        content: content.flatten().map(Arc::from),
    }
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Replaces a file all at once.
fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    if path.symlink_metadata().is_ok_and(|data| data.is_dir()) {
        remove(path)?;
    }
    hermes_os::replace(path, content, Access::Mode(mode), Durability::Unsynced)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            place.write(".git/config", "[core]\n\tbare = false\n");
            place.write(".git/hooks/pre-commit.sample", "exit 0\n");
            place.write("AGENTS.md", "be kind\n");
            place
        }

        fn root(&self) -> PathBuf {
            self.0.path().canonicalize().unwrap()
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn look(&self) -> Snapshot {
            Snapshot::of(&Root::Project(self.root()), None)
        }

        /// What is there, to be compared.
        fn all(&self) -> BTreeMap<PathBuf, Was> {
            self.look().entries
        }
    }

    #[track_caller]
    fn is_put_back(change: impl Fn(&Place)) {
        let place = Place::new();
        let before = place.look();
        change(&place);
        let now = Snapshot::of(&Root::Project(place.root()), Some(&before));
        let changed = before.changes(&now);
        assert!(!changed.is_empty());
        before.put_back(&changed, &now);
        assert_eq!(place.all(), before.entries);
    }

    #[test]
    fn whatever_is_done_to_guarded_files_is_undone() {
        is_put_back(|place| place.write(".git/hooks/pre-commit", "evil"));
        is_put_back(|place| place.write(".git/config", "[core]\n\tfsmonitor = evil\n"));
        is_put_back(|place| place.write("AGENTS.md", "evil"));
        is_put_back(|place| place.write(".github/workflows/x.yml", "evil"));
        is_put_back(|place| place.write(".vscode/tasks.json", "evil"));
        is_put_back(|place| place.write(".envrc", "evil"));
        is_put_back(|place| fs::remove_file(place.root().join("AGENTS.md")).unwrap());
        is_put_back(|place| {
            let hooks = place.root().join(".git/hooks");
            fs::remove_dir_all(&hooks).unwrap();
            symlink("/tmp", &hooks).unwrap();
        });
        is_put_back(|place| {
            fs::remove_file(place.root().join("AGENTS.md")).unwrap();
            symlink("/etc/hosts", place.root().join("AGENTS.md")).unwrap();
        });
        is_put_back(|place| {
            let hooks = place.root().join(".git/hooks/pre-commit.sample");
            fs::set_permissions(hooks, Permissions::from_mode(0o755)).unwrap();
        });
        is_put_back(|place| {
            fs::remove_file(place.root().join("AGENTS.md")).unwrap();
            place.write("AGENTS.md/x", "evil");
        });
    }

    #[test]
    fn a_new_repository_is_let_be_and_one_that_comes_back_is_not() {
        let place = Place::new();
        let git = place.root().join(".git");
        let before = place.look();
        fs::remove_dir_all(&git).unwrap();
        let gone = place.look();
        assert!(before.changes(&gone).is_empty());
        let before = before.followed_by(gone);
        place.write(".git/config", "[core]\n\tfsmonitor = evil\n");
        assert!(!before.changes(&place.look()).is_empty());

        fs::remove_dir_all(&git).unwrap();
        let none = place.look();
        place.write(".git/config", "[core]\n\tbare = false\n");
        place.write(".git/hooks/pre-commit.sample", "exit 0\n");
        assert!(none.changes(&place.look()).is_empty());
        for (name, text) in [
            (".git/hooks/pre-commit", "evil"),
            (".git/config", "[core]\n\tfsmonitor = evil\n"),
            (".git/info/attributes", "* filter=evil\n"),
        ] {
            place.write(name, text);
            let changed = none.changes(&place.look());
            assert!(changed.contains(&place.root().join(name)), "{name}");
        }
    }

    #[test]
    fn what_agents_are_told_in_folders_is_kept_and_what_a_clone_brings_is_let_be() {
        let change = |name: &'static str| move |place: &Place| place.write(name, "evil");
        is_put_back(change("sub/AGENTS.md"));
        is_put_back(change("skills/k/SKILL.md"));
        let place = Place::new();
        place.write("inner/.git/config", "[core]\n");
        let before = place.look();
        place.write("inner/.git/config", "[core]\n\tfsmonitor = evil\n");
        let inner = place.root().join("inner/.git/config");
        assert_eq!(before.changes(&place.look()), [inner]);

        let place = Place::new();
        let before = place.look();
        place.write(
            "clone/.git/config",
            "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n",
        );
        place.write("clone/AGENTS.md", "theirs");
        assert_eq!(before.changes(&place.look()), [] as [PathBuf; 0]);
    }

    #[test]
    fn what_somebody_agreed_to_is_taken_over() {
        let place = Place::new();
        let before = place.look();
        place.write("AGENTS.md", "agreed");
        place.write(".envrc", "evil");
        let now = place.look();
        let agents = place.root().join("AGENTS.md");
        let changed = before.with(&now, &agents).changes(&now);
        assert_eq!(changed, [place.root().join(".envrc")]);
    }
}
