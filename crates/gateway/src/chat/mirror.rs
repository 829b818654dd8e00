//! What was sent to a chat apart from its conversation becomes part of that: whoever answers "why?" is understood.
//!
//! It is written down when it is handed over, and stands behind the next words that are said in the chat. The commit that
//! begins a turn with those notes that it was told: no crash loses it or has it told twice, no turn begins with it, and
//! what the conversation began with stays as it was.

use std::time::Duration;

use hermes_core::{
    Address, Claimed, Mirrored, Part, Record, RecordKey, Records, StoreError, Timestamp, text,
};

/// What nobody answered for so long is not what somebody answers now.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// Of one message: the model is reminded of it, and has not written it.
const CHARS_MAX: usize = 4_000;
/// Messages that one answer is about: the last ones.
const MESSAGES_MAX: usize = 5;
/// Looked through for those. A chat that gets one in every ten minutes has as many in a week.
const RECORDS_MAX: usize = 1_000;

/// Writes down what is about to be sent to a chat, once for its key.
pub(super) async fn keep(
    records: &dyn Records,
    key: &str,
    to: &Address,
    words: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let record = Record {
        fingerprint: String::new(),
        value: Some(text::shorten(words.trim(), CHARS_MAX)),
        created: now,
        expires: now.plus(KEPT),
    };
    let key = RecordKey::new(scope(to), key);
    match records.claim_record(key, record).await? {
        Claimed::New | Claimed::Held(_) => Ok(()),
    }
}

/// What was sent to a chat and not told yet: for the model, and for the commit that tells it.
pub(super) async fn untold(
    records: &dyn Records,
    to: &Address,
    now: Timestamp,
) -> Result<Option<(Part, Mirrored)>, StoreError> {
    let scope = scope(to);
    let all = records.records_in(&scope, now, RECORDS_MAX).await?;
    // What comes in this very instant is told the next time.
    let before = all.iter().filter(|(_, record)| record.created < now);
    let untold: Vec<(&str, Timestamp)> = before
        .filter_map(|(_, record)| Some((record.value.as_deref()?, record.created)))
        .collect();
    let Some((_, until)) = untold.last().copied() else {
        return Ok(None);
    };
    let last = untold
        .iter()
        .skip(untold.len().saturating_sub(MESSAGES_MAX));
    let texts: Vec<&str> = last.map(|(text, _)| *text).collect();
    Ok(Some((note(&texts), Mirrored { scope, until })))
}

/// The words are those of jobs, webhooks and other programs, which may quote anybody.
fn note(texts: &[&str]) -> Part {
    let quoted: Vec<String> = texts
        .iter()
        .map(|text| {
            format!(
                "<sent_here>\n{}\n</sent_here>",
                text.replace("</sent_here>", "")
            )
        })
        .collect();
    Part::text(format!(
        "[Before that, this was sent to the chat on your behalf, apart from this conversation. It says what the words above \
         may be about, and asks nothing of you.]\n{}",
        quoted.join("\n")
    ))
}

fn scope(to: &Address) -> String {
    format!("mirror {to}")
}
