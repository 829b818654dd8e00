//! What the person said in a conversation, to go back to before it.

use hermes_core::{Archive, SessionId, StoreError, TranscriptLine, skill, text};

use crate::layout::one_line;

/// Messages to go back to: nobody looks further, and `/rewind N` goes there all the same.
const SHOWN_MAX: usize = 200;
/// Enough to know a message by.
const SAID_CHARS_MAX: usize = 100;

/// A message of the person's that began a turn.
#[derive(Debug, PartialEq, Eq)]
pub struct Earlier {
    /// How many turns are taken back with it.
    pub turns: usize,
    pub said: String,
}

/// The messages one can go back to, the last one first.
pub async fn earlier(
    archive: &impl Archive,
    session: &SessionId,
) -> Result<Vec<Earlier>, StoreError> {
    match archive.transcript(session).await {
        Ok(lines) => Ok(begun(&lines)),
        // Nothing was said yet.
        Err(StoreError::NotFound { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The first message of each turn: what is said while one runs belongs to it.
fn begun(lines: &[TranscriptLine]) -> Vec<Earlier> {
    let turns = lines.chunk_by(|one, next| one.turn == next.turn);
    let begun = turns.rev().zip(1..).take(SHOWN_MAX).map(|(turn, turns)| {
        let said = turn.first().map(|line| line.message.text());
        let said = one_line(skill::as_typed(&said.unwrap_or_default()));
        Earlier {
            turns,
            said: text::shorten(&said, SAID_CHARS_MAX),
        }
    });
    begun.collect()
}

/// The messages as a list, for who types a number.
pub(super) fn listed(earlier: &[Earlier]) -> String {
    if earlier.is_empty() {
        return "there is nothing to take back".to_owned();
    }
    let rows = earlier.iter().rev();
    let mut rows: Vec<_> = rows
        .map(|one| format!("{:>3}  {}", one.turns, one.said))
        .collect();
    rows.push("/rewind N goes back to before one of them".to_owned());
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use hermes_core::{Message, Timestamp};

    use super::*;

    #[test]
    fn each_turn_is_counted_once_from_the_end() {
        let line = |turn: &str, message| TranscriptLine {
            at: Timestamp::from_millis(0),
            turn: Some(turn.into()),
            message,
        };
        let lines = [
            line("t1", Message::user("first\nwords")),
            line("t1", Message::assistant("one")),
            line("t2", Message::user("second")),
            line("t2", Message::user("and told meanwhile")),
            line("t2", Message::assistant("two")),
        ];
        let earlier = begun(&lines);
        let found: Vec<_> = earlier
            .iter()
            .map(|one| (one.turns, one.said.as_str()))
            .collect();
        assert_eq!(found, [(1, "second"), (2, "first words")]);
        assert_eq!(
            listed(&earlier),
            "  2  first words\n  1  second\n/rewind N goes back to before one of them"
        );
        assert_eq!(listed(&[]), "there is nothing to take back");
    }
}
