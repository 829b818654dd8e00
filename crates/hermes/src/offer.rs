//! What a session offers its model: the built-in tools, and those of MCP servers, which are listed or, when they are
//! many, found with `tool_search`.

use std::sync::Arc;

use hermes_core::Tool;
use hermes_llm::context::WINDOW_DEFAULT;
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

    /// What a session with a model of this many tokens of context works with, or with one that nobody knows.
    pub fn tools(&self, context_window: Option<u64>) -> Tools {
        let context_window = context_window.unwrap_or(WINDOW_DEFAULT);
        let mut tools = Tools {
            listed: self.chosen.of(&self.built_in),
            unlisted: Vec::new(),
        };
        let hides = self.disclosure.hides(&self.of_servers, context_window);
        let (listed, unlisted) = match hides && !self.finders.is_empty() {
            true => (&self.finders, &self.of_servers),
            false => (&self.of_servers, &self.finders),
        };
        tools.listed.extend(listed.iter().cloned());
        tools.unlisted.extend(unlisted.iter().cloned());
        tools
    }
}

/// Tools the model is told of, and those it can call all the same: because it found them, or because the session it goes
/// on with was told of them.
pub struct Tools {
    pub listed: Vec<Arc<dyn Tool>>,
    pub unlisted: Vec<Arc<dyn Tool>>,
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

    fn hides(&self, tools: &[Arc<dyn Tool>], context_window: u64) -> bool {
        match self.when {
            When::Always => true,
            When::Never => false,
            When::AbovePercent(percent) => {
                let schema = |tool: &Arc<dyn Tool>| json!(tool.spec()).to_string().chars().count();
                let chars = tools.iter().map(schema).sum::<usize>() as u64;
                chars.div_ceil(CHARS_PER_TOKEN) * 100 >= context_window * percent
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hermes_testkit::TestTool;

    use super::*;

    fn hides(when: When, tools: usize, context_window: u64) -> bool {
        let limits = SearchLimits {
            matches_usual: 5,
            matches_max: 20,
        };
        let tool: Arc<dyn Tool> = Arc::new(TestTool::new("mcp__hub__tool"));
        Disclosure { when, limits }.hides(&vec![tool; tools], context_window)
    }

    #[test]
    fn many_tools_are_hidden_and_few_are_not() {
        let usual = When::AbovePercent(10);
        assert!(hides(usual, 100, 20_000));
        assert!(!hides(usual, 1, 20_000));
        assert!(hides(usual, 1, 200));
    }

    #[test]
    fn the_settings_have_the_last_word() {
        assert!(hides(When::Always, 1, 1_000_000));
        assert!(!hides(When::Never, 1_000, 8_000));
    }
}
