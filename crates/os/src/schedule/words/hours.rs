//! What comes every so many hours, minutes or seconds: around the clock, or only within hours and on some days.

use jiff::civil::Time;
use jiff::{SignedDuration, ToSpan as _, Zoned};

use super::clauses::Clauses;
use super::{ScheduleError, calendar, minute_of, too_often};
use crate::schedule::cron::{self, Cron};
use crate::schedule::told::{self, place};
use crate::schedule::{Rule, Schedule};

const DAY_MINUTES: i64 = 24 * 60;

pub(super) fn read(
    interval: SignedDuration,
    clauses: &Clauses,
    now: &Zoned,
) -> Result<Schedule, ScheduleError> {
    if !clauses.times.is_empty() {
        return Err(ScheduleError::unclear(
            "a time of day goes with days, not with hours or minutes",
        ));
    }
    if interval < super::INTERVAL_MIN {
        return Err(too_often());
    }
    let days = &clauses.days;
    let has_days = days.are_named() || !days.months.is_empty() || !days.except.is_empty();
    if days.has_of_month() && !days.is_of_month {
        return Err(ScheduleError::unclear(
            "of which month? (`every 2 hours on the 15th of the month`)",
        ));
    }
    super::check_exceptions(clauses)?;
    match (clauses.start, clauses.minute, clauses.window) {
        (None, None, None) if !has_days => Ok(from_now(interval, now)),
        (None, None, window) => within(interval, window, clauses, now),
        (None, Some(minute), None) => at_minute(interval, minute, clauses, now),
        (Some(start), None, None) if !has_days => from_time(interval, start, now),
        _ => Err(ScheduleError::unclear(
            "these hours do not go together: write `every 2 hours between 9 and 17`, `every 4 hours starting at 6` or `every hour at :30`",
        )),
    }
}

fn from_now(interval: SignedDuration, now: &Zoned) -> Schedule {
    Schedule {
        words: format!("every {}", in_words(interval)),
        rule: Rule::Every {
            interval,
            from: now.timestamp(),
        },
        zone: now.time_zone().clone(),
        has_seconds: interval.as_secs() % 60 != 0,
    }
}

/// Between two times of the day, which may have midnight between them.
fn within(
    interval: SignedDuration,
    window: Option<(Time, Time)>,
    clauses: &Clauses,
    now: &Zoned,
) -> Result<Schedule, ScheduleError> {
    let step = whole_minutes(interval)?;
    let whole_day = (Time::midnight(), Time::constant(23, 59, 0, 0));
    let (first, last) = window.unwrap_or(whole_day);
    if first == last {
        return Err(ScheduleError::unclear(
            "the hours must end after they begin",
        ));
    }
    let is_over_midnight = last < first;
    if is_over_midnight && (clauses.days.are_named() || !clauses.days.except.is_empty()) {
        return Err(ScheduleError::unclear(
            "hours over midnight go with every day: which day would the night belong to?",
        ));
    }
    let end = minute_of(last) + if is_over_midnight { DAY_MINUTES } else { 0 };
    let span = minute_of(first)..=end;
    let minutes: Vec<i64> = span.step_by(step).collect();
    let (fields, days) = clauses.days.crons();
    let at = |minute: &i64| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
    let range = match (minutes.first(), minutes.last()) {
        (Some(first), Some(last)) => format!(" from {} to {}", at(first), at(last)),
        _ => String::new(),
    };
    let words = format!("every {}{range}, {days}{}", in_words(interval), place(now));
    Ok(calendar(crons(&minutes, &fields)?, now.time_zone(), words))
}

/// `every hour at :30`
fn at_minute(
    interval: SignedDuration,
    minute: i8,
    clauses: &Clauses,
    now: &Zoned,
) -> Result<Schedule, ScheduleError> {
    let step = whole_minutes(interval)?;
    if step % 60 != 0 || 24 * 60 % step != 0 {
        return Err(ScheduleError::unclear(
            "a minute goes with hours that divide a day: `every hour at :30`",
        ));
    }
    let minutes = (i64::from(minute)..DAY_MINUTES).step_by(step);
    let minutes: Vec<i64> = minutes.collect();
    let (fields, days) = clauses.days.crons();
    let words = format!(
        "every {} at :{minute:02}, {days}{}",
        in_words(interval),
        place(now)
    );
    Ok(calendar(crons(&minutes, &fields)?, now.time_zone(), words))
}

/// `every 4 hours starting at 6am`
fn from_time(
    interval: SignedDuration,
    start: Time,
    now: &Zoned,
) -> Result<Schedule, ScheduleError> {
    let seconds = interval.as_secs();
    if 24 * 60 * 60 % seconds == 0 && seconds % 60 == 0 {
        let step = whole_minutes(interval)?;
        let first = minute_of(start);
        let minutes = (first..first + DAY_MINUTES).step_by(step);
        let mut minutes: Vec<i64> = minutes.map(|minute| minute % DAY_MINUTES).collect();
        minutes.sort_unstable();
        let every_day = ["* * *".to_owned()];
        let words = format!(
            "every {}, one of them at {}{}",
            in_words(interval),
            told::clock(start),
            place(now)
        );
        return Ok(calendar(
            crons(&minutes, &every_day)?,
            now.time_zone(),
            words,
        ));
    }
    let too_far = || ScheduleError::unclear("that is beyond every calendar");
    let date = if now.time() < start {
        Some(now.date())
    } else {
        now.date().checked_add(1.day()).ok()
    };
    let first = date.and_then(|date| cron::moment(date.to_datetime(start), now.time_zone()));
    let first = first.ok_or_else(too_far)?;
    let words = format!(
        "every {} from {} on",
        in_words(interval),
        told::moment(&first.to_zoned(now.time_zone().clone()), false)
    );
    Ok(Schedule {
        words,
        rule: Rule::Every {
            interval,
            from: first.checked_sub(interval).map_err(|_| too_far())?,
        },
        zone: now.time_zone().clone(),
        has_seconds: seconds % 60 != 0,
    })
}

fn whole_minutes(interval: SignedDuration) -> Result<usize, ScheduleError> {
    let unclear = || ScheduleError::unclear("within hours, steps are whole minutes");
    let minutes = Some(interval.as_mins()).filter(|step| *step > 0);
    let minutes = minutes.filter(|_| interval.as_secs() % 60 == 0);
    minutes
        .and_then(|step| usize::try_from(step).ok())
        .ok_or_else(unclear)
}

/// Expressions for minutes of a day, on days as cron has them.
pub(super) fn crons(minutes: &[i64], days: &[String]) -> Result<Vec<Cron>, ScheduleError> {
    let mut groups: Vec<(i64, Vec<i64>)> = Vec::new();
    for minute in minutes.iter().map(|minute| minute % DAY_MINUTES) {
        let (hour, minute) = (minute / 60, minute % 60);
        match groups.iter_mut().find(|(known, _)| *known == minute) {
            Some((_, hours)) => hours.push(hour),
            None => groups.push((minute, vec![hour])),
        }
    }
    let mut crons = Vec::new();
    for (minute, hours) in &groups {
        let hours = match hours.len() {
            // The hours that pass, also when clocks are changed.
            24 => "*".to_owned(),
            _ => {
                let hours: Vec<String> = hours.iter().map(i64::to_string).collect();
                hours.join(",")
            }
        };
        for days in days {
            crons.push(Cron::parse(&format!("{minute} {hours} {days}"))?);
        }
    }
    Ok(crons)
}

/// `2 hours`, `1 hour 30 minutes`, `hour`
fn in_words(interval: SignedDuration) -> String {
    let units = [
        ("day", 86_400),
        ("hour", 3_600),
        ("minute", 60),
        ("second", 1),
    ];
    let mut rest = interval.as_secs();
    let mut parts = Vec::new();
    for (name, size) in units {
        let count = rest / size;
        rest %= size;
        if count > 0 {
            parts.push((count, name));
        }
    }
    match parts.as_slice() {
        // `every hour`
        [(1, name)] => (*name).to_owned(),
        parts => {
            let told = parts.iter().map(|(count, name)| match count {
                1 => format!("1 {name}"),
                count => format!("{count} {name}s"),
            });
            told.collect::<Vec<_>>().join(" ")
        }
    }
}
