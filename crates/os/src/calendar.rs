//! Calendar time: what day it is somewhere, summer time included.
//!
//! Zones are those of the system; where it has none, those that were built in.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Where clocks show the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

/// A name that no zone has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no time zone")]
pub struct UnknownZone {
    pub name: String,
}

impl Default for Zone {
    fn default() -> Self {
        Self::utc()
    }
}

impl Zone {
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// The zone that the machine is set to; UTC when that cannot be found out.
    pub fn of_system() -> Self {
        Self(TimeZone::try_system().unwrap_or(TimeZone::UTC))
    }

    /// Finds a zone by its name in the IANA database, such as `Europe/Berlin`.
    pub fn named(name: &str) -> Result<Self, UnknownZone> {
        TimeZone::get(name).map(Self).map_err(|_| UnknownZone {
            name: name.to_owned(),
        })
    }

    /// The names there are.
    pub fn names() -> Vec<String> {
        let names = jiff::tz::db().available();
        names.map(|name| name.to_string()).collect()
    }

    pub(crate) fn time_zone(&self) -> &TimeZone {
        &self.0
    }

    /// The day it is there, at a time in milliseconds since 1970: `2026-11-15`.
    pub fn date_text(&self, at_ms: i64) -> String {
        let there = instant(at_ms).to_zoned(self.0.clone());
        there.date().to_string()
    }

    /// When it was last this hour there, on the dot, at a time in milliseconds since 1970; `None` for an hour that no day
    /// has. A day that leaves the hour out has it when the clocks go on.
    pub fn latest(&self, hour: u8, at_ms: i64) -> Option<i64> {
        let now = instant(at_ms).to_zoned(self.0.clone());
        let hour = i8::try_from(hour).ok()?;
        let on = |date: jiff::civil::Date| {
            let there = date.at(hour.clamp(0, 23), 0, 0, 0).to_zoned(self.0.clone());
            there.ok().filter(|_| hour < 24)
        };
        let today = on(now.date())?;
        let latest = if today <= now {
            today
        } else {
            on(now.date().yesterday().ok()?)?
        };
        Some(latest.timestamp().as_millisecond())
    }

    /// What clocks show there, and how far they are from UTC: `2026-11-15 22:04:05 +01:00`.
    pub fn time_text(&self, at_ms: i64) -> String {
        let there = instant(at_ms).to_zoned(self.0.clone());
        there.strftime("%Y-%m-%d %H:%M:%S %:z").to_string()
    }
}

/// What is before or after all calendars is their first or last moment.
pub(crate) fn instant(at_ms: i64) -> Timestamp {
    let edge = if at_ms < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_millisecond(at_ms).unwrap_or(edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01 00:00:00 UTC.
    const NEW_YEAR_2026_MS: i64 = 1_767_225_600_000;
    const HOUR_MS: i64 = 3_600_000;
    const DAY_MS: i64 = 24 * HOUR_MS;

    #[test]
    fn a_zone_has_its_own_day() {
        let evening = NEW_YEAR_2026_MS - HOUR_MS;
        let day = |zone: &str| Zone::named(zone).unwrap().date_text(evening);
        assert_eq!(day("UTC"), "2025-12-31");
        assert_eq!(day("Europe/Berlin"), "2026-01-01");
        assert_eq!(day("America/Los_Angeles"), "2025-12-31");
        assert_eq!(day("Pacific/Kiritimati"), "2026-01-01");
        assert!(Zone::named("Middle/Earth").is_err());
    }

    #[test]
    fn summer_time_begins_and_ends_within_an_hour() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let check = |at_ms, expected: &str| assert_eq!(berlin.time_text(at_ms), expected);
        // 29 March 2026, 01:00 UTC: two o'clock does not exist.
        let spring = NEW_YEAR_2026_MS + 87 * DAY_MS + HOUR_MS;
        check(spring - 1000, "2026-03-29 01:59:59 +01:00");
        check(spring, "2026-03-29 03:00:00 +02:00");
        // 25 October 2026, 01:00 UTC: two o'clock comes twice.
        let autumn = NEW_YEAR_2026_MS + 297 * DAY_MS + HOUR_MS;
        check(autumn - 1000, "2026-10-25 02:59:59 +02:00");
        check(autumn, "2026-10-25 02:00:00 +01:00");
    }

    #[test]
    fn months_end_when_they_end() {
        let berlin = Zone::named("Europe/Berlin").unwrap();
        let day = |days: i64| {
            berlin.date_text(NEW_YEAR_2026_MS + days * DAY_MS + 22 * HOUR_MS + HOUR_MS / 2)
        };
        assert_eq!(day(58), "2026-02-28");
        assert_eq!(day(59), "2026-03-01");
        // In summer the next day has begun by then.
        assert_eq!(day(119), "2026-05-01");
        assert_eq!(day(364), "2026-12-31");
    }

    #[test]
    fn a_time_beyond_all_calendars_is_their_edge() {
        assert_eq!(Zone::utc().date_text(i64::MAX), "9999-12-30");
        assert!(Zone::utc().date_text(i64::MIN).starts_with("-009999"));
    }
}
