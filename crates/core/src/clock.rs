//! Wall-clock time. Durations and timers are tokio's; this is only for "what time is it".

use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// Tells the time. The binary has the system's clock, tests have one they move.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
}

/// Milliseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    pub year: i64,
    pub month: u32,
    pub day: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay {
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
}

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Splits into date and time of day, UTC, proleptic Gregorian.
    pub fn civil(self) -> (Date, TimeOfDay) {
        let utc = TimeZone::UTC.to_datetime(self.instant());
        let date = Date {
            year: utc.year().into(),
            month: utc.month().unsigned_abs().into(),
            day: utc.day().unsigned_abs().into(),
        };
        let time = TimeOfDay {
            hour: utc.hour().unsigned_abs().into(),
            minute: utc.minute().unsigned_abs().into(),
            second: utc.second().unsigned_abs().into(),
        };
        (date, time)
    }

    /// `2026-11-15 21:04:05 UTC`.
    pub fn to_text(self) -> String {
        let (_, time) = self.civil();
        format!(
            "{} {:02}:{:02}:{:02} UTC",
            self.date_text(),
            time.hour,
            time.minute,
            time.second
        )
    }

    /// `2026-11-15T21:04:05Z`, as files that other programs read have it.
    pub fn to_iso(self) -> String {
        let (_, time) = self.civil();
        let TimeOfDay {
            hour,
            minute,
            second,
        } = time;
        format!("{}T{hour:02}:{minute:02}:{second:02}Z", self.date_text())
    }

    /// Reads `2026-11-15T21:04:05Z`, also with a fraction of a second or with an offset such as `+01:00`.
    pub fn from_iso(text: &str) -> Option<Self> {
        let instant: jiff::Timestamp = text.parse().ok()?;
        Some(Self(instant.as_millisecond()))
    }

    /// What is before or after all calendars is their first or last moment.
    fn instant(self) -> jiff::Timestamp {
        let edge = if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        };
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(edge)
    }

    /// Returns the time so much later.
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// Returns the time so much earlier.
    pub fn minus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// How long ago another time was; nothing when it is yet to come.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or_default())
    }

    /// `2026-11-15`.
    pub fn date_text(self) -> String {
        let (date, _) = self.civil();
        format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_at_the_edges() {
        let check = |millis, text: &str| assert_eq!(Timestamp::from_millis(millis).to_text(), text);
        check(0, "1970-01-01 00:00:00 UTC");
        check(-1000, "1969-12-31 23:59:59 UTC");
        check(951_782_400_000, "2000-02-29 00:00:00 UTC");
        check(951_868_800_000, "2000-03-01 00:00:00 UTC");
        check(1_794_777_845_000, "2026-11-15 21:24:05 UTC");
        check(4_107_542_400_000, "2100-03-01 00:00:00 UTC");
        check(i64::MAX, "9999-12-30 22:00:00 UTC");
    }

    #[test]
    fn iso_times_are_read_back_and_written_by_others_too() {
        for millis in [0, 951_782_400_000, 1_794_777_845_000, 4_107_542_400_000] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(Timestamp::from_iso(&time.to_iso()), Some(time));
        }
        let check = |text: &str, millis: i64| {
            let expected = Timestamp::from_millis(millis);
            assert_eq!(Timestamp::from_iso(text), Some(expected), "{text}");
        };
        check("2026-11-15T21:24:05.123456+00:00", 1_794_777_845_123);
        check("2026-11-15T22:24:05+01:00", 1_794_777_845_000);
        check("2026-11-15 21:24:05.5Z", 1_794_777_845_500);
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "soon",
            "2026-11-15",
            "2026-13-15T21:24:05Z",
            "2026-11-15T25:24:05Z",
            "2026-11-15T21:24:05",
            "2026-11-15T21:24:05+1",
            "2026-11-15T21:24:0éZ",
            "+026-11-15T21:24:05Z",
            "2026-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
        ] {
            assert_eq!(Timestamp::from_iso(text), None, "{text}");
        }
    }
}
