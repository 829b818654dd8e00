//! Questions that wait for consent. The one rule: what settles a question first is final.

use hermes_core::approval_code::TRIES_MAX;
use hermes_core::{
    Approval, ApprovalCode, ApprovalId, CallId, Said, SessionId, Settled, Settlement, Settling,
    StoreError, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Everything of an approval, in the order [`read`] takes it.
const SELECT: &str = "
    SELECT a.id, s.id, a.call, coalesce(a.tool, c.tool), a.what, a.reason, a.choices, a.created, a.expires,
           a.settled, a.how, c.result IS NOT NULL, a.preview, a.code, a.folder, a.patterns, a.said, a.tries
    FROM approvals a
        JOIN calls c ON c.reply = a.reply AND c.id = a.call
        JOIN messages m ON m.number = a.reply
        JOIN sessions s ON s.number = m.session";

pub(crate) fn open(conn: &Connection, approval: &Approval) -> Result<(), Failure> {
    let Some(reply) = open_reply(conn, &approval.session, &approval.call)? else {
        return Err(Failure::Refused(format!(
            "call `{}` of session `{}` is not open",
            approval.call, approval.session
        )));
    };
    conn.prepare_cached(
        "INSERT INTO approvals (id, reply, call, tool, what, reason, choices, created, expires, preview, code, folder,
             patterns)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        approval.id.as_str(),
        reply,
        approval.call.as_str(),
        approval.tool,
        approval.what,
        approval.reason,
        to_json(&approval.choices)?,
        approval.created.as_millis(),
        approval.expires.as_millis(),
        approval.preview.as_ref().map(to_json).transpose()?,
        approval.code.shown(),
        approval.folder.as_ref().map(|folder| folder.to_string_lossy()),
        to_json(&approval.patterns)?,
    ])?;
    Ok(())
}

/// Returns the last reply of the open turn, if this call of it has no result.
fn open_reply(
    conn: &Connection,
    session: &SessionId,
    call: &CallId,
) -> Result<Option<i64>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT c.reply
         FROM sessions s JOIN turns t ON t.number = s.open_turn JOIN calls c ON c.reply = t.reply
         WHERE s.id = ?1 AND c.id = ?2 AND c.result IS NULL",
    )?;
    let reply = statement.query_row([session.as_str(), call.as_str()], |row| row.get(0));
    Ok(reply.optional()?)
}

pub(crate) fn settle(
    conn: &Connection,
    id: &ApprovalId,
    settlement: Settlement,
) -> Result<Settling, Failure> {
    let found = find(conn, id)?;
    if let Some(settlement) = found.approval.settled {
        return Ok(Settling {
            settlement,
            is_ours: false,
        });
    }
    let how = match settlement.how {
        Settled::Answered { .. } if found.has_result => Settled::Withdrawn,
        Settled::Answered { .. } if !found.approval.is_open(settlement.at) => Settled::Expired,
        Settled::Answered { verdict, .. } if !found.approval.offers(verdict, &settlement.said) => {
            let id = id.clone();
            return Err(Failure::Told(StoreError::NotOffered { id, verdict }));
        }
        how => how,
    };
    conn.prepare_cached("UPDATE approvals SET settled = ?2, how = ?3, said = ?4 WHERE id = ?1")?
        .execute(params![
            id.as_str(),
            settlement.at.as_millis(),
            to_json(&how)?,
            to_json(&settlement.said)?,
        ])?;
    let is_ours = how == settlement.how;
    Ok(Settling {
        settlement: Settlement { how, ..settlement },
        is_ours,
    })
}

/// What became of an attempt with a code. No failure, because a wrong code must be counted, and failures change nothing.
pub(crate) enum ByCode {
    Settled(ApprovalId, Settling),
    Wrong,
    Locked,
}

pub(crate) fn settle_by_code(
    conn: &Connection,
    code: &str,
    settlement: Settlement,
) -> Result<ByCode, Failure> {
    let waiting = select(
        conn,
        "WHERE a.settled IS NULL AND a.expires > ?1 AND c.result IS NULL",
        settlement.at.as_millis(),
    )?;
    let (locked, open): (Vec<_>, Vec<_>) = waiting
        .into_iter()
        .partition(|found| found.tries >= TRIES_MAX);
    // All are compared, so that the time it takes says nothing.
    let matching: Vec<_> = open
        .iter()
        .filter(|found| found.approval.code.is(code))
        .collect();
    if let Some(found) = matching.first() {
        let id = found.approval.id.clone();
        let settling = settle(conn, &id, settlement)?;
        return Ok(ByCode::Settled(id, settling));
    }
    if let Some(found) = over(conn, code)? {
        let id = found.approval.id.clone();
        let settling = settle(conn, &id, settlement)?;
        return Ok(ByCode::Settled(id, settling));
    }
    if open.is_empty() && !locked.is_empty() {
        return Ok(ByCode::Locked);
    }
    conn.prepare_cached(
        "UPDATE approvals SET tries = tries + 1 WHERE settled IS NULL AND expires > ?1",
    )?
    .execute([settlement.at.as_millis()])?;
    Ok(ByCode::Wrong)
}

/// Finds the last question with this code that is over, so that who comes too late is told so.
fn over(conn: &Connection, code: &str) -> Result<Option<Found>, Failure> {
    let code = code.trim().to_ascii_lowercase();
    let condition =
        "WHERE a.code = ?1 AND a.code != '' AND (a.settled IS NOT NULL OR c.result IS NOT NULL)
         ORDER BY a.created DESC LIMIT 1";
    Ok(select(conn, condition, code)?.pop())
}

pub(crate) fn approval(conn: &Connection, id: &ApprovalId) -> Result<Approval, Failure> {
    find(conn, id).map(|found| found.approval)
}

pub(crate) fn of_call(
    conn: &Connection,
    session: &SessionId,
    call: &CallId,
) -> Result<Option<Approval>, Failure> {
    let Some(reply) = open_reply(conn, session, call)? else {
        return Ok(None);
    };
    let mut statement = conn.prepare_cached(&format!(
        "{SELECT} WHERE a.reply = ?1 AND a.call = ?2 ORDER BY a.created DESC LIMIT 1"
    ))?;
    let mut rows = statement.query(params![reply, call.as_str()])?;
    let found = rows.next()?.map(read).transpose()?;
    Ok(found.map(|found| found.approval))
}

pub(crate) fn open_ones(conn: &Connection, now: Timestamp) -> Result<Vec<Approval>, Failure> {
    let condition =
        "WHERE a.settled IS NULL AND a.expires > ?1 AND c.result IS NULL ORDER BY a.created, a.id";
    let found = select(conn, condition, now.as_millis())?;
    Ok(found.into_iter().map(|found| found.approval).collect())
}

/// Those that fit a condition with one value in it.
fn select(
    conn: &Connection,
    condition: &str,
    value: impl rusqlite::ToSql,
) -> Result<Vec<Found>, Failure> {
    let mut statement = conn.prepare_cached(&format!("{SELECT} {condition}"))?;
    let mut rows = statement.query([value])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

struct Found {
    approval: Approval,
    /// Wrong codes that were tried.
    tries: u32,
    /// Whether its call needs no answer any more.
    has_result: bool,
}

fn find(conn: &Connection, id: &ApprovalId) -> Result<Found, Failure> {
    let mut statement = conn.prepare_cached(&format!("{SELECT} WHERE a.id = ?1"))?;
    let mut rows = statement.query([id.as_str()])?;
    match rows.next()? {
        Some(row) => read(row),
        None => Err(Failure::Told(StoreError::NoApproval { id: id.clone() })),
    }
}

fn read(row: &Row<'_>) -> Result<Found, Failure> {
    let settled: Option<i64> = row.get(9)?;
    let how: Option<String> = row.get(10)?;
    let settled = match settled.zip(how) {
        Some((at, how)) => Some(Settlement {
            at: Timestamp::from_millis(at),
            how: from_json(&how)?,
            said: said(row)?,
        }),
        None => None,
    };
    let patterns: Option<String> = row.get(15)?;
    let patterns = patterns.as_deref().map(from_json).transpose()?;
    let preview: Option<String> = row.get(12)?;
    Ok(Found {
        approval: Approval {
            id: row.get::<_, String>(0)?.into(),
            code: ApprovalCode::stored(row.get::<_, Option<String>>(13)?.unwrap_or_default()),
            session: row.get::<_, String>(1)?.into(),
            call: row.get::<_, String>(2)?.into(),
            tool: row.get(3)?,
            what: row.get(4)?,
            folder: row.get::<_, Option<String>>(14)?.map(Into::into),
            reason: row.get(5)?,
            patterns: patterns.unwrap_or_default(),
            preview: preview.as_deref().map(from_json).transpose()?,
            choices: from_json(&row.get::<_, String>(6)?)?,
            created: Timestamp::from_millis(row.get(7)?),
            expires: Timestamp::from_millis(row.get(8)?),
            settled,
        },
        has_result: row.get(11)?,
        tries: row.get(17)?,
    })
}

/// What was said with an answer. Those from before schema 6 were given without a word.
fn said(row: &Row<'_>) -> Result<Said, Failure> {
    let said: Option<String> = row.get(16)?;
    Ok(said
        .as_deref()
        .map(from_json)
        .transpose()?
        .unwrap_or_default())
}

fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value)
        .map_err(|error| Failure::Refused(format!("an approval cannot be written: {error}")))
}

fn from_json<T: DeserializeOwned>(json: &str) -> Result<T, Failure> {
    serde_json::from_str(json).map_err(|error| Failure::Unreadable(format!("an approval: {error}")))
}
