//! Who gets to call a tool. Each tool declares it in its own file; no list elsewhere names tools.

use serde_json::{Map, Value, json};

use crate::tool::ToolSpec;

/// Where a tool is offered, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    pub group: ToolGroup,
    pub surfaces: Surfaces,
    pub subagents: Subagents,
    pub scripts: Scripts,
    /// How small models are told of it, if they are told from the beginning: only of what is needed to read, write and run.
    /// With more they pick the wrong one; the others they find.
    pub for_small_models: Option<Brief>,
}

/// A tool in few words: with many, small models answer without a call and make the answer up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brief {
    pub description: &'static str,
    /// The parameters they are told of; all must be there. Calls with others work as well.
    pub parameters: &'static [&'static str],
    pub example: Option<Example>,
}

/// A call from the question to the answer. Small models do as they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    pub question: &'static str,
    /// The arguments as JSON.
    pub arguments: &'static str,
    pub result: &'static str,
    pub answer: &'static str,
}

impl Brief {
    /// Says the same of a tool in few words.
    pub fn of(&self, spec: &ToolSpec) -> ToolSpec {
        let of_type = |name: &&str| {
            let kind = spec.parameters["properties"][*name]["type"].clone();
            ((*name).to_owned(), json!({ "type": kind }))
        };
        let properties: Map<String, Value> = self.parameters.iter().map(of_type).collect();
        ToolSpec {
            name: spec.name.clone(),
            description: self.description.to_owned(),
            parameters: json!({"type": "object", "properties": properties, "required": self.parameters}),
        }
    }
}

/// What a tool is switched on and off with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolGroup {
    /// Built in; the name of its toolset.
    Toolset(&'static str),
    /// Offered by the MCP server of this name.
    Server(String),
    /// Finds and calls tools that are not listed: it is there when they are.
    Finder,
}

/// The surfaces on which a tool is offered, by the names that `platform_toolsets` has for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surfaces {
    Every,
    Only(&'static [&'static str]),
    Except(&'static [&'static str]),
}

/// Which subagents have a tool that their parent has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subagents {
    /// None: it talks to a person, remembers something for the parent, or starts what outlives the subagent.
    None,
    /// Those that may have subagents of their own.
    Orchestrators,
    All,
}

/// Whether scripts of `execute_code` may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scripts {
    No,
    Yes,
    /// Not with these parameters: what they start would outlive the script, or talk to somebody else.
    Without(&'static [&'static str]),
}

impl Exposure {
    /// What all tools of an MCP server have in common.
    pub fn of_server(name: impl Into<String>) -> Self {
        Self::everywhere_but_in_scripts(ToolGroup::Server(name.into()))
    }

    /// What the tools have in common that find others.
    pub const fn of_finder() -> Self {
        Self::everywhere_but_in_scripts(ToolGroup::Finder)
    }

    /// A finder that small models are told of.
    pub const fn of_finder_for_small_models(brief: Brief) -> Self {
        Self::everywhere(ToolGroup::Finder, Some(brief))
    }

    pub const fn everywhere_but_in_scripts(group: ToolGroup) -> Self {
        Self::everywhere(group, None)
    }

    const fn everywhere(group: ToolGroup, for_small_models: Option<Brief>) -> Self {
        Self {
            group,
            surfaces: Surfaces::Every,
            subagents: Subagents::All,
            scripts: Scripts::No,
            for_small_models,
        }
    }

    pub fn is_on(&self, surface: &str) -> bool {
        match self.surfaces {
            Surfaces::Every => true,
            Surfaces::Only(names) => names.contains(&surface),
            Surfaces::Except(names) => !names.contains(&surface),
        }
    }

    /// Returns the MCP server that offers the tool.
    pub fn server(&self) -> Option<&str> {
        match &self.group {
            ToolGroup::Server(name) => Some(name),
            ToolGroup::Toolset(_) | ToolGroup::Finder => None,
        }
    }
}

impl Scripts {
    /// Returns the parameters that scripts do not get; nothing when they do not get the tool.
    pub fn withheld(self) -> Option<&'static [&'static str]> {
        match self {
            Self::No => None,
            Self::Yes => Some(&[]),
            Self::Without(names) => Some(names),
        }
    }
}
