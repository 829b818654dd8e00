//! The five tools of Honcho, by the names that its users know.

use std::sync::{Arc, LazyLock};

use hermes_core::text::shorten;
use hermes_core::{
    Consent, Effect, Exposure, Need, Parallel, Plan, PlanContext, Scripts, Subagents, Surfaces,
    Tool, ToolContext, ToolError, ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{HonchoError, HonchoUserModel, Level};
use crate::threats;

/// Characters of a card: 40 lines of 200.
const CARD_LINES_MAX: usize = 40;
const CARD_LINE_CHARS_MAX: usize = 200;

/// Tokens of what a search shows.
const SEARCH_TOKENS_DEFAULT: usize = 800;
const SEARCH_TOKENS_MAX: usize = 2_000;
const CHARS_OF_TOKEN: usize = 4;

/// Messages that a search asks for.
const FOUND_MAX: usize = 10;

/// Characters of a conclusion.
const CONCLUSION_CHARS_MAX: usize = 1_000;

/// Characters of what is known of somebody.
const CONTEXT_CHARS_MAX: usize = 8_000;

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("memory"),
    surfaces: Surfaces::Every,
    // They work for the parent, which knows whom it is for.
    subagents: Subagents::None,
    scripts: Scripts::No,
    for_small_models: None,
};

pub(super) fn all(model: &HonchoUserModel) -> Vec<Arc<dyn Tool>> {
    let tool = |kind: Kind| -> Arc<dyn Tool> {
        Arc::new(HonchoTool {
            kind,
            model: model.clone(),
        })
    };
    Kind::ALL.into_iter().map(tool).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Profile,
    Search,
    Context,
    Reasoning,
    Conclude,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Profile,
        Self::Search,
        Self::Context,
        Self::Reasoning,
        Self::Conclude,
    ];

    /// One for all conversations.
    fn spec(self) -> &'static ToolSpec {
        static SPECS: LazyLock<Vec<ToolSpec>> =
            LazyLock::new(|| Kind::ALL.into_iter().map(spec).collect());
        let at = Self::ALL.iter().position(|kind| *kind == self);
        &SPECS[at.unwrap_or_default()]
    }
}

fn spec(kind: Kind) -> ToolSpec {
    let peer =
        json!({"type": "string", "enum": ["user", "ai"], "description": "Whom (default user)"});
    let text = |description: &str| json!({"type": "string", "description": description});
    let (name, description, properties, required) = match kind {
        Kind::Profile => (
            "honcho_profile",
            "The card of the user: short lasting facts. With `card`, replaces all of it.",
            json!({
                "peer": peer,
                "card": {"type": "array", "items": {"type": "string"}, "description": "The new lines"},
            }),
            json!([]),
        ),
        Kind::Search => (
            "honcho_search",
            "Find what the user said and what is known of them about something. Raw excerpts, no summary.",
            json!({
                "query": text("What about"),
                "max_tokens": {"type": "integer", "description": "At most so much, up to 2000 (default 800)"},
                "peer": peer,
            }),
            json!(["query"]),
        ),
        Kind::Context => (
            "honcho_context",
            "Everything known of the user: card and representation.",
            json!({"peer": peer}),
            json!([]),
        ),
        Kind::Reasoning => (
            "honcho_reasoning",
            "Ask a question about the user; Honcho thinks and answers. Slower than the others.",
            json!({
                "query": text("The question"),
                "reasoning_level": {
                    "type": "string", "enum": ["minimal", "low", "medium", "high", "max"],
                    "description": "How much it thinks",
                },
                "peer": peer,
            }),
            json!(["query"]),
        ),
        Kind::Conclude => (
            "honcho_conclude",
            "Keep one lasting fact about the user, delete one, or list them. Exactly one of conclusion, delete_id and list.",
            json!({
                "conclusion": text("The fact"),
                "delete_id": text("The id of one from a list"),
                "list": {"type": "boolean", "description": "List them"},
                "query": text("With list: only those about this"),
                "peer": peer,
            }),
            json!([]),
        ),
    };
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({"type": "object", "properties": properties, "required": required}),
    }
}

struct HonchoTool {
    kind: Kind,
    model: HonchoUserModel,
}

#[derive(Debug, Default, Deserialize)]
struct Arguments {
    peer: Option<String>,
    card: Option<Vec<String>>,
    query: Option<String>,
    max_tokens: Option<usize>,
    reasoning_level: Option<String>,
    conclusion: Option<String>,
    delete_id: Option<String>,
    list: Option<bool>,
}

impl Arguments {
    fn writes(&self, kind: Kind) -> bool {
        match kind {
            Kind::Profile => self.card.is_some(),
            Kind::Conclude => self.conclusion.is_some() || self.delete_id.is_some(),
            _ => false,
        }
    }

    fn query(&self) -> Result<&str, ToolError> {
        let query = self.query.as_deref().map(str::trim);
        query
            .filter(|query| !query.is_empty())
            .ok_or_else(|| ToolError::Answer("say in `query` what you want to know".to_owned()))
    }
}

impl Tool for HonchoTool {
    fn spec(&self) -> &ToolSpec {
        self.kind.spec()
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = Arguments::deserialize(arguments).map_err(|error| {
            ToolError::Answer(format!(
                "the arguments of `{}` do not fit its schema: {error}; call it again",
                self.spec().name
            ))
        });
        let writes = matches!(&arguments, Ok(arguments) if arguments.writes(self.kind));
        let (effect, consent) = match (writes, &arguments) {
            // A conclusion that is made twice is there twice.
            (true, Ok(arguments)) if arguments.conclusion.is_some() => {
                (Effect::Effect, self.consent())
            }
            (true, _) => (Effect::Idempotent, self.consent()),
            (false, _) => (Effect::Read, Consent::NotNeeded),
        };
        let plan = Plan::doing(effect, Parallel::Always, move |cx| {
            Box::pin(async move {
                let said = self.run(&arguments?, cx).await?;
                Ok(ToolOutput::text(said.to_string()))
            })
        });
        Plan { consent, ..plan }
    }
}

impl HonchoTool {
    fn consent(&self) -> Consent {
        if !self.model.write_approval {
            return Consent::NotNeeded;
        }
        Consent::Needed(Need {
            reason: "changes what Honcho knows of the user (`memory.write_approval`)".to_owned(),
            ..Need::default()
        })
    }

    async fn run(&self, arguments: &Arguments, cx: &ToolContext) -> Result<Value, ToolError> {
        let answer = self.answer(arguments);
        tokio::select! {
            answer = answer => answer,
            () = cx.stop.cancelled() => Err(ToolError::Stopped("stopped".to_owned())),
        }
    }

    async fn answer(&self, arguments: &Arguments) -> Result<Value, ToolError> {
        let peer = self.peer(arguments)?;
        match self.kind {
            Kind::Profile => self.profile(arguments, &peer).await,
            Kind::Search => self.search(arguments, &peer).await,
            Kind::Context => {
                let honcho = &self.model.honcho;
                let known = honcho.context(&peer, self.model.timeout()).await;
                let known = known.map_err(|error| self.failure(error))?;
                Ok(json!({
                    "card": safe_lines(known.card),
                    "representation": shorten(&safe(&known.representation), CONTEXT_CHARS_MAX),
                }))
            }
            Kind::Reasoning => self.reason(arguments, &peer).await,
            Kind::Conclude => self.conclude(arguments, &peer).await,
        }
    }

    /// Whom a call is about. Nobody is asked about anybody else.
    fn peer(&self, arguments: &Arguments) -> Result<String, ToolError> {
        let (user, ai) = (self.model.peer(), &self.model.honcho.settings.ai_peer);
        match arguments.peer.as_deref() {
            None | Some("" | "user") => Ok(user),
            Some("ai") => Ok(ai.clone()),
            Some(name) if name == user || name == ai => Ok(name.to_owned()),
            Some(other) => Err(ToolError::Answer(format!(
                "`{other}` is nobody in this conversation; `peer` is user or ai"
            ))),
        }
    }

    fn failure(&self, error: HonchoError) -> ToolError {
        ToolError::Answer(format!(
            "Honcho could not be asked: {error}; go on without it"
        ))
    }

    async fn profile(&self, arguments: &Arguments, peer: &str) -> Result<Value, ToolError> {
        let (honcho, timeout) = (&self.model.honcho, self.model.timeout());
        let Some(card) = &arguments.card else {
            let known = honcho.context(peer, timeout).await;
            let known = known.map_err(|error| self.failure(error))?;
            return Ok(json!({"card": safe_lines(known.card)}));
        };
        if card.len() > CARD_LINES_MAX {
            return Err(ToolError::Answer(format!(
                "a card has at most {CARD_LINES_MAX} lines, and this one {}",
                card.len()
            )));
        }
        let lines: Result<Vec<String>, ToolError> = card
            .iter()
            .map(|line| kept(line, CARD_LINE_CHARS_MAX))
            .collect();
        let card = honcho.set_card(peer, &lines?, timeout).await;
        let card = card.map_err(|error| self.failure(error))?;
        Ok(json!({"card": card}))
    }

    async fn search(&self, arguments: &Arguments, peer: &str) -> Result<Value, ToolError> {
        let query = arguments.query()?;
        let (honcho, timeout) = (&self.model.honcho, self.model.timeout());
        let (known, said) = tokio::join!(
            honcho.representation(peer, query, timeout),
            honcho.search(peer, query, FOUND_MAX, timeout)
        );
        let known = known.map_err(|error| self.failure(error))?;
        let said = said.map_err(|error| self.failure(error))?;
        let tokens = arguments.max_tokens.unwrap_or(SEARCH_TOKENS_DEFAULT);
        let mut room = tokens.clamp(50, SEARCH_TOKENS_MAX) * CHARS_OF_TOKEN;
        let known = shorten(&safe(&known), room / 2);
        room = room.saturating_sub(known.chars().count());
        let mut shown = Vec::new();
        for (at, words) in said {
            let words = shorten(&words, room);
            room = room.saturating_sub(words.chars().count());
            if room == 0 {
                break;
            }
            if threats::find(&words).is_none() {
                shown.push(json!({"at": at, "said": words}));
            }
        }
        Ok(json!({"known": known, "said": shown}))
    }

    async fn reason(&self, arguments: &Arguments, peer: &str) -> Result<Value, ToolError> {
        let query = arguments.query()?;
        let settings = &self.model.honcho.settings;
        let wanted = arguments.reasoning_level.as_deref().and_then(Level::named);
        let level = wanted.unwrap_or_else(|| settings.level_for(query));
        let answer = self
            .model
            .honcho
            .chat(peer, query, level, self.model.timeout());
        let answer = answer.await.map_err(|error| self.failure(error))?;
        Ok(match answer {
            Some(answer) => json!({"answer": shorten(&safe(&answer), settings.answer_chars_max)}),
            None => json!({"answer": super::super::ask::NOT_KNOWN}),
        })
    }

    async fn conclude(&self, arguments: &Arguments, peer: &str) -> Result<Value, ToolError> {
        let (honcho, timeout) = (&self.model.honcho, self.model.timeout());
        let failure = |error| self.failure(error);
        let wants_list = arguments.list == Some(true);
        match (&arguments.conclusion, &arguments.delete_id, wants_list) {
            (Some(conclusion), None, false) => {
                let words = kept(conclusion, CONCLUSION_CHARS_MAX)?;
                let id = honcho.conclude(peer, &words, timeout).await;
                Ok(json!({"kept": words, "id": id.map_err(failure)?}))
            }
            (None, Some(id), false) => {
                let deleted = honcho.delete_conclusion(id, timeout).await;
                deleted.map_err(failure)?;
                Ok(json!({"deleted": id}))
            }
            (None, None, true) => {
                let about = arguments.query.as_deref();
                let listed = honcho.conclusions(peer, about, timeout).await;
                let listed: Vec<Value> = listed
                    .map_err(failure)?
                    .into_iter()
                    .filter(|(_, words)| threats::find(words).is_none())
                    .map(|(id, words)| json!({"id": id, "conclusion": words}))
                    .collect();
                Ok(json!({"conclusions": listed}))
            }
            _ => Err(ToolError::Answer(
                "give exactly one of `conclusion`, `delete_id` and `list`".to_owned(),
            )),
        }
    }
}

/// Words that may be sent there.
fn kept(words: &str, chars_max: usize) -> Result<String, ToolError> {
    let words = words.trim();
    let refused = |why: String| Err(ToolError::Answer(why));
    if words.is_empty() || words.chars().count() > chars_max {
        return refused(format!("it has 1 to {chars_max} characters"));
    }
    if let Some(threat) = threats::find(words) {
        return refused(format!("not kept, because it {}", threat.what));
    }
    if hermes_core::redact::redact(words) != words {
        return refused("not kept, because it holds a key or a password".to_owned());
    }
    Ok(words.to_owned())
}

/// Lines that do not steer a model.
fn safe(text: &str) -> String {
    let lines = text.lines().filter(|line| threats::find(line).is_none());
    lines.collect::<Vec<_>>().join("\n")
}

fn safe_lines(lines: Vec<String>) -> Vec<String> {
    let is_safe = |line: &String| threats::find(line).is_none();
    lines.into_iter().filter(is_safe).collect()
}
