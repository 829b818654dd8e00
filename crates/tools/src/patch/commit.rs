//! Writes a plan: all of its files, or none.

use std::io;
use std::path::PathBuf;

use super::plan::Planned;
use crate::files::Staged;

/// Writes every changed file. On an error those already written are put back; the answer says so, and what could not be.
pub(super) fn commit(files: &[Planned]) -> Result<(), String> {
    let changed: Vec<&Planned> = files.iter().filter(|file| file.is_changed()).collect();
    for file in &changed {
        check_unchanged(file)?;
    }
    let mut made = Vec::new();
    let done = write_all(&changed, &mut made);
    if let (Err(_), Some(file)) = (&done, changed.first()) {
        file.target.files().remove_folders(&made);
    }
    done
}

fn write_all(changed: &[&Planned], made: &mut Vec<PathBuf>) -> Result<(), String> {
    // All content is on the disk before the first file is replaced: a full disk stops us here.
    let mut staged = Vec::new();
    for file in changed.iter().filter(|file| file.after.is_some()) {
        let (content, created) = stage(file)?;
        made.extend(created);
        staged.push((*file, content));
    }
    let mut written: Vec<&Planned> = Vec::new();
    for (file, staged) in staged {
        if let Err(error) = staged.put() {
            return Err(undo(&written, file, &error));
        }
        written.push(file);
    }
    for file in changed.iter().filter(|file| file.after.is_none()) {
        if let Err(error) = file.target.remove() {
            return Err(undo(&written, file, &error));
        }
        written.push(file);
    }
    Ok(())
}

fn stage(file: &Planned) -> Result<(Box<dyn Staged>, Vec<PathBuf>), String> {
    let content = file.after.as_deref().unwrap_or_default();
    let before = file.before.as_ref().map(|before| &before.meta);
    let origin = file.origin.as_ref();
    let model = before.or(origin.and_then(|origin| origin.meta.as_ref()));
    let staged = file.target.stage(content, model);
    staged.map_err(|error| file.target.explain(&error))
}

/// Refuses to write over what another program wrote while the patch was worked out.
fn check_unchanged(file: &Planned) -> Result<(), String> {
    let now = file.target.existing(0)?;
    let now = now.as_ref().map(|existing| existing.meta.stamp);
    let before = file.before.as_ref().map(|before| before.meta.stamp);
    if now == before {
        Ok(())
    } else {
        Err(format!(
            "nothing was written: `{}` was changed by another program just now; read it again",
            file.name
        ))
    }
}

/// Puts files back as they were, last first, and says how that went.
fn undo(written: &[&Planned], failed: &Planned, error: &io::Error) -> String {
    let mut lost = Vec::new();
    for file in written.iter().rev() {
        let undone = match &file.before {
            Some(before) => file
                .target
                .write(&before.bytes, Some(&before.meta))
                .map(|_| ()),
            None => file.target.remove(),
        };
        if let Err(error) = undone {
            lost.push(format!("`{}` ({error})", file.name));
        }
    }
    let reason = failed.target.explain(error);
    match lost.as_slice() {
        [] => format!("{reason}; all other files of the patch are as they were before too"),
        lost => format!(
            "{reason}; these files have the new content and could not be put back: {}",
            lost.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::files::Files;
    use crate::files::here::Here;
    use crate::guard::Guard;
    use crate::patch::plan::Plan;
    use crate::target::Target;

    fn planned(path: &Path, after: Option<&str>) -> Planned {
        let name = path.display().to_string();
        let files: Arc<dyn Files> = Arc::new(Here::new(None, Guard::default()));
        let target = Target::find(&files, path, &Guard::default().pinned()).unwrap();
        let mut plan = Plan::read(&[(name, target)]).unwrap();
        let mut file = plan.files.remove(0);
        file.after = after.map(|after| after.as_bytes().to_vec());
        file
    }

    #[test]
    fn a_failed_write_puts_everything_back() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        std::fs::write(root.join("a"), "old a").unwrap();
        std::fs::write(root.join("d"), "old d").unwrap();
        let files = [
            planned(&root.join("a"), Some("new a")),
            planned(&root.join("new/b"), Some("new b")),
            planned(&root.join("c"), Some("new c")),
            planned(&root.join("d"), None),
        ];
        // Its check passes, but nothing can be renamed over a folder: it comes into being in between.
        let changed: Vec<&Planned> = files.iter().collect();
        std::fs::create_dir_all(root.join("c/inside")).unwrap();
        let error = write_all(&changed, &mut Vec::new()).unwrap_err();
        assert!(error.contains("as they were before too"), "{error}");
        assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "old a");
        assert_eq!(std::fs::read_to_string(root.join("d")).unwrap(), "old d");
        assert!(!root.join("new/b").exists());
        let left: Vec<_> = root.join("new").read_dir().unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn what_another_program_wrote_meanwhile_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let files = [
            planned(&path, Some("new")),
            planned(&place.path().join("b"), Some("new")),
        ];
        std::fs::write(&path, "theirs").unwrap();
        let error = commit(&files).unwrap_err();
        assert!(error.contains("nothing was written"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
        assert!(!place.path().join("b").exists());
    }
}
