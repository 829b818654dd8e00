//! Rights that one holder has for a while.

use hermes_core::{Lease, StoreError, Timestamp, WantedLease};
use rusqlite::{Connection, params};

use crate::failure::Failure;
use crate::sessions::{count, unsigned};

pub(super) fn acquire(conn: &Connection, wanted: &WantedLease) -> Result<Option<Lease>, Failure> {
    let is_held = conn
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM leases WHERE name = ?1 AND until > ?2 AND holder <> ?3)",
        )?
        .query_row(
            params![wanted.name, wanted.now.as_millis(), wanted.holder],
            |row| row.get::<_, bool>(0),
        )?;
    if is_held {
        return Ok(None);
    }
    let token = conn
        .prepare_cached("UPDATE lease_tokens SET token = token + 1 RETURNING token")?
        .query_row([], |row| unsigned(row, 0))?;
    conn.prepare_cached(
        "INSERT INTO leases (name, token, holder, until) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (name) DO UPDATE SET token = excluded.token, holder = excluded.holder, until = excluded.until",
    )?
    .execute(params![
        wanted.name,
        count(token),
        wanted.holder,
        wanted.until.as_millis()
    ])?;
    Ok(Some(Lease {
        name: wanted.name.clone(),
        token,
    }))
}

pub(super) fn renew(conn: &Connection, lease: &Lease, until: Timestamp) -> Result<bool, Failure> {
    let renewed = conn
        .prepare_cached("UPDATE leases SET until = ?3 WHERE name = ?1 AND token = ?2")?
        .execute(params![lease.name, count(lease.token), until.as_millis()])?;
    Ok(renewed == 1)
}

/// Fails where a lease was lost: whoever had it writes nothing more.
pub(super) fn require(conn: &Connection, lease: &Lease) -> Result<(), Failure> {
    let is_held = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM leases WHERE name = ?1 AND token = ?2)")?
        .query_row(params![lease.name, count(lease.token)], |row| row.get(0))?;
    if is_held {
        return Ok(());
    }
    let lease = lease.name.clone();
    Err(Failure::Told(StoreError::Overtaken { lease }))
}

pub(super) fn release(conn: &Connection, lease: &Lease) -> Result<(), Failure> {
    conn.prepare_cached("DELETE FROM leases WHERE name = ?1 AND token = ?2")?
        .execute(params![lease.name, count(lease.token)])?;
    Ok(())
}
