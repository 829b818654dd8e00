//! What MCP servers offered when they were last asked.

use hermes_core::{KnownOffer, Timestamp};
use rusqlite::{Connection, params};

use crate::failure::Failure;

/// Somebody may go back to earlier settings of a server, but not to all that there ever were.
const SETTINGS_KEPT_MAX: i64 = 4;

pub(crate) fn known(conn: &Connection) -> Result<Vec<KnownOffer>, Failure> {
    let mut statement =
        conn.prepare_cached("SELECT server, settings, offer FROM mcp_offers ORDER BY 1, 2")?;
    let rows = statement.query_map([], |row| {
        Ok(KnownOffer {
            server: row.get(0)?,
            settings: row.get(1)?,
            offer: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(crate) fn remember(
    conn: &Connection,
    offer: &KnownOffer,
    at: Timestamp,
) -> Result<(), Failure> {
    conn.prepare_cached(
        "INSERT INTO mcp_offers (server, settings, offer, seen) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (server, settings) DO UPDATE SET offer = excluded.offer, seen = excluded.seen",
    )?
    .execute(params![
        offer.server,
        offer.settings,
        offer.offer,
        at.as_millis()
    ])?;
    conn.prepare_cached(
        "DELETE FROM mcp_offers WHERE server = ?1 AND settings NOT IN
         (SELECT settings FROM mcp_offers WHERE server = ?1 ORDER BY seen DESC LIMIT ?2)",
    )?
    .execute(params![offer.server, SETTINGS_KEPT_MAX])?;
    Ok(())
}
