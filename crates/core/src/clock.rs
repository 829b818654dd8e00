//! Wall-clock time. Durations and timers are tokio's; this is only for "what time is it".

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

    /// `2026-11-15`.
    pub fn date_text(self) -> String {
        let (date, _) = self.civil();
        format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
    }
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
}
