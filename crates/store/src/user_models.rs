//! What is known of people, and the conversations that it has not heard yet.

use hermes_core::{
    ChangeId, DueHearing, MoreToHear, NewLearnedChange, SessionId, StoredUserModel, Subject,
    TakenHearing, Timestamp,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::failure::Failure;
use crate::learning;
use crate::sessions::{count, number, require_number, unsigned};

/// In the order [`due`] takes it.
const SELECT: &str = "
    SELECT s.id, h.due, h.person, h.tries, h.heard
    FROM hearings h JOIN sessions s ON s.number = h.session";

pub(crate) fn read(
    conn: &Connection,
    person: Option<&str>,
) -> Result<Option<StoredUserModel>, Failure> {
    let mut statement =
        conn.prepare_cached("SELECT version, document FROM user_models WHERE person = ?1")?;
    let stored = statement.query_row([person.unwrap_or_default()], |row| {
        Ok(StoredUserModel {
            version: unsigned(row, 0)?,
            text: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
        })
    });
    Ok(stored.optional()?)
}

/// Replaces a model that is still as it was read, and logs that.
pub(crate) fn replace(
    conn: &Connection,
    version: u64,
    change: &NewLearnedChange,
) -> Result<Option<ChangeId>, Failure> {
    let Subject::UserModel { person } = &change.subject else {
        return Err(Failure::Refused(
            "the change is not about a model of a user".to_owned(),
        ));
    };
    let person = person.as_deref();
    let now = read(conn, person)?.map_or(0, |stored| stored.version);
    if now != version {
        return Ok(None);
    }
    conn.prepare_cached(
        "INSERT INTO user_models (person, version, document) VALUES (?1, ?2, ?3)
         ON CONFLICT (person) DO UPDATE SET version = excluded.version, document = excluded.document",
    )?
    .execute(params![
        person.unwrap_or_default(),
        count(version + 1),
        change.after
    ])?;
    let id = learning::begin(conn, change)?;
    learning::finish(conn, id)?;
    Ok(Some(id))
}

pub(crate) fn set_due(conn: &Connection, hearing: &DueHearing) -> Result<(), Failure> {
    let session = require_number(conn, &hearing.session)?;
    conn.prepare_cached(
        "INSERT INTO hearings (session, due, person) VALUES (?1, ?2, ?3)
         ON CONFLICT (session) DO UPDATE SET due = excluded.due, person = excluded.person",
    )?
    .execute(params![session, hearing.at.as_millis(), hearing.person])?;
    Ok(())
}

/// Hears of a session only what comes behind a message.
pub(crate) fn hear_from(conn: &Connection, session: i64, message: i64) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO hearings (session, heard) VALUES (?1, ?2)
         ON CONFLICT (session) DO UPDATE SET heard = excluded.heard",
    )?
    .execute(params![session, message])?;
    Ok(())
}

pub(crate) fn all_due(
    conn: &Connection,
    person: Option<&str>,
    now: Timestamp,
) -> Result<Vec<DueHearing>, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "{SELECT} WHERE h.due IS NOT NULL AND h.taken_until <= ?1 AND h.person IS ?2 ORDER BY h.due, h.session"
    ))?;
    let rows = statement.query_map(params![now.as_millis(), person], due)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn take(
    conn: &Connection,
    session: &SessionId,
    now: Timestamp,
    until: Timestamp,
) -> Result<Option<TakenHearing>, Failure> {
    let Some(session) = number(conn, session)? else {
        return Ok(None);
    };
    let taken = conn
        .prepare_cached(
            "UPDATE hearings SET taken_until = ?3, tries = tries + 1
             WHERE session = ?1 AND due IS NOT NULL AND taken_until <= ?2",
        )?
        .execute(params![session, now.as_millis(), until.as_millis()])?;
    if taken == 0 {
        return Ok(None);
    }
    let mut statement = conn.prepare_cached(&format!("{SELECT} WHERE h.session = ?1"))?;
    let hearing = statement.query_row([session], |row| {
        Ok(TakenHearing {
            due: due(row)?,
            tries: row.get(3)?,
            heard: unsigned(row, 4)?,
        })
    });
    Ok(hearing.optional()?)
}

pub(crate) fn put_off(conn: &Connection, session: &SessionId) -> Result<(), Failure> {
    let Some(session) = number(conn, session)? else {
        return Ok(());
    };
    conn.prepare_cached(
        "UPDATE hearings SET taken_until = 0, tries = max(tries - 1, 0) WHERE session = ?1",
    )?
    .execute([session])?;
    Ok(())
}

pub(crate) fn finish(
    conn: &Connection,
    taken: &DueHearing,
    heard: u64,
    more: MoreToHear,
) -> Result<(), Failure> {
    let Some(session) = number(conn, &taken.session)? else {
        // It was deleted meanwhile.
        return Ok(());
    };
    conn.prepare_cached(
        "UPDATE hearings SET due = CASE WHEN ?3 OR due > ?4 THEN due END, taken_until = 0, tries = 0,
             heard = max(heard, ?2)
         WHERE session = ?1",
    )?
    .execute(params![
        session,
        count(heard),
        more == MoreToHear::Yes,
        taken.at.as_millis()
    ])?;
    Ok(())
}

fn due(row: &Row<'_>) -> rusqlite::Result<DueHearing> {
    Ok(DueHearing {
        session: row.get::<_, String>(0)?.into(),
        at: Timestamp::from_millis(row.get(1)?),
        person: row.get(2)?,
    })
}
