//! Counts what was used: by hour, model, tool, surface and how turns ended.

use hermes_core::{
    Counted, HourUse, Insights, LearningCost, LearningInsights, ModelName, ModelUse, NOTES_MARK,
    SessionRecord, Timestamp, Used,
};
use rusqlite::{Connection, Row};

use crate::failure::Failure;
use crate::sessions::{self, unsigned};

/// Lines of a chart that still fit a screen.
const LISTED_MAX: usize = 20;

/// In the order [`used`] reads them. The whole prompt counts as input, from a cache or not.
const USED_COLUMNS: &str = "
    count(*), sum(r.input_tokens + r.cache_read_tokens + r.cache_write_tokens), sum(r.output_tokens),
    coalesce(sum(r.cost_micro_usd), 0), sum(r.cost_micro_usd IS NULL)";

pub(crate) fn insights(conn: &Connection, since: Timestamp) -> Result<Insights, Failure> {
    let since = since.as_millis();
    Ok(Insights {
        hours: hours(conn, since)?,
        models: models(conn, since)?,
        tools: counted(
            conn,
            since,
            "SELECT c.tool, count(*) FROM calls c JOIN messages m ON m.number = c.reply
             WHERE m.at >= ?1 GROUP BY 1",
        )?,
        sources: counted(
            conn,
            since,
            "SELECT source, count(*) FROM sessions WHERE updated >= ?1 GROUP BY 1",
        )?,
        failures: counted(
            conn,
            since,
            "SELECT json_extract(data, '$.how') AS how, count(*) FROM steps
             WHERE kind = 'turn_ended' AND at >= ?1 AND how <> 'finished' GROUP BY 1",
        )?,
        longest: longest(conn, since)?,
        learning: learning(conn, since)?,
    })
}

fn hours(conn: &Connection, since: i64) -> Result<Vec<HourUse>, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT strftime('%Y-%m-%d', m.at / 1000, 'unixepoch', 'localtime') AS day,
                CAST(strftime('%w', m.at / 1000, 'unixepoch', 'localtime') AS INTEGER),
                CAST(strftime('%H', m.at / 1000, 'unixepoch', 'localtime') AS INTEGER) AS hour,
                {USED_COLUMNS}
         FROM requests r JOIN messages m ON m.number = r.reply
         WHERE m.at >= ?1 GROUP BY day, hour ORDER BY day, hour"
    ))?;
    let hours = statement.query_map([since], |row| {
        Ok(HourUse {
            day: row.get(0)?,
            weekday: row.get(1)?,
            hour: row.get(2)?,
            used: used(row, 3)?,
        })
    })?;
    Ok(hours.collect::<Result<_, _>>()?)
}

fn models(conn: &Connection, since: i64) -> Result<Vec<ModelUse>, Failure> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT r.provider, r.model, {USED_COLUMNS}
         FROM requests r JOIN messages m ON m.number = r.reply
         WHERE m.at >= ?1 GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2"
    ))?;
    let models = statement.query_map([since], |row| {
        Ok(ModelUse {
            model: ModelName {
                provider: row.get(0)?,
                model: row.get(1)?,
            },
            used: used(row, 2)?,
        })
    })?;
    Ok(models.collect::<Result<_, _>>()?)
}

/// Runs a query for names and how often each was met; the commonest first.
fn counted(conn: &Connection, since: i64, sql: &str) -> Result<Vec<Counted>, Failure> {
    let sql = format!("{sql} ORDER BY 2 DESC, 1 LIMIT {LISTED_MAX}");
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map([since], |row| {
        Ok(Counted {
            name: row.get(0)?,
            count: unsigned(row, 1)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn longest(conn: &Connection, since: i64) -> Result<Vec<SessionRecord>, Failure> {
    const SHOWN: usize = 5;
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {} FROM sessions WHERE updated >= ?1
         ORDER BY messages DESC, updated DESC LIMIT {SHOWN}",
        sessions::RECORD_COLUMNS
    ))?;
    let records = statement.query_map([since], sessions::record)?;
    Ok(records.collect::<Result<_, _>>()?)
}

fn learning(conn: &Connection, since: i64) -> Result<LearningInsights, Failure> {
    let one = |sql: &str| -> Result<u64, Failure> {
        Ok(conn
            .prepare_cached(sql)?
            .query_row([since], |row| unsigned(row, 0))?)
    };
    Ok(LearningInsights {
        costs: learning_costs(conn, since)?,
        changes: counted(
            conn,
            since,
            "SELECT kind, count(*) FROM learned_changes
             WHERE at >= ?1 AND finished AND undoes IS NULL GROUP BY 1",
        )?,
        undone: one(
            "SELECT count(*) FROM learned_changes WHERE at >= ?1 AND finished AND undoes IS NOT NULL",
        )?,
        conversations_with_notes: one(&format!(
            "SELECT count(DISTINCT s.number) FROM sessions s JOIN prefixes p ON p.session = s.number
             JOIN prefix_texts t ON t.number = p.system
             WHERE s.updated >= ?1 AND instr(t.text, '{NOTES_MARK}')"
        ))?,
    })
}

fn learning_costs(conn: &Connection, since: i64) -> Result<Vec<LearningCost>, Failure> {
    let mut statement = conn.prepare_cached(
        "SELECT purpose, count(*), sum(tokens), sum(micro_usd) FROM learning_use
         WHERE day >= ?1 GROUP BY 1 ORDER BY 3 DESC, 1",
    )?;
    let day = Timestamp::from_millis(since).date_text();
    let costs = statement.query_map([day], |row| {
        Ok(LearningCost {
            purpose: row.get(0)?,
            requests: unsigned(row, 1)?,
            tokens: unsigned(row, 2)?,
            micro_usd: unsigned(row, 3)?,
        })
    })?;
    Ok(costs.collect::<Result<_, _>>()?)
}

fn used(row: &Row<'_>, first: usize) -> rusqlite::Result<Used> {
    Ok(Used {
        requests: unsigned(row, first)?,
        input: unsigned(row, first + 1)?,
        output: unsigned(row, first + 2)?,
        cost_micro_usd: unsigned(row, first + 3)?,
        requests_without_price: unsigned(row, first + 4)?,
    })
}
