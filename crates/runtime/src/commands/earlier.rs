//! Earlier conversations to choose from: a list of them, what was said in one, and where words were said.

use std::collections::HashSet;
use std::path::Path;

use hermes_core::choice::{Choice, Depth, Item};
use hermes_core::command::{Command, Verb};
use hermes_core::{
    Archive, Clock as _, Role, SearchHit, SearchQuery, SessionFilter, SessionId, SessionRecord,
    SpokenFrom, SpokenQuery, StoreError, Timestamp, text,
};

use super::conversations::{HIDDEN_SOURCE, ONE_SHOT_SOURCE};
use super::{Conversation, Done, Here, Then, rewind};
use crate::clock::SystemClock;
use crate::error::Result;
use crate::layout::{age, count};

/// Sessions to choose from: nobody scrolls further, and words find the others.
const SHOWN_MAX: usize = 200;
/// The end of a conversation says enough about it.
const PREVIEW_MESSAGES: usize = 4;
const PREVIEW_CHARS_MAX: usize = 400;
/// Hits that are read, several of which may be of one session.
const HITS_MAX: usize = 50;

/// Which conversations are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    /// Those that somebody talked in: no single questions (`-z`, `chat -q`).
    Talks,
    All,
}

impl Conversation {
    /// What a command lets somebody choose who did not say more; nothing when it is no such command.
    pub(super) async fn choices(
        &self,
        command: &'static Command,
        arguments: &str,
        here: &Here,
    ) -> Option<Result<Done>> {
        Some(match (command.verb, arguments) {
            (Verb::Resume, "") => self.offer_sessions(command, Which::Talks).await,
            (Verb::Resume, "--all") => self.offer_sessions(command, Which::All).await,
            (Verb::Rewind, "") => self.offer_messages(command, &here.session).await,
            _ => return None,
        })
    }

    /// Offers earlier conversations, those of this folder first.
    async fn offer_sessions(&self, command: &'static Command, which: Which) -> Result<Done> {
        let folder = &self.setup.settings.cwd;
        let sessions = recent(&**self.archive(), Some(folder), which).await?;
        if sessions.is_empty() {
            return Ok(Done::text(match which {
                Which::Talks => {
                    "there are no earlier conversations; /resume --all lists single questions too"
                }
                Which::All => "there are no earlier conversations",
            }));
        }
        let items = sessions.into_iter().map(|record| item_in(record, folder));
        Ok(Done::then(Then::Choose(Choice {
            command,
            title: "Go on with".into(),
            items: items.collect(),
            depth: Depth::Deep,
        })))
    }

    /// The person's messages in this conversation, to go back to before one of them.
    async fn offer_messages(&self, command: &'static Command, session: &SessionId) -> Result<Done> {
        let earlier = rewind::earlier(&**self.archive(), session).await?;
        if earlier.is_empty() {
            return Ok(Done::text("there is nothing to take back"));
        }
        Ok(Done::then(Then::Choose(Choice {
            command,
            title: "Go back to before".into(),
            items: earlier.into_iter().map(message).collect(),
            depth: Depth::Flat,
        })))
    }

    /// What was said last in a session that is offered.
    pub async fn look(&self, session: &str) -> String {
        let query = SpokenQuery {
            session: Some(session.into()),
            from: SpokenFrom::End,
            with_results: false,
            limit: PREVIEW_MESSAGES,
        };
        let spoken = match self.archive().spoken(query).await {
            Ok(spoken) => spoken,
            Err(error) => return error.to_string(),
        };
        let lines = spoken.iter().filter_map(|spoken| {
            let words = spoken.message.text();
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            let who = match spoken.message.role {
                Role::User => "›",
                _ => " ",
            };
            let is_said = !words.is_empty();
            is_said.then(|| format!("{who} {}", text::shorten(&words, PREVIEW_CHARS_MAX)))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The sessions in which words were said, the best hit of each.
    pub async fn search(&self, words: &str) -> Result<Vec<Item>> {
        Ok(items_with(&**self.archive(), words).await?)
    }
}

/// The latest sessions but this one, for suggestions; none if they cannot be read.
pub(super) async fn suggested(archive: &impl Archive, here: &SessionId) -> Vec<Item> {
    let now = SystemClock.now();
    let sessions = recent(archive, None, Which::All).await;
    let sessions = sessions.unwrap_or_default().into_iter();
    let others = sessions.filter(|record| record.id != *here);
    others.map(|record| suggested_item(record, now)).collect()
}

/// The latest sessions; those of the folder, if one is given, before the others.
async fn recent(
    archive: &impl Archive,
    folder: Option<&Path>,
    which: Which,
) -> Result<Vec<SessionRecord>, StoreError> {
    let filter = |cwd: Option<&Path>| SessionFilter {
        cwd: cwd.map(Path::to_owned),
        limit: SHOWN_MAX,
        ..SessionFilter::default()
    };
    let mut sessions = match folder {
        Some(folder) => archive.list(filter(Some(folder))).await?,
        None => Vec::new(),
    };
    let others = archive.list(filter(None)).await?;
    let is_elsewhere = |record: &SessionRecord| folder.is_none() || record.cwd.as_deref() != folder;
    sessions.extend(others.into_iter().filter(is_elsewhere));
    sessions.retain(|record| {
        let is_shown = which == Which::All || record.source != ONE_SHOT_SOURCE;
        is_shown && record.source != HIDDEN_SOURCE
    });
    sessions.truncate(SHOWN_MAX);
    Ok(sessions)
}

fn message(earlier: rewind::Earlier) -> Item {
    Item {
        value: earlier.turns.to_string(),
        label: earlier.said,
        detail: match earlier.turns {
            1 => "your last message".to_owned(),
            turns => format!("{turns} messages back"),
        },
    }
}

async fn items_with(archive: &impl Archive, words: &str) -> Result<Vec<Item>, StoreError> {
    let query = SearchQuery {
        text: words.to_owned(),
        session: None,
        limit: HITS_MAX,
        ..SearchQuery::default()
    };
    let mut known = HashSet::new();
    let mut items = Vec::new();
    for hit in archive.search(query).await? {
        if known.insert(hit.session.clone()) {
            let record = archive.record(&hit.session).await?;
            items.push(item_of_hit(record, &hit));
        }
    }
    Ok(items)
}

fn item_of_hit(record: SessionRecord, hit: &SearchHit) -> Item {
    let words = hit.snippet.replace(">>>", "").replace("<<<", "");
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    Item {
        detail: format!("“{words}”"),
        ..item(record)
    }
}

fn suggested_item(record: SessionRecord, now: Timestamp) -> Item {
    let label = record.title.unwrap_or(record.preview);
    let label = match label.trim() {
        "" => record.id.to_string(),
        label => label.to_owned(),
    };
    Item {
        label,
        detail: format!(
            "{} · {}",
            age(record.updated, now),
            count(record.messages, "message")
        ),
        value: record.id.to_string(),
    }
}

/// An item that says where it was, unless that is here.
fn item_in(record: SessionRecord, here: &Path) -> Item {
    let folder = record.cwd.clone().filter(|folder| folder != here);
    let item = item(record);
    match folder {
        None => item,
        Some(folder) => Item {
            detail: format!("{} · {}", folder.display(), item.detail),
            ..item
        },
    }
}

fn item(record: SessionRecord) -> Item {
    let day = record.updated.date_text();
    let messages = record.messages;
    Item {
        label: record.title.unwrap_or(record.preview),
        detail: format!("{day} · {messages} messages · {}", record.id),
        value: record.id.to_string(),
    }
}
