//! Following a session: its events are numbered, and any number of followers may read them, late ones too.
//!
//! Numbers begin at 1 when a session is opened and grow by one with each event, for as long as it stays open in its
//! process. Opened again, it begins at 1 again: who lets clients come back later tells them which opening a number is of.

use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::session::Event;

/// An event and its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NumberedEvent {
    pub number: u64,
    #[serde(flatten)]
    pub event: Event,
}

/// What a follower is given.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "almost all are events, and a box for each would cost more"
)]
pub enum Followed {
    Event(NumberedEvent),
    /// So many events are no longer kept. What was said in them is in the store.
    Missed {
        events: u64,
    },
}

/// Where a follower begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowFrom {
    /// With what happens from now on.
    Now,
    /// With the beginning of the turn that runs; like [`Self::Now`] when none does.
    Turn,
    /// Behind the event of this number. One that was not told yet is of an earlier opening: that is like [`Self::Turn`].
    After(u64),
}

impl Followed {
    pub fn event(&self) -> Option<&Event> {
        match self {
            Self::Event(numbered) => Some(&numbered.event),
            Self::Missed { .. } => None,
        }
    }

    pub fn into_event(self) -> Option<Event> {
        match self {
            Self::Event(numbered) => Some(numbered.event),
            Self::Missed { .. } => None,
        }
    }
}

impl Serialize for Followed {
    /// An event with its number, or `{"event":"missed","events":3}`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Event(event) => event.serialize(serializer),
            Self::Missed { events } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("event", "missed")?;
                map.serialize_entry("events", events)?;
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_stands_beside_its_number() {
        let event = Event::Text { text: "hi".into() };
        let numbered = NumberedEvent { number: 7, event };
        let json = serde_json::to_string(&numbered).unwrap();
        assert_eq!(json, r#"{"number":7,"event":"text","text":"hi"}"#);
        let read: NumberedEvent = serde_json::from_str(&json).unwrap();
        assert_eq!(read, numbered);
        let json = serde_json::to_string(&Followed::Event(numbered)).unwrap();
        assert_eq!(json, r#"{"number":7,"event":"text","text":"hi"}"#);
    }

    #[test]
    fn what_was_missed_is_a_line_of_its_own() {
        let json = serde_json::to_string(&Followed::Missed { events: 3 }).unwrap();
        assert_eq!(json, r#"{"event":"missed","events":3}"#);
    }
}
