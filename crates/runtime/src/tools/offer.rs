//! What a session offers its model: the built-in tools, and those of MCP servers, which are listed or, when they are
//! many, found with `tool_search`. A small model is told of few, and finds the others.

use std::sync::Arc;

use hermes_agent::prompt::Wording;
use hermes_core::{SessionOptions, Tool};
use hermes_llm::context::WINDOW_DEFAULT;
use hermes_tools::{Catalogue, SearchLimits, finders};
use serde_json::{Value, json};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::models::small::ModelSize;
use crate::tools::toolsets::Toolsets;

/// English text and JSON have about this many characters to a token.
const CHARS_PER_TOKEN: u64 = 4;

#[derive(Clone)]
pub struct Offer {
    /// Those that are built in, chosen or not.
    built_in: Vec<Arc<dyn Tool>>,
    chosen: Toolsets,
    of_servers: Vec<Arc<dyn Tool>>,
    /// What the finders find; kept as it grows, so that a session that runs finds what comes later.
    catalogue: Arc<Catalogue>,
    /// The tools that find those of servers; none where there is nothing to find.
    finders: Vec<Arc<dyn Tool>>,
    /// Whether there are servers whose tools nobody has ever seen: they will have to be found.
    has_unseen: bool,
    disclosure: Disclosure,
    length: Length,
}

impl Offer {
    pub fn new(
        built_in: Vec<Arc<dyn Tool>>,
        chosen: Toolsets,
        disclosure: Disclosure,
        length: Length,
    ) -> Self {
        Self {
            built_in,
            chosen,
            length,
            of_servers: Vec::new(),
            catalogue: Arc::default(),
            finders: Vec::new(),
            has_unseen: false,
            disclosure,
        }
    }

    /// Which toolsets and servers count.
    pub fn chosen(&self) -> &Toolsets {
        &self.chosen
    }

    /// Chooses other built-in tools for the next session.
    pub fn choose(&mut self, chosen: Toolsets) {
        self.chosen = chosen;
    }

    pub fn set_of_servers(&mut self, server_tools: ServerTools) {
        let ServerTools { tools, has_unseen } = server_tools;
        let is_empty = tools.is_empty() && !has_unseen;
        self.catalogue.replace(tools.clone());
        self.finders = if is_empty || self.disclosure.when == When::Never {
            Vec::new()
        } else {
            finders(&self.catalogue, self.disclosure.limits)
        };
        self.of_servers = tools;
        self.has_unseen = has_unseen;
    }

    /// The tools of servers, listed or not.
    pub fn of_servers(&self) -> &[Arc<dyn Tool>] {
        &self.of_servers
    }

    /// How many words a session with this model is told things in.
    pub fn wording(&self, model: &ModelSize) -> Wording {
        self.length.wording(model)
    }

    /// What a session with this model works with.
    pub fn tools(&self, model: &ModelSize) -> Tools {
        if self.length.is_short(model) {
            self.short_list()
        } else {
            self.full_list(model.context_window.unwrap_or(WINDOW_DEFAULT))
        }
    }

    /// A few tools, and one that finds all others.
    fn short_list(&self) -> Tools {
        let is_listed = |tool: &Arc<dyn Tool>| tool.exposure().for_small_models.is_some();
        let (mut listed, mut hidden): (Vec<_>, Vec<_>) = self
            .chosen
            .of(&self.built_in)
            .into_iter()
            .partition(is_listed);
        hidden.extend(self.of_servers.iter().cloned());
        let mut unlisted = hidden.clone();
        if !hidden.is_empty() && self.disclosure.when != When::Never {
            self.catalogue.replace(hidden);
            let mut finders = finders(&self.catalogue, self.disclosure.limits).into_iter();
            listed.extend(finders.next());
            unlisted.extend(finders);
        }
        Tools { listed, unlisted }
    }

    fn full_list(&self, context_window: u64) -> Tools {
        let mut tools = Tools {
            listed: self.chosen.of(&self.built_in),
            unlisted: Vec::new(),
        };
        let hides = self.disclosure.hides(&self.of_servers, context_window);
        let (listed, unlisted) = if hides && !self.finders.is_empty() {
            (&self.finders, &self.of_servers)
        } else {
            (&self.of_servers, &self.finders)
        };
        tools.listed.extend(listed.iter().cloned());
        tools.unlisted.extend(unlisted.iter().cloned());
        if self.has_unseen && !hides {
            // Models call nothing but what is listed; these let them call what comes later.
            tools.listed.append(&mut tools.unlisted);
        }
        tools
    }
}

/// The tools that MCP servers offer at a time.
#[derive(Default)]
pub struct ServerTools {
    pub tools: Vec<Arc<dyn Tool>>,
    /// Whether there are servers whose tools nobody has ever seen.
    pub has_unseen: bool,
}

/// Tools the model is told of, and those it can call all the same: because it found them, or because the session it goes
/// on with was told of them.
pub struct Tools {
    pub listed: Vec<Arc<dyn Tool>>,
    pub unlisted: Vec<Arc<dyn Tool>>,
}

/// `agent.toolset`: how long the list of tools is that a model is told of, and how long what it is told besides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Short for models that are known to be small.
    Auto,
    Short,
    Full,
}

impl Length {
    /// Reads the setting. Who names toolsets on the command line means them.
    pub fn read(base: &Base, options: &SessionOptions) -> Result<Self> {
        if !options.toolsets.is_empty() {
            return Ok(Self::Full);
        }
        match base.settings.string("agent.toolset")?.as_str() {
            "auto" | "" => Ok(Self::Auto),
            "short" => Ok(Self::Short),
            "full" => Ok(Self::Full),
            other => Err(Error::failed(format!("`agent.toolset` is `{other}`"))
                .with_hint("it is auto, short or full")),
        }
    }

    /// A short list is told in few words.
    pub fn wording(self, model: &ModelSize) -> Wording {
        if self.is_short(model) {
            Wording::Brief
        } else {
            Wording::Full
        }
    }

    fn is_short(self, model: &ModelSize) -> bool {
        match self {
            Self::Auto => model.is_small(),
            Self::Short => true,
            Self::Full => false,
        }
    }
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
    pub fn read(base: &Base) -> Result<Self> {
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
