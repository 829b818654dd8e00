//! Conversations and what was said in them.

use std::collections::HashSet;

use hermes_core::text::shorten;
use hermes_core::{
    Archive, Part, Role, SearchQuery, SessionFilter, SessionId, SessionRecord, Spoken, SpokenFrom,
    SpokenQuery,
};
use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::answer::{CallOutcome, Refused};
use super::arguments::Arguments;
use super::catalogue::{CONTENT_CHARS_MAX, ITEMS_MAX};

/// Sessions of programs that use the agent as a tool; listed only when asked for.
const HIDDEN_SOURCE: &str = "tool";
const LISTED: u64 = 50;
const PREVIEW_CHARS_MAX: usize = 200;
/// Messages whose conversations a search lists.
const HITS_MAX: usize = 300;

pub(super) async fn list(archive: &dyn Archive, arguments: &Arguments) -> CallOutcome {
    let platform = arguments.optional_text("platform")?;
    let search = arguments.optional_text("search")?;
    let limit = arguments.number("limit", 1..=ITEMS_MAX)?.unwrap_or(LISTED) as usize;
    let shows_hidden = platform.is_some();
    let mut records = archive
        .list(SessionFilter {
            source: platform,
            ..SessionFilter::default()
        })
        .await?;
    records.retain(|record| shows_hidden || record.source != HIDDEN_SOURCE);
    if let Some(words) = search {
        let found = containing(archive, &words).await?;
        records.retain(|record| found.contains(&record.id) || is_titled(record, &words));
    }
    let total = records.len();
    records.truncate(limit);
    let conversations: Vec<Value> = records.iter().map(brief).collect();
    Ok(CallToolResult::structured(json!({
        "count": conversations.len(),
        "total": total,
        "conversations": conversations,
    })))
}

/// Returns the conversations with a message that fits the words.
async fn containing(archive: &dyn Archive, words: &str) -> Result<HashSet<SessionId>, Refused> {
    let hits = archive.search(SearchQuery {
        text: words.to_owned(),
        session: None,
        limit: HITS_MAX,
        ..SearchQuery::default()
    });
    Ok(hits.await?.into_iter().map(|hit| hit.session).collect())
}

fn is_titled(record: &SessionRecord, words: &str) -> bool {
    let title = record.title.as_deref().unwrap_or_default();
    title.to_lowercase().contains(&words.to_lowercase())
}

pub(super) async fn get(archive: &dyn Archive, arguments: &Arguments) -> CallOutcome {
    let session = archive.find(&arguments.text("session_key")?).await?;
    let record = archive.record(&session).await?;
    let mut conversation = brief(&record);
    conversation["cwd"] = json!(record.cwd);
    conversation["parent"] = json!(record.parent);
    conversation["tool_calls"] = json!(record.calls);
    conversation["tokens"] = json!(record.usage);
    conversation["cost_micro_usd"] = json!(record.cost_micro_usd);
    Ok(CallToolResult::structured(conversation))
}

pub(super) async fn read(archive: &dyn Archive, arguments: &Arguments) -> CallOutcome {
    let session = archive.find(&arguments.text("session_key")?).await?;
    let limit = arguments.number("limit", 1..=ITEMS_MAX)?.unwrap_or(LISTED) as usize;
    let query = SpokenQuery {
        session: Some(session.clone()),
        from: SpokenFrom::End,
        with_results: false,
        limit,
    };
    let messages: Vec<Value> = archive.spoken(query).await?.iter().map(message).collect();
    Ok(CallToolResult::structured(json!({
        "session_key": session,
        "count": messages.len(),
        "messages": messages,
    })))
}

fn brief(record: &SessionRecord) -> Value {
    json!({
        "session_key": record.id,
        "platform": record.source,
        "title": record.title,
        "preview": shorten(&record.preview, PREVIEW_CHARS_MAX),
        "model": record.model.to_string(),
        "created_at": record.created.to_iso(),
        "updated_at": record.updated.to_iso(),
        "messages": record.messages,
        "has_open_turn": record.has_open_turn,
    })
}

/// A message as clients see it: its visible text, and what it carries beside it.
pub(super) fn message(spoken: &Spoken) -> Value {
    let text = spoken.message.text();
    let is_attachment = |part: &&Part| matches!(part, Part::Image(_) | Part::Audio(_));
    let attachments = spoken.message.parts.iter().filter(is_attachment).count();
    let calls: Vec<&str> = spoken
        .message
        .calls()
        .map(|call| call.name.as_str())
        .collect();
    json!({
        "id": spoken.place,
        "role": match spoken.message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        },
        "timestamp": spoken.at.to_iso(),
        "content": shorten(&text, CONTENT_CHARS_MAX),
        "is_cut": text.chars().count() > CONTENT_CHARS_MAX,
        "attachments": attachments,
        "tool_calls": calls,
    })
}
