//! `session_search`: the model's way to earlier conversations.

use std::sync::{Arc, LazyLock};

use hermes_core::{
    Effect, Exposure, Parallel, Plan, PlanContext, Role, Scripts, SessionId, StoreError, Subagents,
    Surfaces, Tool, ToolContext, ToolError, ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{BOOKEND, Found, Recall, Sort, Wanted, view};
use hermes_core::SpokenFrom;

const NAME: &str = "session_search";

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset(NAME),
    surfaces: Surfaces::Every,
    subagents: Subagents::All,
    scripts: Scripts::No,
    for_small_models: None,
};

const LIMIT_DEFAULT: i64 = 3;
const LIMIT_MAX: i64 = 10;
const WINDOW_DEFAULT: i64 = 5;
const WINDOW_MAX: i64 = 20;

/// The tool over the conversations of a home.
pub fn tool(recall: Recall) -> Arc<dyn Tool> {
    Arc::new(SessionSearch {
        recall: Some(recall),
    })
}

/// The tool where there are no conversations yet, and nobody calls it.
pub fn tool_to_look_at() -> Arc<dyn Tool> {
    Arc::new(SessionSearch { recall: None })
}

/// One for all conversations: each would have kilobytes of it.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Find what was said in earlier conversations, and in parts of this one that were compacted. With \
                      `query`: the conversations that say something about it. With `session_id` and \
                      `around_message_id`: the messages around one. With `session_id`: how it began and ended. Without \
                      any: the newest conversations."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words, a \"phrase\", begin*, OR, NOT; or a question"},
                "limit": {"type": "integer", "description": "Conversations, 1-10 (default 3)"},
                "sort": {"type": "string", "enum": ["newest", "oldest"], "description": "Instead of the best first"},
                "summarize": {"type": "boolean", "description": "A summary of each instead of its messages"},
                "session_id": {"type": "string", "description": "A conversation from a result"},
                "around_message_id": {"type": "integer", "description": "A message id from a result"},
                "window": {"type": "integer", "description": "Messages before and after it, 1-20 (default 5)"},
                "role_filter": {"type": "string", "description": "Who said it (default user,assistant; also tool)"},
                "profile": {"type": "string", "description": "Another profile's conversations"},
            },
            "required": [],
        }),
    }
}

struct SessionSearch {
    recall: Option<Recall>,
}

#[derive(Debug, Default, Deserialize)]
struct Arguments {
    query: Option<String>,
    limit: Option<i64>,
    sort: Option<String>,
    #[serde(default)]
    summarize: bool,
    session_id: Option<String>,
    around_message_id: Option<i64>,
    window: Option<i64>,
    role_filter: Option<String>,
    profile: Option<String>,
}

impl Tool for SessionSearch {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = Arguments::deserialize(arguments).map_err(|error| {
            ToolError::Answer(format!(
                "the arguments of `{NAME}` do not fit its schema: {error}; call it again"
            ))
        });
        Plan::doing(Effect::Read, Parallel::Always, move |cx| {
            Box::pin(async move {
                let shown = self.run(arguments?, cx).await?;
                Ok(ToolOutput::text(shown.to_string()))
            })
        })
    }
}

impl SessionSearch {
    async fn run(&self, arguments: Arguments, cx: &ToolContext) -> Result<Value, ToolError> {
        let arguments = tidied(arguments);
        let (recall, session) = self.place(&arguments)?;
        let answer = async {
            match (session, arguments.around_message_id) {
                (Some(session), Some(place)) => scroll(&recall, &session, place, &arguments).await,
                (Some(session), None) => read(&recall, &session).await,
                (None, Some(place)) => scroll(&recall, "", place, &arguments).await,
                (None, None) if arguments.query.is_some() => {
                    discover(&recall, &arguments, cx).await
                }
                (None, None) => browse(&recall, &arguments, cx).await,
            }
        };
        tokio::select! {
            answer = answer => answer,
            () = cx.stop.cancelled() => Err(ToolError::Stopped("the search was stopped".into())),
        }
    }

    /// Where to look: here, or in the profile that is named, also before a `/` in the session.
    fn place(&self, arguments: &Arguments) -> Result<(Recall, Option<String>), ToolError> {
        let Some(recall) = &self.recall else {
            return Err(ToolError::Answer(
                "there are no earlier conversations here".into(),
            ));
        };
        let session = arguments.session_id.clone();
        let (of_session, session) = match session.as_deref().and_then(|id| id.split_once('/')) {
            Some((profile, id)) => (Some(profile.to_owned()), Some(id.to_owned())),
            None => (None, session),
        };
        let Some(profile) = arguments.profile.clone().or(of_session) else {
            return Ok((recall.clone(), session));
        };
        let Some(profiles) = &recall.profiles else {
            return Err(ToolError::Answer("there are no other profiles here".into()));
        };
        let archive = profiles.archive(&profile).map_err(ToolError::Answer)?;
        let recall = Recall {
            archive,
            ..recall.clone()
        };
        Ok((recall, session))
    }
}

/// Empty texts are as good as none: models fill in what they do not need.
fn tidied(arguments: Arguments) -> Arguments {
    let some = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    Arguments {
        query: some(arguments.query),
        session_id: some(arguments.session_id),
        role_filter: some(arguments.role_filter),
        profile: some(arguments.profile),
        around_message_id: arguments.around_message_id.filter(|place| *place > 0),
        ..arguments
    }
}

async fn discover(
    recall: &Recall,
    arguments: &Arguments,
    cx: &ToolContext,
) -> Result<Value, ToolError> {
    let query = arguments.query.clone().unwrap_or_default();
    let wanted = Wanted {
        query: query.clone(),
        roles: roles(arguments.role_filter.as_deref())?,
        limit: limit(arguments),
        sort: match arguments.sort.as_deref() {
            Some("newest") => Sort::Newest,
            Some("oldest") => Sort::Oldest,
            _ => Sort::Relevance,
        },
        current: Some(cx.session.clone()),
    };
    let found = recall.discover(&wanted).await.map_err(told)?;
    let mut results: Vec<Value> = found.iter().map(view::found).collect();
    if arguments.summarize {
        summarised(recall, &query, &found, &mut results, cx).await;
    }
    for (found, result) in found.iter().zip(&mut results) {
        if result.get("summary").is_none() {
            with_messages(recall, found, result).await.map_err(told)?;
        }
    }
    let mut shown = json!({
        "success": true,
        "mode": "discover",
        "query": query,
        "count": results.len(),
        "results": results,
    });
    if found.is_empty() {
        shown["message"] = "nothing was said about it; try other or fewer words".into();
    }
    Ok(shown)
}

async fn summarised(
    recall: &Recall,
    query: &str,
    found: &[Found],
    results: &mut [Value],
    cx: &ToolContext,
) {
    let (summaries, spent) = recall.summarise(&cx.session, query, found).await;
    for finished in spent {
        cx.spending.add(finished).await;
    }
    for (result, summary) in results.iter_mut().zip(summaries) {
        match summary {
            Ok(summary) => {
                result["summary"] = summary.text.into();
                result["summary_message_ids"] = json!(summary.messages);
            }
            Err(error) => result["summary_error"] = error.into(),
        }
    }
}

/// Adds how the conversation began, what stands around the hit, and how it ended.
async fn with_messages(
    recall: &Recall,
    found: &Found,
    result: &mut Value,
) -> Result<(), StoreError> {
    let session = &found.record.id;
    let place = found.best.place;
    let window = recall.scroll(place, WINDOW_DEFAULT as usize).await?;
    let messages = window.map(|(_, messages)| messages).unwrap_or_default();
    let first = messages.first().map_or(place, |one| one.place);
    let last = messages.last().map_or(place, |one| one.place);
    let mut start = recall
        .around(session, SpokenFrom::After(0), BOOKEND)
        .await?;
    start.retain(|one| one.place < first);
    let mut end = recall.around(session, SpokenFrom::End, BOOKEND).await?;
    end.retain(|one| one.place > last);
    result["bookend_start"] = view::messages(&start, None);
    result["messages"] = view::messages(&messages, Some(place));
    result["bookend_end"] = view::messages(&end, None);
    Ok(())
}

async fn scroll(
    recall: &Recall,
    session: &str,
    place: i64,
    arguments: &Arguments,
) -> Result<Value, ToolError> {
    let window = arguments
        .window
        .unwrap_or(WINDOW_DEFAULT)
        .clamp(1, WINDOW_MAX) as usize;
    let place = place.unsigned_abs();
    let found = recall.scroll(place, window).await.map_err(told)?;
    let Some((record, messages)) = found else {
        return Err(ToolError::Answer(format!(
            "there is no message {place}; take an id from a result of this tool"
        )));
    };
    let before = messages.iter().filter(|one| one.place < place).count();
    let mut shown = json!({
        "success": true,
        "mode": "scroll",
        "session_id": record.id,
        "title": record.title,
        "around_message_id": place,
        "window": window,
        "messages_before": before,
        "messages_after": messages.len() - before - 1,
        "messages": view::messages(&messages, Some(place)),
    });
    if !session.is_empty() && record.id.as_str() != session {
        shown["note"] = format!("message {place} is in session {}", record.id).into();
    }
    Ok(shown)
}

async fn read(recall: &Recall, session: &str) -> Result<Value, ToolError> {
    let session = recall.archive.find(session).await.map_err(told)?;
    let read = recall.read(&session).await.map_err(told)?;
    Ok(view::read(&read))
}

async fn browse(
    recall: &Recall,
    arguments: &Arguments,
    cx: &ToolContext,
) -> Result<Value, ToolError> {
    let current: &SessionId = &cx.session;
    let records = recall
        .browse(limit(arguments), Some(current))
        .await
        .map_err(told)?;
    let results: Vec<Value> = records.iter().map(view::record).collect();
    Ok(json!({"success": true, "mode": "browse", "count": results.len(), "results": results}))
}

fn limit(arguments: &Arguments) -> usize {
    arguments.limit.unwrap_or(LIMIT_DEFAULT).clamp(1, LIMIT_MAX) as usize
}

fn roles(filter: Option<&str>) -> Result<Vec<Role>, ToolError> {
    let Some(filter) = filter else {
        return Ok(vec![Role::User, Role::Assistant]);
    };
    let names = filter
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let roles = names.map(|name| match name {
        "user" => Ok(Role::User),
        "assistant" => Ok(Role::Assistant),
        "tool" => Ok(Role::Tool),
        other => Err(ToolError::Answer(format!(
            "there is no role `{other}`; `role_filter` takes user, assistant and tool, separated by commas"
        ))),
    });
    roles.collect()
}

fn told(error: StoreError) -> ToolError {
    ToolError::Answer(format!("{error}; {}", error.hint()))
}
