//! Cron expressions: five fields, six with seconds in front, names of months and days, `@daily` and its kin, and what
//! people need beyond: `MON#1` for the first Monday of a month, `FRIL` for the last Friday, `L` for the last day.
//!
//! Clock changes: a time that is skipped runs at the first moment after it, a time that comes twice runs once. Where the
//! hour is free (`*`), the hours that really pass count: none is made up, and one that comes twice runs twice.

mod told;

use std::fmt;

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan as _};

/// The 29th of February can be 8 years away, a fifth Monday in it 40.
const YEARS_AHEAD_MAX: i16 = 45;

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// When something happens again and again, by the clock and the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    seconds: u64,
    minutes: u64,
    hours: Hours,
    months: u64,
    days: Days,
}

/// Why an expression cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error(
        "`{text}` has {found} fields; a cron expression has five, or six with seconds in front"
    )]
    Fields { text: String, found: usize },
    #[error(
        "`{text}` is no nickname of a schedule; there are `@hourly`, `@daily` (`@midnight`), `@weekly`, `@monthly` and `@yearly` (`@annually`)"
    )]
    Nickname { text: String },
    #[error("`{part}` is no {field}: {expected}")]
    Part {
        part: String,
        field: &'static str,
        expected: String,
    },
    #[error("`{text}` never comes: there is no such day")]
    Never { text: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hours {
    set: u64,
    /// `*` or `*/N`: the hours that pass, not those on a clock.
    is_free: bool,
}

/// Which days: where both are restricted, either will do, as cron has always had it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Days {
    of_month: Option<MonthDays>,
    of_week: Option<WeekDays>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct MonthDays {
    set: u64,
    last: bool,
    last_workday: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct WeekDays {
    /// Sunday is 0.
    set: u64,
    /// A weekday and which one of the month; 0 is the last.
    nth: Vec<(u8, u8)>,
}

impl Cron {
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let spelled = nickname(text).unwrap_or(text);
        let fields: Vec<&str> = spelled.split_whitespace().collect();
        if let [nickname] = fields.as_slice()
            && nickname.starts_with('@')
        {
            return Err(CronError::Nickname {
                text: text.to_owned(),
            });
        }
        let (seconds, rest) = match fields.len() {
            5 => ("0", fields.as_slice()),
            6 => (fields[0], &fields[1..]),
            found => {
                return Err(CronError::Fields {
                    text: text.to_owned(),
                    found,
                });
            }
        };
        let cron = Self {
            text: text.to_owned(),
            seconds: SECOND.set(seconds)?,
            minutes: MINUTE.set(rest[0])?,
            hours: Hours {
                set: HOUR.set(rest[1])?,
                is_free: rest[1].starts_with('*'),
            },
            months: MONTH.set(rest[3])?,
            days: Days {
                of_month: month_days(rest[2])?,
                of_week: week_days(rest[4])?,
            },
        };
        if cron.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC).is_none() {
            return Err(CronError::Never {
                text: text.to_owned(),
            });
        }
        Ok(cron)
    }

    /// The least seconds between two times; `None` when there are minutes between them.
    pub(super) fn seconds_apart(&self) -> Option<u8> {
        let seconds: Vec<i8> = members(self.seconds).collect();
        let (first, last) = (*seconds.first()?, *seconds.last()?);
        let apart = seconds.windows(2).map(|two| two[1] - two[0]);
        // Also from one minute to the next.
        let apart = apart.chain([first + 60 - last]).min()?;
        u8::try_from(apart).ok().filter(|apart| *apart < 60)
    }

    pub(super) fn has_seconds(&self) -> bool {
        self.seconds != 1
    }

    /// The first time after a moment.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // A day earlier: the date there may lag behind where clocks go back at midnight.
        let first = after.to_zoned(zone.clone()).date().yesterday().ok()?;
        let last = first.checked_add(i32::from(YEARS_AHEAD_MAX).years()).ok()?;
        let mut date = first;
        while date <= last {
            if !has(self.months, date.month()) {
                date = date.first_of_month().checked_add(1.month()).ok()?;
                continue;
            }
            if self.days.have(date)
                && let Some(found) = self.next_on(date, after, zone)
            {
                return Some(found);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn next_on(&self, date: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        // All moments of an hour come before those of the next, whatever clocks do.
        members(self.hours.set).find_map(|hour| {
            let times = members(self.minutes)
                .flat_map(|minute| members(self.seconds).map(move |second| (minute, second)));
            let moments = times
                .flat_map(|(minute, second)| self.moments(date.at(hour, minute, second, 0), zone));
            moments.flatten().filter(|moment| *moment > after).min()
        })
    }

    /// When it is this time in a zone: once, never, or twice.
    fn moments(&self, time: DateTime, zone: &TimeZone) -> [Option<Timestamp>; 2] {
        let ambiguous = zone.to_ambiguous_timestamp(time);
        match ambiguous.offset() {
            AmbiguousOffset::Unambiguous { .. } => [ambiguous.compatible().ok(), None],
            AmbiguousOffset::Gap { .. } if self.hours.is_free => [None, None],
            AmbiguousOffset::Gap { .. } => [after_gap(time, zone), None],
            AmbiguousOffset::Fold { .. } => {
                let later = self.hours.is_free.then(|| ambiguous.later().ok());
                [ambiguous.earlier().ok(), later.flatten()]
            }
        }
    }
}

/// When it is this time in a zone, once: the first moment after it where clocks jump over it, the first of two.
pub(super) fn moment(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let ambiguous = zone.to_ambiguous_timestamp(time);
    match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => jump_over(time, zone),
        _ => ambiguous.earlier().ok(),
    }
}

/// The moment at which clocks jump over a time; none where they jump over the whole day.
pub(super) fn after_gap(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let moment = jump_over(time, zone)?;
    (moment.to_zoned(zone.clone()).date() == time.date()).then_some(moment)
}

fn jump_over(time: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    let before = zone.to_ambiguous_timestamp(time).earlier().ok()?;
    let jump = zone
        .following(before.checked_sub(1.second()).ok()?)
        .next()?;
    Some(jump.timestamp())
}

impl Days {
    fn have(&self, date: Date) -> bool {
        let of_month = self.of_month.as_ref().map(|days| days.have(date));
        let of_week = self.of_week.as_ref().map(|days| days.have(date));
        match (of_month, of_week) {
            (None, None) => true,
            (Some(one), None) | (None, Some(one)) => one,
            (Some(one), Some(other)) => one || other,
        }
    }
}

impl MonthDays {
    fn have(&self, date: Date) -> bool {
        has(self.set, date.day())
            || (self.last && date.day() == date.days_in_month())
            || (self.last_workday && is_last_workday(date))
    }
}

/// Monday to Friday, and no other such day behind it in its month.
fn is_last_workday(date: Date) -> bool {
    let left = date.days_in_month() - date.day();
    match date.weekday() {
        Weekday::Saturday | Weekday::Sunday => false,
        Weekday::Friday => left <= 2,
        _ => left == 0,
    }
}

impl WeekDays {
    fn have(&self, date: Date) -> bool {
        let day = date.weekday().to_sunday_zero_offset();
        let which = (date.day() - 1) / 7 + 1;
        let is_last = date.day() + 7 > date.days_in_month();
        let is_nth = |(on, nth): &(u8, u8)| {
            day == *on as i8 && (i8::try_from(*nth) == Ok(which) || (*nth == 0 && is_last))
        };
        has(self.set, day) || self.nth.iter().any(is_nth)
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn nickname(text: &str) -> Option<&'static str> {
    Some(match text.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return None,
    })
}

/// The numbers of a field and the names they may have.
struct Field {
    name: &'static str,
    min: u8,
    max: u8,
    names: &'static [&'static str],
    /// The number of the first name.
    named_from: u8,
}

const SECOND: Field = Field::numbers("second", 0, 59);
const MINUTE: Field = Field::numbers("minute", 0, 59);
const HOUR: Field = Field::numbers("hour", 0, 23);
const MONTH_DAY: Field = Field::numbers("day of the month", 1, 31);
const MONTH: Field = Field {
    names: &MONTHS,
    named_from: 1,
    ..Field::numbers("month", 1, 12)
};
const WEEK_DAY: Field = Field {
    names: &DAYS,
    // Sunday is 0 and 7.
    ..Field::numbers("day of the week", 0, 7)
};

impl Field {
    const fn numbers(name: &'static str, min: u8, max: u8) -> Self {
        Self {
            name,
            min,
            max,
            names: &[],
            named_from: 0,
        }
    }

    fn set(&self, text: &str) -> Result<u64, CronError> {
        let mut parts = text.split(',').map(|part| self.part(part));
        parts.try_fold(0, |set, part| Ok(set | part?))
    }

    /// `*`, `N`, `A-B`, and each with `/STEP`.
    fn part(&self, part: &str) -> Result<u64, CronError> {
        let wrong = || self.wrong(part);
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u8>().map_err(|_| wrong())?)),
            None => (part, None),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (self.min, self.max),
            Some((first, last)) => (self.number(first)?, self.number(last)?),
            // `5/10` begins at 5 and goes on to the end.
            None if step.is_some() => (self.number(range)?, self.max),
            None => (self.number(range)?, self.number(range)?),
        };
        let step = step.unwrap_or(1);
        if step == 0 || first > last {
            return Err(wrong());
        }
        let numbers = (first..=last).step_by(usize::from(step));
        Ok(numbers.fold(0, |set, number| set | 1 << number))
    }

    fn number(&self, text: &str) -> Result<u8, CronError> {
        let lower = text.to_ascii_lowercase();
        // `Monday` as well as `mon`.
        let named = self.names.iter().zip(self.named_from..);
        let mut named = named.filter(|(name, _)| lower.starts_with(**name));
        let number = match named.next() {
            Some((_, number)) if lower.chars().all(char::is_alphabetic) => Some(number),
            _ => text.parse().ok(),
        };
        let in_range = number.filter(|number| (self.min..=self.max).contains(number));
        in_range.ok_or_else(|| self.wrong(text))
    }

    fn wrong(&self, part: &str) -> CronError {
        let names = match self.names {
            [] => String::new(),
            names => format!(", or a name such as `{}`", names[1]),
        };
        CronError::Part {
            part: part.to_owned(),
            field: self.name,
            expected: format!(
                "`*`, a number from {} to {}{names}, a range `A-B`, a step `*/N`, or several with commas",
                self.min, self.max
            ),
        }
    }
}

/// `None` where every day will do.
fn month_days(text: &str) -> Result<Option<MonthDays>, CronError> {
    if matches!(text, "*" | "?") {
        return Ok(None);
    }
    let mut days = MonthDays::default();
    for part in text.split(',') {
        if part.eq_ignore_ascii_case("l") {
            days.last = true;
        } else if part.eq_ignore_ascii_case("lw") {
            days.last_workday = true;
        } else {
            days.set |= MONTH_DAY.part(part)?;
        }
    }
    Ok(Some(days))
}

fn week_days(text: &str) -> Result<Option<WeekDays>, CronError> {
    if matches!(text, "*" | "?") {
        return Ok(None);
    }
    let mut days = WeekDays::default();
    for part in text.split(',') {
        let last = part.strip_suffix(['L', 'l']).filter(|day| !day.is_empty());
        if let Some((day, nth)) = part.split_once('#') {
            let nth = nth.parse().ok().filter(|nth| (1..=5).contains(nth));
            let nth = nth.ok_or_else(|| WEEK_DAY.wrong(part))?;
            days.nth.push((WEEK_DAY.number(day)? % 7, nth));
        } else if let Some(day) = last {
            days.nth.push((WEEK_DAY.number(day)? % 7, 0));
        } else {
            days.set |= WEEK_DAY.part(part)?;
        }
    }
    // 7 is Sunday too.
    days.set = (days.set | days.set >> 7) & 0x7f;
    Ok(Some(days))
}

fn has(set: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| set & (1 << number) != 0)
}

fn members(set: u64) -> impl Iterator<Item = i8> {
    (0..60).filter(move |number| has(set, *number))
}

/// The name of a weekday as an expression has it.
pub(super) fn name_of(day: Weekday) -> String {
    let index = day.to_sunday_zero_offset();
    DAYS[usize::try_from(index).unwrap_or(0)].to_uppercase()
}
