//! Messages and threads.

use serde_json::{Value, json};

use super::rest::{Answered, Call, Refusal, check_fields};
use super::world::{BOT_ID, GUILD, World, bot};

const CONTENT_CHARS_MAX: usize = 2000;
const FIELDS: [&str; 14] = [
    "content",
    "nonce",
    "enforce_nonce",
    "tts",
    "embeds",
    "allowed_mentions",
    "message_reference",
    "components",
    "sticker_ids",
    "attachments",
    "flags",
    "poll",
    "payload_json",
    "thread_name",
];

fn unknown_message() -> Refusal {
    Refusal::new(404, 10008, "Unknown Message")
}

/// What a message is made of, checked.
pub(super) fn content(world: &mut World, channel: &str, call: &Call, body: &Value) -> Answered {
    let fields = check_fields(body, &FIELDS)?;
    let text = match fields.get("content") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) => text,
        Some(_) => return Err(Refusal::field("content", "BASE_TYPE_BAD_TYPE", "a text")),
    };
    if text.chars().count() > CONTENT_CHARS_MAX {
        let words = "Must be 2000 or fewer in length.";
        return Err(Refusal::field("content", "BASE_TYPE_MAX_LENGTH", words));
    }
    if let Some(components) = fields.get("components") {
        check_components(components)?;
    }
    let has_embeds = fields
        .get("embeds")
        .and_then(Value::as_array)
        .is_some_and(|embeds| !embeds.is_empty());
    if text.trim().is_empty() && call.files.is_empty() && !has_embeds {
        return Err(Refusal::new(400, 50006, "Cannot send an empty message"));
    }
    let mut message = json!({
        "content": text.trim(),
        "components": fields.get("components").cloned().unwrap_or_else(|| json!([])),
        "flags": fields.get("flags").cloned().unwrap_or_else(|| json!(0)),
        "mention_everyone": calls_everybody(text, fields.get("allowed_mentions")),
    });
    let mut files = Vec::new();
    for file in &call.files {
        if file.bytes.is_empty() {
            return Err(Refusal::field(
                "files",
                "FILE_EMPTY",
                "File cannot be empty.",
            ));
        }
        let mime = if file.name.ends_with(".png") {
            "image/png"
        } else {
            "application/octet-stream"
        };
        files.push(world.add_file(&file.name, mime, file.bytes.clone()));
    }
    message["attachments"] = files.into();
    if let Some(reference) = fields
        .get("message_reference")
        .filter(|reference| !reference.is_null())
    {
        refer(world, channel, reference, &mut message)?;
    }
    Ok(message)
}

/// Whether everybody's phone rings.
fn calls_everybody(text: &str, allowed: Option<&Value>) -> bool {
    let is_allowed = match allowed.and_then(|allowed| allowed["parse"].as_array()) {
        Some(parse) => parse.iter().any(|kind| kind == "everyone"),
        None => allowed.is_none(),
    };
    is_allowed && (text.contains("@everyone") || text.contains("@here"))
}

fn refer(
    world: &World,
    channel: &str,
    reference: &Value,
    message: &mut Value,
) -> Result<(), Refusal> {
    check_fields(
        reference,
        &[
            "message_id",
            "channel_id",
            "guild_id",
            "fail_if_not_exists",
            "type",
        ],
    )?;
    // Some clients write ids as numbers.
    let id = match &reference["message_id"] {
        Value::Number(id) => id.to_string(),
        id => id.as_str().unwrap_or_default().to_owned(),
    };
    let id = id.as_str();
    if !id.chars().all(|c| c.is_ascii_digit()) {
        let words = format!("Value \"{id}\" is not snowflake.");
        return Err(Refusal::field(
            "message_reference",
            "NUMBER_TYPE_COERCE",
            &words,
        ));
    }
    match world.message(channel, id) {
        Some(original) => {
            message["type"] = 19.into();
            message["message_reference"] =
                json!({"type": 0, "message_id": id, "channel_id": channel});
            message["referenced_message"] = original.clone();
            Ok(())
        }
        None if world.channels.iter().any(|(_, state)| {
            id.parse()
                .is_ok_and(|id: u64| state.messages.contains_key(&id))
        }) =>
        {
            let words = "Cannot reply to a message in a different channel";
            Err(Refusal::field(
                "message_reference",
                "REPLIES_CANNOT_REFERENCE_OTHER_CHANNEL",
                words,
            ))
        }
        None if reference["fail_if_not_exists"] == false => Ok(()),
        None => Err(Refusal::field(
            "message_reference",
            "REPLIES_UNKNOWN_MESSAGE",
            "Unknown message",
        )),
    }
}

fn check_components(components: &Value) -> Result<(), Refusal> {
    let wrong = |words: &str| Err(Refusal::field("components", "COMPONENT_INVALID", words));
    let Some(rows) = components.as_array() else {
        return wrong("a list");
    };
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        let buttons = row["components"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if row["type"] != 1 || !(1..=5).contains(&buttons.len()) {
            return wrong("a row of one to five buttons");
        }
        for button in buttons {
            let label = button["label"].as_str().unwrap_or_default();
            let name = button["custom_id"].as_str().unwrap_or_default();
            let has_style = (1..=4).contains(&button["style"].as_u64().unwrap_or(0));
            let has_label = (1..=80).contains(&label.chars().count());
            if button["type"] != 2
                || !has_style
                || !has_label
                || !(1..=100).contains(&name.chars().count())
            {
                return wrong("a button with a style, a label and an id");
            }
            if names.contains(&name) {
                return Err(Refusal::field(
                    "components",
                    "COMPONENT_CUSTOM_ID_DUPLICATED",
                    "Component custom id cannot be duplicated",
                ));
            }
            names.push(name);
        }
    }
    if rows.len() > 5 {
        return wrong("five rows at most");
    }
    Ok(())
}

pub(super) fn send(world: &mut World, channel: &str, call: &Call) -> Answered {
    let state = world.channels.get(channel);
    let about = state.map(|state| {
        (
            state.about["type"].as_u64().unwrap_or(0),
            state.has_blocked_us,
        )
    });
    match about {
        Some((15 | 16, _)) => {
            return Err(Refusal::new(
                400,
                50008,
                "Cannot send messages in a non-text channel",
            ));
        }
        Some((_, true)) => {
            return Err(Refusal::new(
                403,
                50007,
                "Cannot send messages to this user",
            ));
        }
        _ => {}
    }
    let nonce = match &call.body["nonce"] {
        Value::String(nonce) if nonce.chars().count() > 25 => {
            return Err(Refusal::field(
                "nonce",
                "NONCE_TYPE_TOO_LONG",
                "Must be 25 or fewer in length.",
            ));
        }
        Value::String(nonce) => Some(nonce.clone()),
        Value::Number(nonce) => Some(nonce.to_string()),
        _ => None,
    };
    let key = nonce
        .filter(|_| call.body["enforce_nonce"] == true)
        .map(|nonce| (channel.to_owned(), nonce));
    let known = key.as_ref().and_then(|key| world.nonces.get(key));
    if let Some(message) = known.and_then(|id| world.message(channel, id)) {
        return Ok(message.clone());
    }
    let mut content = content(world, channel, call, &call.body)?;
    content["nonce"] = call.body["nonce"].clone();
    let message = world.put(channel, &bot(), &content);
    join(world, channel);
    if let Some(key) = key {
        world
            .nonces
            .insert(key, message["id"].as_str().unwrap_or_default().to_owned());
    }
    Ok(message)
}

/// Whoever writes in a thread is in it from then on.
fn join(world: &mut World, channel: &str) {
    if let Some(state) = world.channels.get_mut(channel)
        && state.about["type"] == 11
    {
        state.about["member"] = json!({"join_timestamp": World::timestamp(), "flags": 0});
    }
}

pub(super) fn get(world: &World, channel: &str, id: &str) -> Answered {
    world
        .message(channel, id)
        .cloned()
        .ok_or_else(unknown_message)
}

pub(super) fn list(world: &World, channel: &str, call: &Call) -> Answered {
    let limit = call
        .parameter("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(50);
    if !(1..=100).contains(&limit) {
        return Err(Refusal::field(
            "limit",
            "NUMBER_TYPE_MAX",
            "int value should be less than or equal to 100.",
        ));
    }
    let before: Option<u64> = call.parameter("before").and_then(|id| id.parse().ok());
    let after: u64 = call
        .parameter("after")
        .and_then(|id| id.parse().ok())
        .unwrap_or(0);
    let state = world.channels.get(channel);
    let found = state
        .into_iter()
        .flat_map(|state| state.messages.range(after + 1..before.unwrap_or(u64::MAX)));
    let mut found: Vec<Value> = found.map(|(_, message)| message.clone()).collect();
    // Those right after it, or the newest; the newest of them first.
    if call.parameter("after").is_some() {
        found.truncate(limit);
        found.reverse();
    } else {
        found.reverse();
        found.truncate(limit);
    }
    Ok(found.into())
}

pub(super) fn edit(world: &mut World, channel: &str, id: &str, call: &Call) -> Answered {
    let message = world.message(channel, id).ok_or_else(unknown_message)?;
    if message["author"]["id"] != BOT_ID {
        return Err(Refusal::new(
            403,
            50005,
            "Cannot edit a message authored by another user",
        ));
    }
    let kept = message.clone();
    let mut body = call.body.clone();
    let fields = check_fields(&call.body, &FIELDS)?;
    if !fields.contains_key("content") {
        body["content"] = kept["content"].clone();
    }
    let has_files = kept["attachments"]
        .as_array()
        .is_some_and(|files| !files.is_empty());
    let is_empty = body["content"]
        .as_str()
        .unwrap_or_default()
        .trim()
        .is_empty();
    let edited = if has_files && is_empty && call.files.is_empty() {
        json!({"content": ""})
    } else {
        content(world, channel, call, &body)?
    };
    apply(
        world,
        channel,
        id,
        &edited,
        fields.contains_key("components"),
        !call.files.is_empty(),
    );
    let message = world.message(channel, id).cloned().unwrap_or_default();
    let told = world.as_told(channel, message.clone());
    world.tell("MESSAGE_UPDATE", told, false);
    Ok(message)
}

/// Puts what an edit says in place; what it does not mention stays.
pub(super) fn apply(
    world: &mut World,
    channel: &str,
    id: &str,
    edited: &Value,
    has_components: bool,
    has_files: bool,
) {
    let Some(message) = world.message_mut(channel, id) else {
        return;
    };
    message["content"] = edited["content"].clone();
    message["mention_everyone"] = edited["mention_everyone"].clone();
    message["edited_timestamp"] = World::timestamp().into();
    if has_components {
        message["components"] = edited["components"].clone();
    }
    if has_files {
        message["attachments"] = edited["attachments"].clone();
    }
}

pub(super) fn delete(world: &mut World, channel: &str, id: &str) -> Answered {
    world.message(channel, id).ok_or_else(unknown_message)?;
    let state = world.channels.get_mut(channel);
    if let (Some(state), Ok(number)) = (state, id.parse::<u64>()) {
        state.messages.remove(&number);
    }
    world.tell(
        "MESSAGE_DELETE",
        json!({"id": id, "channel_id": channel}),
        false,
    );
    Ok(Value::Null)
}

pub(super) fn react(world: &mut World, channel: &str, id: &str, emoji: &str) -> Answered {
    world.message(channel, id).ok_or_else(unknown_message)?;
    if emoji.is_ascii() && !emoji.contains(':') {
        return Err(Refusal::new(400, 10014, "Unknown Emoji"));
    }
    let state = world.channels.get_mut(channel);
    if let (Some(state), Ok(number)) = (state, id.parse::<u64>()) {
        let marks = state.reactions.entry(number).or_default();
        if !marks.iter().any(|mark| mark == emoji) {
            marks.push(emoji.to_owned());
        }
    }
    Ok(Value::Null)
}

pub(super) fn take_back(world: &mut World, channel: &str, id: &str, emoji: &str) -> Answered {
    world.message(channel, id).ok_or_else(unknown_message)?;
    let marks = world.channels.get_mut(channel).zip(id.parse::<u64>().ok());
    let marks = marks.and_then(|(state, number)| state.reactions.get_mut(&number));
    let had = marks.map(|marks| {
        let count = marks.len();
        marks.retain(|mark| mark != emoji);
        marks.len() < count
    });
    match had {
        Some(true) => Ok(Value::Null),
        _ => Err(Refusal::new(404, 10014, "Unknown Emoji")),
    }
}

fn name_of(body: &Value) -> Result<String, Refusal> {
    let name = body["name"].as_str().unwrap_or_default();
    if !(1..=100).contains(&name.chars().count()) {
        return Err(Refusal::field(
            "name",
            "BASE_TYPE_BAD_LENGTH",
            "Must be between 1 and 100 in length.",
        ));
    }
    let archive = body.get("auto_archive_duration").and_then(Value::as_u64);
    if archive.is_some_and(|minutes| ![60, 1440, 4320, 10080].contains(&minutes)) {
        return Err(Refusal::field(
            "auto_archive_duration",
            "BASE_TYPE_CHOICES",
            "Value must be one of {60, 1440, 4320, 10080}.",
        ));
    }
    Ok(name.to_owned())
}

fn open(world: &mut World, parent: &str, id: &str, name: &str) -> Value {
    let about = json!({
        "type": 11, "guild_id": GUILD, "parent_id": parent, "name": name, "owner_id": BOT_ID, "message_count": 0,
        "member_count": 1, "last_message_id": null, "rate_limit_per_user": 0, "flags": 0, "total_message_sent": 0,
        "thread_metadata": {"archived": false, "auto_archive_duration": 1440, "archive_timestamp": World::timestamp(), "locked": false},
        "member": {"id": id, "user_id": BOT_ID, "join_timestamp": World::timestamp(), "flags": 0},
    });
    world.add_channel(id, about);
    let about = world
        .channels
        .get(id)
        .map(|state| state.about.clone())
        .unwrap_or_default();
    let mut told = about.clone();
    told["newly_created"] = true.into();
    world.tell("THREAD_CREATE", told, false);
    about
}

/// A thread on a message has the number of the message.
pub(super) fn thread_at(world: &mut World, channel: &str, message: &str, call: &Call) -> Answered {
    check_fields(
        &call.body,
        &["name", "auto_archive_duration", "rate_limit_per_user"],
    )?;
    let name = name_of(&call.body)?;
    world
        .message(channel, message)
        .ok_or_else(unknown_message)?;
    let kind = world
        .channels
        .get(channel)
        .and_then(|state| state.about["type"].as_u64());
    if !matches!(kind, Some(0 | 5)) {
        return Err(Refusal::new(
            400,
            50024,
            "Cannot execute action on this channel type",
        ));
    }
    if world.channels.contains_key(message) {
        return Err(Refusal::new(
            400,
            160_004,
            "A thread has already been created for this message",
        ));
    }
    Ok(open(world, channel, message, &name))
}

/// A thread without a message, or a post of a forum, which has one.
pub(super) fn thread(world: &mut World, channel: &str, call: &Call) -> Answered {
    check_fields(
        &call.body,
        &[
            "name",
            "auto_archive_duration",
            "rate_limit_per_user",
            "type",
            "invitable",
            "message",
            "applied_tags",
        ],
    )?;
    let name = name_of(&call.body)?;
    let kind = world
        .channels
        .get(channel)
        .and_then(|state| state.about["type"].as_u64());
    match kind {
        Some(0 | 5) if call.body["type"] != 11 && call.body["type"] != 12 => Err(Refusal::field(
            "type",
            "BASE_TYPE_REQUIRED",
            "This field is required",
        )),
        Some(0 | 5) => {
            let id = world.new_id();
            Ok(open(world, channel, &id, &name))
        }
        Some(15 | 16) if !call.body["message"].is_object() => Err(Refusal::field(
            "message",
            "BASE_TYPE_REQUIRED",
            "This field is required",
        )),
        Some(15 | 16) => {
            let first = content(world, channel, call, &call.body["message"])?;
            let id = world.new_id();
            let mut opened = open(world, channel, &id, &name);
            opened["message"] = post(world, &id, &first);
            Ok(opened)
        }
        _ => Err(Refusal::new(
            400,
            50024,
            "Cannot execute action on this channel type",
        )),
    }
}

/// The first message of a post has the number of the post.
fn post(world: &mut World, id: &str, first: &Value) -> Value {
    let mut content = first.clone();
    content["id"] = id.into();
    world.put(id, &bot(), &content)
}
