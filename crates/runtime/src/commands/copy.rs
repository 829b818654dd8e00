//! `/copy [N]`: an answer for the clipboard of whoever talks; the surface knows how to get it there.

use hermes_core::{Archive as _, Role, TranscriptLine};

use super::arguments::no_such;
use super::{Conversation, Done, Here, Then};
use crate::error::Result;

/// Answers that can be counted back to: nobody counts further.
const BACK_MAX: usize = 1_000;

impl Conversation {
    /// Takes the last answer, or the Nth from the end, for the person's clipboard.
    pub(super) async fn copy(&self, arguments: &str, here: &Here) -> Result<Done> {
        let back = match arguments {
            "" => 1,
            number => match number.parse() {
                Ok(back @ 1..=BACK_MAX) => back,
                _ => {
                    return Err(no_such(
                        "/copy",
                        number,
                        "the number of an answer, from the end",
                    ));
                }
            },
        };
        let lines = match self.record(here).await? {
            Some(_) => self.archive().transcript(&here.session).await?,
            None => Vec::new(),
        };
        let Some(answer) = answer(&lines, back) else {
            return Ok(Done::text("there is no such answer to copy"));
        };
        Ok(Done::then(Then::Copy { text: answer }))
    }
}

/// The words of an answer, counted from the end.
fn answer(lines: &[TranscriptLine], back: usize) -> Option<String> {
    let lines = lines.iter().rev();
    let answers = lines.filter(|line| line.message.role == Role::Assistant);
    let answers = answers.map(|line| line.message.text());
    let mut answers = answers.filter(|text| !text.trim().is_empty());
    answers.nth(back - 1)
}
