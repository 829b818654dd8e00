//! `tool_describe`: the whole description and schema of a tool that a search found.

use std::sync::Arc;

use hermes_core::{Effect, Exposure, Parallel, Plan, PlanContext, Tool, ToolOutput, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Catalogue;
use crate::arguments;

const NAME: &str = "tool_describe";

pub(super) fn make(catalogue: Arc<Catalogue>) -> Arc<dyn Tool> {
    let spec = ToolSpec {
        name: NAME.to_owned(),
        description: "Read the description and the arguments of a tool that `tool_search` found."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {"name": {"type": "string", "description": "Its name, as it was found"}},
            "required": ["name"],
        }),
    };
    Arc::new(Describe { spec, catalogue })
}

struct Describe {
    spec: ToolSpec,
    catalogue: Arc<Catalogue>,
}

#[derive(Deserialize)]
struct Arguments {
    name: String,
}

impl Tool for Describe {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &super::EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = arguments::parse(NAME, arguments);
        Plan::doing(Effect::Read, Parallel::Always, move |_| {
            Box::pin(async move {
                let Arguments { name } = arguments?;
                let tool = self.catalogue.find(&name);
                let tool = tool.ok_or_else(|| self.catalogue.unknown(&name))?;
                Ok(ToolOutput::text(json!(tool.spec()).to_string()))
            })
        })
    }
}
