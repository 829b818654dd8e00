//! A chat platform for the demo: two files, what a person said and what they were answered. It outlives every gateway.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hermes_core::{
    Body, BoxFuture, Channel, ChannelError, ChannelFacts, ChannelPorts, Chat, Identity, Incoming,
    IncomingMessage, Inlet, Mentions, MessageId, Outgoing, Platform, PlatformSetting,
    PlatformSettingError, PlatformSettings, Sender, Trouble, Update, Updates,
};
use serde_json::{Value, json};

/// As settings name it; `hermes gateway setup` does not offer it.
pub(crate) const NAME: &str = "demo_phone";
/// Who talks.
pub(super) const PERSON: &str = "penelope";
const SAID: &str = "said.jsonl";
const ANSWERED: &str = "answered.jsonl";
const LOOK: Duration = Duration::from_millis(20);

pub(crate) const PLATFORM: Platform = Platform {
    name: NAME,
    label: "a phone",
    settings: &[PlatformSetting {
        key: "folder",
        variable: "HERMES_DEMO_PHONE",
        is_secret: false,
        is_needed: true,
        question: "",
    }],
    how_to: "",
    ignores_strangers: true,
    requires_mention: true,
    shows_calls: false,
    open: open_channel,
};

fn open_channel(
    settings: &PlatformSettings,
    _ports: ChannelPorts,
) -> Result<Arc<dyn Channel>, PlatformSettingError> {
    let folder = settings.text("folder").unwrap_or_default();
    Ok(Arc::new(Phone {
        folder: PathBuf::from(folder),
        facts: ChannelFacts {
            platform: NAME,
            account: "demo".to_owned(),
            length_max: 4_000,
            caption_length_max: 0,
            file_bytes_max: 0,
            edit_interval: None,
            has_buttons: false,
            typing: None,
            has_reactions: false,
            knows_keys: true,
            silence_max: Duration::from_secs(30),
            joining: Duration::ZERO,
            split_length: usize::MAX,
            has_private_ids: false,
            hint: "",
        },
        writing: Mutex::new(()),
    }))
}

struct Phone {
    folder: PathBuf,
    facts: ChannelFacts,
    writing: Mutex<()>,
}

impl Phone {
    /// What was said behind a line.
    fn said_after(&self, line: usize) -> Vec<Update> {
        let said = lines(&self.folder, SAID);
        let behind = said.iter().enumerate().skip(line);
        behind
            .map(|(number, said)| Update {
                id: number.to_string(),
                sent: None,
                raw: said.clone(),
                incoming: Incoming::Message(IncomingMessage {
                    chat: Chat::direct(PERSON),
                    sender: Sender {
                        id: PERSON.to_owned(),
                        ..Sender::default()
                    },
                    id: MessageId::from(number.to_string().as_str()),
                    text: said["text"].as_str().unwrap_or_default().to_owned(),
                    attachments: Vec::new(),
                    replies_to: None,
                    mentions: Mentions::default(),
                    album: None,
                    forwarded: None,
                }),
            })
            .collect()
    }
}

impl Channel for Phone {
    fn facts(&self) -> &ChannelFacts {
        &self.facts
    }

    fn receive<'a>(&'a self, inlet: &'a dyn Inlet) -> BoxFuture<'a, ChannelError> {
        Box::pin(async move {
            inlet.connected(Identity {
                id: "demo".to_owned(),
                name: "demo".to_owned(),
            });
            let mut line: usize = inlet
                .cursor()
                .and_then(|cursor| cursor.parse().ok())
                .unwrap_or(0);
            loop {
                let updates = self.said_after(line);
                if !updates.is_empty() {
                    let next = line + updates.len();
                    let cursor = Some(next.to_string());
                    let accepted = inlet.accept(Updates { updates, cursor }).await;
                    if let Err(error) = accepted {
                        return ChannelError::new(Trouble::Passing, error.to_string());
                    }
                    line = next;
                }
                inlet.heard();
                tokio::time::sleep(LOOK).await;
            }
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), ChannelError>> {
        Box::pin(async { Ok(()) })
    }

    /// Like platforms that know keys: the same message arrives once, however often it is sent.
    fn send<'a>(&'a self, message: &'a Outgoing) -> BoxFuture<'a, Result<MessageId, ChannelError>> {
        Box::pin(async move {
            let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let Body::Text { markdown, .. } = &message.body else {
                return Err(ChannelError::new(
                    Trouble::Unsupported,
                    "it takes words only",
                ));
            };
            let known: HashSet<String> = answers(&self.folder)
                .into_iter()
                .map(|(key, _)| key)
                .collect();
            if !known.contains(&message.key) {
                append(
                    &self.folder,
                    ANSWERED,
                    &json!({"key": message.key, "text": markdown}),
                )
                .map_err(|error| ChannelError::new(Trouble::Passing, error.to_string()))?;
            }
            Ok(MessageId::from(message.key.as_str()))
        })
    }
}

/// Says something on the phone.
pub(super) fn say(folder: &Path, text: &str) -> std::io::Result<()> {
    append(folder, SAID, &json!({"text": text}))
}

/// What was answered: keys and texts.
pub(super) fn answers(folder: &Path) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let answers = lines(folder, ANSWERED);
    answers
        .iter()
        .map(|answer| (text(&answer["key"]), text(&answer["text"])))
        .collect()
}

fn append(folder: &Path, name: &str, line: &Value) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join(name))?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Whole lines; one that is just being written is not there yet.
fn lines(folder: &Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
