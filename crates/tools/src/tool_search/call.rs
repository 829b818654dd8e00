//! `tool_call`: runs a tool that a search found. Checks, consent and records are about that tool, not about this one.

use std::sync::Arc;

use hermes_core::{Effect, Exposure, Parallel, Plan, PlanContext, Tool, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Catalogue;
use crate::arguments;

const NAME: &str = "tool_call";

pub(super) fn make(catalogue: Arc<Catalogue>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: NAME.to_owned(),
        description:
            "Run a tool that `tool_search` found, with the arguments `tool_describe` shows."
                .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Its name, as it was found"},
                "arguments": {"type": "object", "description": "Its arguments", "properties": {}},
            },
            "required": ["name", "arguments"],
        }),
    };
    Arc::new(Call { spec, catalogue })
}

struct Call {
    spec: ToolSpec,
    catalogue: Arc<Catalogue>,
}

#[derive(Deserialize)]
struct Arguments {
    name: String,
    arguments: Map<String, Value>,
}

impl Tool for Call {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &super::EXPOSURE
    }

    fn stands_for(&self, arguments: &Value) -> Option<(Arc<dyn Tool>, Value)> {
        let Arguments { name, arguments } = Arguments::deserialize(arguments).ok()?;
        let tool = self.catalogue.find(&name)?;
        Some((tool, Value::Object(arguments)))
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        if let Some((real, arguments)) = self.stands_for(arguments) {
            return real.prepare(&arguments, cx);
        }
        let arguments = arguments::parse(NAME, arguments);
        Plan::doing(Effect::Read, Parallel::Always, move |_| {
            Box::pin(async move {
                let Arguments { name, .. } = arguments?;
                Err(self.catalogue.unknown(&name))
            })
        })
    }
}
