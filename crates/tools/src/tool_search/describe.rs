//! `tool_describe`: the whole description and schema of a tool that a search found.

use std::path::Path;
use std::sync::Arc;

use hermes_core::{
    BoxFuture, Effect, Parallel, Tool, ToolContext, ToolError, ToolOutput, ToolSpec,
};
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
            let Arguments { name } = arguments::parse(NAME, arguments)?;
            let tool = self.catalogue.find(&name);
            let tool = tool.ok_or_else(|| self.catalogue.unknown(&name))?;
            Ok(ToolOutput::text(json!(tool.spec()).to_string()))
        })
    }
}
