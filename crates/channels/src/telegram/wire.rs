//! What Telegram sends, as much of it as we look at. What is missing, new or not as expected is left out, never an error.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a field that may be missing or may not be what we expect: then it is not there.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// As [`lenient`], for lists: entries that we cannot read are left out.
fn lenient_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items = match Value::deserialize(deserializer)? {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let read = |item| serde_json::from_value(item).ok();
    Ok(items.into_iter().filter_map(read).collect())
}

macro_rules! wire {
    ($(struct $name:ident {
        $(must { $($needed:ident: $needed_type:ty,)* })?
        $(may { $($optional:ident: $optional_type:ty,)* })?
        $(list { $($listed:ident: $listed_type:ty,)* })?
    })*) => {$(
        #[derive(Debug, Clone, Deserialize)]
        pub(super) struct $name {
            $($(pub(super) $needed: $needed_type,)*)?
            $($(#[serde(default, deserialize_with = "lenient")]
            pub(super) $optional: Option<$optional_type>,)*)?
            $($(#[serde(default, deserialize_with = "lenient_list")]
            pub(super) $listed: Vec<$listed_type>,)*)?
        }
    )*};
}

wire! {
    struct WireUpdate {
        may {
            message: WireMessage,
            edited_message: WireMessage,
            channel_post: WireMessage,
            edited_channel_post: WireMessage,
            callback_query: WireCallback,
        }
    }

    struct WireMessage {
        must { message_id: i64, chat: WireChat, }
        may {
            date: i64,
            edit_date: i64,
            from: WireUser,
            sender_chat: WireChat,
            message_thread_id: i64,
            is_topic_message: bool,
            text: String,
            caption: String,
            reply_to_message: Box<WireMessage>,
            external_reply: WireExternalReply,
            forward_origin: WireOrigin,
            forward_date: i64,
            quote: WireQuote,
            media_group_id: String,
            animation: WireFile,
            audio: WireFile,
            document: WireFile,
            sticker: WireSticker,
            video: WireFile,
            video_note: WireFile,
            voice: WireFile,
            contact: WireContact,
            dice: WireDice,
            location: WireLocation,
            poll: WirePoll,
            venue: WireVenue,
            forum_topic_created: WireTopic,
        }
        list {
            entities: WireEntity,
            caption_entities: WireEntity,
            photo: WirePhoto,
        }
    }

    struct WireChat {
        must { id: i64, }
        may {
            r#type: String,
            title: String,
            username: String,
            first_name: String,
            last_name: String,
            is_forum: bool,
        }
    }

    struct WireUser {
        must { id: i64, }
        may { is_bot: bool, first_name: String, last_name: String, username: String, }
    }

    struct WireEntity {
        must { r#type: String, offset: usize, length: usize, }
        may { user: WireUser, }
    }

    struct WireFile {
        must { file_id: String, }
        may { file_name: String, mime_type: String, file_size: u64, }
    }

    struct WirePhoto {
        must { file_id: String, }
        may { width: u64, height: u64, file_size: u64, }
    }

    struct WireSticker {
        must { file_id: String, }
        may { emoji: String, set_name: String, file_size: u64, is_animated: bool, is_video: bool, }
    }

    struct WireContact {
        must { phone_number: String, }
        may { first_name: String, last_name: String, }
    }

    struct WireDice {
        must { emoji: String, value: i64, }
    }

    struct WireLocation {
        must { latitude: f64, longitude: f64, }
        may { live_period: i64, }
    }

    struct WireVenue {
        must { location: WireLocation, title: String, }
        may { address: String, }
    }

    struct WirePoll {
        must { question: String, }
        list { options: WireOption, }
    }

    struct WireOption {
        must { text: String, }
    }

    struct WireQuote {
        must { text: String, }
    }

    struct WireExternalReply {
        may { message_id: i64, }
    }

    struct WireOrigin {
        may {
            sender_user: WireUser,
            sender_user_name: String,
            sender_chat: WireChat,
            chat: WireChat,
        }
    }

    struct WireTopic {
        must { name: String, }
    }

    struct WireCallback {
        must { id: String, from: WireUser, }
        may { message: WireMessage, data: String, }
    }
}

/// What `getUpdates` says, one by one: whoever cannot be read must not take the others along.
#[derive(Debug)]
pub(super) struct RawUpdate {
    pub(super) id: i64,
    pub(super) raw: Value,
}

impl RawUpdate {
    pub(super) fn read(raw: Value) -> Option<Self> {
        let id = raw.get("update_id")?.as_i64()?;
        Some(Self { id, raw })
    }
}
