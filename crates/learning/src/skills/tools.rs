//! What models call about skills. One file per tool, with its schema, exposure, limits and code.

mod skill_manage;
mod skill_view;
mod skills_list;

use std::sync::Arc;

use hermes_core::{Author, Exposure, Scripts, Subagents, Surfaces, Tool, ToolError, ToolGroup};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Skill, SkillError, Skills};

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
    pub reach: Arc<dyn Reach>,
}

/// What commands get of what skills need.
pub trait Reach: Send + Sync {
    /// How it stands with an environment variable of a skill.
    fn variable(&self, skill: &Skill, name: &str) -> Standing;

    /// The same of a file with keys.
    fn file(&self, skill: &Skill, path: &str) -> Standing;
}

/// Where it is the same for every skill, whether it is a variable or a file.
impl<F: Fn(&str) -> Standing + Send + Sync> Reach for F {
    fn variable(&self, _skill: &Skill, name: &str) -> Standing {
        self(name)
    }

    fn file(&self, _skill: &Skill, path: &str) -> Standing {
        self(path)
    }
}

/// How it stands with something that a skill needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Commands have it.
    Given,
    /// It is there, and a person has to agree that commands get it.
    ToBeAllowed,
    /// It is not there.
    Missing,
    /// It is never given to commands.
    Never,
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
