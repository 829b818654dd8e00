//! The methods of the Bot API that a bot of ours calls. They take what they are documented to take, and nothing else.

use serde_json::{Map, Value, json};

use super::form::{Form, Upload};
use super::markup;
use super::world::{BOT_ID, BOT_NAME, World};

const TEXT_UNITS_MAX: usize = 4096;
const CAPTION_UNITS_MAX: usize = 1024;
const DOWNLOAD_BYTES_MAX: usize = 20_000_000;
const REACTIONS: &[&str] = &["👍", "👎", "👀", "🔥", "🎉", "🤔", "😱", "👏"];

/// A refusal: its code, and Telegram's words.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) code: u16,
    pub(super) words: String,
    pub(super) parameters: Value,
}

pub(super) type Answered = Result<Value, Refusal>;

pub(super) fn refused(code: u16, words: impl Into<String>) -> Refusal {
    let name = match code {
        400 => "Bad Request: ",
        403 => "Forbidden: ",
        409 => "Conflict: ",
        _ => "",
    };
    Refusal {
        code,
        words: format!("{name}{}", words.into()),
        parameters: Value::Null,
    }
}

fn bad(words: impl Into<String>) -> Refusal {
    refused(400, words)
}

/// What all methods that send something take.
const SENDING: &[&str] = &[
    "chat_id",
    "message_thread_id",
    "reply_parameters",
    "disable_notification",
    "reply_markup",
    "protect_content",
    "parse_mode",
];

/// What each method takes; those with a `!` must be there.
fn parameters(method: &str) -> Option<Vec<&'static str>> {
    let own: &[&str] = match method {
        "getMe" | "getWebhookInfo" => &[],
        "getUpdates" => &["offset", "limit", "timeout", "allowed_updates"],
        "deleteWebhook" => &["drop_pending_updates"],
        "setWebhook" => &[
            "url!",
            "secret_token",
            "allowed_updates",
            "drop_pending_updates",
            "max_connections",
        ],
        "sendMessage" => &["chat_id!", "text!", "link_preview_options", "entities"],
        "sendMessageDraft" => &["chat_id!", "draft_id!", "text!", "entities"],
        "sendPhoto" => &["chat_id!", "photo!", "caption"],
        "sendVoice" => &["chat_id!", "voice!", "caption", "duration"],
        "sendAudio" => &[
            "chat_id!",
            "audio!",
            "caption",
            "duration",
            "performer",
            "title",
        ],
        "sendVideo" => &[
            "chat_id!", "video!", "caption", "duration", "width", "height",
        ],
        "sendAnimation" => &["chat_id!", "animation!", "caption"],
        "sendSticker" => &["chat_id!", "sticker!"],
        "sendDocument" => &["chat_id!", "document!", "caption"],
        "editMessageText" => &[
            "chat_id!",
            "message_id!",
            "text!",
            "parse_mode",
            "link_preview_options",
            "reply_markup",
            "entities",
        ],
        "editMessageCaption" => &[
            "chat_id!",
            "message_id!",
            "caption",
            "parse_mode",
            "reply_markup",
        ],
        "deleteMessage" => &["chat_id!", "message_id!"],
        "sendChatAction" => &["chat_id!", "action!", "message_thread_id"],
        "setMessageReaction" => &["chat_id!", "message_id!", "reaction", "is_big"],
        "answerCallbackQuery" => &["callback_query_id!", "text", "show_alert"],
        "getFile" => &["file_id!"],
        "setMyCommands" => &["commands!", "scope", "language_code"],
        "createForumTopic" => &["chat_id!", "name!"],
        _ => return None,
    };
    let sends = method.starts_with("send") && method != "sendChatAction";
    let common: &[&str] = match method {
        "sendMessageDraft" => &["message_thread_id", "parse_mode"],
        _ if sends => SENDING,
        _ => &[],
    };
    Some([own, common].concat())
}

/// Refuses parameters that do not exist, and calls that lack one.
fn check(method: &str, form: &Form) -> Result<(), Refusal> {
    let known = parameters(method).ok_or_else(|| refused(404, "Not Found"))?;
    let bare = |name: &&str| name.trim_end_matches('!').to_owned();
    let names: Vec<String> = known.iter().map(bare).collect();
    for given in form.fields.keys().chain(form.files.keys()) {
        let is_attached = form
            .fields
            .values()
            .any(|value| value == &json!(format!("attach://{given}")));
        if !names.contains(given) && !is_attached {
            return Err(bad(format!(
                "STRICT: `{method}` has no parameter `{given}`"
            )));
        }
    }
    for needed in known.iter().filter(|name| name.ends_with('!')).map(bare) {
        if !form.fields.contains_key(&needed) && !form.files.contains_key(&needed) {
            return Err(bad(format!("{needed} is empty")));
        }
    }
    Ok(())
}

impl World {
    /// Does what a method does. `getUpdates` waits, and is elsewhere.
    pub(super) fn call(&mut self, method: &str, form: &Form) -> Answered {
        check(method, form)?;
        let fields = &form.fields;
        match method {
            "getMe" => Ok(us()),
            "getUpdates" => Ok(json!([])),
            "deleteWebhook" => {
                self.webhook = None;
                Ok(true.into())
            }
            "setWebhook" => self.set_webhook(fields),
            "getWebhookInfo" => {
                let url = self.webhook.as_ref().map_or("", |(url, _)| url);
                Ok(
                    json!({"url": url, "has_custom_certificate": false, "pending_update_count": self.updates.len()}),
                )
            }
            "sendMessage" => self.send_text(fields),
            "sendMessageDraft" => self.show_draft(fields),
            "editMessageText" => self.edit(fields, "text"),
            "editMessageCaption" => self.edit(fields, "caption"),
            "deleteMessage" => self.delete(fields),
            "sendChatAction" => self.act(fields),
            "setMessageReaction" => self.react(fields),
            "answerCallbackQuery" => self.acknowledge(fields),
            "getFile" => self.file(fields),
            "setMyCommands" => self.set_menu(fields),
            "createForumTopic" => self.open_topic(fields),
            _ => self.send_file(method, form),
        }
    }

    /// What a bot is writing is shown to one person, and stays nowhere.
    fn show_draft(&mut self, fields: &Map<String, Value>) -> Answered {
        let chat = self.writable(fields)?;
        if self.chats[&chat].about["type"] != "private" {
            return Err(bad("PEER_ID_INVALID"));
        }
        if number(fields, "draft_id").is_none_or(|id| id == 0) {
            return Err(bad("RANDOM_ID_INVALID"));
        }
        self.written(fields, "text", TEXT_UNITS_MAX)?;
        Ok(true.into())
    }

    fn set_webhook(&mut self, fields: &Map<String, Value>) -> Answered {
        let url = text_of(fields, "url");
        if !url.is_empty() && !url.starts_with("https://") {
            return Err(bad(
                "bad webhook: An HTTPS URL must be provided for webhook",
            ));
        }
        self.webhook = (!url.is_empty()).then(|| (url, text_of(fields, "secret_token")));
        Ok(true.into())
    }

    fn send_text(&mut self, fields: &Map<String, Value>) -> Answered {
        let chat = self.writable(fields)?;
        let content = self.written(fields, "text", TEXT_UNITS_MAX)?;
        self.send(chat, fields, content)
    }

    /// A text as people see it, with its entities.
    fn written(&self, fields: &Map<String, Value>, field: &str, units_max: usize) -> Answered {
        let given = text_of(fields, field);
        let (text, entities) = match fields.get("parse_mode").and_then(Value::as_str) {
            None => (given, Vec::new()),
            Some("MarkdownV2") => {
                let marked = markup::parse(&given)
                    .map_err(|words| bad(format!("can't parse entities: {words}")))?;
                (marked.text, marked.entities)
            }
            Some(other) => {
                return Err(bad(format!(
                    "STRICT: parse mode `{other}` is not one of ours"
                )));
            }
        };
        let text = text.trim().to_owned();
        if text.is_empty() && field == "text" {
            return Err(bad("message text is empty"));
        }
        if text.encode_utf16().count() > units_max {
            return Err(bad(if field == "text" {
                "message is too long"
            } else {
                "message caption is too long"
            }));
        }
        let mut content = json!({});
        if !text.is_empty() {
            content[field] = text.into();
            content[if field == "text" {
                "entities"
            } else {
                "caption_entities"
            }] = entities.into();
        }
        Ok(content)
    }

    fn send(&mut self, chat: i64, fields: &Map<String, Value>, mut content: Value) -> Answered {
        if let Some(thread) = number(fields, "message_thread_id") {
            if !self.chats[&chat].topics.contains_key(&thread) {
                return Err(bad("message thread not found"));
            }
            content["message_thread_id"] = thread.into();
            content["is_topic_message"] = true.into();
        }
        if let Some(reply) = fields.get("reply_parameters") {
            self.put_reply(chat, reply, &mut content)?;
        }
        if let Some(markup) = fields.get("reply_markup") {
            content["reply_markup"] = keyboard(markup)?;
        }
        content["is_silent"] = fields
            .get("disable_notification")
            .cloned()
            .unwrap_or(false.into());
        let id = self.new_message_id();
        Ok(self.put(chat, id, &us(), &content))
    }

    fn put_reply(&self, chat: i64, reply: &Value, content: &mut Value) -> Result<(), Refusal> {
        let id = reply["message_id"]
            .as_i64()
            .ok_or_else(|| bad("STRICT: reply_parameters without message_id"))?;
        match self.chats[&chat].messages.get(&id) {
            Some(original) => {
                let mut original = original.clone();
                if let Some(original) = original.as_object_mut() {
                    original.remove("reply_to_message");
                }
                content["reply_to_message"] = original;
                Ok(())
            }
            None if reply["allow_sending_without_reply"] == true => Ok(()),
            None => Err(bad("message to be replied not found")),
        }
    }

    fn send_file(&mut self, method: &str, form: &Form) -> Answered {
        let field = method.trim_start_matches("send").to_lowercase();
        let chat = self.writable(&form.fields)?;
        let upload = uploaded(form, &field)?;
        check_file(&field, &upload)?;
        let id = self.add_file(upload.bytes.clone());
        let about = json!({"file_id": id, "file_unique_id": id, "file_name": upload.name, "file_size": upload.bytes.len(),
            "width": 1, "height": 1, "duration": 1, "type": "regular", "is_animated": false, "is_video": false});
        let mut content = self.written(&form.fields, "caption", CAPTION_UNITS_MAX)?;
        content[&field] = if field == "photo" {
            json!([about])
        } else {
            about
        };
        self.send(chat, &form.fields, content)
    }

    pub(super) fn add_file(&mut self, bytes: Vec<u8>) -> String {
        let id = format!("file-{}", self.files.len() + 1);
        self.files.insert(id.clone(), bytes);
        id
    }

    fn edit(&mut self, fields: &Map<String, Value>, field: &str) -> Answered {
        let chat = self.writable(fields)?;
        let id = number(fields, "message_id").unwrap_or_default();
        let units_max = if field == "text" {
            TEXT_UNITS_MAX
        } else {
            CAPTION_UNITS_MAX
        };
        let content = self.written(fields, field, units_max)?;
        let markup = fields.get("reply_markup").map(keyboard).transpose()?;
        let date = self.now();
        let state = self.chats.entry(chat).or_default();
        let message = state
            .messages
            .get_mut(&id)
            .ok_or_else(|| bad("message to edit not found"))?;
        if message["from"]["id"] != BOT_ID {
            return Err(bad("message can't be edited"));
        }
        let mut edited = message.clone();
        for (key, value) in content.as_object().into_iter().flatten() {
            edited[key] = value.clone();
        }
        if let Some(object) = edited.as_object_mut() {
            object.remove("reply_markup");
        }
        if let Some(markup) = markup {
            edited["reply_markup"] = markup;
        }
        if edited == *message {
            return Err(bad(
                "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
            ));
        }
        edited["edit_date"] = date.into();
        *message = edited.clone();
        // The next edit compares contents, not when they were.
        if let Some(object) = message.as_object_mut() {
            object.remove("edit_date");
        }
        Ok(edited)
    }

    fn delete(&mut self, fields: &Map<String, Value>) -> Answered {
        let chat = self.writable(fields)?;
        let id = number(fields, "message_id").unwrap_or_default();
        let removed = self
            .chats
            .get_mut(&chat)
            .and_then(|state| state.messages.remove(&id));
        removed
            .map(|_| true.into())
            .ok_or_else(|| bad("message to delete not found"))
    }

    fn act(&mut self, fields: &Map<String, Value>) -> Answered {
        let chat = self.writable(fields)?;
        if fields["action"] != "typing" {
            return Err(bad("wrong parameter action in request"));
        }
        self.typing
            .push((chat, number(fields, "message_thread_id")));
        Ok(true.into())
    }

    fn react(&mut self, fields: &Map<String, Value>) -> Answered {
        let chat = self.writable(fields)?;
        let id = number(fields, "message_id").unwrap_or_default();
        let state = self.chats.entry(chat).or_default();
        if !state.messages.contains_key(&id) {
            return Err(bad("message to react not found"));
        }
        let given = fields
            .get("reaction")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let mut shown = Vec::new();
        for reaction in given {
            let emoji = reaction["emoji"].as_str().unwrap_or_default();
            if reaction["type"] != "emoji" || !REACTIONS.contains(&emoji) {
                return Err(bad("REACTION_INVALID"));
            }
            shown.push(emoji.to_owned());
        }
        state.reactions.insert(id, shown);
        Ok(true.into())
    }

    fn acknowledge(&mut self, fields: &Map<String, Value>) -> Answered {
        let id = text_of(fields, "callback_query_id");
        let known = self.presses.iter().position(|press| *press == id);
        let known = known.ok_or_else(|| {
            bad("query is too old and response timeout expired or query ID is invalid")
        })?;
        self.presses.remove(known);
        let words = fields
            .get("text")
            .and_then(Value::as_str)
            .map(ToOwned::to_owned);
        if words
            .as_ref()
            .is_some_and(|words| words.chars().count() > 200)
        {
            return Err(bad("MESSAGE_TOO_LONG"));
        }
        self.acknowledged.push((id, words));
        Ok(true.into())
    }

    fn file(&self, fields: &Map<String, Value>) -> Answered {
        let id = text_of(fields, "file_id");
        match self.files.get(&id) {
            Some(bytes) if bytes.len() > DOWNLOAD_BYTES_MAX => Err(bad("file is too big")),
            Some(bytes) => Ok(
                json!({"file_id": id, "file_unique_id": id, "file_size": bytes.len(), "file_path": format!("files/{id}")}),
            ),
            None => Err(bad("wrong file_id or the file is temporarily unavailable")),
        }
    }

    fn set_menu(&mut self, fields: &Map<String, Value>) -> Answered {
        let commands = fields["commands"].as_array().cloned().unwrap_or_default();
        if commands.len() > 100 {
            return Err(bad("BOT_COMMANDS_TOO_MUCH"));
        }
        let mut names = Vec::new();
        for command in &commands {
            let name = command["command"].as_str().unwrap_or_default();
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            if !(1..=32).contains(&name.len()) || !name.chars().all(is_name) {
                return Err(bad("BOT_COMMAND_INVALID"));
            }
            let description = command["description"].as_str().unwrap_or_default();
            if !(1..=256).contains(&description.chars().count()) {
                return Err(bad("BOT_COMMAND_DESCRIPTION_INVALID"));
            }
            names.push(name.to_owned());
        }
        let scope = fields
            .get("scope")
            .and_then(|scope| scope["type"].as_str())
            .unwrap_or("default");
        self.menus.insert(scope.to_owned(), names);
        Ok(true.into())
    }

    fn open_topic(&mut self, fields: &Map<String, Value>) -> Answered {
        let chat = self.writable(fields)?;
        let name = text_of(fields, "name");
        if !(1..=128).contains(&name.chars().count()) {
            return Err(bad("TOPIC_TITLE_INVALID"));
        }
        if self.chats[&chat].about["is_forum"] != true {
            return Err(bad("the chat is not a forum"));
        }
        let id = self.new_message_id();
        let state = self.chats.entry(chat).or_default();
        state.topics.insert(id, name.clone());
        Ok(json!({"message_thread_id": id, "name": name, "icon_color": 7_322_096}))
    }

    /// The chat a call is about, if we may write there.
    fn writable(&self, fields: &Map<String, Value>) -> Result<i64, Refusal> {
        let id = number(fields, "chat_id").ok_or_else(|| bad("chat not found"))?;
        let state = self.chats.get(&id).ok_or_else(|| bad("chat not found"))?;
        if let Some(moved) = state.moved_to {
            return Err(Refusal {
                parameters: json!({"migrate_to_chat_id": moved}),
                ..bad("group chat was upgraded to a supergroup chat")
            });
        }
        if state.has_blocked_us {
            return Err(refused(403, "bot was blocked by the user"));
        }
        Ok(id)
    }
}

pub(super) fn us() -> Value {
    json!({"id": BOT_ID, "is_bot": true, "first_name": "Hermes", "username": BOT_NAME,
        "can_join_groups": true, "can_read_all_group_messages": false, "supports_inline_queries": false})
}

fn text_of(fields: &Map<String, Value>, name: &str) -> String {
    match fields.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn number(fields: &Map<String, Value>, name: &str) -> Option<i64> {
    let value = fields.get(name)?;
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

fn keyboard(markup: &Value) -> Answered {
    let rows = markup["inline_keyboard"]
        .as_array()
        .ok_or_else(|| bad("STRICT: no inline_keyboard"))?;
    for button in rows.iter().filter_map(Value::as_array).flatten() {
        let data = button["callback_data"].as_str().unwrap_or_default();
        if button["text"].as_str().is_none_or(str::is_empty) {
            return Err(bad("text buttons are not allowed to be empty"));
        }
        if !(1..=64).contains(&data.len()) {
            return Err(bad("BUTTON_DATA_INVALID"));
        }
    }
    Ok(markup.clone())
}

/// The file of a call: a part of its own, or one that a field attaches.
fn uploaded(form: &Form, field: &str) -> Result<Upload, Refusal> {
    if let Some(upload) = form.files.get(field) {
        return Ok(upload.clone());
    }
    let given = text_of(&form.fields, field);
    let attached = given
        .strip_prefix("attach://")
        .and_then(|name| form.files.get(name));
    if let Some(upload) = attached {
        return Ok(upload.clone());
    }
    // A server of one's own reads files of its machine.
    let local = given.strip_prefix("file://").and_then(|path| {
        let bytes = std::fs::read(path).ok()?;
        let name = std::path::Path::new(path)
            .file_name()?
            .to_string_lossy()
            .into_owned();
        Some(Upload { name, bytes })
    });
    local.ok_or_else(|| bad("wrong file identifier/HTTP URL specified"))
}

fn check_file(field: &str, upload: &Upload) -> Result<(), Refusal> {
    let begins = |magic: &[u8]| upload.bytes.starts_with(magic);
    match field {
        _ if upload.bytes.is_empty() => Err(bad("file must be non-empty")),
        "photo" if !begins(b"\x89PNG") && !begins(b"\xff\xd8\xff") && !begins(b"RIFF") => {
            Err(bad("IMAGE_PROCESS_FAILED"))
        }
        "photo" if upload.bytes.len() > 10_000_000 => Err(bad("PHOTO_INVALID_DIMENSIONS")),
        "voice" if !begins(b"OggS") => Err(bad("wrong file type")),
        _ => Ok(()),
    }
}
