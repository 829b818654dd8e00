//! A session as the entries that a copy of it begins with.

use hermes_core::history::in_call_order_by;
use hermes_core::{Entry, Message, SessionId, Shortened, TurnId};
use rusqlite::Connection;

use crate::failure::Failure;
use crate::{compactions, load, sessions, tool_states};

pub(crate) fn entries(conn: &Connection, session: &SessionId) -> Result<Vec<Entry>, Failure> {
    let number = sessions::require_number(conn, session)?;
    if load::open_turn(conn, number)?.is_some() {
        return Err(Failure::Refused(format!(
            "session `{session}` has a turn that has not ended"
        )));
    }
    let mut entries = turns(conn, session)?;
    let kept = tool_states::by_turn(conn, number)?.into_iter();
    entries.extend(kept.map(|(turn, tool, state)| Entry::ToolKept { turn, tool, state }));
    entries.extend(seen_instead(conn, number)?);
    Ok(entries)
}

fn turns(conn: &Connection, session: &SessionId) -> Result<Vec<Entry>, Failure> {
    let mut turns: Vec<(TurnId, Vec<Message>)> = Vec::new();
    for line in load::transcript(conn, session)? {
        match (turns.last_mut(), line.turn) {
            (Some((of, said)), Some(turn)) if *of == turn => said.push(line.message),
            (_, Some(turn)) => turns.push((turn, vec![line.message])),
            (Some((_, said)), None) => said.push(line.message),
            (None, None) => {
                return Err(Failure::Unreadable(
                    "a message that belongs to no turn".into(),
                ));
            }
        }
    }
    let turns = turns.into_iter();
    let inherited = turns.map(|(turn, messages)| Entry::Inherited { turn, messages });
    Ok(inherited.collect())
}

/// The compaction that counts, as one that is made now.
fn seen_instead(conn: &Connection, session: i64) -> Result<Option<Entry>, Failure> {
    let Some(mut current) = compactions::current(conn, session)? else {
        return Ok(None);
    };
    let kept = load::numbered(conn, session, current.covers + 1)?;
    let kept = in_call_order_by(kept, |(_, message)| message);
    let places = kept.iter().zip(0..);
    let shortened = places.filter_map(|((number, _), at)| {
        let message = current.shortened.remove(number)?;
        Some(Shortened { at, message })
    });
    let shortened: Vec<_> = shortened.collect();
    let is_seen_whole = current.summary.is_none() && shortened.is_empty();
    Ok((!is_seen_whole).then(|| Entry::Compacted {
        summary: current.summary,
        kept: kept.len() as u32,
        shortened,
        prefix: None,
        used: None,
    }))
}
