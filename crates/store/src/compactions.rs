//! Which part of a conversation a summary stands for. A compaction opens an epoch of its session; nothing is deleted.

use std::collections::BTreeMap;

use hermes_core::history::in_call_order_by;
use hermes_core::{Message, Shortened};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::load;

/// The compaction that counts now: what a model sees.
#[derive(Default)]
pub(crate) struct Current {
    pub(crate) summary: Option<Message>,
    /// The last message that the summary stands for; 0 without one.
    pub(crate) covers: i64,
    /// What is seen in place of later messages, by their numbers.
    pub(crate) shortened: BTreeMap<i64, Message>,
}

/// What a model is to see from now on.
pub(crate) struct NewView<'a> {
    pub(crate) summary: Option<&'a Message>,
    pub(crate) kept: u32,
    pub(crate) shortened: &'a [Shortened],
    /// Requests begin with something else from now on: that alone is an epoch.
    pub(crate) is_prefixed_anew: bool,
}

/// Has a summary stand for everything but the last messages, and shorter ones for some of those.
pub(crate) fn compact(
    conn: &Connection,
    session: i64,
    at: i64,
    new: &NewView<'_>,
) -> Result<i64, Failure> {
    let mut view = current(conn, session)?.unwrap_or_default();
    match new.summary {
        Some(summary) => {
            let covers = covered(conn, session, new.kept)?;
            if view.covers >= covers {
                return Err(Failure::Refused(
                    "there is nothing new to compact: the last summary stands for all of it".into(),
                ));
            }
            view.covers = covers;
            view.summary = Some(summary.clone());
        }
        None if new.shortened.is_empty() && !new.is_prefixed_anew => {
            return Err(Failure::Refused("nothing would be shortened".into()));
        }
        None => {}
    }
    view.shortened = view.shortened.split_off(&(view.covers + 1));
    shorten(conn, session, &mut view, new)?;
    let epoch: i64 = conn
        .prepare_cached("SELECT coalesce(max(epoch), 1) + 1 FROM compactions WHERE session = ?1")?
        .query_row([session], |row| row.get(0))?;
    conn.prepare_cached(
        "INSERT INTO compactions (session, epoch, covers, summary, shortened, at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        session,
        epoch,
        view.covers,
        written(&view.summary)?,
        written(&view.shortened.iter().collect::<Vec<_>>())?,
        at
    ])?;
    set_epoch(conn, session, epoch)?;
    Ok(epoch)
}

/// Notes by their numbers which messages are seen shortened.
fn shorten(
    conn: &Connection,
    session: i64,
    view: &mut Current,
    new: &NewView<'_>,
) -> Result<(), Failure> {
    if new.shortened.is_empty() {
        return Ok(());
    }
    let refused = |why: &str| Err(Failure::Refused(why.into()));
    let kept = load::numbered(conn, session, view.covers + 1)?;
    if kept.len() != new.kept as usize {
        return refused("what is kept is not what a model sees");
    }
    let kept = in_call_order_by(kept, |(_, message)| message);
    for one in new.shortened {
        let Some((number, said)) = kept.get(one.at as usize) else {
            return refused("a message would be shortened that is not kept");
        };
        let call_of = |message: &Message| message.tool_result().map(|result| result.call.clone());
        if said.role != one.message.role || call_of(said) != call_of(&one.message) {
            return refused("a message would be shortened to another one");
        }
        view.shortened.insert(*number, one.message.clone());
    }
    Ok(())
}

fn written(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::Refused(format!("the summary cannot be written: {error}")))
}

/// Takes back what covers a message that was taken back, and goes on with the summary before it, if there is one.
pub(crate) fn revert(conn: &Connection, session: i64, at: i64, first: i64) -> Result<(), Failure> {
    let reverted = conn
        .prepare_cached(
            "UPDATE compactions SET reverted = ?3
             WHERE session = ?1 AND covers >= ?2 AND reverted IS NULL",
        )?
        .execute(params![session, first, at])?;
    if reverted == 0 {
        return Ok(());
    }
    let epoch: i64 = conn
        .prepare_cached(
            "SELECT coalesce(max(epoch), 1) FROM compactions
             WHERE session = ?1 AND reverted IS NULL",
        )?
        .query_row([session], |row| row.get(0))?;
    set_epoch(conn, session, epoch)
}

pub(crate) fn current(conn: &Connection, session: i64) -> Result<Option<Current>, Failure> {
    let found = conn
        .prepare_cached(
            "SELECT summary, shortened, covers FROM compactions
             WHERE session = ?1 AND reverted IS NULL ORDER BY epoch DESC LIMIT 1",
        )?
        .query_row([session], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get::<_, String>(1)?,
                row.get(2)?,
            ))
        })
        .optional()?;
    let Some((summary, shortened, covers)) = found else {
        return Ok(None);
    };
    let shortened: Vec<(i64, Message)> = read(&shortened)?;
    Ok(Some(Current {
        summary: read(&summary)?,
        covers,
        shortened: shortened.into_iter().collect(),
    }))
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, Failure> {
    serde_json::from_str(json)
        .map_err(|error| Failure::Unreadable(format!("the summary of a conversation: {error}")))
}

/// Returns the last message before the ones that are kept.
fn covered(conn: &Connection, session: i64, kept: u32) -> Result<i64, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT m.number, m.role FROM messages m JOIN turns t ON t.number = m.turn
         WHERE m.session = ?1 AND t.taken_back IS NULL ORDER BY m.number DESC LIMIT ?2",
    )?;
    let mut rows = statement.query(params![session, i64::from(kept) + 1])?;
    let mut first_kept: Option<String> = None;
    let mut covered = None;
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        if seen < kept {
            first_kept = Some(row.get(1)?);
        } else {
            covered = Some(row.get(0)?);
        }
        seen += 1;
    }
    if first_kept.as_deref() == Some("tool") {
        return Err(Failure::Refused(
            "what is kept begins with a result whose call would be gone".into(),
        ));
    }
    covered.ok_or_else(|| {
        Failure::Refused(format!(
            "{kept} messages cannot be kept and something be summarised: there are {seen}"
        ))
    })
}

fn set_epoch(conn: &Connection, session: i64, epoch: i64) -> Result<(), Failure> {
    conn.prepare_cached("UPDATE sessions SET epoch = ?2 WHERE number = ?1")?
        .execute([session, epoch])?;
    Ok(())
}
