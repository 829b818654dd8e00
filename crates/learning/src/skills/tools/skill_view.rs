//! `skill_view`: the text of a skill with the files beside it, or one of those files.

use std::fs;
use std::path::{Component, Path};
use std::sync::{Arc, LazyLock};

use hermes_core::{
    Effect, Exposure, Parallel, Plan, PlanContext, SessionId, Subagents, Tool, ToolError,
    ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{SkillPorts, Standing, answer, exposure, parse};
use crate::skills::change::{FILE_FOLDERS, found};
use crate::skills::{Happened, Skill, SkillError, blocking, folders};

pub(super) const NAME: &str = "skill_view";

static EXPOSURE: Exposure = exposure(Subagents::All);

pub(super) fn make(ports: &SkillPorts) -> Arc<dyn Tool> {
    Arc::new(SkillView {
        ports: ports.clone(),
    })
}

/// One for all conversations.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Load a skill: its full text and the files beside it. With `file_path` one of those files."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Name, or category/name"},
                "file_path": {"type": "string", "description": "A file of the skill, as listed in linked_files"},
            },
            "required": ["name"],
        }),
    }
}

struct SkillView {
    ports: SkillPorts,
}

#[derive(Deserialize)]
struct Arguments {
    name: String,
    #[serde(default)]
    file_path: String,
}

impl Tool for SkillView {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = parse::<Arguments>(NAME, arguments);
        // Commands in a skill may do more than read.
        let (effect, parallel) = match self.ports.skills.sources.shell {
            Some(_) => (Effect::Effect, Parallel::Never),
            None => (Effect::Read, Parallel::Always),
        };
        Plan::doing(effect, parallel, move |cx| {
            Box::pin(async move {
                let viewed = self.view(arguments?, &cx.session, &cx.cwd).await?;
                Ok(ToolOutput::text(viewed.to_string()))
            })
        })
    }
}

impl SkillView {
    async fn view(
        &self,
        arguments: Arguments,
        session: &SessionId,
        cwd: &Path,
    ) -> Result<Value, ToolError> {
        let skills = &self.ports.skills;
        let library = skills.library().await;
        let skill = found(&library, &arguments.name).map_err(|error| answer(&error))?;
        let viewed = match arguments.file_path.trim() {
            "" | folders::SKILL_FILE => self.whole(skill, session, cwd).await,
            path => {
                let (skill, path) = (skill.clone(), path.to_owned());
                let read = blocking(move || file(&skill, &path)).await;
                read.map_err(|error| answer(&error))?
            }
        };
        let viewed_skill = std::slice::from_ref(&skill.name);
        skills.count(viewed_skill, Happened::Viewed).await;
        Ok(viewed)
    }

    async fn whole(&self, skill: &Skill, session: &SessionId, cwd: &Path) -> Value {
        let mut sources = self.ports.skills.sources.clone();
        if let Some(inline) = &mut sources.shell {
            inline.cwd = cwd.to_owned();
        }
        let body = sources.body(skill, Some(session)).await;
        let mut told = Map::new();
        told.insert("success".to_owned(), true.into());
        told.insert("name".to_owned(), skill.name.clone().into());
        told.insert("description".to_owned(), skill.description.clone().into());
        told.insert("path".to_owned(), text_of(&skill.file).into());
        told.insert("skill_dir".to_owned(), text_of(&skill.folder).into());
        let mut put = |key: &str, value: Value| {
            if value.as_array().is_none_or(|items| !items.is_empty()) {
                told.insert(key.to_owned(), value);
            }
        };
        put("tags", json!(skill.tags));
        put("related_skills", json!(skill.related));
        if let Some(files) = linked(skill) {
            put("linked_files", files);
        }
        if !skill.variables.is_empty() {
            let variables = skill.variables.iter().map(|variable| {
                json!({"name": variable.name, "help": variable.help, "optional": variable.is_optional})
            });
            put("required_environment_variables", variables.collect());
        }
        put("required_credential_files", json!(skill.credential_files));
        if let Some(setup) = self.setup(skill) {
            let status = if setup.is_empty() {
                "available"
            } else {
                "setup_needed"
            };
            put("readiness_status", status.into());
            if !setup.is_empty() {
                put("setup_note", setup.join("; ").into());
            }
        }
        if let Some(compatibility) = &skill.compatibility {
            put("compatibility", compatibility.clone().into());
        }
        put("content", body.into());
        Value::Object(told)
    }

    /// What is to be done before a skill can be worked by; nothing at all where it needs nothing.
    fn setup(&self, skill: &Skill) -> Option<Vec<String>> {
        let reach = &self.ports.reach;
        let wanted = skill.variables.iter();
        let wanted = wanted.filter(|variable| !variable.is_optional);
        let variables = wanted.map(|variable| {
            let name = variable.name.as_str();
            (
                name,
                reach.variable(skill, name),
                "put it into `.env` of the home",
            )
        });
        let files = skill.credential_files.iter().map(|path| {
            let path = path.as_str();
            (
                path,
                reach.file(skill, path),
                "put it below the home of Hermes",
            )
        });
        let all: Vec<_> = variables.chain(files).collect();
        if all.is_empty() && skill.variables.is_empty() {
            return None;
        }
        let name = &skill.name;
        let told = all.into_iter().filter_map(|(what, standing, how)| match standing {
            Standing::Given => None,
            Standing::Missing => Some(format!("`{what}` is not there: ask the user to {how}")),
            Standing::ToBeAllowed => Some(format!(
                "`{what}` is there, and commands do not get it before the user agrees: ask them to type `/skills allow {name} \
                 {what}`"
            )),
            Standing::Never => Some(format!(
                "`{what}` is never given to commands here: it is for Hermes itself, or for somebody else"
            )),
        });
        Some(told.collect())
    }
}

/// The files beside a skill, by the folder they are in.
fn linked(skill: &Skill) -> Option<Value> {
    let files = skill.files();
    let mut groups: Map<String, Value> = Map::new();
    for file in files {
        let folder = file.split_once('/').map_or("other", |(folder, _)| folder);
        let group = if FILE_FOLDERS.contains(&folder) {
            folder
        } else {
            "other"
        };
        if let Value::Array(group) = groups.entry(group).or_insert_with(|| json!([])) {
            group.push(file.into());
        }
    }
    (!groups.is_empty()).then(|| groups.into())
}

/// One file of a skill. What is no text is only told of.
fn file(skill: &Skill, path: &str) -> Result<Value, SkillError> {
    let relative = Path::new(path);
    let is_plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || !skill.has_files {
        return Err(none(skill, path));
    }
    let file = skill.folder.join(relative);
    let folder = skill.folder.canonicalize().map_err(|_| none(skill, path))?;
    let real = file.canonicalize().map_err(|_| none(skill, path))?;
    if !real.starts_with(&folder) || !real.is_file() {
        return Err(none(skill, path));
    }
    let length = real.metadata().map_or(0, |data| data.len());
    let text = (length <= folders::FILE_BYTES_MAX)
        .then(|| fs::read_to_string(&real).ok())
        .flatten();
    let told = match text {
        Some(content) => json!({
            "success": true, "name": skill.name, "file": path, "path": text_of(&file), "content": content,
        }),
        None => json!({
            "success": true, "name": skill.name, "file": path, "path": text_of(&file), "is_binary": true,
            "bytes": length, "hint": "no text, or too long to show; use the path",
        }),
    };
    Ok(told)
}

fn none(skill: &Skill, path: &str) -> SkillError {
    let files = skill.files();
    let path = hermes_core::text::shorten(path, 200);
    let error = SkillError::asked(format!("the skill `{}` has no file `{path}`", skill.name));
    match files.as_slice() {
        [] => error.hint("there are no files beside it"),
        files => error.hint(format!("it has {}", files.join(", "))),
    }
}

fn text_of(path: &Path) -> String {
    path.display().to_string()
}
