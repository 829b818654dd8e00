//! `skill_manage`: writes, changes and archives skills. What is not the agent's own becomes a proposal.

use std::sync::{Arc, LazyLock};

use hermes_core::fuzzy::{self, Occurrences, ReplaceError};
use hermes_core::text::shorten;
use hermes_core::{
    Author, Effect, Exposure, Parallel, Plan, PlanContext, SessionId, Subagents, Tool, ToolOutput,
    ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{SkillPorts, answer, exposure, parse};
use crate::skills::change::{content, found, normal_path, place};
use crate::skills::folders::SKILL_FILE;
use crate::skills::{By, Edit, Library, Made, SkillError, blocking, document};

pub(super) const NAME: &str = "skill_manage";
/// Of a reason in the log.
const REASON_CHARS_MAX: usize = 300;

// A subagent sees a part of the work: what is worth keeping its parent decides.
static EXPOSURE: Exposure = exposure(Subagents::None);

pub(super) fn make(ports: &SkillPorts) -> Arc<dyn Tool> {
    Arc::new(SkillManage {
        ports: ports.clone(),
    })
}

/// One for all conversations.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    let text = |description: &str| json!({"type": "string", "description": description});
    ToolSpec {
        name: NAME.to_owned(),
        description: "Write and mend skills. create and edit take the whole SKILL.md in `content`: front matter \
                      between `---` lines with `name` and `description` (what it does and when to use it), then the \
                      steps. patch replaces `old_string` by `new_string`. write_file and remove_file are for files \
                      under references/, templates/, scripts/, assets/. delete archives. What a person wrote is not \
                      changed: the change is proposed to them."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["create", "edit", "patch", "delete", "write_file", "remove_file"],
                },
                "name": text("Lower case, digits and hyphens"),
                "content": text("The whole SKILL.md"),
                "category": text("For create: a folder to put it in"),
                "old_string": text("Text that occurs once"),
                "new_string": text("What stands there instead"),
                "replace_all": {"type": "boolean", "description": "Replace every occurrence"},
                "file_path": text("A file of the skill; patch takes SKILL.md without it"),
                "file_content": text("For write_file"),
                "absorbed_into": text("For delete: the skill that covers it now"),
                "reason": text("Why, in a line: what misled or was learned"),
            },
            "required": ["action", "name"],
        }),
    }
}

struct SkillManage {
    ports: SkillPorts,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ActionName {
    Create,
    Edit,
    Patch,
    Delete,
    WriteFile,
    RemoveFile,
}

#[derive(Deserialize)]
struct Arguments {
    action: ActionName,
    name: String,
    content: Option<String>,
    category: Option<String>,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    file_path: Option<String>,
    file_content: Option<String>,
    absorbed_into: Option<String>,
    reason: Option<String>,
}

impl Arguments {
    /// Whether it mends a skill and does not say why.
    fn lacks_evidence(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        matches!(self.action, ActionName::Edit | ActionName::Patch) && reason.trim().is_empty()
    }
}

/// Whether a call changes what a skill says.
pub(in crate::skills) fn mends(arguments: &Value) -> bool {
    let action = ActionName::deserialize(&arguments["action"]);
    matches!(action, Ok(ActionName::Edit | ActionName::Patch))
}

impl Tool for SkillManage {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = parse::<Arguments>(NAME, arguments);
        Plan::doing(Effect::Effect, Parallel::Never, move |cx| {
            Box::pin(async move {
                let done = self.manage(arguments?, &cx.session).await;
                let done = done.map_err(|error| answer(&error))?;
                Ok(ToolOutput::text(done.to_string()))
            })
        })
    }
}

impl SkillManage {
    async fn manage(&self, arguments: Arguments, session: &SessionId) -> Result<Value, SkillError> {
        let skills = &self.ports.skills;
        skills.settle_changes().await?;
        if self.ports.author == Author::Review && arguments.lacks_evidence() {
            return Err(
                SkillError::asked("a review does not change a skill without evidence")
                    .hint("say in `reason` what misled, and where in the conversation that showed"),
            );
        }
        let library = skills.library().await;
        let planned = blocking(move || edit(&library, arguments)).await?;
        let summary = planned.summary.clone();
        let by = By {
            author: self.ports.author,
            session: Some(session.clone()),
        };
        Ok(match skills.change(planned, &by).await? {
            Made::Done { change, file } => json!({
                "success": true,
                "message": summary,
                "path": file.display().to_string(),
                "change": change.0,
            }),
            Made::Proposed { number, why } => json!({
                "success": true,
                "proposed": number,
                "summary": summary,
                "see": "hermes skills proposals",
                "message": format!(
                    "not changed: {why}. It waits for the user as proposal {number}, who decides with `/skills accept \
                     {number}` or `/skills reject {number}`. Go on without it."
                ),
            }),
        })
    }
}

/// What the arguments mean for one file.
fn edit(library: &Library, arguments: Arguments) -> Result<Edit, SkillError> {
    let reason = arguments
        .reason
        .as_deref()
        .map(str::trim)
        .unwrap_or_default();
    let reason = match reason {
        "" => String::new(),
        reason => format!(" ({})", shorten(reason, REASON_CHARS_MAX)),
    };
    let mut edit = match arguments.action {
        ActionName::Create => create(arguments)?,
        ActionName::Edit => rewrite(library, arguments)?,
        ActionName::Patch => patch(library, arguments)?,
        ActionName::Delete => delete(library, arguments)?,
        ActionName::WriteFile => write_file(library, arguments)?,
        ActionName::RemoveFile => remove_file(library, arguments)?,
    };
    edit.summary.push_str(&reason);
    Ok(edit)
}

fn create(arguments: Arguments) -> Result<Edit, SkillError> {
    let name = arguments.name.trim().to_owned();
    if let Some(problem) = document::name_problem(&name) {
        return Err(SkillError::asked(problem));
    }
    let text = wanted(arguments.content, "content")?;
    Ok(Edit {
        after: Some(as_written(&name, &text)?),
        before: None,
        category: arguments
            .category
            .filter(|category| !category.trim().is_empty()),
        path: SKILL_FILE.to_owned(),
        summary: format!("wrote the skill `{name}`"),
        skill: name,
    })
}

fn rewrite(library: &Library, arguments: Arguments) -> Result<Edit, SkillError> {
    let skill = found(library, &arguments.name)?;
    let text = wanted(arguments.content, "content")?;
    Ok(Edit {
        before: content(&skill.file)?,
        after: Some(as_written(&skill.name, &text)?),
        ..change_of(&skill.name, SKILL_FILE, "rewrote")
    })
}

fn patch(library: &Library, arguments: Arguments) -> Result<Edit, SkillError> {
    let skill = found(library, &arguments.name)?;
    let path = arguments
        .file_path
        .as_deref()
        .map(str::trim)
        .unwrap_or_default();
    let path = match path {
        "" => SKILL_FILE.to_owned(),
        path => normal_path(path)?,
    };
    let path = path.as_str();
    let file = place(library, &skill.name, path)?;
    let before = content(&file)?.ok_or_else(|| no_file(&skill.name, path))?;
    let old = wanted(arguments.old_string, "old_string")?;
    let new = arguments.new_string.unwrap_or_default();
    let after = replaced(&before, &old, &new, arguments.replace_all)?;
    if path == SKILL_FILE && document::check(&skill.name, &before).is_ok() {
        document::check(&skill.name, &after).map_err(|why| SkillError::Invalid {
            name: skill.name.clone(),
            why,
        })?;
    }
    Ok(Edit {
        before: Some(before),
        after: Some(after),
        ..change_of(&skill.name, path, "patched")
    })
}

fn delete(library: &Library, arguments: Arguments) -> Result<Edit, SkillError> {
    let skill = found(library, &arguments.name)?;
    let mut edit = Edit {
        before: content(&skill.file)?,
        ..change_of(&skill.name, SKILL_FILE, "archived")
    };
    let into = arguments
        .absorbed_into
        .as_deref()
        .map(str::trim)
        .unwrap_or_default();
    if !into.is_empty() {
        let into = found(library, into)?;
        if into.name == skill.name {
            return Err(SkillError::asked("a skill cannot be absorbed into itself"));
        }
        edit.summary
            .push_str(&format!(", covered by `{}`", into.name));
    }
    Ok(edit)
}

fn write_file(library: &Library, arguments: Arguments) -> Result<Edit, SkillError> {
    let skill = found(library, &arguments.name)?;
    let path = normal_path(wanted(arguments.file_path, "file_path")?.trim())?;
    let after = arguments.file_content.or(arguments.content);
    Ok(Edit {
        before: content(&place(library, &skill.name, &path)?)?,
        after: Some(wanted(after, "file_content")?),
        ..change_of(&skill.name, &path, "wrote")
    })
}

fn remove_file(library: &Library, arguments: Arguments) -> Result<Edit, SkillError> {
    let skill = found(library, &arguments.name)?;
    let path = normal_path(wanted(arguments.file_path, "file_path")?.trim())?;
    if path == SKILL_FILE {
        return Err(SkillError::asked("SKILL.md is the skill itself").hint("delete archives it"));
    }
    let before = content(&place(library, &skill.name, &path)?)?;
    if before.is_none() {
        return Err(no_file(&skill.name, &path));
    }
    Ok(Edit {
        before,
        ..change_of(&skill.name, &path, "removed")
    })
}

fn change_of(skill: &str, path: &str, verb: &str) -> Edit {
    let what = match path {
        SKILL_FILE => format!("the skill `{skill}`"),
        path => format!("`{path}` of the skill `{skill}`"),
    };
    Edit {
        skill: skill.to_owned(),
        category: None,
        path: path.to_owned(),
        before: None,
        after: None,
        summary: format!("{verb} {what}"),
    }
}

fn wanted(argument: Option<String>, name: &str) -> Result<String, SkillError> {
    let given = argument.filter(|text| !text.trim().is_empty());
    given.ok_or_else(|| SkillError::asked(format!("this action needs `{name}`")))
}

fn no_file(skill: &str, path: &str) -> SkillError {
    SkillError::asked(format!(
        "the skill `{skill}` has no file `{}`",
        shorten(path, 200)
    ))
}

fn as_written(name: &str, text: &str) -> Result<String, SkillError> {
    document::written(name, text).map_err(|why| SkillError::Invalid {
        name: name.to_owned(),
        why,
    })
}

/// Replaces a text, also where it is not quoted to the letter; where it is not found, says what stands there.
fn replaced(text: &str, old: &str, new: &str, all: bool) -> Result<String, SkillError> {
    let occurrences = if all {
        Occurrences::All
    } else {
        Occurrences::TheOnlyOne
    };
    let replaced = fuzzy::replace(text, old, new, occurrences);
    replaced
        .map(|replaced| replaced.text)
        .map_err(|error| match error {
            ReplaceError::EmptyOld => SkillError::asked("this action needs `old_string`"),
            ReplaceError::OldEqualsNew => {
                SkillError::asked("`old_string` and `new_string` are the same")
            }
            ReplaceError::NotFound => not_there(text, old),
            ReplaceError::Ambiguous { lines } => several(&lines),
            ReplaceError::EscapeDrift => SkillError::asked(
                "`old_string` and `new_string` have a backslash before quotes, and the skill has none",
            )
            .hint("leave the backslashes out"),
        })
}

fn several(lines: &[usize]) -> SkillError {
    let times = lines.len();
    let lines: Vec<String> = lines.iter().take(10).map(ToString::to_string).collect();
    SkillError::asked(format!(
        "`old_string` occurs {times} times (lines {})",
        lines.join(", ")
    ))
    .hint("include a neighbouring line so that it occurs once, or set replace_all")
}

fn not_there(text: &str, old: &str) -> SkillError {
    let error = SkillError::asked("`old_string` does not occur");
    match fuzzy::nearest_lines(text, old).first() {
        Some(near) => error.hint(format!(
            "line {} is like it: `{}`; quote what stands there",
            near.number,
            shorten(near.line, 200)
        )),
        None => error.hint("load the skill and quote what it says now"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_wants_its_text_once_and_says_where_it_is() {
        let text = "one\ntwo\n  three is here\ntwo\n";
        assert_eq!(
            replaced(text, "one", "1", false).unwrap(),
            text.replace("one", "1")
        );
        assert_eq!(
            replaced(text, "two", "2", true).unwrap(),
            text.replace("two", "2")
        );
        let twice = replaced(text, "two", "2", false).unwrap_err().told();
        assert!(twice.contains("2 times (lines 2, 4)"), "{twice}");
        let near = replaced(text, "Three was here", "x", false)
            .unwrap_err()
            .told();
        assert!(near.contains("three is here`"), "{near}");
        assert!(replaced(text, "gone", "x", false).is_err());
        assert!(replaced(text, "one", "one", false).is_err());
    }

    #[test]
    fn a_patch_need_not_be_quoted_to_the_letter() {
        let text = "Steps:\n    run  the build\n    then \u{201c}ship\u{201d} it\n";
        let after = replaced(text, "run the build\nthen \"ship\" it", "run all", false).unwrap();
        assert_eq!(after, "Steps:\n    run all\n");
    }
}
