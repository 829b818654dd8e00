//! Wall-clock time. Durations and timers are tokio's; this is only for "what time is it".

use std::time::Duration;

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

const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Splits into date and time of day, UTC, proleptic Gregorian.
    pub fn civil(self) -> (Date, TimeOfDay) {
        let second = self.0.rem_euclid(MILLIS_PER_DAY) / 1000;
        let time = TimeOfDay {
            hour: (second / 3600) as u32,
            minute: (second / 60 % 60) as u32,
            second: (second % 60) as u32,
        };
        (date_from_days(self.0.div_euclid(MILLIS_PER_DAY)), time)
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
        let number = |range: std::ops::Range<usize>| -> Option<i64> {
            let digits = text.get(range)?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().ok()).flatten()
        };
        let has = |at: usize, marks: &[u8]| {
            text.as_bytes()
                .get(at)
                .is_some_and(|byte| marks.contains(byte))
        };
        let has_shape =
            has(4, b"-") && has(7, b"-") && has(10, b"T ") && has(13, b":") && has(16, b":");
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
        let is_possible = (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 61;
        if !has_shape || !is_possible {
            return None;
        }
        let rest = text.get(19..)?;
        let zone = rest.trim_start_matches(|mark: char| mark == '.' || mark.is_ascii_digit());
        let fraction = rest[..rest.len() - zone.len()].trim_start_matches('.');
        let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
        let seconds =
            days_from_date(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
        Some(Self((seconds - offset_seconds(zone)?) * 1000 + millis))
    }

    /// Returns the time so much later.
    pub fn plus(self, duration: Duration) -> Self {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }

    /// `2026-11-15`.
    pub fn date_text(self) -> String {
        let (date, _) = self.civil();
        format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
    }
}

/// Reads `Z`, `+01:00` or `-0530`.
fn offset_seconds(zone: &str) -> Option<i64> {
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => return Some(0),
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = digits.replace(':', "");
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = digits.split_at(2);
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(sign * (hours * 3600 + minutes * 60))
}

/// The opposite of [`date_from_days`].
fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let (year, month_from_march) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Converts days since 1970-01-01 to a date, counting in 400-year eras that start on 1 March.
fn date_from_days(days: i64) -> Date {
    const DAYS_PER_ERA: i64 = 146_097;
    let shifted = days + 719_468; // days since 0000-03-01
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    } as u32;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Date { year, month, day }
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
        ] {
            assert_eq!(Timestamp::from_iso(text), None, "{text}");
        }
    }
}
