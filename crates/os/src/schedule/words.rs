//! Schedules in plain words.
//!
//! The text is a handful of clauses in any order: how often, on which days, at which times, within which hours, where. Each
//! word belongs to a clause or is an error that names it: nothing is guessed and nothing is skipped over.

mod clauses;
mod days;
mod hours;
mod once;
mod places;
mod times;
mod tokens;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _, Zoned};

use super::cron::{Cron, CronError};
use super::told::{self, place};
use super::{Rule, Schedule};
use clauses::{Clauses, Often};
use tokens::Tokens;
pub(super) use tokens::month_name;

/// A schedule is read from so much.
const TEXT_CHARS_MAX: usize = 200;
/// Shorter intervals are mistakes.
const INTERVAL_MIN: SignedDuration = SignedDuration::from_secs(10);

/// For days without a time.
const USUAL_TIME: Time = Time::constant(9, 0, 0, 0);
/// For `twice a day` and the like.
const USUAL_TWO: [Time; 2] = [USUAL_TIME, Time::constant(21, 0, 0, 0)];
const USUAL_THREE: [Time; 3] = [
    Time::constant(8, 0, 0, 0),
    Time::constant(14, 0, 0, 0),
    Time::constant(20, 0, 0, 0),
];

const EXAMPLES: &str = "`30m`, `every 2h`, `every weekday at 9`, `first Monday of the month at noon`, \
     `every 2 hours between 9 and 17`, `tomorrow at 8 in Tokyo`, `2026-12-24T18:00`, `0 9 * * MON-FRI`";

/// Why a schedule cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error("a schedule is missing; for example {EXAMPLES}")]
    Empty,
    #[error("a schedule has at most {TEXT_CHARS_MAX} characters")]
    TooLong,
    #[error("`{word}` is not understood in a schedule; for example {EXAMPLES}")]
    Word { word: String },
    #[error("{what}; for example {EXAMPLES}")]
    Unclear { what: String },
    #[error("{at} is over")]
    Past { at: String },
    #[error(transparent)]
    Cron(#[from] CronError),
}

impl ScheduleError {
    fn unclear(what: impl Into<String>) -> Self {
        Self::Unclear { what: what.into() }
    }

    /// A word that is in no clause; with how it is written, where it is plain what it should be.
    fn not_understood(word: &str) -> Self {
        if word.starts_with('@') && word.len() > 1 {
            let text = word.to_owned();
            return CronError::Nickname { text }.into();
        }
        match tokens::misspelled_time(word) {
            Some(time) => Self::unclear(format!(
                "`{word}` is not understood: a time of day is written as `{time}`"
            )),
            None => Self::Word {
                word: word.to_owned(),
            },
        }
    }
}

pub(super) fn read(text: &str, now: &Zoned) -> Result<Schedule, ScheduleError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ScheduleError::Empty);
    }
    if text.chars().count() > TEXT_CHARS_MAX {
        return Err(ScheduleError::TooLong);
    }
    if let Some(cron) = cron(text, now) {
        return cron;
    }
    if let Ok(at) = text.to_ascii_uppercase().parse::<Timestamp>() {
        // A zone behind an offset must be one that has it then.
        if text.contains('[') && text.parse::<Zoned>().is_err() {
            return Err(ScheduleError::unclear(
                "the offset and the zone behind it do not go together: leave one of them out",
            ));
        }
        let at = at.to_zoned(now.time_zone().clone());
        let has_seconds = at.second() != 0;
        return once::checked(at, now, has_seconds);
    }
    let clauses = Clauses::read(text)?;
    let zone = clauses.zone.clone();
    let now = now.with_time_zone(zone.unwrap_or_else(|| now.time_zone().clone()));
    resolve(clauses, &now)
}

/// A cron expression, and a place behind it: five or six fields of what cron is made of, or a nickname. `None` for what is
/// none: the first fields of an expression are never words.
fn cron(text: &str, now: &Zoned) -> Option<Result<Schedule, ScheduleError>> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let counts = if text.starts_with('@') { 1..=1 } else { 5..=6 };
    let mut wrong = None;
    for count in counts.rev() {
        let Some((expression, rest)) = fields.split_at_checked(count) else {
            continue;
        };
        let Some(zone) = is_cron(expression)
            .then(|| zone_behind(rest, now))
            .flatten()
        else {
            continue;
        };
        let expression = expression.join(" ");
        match Cron::parse(&expression) {
            Ok(cron) => return Some(by_cron(cron, &expression, &now.with_time_zone(zone))),
            Err(error) => wrong = Some(Err(error.into())),
        }
    }
    wrong
}

fn is_cron(fields: &[&str]) -> bool {
    let of_cron = |field: &&str| {
        field
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "*,/-#?".contains(char))
    };
    let is_number =
        |field: &&str| field.starts_with(|char: char| char.is_ascii_digit() || char == '*');
    match fields {
        [nickname] => nickname.starts_with('@') && nickname.len() > 1,
        fields => fields.iter().all(of_cron) && fields.iter().take(2).all(is_number),
    }
}

/// The zone that words name behind an expression; the one of now when there are none.
fn zone_behind(words: &[&str], now: &Zoned) -> Option<TimeZone> {
    if words.is_empty() {
        return Some(now.time_zone().clone());
    }
    let mut tokens = Tokens::of(&words.join(" "));
    let zone = if tokens.take_word("in") {
        tokens.zone()
    } else {
        tokens.zone_by_itself()
    };
    zone.filter(|_| tokens.peek().is_none())
}

fn by_cron(cron: Cron, text: &str, now: &Zoned) -> Result<Schedule, ScheduleError> {
    if cron
        .seconds_apart()
        .is_some_and(|seconds| i64::from(seconds) < INTERVAL_MIN.as_secs())
    {
        return Err(too_often());
    }
    let words = format!("{}{}, by cron `{text}`", cron.told(), place(now));
    let has_seconds = cron.has_seconds();
    Ok(Schedule {
        has_seconds,
        ..calendar(vec![cron], now.time_zone(), words)
    })
}

fn too_often() -> ScheduleError {
    ScheduleError::unclear("an interval has at least 10 seconds")
}

fn resolve(clauses: Clauses, now: &Zoned) -> Result<Schedule, ScheduleError> {
    if let Some(time) = clauses
        .times
        .past_midnight()
        .filter(|_| clauses.days.are_named())
    {
        let hour = time.strftime("%-H:%M");
        return Err(ScheduleError::unclear(format!(
            "is {hour} that night on the day that is named or on the next? write the day that it is then, without `night` (`every saturday at 1am`)"
        )));
    }
    match clauses.often()? {
        None => once::read(&clauses, now),
        Some(Often::Interval(interval)) => hours::read(interval, &clauses, now),
        Some(often) => {
            if clauses.window.is_some() || clauses.start.is_some() || clauses.minute.is_some() {
                return Err(ScheduleError::unclear(
                    "hours go with hours or minutes: `every 2 hours between 9 and 17`",
                ));
            }
            match often {
                Often::Days(days) => every_days(days, &clauses, now),
                Often::Weeks(weeks) => every_days(weeks * 7, &clauses, now),
                often => by_calendar(often, clauses, now),
            }
        }
    }
}

fn every_days(days: i32, clauses: &Clauses, now: &Zoned) -> Result<Schedule, ScheduleError> {
    let named = &clauses.days;
    let is_more = !named.months.is_empty()
        || !named.except.is_empty()
        || named.is_of_month
        || (named.are_named() && named.week.len() != 1);
    let from = match named.week.as_slice() {
        [] if !is_more => now.date(),
        [day] if !is_more && days % 7 == 0 => next_weekday(now.date(), *day),
        _ => {
            return Err(ScheduleError::unclear(
                "every so many days or weeks takes one weekday at most",
            ));
        }
    };
    let at = times_or(clauses, &[USUAL_TIME])?;
    let what = if days % 7 == 0 {
        format!("every {} weeks on {}", days / 7, from.strftime("%A"))
    } else {
        format!("every {days} days")
    };
    Ok(Schedule {
        words: format!("{what} at {}{}", told::times(&at), place(now)),
        rule: Rule::EveryDays { days, from, at },
        zone: now.time_zone().clone(),
        has_seconds: false,
    })
}

fn by_calendar(often: Often, mut clauses: Clauses, now: &Zoned) -> Result<Schedule, ScheduleError> {
    name_days(often, &mut clauses)?;
    let usual: &[Time] = match often {
        Often::PerDay(2) => &USUAL_TWO,
        Often::PerDay(3) => &USUAL_THREE,
        _ => &[USUAL_TIME],
    };
    let times = times_or(&clauses, usual)?;
    if let Often::PerDay(count) = often
        && times.len() != count
    {
        return Err(ScheduleError::unclear(format!(
            "{count} times a day, but {} are named",
            times.len()
        )));
    }
    let minutes: Vec<i64> = times.iter().map(|time| minute_of(*time)).collect();
    clauses
        .days
        .months
        .extend(months_of(often, &clauses, &minutes, now)?);
    let (fields, days) = clauses.days.crons();
    let crons = hours::crons(&minutes, &fields)?;
    let words = format!("{days} at {}{}", told::times(&times), place(now));
    Ok(calendar(crons, now.time_zone(), words))
}

/// The days that are meant where none are named, and whether those that are fit how often it comes.
fn name_days(often: Often, clauses: &mut Clauses) -> Result<(), ScheduleError> {
    let days = &mut clauses.days;
    let has_dates = !days.dates.is_empty();
    let is_weekly = !days.week.is_empty();
    let fits = match often {
        Often::Day | Often::PerDay(_) => !days.are_named() || (is_weekly && days.are_several),
        Often::Week => (is_weekly || !days.are_named()) && !days.is_of_month,
        Often::Month => !is_weekly && !has_dates && days.months.is_empty(),
        Often::Months(_) | Often::Quarter => {
            !is_weekly && !has_dates && days.months.is_empty() && !days.is_of_month
        }
        _ => true,
    };
    if is_weekly && matches!(often, Often::Month | Often::Months(_) | Often::Quarter) {
        return Err(ScheduleError::unclear(
            "which one of the month? (`first Monday of the month`)",
        ));
    }
    if !fits {
        return Err(ScheduleError::unclear(
            "these days do not go with how often it comes",
        ));
    }
    match often {
        Often::Week if !is_weekly => days.week.push(jiff::civil::Weekday::Monday),
        Often::Month | Often::Months(_) | Often::Quarter if !days.are_named() => {
            days.of_month.push(1);
        }
        Often::Year if !has_dates && (!days.are_named() || days.months.is_empty() || is_weekly) => {
            return Err(ScheduleError::unclear(
                "on which day of the year? (`every year on 24 December`)",
            ));
        }
        Often::Named if !days.are_named() => {
            return Err(ScheduleError::unclear("on which days?"));
        }
        _ => {}
    }
    check_exceptions(clauses)
}

fn check_exceptions(clauses: &Clauses) -> Result<(), ScheduleError> {
    let days = &clauses.days;
    if days.except.is_empty() {
        return Ok(());
    }
    let is_fine = !days.are_named() || !days.week.is_empty();
    let is_meant = |day: &jiff::civil::Weekday| days.week.is_empty() || days.week.contains(day);
    let is_rest = days::WORKDAYS
        .iter()
        .chain(&days::WEEKEND)
        .any(|day| is_meant(day) && !days.except.contains(day));
    if is_fine && is_rest && days.except.iter().all(is_meant) {
        return Ok(());
    }
    Err(ScheduleError::unclear(
        "days can be left out of the days of a week: `every day except sunday`",
    ))
}

/// The months of what comes every few months, from the first time on.
fn months_of(
    often: Often,
    clauses: &Clauses,
    minutes: &[i64],
    now: &Zoned,
) -> Result<Vec<i8>, ScheduleError> {
    let (every, first) = match often {
        Often::Quarter => {
            let days = &clauses.days;
            let is_at_end = days.has_last
                || days.has_last_workday
                || days.nth.iter().any(|(which, _)| *which == 0);
            (3, if is_at_end { 3 } else { 1 })
        }
        Often::Months(every) => {
            let (fields, _) = clauses.days.crons();
            let crons = hours::crons(minutes, &fields)?;
            let next = crons
                .iter()
                .filter_map(|cron| cron.next(now.timestamp(), now.time_zone()))
                .min();
            let next = next.map(|next| next.to_zoned(now.time_zone().clone()));
            (every, next.map_or(1, |next| next.month()))
        }
        _ => return Ok(Vec::new()),
    };
    Ok((1..=12)
        .filter(|month| (month - first).rem_euclid(every) == 0)
        .collect())
}

fn times_or(clauses: &Clauses, usual: &[Time]) -> Result<Vec<Time>, ScheduleError> {
    if clauses.times.is_empty() {
        return Ok(usual.to_vec());
    }
    clauses.times.all()
}

fn minute_of(time: Time) -> i64 {
    i64::from(time.hour()) * 60 + i64::from(time.minute())
}

/// The first such weekday, today included.
fn next_weekday(from: Date, day: jiff::civil::Weekday) -> Date {
    let ahead = from.weekday().until(day);
    from.checked_add(i64::from(ahead).days()).unwrap_or(from)
}

fn calendar(crons: Vec<Cron>, zone: &TimeZone, words: String) -> Schedule {
    Schedule {
        rule: Rule::Calendar(crons),
        zone: zone.clone(),
        words,
        has_seconds: false,
    }
}
