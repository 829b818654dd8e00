//! The API: which calls there are, who may make them, and what they must look like.

use std::net::SocketAddr;

use serde_json::{Map, Value, json};

use super::server::State;
use super::world::{APPLICATION_ID, GUILD, World, bot};
use super::{interactions, messages};
use crate::server::Request;

pub(super) type Answered = Result<Value, Refusal>;

/// What Discord says when it does not do something.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: u64,
    pub(super) words: String,
    pub(super) more: Value,
}

impl Refusal {
    pub(super) fn new(status: u16, code: u64, words: &str) -> Self {
        Self {
            status,
            code,
            words: words.to_owned(),
            more: Value::Null,
        }
    }

    /// A field of a form is wrong.
    pub(super) fn field(field: &str, code: &str, words: &str) -> Self {
        let errors = json!({field: {"_errors": [{"code": code, "message": words}]}});
        Self {
            more: json!({"errors": errors}),
            ..Self::new(400, 50035, "Invalid Form Body")
        }
    }

    pub(super) fn body(&self) -> Value {
        let mut body = json!({"message": self.words, "code": self.code});
        for (key, value) in self.more.as_object().into_iter().flatten() {
            body[key] = value.clone();
        }
        body
    }
}

#[derive(Debug, Clone)]
pub(super) struct Upload {
    pub(super) field: String,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// A call, as it was made.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: String,
    /// Behind the version: `channels`, `1`, `messages`.
    pub(super) parts: Vec<String>,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Value,
    pub(super) files: Vec<Upload>,
}

impl Call {
    pub(super) fn route(&self) -> String {
        format!("{} /{}", self.method, self.parts.join("/"))
    }

    /// Whether it makes a new message.
    pub(super) fn is_send(&self) -> bool {
        let ends = self.parts.last().is_some_and(|part| part == "messages");
        self.method == "POST" && ends
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads a call: JSON, or a form with JSON and files in it.
pub(super) fn read(request: &Request) -> Result<Call, Refusal> {
    let nowhere = || Refusal::new(404, 0, "404: Not Found");
    let path = request
        .route()
        .strip_prefix("/api/v10/")
        .ok_or_else(nowhere)?;
    let query = request.path.split_once('?').map_or("", |(_, query)| query);
    let (body, files) = body(request)?;
    Ok(Call {
        method: request.method.clone(),
        parts: path.split('/').map(decoded).collect(),
        query: form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect(),
        body,
        files,
    })
}

fn decoded(part: &str) -> String {
    let whole = format!("x={}", part.replace('+', "%2B"));
    let mut pairs = form_urlencoded::parse(whole.as_bytes());
    pairs
        .next()
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

fn body(request: &Request) -> Result<(Value, Vec<Upload>), Refusal> {
    let content_type = request.header("content-type").unwrap_or_default();
    let not_json = || Refusal::new(400, 50109, "The request body contains invalid JSON.");
    if request.body.is_empty() {
        return Ok((Value::Null, Vec::new()));
    }
    if content_type.starts_with("application/json") {
        let body = serde_json::from_slice(&request.body).map_err(|_| not_json())?;
        return Ok((body, Vec::new()));
    }
    let Some(boundary) = content_type.split("boundary=").nth(1) else {
        return Err(Refusal::new(
            400,
            50035,
            "Expected \"Content-Type\" header to be one of {'application/json'}.",
        ));
    };
    let mut uploads = parts(&request.body, boundary.trim_matches('"')).ok_or_else(not_json)?;
    let at = uploads.iter().position(|part| part.field == "payload_json");
    let payload = at
        .map(|at| uploads.remove(at).bytes)
        .unwrap_or_else(|| b"{}".to_vec());
    if uploads
        .iter()
        .any(|upload| !upload.field.starts_with("files["))
    {
        return Err(not_json());
    }
    let payload = serde_json::from_slice(&payload).map_err(|_| not_json())?;
    Ok((payload, uploads))
}

fn parts(body: &[u8], boundary: &str) -> Option<Vec<Upload>> {
    let mark = format!("--{boundary}").into_bytes();
    let mut found = Vec::new();
    let mut rest = body;
    while let Some(at) = find(rest, &mark) {
        rest = &rest[at + mark.len()..];
        if rest.starts_with(b"--") {
            return Some(found);
        }
        let part = &rest[..find(rest, &mark)?];
        let head_end = find(part, b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&part[..head_end]).into_owned();
        found.push(Upload {
            field: parameter(&head, "name")?,
            name: parameter(&head, "filename").unwrap_or_default(),
            bytes: part[head_end + 4..].strip_suffix(b"\r\n")?.to_vec(),
        });
    }
    None
}

fn parameter(head: &str, name: &str) -> Option<String> {
    let mark = format!("; {name}=\"");
    let rest = &head[head.find(&mark)? + mark.len()..];
    Some(rest[..rest.find('"')?].to_owned())
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|window| window == mark)
}

/// Whether a call shows the token; answers to interactions have one of their own in their address.
pub(super) fn may(call: &Call, request: &Request, token: &str) -> bool {
    let first = call.parts.first().map(String::as_str);
    let has_own = matches!(first, Some("interactions" | "webhooks"));
    let shown = request.header("authorization").unwrap_or_default();
    has_own || shown == format!("Bot {token}")
}

pub(super) fn answer(state: &mut State, call: &Call, address: SocketAddr) -> Answered {
    let parts: Vec<&str> = call.parts.iter().map(String::as_str).collect();
    let world = &mut state.world;
    match (call.method.as_str(), parts.as_slice()) {
        ("GET", ["users", "@me"]) => Ok(bot()),
        ("GET", ["gateway"]) => Ok(json!({"url": format!("ws://{address}")})),
        ("GET", ["gateway", "bot"]) => Ok(json!({
            "url": format!("ws://{address}"), "shards": 1,
            "session_start_limit": {"total": 1000, "remaining": state.sessions_left, "reset_after": 7000, "max_concurrency": 1},
        })),
        ("GET", ["oauth2", "applications", "@me"] | ["applications", "@me"]) => Ok(application()),
        ("GET", ["users", "@me", "guilds"]) => Ok(json!([{"id": GUILD, "name": "Friends"}])),
        ("POST", ["users", "@me", "channels"]) => open_direct(world, &call.body),
        ("GET", ["guilds", GUILD, "channels"]) => Ok(world.guild_channels().into()),
        ("GET", ["applications", APPLICATION_ID, "commands"]) => Ok(world.commands.clone().into()),
        ("PUT", ["applications", APPLICATION_ID, "commands"]) => put_commands(world, &call.body),
        ("POST", ["interactions", id, token, "callback"]) => {
            interactions::callback(world, id, token, call)
        }
        (method, ["webhooks", APPLICATION_ID, token, rest @ ..]) => {
            interactions::webhook(world, method, token, rest, call)
        }
        ("GET", ["channels", id]) => Ok(channel(world, id)?),
        (_, ["channels", id, rest @ ..]) => {
            channel(world, id)?;
            in_channel(world, call, id, rest)
        }
        _ => Err(Refusal::new(404, 0, "404: Not Found")),
    }
}

fn in_channel(world: &mut World, call: &Call, id: &str, rest: &[&str]) -> Answered {
    match (call.method.as_str(), rest) {
        ("POST", ["typing"]) => {
            world.typing.push(id.to_owned());
            Ok(Value::Null)
        }
        ("POST", ["messages"]) => messages::send(world, id, call),
        ("GET", ["messages"]) => messages::list(world, id, call),
        ("GET", ["messages", message]) => messages::get(world, id, message),
        ("PATCH", ["messages", message]) => messages::edit(world, id, message, call),
        ("DELETE", ["messages", message]) => messages::delete(world, id, message),
        ("PUT", ["messages", message, "reactions", emoji, "@me"]) => {
            messages::react(world, id, message, emoji)
        }
        ("DELETE", ["messages", message, "reactions", emoji, "@me"]) => {
            messages::take_back(world, id, message, emoji)
        }
        ("POST", ["messages", message, "threads"]) => messages::thread_at(world, id, message, call),
        ("POST", ["threads"]) => messages::thread(world, id, call),
        _ => Err(Refusal::new(405, 0, "405: Method Not Allowed")),
    }
}

/// Refuses fields that do not exist, and what is no object.
pub(super) fn check_fields<'a>(
    body: &'a Value,
    known: &[&str],
) -> Result<&'a Map<String, Value>, Refusal> {
    let Value::Object(fields) = body else {
        return Err(Refusal::field(
            "_",
            "MODEL_TYPE_CONVERT",
            "Only dictionaries may be used in a ModelType",
        ));
    };
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(Refusal::field(
            unknown,
            "UNKNOWN_FIELD",
            "There is no such field.",
        )),
        None => Ok(fields),
    }
}

fn channel(world: &World, id: &str) -> Answered {
    if !id.chars().all(|c| c.is_ascii_digit()) {
        return Err(Refusal::field(
            "channel_id",
            "NUMBER_TYPE_COERCE",
            &format!("Value \"{id}\" is not snowflake."),
        ));
    }
    let state = world.channels.get(id);
    let about = state.map(|state| state.about.clone());
    about.ok_or_else(|| Refusal::new(404, 10003, "Unknown Channel"))
}

fn application() -> Value {
    json!({
        "id": APPLICATION_ID, "name": "hermes-test", "description": "", "icon": null, "bot_public": true,
        "bot_require_code_grant": false, "verify_key": "00", "flags": 0, "summary": "", "team": null,
        "owner": {"id": "1000000000000000001", "username": "owner", "discriminator": "0", "avatar": null},
    })
}

fn open_direct(world: &mut World, body: &Value) -> Answered {
    let fields = check_fields(body, &["recipient_id"])?;
    let person = fields.get("recipient_id").cloned().unwrap_or_default();
    let is_with = |about: &Value| about["type"] == 1 && about["recipients"][0]["id"] == person;
    let found = world.channels.values().find(|state| is_with(&state.about));
    let about = found.map(|state| state.about.clone());
    about.ok_or_else(|| Refusal::new(400, 50033, "Invalid Recipient(s)"))
}

impl World {
    /// Channels of the server, without its threads.
    pub(super) fn guild_channels(&self) -> Vec<Value> {
        self.abouts(|kind| kind != 1 && !(10..=12).contains(&kind))
    }

    pub(super) fn guild_threads(&self) -> Vec<Value> {
        self.abouts(|kind| (10..=12).contains(&kind))
    }

    fn abouts(&self, is_wanted: impl Fn(u64) -> bool) -> Vec<Value> {
        let abouts = self.channels.values().map(|state| state.about.clone());
        abouts
            .filter(|about| is_wanted(about["type"].as_u64().unwrap_or(0)))
            .collect()
    }
}

fn put_commands(world: &mut World, body: &Value) -> Answered {
    let commands = body
        .as_array()
        .ok_or_else(|| Refusal::field("_", "LIST", "a list"))?;
    let mut names: Vec<&str> = Vec::new();
    for command in commands {
        let known = [
            "type",
            "name",
            "description",
            "options",
            "default_member_permissions",
            "nsfw",
            "contexts",
            "integration_types",
            "dm_permission",
            "name_localizations",
            "description_localizations",
        ];
        check_fields(command, &known)?;
        let name = command["name"].as_str().unwrap_or_default();
        let is_allowed =
            |c: char| (c.is_alphanumeric() && !c.is_uppercase()) || matches!(c, '-' | '_');
        let is_name = (1..=32).contains(&name.chars().count()) && name.chars().all(is_allowed);
        let described = command["description"]
            .as_str()
            .map_or(0, |text| text.chars().count());
        if !is_name || names.contains(&name) || !(1..=100).contains(&described) {
            return Err(Refusal::field(
                "name",
                "APPLICATION_COMMAND_INVALID_NAME",
                "Command name is invalid",
            ));
        }
        names.push(name);
    }
    if commands.len() > 100 {
        return Err(Refusal::new(
            400,
            30032,
            "Maximum number of application commands reached (100).",
        ));
    }
    world.commands_put += 1;
    let mut put = Vec::new();
    for command in commands {
        let mut command = command.clone();
        command["id"] = world.new_id().into();
        command["application_id"] = APPLICATION_ID.into();
        command["version"] = world.new_id().into();
        command["default_member_permissions"] = command
            .get("default_member_permissions")
            .cloned()
            .unwrap_or_default();
        put.push(command);
    }
    world.commands.clone_from(&put);
    Ok(put.into())
}
