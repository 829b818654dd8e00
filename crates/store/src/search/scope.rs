//! Which messages a search looks at.

use hermes_core::delegation::SUBAGENT_SOURCE;
use hermes_core::{Role, SearchQuery};
use rusqlite::Connection;

use super::index;
use crate::failure::Failure;
use crate::sessions;
use crate::stored::role_name;

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
        let mut without = Vec::new();
        for session in &search.without {
            without.extend(sessions::number(conn, session)?);
        }
        if !without.is_empty() {
            conditions.push(format!("m.session NOT IN ({})", list(&without)));
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

fn list(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    numbers.join(", ")
}
