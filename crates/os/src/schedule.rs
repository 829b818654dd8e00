//! When something is due: once, every so often, or by the calendar; read from cron expressions and from plain words.
//!
//! Start at [`Schedule::read`]. What was understood is told back in words ([`Schedule::words`]) with the next times
//! ([`Schedule::upcoming`]), so that a misreading is seen before it matters.

pub mod cron;
#[cfg(test)]
mod tests;
mod told;
mod words;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Unit, Zoned};

use crate::calendar::{Zone, instant};
use cron::Cron;
pub use words::ScheduleError;

/// When something is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    rule: Rule,
    zone: TimeZone,
    words: String,
    /// Its times are not full minutes, and told with their seconds.
    has_seconds: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Once(Timestamp),
    /// Counted from a moment on, so that it does not drift.
    Every {
        interval: SignedDuration,
        from: Timestamp,
    },
    /// Every so many days, from a date on, at these times of the clock.
    EveryDays {
        days: i32,
        from: Date,
        at: Vec<Time>,
    },
    Calendar(Vec<Cron>),
}

impl Schedule {
    /// Reads what somebody wrote at a moment: `30m`, `every 2h`, `0 9 * * MON-FRI`, `2026-12-24T18:00`, `every weekday at 9`,
    /// `first Monday of the month at noon`, `tomorrow at 8 in Tokyo`.
    pub fn read(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Self, ScheduleError> {
        words::read(text, &now.to_zoned(zone.clone()))
    }

    /// The same at a time in milliseconds since 1970, in a zone of ours.
    pub fn read_at(text: &str, at_ms: i64, zone: &Zone) -> Result<Self, ScheduleError> {
        Self::read(text, instant(at_ms), zone.time_zone())
    }

    /// The first time after a moment, in milliseconds since 1970.
    pub fn next_after(&self, at_ms: i64) -> Option<i64> {
        self.next(instant(at_ms)).map(Timestamp::as_millisecond)
    }

    /// The next times, as people read them: `Fri 2026-11-20 08:00 (Asia/Tokyo)`.
    pub fn upcoming_texts(&self, after_ms: i64, count: usize) -> Vec<String> {
        let upcoming = self.upcoming(instant(after_ms), count);
        let told = upcoming.iter().map(|at| told::moment(at, self.has_seconds));
        told.collect()
    }

    fn once(at: &Zoned, has_seconds: bool) -> Self {
        Self {
            words: format!("once, on {}", told::moment(at, has_seconds)),
            rule: Rule::Once(at.timestamp()),
            zone: at.time_zone().clone(),
            has_seconds,
        }
    }

    /// What was understood.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// Whether it comes only once.
    pub fn is_once(&self) -> bool {
        matches!(self.rule, Rule::Once(_))
    }

    /// The first time after a moment; none when it is over.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.rule {
            Rule::Once(at) => Some(*at).filter(|at| *at > after),
            Rule::Every { interval, from } => next_multiple(*from, *interval, after),
            Rule::EveryDays { days, from, at } => self.next_day(*days, *from, at, after),
            Rule::Calendar(crons) => {
                let nexts = crons.iter().filter_map(|cron| cron.next(after, &self.zone));
                nexts.min()
            }
        }
    }

    /// The next times, as clocks show them there.
    pub fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Zoned> {
        let next = |last: &Timestamp| self.next(*last);
        let times = std::iter::successors(self.next(after), next).take(count);
        times.map(|at| at.to_zoned(self.zone.clone())).collect()
    }

    fn next_day(&self, days: i32, from: Date, at: &[Time], after: Timestamp) -> Option<Timestamp> {
        let today = after.to_zoned(self.zone.clone()).date();
        let passed = from.until((Unit::Day, today)).ok()?.get_days();
        // A period earlier: its last time may still be ahead.
        let mut period = (passed.div_euclid(days) - 1).max(0);
        loop {
            let date = from.checked_add((period * days).days()).ok()?;
            let times = at.iter().map(|time| date.to_datetime(*time));
            let moments = times.filter_map(|time| self.moment(time));
            if let Some(found) = moments.filter(|moment| *moment > after).min() {
                return Some(found);
            }
            period += 1;
        }
    }

    /// A time that clocks skip is the first moment after it; of one that comes twice, the first counts. None on a day that
    /// was left out.
    fn moment(&self, time: DateTime) -> Option<Timestamp> {
        let moment = cron::moment(time, &self.zone)?;
        let date = moment.to_zoned(self.zone.clone()).date();
        (date == time.date()).then_some(moment)
    }
}

/// The first multiple of an interval after a moment.
fn next_multiple(from: Timestamp, interval: SignedDuration, after: Timestamp) -> Option<Timestamp> {
    let passed = after.duration_since(from);
    let times = if passed.is_negative() {
        0
    } else {
        passed.as_secs() / interval.as_secs().max(1)
    };
    let next = interval.checked_mul(i32::try_from(times + 1).ok()?)?;
    from.checked_add(next).ok()
}
