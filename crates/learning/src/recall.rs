//! Recall: what was said in earlier conversations, for the model ([`tool`]) and for people.
//!
//! A search names messages; here they are grouped by conversation and shown with what stands around them. A conversation
//! and its branches are one. [`summary`](Recall::summarise) has a cheap model say what the hits of a conversation say about
//! the question, with links to the messages.

mod summary;
mod tool;
mod view;

use std::sync::Arc;

use hermes_core::{
    Archive, Role, SearchHit, SearchQuery, SessionFilter, SessionId, SessionRecord, Spoken,
    SpokenFrom, SpokenQuery, StoreError,
};

use crate::asking::Asking;

pub use summary::Summary;
pub use tool::{tool, tool_to_look_at};

/// Hits that are grouped.
const HITS_MAX: usize = 300;

/// Branches of branches that are followed to their root.
const LINEAGE_MAX: usize = 16;

/// Messages shown from the beginning and the end of a conversation that is found, and of one that is read.
const BOOKEND: usize = 3;
const READ_FIRST: usize = 20;
const READ_LAST: usize = 10;

/// Hits of one conversation that are told besides the best.
const MORE_HITS_MAX: usize = 8;

/// A source whose conversations come last: nobody took part in them.
const SCHEDULED: &str = "cron";

/// Looks into the conversations of one home, and of other profiles where there are some.
#[derive(Clone)]
pub struct Recall {
    pub archive: Arc<dyn Archive>,
    pub profiles: Option<Arc<dyn Profiles>>,
    /// Who writes summaries; without one there are none.
    pub asking: Option<Asking>,
}

/// The homes of other profiles.
pub trait Profiles: Send + Sync {
    /// Opens the conversations of a profile to look at them. The error says what there is.
    fn archive(&self, profile: &str) -> Result<Arc<dyn Archive>, String>;
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub query: String,
    pub roles: Vec<Role>,
    pub limit: usize,
    pub sort: Sort,
    /// The conversation that asks: what its model sees is not looked at.
    pub current: Option<SessionId>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Relevance,
    Newest,
    Oldest,
}

/// A conversation in which something was found.
#[derive(Debug, Clone)]
pub struct Found {
    pub record: SessionRecord,
    /// The conversation that it branched off, or works for.
    pub root: SessionId,
    pub best: SearchHit,
    /// Places of other hits, the best first.
    pub more: Vec<u64>,
}

/// A conversation that is read: its beginning and its end.
#[derive(Debug, Clone)]
pub struct Read {
    pub record: SessionRecord,
    pub first: Vec<Spoken>,
    pub last: Vec<Spoken>,
}

impl Recall {
    /// The conversations that say something about it, the best first.
    pub async fn discover(&self, wanted: &Wanted) -> Result<Vec<Found>, StoreError> {
        let hits = self.archive.search(SearchQuery {
            text: wanted.query.clone(),
            without: wanted.current.iter().cloned().collect(),
            roles: wanted.roles.clone(),
            hides_subagents: true,
            limit: HITS_MAX,
            ..SearchQuery::default()
        });
        let mut hits = hits.await?;
        match wanted.sort {
            Sort::Relevance => {}
            Sort::Newest => hits.sort_by_key(|hit| std::cmp::Reverse(hit.place)),
            Sort::Oldest => hits.sort_by_key(|hit| hit.place),
        }
        let mut found = self.grouped(hits, wanted.current.as_ref()).await?;
        if let Some(named) = self.named(wanted, &found).await? {
            found.retain(|one| one.record.id != named.record.id);
            found.insert(0, named);
        }
        if wanted.sort == Sort::Relevance {
            found.sort_by_key(|one| one.record.source == SCHEDULED);
        }
        found.truncate(wanted.limit);
        Ok(found)
    }

    /// One entry for each lineage, in the order of its best hit.
    async fn grouped(
        &self,
        hits: Vec<SearchHit>,
        current: Option<&SessionId>,
    ) -> Result<Vec<Found>, StoreError> {
        let own_root = match current {
            Some(current) => self.root(current).await.ok(),
            None => None,
        };
        let mut found: Vec<Found> = Vec::new();
        let mut roots: Vec<(SessionId, SessionId)> = Vec::new();
        for hit in hits {
            let known = roots.iter().find(|(session, _)| *session == hit.session);
            let root = match known {
                Some((_, root)) => root.clone(),
                None => {
                    let root = self.root(&hit.session).await?;
                    roots.push((hit.session.clone(), root.clone()));
                    root
                }
            };
            // A branch begins with what its parent has said: the model that asks sees that.
            if Some(&root) == own_root.as_ref() && Some(&hit.session) != current {
                continue;
            }
            match found.iter_mut().find(|one| one.root == root) {
                Some(one) if one.more.len() < MORE_HITS_MAX && one.record.id == hit.session => {
                    one.more.push(hit.place);
                }
                Some(_) => {}
                None => found.push(Found {
                    record: self.archive.record(&hit.session).await?,
                    root,
                    best: hit,
                    more: Vec::new(),
                }),
            }
        }
        Ok(found)
    }

    /// A conversation that is called just so.
    async fn named(&self, wanted: &Wanted, found: &[Found]) -> Result<Option<Found>, StoreError> {
        let Ok(session) = self.archive.find(wanted.query.trim()).await else {
            return Ok(None);
        };
        let record = self.archive.record(&session).await?;
        let is_title = record.title.as_ref().is_some_and(|title| {
            title
                .to_lowercase()
                .starts_with(&wanted.query.trim().to_lowercase())
        });
        if !is_title || wanted.current.as_ref() == Some(&session) {
            return Ok(None);
        }
        if let Some(known) = found.iter().find(|one| one.record.id == session) {
            return Ok(Some(known.clone()));
        }
        let first = self.around(&session, SpokenFrom::After(0), 1).await?;
        let root = self.root(&session).await?;
        Ok(first.into_iter().next().map(|first| Found {
            best: SearchHit {
                session: session.clone(),
                title: record.title.clone(),
                at: first.at,
                role: first.message.role,
                place: first.place,
                snippet: view::said(&first, view::SNIPPET_CHARS_MAX),
            },
            record,
            root,
            more: Vec::new(),
        }))
    }

    /// What stands around a message, itself included, and the conversation it is in.
    pub async fn scroll(
        &self,
        place: u64,
        window: usize,
    ) -> Result<Option<(SessionRecord, Vec<Spoken>)>, StoreError> {
        let Some(anchor) = self.archive.message_at(place).await? else {
            return Ok(None);
        };
        let session = anchor.session.clone();
        let messages = self.window(&session, anchor, window).await?;
        Ok(Some((self.archive.record(&session).await?, messages)))
    }

    async fn window(
        &self,
        session: &SessionId,
        anchor: Spoken,
        window: usize,
    ) -> Result<Vec<Spoken>, StoreError> {
        let place = anchor.place;
        let mut messages = self
            .around(session, SpokenFrom::Before(place), window)
            .await?;
        messages.push(anchor);
        messages.extend(
            self.around(session, SpokenFrom::After(place), window)
                .await?,
        );
        Ok(messages)
    }

    pub async fn read(&self, session: &SessionId) -> Result<Read, StoreError> {
        let record = self.archive.record(session).await?;
        let first = self
            .around(session, SpokenFrom::After(0), READ_FIRST)
            .await?;
        let end = first.last().map_or(0, |last| last.place);
        let mut last = self.around(session, SpokenFrom::End, READ_LAST).await?;
        last.retain(|one| one.place > end);
        Ok(Read {
            record,
            first,
            last,
        })
    }

    /// The newest conversations but the one that asks.
    pub async fn browse(
        &self,
        limit: usize,
        current: Option<&SessionId>,
    ) -> Result<Vec<SessionRecord>, StoreError> {
        let filter = SessionFilter {
            limit: limit + 1,
            ..SessionFilter::default()
        };
        let mut records = self.archive.list(filter).await?;
        records.retain(|record| Some(&record.id) != current);
        records.truncate(limit);
        Ok(records)
    }

    async fn around(
        &self,
        session: &SessionId,
        from: SpokenFrom,
        limit: usize,
    ) -> Result<Vec<Spoken>, StoreError> {
        let query = SpokenQuery {
            session: Some(session.clone()),
            from,
            with_results: false,
            limit,
        };
        self.archive.spoken(query).await
    }

    /// Where a conversation began that others branched off.
    async fn root(&self, session: &SessionId) -> Result<SessionId, StoreError> {
        let mut root = session.clone();
        for _ in 0..LINEAGE_MAX {
            match self.archive.record(&root).await {
                Ok(SessionRecord {
                    parent: Some(parent),
                    ..
                }) if parent != root => root = parent,
                Ok(_) => break,
                // A parent that was deleted: its branches still belong together.
                Err(StoreError::NotFound { .. }) if root != *session => break,
                Err(error) => return Err(error),
            }
        }
        Ok(root)
    }
}
