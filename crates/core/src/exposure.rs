//! Who gets to call a tool. Each tool declares it in its own file; no list elsewhere names tools.

/// Where a tool is offered, and to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    pub group: ToolGroup,
    pub surfaces: Surfaces,
    pub subagents: Subagents,
    pub scripts: Scripts,
    /// Whether small models are told of it from the beginning: only of what is needed to read, write and run. With more
    /// they pick the wrong one; the others they find.
    pub for_small_models: bool,
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

    pub const fn everywhere_but_in_scripts(group: ToolGroup) -> Self {
        Self {
            group,
            surfaces: Surfaces::Every,
            subagents: Subagents::All,
            scripts: Scripts::No,
            for_small_models: false,
        }
    }

    pub fn is_on(&self, surface: &str) -> bool {
        match self.surfaces {
            Surfaces::Every => true,
            Surfaces::Only(names) => names.contains(&surface),
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
