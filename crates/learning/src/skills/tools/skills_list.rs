//! `skills_list`: what skills there are, or which fit some words.

use std::sync::{Arc, LazyLock};

use hermes_core::{
    Effect, Exposure, Parallel, Plan, PlanContext, Subagents, Tool, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{SkillPorts, exposure, parse};
use crate::skills::{Library, Skill, Skills};

pub(super) const NAME: &str = "skills_list";
/// Skills of one answer: a conversation should not fill up with them.
const SKILLS_MAX: usize = 100;

static EXPOSURE: Exposure = exposure(Subagents::All);

pub(super) fn make(ports: &SkillPorts) -> Arc<dyn Tool> {
    Arc::new(SkillsList {
        skills: ports.skills.clone(),
    })
}

/// One for all conversations.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "List skills with their descriptions, or find them by words in names, descriptions and texts."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "category": {"type": "string", "description": "Only this category"},
                "query": {"type": "string", "description": "Words that must all occur"},
            },
            "required": [],
        }),
    }
}

struct SkillsList {
    skills: Skills,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    category: String,
    #[serde(default)]
    query: String,
}

impl Tool for SkillsList {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = parse::<Arguments>(NAME, arguments);
        Plan::doing(Effect::Read, Parallel::Always, move |_cx| {
            Box::pin(async move {
                let arguments = arguments?;
                let library = self.skills.library().await;
                Ok(ToolOutput::text(listed(&library, &arguments).to_string()))
            })
        })
    }
}

fn listed(library: &Library, arguments: &Arguments) -> Value {
    let category = arguments.category.trim();
    let is_in = |skill: &&Skill| {
        category.is_empty()
            || skill.category == category
            || skill.category.starts_with(&format!("{category}/"))
    };
    let found: Vec<&Skill> = library
        .search(&arguments.query)
        .into_iter()
        .filter(is_in)
        .collect();
    let shown = found.iter().take(SKILLS_MAX).map(|skill| {
        json!({"name": skill.name, "description": skill.description, "category": skill.category})
    });
    let shown: Vec<Value> = shown.collect();
    let mut categories: Vec<&str> = library
        .skills
        .iter()
        .map(|skill| skill.category.as_str())
        .collect();
    categories.sort_unstable();
    categories.dedup();
    let hint = match found.len() {
        0 if library.skills.is_empty() => "there are no skills yet".to_owned(),
        0 => "nothing fits; use fewer words, or list all without any".to_owned(),
        more if more > SKILLS_MAX => {
            format!(
                "{} more fit; narrow it down with category or query",
                more - SKILLS_MAX
            )
        }
        _ => format!("{}(name) loads one", super::VIEWER),
    };
    json!({
        "success": true,
        "skills": shown,
        "categories": categories,
        "count": found.len(),
        "hint": hint,
    })
}
