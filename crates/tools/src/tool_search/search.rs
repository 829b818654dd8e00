//! `tool_search`: finds tools by what they do.

use std::sync::Arc;

use hermes_core::text::shorten;
use hermes_core::{
    Brief, Effect, Exposure, Parallel, Plan, PlanContext, Tool, ToolError, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Catalogue, SearchLimits, ranking};
use crate::arguments;

pub(super) const NAME: &str = "tool_search";

static EXPOSURE: Exposure = Exposure::of_finder_for_small_models(Brief {
    description: "Find a further tool, for work that none of the tools above can do.",
    parameters: &["query"],
    example: None,
});

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
    fn search(&self, arguments: Arguments) -> Result<ToolOutput, ToolError> {
        let Arguments { query, limit } = arguments;
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
    }

    fn matches(&self, query: &str, limit: usize) -> Vec<Value> {
        let tools = self.catalogue.tools();
        let specs: Vec<&ToolSpec> = tools.iter().map(|tool| tool.spec()).collect();
        let best = ranking::best(query, &specs, limit);
        let named = |spec: &ToolSpec| tools.iter().find(|tool| tool.spec().name == spec.name);
        let found = best.into_iter().filter_map(named);
        found.map(|tool| shown(tool.as_ref())).collect()
    }
}

fn shown(tool: &dyn Tool) -> Value {
    let (spec, server) = (tool.spec(), tool.exposure().server());
    json!({
        "name": spec.name,
        "source": if server.is_some() { "mcp" } else { "other" },
        "source_name": server,
        "description": shorten(&spec.description, DESCRIPTION_CHARS_MAX),
    })
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = arguments::parse(NAME, arguments);
        Plan::doing(Effect::Read, Parallel::Always, move |_| {
            Box::pin(async move { self.search(arguments?) })
        })
    }
}
