//! Turns what Discord says into what the gateway understands. Pure.

use hermes_core::{
    Attachment, AttachmentKind, Chat, Forwarded, Incoming, IncomingMessage, Mentions, MessageId,
    Press, RepliedTo, Sender, Timestamp, Update,
};
use serde_json::{Map, Value};

use super::cursor::millis_of;
use super::interaction::Interaction;
use super::settings::Listening;

/// A message of people's: as it is, and as a reply.
const SPOKEN: [u64; 2] = [0, 19];
const VOICE_FLAG: u64 = 1 << 13;

/// Who we are, as far as it matters to what is said to us.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Us {
    pub(super) id: String,
    pub(super) name: String,
}

/// Where something was said.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) chat: Chat,
    /// In a thread that we talk in.
    pub(super) is_in_our_thread: bool,
}

/// Reads a message; `None` for those that nobody here answers.
pub(super) fn read_message(
    raw: Value,
    said: Said,
    us: &Us,
    listening: &Listening,
) -> Option<Update> {
    let id = raw["id"].as_str()?.to_owned();
    let message = message(&raw, said, us, listening)?;
    Some(Update {
        sent: millis_of(&id).map(Timestamp::from_millis),
        id,
        raw,
        incoming: Incoming::Message(message),
    })
}

/// Reads an edit. Discord tells of one also when it has looked at a link: then nobody has said anything.
pub(super) fn read_edit(raw: Value, said: Said, us: &Us, listening: &Listening) -> Option<Update> {
    let edited = raw["edited_timestamp"].as_str()?.to_owned();
    let id = raw["id"].as_str()?.to_owned();
    let message = message(&raw, said, us, listening)?;
    Some(Update {
        sent: Timestamp::from_iso(&edited).or_else(|| millis_of(&id).map(Timestamp::from_millis)),
        id: format!("{id}/{edited}"),
        raw,
        incoming: Incoming::Edited(message),
    })
}

/// Reads a command or a button; others are not for us.
pub(super) fn read_interaction(raw: Value, chat: Chat) -> Option<Update> {
    let interaction = Interaction::read(&raw)?;
    let sender = person(&raw["member"]["user"], &raw["member"])
        .or_else(|| person(&raw["user"], &Value::Null))?;
    let incoming = match raw["type"].as_u64()? {
        2 => Incoming::Message(IncomingMessage {
            chat,
            sender,
            id: interaction.message_id(),
            text: command_line(&raw["data"])?,
            attachments: Vec::new(),
            replies_to: None,
            mentions: Mentions {
                us: true,
                ..Mentions::default()
            },
            album: None,
            forwarded: None,
        }),
        3 => Incoming::Press(Press {
            id: interaction.to_string(),
            chat,
            sender,
            message: MessageId::from(raw["message"]["id"].as_str()?.to_owned()),
            data: raw["data"]["custom_id"].as_str()?.to_owned(),
        }),
        _ => return None,
    };
    Some(Update {
        sent: millis_of(&interaction.id).map(Timestamp::from_millis),
        id: interaction.id,
        raw,
        incoming,
    })
}

/// A command as people type it: `/model gpt`.
fn command_line(data: &Value) -> Option<String> {
    let mut line = format!("/{}", data["name"].as_str()?);
    for option in data["options"].as_array().into_iter().flatten() {
        let value = match &option["value"] {
            Value::String(text) => text.trim().to_owned(),
            Value::Null => continue,
            other => other.to_string(),
        };
        if !value.is_empty() {
            line.push(' ');
            line.push_str(&value);
        }
    }
    Some(line)
}

fn message(raw: &Value, said: Said, us: &Us, listening: &Listening) -> Option<IncomingMessage> {
    let kind = raw["type"].as_u64().unwrap_or(0);
    let sender = sender(raw)?;
    if !SPOKEN.contains(&kind) || sender.id == us.id || !listening.is_in(&said.chat) {
        return None;
    }
    let mentions = mentions(raw, &said, us, &sender, listening);
    let is_for_others = listening.leaves_others_alone
        && said.chat.scope.is_some()
        && !mentions.us
        && names_people(raw, us);
    let text = words(raw, us);
    let forwarded = forwarded(raw);
    let attachments = attachments(raw);
    let is_empty = text.is_empty() && forwarded.is_none() && attachments.is_empty();
    if is_for_others || is_empty {
        return None;
    }
    Some(IncomingMessage {
        chat: said.chat,
        sender,
        id: MessageId::from(raw["id"].as_str()?.to_owned()),
        text,
        attachments,
        replies_to: replied_to(raw, us),
        mentions,
        album: None,
        forwarded,
    })
}

fn sender(raw: &Value) -> Option<Sender> {
    let mut sender = person(&raw["author"], &raw["member"])?;
    // A webhook is a program, whatever it calls itself.
    sender.is_bot |= raw["webhook_id"].is_string();
    Some(sender)
}

fn person(user: &Value, member: &Value) -> Option<Sender> {
    let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
    let roles = member["roles"].as_array().into_iter().flatten();
    Some(Sender {
        id: text(&user["id"])?,
        name: text(&member["nick"]).or_else(|| text(&user["global_name"])),
        username: text(&user["username"]),
        is_bot: user["bot"] == true,
        roles: roles.filter_map(text).collect(),
        ..Sender::default()
    })
}

fn mentioned(raw: &Value) -> impl Iterator<Item = &Value> {
    raw["mentions"].as_array().into_iter().flatten()
}

fn mentions(raw: &Value, said: &Said, us: &Us, sender: &Sender, listening: &Listening) -> Mentions {
    let is_us = |user: &&Value| user["id"] == us.id.as_str();
    let content = raw["content"].as_str().unwrap_or_default();
    let is_inline = [format!("<@{}>", us.id), format!("<@!{}>", us.id)]
        .iter()
        .any(|mark| content.contains(mark));
    let needs_inline = sender.is_bot && listening.bots_need_inline_mention;
    Mentions {
        us: is_inline || (!needs_inline && mentioned(raw).any(|user| is_us(&user))),
        other_bots: mentioned(raw).any(|user| user["bot"] == true && !is_us(&user)),
        in_our_thread: said.is_in_our_thread
            && !sender.is_bot
            && !listening.needs_mention_in_threads,
    }
}

/// Whether somebody else is named; who is replied to is not.
fn names_people(raw: &Value, us: &Us) -> bool {
    let content = raw["content"].as_str().unwrap_or_default();
    mentioned(raw)
        .filter_map(|user| user["id"].as_str())
        .any(|id| {
            let is_named =
                content.contains(&format!("<@{id}>")) || content.contains(&format!("<@!{id}>"));
            id != us.id && is_named
        })
}

/// What a message says: its words, and what it shows that is no file.
fn words(raw: &Value, us: &Us) -> String {
    let content = raw["content"].as_str().unwrap_or_default().trim();
    let mut rest = content;
    for mark in [format!("<@{}>", us.id), format!("<@!{}>", us.id)] {
        if let Some(after) = rest.strip_prefix(&mark) {
            rest = after.trim_start_matches([',', ':']).trim_start();
        }
    }
    let mut parts = vec![named(rest, raw, us)];
    for sticker in raw["sticker_items"].as_array().into_iter().flatten() {
        let name = sticker["name"].as_str().unwrap_or_default();
        parts.push(format!("[Sticker \"{name}\"]"));
    }
    if let Some(question) = raw["poll"]["question"]["text"].as_str() {
        let answers = raw["poll"]["answers"].as_array().into_iter().flatten();
        let answers = answers.filter_map(|answer| answer["poll_media"]["text"].as_str());
        let answers: String = answers.map(|text| format!("\n- {text}")).collect();
        parts.push(format!("[Poll: {question}]{answers}"));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// What somebody else said, and this message passes on. Discord does not say who that was.
fn forwarded(raw: &Value) -> Option<Forwarded> {
    let snapshots = raw["message_snapshots"].as_array()?;
    let said = snapshots.iter().map(|snapshot| {
        snapshot["message"]["content"]
            .as_str()
            .unwrap_or_default()
            .trim()
    });
    let said: Vec<&str> = said.filter(|said| !said.is_empty()).collect();
    (!snapshots.is_empty()).then(|| Forwarded {
        from: None,
        text: said.join("\n\n"),
    })
}

/// People by their names instead of their numbers.
fn named(text: &str, raw: &Value, us: &Us) -> String {
    let mut text = text.to_owned();
    for user in mentioned(raw) {
        let Some(id) = user["id"].as_str() else {
            continue;
        };
        let name = match user["global_name"].as_str().or(user["username"].as_str()) {
            _ if id == us.id => us.name.as_str(),
            Some(name) => name,
            None => id,
        };
        for mark in [format!("<@{id}>"), format!("<@!{id}>")] {
            text = text.replace(&mark, &format!("@{name}"));
        }
    }
    text
}

fn replied_to(raw: &Value, us: &Us) -> Option<RepliedTo> {
    // A forwarded message refers, too.
    if raw["message_reference"]["type"].as_u64().unwrap_or(0) != 0 {
        return None;
    }
    let id = raw["message_reference"]["message_id"].as_str()?;
    let original = &raw["referenced_message"];
    let said = words(original, us);
    let passed_on = forwarded(original).map_or_else(String::new, |passed_on| passed_on.text);
    let said = format!("{said}\n{passed_on}").trim().to_owned();
    let label = attachments(original).first().map(|_| "[file]".to_owned());
    Some(RepliedTo {
        id: MessageId::from(id.to_owned()),
        text: (!said.is_empty()).then_some(said).or(label),
        is_ours: original["author"]["id"] == us.id.as_str(),
    })
}

fn attachments(raw: &Value) -> Vec<Attachment> {
    let place = |raw: &Value| {
        let channel = raw["channel_id"].as_str().unwrap_or_default();
        format!("{channel}/{}", raw["id"].as_str().unwrap_or_default())
    };
    let is_voice = raw["flags"].as_u64().unwrap_or(0) & VOICE_FLAG != 0;
    let own = raw["attachments"].as_array().into_iter().flatten();
    let snapshots = raw["message_snapshots"].as_array().into_iter().flatten();
    let forwarded = snapshots
        .filter_map(|snapshot| snapshot["message"]["attachments"].as_array())
        .flatten();
    own.chain(forwarded)
        .filter_map(Value::as_object)
        .filter_map(|file| attachment(file, is_voice, &place(raw)))
        .collect()
}

fn attachment(file: &Map<String, Value>, is_voice: bool, place: &str) -> Option<Attachment> {
    let text = |name: &str| {
        file.get(name)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    };
    let mime = text("content_type");
    let kind = match mime.as_deref().unwrap_or_default() {
        _ if is_voice => AttachmentKind::Voice,
        mime if mime.starts_with("image/") && !mime.contains("svg") => AttachmentKind::Picture,
        mime if mime.starts_with("video/") => AttachmentKind::Video,
        mime if mime.starts_with("audio/") => AttachmentKind::Audio,
        _ => AttachmentKind::Document,
    };
    Some(Attachment {
        kind,
        name: text("title")
            .filter(|title| title.contains('.'))
            .or_else(|| text("filename")),
        mime,
        bytes: file.get("size").and_then(Value::as_u64),
        file: format!("{place}/{}", text("id")?),
    })
}

#[cfg(test)]
mod tests {
    use hermes_core::ChatKind;
    use serde_json::json;

    use super::*;

    fn us() -> Us {
        Us {
            id: "42".to_owned(),
            name: "hermes".to_owned(),
        }
    }

    fn said() -> Said {
        let chat = Chat {
            kind: ChatKind::Group,
            scope: Some("9".to_owned()),
            ..Chat::direct("7")
        };
        Said {
            chat,
            is_in_our_thread: false,
        }
    }

    fn read_with(content: Value, listening: &Listening) -> Option<IncomingMessage> {
        let mut raw = json!({"id": "175928847299117063", "channel_id": "7", "type": 0, "content": "", "author": {"id": "1", "username": "ann", "global_name": "Ann"}});
        for (key, value) in content.as_object().into_iter().flatten() {
            raw[key] = value.clone();
        }
        match read_message(raw, said(), &us(), listening)?.incoming {
            Incoming::Message(message) => Some(message),
            other => panic!("{other:?}"),
        }
    }

    fn read(content: Value) -> Option<IncomingMessage> {
        read_with(content, &Listening::default())
    }

    fn user(id: &str, is_bot: bool) -> Value {
        json!({"id": id, "username": format!("user{id}"), "bot": is_bot})
    }

    #[test]
    fn our_name_in_front_is_left_out_and_others_are_named() {
        let message = read(json!({"content": "<@42>, ask <@5> and <@42>", "mentions": [user("42", true), user("5", false)]})).expect("a message");
        assert_eq!(message.text, "ask @user5 and @hermes");
        assert!(message.mentions.us && !message.mentions.other_bots);
        let other =
            read(json!({"content": "<@6> hi", "mentions": [user("6", true)]})).expect("a message");
        assert!(!other.mentions.us && other.mentions.other_bots);
    }

    #[test]
    fn what_names_only_others_is_for_them() {
        let listening = Listening {
            leaves_others_alone: true,
            ..Listening::default()
        };
        let for_others = json!({"content": "<@5> hi", "mentions": [user("5", false)]});
        assert!(read_with(for_others.clone(), &listening).is_none());
        assert!(read(for_others).is_some());
        let both =
            json!({"content": "<@5> <@42> hi", "mentions": [user("5", false), user("42", true)]});
        assert!(read_with(both, &listening).is_some());
    }

    #[test]
    fn bots_may_have_to_name_us_in_their_words() {
        let reply =
            json!({"content": "hi", "author": user("8", true), "mentions": [user("42", true)]});
        assert!(read(reply.clone()).expect("a message").mentions.us);
        let strict = Listening {
            bots_need_inline_mention: true,
            ..Listening::default()
        };
        assert!(!read_with(reply, &strict).expect("a message").mentions.us);
    }

    #[test]
    fn what_we_said_what_nobody_said_and_what_says_nothing_is_passed_over() {
        assert!(read(json!({"content": "hi", "author": user("42", true)})).is_none());
        assert!(read(json!({"content": "hi", "type": 7})).is_none());
        assert!(read(json!({"content": " "})).is_none());
        let link = json!({"id": "1", "content": "x", "author": user("1", false), "edited_timestamp": null});
        assert!(read_edit(link, said(), &us(), &Listening::default()).is_none());
    }

    #[test]
    fn files_stickers_polls_and_forwarded_words_are_told() {
        let file = json!({"id": "3", "filename": "a.ogg", "content_type": "audio/ogg", "size": 5});
        let voice =
            read(json!({"attachments": [file.clone()], "flags": VOICE_FLAG})).expect("a message");
        assert_eq!(voice.attachments[0].kind, AttachmentKind::Voice);
        assert_eq!(voice.attachments[0].file, "7/175928847299117063/3");
        let music = read(json!({"attachments": [file]})).expect("a message");
        assert_eq!(music.attachments[0].kind, AttachmentKind::Audio);
        let shown = read(json!({
            "content": "look",
            "sticker_items": [{"name": "Wave"}],
            "message_snapshots": [{"message": {"content": "old words"}}],
            "poll": {"question": {"text": "Tea?"}, "answers": [{"poll_media": {"text": "Yes"}}]},
        }));
        let shown = shown.expect("a message");
        assert_eq!(shown.text, "look\n[Sticker \"Wave\"]\n[Poll: Tea?]\n- Yes");
        let forwarded = shown.forwarded.expect("what was passed on");
        assert_eq!(forwarded.text, "old words", "nobody typed that here");
    }

    #[test]
    fn commands_are_lines_and_buttons_are_presses() {
        let raw = json!({"id": "5", "application_id": "42", "token": "tok", "type": 2, "user": user("1", false), "data": {"name": "model", "options": [{"name": "args", "value": "gpt "}]}});
        let update = read_interaction(raw.clone(), Chat::direct("7")).expect("an update");
        assert_eq!(update.id, "5");
        let Incoming::Message(message) = update.incoming else {
            panic!("a message");
        };
        assert_eq!(message.text, "/model gpt");
        let mut press = raw;
        press["type"] = 3.into();
        press["message"] = json!({"id": "77"});
        press["data"] = json!({"custom_id": "ea:once:1"});
        let update = read_interaction(press, Chat::direct("7")).expect("an update");
        assert!(matches!(update.incoming, Incoming::Press(press) if press.data == "ea:once:1"));
        assert!(read_interaction(json!({"type": 1}), Chat::direct("7")).is_none());
    }
}
