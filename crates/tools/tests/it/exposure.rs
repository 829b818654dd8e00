//! What the file of a tool declares is all there is: no other list names tools.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{Exposure, Surfaces, Tool, ToolGroup};
use hermes_testkit::TestTool;
use hermes_tools::{BUILT_IN, select};

/// Where production code names a built-in tool, or a word that is also the name of one, and why that is right.
const NAMED_ELSEWHERE: &[(&str, &[&str], &str)] = &[
    (
        "core/src/delegation.rs",
        &["delegate_task"],
        "the loop merges what its calls keep side by side",
    ),
    (
        "hermes/src/demo/script.rs",
        &[
            "delegate_task",
            "execute_code",
            "patch",
            "process",
            "read_file",
            "terminal",
            "todo",
            "write_file",
        ],
        "the scripted model of the demo calls them, as a model does",
    ),
    (
        "learning/src/grounding.rs",
        &["read_file", "search_files"],
        "what files of the project say is not judged like what strangers say",
    ),
    (
        "tools/src/toolset.rs",
        &["clarify", "terminal", "todo"],
        "toolsets of these names",
    ),
    (
        "config/src/project.rs",
        &["terminal"],
        "a section of the settings",
    ),
    (
        "config/src/unused.rs",
        &["clarify"],
        "a section of the settings",
    ),
    (
        "hermes/src/commands/doctor/terminal.rs",
        &["terminal"],
        "a row of the doctor",
    ),
    ("runtime/src/git.rs", &["process"], "a setting of git"),
    (
        "runtime/src/toolkit.rs",
        &["terminal"],
        "a section of the settings",
    ),
    (
        "tui/src/markdown/highlight.rs",
        &["patch"],
        "a language of code blocks",
    ),
    ("policy/src/exactly.rs", &["patch"], "a program"),
    (
        "learning/src/skills/tools/skill_manage.rs",
        &["patch", "write_file"],
        "what may be done to a skill, by the names that Hermes Agent has for it",
    ),
];

fn tool(name: &str, toolset: &'static str, surfaces: Surfaces) -> Arc<dyn Tool> {
    let exposure = Exposure {
        surfaces,
        ..Exposure::everywhere_but_in_scripts(ToolGroup::Toolset(toolset))
    };
    Arc::new(TestTool::new(name).exposure(exposure))
}

#[test]
fn a_tool_is_in_the_toolset_it_declares_on_the_surfaces_it_declares() {
    let tools = [
        tool("anywhere", "file", Surfaces::Every),
        tool("at_home", "file", Surfaces::Only(&["cli"])),
        tool("other", "web", Surfaces::Every),
    ];
    let offered = |toolset: &str, surface: &str| {
        let selection = select(&[toolset.to_owned()]).unwrap();
        let offered = selection.of(&tools, surface).into_iter();
        let names: Vec<String> = offered.map(|tool| tool.spec().name.clone()).collect();
        names
    };
    assert_eq!(offered("file", "cli"), ["anywhere", "at_home"]);
    assert_eq!(offered("file", "chat"), ["anywhere"]);
    assert_eq!(offered("debugging", "chat"), ["anywhere", "other"]);
    assert_eq!(offered("all", "cli"), ["anywhere", "at_home", "other"]);
    assert!(offered("todo", "cli").is_empty());
}

#[test]
fn no_other_production_file_names_a_tool() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let own: BTreeSet<PathBuf> = BUILT_IN
        .iter()
        .map(|tool| crates.join(format!("tools/src/{}.rs", tool.name)))
        .collect();
    let mut found = Vec::new();
    for file in sources(&crates) {
        // The tool itself, and what only tests use.
        if own.contains(&file) || file.starts_with(crates.join("testkit")) || is_test(&file) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let production = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        let name = file.strip_prefix(&crates).unwrap().to_string_lossy();
        for tool in BUILT_IN.iter().map(|tool| tool.name) {
            let is_named = production.contains(&format!("\"{tool}\""));
            let is_known = NAMED_ELSEWHERE
                .iter()
                .any(|(known, tools, _)| *known == name && tools.contains(&tool));
            if is_named && !is_known {
                found.push(format!("{name}: {tool}"));
            }
        }
    }
    assert!(found.is_empty(), "declare it in the tool's file: {found:?}");
}

fn is_test(file: &Path) -> bool {
    file.file_stem().is_some_and(|stem| stem == "tests")
}

/// The files below the `src` folders of all crates.
fn sources(crates: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(crates).unwrap();
    let mut folders: Vec<PathBuf> = names
        .map(|entry| entry.unwrap().path().join("src"))
        .filter(|folder| folder.is_dir())
        .collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files
}
