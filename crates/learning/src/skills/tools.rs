//! What models call about skills. One file per tool, with its schema, exposure, limits and code.

mod skill_manage;
mod skill_view;
mod skills_list;

use std::sync::Arc;

use hermes_core::{Author, Exposure, Scripts, Subagents, Surfaces, Tool, ToolError, ToolGroup};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{SkillError, Skills};
use crate::grounding::Conversations;

pub(super) use skill_manage::mends;

/// The tool that loads a skill: without it a prompt tells of none.
pub const VIEWER: &str = skill_view::NAME;
/// The tool that writes skills.
pub const WRITER: &str = skill_manage::NAME;
/// The toolset that all of them are in.
pub const TOOLSET: &str = "skills";
/// The tool that finds skills.
pub const FINDER: &str = skills_list::NAME;
/// Every tool here, in the order models see them.
pub const NAMES: [&str; 3] = [skill_manage::NAME, skill_view::NAME, skills_list::NAME];

/// What the tools work with.
#[derive(Clone)]
pub struct SkillPorts {
    pub skills: Skills,
    /// Who calls them: the agent in a conversation, or the review of one.
    pub author: Author,
    /// What says whose words they write.
    pub conversations: Conversations,
    /// Whether an environment variable is set for commands.
    pub is_set: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// Makes all of them.
pub fn tools(ports: &SkillPorts) -> Vec<Arc<dyn Tool>> {
    vec![
        skill_manage::make(ports),
        skill_view::make(ports),
        skills_list::make(ports),
    ]
}

/// Offered wherever the toolset is.
const fn exposure(subagents: Subagents) -> Exposure {
    Exposure {
        group: ToolGroup::Toolset(TOOLSET),
        surfaces: Surfaces::Every,
        subagents,
        scripts: Scripts::No,
        for_small_models: None,
    }
}

fn parse<T: DeserializeOwned>(tool: &str, arguments: &Value) -> Result<T, ToolError> {
    T::deserialize(arguments).map_err(|error| {
        ToolError::Answer(format!(
            "the arguments of `{tool}` do not fit its schema: {error}; call it again with all required arguments"
        ))
    })
}

/// What a model is told when something cannot be done.
fn answer(error: &SkillError) -> ToolError {
    ToolError::Answer(error.told())
}
