//! The answer to "why has this setting this value?".

use std::fmt;

use serde_json::Value;

use crate::{key::Key, layer::Layer, mask::mask, origin::Origin, yaml};

/// What each layer says about one setting, the strongest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub key: Key,
    /// The value in effect as written, secrets masked; `None` when nothing sets it.
    pub value: Option<Value>,
    pub says: Vec<Said>,
    /// Whether nothing reads it in this version.
    pub is_unused: bool,
}

/// What one layer says.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub origin: Origin,
    /// As written, with secrets masked.
    pub value: Value,
    pub standing: Standing,
}

/// What becomes of a layer's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the value in effect.
    Wins,
    /// A stronger layer replaces it.
    Overridden,
    /// It is a section, and merged with those of the other layers.
    Merged,
}

impl Explanation {
    /// `value` is the one in effect.
    pub(crate) fn new(key: &Key, layers: &[Layer], value: Option<&Value>) -> Self {
        let name = key.to_string();
        let is_section = value.is_some_and(Value::is_object);
        let mut says = Vec::new();
        for layer in layers.iter().rev() {
            let Some(node) = layer.root.find(key.segments()) else {
                continue;
            };
            let standing = match (is_section, says.is_empty()) {
                (true, _) => Standing::Merged,
                (false, true) => Standing::Wins,
                (false, false) => Standing::Overridden,
            };
            says.push(Said {
                origin: layer.origin(node.at),
                value: mask(&name, &node.to_value()),
                standing,
            });
        }
        Self {
            key: key.clone(),
            value: value.map(|value| mask(&name, value)),
            says,
            is_unused: false,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(value) = &self.value else {
            return writeln!(f, "{} is not set", self.key);
        };
        writeln!(f, "{} = {}", self.key, yaml::to_one_line(value))?;
        for said in &self.says {
            let standing = match said.standing {
                Standing::Wins => "in effect ",
                Standing::Overridden => "overridden",
                Standing::Merged => "merged    ",
            };
            writeln!(
                f,
                "  {standing}  {}  ({})",
                yaml::to_one_line(&said.value),
                said.origin
            )?;
        }
        if self.is_unused {
            writeln!(f, "  it has no effect in this version")?;
        }
        Ok(())
    }
}
