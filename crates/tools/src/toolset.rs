//! Names for groups of tools, as settings and `--toolsets` use them.

use hermes_core::text::nearest;

use crate::BUILT_IN;

pub struct Toolset {
    pub name: &'static str,
    /// The name older settings use.
    pub legacy_name: Option<&'static str>,
    /// What it is for, as lists show it.
    pub purpose: &'static str,
    pub tools: &'static [&'static str],
    /// Toolsets that are part of it.
    pub includes: &'static [&'static str],
}

/// Every group that is not everything.
pub const TOOLSETS: &[Toolset] = &[
    Toolset {
        name: "clarify",
        legacy_name: None,
        purpose: "ask you what only you know",
        tools: &["clarify"],
        includes: &[],
    },
    Toolset {
        name: "code_execution",
        legacy_name: None,
        purpose: "write scripts that call tools",
        tools: &["execute_code"],
        includes: &[],
    },
    Toolset {
        name: "delegation",
        legacy_name: None,
        purpose: "give tasks to subagents",
        tools: &["delegate_task"],
        includes: &[],
    },
    Toolset {
        name: "file",
        legacy_name: Some("file_tools"),
        purpose: "read, write, change and search files",
        tools: &["patch", "read_file", "search_files", "write_file"],
        includes: &[],
    },
    Toolset {
        name: "terminal",
        legacy_name: Some("terminal_tools"),
        purpose: "run commands, also in the background",
        tools: &["terminal", "process"],
        includes: &[],
    },
    Toolset {
        name: "todo",
        legacy_name: None,
        purpose: "keep a list of steps",
        tools: &["todo"],
        includes: &[],
    },
    Toolset {
        name: "web",
        legacy_name: Some("web_tools"),
        purpose: "read web pages",
        tools: &["web_extract"],
        includes: &[],
    },
    Toolset {
        name: "debugging",
        legacy_name: None,
        purpose: "look for a fault: commands, files and web pages",
        tools: &[],
        includes: &["terminal", "file", "web"],
    },
];

/// Toolsets that settings may name although their tools are not here: those of the program this one follows.
const ELSEWHERE: &[&str] = &[
    "browser",
    "computer_use",
    "context_engine",
    "cronjob",
    "discord",
    "discord_admin",
    "feishu_doc",
    "feishu_drive",
    "homeassistant",
    "image_gen",
    "kanban",
    "memory",
    "project",
    "safe",
    "search",
    "session_search",
    "skills",
    "spotify",
    "tts",
    "video",
    "video_gen",
    "vision",
    "x_search",
    "yuanbao",
];

/// Names that mean every tool.
const EVERYTHING: &[&str] = &["hermes-cli", "all", "*"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no toolset `{name}`; {}", suggestion(near))]
pub struct UnknownToolset {
    pub name: String,
    /// Toolsets that are spelt alike, best first.
    pub near: Vec<&'static str>,
}

/// Returns the tools of the named toolsets, each once, in the order of [`BUILT_IN`].
pub fn select(names: &[String]) -> Result<Vec<&'static str>, UnknownToolset> {
    let mut chosen: Vec<&str> = Vec::new();
    for name in names {
        chosen.extend(members(name)?);
    }
    let all = BUILT_IN.iter().map(|(tool, _)| *tool);
    Ok(all.filter(|tool| chosen.contains(tool)).collect())
}

fn members(name: &str) -> Result<Vec<&'static str>, UnknownToolset> {
    if EVERYTHING.contains(&name) {
        return Ok(BUILT_IN.iter().map(|(tool, _)| *tool).collect());
    }
    let toolset = TOOLSETS
        .iter()
        .find(|toolset| toolset.name == name || toolset.legacy_name == Some(name))
        .ok_or_else(|| UnknownToolset {
            name: name.to_owned(),
            near: nearest(name, known_names()),
        })?;
    let mut tools = toolset.tools.to_vec();
    for included in toolset.includes {
        tools.extend(members(included)?);
    }
    Ok(tools)
}

/// Whether a toolset is known, but has no tools here.
pub fn is_elsewhere(name: &str) -> bool {
    ELSEWHERE.contains(&name)
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

    fn selected(names: &[&str]) -> Vec<&'static str> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        select(&names).unwrap()
    }

    #[test]
    fn every_tool_of_a_toolset_exists() {
        for toolset in TOOLSETS {
            for tool in toolset.tools {
                assert!(BUILT_IN.iter().any(|(name, _)| name == tool), "{tool}");
            }
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
            "there is no toolset `zzz`; known: clarify, code_execution, delegation, file, terminal, todo, web, \
             debugging, hermes-cli, all, *"
        );
    }
}
