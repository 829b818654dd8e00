//! `clarify`: a question to the user, through whatever surface they are at.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hermes_core::schedule::CRON_SOURCE;
use hermes_core::text::shorten;
use hermes_core::{
    Effect, ElicitationRequest, Exposure, Field, FieldKind, FieldOption, Parallel, Plan,
    PlanContext, Response, Scripts, Subagents, Surfaces, Tool, ToolContext, ToolError, ToolGroup,
    ToolOutput, ToolSpec, Wanted,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{BuiltIn, ToolPorts, arguments};

const NAME: &str = "clarify";

/// As many as a person takes in at a glance.
const CHOICES_MAX: usize = 4;
/// A question is read in a terminal; a longer one is a document.
const QUESTION_CHARS_MAX: usize = 4000;
const CHOICE_CHARS_MAX: usize = 500;
/// What the form calls the answer.
const ANSWER: &str = "answer";

/// What the model does with a question that nobody answers.
const CHOOSE_YOURSELF: &str =
    "Choose what serves the task best, say what you assumed, and go on without asking again.";

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: NAME,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("clarify"),
    // Nobody is there when a schedule asks.
    surfaces: Surfaces::Except(&[CRON_SOURCE]),
    subagents: Subagents::None,
    scripts: Scripts::No,
    for_small_models: None,
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(Clarify {
        timeout: ports.limits.clarify_timeout,
    })
}

/// One for all conversations.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Ask the user, and wait for the answer: when the task is ambiguous, or a decision is theirs. Not \
                      for permission to run commands, which is asked for by itself. With `choices` they can still \
                      answer in their own words."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "question": {"type": "string", "description": "One question"},
                "choices": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Up to 4 likely answers; leave out for an open question",
                },
            },
            "required": ["question"],
        }),
    }
}

struct Clarify {
    timeout: Duration,
}

#[derive(Deserialize)]
struct Arguments {
    question: String,
    choices: Option<Vec<String>>,
}

impl Tool for Clarify {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = arguments::parse(NAME, arguments);
        // Asking again after a crash does no harm.
        Plan::doing(Effect::Read, Parallel::Never, move |cx| {
            Box::pin(async move { self.ask(arguments?, cx).await })
        })
    }
}

impl Clarify {
    async fn ask(&self, arguments: Arguments, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let question = shorten(arguments.question.trim(), QUESTION_CHARS_MAX);
        if question.is_empty() {
            let text = "`question` is empty; write what you want to know.";
            return Err(ToolError::Answer(text.to_owned()));
        }
        let choices = offered(arguments.choices.unwrap_or_default());
        let asking = cx.person.elicit(ElicitationRequest {
            asker: "the agent".to_owned(),
            message: question.clone(),
            wanted: wanted(&choices),
            timeout: self.timeout,
        });
        let response = asking.await;
        if cx.stop.is_cancelled() {
            let text = "The user interrupted instead of answering.";
            return Err(ToolError::Stopped(text.to_owned()));
        }
        let answer = json!({
            "question": question,
            "choices_offered": choices,
            "user_response": self.heard(response),
        });
        Ok(ToolOutput::text(answer.to_string()))
    }

    fn heard(&self, response: Response) -> String {
        match response {
            Response::Accepted { values } => said(&values),
            nobody if nobody == Response::nobody() => {
                format!("[nobody is here to answer. {CHOOSE_YOURSELF}]")
            }
            Response::Declined { .. } => {
                format!("[the user does not want to answer. {CHOOSE_YOURSELF}]")
            }
            Response::Cancelled => format!(
                "[no answer within {} s. {CHOOSE_YOURSELF}]",
                self.timeout.as_secs()
            ),
        }
    }
}

fn said(values: &Map<String, Value>) -> String {
    let answer = values.get(ANSWER).and_then(Value::as_str);
    answer.unwrap_or_default().to_owned()
}

/// The choices worth showing: none empty, none twice, not too many.
fn offered(choices: Vec<String>) -> Vec<String> {
    let mut offered: Vec<String> = Vec::new();
    for choice in choices {
        let choice = shorten(choice.trim(), CHOICE_CHARS_MAX);
        if !choice.is_empty() && !offered.contains(&choice) && offered.len() < CHOICES_MAX {
            offered.push(choice);
        }
    }
    offered
}

fn wanted(choices: &[String]) -> Wanted {
    let kind = match choices {
        [] => FieldKind::Text {
            chars_min: None,
            chars_max: None,
            format: None,
            default: None,
        },
        choices => FieldKind::Suggestions {
            options: choices.iter().map(|choice| option(choice)).collect(),
        },
    };
    let field = Field {
        is_required: true,
        ..Field::new(ANSWER, kind)
    };
    Wanted::Form {
        fields: vec![field],
    }
}

fn option(choice: &str) -> FieldOption {
    FieldOption {
        value: choice.to_owned(),
        title: None,
    }
}
