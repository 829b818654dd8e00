//! `/link`: one person with accounts on several platforms. A code that one account was shown is entered by the other.

use hermes_core::{ChatKind, InboxEntry, StoreError};

use super::Lane;
use crate::chat::pairing::{Invitation, Redeemed};

const LOCKED: &str = "Too many codes that you entered were wrong. Please try again in an hour.";

impl Lane {
    pub(super) async fn link(
        &mut self,
        entry: &InboxEntry,
        arguments: &str,
    ) -> Result<(), StoreError> {
        let account = format!("{}:{}", entry.platform, entry.incoming.sender().id);
        let words = if entry.incoming.chat().kind != ChatKind::Dm {
            "Accounts are linked in private chats.".to_owned()
        } else if arguments.is_empty() {
            self.show_code(&account).await?
        } else if arguments.eq_ignore_ascii_case("off") {
            match self.ports().people.unlink_account(&account).await? {
                true => "This account stands for itself again.".to_owned(),
                false => "This account is linked to no other.".to_owned(),
            }
        } else {
            self.enter_code(&account, arguments).await?
        };
        self.speak(words, vec![entry.id]).await
    }

    async fn show_code(&self, account: &str) -> Result<String, StoreError> {
        Ok(match self.ports().pairing.invite_account(account).await? {
            Invitation::Code(code) => format!(
                "Write this to me with your other account:\n\n`/link {code}`\n\nThat account is you from then on: the same \
                 notes, the same conversations. The code is good for an hour; give it to nobody."
            ),
            Invitation::TooSoon => {
                "You were shown a code a moment ago. Please use that one, or wait ten minutes."
                    .to_owned()
            }
            Invitation::Full => {
                "Three codes of yours are still good. Please use one of them, or try again in an hour."
                    .to_owned()
            }
            Invitation::Locked => LOCKED.to_owned(),
        })
    }

    async fn enter_code(&mut self, account: &str, code: &str) -> Result<String, StoreError> {
        let ports = self.ports();
        let other = match ports.pairing.redeem(account, code).await? {
            Redeemed::Account(other) => other,
            Redeemed::Wrong => return Ok("That code is wrong, or too old.".to_owned()),
            Redeemed::Locked => return Ok(LOCKED.to_owned()),
        };
        if other == account {
            return Ok(
                "This is the account that was shown the code: enter it with the other one."
                    .to_owned(),
            );
        }
        let person = ports.people.linked_person(&other).await?;
        // What an owner may, is never had by a code that somebody else made: an owner could be talked into entering it.
        let (is_ours, is_theirs) = (
            self.owns_home(
                account,
                ports.people.linked_person(account).await?.as_deref(),
            )
            .await?,
            self.owns_home(&other, person.as_deref()).await?,
        );
        if is_ours && !is_theirs {
            return Ok("Say /link here, and enter the code with the other account.".to_owned());
        }
        let person = person.unwrap_or(other);
        ports
            .people
            .link_account(account, &person, ports.clock.now())
            .await?;
        let accounts = ports.people.accounts_of(&person).await?;
        Ok(format!("You are one person now: {}.", accounts.join(", ")))
    }
}
