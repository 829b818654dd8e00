//! Names of things that outlive a process.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::random::Random;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    };
}

text_id! {
    /// One conversation. Never changes, whatever happens inside it.
    SessionId
}
text_id! {
    /// One user input brought to rest.
    TurnId
}
text_id! {
    /// Words that wait for the turn that runs.
    QueuedId
}
text_id! {
    /// One elicitation of a running call; unique within a session as long as its process runs.
    ElicitationId
}
text_id! {
    /// One question for a person's consent. Short, because people type it.
    ApprovalId
}
text_id! {
    /// One job of a schedule. Short, because people type it.
    JobId
}
text_id! {
    /// What a chat platform calls one message.
    MessageId
}
text_id! {
    /// One tool use inside a turn. The text comes from the model, so it is unique only within its reply.
    CallId
}

impl SessionId {
    /// Makes an id people can read: `YYYYMMDD_HHMMSS_<8 hex>`.
    pub fn generate(now: Timestamp, random: &Random) -> Self {
        let (date, time) = now.civil();
        Self(format!(
            "{:04}{:02}{:02}_{:02}{:02}{:02}_{:08x}",
            date.year,
            date.month,
            date.day,
            time.hour,
            time.minute,
            time.second,
            random.next_u64() & 0xffff_ffff
        ))
    }
}

impl TurnId {
    /// Makes an id that sorts by time within a session.
    pub fn generate(now: Timestamp, random: &Random) -> Self {
        Self(format!(
            "{:012x}{:08x}",
            now.as_millis(),
            random.next_u64() & 0xffff_ffff
        ))
    }
}

impl QueuedId {
    pub fn generate(now: Timestamp, random: &Random) -> Self {
        Self(TurnId::generate(now, random).0)
    }
}

impl JobId {
    /// Twelve digits from 0 to f.
    pub fn generate(random: &Random) -> Self {
        Self(format!("{:012x}", random.next_u64() & 0xffff_ffff_ffff))
    }
}

impl ApprovalId {
    pub fn generate(random: &Random) -> Self {
        Self(format!("{:08x}", random.next_u64() & 0xffff_ffff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_says_when_it_began() {
        let id = SessionId::generate(
            Timestamp::from_millis(1_763_244_005_000),
            &Random::seeded(7),
        );
        assert!(id.as_str().starts_with("20251115_220005_"), "{id}");
        assert_eq!(id.as_str().len(), "YYYYMMDD_HHMMSS_".len() + 8);
    }

    #[test]
    fn sessions_that_begin_in_one_second_are_many() {
        let (now, random) = (Timestamp::from_millis(0), Random::seeded(7));
        let ids: std::collections::HashSet<_> = (0..5_000)
            .map(|_| SessionId::generate(now, &random))
            .collect();
        assert_eq!(ids.len(), 5_000);
    }
}
