//! The chats that are known.

use hermes_core::{KnownChat, SessionId};
use rusqlite::{Connection, OptionalExtension, params};

use super::{from_json, json};
use crate::failure::Failure;
use crate::sessions::count;

pub(super) fn chat(conn: &Connection, key: &str) -> Result<Option<KnownChat>, Failure> {
    let text = conn
        .prepare_cached("SELECT chat FROM chats WHERE key = ?1")?
        .query_row([key], |row| row.get::<_, String>(0));
    text.optional()?.as_deref().map(read).transpose()
}

pub(super) fn keep(conn: &Connection, chat: &KnownChat) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO chats (key, platform, session, updated, chat) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (key) DO UPDATE SET platform = excluded.platform, session = excluded.session,
             updated = excluded.updated, chat = excluded.chat",
    )?
    .execute(params![
        chat.key,
        chat.address.platform,
        chat.session.as_ref().map(SessionId::as_str),
        chat.updated.as_millis(),
        json(chat)?
    ])?;
    Ok(())
}

pub(super) fn chats(
    conn: &Connection,
    platform: Option<&str>,
    max: usize,
) -> Result<Vec<KnownChat>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT chat FROM chats WHERE ?1 IS NULL OR platform = ?1 ORDER BY updated DESC, key LIMIT ?2",
    )?;
    let mut rows = statement.query(params![platform, count(max as u64)])?;
    let mut chats = Vec::new();
    while let Some(row) = rows.next()? {
        chats.push(read(&row.get::<_, String>(0)?)?);
    }
    Ok(chats)
}

pub(super) fn chat_of(
    conn: &Connection,
    session: &SessionId,
) -> Result<Option<KnownChat>, Failure> {
    let text = conn
        .prepare_cached(
            "SELECT chat FROM chats WHERE session = ?1 ORDER BY updated DESC, key LIMIT 1",
        )?
        .query_row([session.as_str()], |row| row.get::<_, String>(0));
    text.optional()?.as_deref().map(read).transpose()
}

fn read(text: &str) -> Result<KnownChat, Failure> {
    from_json(text, "a chat")
}
