//! `tool_search`, `tool_describe` and `tool_call`: many tools for the price of three.
//!
//! A hundred tools of MCP servers would fill every request with their schemas. These three let the model find a tool,
//! read its schema and call it, all of it only when it is wanted. The tools behind them are the [`Catalogue`].

mod call;
mod describe;
mod ranking;
mod search;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use hermes_core::text::nearest;
use hermes_core::{Exposure, Tool, ToolError};

static EXPOSURE: Exposure = Exposure::of_finder();

/// `tools.tool_search`: how many matches a search returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    pub matches_usual: usize,
    pub matches_max: usize,
}

/// Makes the three tools that stand before `tools`.
pub fn tool_search(tools: Vec<Arc<dyn Tool>>, limits: SearchLimits) -> Vec<Arc<dyn Tool>> {
    let catalogue = Arc::new(Catalogue::default());
    catalogue.replace(tools);
    finders(&catalogue, limits)
}

/// Makes the three tools that stand before a catalogue. What they say of it is how it is now.
pub fn finders(catalogue: &Arc<Catalogue>, limits: SearchLimits) -> Vec<Arc<dyn Tool>> {
    vec![
        search::make(Arc::clone(catalogue), limits),
        describe::make(Arc::clone(catalogue)),
        call::make(Arc::clone(catalogue)),
    ]
}

/// The tools that are found instead of listed. They come and go with their servers, also while a session runs.
#[derive(Default)]
pub struct Catalogue {
    tools: RwLock<Arc<Vec<Arc<dyn Tool>>>>,
}

impl Catalogue {
    pub fn replace(&self, tools: Vec<Arc<dyn Tool>>) {
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tools);
    }

    fn tools(&self) -> Arc<Vec<Arc<dyn Tool>>> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&tools)
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let tools = self.tools();
        tools.iter().find(|tool| tool.spec().name == name).cloned()
    }

    fn unknown(&self, name: &str) -> ToolError {
        let tools = self.tools();
        let names = tools.iter().map(|tool| tool.spec().name.as_str());
        let near = nearest(name, names);
        ToolError::Answer(if near.is_empty() {
            format!(
                "There is no tool `{name}` here. `{}` finds those that there are.",
                search::NAME
            )
        } else {
            format!(
                "There is no tool `{name}` here. Did you mean `{}`?",
                near.join("` or `")
            )
        })
    }

    /// What there is to find, in a few words: `github (26), other (1)`.
    fn summary(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let tools = self.tools();
        for tool in tools.iter() {
            *counts
                .entry(tool.exposure().server().unwrap_or("other"))
                .or_default() += 1;
        }
        let counts = counts
            .iter()
            .map(|(source, count)| format!("{source} ({count})"));
        counts.collect::<Vec<_>>().join(", ")
    }
}
