//! `tool_call`: runs a tool that a search found. Checks, consent and records are about that tool, not about this one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{
    BoxFuture, Consent, Effect, Parallel, Preview, PreviewContext, SessionId, Tool, ToolContext,
    ToolError, ToolOutput, ToolSpec,
};
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

    fn stands_for(&self, arguments: &Value) -> Option<(Arc<dyn Tool>, Value)> {
        let Arguments { name, arguments } = Arguments::deserialize(arguments).ok()?;
        let tool = self.catalogue.find(&name)?;
        Some((tool, Value::Object(arguments)))
    }

    fn effect(&self, arguments: &Value) -> Effect {
        let real = self.stands_for(arguments);
        real.map_or(Effect::Read, |(tool, arguments)| tool.effect(&arguments))
    }

    fn parallel(&self, arguments: &Value, cwd: &Path) -> Parallel {
        let real = self.stands_for(arguments);
        real.map_or(Parallel::Always, |(tool, arguments)| {
            tool.parallel(&arguments, cwd)
        })
    }

    fn consent(&self, arguments: &Value, session: &SessionId, cwd: &Path) -> Consent {
        let real = self.stands_for(arguments);
        real.map_or(Consent::NotNeeded, |(tool, arguments)| {
            tool.consent(&arguments, session, cwd)
        })
    }

    fn preview<'a>(
        &'a self,
        arguments: &'a Value,
        cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(async move {
            match self.stands_for(arguments) {
                Some((tool, arguments)) => tool.preview(&arguments, cx).await,
                None => Ok(None),
            }
        })
    }

    fn touched(&self, arguments: &Value, cwd: &Path) -> Vec<PathBuf> {
        let real = self.stands_for(arguments);
        real.map_or_else(Vec::new, |(tool, arguments)| tool.touched(&arguments, cwd))
    }

    fn run<'a>(
        &'a self,
        arguments: Value,
        cx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Arguments { name, arguments } = arguments::parse(NAME, arguments)?;
            let tool = self.catalogue.find(&name);
            let tool = tool.ok_or_else(|| self.catalogue.unknown(&name))?;
            tool.run(Value::Object(arguments), cx).await
        })
    }
}
