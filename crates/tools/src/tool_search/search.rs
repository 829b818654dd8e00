//! `tool_search`: finds tools by what they do.

use std::path::Path;
use std::sync::Arc;

use hermes_core::text::shorten;
use hermes_core::{
    BoxFuture, Effect, Parallel, Tool, ToolContext, ToolError, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Catalogue, SearchLimits, ranking, server_of};
use crate::arguments;

pub(super) const NAME: &str = "tool_search";

/// Enough to choose by; `tool_describe` tells the rest.
const DESCRIPTION_CHARS_MAX: usize = 400;

/// Small models look for programs here (`wc`) and give up when there are none.
const NOTHING_FOUND: &str = "No unlisted tool does that. The tools you were given at the start are not searched: call the one \
     that fits. A program or shell command is run with the tool for commands, if you were given one.";

pub(super) fn make(catalogue: Arc<Catalogue>, limits: SearchLimits) -> Arc<dyn Tool> {
    let there_are = match catalogue.tools().len() {
        0 => "Those of servers come with them".to_owned(),
        count => {
            let summary = shorten(&catalogue.summary(), DESCRIPTION_CHARS_MAX);
            format!("There are {count} more, of: {summary}")
        }
    };
    let spec = ToolSpec {
        name: NAME.to_owned(),
        description: format!(
            "Find a tool that is not listed here by what it does. {there_are}. Then `tool_describe` shows its \
             arguments and `tool_call` runs it.",
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "A few words: the service, the thing, the action"},
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!("Matches at most (default {}, up to {})", limits.matches_usual, limits.matches_max),
                },
            },
            "required": ["query"],
        }),
    };
    Arc::new(Search {
        spec,
        catalogue,
        limits,
    })
}

struct Search {
    spec: ToolSpec,
    catalogue: Arc<Catalogue>,
    limits: SearchLimits,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    limit: Option<usize>,
}

impl Search {
    fn matches(&self, query: &str, limit: usize) -> Vec<Value> {
        let tools = self.catalogue.tools();
        let specs: Vec<&ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
        let best = ranking::best(query, &specs, limit);
        best.into_iter().map(shown).collect()
    }
}

fn shown(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "source": if server_of(&spec.name).is_some() { "mcp" } else { "other" },
        "source_name": server_of(&spec.name),
        "description": shorten(&spec.description, DESCRIPTION_CHARS_MAX),
    })
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Read
    }

    fn parallel(&self, _arguments: &Value, _cwd: &Path) -> Parallel {
        Parallel::Always
    }

    fn run<'a>(
        &'a self,
        arguments: Value,
        _cx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Arguments { query, limit } = arguments::parse(NAME, arguments)?;
            let limit = limit.unwrap_or(self.limits.matches_usual);
            let matches = self.matches(&query, limit.clamp(1, self.limits.matches_max));
            let is_empty = matches.is_empty();
            let mut found = json!({
                "query": query,
                "total_available": self.catalogue.tools().len(),
                "matches": matches,
            });
            if is_empty {
                found["hint"] = json!(NOTHING_FOUND);
            }
            Ok(ToolOutput::text(found.to_string()))
        })
    }
}
