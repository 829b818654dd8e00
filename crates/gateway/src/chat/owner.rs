//! Who the owner of the home is.
//!
//! Who the settings name, over all platforms: an admin of private chats; without any, the only one who is named at all. Where they
//! leave it open, it is written down: by `hermes pairing owner`, or, where nobody is named anywhere, when somebody is let in for
//! the first time. That is decided once: letting somebody out makes nobody else the owner.

use std::time::Duration;

use hermes_core::{Claimed, Clock, Pairings, Record, RecordKey, Records, StoreError};

use super::access::{GatewayAccess, PlatformAccess};
use super::pairing::is_of_platform;

/// For as long as anybody keeps a home.
const KEPT: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// In a list: whoever.
const EVERYBODY: &str = "*";

/// Who the settings of all platforms name.
#[derive(Debug, Clone, Default)]
pub struct NamedPeople {
    /// Admins of private chats.
    admins: Vec<Account>,
    /// Who may ask.
    allowed: Vec<Account>,
}

/// An id on a platform; on any, where the settings name none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Account {
    platform: Option<String>,
    id: String,
}

/// What the settings say of somebody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    Owner,
    /// Somebody else is.
    SomebodyElse,
    /// Whoever is written down.
    AsWrittenDown,
    /// The same; and as long as nobody is, the first who was let in.
    AsLetIn,
}

impl Account {
    fn is(&self, account: &str) -> bool {
        let Some((platform, id)) = account.split_once(':') else {
            return false;
        };
        let is_there = self.platform.as_deref().is_none_or(|one| one == platform);
        is_there && self.id.eq_ignore_ascii_case(id)
    }
}

impl NamedPeople {
    /// What all platforms of a gateway say, also those that cannot be connected.
    pub fn of<'a>(
        platforms: impl Iterator<Item = (&'a str, &'a PlatformAccess)>,
        gateway: &GatewayAccess,
    ) -> Self {
        let mut named = Self::default();
        for (platform, access) in platforms {
            let on_it = |ids: &[String]| -> Vec<Account> {
                let ids = ids.iter().map(|id| Account {
                    platform: Some(platform.to_owned()),
                    id: id.clone(),
                });
                ids.collect()
            };
            named.admins.extend(on_it(&access.alone.admins));
            named.allowed.extend(on_it(&access.allowed_users));
        }
        for id in &gateway.allowed_users {
            // An id that a platform names, too, is the same one.
            if !named
                .allowed
                .iter()
                .any(|one| one.id.eq_ignore_ascii_case(id))
            {
                named.allowed.push(Account {
                    platform: None,
                    id: id.clone(),
                });
            }
        }
        named
    }

    /// What they say of a person with these accounts (`PLATFORM:ID`).
    pub fn say_of(&self, accounts: &[String]) -> Said {
        let is_theirs = |named: &Account| accounts.iter().any(|account| named.is(account));
        if self.admins.iter().any(is_theirs) {
            return Said::Owner;
        }
        let has_admins = |account: &String| {
            let platform = account.split(':').next();
            self.admins
                .iter()
                .any(|one| one.platform.as_deref() == platform)
        };
        if accounts.iter().all(has_admins) {
            return Said::SomebodyElse;
        }
        if !self.admins.is_empty() {
            return Said::AsWrittenDown;
        }
        match self.allowed.as_slice() {
            [] => Said::AsLetIn,
            allowed if allowed.iter().all(is_theirs) => Said::Owner,
            [only] if only.id != EVERYBODY => Said::SomebodyElse,
            _ => Said::AsWrittenDown,
        }
    }

    /// Whether they name nobody at all.
    pub fn is_empty(&self) -> bool {
        self.admins.is_empty() && self.allowed.is_empty()
    }

    /// Whether they say who the owner is, whoever that may be.
    pub fn has_owner(&self) -> bool {
        let is_one = matches!(self.allowed.as_slice(), [only] if only.id != EVERYBODY);
        !self.admins.is_empty() || is_one
    }
}

fn key() -> RecordKey {
    RecordKey::new("gateway.owner", "")
}

fn record(clock: &dyn Clock, account: &str) -> Record {
    let now = clock.now();
    Record {
        fingerprint: String::new(),
        value: Some(account.to_owned()),
        created: now,
        expires: now.plus(KEPT),
    }
}

/// The account that is written down as the owner's, as `PLATFORM:ID`.
pub async fn known_owner(
    records: &dyn Records,
    clock: &dyn Clock,
) -> Result<Option<String>, StoreError> {
    let known = records.record_at(key(), clock.now()).await?;
    Ok(known.and_then(|known| known.value))
}

/// The same where nobody is named: whoever was let in first is written down, if nobody is yet.
pub async fn owner(
    records: &dyn Records,
    pairings: &dyn Pairings,
    clock: &dyn Clock,
) -> Result<Option<String>, StoreError> {
    if let Some(known) = known_owner(records, clock).await? {
        return Ok(Some(known));
    }
    let paired = pairings.paired_people(None).await?;
    let Some(first) = paired.iter().find(|one| is_of_platform(&one.platform)) else {
        return Ok(None);
    };
    let first = format!("{}:{}", first.platform, first.user);
    match records.claim_record(key(), record(clock, &first)).await? {
        Claimed::New => Ok(Some(first)),
        Claimed::Held(held) => Ok(held.value),
    }
}

/// Makes an account the owner's.
pub async fn set_owner(
    records: &dyn Records,
    clock: &dyn Clock,
    account: &str,
) -> Result<(), StoreError> {
    records.put_record(key(), record(clock, account)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::access::CommandAccess;

    fn access(admins: &[&str], allowed: &[&str]) -> PlatformAccess {
        let list = |ids: &[&str]| ids.iter().map(ToString::to_string).collect();
        PlatformAccess {
            alone: CommandAccess {
                admins: list(admins),
                ..CommandAccess::default()
            },
            allowed_users: list(allowed),
            ..PlatformAccess::default()
        }
    }

    fn named(telegram: PlatformAccess, discord: PlatformAccess, all: &[&str]) -> NamedPeople {
        let gateway = GatewayAccess {
            allowed_users: all.iter().map(ToString::to_string).collect(),
            ..GatewayAccess::default()
        };
        let platforms = [("telegram", &telegram), ("discord", &discord)];
        NamedPeople::of(platforms.into_iter(), &gateway)
    }

    fn say(named: &NamedPeople, accounts: &[&str]) -> Said {
        let accounts: Vec<String> = accounts.iter().map(ToString::to_string).collect();
        named.say_of(&accounts)
    }

    #[test]
    fn whoever_is_alone_in_a_list_is_the_owner_only_if_nobody_is_named_elsewhere() {
        let one = named(access(&[], &["1"]), access(&[], &[]), &[]);
        assert_eq!(say(&one, &["telegram:1"]), Said::Owner);
        assert_eq!(say(&one, &["discord:1"]), Said::SomebodyElse);
        let two = named(access(&[], &["1"]), access(&[], &["2"]), &[]);
        assert_eq!(say(&two, &["telegram:1"]), Said::AsWrittenDown);
        assert_eq!(say(&two, &["discord:2"]), Said::AsWrittenDown);
        // One person with both accounts is one.
        assert_eq!(say(&two, &["telegram:1", "discord:2"]), Said::Owner);
        let for_all = named(access(&[], &[]), access(&[], &[]), &["1"]);
        assert_eq!(say(&for_all, &["discord:1"]), Said::Owner);
        let twice = named(access(&[], &["1"]), access(&[], &[]), &["1"]);
        assert_eq!(say(&twice, &["telegram:1"]), Said::Owner);
        let and_a_friend = named(access(&[], &["1"]), access(&[], &[]), &["2"]);
        assert_eq!(say(&and_a_friend, &["telegram:1"]), Said::AsWrittenDown);
        assert!(for_all.has_owner() && !two.has_owner());
    }

    #[test]
    fn everybody_is_nobody() {
        let open = named(access(&[], &["*"]), access(&[], &[]), &[]);
        assert_eq!(say(&open, &["telegram:1"]), Said::AsWrittenDown);
        let nobody = named(access(&[], &[]), access(&[], &[]), &[]);
        assert_eq!(say(&nobody, &["telegram:1"]), Said::AsLetIn);
    }

    #[test]
    fn where_there_are_admins_being_named_is_not_enough() {
        let admins = named(access(&["1"], &["1", "3"]), access(&[], &["2"]), &[]);
        assert_eq!(say(&admins, &["telegram:1"]), Said::Owner);
        assert_eq!(say(&admins, &["telegram:3"]), Said::SomebodyElse);
        assert_eq!(say(&admins, &["discord:2"]), Said::AsWrittenDown);
        assert_eq!(say(&admins, &["discord:2", "telegram:1"]), Said::Owner);
        assert!(admins.has_owner());
    }
}
