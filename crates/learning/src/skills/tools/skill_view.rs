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

use super::{SkillPorts, answer, exposure, parse};
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
        Plan::doing(Effect::Read, Parallel::Always, move |cx| {
            Box::pin(async move {
                let viewed = self.view(arguments?, &cx.session).await?;
                Ok(ToolOutput::text(viewed.to_string()))
            })
        })
    }
}

impl SkillView {
    async fn view(&self, arguments: Arguments, session: &SessionId) -> Result<Value, ToolError> {
        let skills = &self.ports.skills;
        let library = skills.library().await;
        let skill = found(&library, &arguments.name).map_err(|error| answer(&error))?;
        let viewed = match arguments.file_path.trim() {
            "" | folders::SKILL_FILE => self.whole(skill, session),
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

    fn whole(&self, skill: &Skill, session: &SessionId) -> Value {
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
            let missing: Vec<&str> = self.missing(skill);
            let variables = skill.variables.iter().map(|variable| {
                json!({"name": variable.name, "help": variable.help, "optional": variable.is_optional})
            });
            put("required_environment_variables", variables.collect());
            let status = if missing.is_empty() {
                "available"
            } else {
                "setup_needed"
            };
            put("readiness_status", status.into());
            if !missing.is_empty() {
                let names = missing.join(", ");
                let note = format!(
                    "not set: {names}. Ask the user to put them into `.env` of the home, and their names into \
                     `terminal.env_passthrough` where commands need them"
                );
                put("setup_note", note.into());
            }
        }
        if let Some(compatibility) = &skill.compatibility {
            put("compatibility", compatibility.clone().into());
        }
        put(
            "content",
            self.ports.skills.sources.body(skill, Some(session)).into(),
        );
        Value::Object(told)
    }

    fn missing<'a>(&self, skill: &'a Skill) -> Vec<&'a str> {
        let wanted = skill
            .variables
            .iter()
            .filter(|variable| !variable.is_optional);
        let names = wanted.map(|variable| variable.name.as_str());
        names.filter(|name| !(self.ports.is_set)(name)).collect()
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
