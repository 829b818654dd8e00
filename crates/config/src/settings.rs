//! The settings in effect: every layer in its order, merged, with the way back to where each value stands.

use std::path::{Path, PathBuf};

use hermes_core::Secret;
use serde_json::{Map, Value};

use crate::{
    aliases,
    environment::Environment,
    expand::expanded_value,
    explain::Explanation,
    home::Home,
    key::{Key, KeyError},
    layer::{Layer, LoadError},
    mask::{mask, secrets},
    origin::{Origin, Problem, Source},
    project, review, unused,
    yaml::{self, Content, Node},
};

/// Where the administrator's settings are, unless `HERMES_MANAGED_DIR` says otherwise.
const MANAGED_DIRECTORY: &str = "/etc/hermes";

/// What to load settings from.
pub struct Sources<'a> {
    pub home: &'a Home,
    pub environment: &'a Environment,
    /// The folder to look for a project's settings from; `None` to look for none.
    pub working_directory: Option<&'a Path>,
    /// Settings given on the command line.
    pub flags: Vec<(Key, Value)>,
    pub user_config: UserConfig,
}

/// Whether the user's `config.yaml` counts; `--ignore-user-config` leaves it out, and the project's with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserConfig {
    Read,
    Ignore,
}

/// The settings in effect.
///
/// Layers in rising order: built-in, user, project, environment, command line, and on top what the administrator
/// manages. Sections are merged name by name; lists and single values are replaced as a whole.
pub struct Settings {
    /// From the weakest to the strongest; the first is the built-in one.
    pub(crate) layers: Vec<Layer>,
    merged: Value,
    problems: Vec<Problem>,
}

impl Settings {
    /// Loads and merges all layers. A file that does not parse is an error; oddities become [`Self::problems`].
    pub fn load(sources: &Sources<'_>) -> Result<Self, LoadError> {
        let defaults = Layer::defaults();
        let mut problems = Vec::new();
        let mut review = |layer: Option<Layer>| {
            layer.map(|mut layer| {
                problems.extend(review::review(
                    &mut layer,
                    &defaults.root,
                    sources.environment,
                ));
                layer
            })
        };
        let managed_file = managed_directory(sources.environment).join("config.yaml");
        let managed = review(Layer::read(&managed_file, Source::Managed)?);
        let (user, project) = match sources.user_config {
            UserConfig::Read => {
                let user = review(Layer::read(&sources.home.config_yaml(), Source::User)?);
                let project = read_project(sources, &[user.as_ref(), managed.as_ref()])?;
                (user, project)
            }
            UserConfig::Ignore => (None, project::Project::default()),
        };
        let project_layer = review(project.layer);
        problems.extend(project.problems);
        let mut layers = vec![defaults];
        layers.extend(user);
        layers.extend(project_layer);
        layers.extend(Layer::of_environment(sources.environment));
        layers.extend(flags_layer(&sources.flags));
        layers.extend(managed);
        Ok(Self::merge(layers, problems, sources.environment))
    }

    /// Returns the built-in settings alone.
    pub fn defaults() -> Self {
        Self::merge(vec![Layer::defaults()], Vec::new(), &Environment::default())
    }

    fn merge(layers: Vec<Layer>, problems: Vec<Problem>, environment: &Environment) -> Self {
        let merged = merge_all(&layers, |layer| match layer.source.file() {
            Some(_) => expanded_value(&layer.root, environment),
            None => layer.root.to_value(),
        });
        Self {
            layers,
            merged,
            problems,
        }
    }

    /// Returns the value in effect; `None` when nothing sets it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        look_up(&self.merged, &aliases::canonical(key.parse().ok()?))
    }

    /// Returns where the value in effect stands.
    pub fn origin(&self, key: &str) -> Option<Origin> {
        let key = aliases::canonical(key.parse().ok()?);
        let holder = |layer: &Layer| Some(layer.origin(layer.root.find(key.segments())?.at));
        self.layers.iter().rev().find_map(holder)
    }

    /// Returns what is odd about the settings: unknown names, values of the wrong kind, ignored parts.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Returns what the files set that has no effect in this version.
    pub fn unused(&self) -> Vec<Problem> {
        unused::unused(&self.layers, self.built_in())
    }

    /// Lists what each layer says about a setting.
    pub fn explain(&self, key: &str) -> Result<Explanation, KeyError> {
        let key = aliases::canonical(key.parse()?);
        let written = self.as_written();
        Ok(Explanation {
            is_unused: unused::is_unused(&key, self.built_in()),
            ..Explanation::new(&key, &self.layers, look_up(&written, &key))
        })
    }

    /// Returns all settings in effect for showing: secrets masked, and variables by name, as they may hold secrets.
    pub fn masked(&self) -> Value {
        mask("", &self.as_written())
    }

    /// Returns the secrets among the settings in effect.
    pub fn secrets(&self) -> Vec<Secret> {
        secrets(&self.merged)
    }

    fn as_written(&self) -> Value {
        merge_all(&self.layers, |layer| layer.root.to_value())
    }

    /// Returns [`Self::masked`] as YAML.
    pub fn to_yaml(&self) -> String {
        to_yaml(&self.masked())
    }

    /// Tells whether a setting is one we know, or stands in a section for names of one's own.
    pub fn is_known(&self, key: &Key) -> bool {
        review::is_known(self.built_in(), key)
    }

    /// Returns where the administrator sets `key` or something within it.
    pub fn managed(&self, key: &Key) -> Option<Origin> {
        let layer = self
            .layers
            .iter()
            .find(|layer| matches!(layer.source, Source::Managed(_)))?;
        let mut node = &layer.root;
        for segment in key.segments() {
            if !matches!(node.content, Content::Map(_)) {
                break;
            }
            node = node.child(segment)?;
        }
        Some(layer.origin(node.at))
    }

    /// Returns the tree of built-in settings.
    pub(crate) fn built_in(&self) -> &Node {
        &self.layers[0].root
    }
}

/// Writes a value as YAML, as `config get` shows it.
pub fn to_yaml(value: &Value) -> String {
    yaml::to_yaml(value, 0, "\n") + "\n"
}

/// Reads YAML that is no settings file, such as the front matter of a document. The error says where and what is wrong.
pub fn from_yaml(text: &str) -> Result<Value, String> {
    let node = yaml::parse(text).map_err(|error| error.to_string())?;
    Ok(node.map_or(Value::Null, |node| node.to_value()))
}

/// Returns the folder with the administrator's `config.yaml` and `.env`.
pub fn managed_directory(environment: &Environment) -> PathBuf {
    let directory = environment.path("HERMES_MANAGED_DIR");
    directory
        .unwrap_or(Path::new(MANAGED_DIRECTORY))
        .to_path_buf()
}

fn read_project(
    sources: &Sources<'_>,
    owners: &[Option<&Layer>],
) -> Result<project::Project, LoadError> {
    let owners: Vec<_> = owners.iter().flatten().copied().collect();
    match sources.working_directory {
        Some(directory) => project::read(directory, sources.home, sources.environment, &owners),
        None => Ok(project::Project::default()),
    }
}

fn flags_layer(flags: &[(Key, Value)]) -> Option<Layer> {
    let flags = flags
        .iter()
        .map(|(key, value)| (aliases::canonical(key.clone()), value.clone()));
    (flags.len() > 0).then(|| Layer::of_values(Source::Flags, flags))
}

fn merge_all(layers: &[Layer], value_of: impl Fn(&Layer) -> Value) -> Value {
    let mut merged = Value::Object(Map::new());
    for layer in layers {
        merge_into(&mut merged, value_of(layer));
    }
    merged
}

fn look_up<'v>(tree: &'v Value, key: &Key) -> Option<&'v Value> {
    key.segments()
        .iter()
        .try_fold(tree, |value, segment| match value {
            Value::Object(map) => map.get(segment),
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            _ => None,
        })
}

fn merge_into(target: &mut Value, source: Value) {
    match (target, source) {
        (Value::Object(target), Value::Object(source)) => {
            for (key, value) in source {
                merge_into(target.entry(key).or_insert(Value::Null), value);
            }
        }
        (target, source) => *target = source,
    }
}
