//! Tools for tests of the loop: they do what they are told and count how often.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hermes_core::{
    Action, Agreement, BoxFuture, Consent, Effect, ElicitationRequest, Exposure, Media, Parallel,
    Plan, PlanContext, Preview, PreviewContext, Tool, ToolContext, ToolError, ToolGroup,
    ToolOutput, ToolSpec,
};
use serde_json::{Value, json};

/// Time enough for a call to ask its question.
const ABANDONED_AFTER: Duration = Duration::from_millis(500);

/// A tool with one argument, `text`, that it gives back.
pub struct TestTool {
    spec: ToolSpec,
    exposure: Exposure,
    effect: Effect,
    parallel: Parallel,
    behaviour: Behaviour,
    consent: Consent,
    preview: Option<Preview>,
    real: Option<Arc<dyn Tool>>,
    changes: Vec<PathBuf>,
    runs: Arc<AtomicUsize>,
}

/// What a call of the tool does.
#[derive(Debug, Clone)]
pub enum Behaviour {
    /// Returns its text.
    Echo,
    /// Returns the same text whatever it is asked.
    Say(String),
    /// Returns this text behind the number of the call: never the same twice.
    Count(String),
    /// Returns pictures beside its text.
    Show(Vec<Media>),
    /// Waits first.
    After(Duration),
    Fail(String),
    Panic,
    /// Never returns, and does not listen either.
    Hang,
    /// Returns what was agreed to before it began.
    TellAgreement,
    /// Asks the person, and returns their response as JSON.
    Elicit(ElicitationRequest),
    /// Calls these tools at once with these arguments, and returns what each said, a line each.
    Use(Vec<(&'static str, Value)>),
    /// Calls this tool, and returns while that waits for the person.
    Abandon(&'static str, Value),
}

impl TestTool {
    pub fn new(name: &str) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "What to give back." },
                "count": { "type": "integer", "description": "Changes nothing." },
            },
        });
        Self {
            spec: ToolSpec {
                name: name.to_owned(),
                description: "A test tool.".into(),
                parameters,
            },
            exposure: exposure(name),
            effect: Effect::Effect,
            parallel: Parallel::Never,
            behaviour: Behaviour::Echo,
            consent: Consent::NotNeeded,
            preview: None,
            real: None,
            changes: Vec::new(),
            runs: Arc::default(),
        }
    }

    /// Without this it is of a toolset that nobody knows, or of the server that its name tells.
    pub fn exposure(mut self, exposure: Exposure) -> Self {
        self.exposure = exposure;
        self
    }

    pub fn described(mut self, description: &str) -> Self {
        self.spec.description = description.to_owned();
        self
    }

    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.parallel = parallel;
        self
    }

    pub fn does(mut self, behaviour: Behaviour) -> Self {
        self.behaviour = behaviour;
        self
    }

    pub fn consent(mut self, consent: Consent) -> Self {
        self.consent = consent;
        self
    }

    /// Shows this change before it runs. Without one, a call that must show one fails.
    pub fn preview(mut self, preview: Preview) -> Self {
        self.preview = Some(preview);
        self
    }

    /// Passes every call on to another tool, which gets the same arguments.
    pub fn stands_for(mut self, real: impl Tool + 'static) -> Self {
        self.real = Some(Arc::new(real));
        self
    }

    /// Says that its calls may change this file or folder.
    pub fn changes(mut self, path: impl Into<PathBuf>) -> Self {
        self.changes.push(path.into());
        self
    }

    /// How often the tool ran; stays valid after the tool is given away.
    pub fn runs(&self) -> Arc<AtomicUsize> {
        self.runs.clone()
    }
}

fn exposure(name: &str) -> Exposure {
    let server = name
        .strip_prefix("mcp__")
        .and_then(|rest| rest.split_once("__"));
    match server {
        Some((server, _)) => Exposure::of_server(server),
        None => Exposure::everywhere_but_in_scripts(ToolGroup::Toolset("test")),
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &self.exposure
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _: PlanContext<'_>) -> Plan {
        let call = TestCall {
            arguments: arguments.clone(),
            tool: Arc::clone(&self),
        };
        Plan {
            consent: self.consent.clone(),
            changes: self.changes.clone(),
            ..Plan::new(self.effect, self.parallel.clone(), call)
        }
    }

    fn stands_for(&self, arguments: &Value) -> Option<(Arc<dyn Tool>, Value)> {
        Some((self.real.clone()?, arguments.clone()))
    }
}

struct TestCall {
    tool: Arc<TestTool>,
    arguments: Value,
}

impl Action for TestCall {
    fn preview<'a>(
        &'a self,
        _: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        let missing = || ToolError::Answer("it would not work".to_owned());
        let preview = self.tool.preview.clone().ok_or_else(missing);
        Box::pin(async { preview.map(Some) })
    }

    fn run(self: Box<Self>, cx: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(self.tool.act(self.arguments, cx))
    }
}

impl TestTool {
    async fn act(
        self: Arc<Self>,
        arguments: Value,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let text = arguments
            .get("text")
            .and_then(Value::as_str)
            .unwrap_or("done")
            .to_owned();
        match &self.behaviour {
            Behaviour::Echo => Ok(ToolOutput::text(text)),
            Behaviour::Say(words) => Ok(ToolOutput::text(words)),
            Behaviour::Count(words) => Ok(ToolOutput::text(format!("{number} {words}"))),
            Behaviour::Show(images) => Ok(ToolOutput::text(text).with_images(images.clone())),
            Behaviour::After(wait) => {
                tokio::time::sleep(*wait).await;
                Ok(ToolOutput::text(text))
            }
            Behaviour::Fail(words) => Err(ToolError::Answer(words.clone())),
            Behaviour::Panic => panic!("a scripted panic"),
            Behaviour::Hang => std::future::pending().await,
            Behaviour::TellAgreement => {
                let Agreement {
                    covers,
                    basis,
                    pass,
                } = &cx.agreement;
                let seen = basis.as_deref().unwrap_or("nothing");
                let mut told = format!("{}, seen: {seen}", covers.join("+"));
                if !pass.is_inside() {
                    told.push_str(&format!(", {pass:?}"));
                }
                Ok(ToolOutput::text(told))
            }
            Behaviour::Elicit(ask) => {
                let response = cx.person.elicit(ask.clone()).await;
                Ok(ToolOutput::text(json!(response).to_string()))
            }
            Behaviour::Abandon(tool, arguments) => {
                let call = cx.toolbox.call(tool, arguments.clone());
                let _ = tokio::time::timeout(ABANDONED_AFTER, call).await;
                Ok(ToolOutput::text(text))
            }
            Behaviour::Use(calls) => {
                let calls = calls.iter().map(|(tool, arguments)| async move {
                    match cx.toolbox.call(tool, arguments.clone()).await {
                        Ok(output) => format!("ok: {}", output.text),
                        Err(error) => format!("error: {error}"),
                    }
                });
                let said = futures_util::future::join_all(calls).await;
                Ok(ToolOutput::text(said.join("\n")))
            }
        }
    }
}
