//! What a session offers its model: the built-in tools, and those of MCP servers, which are listed or, when they are
//! many, found with `tool_search`.

use std::sync::Arc;

use hermes_core::{Tool, ToolSpec};
use hermes_tools::{SearchLimits, tool_search};
use serde_json::{Value, json};

use crate::base::Base;
use crate::failure::Outcome;
use crate::toolsets::Toolsets;

/// English text and JSON have about this many characters to a token.
const CHARS_PER_TOKEN: u64 = 4;

pub struct Offer {
    /// Those that are built in, chosen or not.
    built_in: Vec<Arc<dyn Tool>>,
    chosen: Toolsets,
    of_servers: Vec<Arc<dyn Tool>>,
    /// The tools that find those of servers; none where there is nothing to find.
    finders: Vec<Arc<dyn Tool>>,
    disclosure: Disclosure,
}

impl Offer {
    pub fn new(built_in: Vec<Arc<dyn Tool>>, chosen: Toolsets, disclosure: Disclosure) -> Self {
        Self {
            built_in,
            chosen,
            of_servers: Vec::new(),
            finders: Vec::new(),
            disclosure,
        }
    }

    /// Chooses other built-in tools for the next session.
    pub fn choose(&mut self, chosen: Toolsets) {
        self.chosen = chosen;
    }

    pub fn set_of_servers(&mut self, tools: Vec<Arc<dyn Tool>>) {
        self.finders = match tools.is_empty() || self.disclosure.when == When::Never {
            true => Vec::new(),
            false => tool_search(tools.clone(), self.disclosure.limits),
        };
        self.of_servers = tools;
    }

    /// Every tool that can be called, listed or not: what an earlier session listed is called by its name.
    pub fn callable(&self) -> Vec<Arc<dyn Tool>> {
        let mut all = self.chosen.of(&self.built_in);
        all.extend(self.finders.iter().chain(&self.of_servers).cloned());
        all
    }

    /// What a new session tells a model with this many tokens of context.
    pub fn listed(&self, context_window: u64) -> Vec<ToolSpec> {
        let of_servers: Vec<ToolSpec> = specs(&self.of_servers);
        let mut listed = specs(&self.chosen.of(&self.built_in));
        if !self.finders.is_empty() && self.disclosure.hides(&of_servers, context_window) {
            listed.extend(specs(&self.finders));
        } else {
            listed.extend(of_servers);
        }
        listed
    }
}

fn specs(tools: &[Arc<dyn Tool>]) -> Vec<ToolSpec> {
    tools.iter().map(|tool| tool.spec().clone()).collect()
}

/// `tools.tool_search`: when the tools of servers are found instead of listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disclosure {
    when: When,
    limits: SearchLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    Never,
    /// When their schemas take so much of the model's context.
    AbovePercent(u64),
}

impl Disclosure {
    pub fn read(base: &Base) -> Outcome<Self> {
        let settings = &base.settings;
        let limits = SearchLimits {
            matches_usual: 5,
            matches_max: 20,
        };
        if let Some(Value::Bool(is_on)) = settings.get("tools.tool_search") {
            let when = if *is_on { When::Always } else { When::Never };
            return Ok(Self { when, limits });
        }
        let when = match settings.string("tools.tool_search.enabled")?.as_str() {
            "on" | "true" | "always" => When::Always,
            "off" | "false" | "never" => When::Never,
            _ => When::AbovePercent(settings.u64("tools.tool_search.threshold_pct")?),
        };
        let matches_max = settings
            .u64("tools.tool_search.max_search_limit")?
            .clamp(1, 50);
        let matches_usual = settings.u64("tools.tool_search.search_default_limit")?;
        Ok(Self {
            when,
            limits: SearchLimits {
                matches_usual: matches_usual.clamp(1, matches_max) as usize,
                matches_max: matches_max as usize,
            },
        })
    }

    fn hides(&self, specs: &[ToolSpec], context_window: u64) -> bool {
        match self.when {
            When::Always => true,
            When::Never => false,
            When::AbovePercent(percent) => {
                let chars = json!(specs).to_string().chars().count() as u64;
                chars.div_ceil(CHARS_PER_TOKEN) * 100 >= context_window * percent
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(when: When, tools: usize, context_window: u64) -> bool {
        let spec = ToolSpec {
            name: "mcp__hub__tool".into(),
            description: "d".repeat(400),
            parameters: json!({"type": "object", "properties": {}}),
        };
        let limits = SearchLimits {
            matches_usual: 5,
            matches_max: 20,
        };
        Disclosure { when, limits }.hides(&vec![spec; tools], context_window)
    }

    #[test]
    fn many_tools_are_hidden_and_few_are_not() {
        let usual = When::AbovePercent(10);
        assert!(hides(usual, 100, 100_000));
        assert!(!hides(usual, 10, 100_000));
        assert!(hides(usual, 10, 8_000));
    }

    #[test]
    fn the_settings_have_the_last_word() {
        assert!(hides(When::Always, 1, 1_000_000));
        assert!(!hides(When::Never, 1_000, 8_000));
    }
}
