//! Which messages a search looks at.

use hermes_core::delegation::SUBAGENT_SOURCE;
use hermes_core::{Role, SearchQuery, SessionId};
use rusqlite::Connection;

use super::index;
use crate::failure::Failure;
use crate::stored::role_name;
use crate::{compactions, sessions};

/// Which messages `m` were not taken back: the few turns that were are read once per search.
const STANDS: &str = "m.turn NOT IN (SELECT number FROM turns WHERE taken_back IS NOT NULL)";

pub(super) struct Scope {
    /// Where in all messages they lie. Narrows the walk through an index before any row is read.
    pub(super) first: i64,
    pub(super) last: i64,
    /// What else must be true of a message `m`, in SQL.
    pub(super) condition: String,
}

impl Scope {
    pub(super) fn of(conn: &Connection, search: &SearchQuery) -> Result<Self, Failure> {
        let mut conditions = vec![STANDS.to_owned()];
        let (mut first, mut last) = (0, i64::MAX);
        if let Some(session) = &search.session {
            let session = sessions::require_number(conn, session)?;
            (first, last) = reach(conn, session)?;
            conditions.push(format!("m.session = {session}"));
        }
        for session in &search.without {
            conditions.extend(unseen(conn, session)?);
        }
        if !search.roles.is_empty() {
            conditions.push(format!("m.role IN ({})", roles(&search.roles)));
        }
        if search.hides_subagents {
            conditions.push(format!(
                "(SELECT source FROM sessions WHERE number = m.session) <> '{SUBAGENT_SOURCE}'"
            ));
        }
        Ok(Self {
            first,
            last,
            condition: conditions.join(" AND "),
        })
    }

    /// Those of them that no index has.
    pub(super) fn unindexed(&self, conn: &Connection) -> Result<Self, Failure> {
        Ok(Self {
            first: self.first.max(index::indexed(conn)? + 1),
            last: self.last,
            condition: self.condition.clone(),
        })
    }
}

fn reach(conn: &Connection, session: i64) -> Result<(i64, i64), Failure> {
    let reach = conn
        .prepare_cached(
            "SELECT coalesce((SELECT min(number) FROM messages WHERE session = ?1), 0),
                    coalesce((SELECT max(number) FROM messages WHERE session = ?1), 0)",
        )?
        .query_row([session], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(reach)
}

fn roles(roles: &[Role]) -> String {
    let quoted = roles.iter().map(|role| format!("'{}'", role_name(*role)));
    quoted.collect::<Vec<_>>().join(", ")
}

/// What the model of a conversation does not see: other conversations, and what a summary stands for.
fn unseen(conn: &Connection, session: &SessionId) -> Result<Option<String>, Failure> {
    let Some(session) = sessions::number(conn, session)? else {
        return Ok(None);
    };
    let covered = compactions::current(conn, session)?.map(|compaction| compaction.covers);
    Ok(Some(match covered {
        None => format!("m.session <> {session}"),
        Some(covers) => format!("(m.session <> {session} OR m.number <= {covers})"),
    }))
}
