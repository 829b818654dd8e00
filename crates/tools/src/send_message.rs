//! `send_message`: words for a chat that this conversation is not in.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hermes_core::deliver::{Arrival, Deliver, DeliverError, DeliveryId, Place};
use hermes_core::schedule::CRON_SOURCE;
use hermes_core::text::shorten;
use hermes_core::{
    BoxFuture, Consent, Effect, Exposure, Need, Parallel, Plan, PlanContext, Scripts, Subagents,
    Surfaces, Tool, ToolContext, ToolError, ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments;

const NAME: &str = "send_message";
/// How long a message is waited for; then it is on its way.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(100);
const PLACES_MAX: usize = 50;
/// Of what a person is shown before they agree.
const SHOWN_CHARS_MAX: usize = 300;

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("messaging"),
    // What a job has to say goes where the job says.
    surfaces: Surfaces::Except(&[CRON_SOURCE]),
    subagents: Subagents::None,
    scripts: Scripts::No,
    for_small_models: None,
};

/// The tool over the chats of a home. Without a way to them it is only looked at.
pub fn send_message(chats: Option<Arc<dyn Deliver>>) -> Arc<dyn Tool> {
    Arc::new(SendMessage { chats })
}

fn spec() -> &'static ToolSpec {
    static SPEC: OnceLock<ToolSpec> = OnceLock::new();
    SPEC.get_or_init(|| ToolSpec {
        name: NAME.to_owned(),
        description: "Sends a message to a chat other than this conversation; `list` shows the chats. \
                      Answers here need no tool."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {"type": "string", "enum": ["send", "list"], "description": "Default: send"},
                "target": {
                    "type": "string",
                    "description": "PLATFORM (its home chat), PLATFORM:CHAT[:THREAD] or PLATFORM:NAME",
                },
                "message": {
                    "type": "string",
                    "description": "Markdown; a line MEDIA:/absolute/path attaches a file",
                },
            },
        }),
    })
}

struct SendMessage {
    chats: Option<Arc<dyn Deliver>>,
}

#[derive(Deserialize)]
struct Arguments {
    action: Option<String>,
    target: Option<String>,
    message: Option<String>,
}

impl Tool for SendMessage {
    fn spec(&self) -> &ToolSpec {
        spec()
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let is_list = arguments::text(arguments, "action") == Some("list");
        let target = arguments::text(arguments, "target").unwrap_or_default();
        let message = arguments::text(arguments, "message").unwrap_or_default();
        let consent = if is_list {
            Consent::NotNeeded
        } else {
            need(target, message)
        };
        let effect = if is_list {
            Effect::Read
        } else {
            Effect::Effect
        };
        let arguments = arguments::parse::<Arguments>(NAME, arguments);
        let plan = Plan::doing(effect, Parallel::Never, move |cx: &ToolContext| {
            Box::pin(async move { self.act(arguments?, cx).await })
                as BoxFuture<'_, Result<ToolOutput, ToolError>>
        });
        Plan { consent, ..plan }
    }
}

/// A home chat is the owner's own; whatever goes elsewhere speaks in the owner's name.
fn need(target: &str, message: &str) -> Consent {
    let is_home = !target.contains(':');
    let has_file = message.contains("MEDIA:");
    if is_home && !has_file {
        return Consent::NotNeeded;
    }
    Consent::Needed(Need {
        reason: "speaks in your name".to_owned(),
        what: Some(format!(
            "to {target}: {}",
            shorten(message, SHOWN_CHARS_MAX)
        )),
        ..Need::default()
    })
}

impl SendMessage {
    async fn act(&self, arguments: Arguments, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let unreachable = || ToolError::Answer("no chat platform is set up".to_owned());
        let chats = self.chats.as_ref().ok_or_else(unreachable)?;
        if arguments.action.as_deref() == Some("list") {
            let places = chats.places().await.map_err(told)?;
            return Ok(ToolOutput::text(listed(&places).to_string()));
        }
        let needed = |value: Option<String>, name: &str| {
            value
                .filter(|value| !value.trim().is_empty())
                .ok_or_else(|| ToolError::Answer(format!("`{name}` is missing")))
        };
        let target = needed(arguments.target, "target")?;
        let message = needed(arguments.message, "message")?;
        chats.check(&target).map_err(told)?;
        // The same call is delivered once, also when a crash makes it twice.
        let key = format!("call/{}/{}", cx.session, cx.call);
        let id = chats.deliver(&key, &target, message).await.map_err(told)?;
        tokio::select! {
            answer = arrived(chats.as_ref(), &id) => answer,
            () = cx.stop.cancelled() => Ok(ToolOutput::text("it is on its way".to_owned())),
        }
    }
}

/// Waits a little for the platform's word.
async fn arrived(chats: &dyn Deliver, id: &DeliveryId) -> Result<ToolOutput, ToolError> {
    let looked = tokio::time::timeout(PATIENCE, async {
        loop {
            match chats.status(id).await.map_err(told)? {
                Arrival::OnItsWay => tokio::time::sleep(LOOK).await,
                Arrival::Arrived { message } => {
                    return Ok(json!({"sent": true, "message_id": message}));
                }
                Arrival::Unknown { why } => {
                    return Ok(json!({"sent": "unknown", "why": why}));
                }
                Arrival::Failed { error } => return Err(ToolError::Answer(error)),
            }
        }
    })
    .await;
    let waiting = "it waits in the outbox and is sent as soon as the gateway reaches the platform";
    let answer = looked.unwrap_or_else(|_| Ok(json!({"sent": false, "why": waiting})))?;
    Ok(ToolOutput::text(answer.to_string()))
}

fn listed(places: &[Place]) -> Value {
    let shown = places.iter().take(PLACES_MAX).map(|place| {
        json!({"target": place.target, "name": place.name, "kind": place.kind, "home": place.is_home})
    });
    json!({"chats": shown.collect::<Vec<_>>()})
}

fn told(error: DeliverError) -> ToolError {
    ToolError::Answer(format!("{}; {}", error.message, error.hint))
}
