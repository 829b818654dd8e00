//! `/memory` and `/learned`: what it remembers, and what it learned.

use hermes_core::{ChangeFilter, ChangeId, LearningLog as _};
use hermes_learning::notes::Notes;

use super::Conversation;
use crate::error::{Error, Result};
use crate::{learned, notes};

impl Conversation {
    pub(super) async fn memory(&self, arguments: &str) -> Result<String> {
        let (word, rest) = match arguments.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (arguments, ""),
        };
        match (word, rest) {
            ("" | "list" | "show", "") => notes::listed(&self.notes()?),
            ("search", words) if !words.is_empty() => {
                let found = self.notes()?.search(words).map_err(notes::told)?;
                Ok(notes::found(&found))
            }
            ("pending", "") => Ok(notes::waiting(&self.notes()?)),
            ("approve" | "reject", number) if !number.is_empty() => {
                notes::decide(&self.notes()?, word, number).await
            }
            ("history", "") => self.changes(Some("notes".to_owned())).await,
            ("undo", number) => self.undo_change(number).await,
            _ => Err(Error::asked("/memory does not know these words").with_hint(
                "/memory, /memory search WORDS, history, undo N, pending, approve N or reject N",
            )),
        }
    }

    pub(super) async fn learned(&self, arguments: &str) -> Result<String> {
        match arguments.split_whitespace().collect::<Vec<_>>().as_slice() {
            [] => self.changes(None).await,
            ["undo", number] => self.undo_change(number).await,
            [number] => {
                let log = self.archive().as_ref();
                Ok(learned::shown(
                    &learned::find(log, change_id(number)?).await?,
                ))
            }
            _ => Err(Error::asked("/learned does not know these words")
                .with_hint("/learned, /learned N or /learned undo N")),
        }
    }

    fn notes(&self) -> Result<Notes> {
        let person = self.options.person.clone();
        notes::for_commands(&self.settings_now()?, person, self.archive().clone())
    }

    /// What was learned from and about whoever talks here.
    async fn changes(&self, kind: Option<String>) -> Result<String> {
        let filter = ChangeFilter {
            kind,
            limit: learned::LISTED_MAX,
            ..ChangeFilter::default()
        };
        let mut changes = self.archive().changes(filter).await?;
        let person = self.options.person.as_ref();
        changes.retain(|change| learned::is_of(&change.change.subject, person));
        Ok(learned::listed(&changes, self.runtime.clock().now()))
    }

    async fn undo_change(&self, number: &str) -> Result<String> {
        let id = change_id(number)?;
        let change = learned::find(self.archive().as_ref(), id).await?;
        if !learned::is_of(&change.change.subject, self.options.person.as_ref()) {
            return Err(Error::asked(format!("change {id} is not about you")));
        }
        learned::undo(&self.settings_now()?, self.archive().clone(), id).await
    }
}

fn change_id(number: &str) -> Result<ChangeId> {
    number.parse().map_err(|_| {
        Error::asked(format!("`{number}` is not the number of a change"))
            .with_hint("/learned lists them")
    })
}
