//! `skill_manage`: writes, changes and archives skills. What is not the agent's own becomes a proposal.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use hermes_core::fuzzy::{self, Occurrences, ReplaceError};
use hermes_core::text::shorten;
use hermes_core::{
    Action, Author, BoxFuture, Effect, Exposure, Parallel, Plan, PlanContext, Preview,
    PreviewContext, Review, SessionId, StoreError, Subagents, Tool, ToolContext, ToolError,
    ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{SkillPorts, answer, exposure, parse};
use crate::grounding::{Doubt, Grounding, Objection};
use crate::skills::change::{check_text, content, found, normal_path, place};
use crate::skills::folders::SKILL_FILE;
use crate::skills::{By, Edit, Library, Made, SkillError, blocking, diff, document};

pub(super) const NAME: &str = "skill_manage";
/// What a yes for the session covers where a skill has somebody else's words.
const COVERS_OTHERS: &str = "skills in the words of others";
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

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ActionName {
    Create,
    Edit,
    Patch,
    Delete,
    WriteFile,
    RemoveFile,
}

#[derive(Clone, Deserialize)]
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
        let call = Call {
            ports: self.ports.clone(),
            arguments: parse::<Arguments>(NAME, arguments).map_err(|error| error.to_string()),
            doubt: OnceCell::new(),
        };
        Plan::new(Effect::Effect, Parallel::Never, call)
    }
}

/// Who wants a change, and in which conversation.
struct Asked<'a> {
    session: &'a SessionId,
    cwd: &'a Path,
}

struct Call {
    ports: SkillPorts,
    arguments: Result<Arguments, String>,
    /// Found out once.
    doubt: OnceCell<Option<Doubt>>,
}

impl Action for Call {
    fn review<'a>(
        &'a self,
        cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Review>, ToolError>> {
        Box::pin(async move {
            // What cannot be planned is refused when it is made.
            let Ok(edit) = self.edit().await else {
                return Ok(None);
            };
            let by = self.by(cx.session);
            if self.ports.skills.is_proposed(&edit, &by).await {
                return Ok(None);
            }
            let asked = Asked {
                session: cx.session,
                cwd: cx.cwd,
            };
            let Some(Doubt::Strange(Objection { words, source })) =
                self.doubt(&edit, asked).await?
            else {
                return Ok(None);
            };
            Ok(Some(Review {
                reason: format!(
                    "writes into a skill, for all later conversations, what {source} says and you did not say (“{words}”)"
                ),
                what: format!("{}: {}", edit.skill, edit.summary),
                covers: vec![COVERS_OTHERS.to_owned()],
                is_for_person: true,
                may_wait: true,
            }))
        })
    }

    fn preview<'a>(
        &'a self,
        _cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(async move {
            let edit = self.edit().await.map_err(|error| answer(&error))?;
            let (before, after) = (edit.before.as_deref(), edit.after.as_deref());
            Ok(Some(Preview {
                diff: diff(&edit.skill, &edit.path, before, after),
                is_whole: true,
                basis: basis(&edit),
            }))
        })
    }

    fn run(self: Box<Self>, cx: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(ToolOutput::text(self.manage(cx).await?.to_string())) })
    }
}

impl Call {
    fn by(&self, session: &SessionId) -> By {
        By {
            author: self.ports.author,
            session: Some(session.clone()),
        }
    }

    /// What the call would change, as things are now.
    async fn edit(&self) -> Result<Edit, SkillError> {
        let arguments = self.arguments.clone().map_err(SkillError::asked)?;
        let skills = &self.ports.skills;
        skills.settle_changes().await?;
        let library = skills.library().await;
        let edit = blocking(move || edit(&library, arguments)).await?;
        // What is too long is not looked at any further.
        check_text(&edit)?;
        Ok(edit)
    }

    async fn manage(&self, cx: &ToolContext) -> Result<Value, ToolError> {
        let arguments = self.arguments.as_ref();
        let arguments = arguments.map_err(|why| ToolError::Answer(why.clone()))?;
        let refused = |error: SkillError| answer(&error);
        if self.ports.author == Author::Review && arguments.lacks_evidence() {
            let error = SkillError::asked("a review does not change a skill without evidence")
                .hint("say in `reason` what misled, and where in the conversation that showed");
            return Err(refused(error));
        }
        let edit = self.edit().await.map_err(refused)?;
        let agreement = &cx.agreement;
        if agreement
            .basis
            .as_ref()
            .is_some_and(|seen| *seen != basis(&edit))
        {
            let error = SkillError::asked(format!(
                "`{}` was changed since the user looked",
                edit.skill
            ));
            return Err(refused(
                error.hint("look at it again, and make the change anew"),
            ));
        }
        let is_agreed = agreement.covers.iter().any(|name| name == COVERS_OTHERS);
        let asked = Asked {
            session: &cx.session,
            cwd: &cx.cwd,
        };
        let doubt = if is_agreed {
            None
        } else {
            self.doubt(&edit, asked).await?
        };
        let (summary, by) = (edit.summary.clone(), self.by(&cx.session));
        let skills = &self.ports.skills;
        let made = match doubt {
            Some(Doubt::Strange(objection)) if by.author == Author::Review => {
                return Err(ToolError::Answer(objection.to_string()));
            }
            Some(doubt) => skills.change_if_agreed(edit, &by, doubt.why()).await,
            None => skills.change(edit, &by).await,
        };
        Ok(told(made.map_err(refused)?, &summary))
    }

    async fn doubt(&self, edit: &Edit, asked: Asked<'_>) -> Result<Option<Doubt>, ToolError> {
        let find = || self.find_doubt(edit, &asked);
        let doubt = self.doubt.get_or_try_init(find).await;
        let doubt = doubt.map_err(|error| ToolError::Answer(format!("not done: {error}")))?;
        Ok(doubt.clone())
    }

    /// Looks at whose words a change would write, and what it would take away. What the file says already is not new.
    async fn find_doubt(
        &self,
        edit: &Edit,
        asked: &Asked<'_>,
    ) -> Result<Option<Doubt>, StoreError> {
        let conversations = &self.ports.conversations;
        let before = edit.before.as_deref().unwrap_or_default();
        let after = edit.after.as_deref().unwrap_or_default();
        let put = lines_only_in(after, before);
        // Whoever takes a whole file away names it, and does not say it.
        let gone = match &edit.after {
            Some(_) => lines_only_in(before, after),
            None if edit.path == SKILL_FILE => edit.skill.clone(),
            None => edit.path.clone(),
        };
        let reason = self.arguments.as_ref().ok();
        let reason = reason.and_then(|arguments| arguments.reason.as_deref());
        // No more of it is kept.
        let reason = shorten(reason.unwrap_or_default().trim(), REASON_CHARS_MAX);
        let is_review = self.ports.author == Author::Review;
        let texts = [put.as_str(), gone.as_str(), after, reason.as_str()];
        let grounding = Grounding::of(texts, None).knowing(before);
        let grounding = if is_review {
            grounding
        } else {
            grounding.working_in(asked.cwd)
        };
        let heard = conversations.hear(asked.session, grounding).await?;
        let objection = heard.check(&put).and_then(|()| heard.check_reason(&reason));
        if let Err(objection) = objection {
            return Ok(Some(Doubt::Strange(objection)));
        }
        let is_loss = is_review && !heard.allows_loss(&gone, &put, after);
        Ok(is_loss.then_some(Doubt::Loss))
    }
}

/// Tells one change from every other.
fn basis(edit: &Edit) -> String {
    let (before, after) = (edit.before.as_deref(), edit.after.as_deref());
    crate::notes::basis_of(before.unwrap_or_default(), after.unwrap_or_default())
}

fn lines_only_in(text: &str, other: &str) -> String {
    let known: HashSet<&str> = other.lines().map(str::trim).collect();
    let new = text.lines().filter(|line| !known.contains(line.trim()));
    new.collect::<Vec<_>>().join("\n")
}

/// What became of a change, as the model reads it.
fn told(made: Made, summary: &str) -> Value {
    match made {
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
