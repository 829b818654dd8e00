//! simcord, which people test their bots with, on a port: strict about what is sent, and its sessions are resumed.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermes_core::{Address, AttachmentKind, Channel, MessageId};
use hermes_testkit::contract::channel::{Fault, Place, PlatformSide, Said, Seen, channel_contract};
use hermes_testkit::peers;
use serde_json::{Value, json};

use super::open_at;
use super::side::{buttons, text_of};
use crate::peer::Peer;

const TOKEN: &str = "NDI.simcord.token-of-tests";

struct Simcord {
    peer: Arc<Peer>,
    /// The channels of this case.
    places: Value,
}

impl Simcord {
    async fn new(peer: Arc<Peer>) -> Self {
        let places = peer.ask("/people/begin", &[], &json!({})).await;
        Self { peer, places }
    }

    fn channel(&self, place: Place) -> String {
        text_of(match place {
            Place::Direct => &self.places["direct"],
            Place::Group => &self.places["group"],
            Place::Thread => &self.places["thread"],
        })
    }

    async fn ask(&self, what: &str, body: Value) -> Value {
        self.peer.ask(&format!("/people/{what}"), &[], &body).await
    }
}

fn seen(message: &Value) -> Seen {
    let file = message["files"].get(0).and_then(Value::as_str);
    Seen {
        id: text_of(&message["id"]),
        text: super::shown(message["content"].as_str().unwrap_or_default()),
        buttons: buttons(message),
        file: file.map(|bytes| {
            let name = text_of(&message["attachments"][0]["filename"]);
            (name, STANDARD.decode(bytes).unwrap())
        }),
        replies_to: message["message_reference"]["message_id"]
            .as_str()
            .map(ToOwned::to_owned),
        is_silent: message["flags"].as_u64().unwrap_or(0) & (1 << 12) != 0,
    }
}

impl PlatformSide for Simcord {
    fn open(&self) -> Arc<dyn Channel> {
        open_at(&self.peer.url, TOKEN, &json!({}))
    }

    fn place(&self, place: Place) -> Option<Address> {
        Address::parse(&format!("discord:{}", self.channel(place)))
    }

    async fn say(&self, place: Place, said: Said) -> Option<MessageId> {
        if said.album.is_some() {
            return None;
        }
        let mention = said
            .mentions_us
            .then(|| format!("<@{}> ", text_of(&self.places["bot"])));
        let file = said
            .file
            .as_ref()
            .map(|file| json!({"name": file.name, "bytes": STANDARD.encode(&file.bytes)}));
        let body = json!({
            "channel": self.channel(place),
            "text": format!("{}{}", mention.unwrap_or_default(), said.text),
            "file": file,
            "is_voice": said.file.is_some_and(|file| file.kind == AttachmentKind::Voice),
            "replies_to": said.replies_to.as_ref().map(MessageId::as_str),
        });
        let answer = self.ask("say", body).await;
        Some(MessageId::from(text_of(&answer["id"])))
    }

    async fn edit(&self, place: Place, id: &MessageId, text: &str) -> bool {
        let body = json!({"channel": self.channel(place), "message": id.as_str(), "text": text});
        self.ask("edit", body).await;
        true
    }

    async fn press(&self, place: Place, message: &MessageId, data: &str) -> bool {
        let body =
            json!({"channel": self.channel(place), "message": message.as_str(), "data": data});
        self.ask("press", body).await;
        true
    }

    async fn seen(&self, place: Place) -> Vec<Seen> {
        let found = self
            .ask("seen", json!({"channel": self.channel(place)}))
            .await;
        let is_ours = |message: &&Value| message["author"]["id"] == self.places["bot"];
        // What is for the eyes of one person only is not part of the chat.
        let is_for_all = |message: &&Value| message["flags"].as_u64().unwrap_or(0) & (1 << 6) == 0;
        let found = found.as_array().cloned().unwrap_or_default();
        found
            .iter()
            .filter(is_ours)
            .filter(is_for_all)
            .map(seen)
            .collect()
    }

    async fn marks(&self, place: Place, id: &MessageId) -> Option<usize> {
        let found = self
            .ask("seen", json!({"channel": self.channel(place)}))
            .await;
        let found = found.as_array().cloned().unwrap_or_default();
        let message = found.iter().find(|message| message["id"] == id.as_str())?;
        Some(message["reactions"].as_array().map_or(0, Vec::len))
    }

    async fn typing(&self, place: Place) -> Option<usize> {
        let shown = self
            .ask("typing", json!({"channel": self.channel(place)}))
            .await;
        usize::try_from(shown["count"].as_u64()?).ok()
    }

    async fn waiting(&self) -> Option<usize> {
        None
    }

    async fn fault(&self, fault: Fault) -> bool {
        let (what, body) = match fault {
            Fault::Disconnect => ("drop", json!({})),
            Fault::WrongPassword => ("rotate", json!({})),
            Fault::Throttle(wait) => ("fault", json!({"fault": wait.as_secs_f64()})),
            Fault::LoseAnswer => ("fault", json!({"fault": "lose answer"})),
            Fault::LoseCall => ("fault", json!({"fault": "lose call"})),
            Fault::Garbage => ("fault", json!({"fault": "garbage"})),
            _ => return false,
        };
        self.ask(what, body).await;
        true
    }

    fn lacks(&self) -> &'static [&'static str] {
        &[
            // It does not know nonces again.
            "faults::a_lost_answer_leaves_doubt",
        ]
    }

    fn secret(&self) -> String {
        TOKEN.to_owned()
    }
}

#[tokio::test]
async fn discord_keeps_the_contract_with_simcord() {
    let peer = Peer::start("simcord", |folder, port| {
        let python = folder.join("bin/python");
        let mut command = peers::program(&python.to_string_lossy());
        command.args(["-c", include_str!("simcord.py"), &port.to_string(), TOKEN]);
        command
    });
    let Some(peer) = peer.await.map(Arc::new) else {
        return;
    };
    let report = channel_contract(async || Simcord::new(Arc::clone(&peer)).await).await;
    println!(
        "played {}, left out {:#?}",
        report.played.len(),
        report.left_out
    );
    assert!(report.played.len() >= 60, "{}", report.played.len());
}
