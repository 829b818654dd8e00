//! The settings a project brings along in `.hermes/config.yaml`, read only where its owner trusts the project.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    environment::Environment,
    home::Home,
    layer::{Layer, LoadError},
    origin::{Origin, Problem, Source},
    yaml::{Content, Node},
};

/// Where the list of trusted projects is kept.
const TRUSTED_PROJECTS: &str = "security.trusted_projects";

/// What a project must not decide: which models get the data, what runs unasked, and what is let through.
const OWNERS_SETTINGS: [&[&str]; 19] = [
    &["approvals"],
    &["auxiliary"],
    &["command_allowlist"],
    &["credential_pool_strategies"],
    &["custom_providers"],
    &["delegation", "subagent_auto_approve"],
    &["fallback_model"],
    &["fallback_providers"],
    &["hooks"],
    &["hooks_auto_accept"],
    &["model"],
    &["privacy"],
    &["providers"],
    &["secrets"],
    &["security"],
    &["skills", "inline_shell"],
    &["terminal", "credential_files"],
    &["terminal", "docker_forward_env"],
    &["terminal", "env_passthrough"],
];
/// Names that a project must not set anywhere.
const OWNERS_NAMES: [&str; 3] = ["base_url", "api_key", "provider"];

/// What a project adds: perhaps a layer, perhaps warnings.
#[derive(Default)]
pub(crate) struct Project {
    pub(crate) layer: Option<Layer>,
    pub(crate) problems: Vec<Problem>,
}

/// Reads the settings of the project around `directory`. `owners` are the layers that may say which are trusted.
pub(crate) fn read(
    directory: &Path,
    home: &Home,
    environment: &Environment,
    owners: &[&Layer],
) -> Result<Project, LoadError> {
    let Some(root) = git_root(directory) else {
        return Ok(Project::default());
    };
    let path = root.join(".hermes").join("config.yaml");
    // A home folder under version control is no project: its settings are the user's own.
    if !path.exists() || same_file(&path, &home.config_yaml()) {
        return Ok(Project::default());
    }
    let trusted = trusted_projects(owners, environment);
    if !trusted.iter().any(|project| same_file(project, &root)) {
        return Ok(Project {
            layer: None,
            problems: vec![not_trusted(&root, path, trusted.len())],
        });
    }
    let mut layer = Layer::read(&path, Source::Project)?;
    let problems = layer.as_mut().map_or(Vec::new(), strip);
    Ok(Project { layer, problems })
}

fn git_root(directory: &Path) -> Option<PathBuf> {
    directory
        .ancestors()
        .find(|folder| folder.join(".git").exists())
        .map(Path::to_path_buf)
}

fn same_file(left: &Path, right: &Path) -> bool {
    match (fs::canonicalize(left), fs::canonicalize(right)) {
        (Ok(left), Ok(right)) => left == right,
        _ => left == right,
    }
}

fn trusted_projects(owners: &[&Layer], environment: &Environment) -> Vec<PathBuf> {
    let path: Vec<String> = TRUSTED_PROJECTS.split('.').map(str::to_owned).collect();
    // Of two lists the last one counts, as everywhere.
    let list = owners.iter().rev().find_map(|layer| layer.root.find(&path));
    let Some(Content::List(items)) = list.map(|node| &node.content) else {
        return Vec::new();
    };
    let texts = items.iter().filter_map(|item| match &item.content {
        Content::Scalar(Value::String(text)) => Some(Path::new(text)),
        _ => None,
    });
    let absolute = |project: &Path| match (project.strip_prefix("~"), environment.user_home()) {
        (Ok(below), Some(user_home)) => Some(user_home.join(below)),
        _ => project.is_absolute().then(|| project.to_path_buf()),
    };
    texts.filter_map(absolute).collect()
}

fn not_trusted(root: &Path, path: PathBuf, next_index: usize) -> Problem {
    Problem {
        message: "these settings are not used: the project is not trusted".to_owned(),
        hint: Some(format!(
            "read them, then trust it with `hermes config set {TRUSTED_PROJECTS}.{next_index} {}`",
            root.display()
        )),
        origin: Origin {
            source: Source::Project(path),
            position: None,
        },
    }
}

/// Takes the settings out of a project's layer that a project must not decide, and reports them.
fn strip(layer: &mut Layer) -> Vec<Problem> {
    let mut root = std::mem::replace(&mut layer.root, Node::empty_map());
    let mut problems = Vec::new();
    strip_section(layer, &mut root, &mut Vec::new(), &mut problems);
    layer.root = root;
    problems
}

fn strip_section(
    layer: &Layer,
    node: &mut Node,
    path: &mut Vec<String>,
    problems: &mut Vec<Problem>,
) {
    let Content::Map(entries) = &mut node.content else {
        return;
    };
    entries.retain_mut(|entry| {
        path.push(entry.key.clone());
        let is_owners = OWNERS_SETTINGS.iter().any(|owners| path == owners)
            || OWNERS_NAMES.contains(&entry.key.as_str());
        if is_owners {
            problems.push(Problem {
                message: format!(
                    "`{}` is not taken from a project, so it is ignored",
                    path.join(".")
                ),
                origin: layer.origin(entry.key_at),
                hint: Some("set it in your own settings with `hermes config set`".to_owned()),
            });
        } else {
            strip_section(layer, &mut entry.value, path, problems);
        }
        path.pop();
        !is_owners
    });
}
