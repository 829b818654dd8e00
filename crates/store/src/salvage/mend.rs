//! Makes a whole of what was read: what refers to nothing goes, what is referred to is put in its place, and no
//! conversation has a hole in it that a provider would refuse.

use std::collections::{BTreeMap, BTreeSet};

use hermes_core::{Message, Timestamp};
use rusqlite::Connection;

use super::Salvage;
use crate::failure::Failure;
use crate::stored::{Columns, decode};

/// Sessions and turns of which only messages are left.
const PARENTS: &str = "
    INSERT INTO sessions (number, id, source, provider, model, created, updated, messages)
        SELECT session, 'recovered-' || session, 'recovered', '', '', min(at), max(at), count(*)
        FROM messages WHERE session NOT IN (SELECT number FROM sessions) GROUP BY session;
    INSERT INTO turns (number, session, id)
        SELECT turn, min(session), 'recovered-' || turn
        FROM messages WHERE turn NOT IN (SELECT number FROM turns) GROUP BY turn;
";

/// What refers to nothing.
const ORPHANS: &str = "
    DELETE FROM turns WHERE session NOT IN (SELECT number FROM sessions);
    DELETE FROM prefixes WHERE session NOT IN (SELECT number FROM sessions);
    DELETE FROM steps WHERE turn NOT IN (SELECT number FROM turns);
    DELETE FROM calls WHERE reply NOT IN (SELECT number FROM messages);
    DELETE FROM requests WHERE reply NOT IN (SELECT number FROM messages);
    DELETE FROM approvals WHERE NOT EXISTS
        (SELECT 1 FROM calls WHERE calls.reply = approvals.reply AND calls.id = approvals.call);
    DELETE FROM tool_states WHERE turn NOT IN (SELECT number FROM turns) OR NOT json_valid(state);
    DELETE FROM compactions WHERE session NOT IN (SELECT number FROM sessions) OR NOT json_valid(summary)
        OR NOT json_valid(shortened);
    DELETE FROM queued WHERE session NOT IN (SELECT number FROM sessions) OR NOT json_valid(message);
    UPDATE sessions SET epoch = coalesce((SELECT max(c.epoch) FROM compactions c
        WHERE c.session = sessions.number AND c.reverted IS NULL), 1);
    DELETE FROM prefixes WHERE epoch > 1 AND NOT EXISTS
        (SELECT 1 FROM compactions c WHERE c.session = prefixes.session AND c.epoch = prefixes.epoch);
    INSERT OR IGNORE INTO prefix_texts (text) VALUES (''), ('[]');
    UPDATE prefixes SET system = (SELECT number FROM prefix_texts WHERE text = '')
        WHERE system NOT IN (SELECT number FROM prefix_texts);
    UPDATE prefixes SET tools = (SELECT number FROM prefix_texts WHERE text = '[]')
        WHERE tools NOT IN (SELECT number FROM prefix_texts WHERE json_valid(text));
    INSERT OR IGNORE INTO prefixes (session, epoch, system, tools)
        SELECT number, 1, (SELECT number FROM prefix_texts WHERE text = ''),
            (SELECT number FROM prefix_texts WHERE text = '[]') FROM sessions;
    UPDATE sessions SET open_turn = NULL WHERE open_turn NOT IN (SELECT turn FROM steps)
        OR open_turn NOT IN (SELECT number FROM turns);
";

/// Turns whose log names a message that is gone.
const SHORTENED: &str = "
    SELECT turn FROM steps WHERE message IS NOT NULL AND message NOT IN (SELECT number FROM messages)
    UNION SELECT m.turn FROM calls c JOIN messages m ON m.number = c.reply
        WHERE c.result IS NOT NULL AND c.result NOT IN (SELECT number FROM messages)
";

/// Brings the copied rows in order, and counts them.
pub(super) fn mend(
    conn: &Connection,
    now: Timestamp,
    salvage: &mut Salvage,
) -> Result<(), Failure> {
    let count = |what: &str| -> Result<u64, Failure> {
        let count: i64 = conn.query_row(&format!("SELECT count(*) FROM {what}"), [], |row| {
            row.get(0)
        })?;
        Ok(count.unsigned_abs())
    };
    let mut incomplete = unanswered(conn)?;
    conn.execute_batch(PARENTS)?;
    conn.execute_batch(ORPHANS)?;
    let mut shortened = conn.prepare(SHORTENED)?;
    for turn in shortened.query_map([], |row| row.get(0))? {
        incomplete.insert(turn?);
    }
    for turn in &incomplete {
        let time = now.as_millis();
        conn.execute(
            "UPDATE turns SET taken_back = ?2 WHERE number = ?1",
            [*turn, time],
        )?;
        conn.execute(
            "UPDATE sessions SET open_turn = NULL WHERE open_turn = ?1",
            [turn],
        )?;
    }
    salvage.sessions = count("sessions")?;
    salvage.messages = count("messages")?;
    salvage.renamed_sessions = count("sessions WHERE source = 'recovered'")?;
    salvage.incomplete_turns = incomplete.len() as u64;
    Ok(())
}

/// Removes messages that no version could have written, and returns the turns that lack one: a call without its result, a
/// result without its call. A turn that was cut short may lack results; it is finished when its session goes on.
fn unanswered(conn: &Connection) -> Result<BTreeSet<i64>, Failure> {
    let mut incomplete = BTreeSet::new();
    let mut unreadable = Vec::new();
    let mut open: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    let mut statement = conn
        .prepare("SELECT role, text, parts, origin, number, turn FROM messages ORDER BY number")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (role, text): (String, String) = (row.get(0)?, row.get(1)?);
        let (parts, origin): (Option<String>, Option<String>) = (row.get(2)?, row.get(3)?);
        let (number, turn): (i64, i64) = (row.get(4)?, row.get(5)?);
        let message = decode(Columns {
            role: &role,
            origin: origin.as_deref(),
            text: &text,
            parts: parts.as_deref(),
        });
        match message {
            Ok(message) if answers(&message, open.entry(turn).or_default()) => {}
            Ok(_) => _ = incomplete.insert(turn),
            Err(_) => {
                unreadable.push(number);
                incomplete.insert(turn);
            }
        }
    }
    for number in unreadable {
        conn.execute("DELETE FROM messages WHERE number = ?1", [number])?;
    }
    let running = conn
        .prepare("SELECT open_turn FROM sessions WHERE open_turn IS NOT NULL")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<BTreeSet<i64>, _>>()?;
    let lacking = open.into_iter().filter(|(_, calls)| !calls.is_empty());
    incomplete.extend(
        lacking
            .map(|(turn, _)| turn)
            .filter(|turn| !running.contains(turn)),
    );
    Ok(incomplete)
}

/// Takes note of the calls of a message, or of the result it is. Returns whether that has its call.
fn answers(message: &Message, open: &mut BTreeSet<String>) -> bool {
    open.extend(message.calls().map(|call| call.id.as_str().to_owned()));
    match message.tool_result() {
        Some(result) => open.remove(result.call.as_str()),
        None => true,
    }
}
