//! Words on their way to the session: files that come with them are fetched beside everything else, so that the lane hears
//! commands meanwhile.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hermes_core::{
    Attachment, BoxFuture, Channel, InboxEntry, InboxId, Op, Origin, Part, UserMessage,
};
use tokio::time::timeout;

use crate::chat::media;
use crate::chat::ports::ChatPorts;

/// For all files of one message: a line so slow that this is too short has nobody waiting at its end any more.
const FETCHING_MAX: Duration = Duration::from_secs(300);

/// What files became: notes among the words, and pictures.
#[derive(Default)]
pub(super) struct Fetched {
    notes: Vec<String>,
    pictures: Vec<Part>,
}

/// How the session is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// A turn begins with it.
    Say,
    /// The turn that runs hears it.
    Steer,
}

impl Telling {
    pub(super) fn op(self, message: UserMessage) -> Op {
        match self {
            Self::Say => Op::Say(message),
            Self::Steer => Op::Steer(message),
        }
    }
}

pub(super) struct Preparing {
    pub(super) ids: Vec<InboxId>,
    pub(super) telling: Telling,
    texts: Vec<String>,
    skills: Vec<Part>,
    origin: Origin,
    /// What it begins with.
    pub(super) first: Option<InboxEntry>,
    /// The mutex is never locked: it makes the lane `Sync`.
    pub(super) future: Option<Mutex<BoxFuture<'static, Fetched>>>,
    pub(super) fetched: Fetched,
}

impl Preparing {
    pub(super) fn new(
        ids: Vec<InboxId>,
        telling: Telling,
        texts: Vec<String>,
        skills: Vec<Part>,
        origin: Origin,
    ) -> Self {
        Self {
            ids,
            telling,
            texts,
            skills,
            origin,
            first: None,
            future: None,
            fetched: Fetched::default(),
        }
    }

    /// Has files fetched, if there are any.
    pub(super) fn with_files(
        mut self,
        channel: Option<&Arc<dyn Channel>>,
        files: Vec<Attachment>,
        ports: Arc<ChatPorts>,
        folder: PathBuf,
    ) -> Self {
        if let Some(channel) = channel.filter(|_| !files.is_empty()) {
            let fetching = fetch(Arc::clone(channel), files, ports, folder);
            self.future = Some(Mutex::new(Box::pin(fetching)));
        }
        self
    }

    pub(super) async fn finish(self, ports: &ChatPorts, folder: &Path) -> UserMessage {
        let mut texts = Vec::new();
        for text in self.texts {
            texts.push(media::without_length(text, ports, folder).await);
        }
        texts.extend(self.fetched.notes);
        texts.retain(|text| !text.trim().is_empty());
        let mut parts = vec![Part::text(texts.join("\n\n"))];
        parts.extend(self.skills);
        parts.extend(self.fetched.pictures);
        UserMessage::of(parts).with_origin(self.origin)
    }
}

async fn fetch(
    channel: Arc<dyn Channel>,
    files: Vec<Attachment>,
    ports: Arc<ChatPorts>,
    folder: PathBuf,
) -> Fetched {
    let mut fetched = Fetched::default();
    let all = async {
        for file in &files {
            let taken = media::take(channel.as_ref(), file, &ports, &folder).await;
            fetched.notes.extend(taken.note);
            fetched.pictures.extend(taken.picture.map(Part::Image));
        }
    };
    if timeout(FETCHING_MAX, all).await.is_err() {
        let note = "[a file was sent here too, and could not be fetched in time]";
        fetched.notes.push(note.to_owned());
    }
    fetched
}
