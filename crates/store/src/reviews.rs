//! The reviews of conversations that are due, and what learning used of its budget.

use hermes_core::{
    COMPACTION_USE, DueReview, LearningUse, Message, NewLearningUse, ReservationId, SessionId,
    SummaryUse, TakenReview, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::failure::Failure;
use crate::sessions::{count, number, require_number, unsigned};
use crate::{load, sessions};

/// In the order [`due`] takes it.
const SELECT: &str = "
    SELECT s.id, r.due, r.notes, r.skills, r.tries, r.person
    FROM reviews r JOIN sessions s ON s.number = r.session";

pub(crate) fn set_due(conn: &Connection, review: &DueReview) -> Result<(), Failure> {
    let session = require_number(conn, &review.session)?;
    conn.prepare_cached(
        "INSERT INTO reviews (session, due, notes, skills, person) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (session) DO UPDATE SET due = coalesce(due, excluded.due), person = excluded.person,
             notes = notes OR excluded.notes, skills = skills OR excluded.skills",
    )?
    .execute(params![
        session,
        review.at.as_millis(),
        review.notes,
        review.skills,
        review.person,
    ])?;
    Ok(())
}

pub(crate) fn all_due(conn: &Connection, now: Timestamp) -> Result<Vec<DueReview>, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "{SELECT} WHERE r.due IS NOT NULL AND r.taken_until <= ?1 AND s.open_turn IS NULL ORDER BY r.due, r.session"
    ))?;
    let rows = statement.query_map([now.as_millis()], due)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn take(
    conn: &Connection,
    session: &SessionId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<TakenReview>, Failure> {
    let Some(session) = number(conn, session)? else {
        return Ok(None);
    };
    let taken = conn
        .prepare_cached(
            "UPDATE reviews SET taken_until = ?3, tries = tries + 1
             WHERE session = ?1 AND due IS NOT NULL AND taken_until <= ?2",
        )?
        .execute(params![session, now.as_millis(), until.as_millis()])?;
    if taken == 0 {
        return Ok(None);
    }
    let mut statement = conn.prepare_cached(&format!("{SELECT} WHERE r.session = ?1"))?;
    let review = statement.query_row([session], |row| {
        Ok(TakenReview {
            due: due(row)?,
            tries: row.get(4)?,
        })
    });
    Ok(review.optional()?)
}

pub(crate) fn put_off(
    conn: &Connection,
    session: &SessionId,
    until: Timestamp,
) -> Result<(), Failure> {
    let Some(session) = number(conn, session)? else {
        return Ok(());
    };
    conn.prepare_cached(
        "UPDATE reviews SET taken_until = ?2, tries = max(tries - 1, 0) WHERE session = ?1",
    )?
    .execute(params![session, until.as_millis()])?;
    Ok(())
}

pub(crate) fn finish(conn: &Connection, session: &SessionId, messages: u64) -> Result<(), Failure> {
    let Some(session) = number(conn, session)? else {
        // It was deleted meanwhile.
        return Ok(());
    };
    conn.prepare_cached(
        "INSERT INTO reviews (session, reviewed) VALUES (?1, ?2)
         ON CONFLICT (session) DO UPDATE SET due = NULL, notes = 0, skills = 0, taken_until = 0, tries = 0,
             reviewed = excluded.reviewed",
    )?
    .execute(params![session, count(messages)])?;
    Ok(())
}

pub(crate) fn reviewed(conn: &Connection, session: &SessionId) -> Result<u64, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT r.reviewed FROM reviews r JOIN sessions s ON s.number = r.session WHERE s.id = ?1",
    )?;
    let reviewed = statement.query_row([session.as_str()], |row| unsigned(row, 0));
    Ok(reviewed.optional()?.unwrap_or(0))
}

/// The last messages behind those that were reviewed. Messages that were taken back count for neither.
pub(crate) fn unreviewed(
    conn: &Connection,
    session: &SessionId,
    limit: usize,
) -> Result<Vec<Message>, Failure> {
    let number = require_number(conn, session)?;
    let reviewed = reviewed(conn, session)?;
    let messages = sessions::read_record(conn, session)?.messages;
    let new = messages.saturating_sub(reviewed);
    load::last(conn, number, new.min(limit as u64))
}

fn due(row: &Row<'_>) -> rusqlite::Result<DueReview> {
    Ok(DueReview {
        session: row.get::<_, String>(0)?.into(),
        at: Timestamp::from_millis(row.get(1)?),
        notes: row.get(2)?,
        skills: row.get(3)?,
        person: row.get(5)?,
    })
}

/// Reserves a use, unless the day would have more than its budget then.
pub(crate) fn reserve(
    conn: &Connection,
    wanted: &NewLearningUse,
    budget: LearningUse,
) -> Result<Option<ReservationId>, Failure> {
    let used = used_on(conn, &wanted.day)?;
    let tokens = used.tokens.saturating_add(wanted.at_most.tokens);
    let micro_usd = used.micro_usd.saturating_add(wanted.at_most.micro_usd);
    if tokens > budget.tokens || micro_usd > budget.micro_usd {
        return Ok(None);
    }
    conn.prepare_cached(
        "INSERT INTO learning_use (day, purpose, session, tokens, micro_usd) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        wanted.day,
        wanted.purpose,
        wanted.session.as_ref().map(|session| session.as_str()),
        count(wanted.at_most.tokens),
        count(wanted.at_most.micro_usd),
    ])?;
    Ok(Some(ReservationId(conn.last_insert_rowid().unsigned_abs())))
}

pub(crate) fn settle(
    conn: &Connection,
    id: ReservationId,
    used: LearningUse,
) -> Result<(), Failure> {
    conn.prepare_cached(
        "UPDATE learning_use SET tokens = ?2, micro_usd = ?3, settled = 1 WHERE number = ?1 AND NOT settled",
    )?
    .execute(params![
        count(id.0),
        count(used.tokens),
        count(used.micro_usd)
    ])?;
    Ok(())
}

/// Notes what the summary of a compaction took, beside the compaction itself.
pub(crate) fn book_summary(
    conn: &Connection,
    session: i64,
    at: i64,
    used: SummaryUse,
) -> Result<(), Failure> {
    let (day, price) = (Timestamp::from_millis(at), used.cost.micro_usd());
    let used = LearningUse::of(&used.usage, price);
    conn.prepare_cached(
        "INSERT INTO learning_use (day, purpose, session, tokens, micro_usd, settled)
         SELECT ?1, ?2, id, ?4, ?5, 1 FROM sessions WHERE number = ?3",
    )?
    .execute(params![
        day.date_text(),
        COMPACTION_USE,
        session,
        count(used.tokens),
        count(used.micro_usd),
    ])?;
    Ok(())
}

pub(crate) fn used_on(conn: &Connection, day: &str) -> Result<LearningUse, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT coalesce(sum(tokens), 0), coalesce(sum(micro_usd), 0) FROM learning_use
         WHERE day = ?1 AND purpose <> ?2",
    )?;
    let used = statement.query_row([day, COMPACTION_USE], |row| {
        Ok(LearningUse {
            tokens: unsigned(row, 0)?,
            micro_usd: unsigned(row, 1)?,
        })
    });
    Ok(used?)
}
