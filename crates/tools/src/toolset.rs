//! Names for groups of tools, as settings and `--toolsets` use them. Which tools are in one they say themselves.

use std::sync::Arc;

use hermes_core::text::nearest;
use hermes_core::{Exposure, Tool, ToolGroup};

use crate::BUILT_IN;

pub struct Toolset {
    pub name: &'static str,
    /// The name older settings use.
    pub legacy_name: Option<&'static str>,
    /// What it is for, as lists show it.
    pub purpose: &'static str,
    /// Toolsets that are part of it.
    pub includes: &'static [&'static str],
}

/// Whether a tool runs what somebody wrote.
pub fn runs_commands(exposure: &Exposure) -> bool {
    matches!(
        exposure.group,
        ToolGroup::Toolset("terminal" | "code_execution")
    )
}

/// Every group that is not everything.
pub const TOOLSETS: &[Toolset] = &[
    Toolset {
        name: "clarify",
        legacy_name: None,
        purpose: "ask you what only you know",
        includes: &[],
    },
    Toolset {
        name: "code_execution",
        legacy_name: None,
        purpose: "write scripts that call tools",
        includes: &[],
    },
    Toolset {
        name: "cronjob",
        legacy_name: Some("cronjob_tools"),
        purpose: "make jobs that run by themselves at set times",
        includes: &[],
    },
    Toolset {
        name: "delegation",
        legacy_name: None,
        purpose: "give tasks to subagents",
        includes: &[],
    },
    Toolset {
        name: "file",
        legacy_name: Some("file_tools"),
        purpose: "read, write, change and search files",
        includes: &[],
    },
    Toolset {
        name: "memory",
        legacy_name: None,
        purpose: "keep notes for later conversations",
        includes: &[],
    },
    Toolset {
        name: "messaging",
        legacy_name: None,
        purpose: "write to other chats, where chat platforms are set up",
        includes: &[],
    },
    Toolset {
        name: "session_search",
        legacy_name: None,
        purpose: "find what was said in earlier conversations",
        includes: &[],
    },
    Toolset {
        name: "skills",
        legacy_name: Some("skills_tools"),
        purpose: "find, load and write skills",
        includes: &[],
    },
    Toolset {
        name: "terminal",
        legacy_name: Some("terminal_tools"),
        purpose: "run commands, also in the background",
        includes: &[],
    },
    Toolset {
        name: "todo",
        legacy_name: None,
        purpose: "keep a list of steps",
        includes: &[],
    },
    Toolset {
        name: "web",
        legacy_name: Some("web_tools"),
        purpose: "read web pages",
        includes: &[],
    },
    Toolset {
        name: "debugging",
        legacy_name: None,
        purpose: "look for a fault: commands, files and web pages",
        includes: &["terminal", "file", "web"],
    },
];

/// Tools of a toolset that need what only some have, or that another crate makes.
const MADE_ELSEWHERE: &[(&str, &[&str])] = &[
    ("cronjob", &["cronjob"]),
    ("memory", &["memory"]),
    ("messaging", &["send_message"]),
    ("session_search", &["session_search"]),
];

/// Toolsets that settings may name although their tools are not here: those of the program this one follows.
const ELSEWHERE: &str = include_str!("toolset/elsewhere.txt");

/// Names that mean every tool.
const EVERYTHING: &[&str] = &["hermes-cli", "all", "*"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no toolset `{name}`; {}", suggestion(near))]
pub struct UnknownToolset {
    pub name: String,
    /// Toolsets that are spelt alike, best first.
    pub near: Vec<&'static str>,
}

/// Toolsets that are switched on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection(Vec<&'static str>);

impl Selection {
    /// The selected ones of these tools that are offered on a surface, in their order.
    pub fn of(&self, tools: &[Arc<dyn Tool>], surface: &str) -> Vec<Arc<dyn Tool>> {
        let is_offered = |tool: &&Arc<dyn Tool>| {
            let exposure = tool.exposure();
            self.has_tool(exposure) && exposure.is_on(surface)
        };
        tools.iter().filter(is_offered).cloned().collect()
    }

    /// Returns whether all of a toolset is selected.
    pub fn has(&self, toolset: &Toolset) -> bool {
        toolset.parts().all(|part| self.0.contains(&part))
    }

    pub fn remove(&mut self, others: &Self) {
        self.0.retain(|name| !others.0.contains(name));
    }

    fn has_tool(&self, exposure: &Exposure) -> bool {
        matches!(exposure.group, ToolGroup::Toolset(name) if self.0.contains(&name))
    }
}

impl Toolset {
    /// The tools that say they are in it: built-in ones in the order of [`BUILT_IN`], then others.
    pub fn tools(&self) -> Vec<&'static str> {
        let selection = Selection(self.parts().collect());
        let tools = BUILT_IN
            .iter()
            .filter(|tool| selection.has_tool(tool.exposure));
        let elsewhere = MADE_ELSEWHERE
            .iter()
            .filter(|(toolset, _)| selection.0.contains(toolset))
            .flat_map(|(_, tools)| tools.iter().copied());
        tools.map(|tool| tool.name).chain(elsewhere).collect()
    }

    /// The names of those that it is made of: its own, unless it is made of others.
    fn parts(&self) -> impl Iterator<Item = &'static str> {
        let own = self.includes.is_empty().then_some(self.name);
        own.into_iter().chain(self.includes.iter().copied())
    }
}

/// Selects the named toolsets.
pub fn select(names: &[String]) -> Result<Selection, UnknownToolset> {
    let mut selected = Vec::new();
    for name in names {
        if EVERYTHING.contains(&name.as_str()) {
            selected.extend(TOOLSETS.iter().flat_map(Toolset::parts));
            continue;
        }
        let toolset = TOOLSETS
            .iter()
            .find(|toolset| toolset.name == name || toolset.legacy_name == Some(name))
            .ok_or_else(|| UnknownToolset {
                name: name.to_owned(),
                near: nearest(name, known_names()),
            })?;
        selected.extend(toolset.parts());
    }
    selected.sort_unstable();
    selected.dedup();
    Ok(Selection(selected))
}

/// Whether a toolset is known, but has no tools here.
pub fn is_elsewhere(name: &str) -> bool {
    ELSEWHERE.lines().any(|known| known == name)
}

fn known_names() -> impl Iterator<Item = &'static str> {
    let named = TOOLSETS.iter().map(|toolset| toolset.name);
    named.chain(EVERYTHING.iter().copied())
}

fn suggestion(near: &[&str]) -> String {
    match near {
        [] => format!("known: {}", known_names().collect::<Vec<_>>().join(", ")),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Toolsets whose tools `hermes-learning` makes.
    const MADE_BY_LEARNING: &[&str] = &["skills"];

    fn selected(names: &[&str]) -> Vec<&'static str> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let selection = select(&names).unwrap();
        let tools = BUILT_IN
            .iter()
            .filter(|tool| selection.has_tool(tool.exposure));
        tools.map(|tool| tool.name).collect()
    }

    #[test]
    fn every_tool_is_in_a_toolset_that_exists_and_none_is_empty() {
        for tool in BUILT_IN {
            let is_known = |toolset: &Toolset| toolset.tools().contains(&tool.name);
            assert!(TOOLSETS.iter().any(is_known), "{}", tool.name);
        }
        for toolset in TOOLSETS {
            let is_here = !MADE_BY_LEARNING.contains(&toolset.name);
            assert_eq!(!toolset.tools().is_empty(), is_here, "{}", toolset.name);
        }
    }

    #[test]
    fn what_is_elsewhere_is_not_here() {
        for toolset in TOOLSETS {
            assert!(!is_elsewhere(toolset.name), "{}", toolset.name);
        }
        assert!(is_elsewhere("browser") && !is_elsewhere("brwoser"));
    }

    #[test]
    fn a_toolset_can_be_made_of_others() {
        let parts = selected(&["terminal", "file", "web"]);
        assert_eq!(selected(&["debugging"]), parts);
    }

    #[test]
    fn a_tool_named_twice_is_selected_once() {
        assert_eq!(
            selected(&["todo", "file", "todo"]),
            ["patch", "read_file", "search_files", "todo", "write_file"]
        );
    }

    #[test]
    fn everything_has_several_names() {
        for name in ["all", "*", "hermes-cli"] {
            assert_eq!(selected(&[name]).len(), BUILT_IN.len());
        }
        assert!(selected(&[]).is_empty());
    }

    #[test]
    fn names_of_older_settings_are_understood() {
        assert_eq!(selected(&["terminal_tools"]), ["process", "terminal"]);
    }

    #[test]
    fn an_unknown_name_suggests_a_known_one() {
        let error = select(&["termnal".to_owned()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no toolset `termnal`; did you mean terminal?"
        );
        let error = select(&["zzz".to_owned()]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no toolset `zzz`; known: clarify, code_execution, cronjob, delegation, file, memory, messaging, \
             session_search, skills, terminal, todo, web, debugging, hermes-cli, all, *"
        );
    }
}
