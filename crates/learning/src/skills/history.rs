//! What skills were before: every change is in the learning log, and can be taken back.

use std::time::Duration;

use hermes_core::{Author, ChangeFilter, ChangeId, LearnedChange, Subject};
use similar::TextDiff;

use super::change::{Edit, Made};
use super::hub::Swap;
use super::{By, SkillError, Skills};

/// After this time a diff is no longer made as short as possible.
const DIFF_TIME_MAX: Duration = Duration::from_millis(500);

/// The difference between two contents of a file of a skill, for people; `None` stands for no file.
pub fn diff(skill: &str, path: &str, before: Option<&str>, after: Option<&str>) -> String {
    let header = |side: &str, text: Option<&str>| match text {
        Some(_) => format!("{side}/{skill}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let diff = TextDiff::configure()
        .timeout(DIFF_TIME_MAX)
        .diff_lines(before.unwrap_or_default(), after.unwrap_or_default());
    diff.unified_diff()
        .header(&header("a", before), &header("b", after))
        .to_string()
}

impl Skills {
    /// The changes of a skill, the newest first; of all skills without a name.
    pub async fn history(&self, name: Option<&str>) -> Result<Vec<LearnedChange>, SkillError> {
        let filter = ChangeFilter {
            kind: Some("skill".to_owned()),
            ..ChangeFilter::default()
        };
        let mut changes = self.log()?.changes(filter).await?;
        changes.retain(|change| match &change.change.subject {
            Subject::Skill { name: of, .. } => name.is_none_or(|name| of == name),
            _ => false,
        });
        Ok(changes)
    }

    /// Takes back the last change of a skill that is not taken back.
    pub async fn undo_last(&self, name: &str) -> Result<(LearnedChange, Made), SkillError> {
        let changes = self.history(Some(name)).await?;
        let last = changes.into_iter().find(|change| {
            change.is_finished && change.undone_by.is_none() && change.change.undoes.is_none()
        });
        let last = last.ok_or_else(|| {
            SkillError::asked(format!(
                "no change of the skill `{name}` is left to take back"
            ))
            .hint("`hermes skills history` lists all")
        })?;
        self.undo(last.id).await
    }

    /// Takes one change back, if nothing was changed there since.
    pub async fn undo(&self, id: ChangeId) -> Result<(LearnedChange, Made), SkillError> {
        let found = self.log()?.change(id).await?;
        let change = found.ok_or_else(|| SkillError::asked(format!("there is no change {id}")))?;
        let Subject::Skill { name, path } = &change.change.subject else {
            return Err(SkillError::asked(format!("change {id} is not of a skill")));
        };
        if let Some(by) = change.undone_by {
            return Err(SkillError::asked(format!(
                "change {id} was taken back already, by change {by}"
            )));
        }
        let _lock = self.hold().await?;
        if let Some(swap) = Swap::of(&self.sources.home, &change)? {
            self.settle().await?;
            let made = self.swap_back(&change, swap).await?;
            return Ok((change, made));
        }
        if change.change.author == Author::Hub {
            return Err(of_older_version(name));
        }
        let edit = Edit {
            skill: name.clone(),
            category: None,
            path: path.clone(),
            before: change.change.after.clone(),
            after: change.change.before.clone(),
            summary: format!("takes back: {}", change.change.summary),
        };
        let file = self.checked(&edit).await?;
        let made = self.make(edit, &By::PERSON, file, Some(id)).await?;
        Ok((change, made))
    }
}

/// A change of the hub of which nobody wrote down which files it replaced.
fn of_older_version(name: &str) -> SkillError {
    SkillError::asked("this change is of a version that did not keep what it takes to take it back")
        .hint(format!(
            "`hermes skills uninstall {name}` takes the skill away; what was there before is in `skills/.archive`"
        ))
}
