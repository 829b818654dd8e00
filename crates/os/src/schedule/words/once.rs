//! What comes once: the day that is meant, and whether it is still ahead.

use jiff::civil::{Date, Time};
use jiff::{SignedDuration, Span, ToSpan as _, Zoned};

use super::clauses::Clauses;
use super::days::Once;
use super::{ScheduleError, USUAL_TIME, next_weekday, times_or};
use crate::schedule::{Schedule, cron, told};

/// How late something may be that is due once: a person needs a moment to write it.
const LATE: SignedDuration = SignedDuration::from_secs(120);

const DAY_S: i64 = 24 * 60 * 60;

/// Years that are looked through for a 29th of February.
const LEAP_YEARS_APART: i16 = 8;

pub(super) fn read(clauses: &Clauses, now: &Zoned) -> Result<Schedule, ScheduleError> {
    let days = &clauses.days;
    let is_more = clauses.window.is_some()
        || clauses.start.is_some()
        || clauses.minute.is_some()
        || !days.except.is_empty()
        || !days.months.is_empty();
    if is_more {
        return Err(again_or_not());
    }
    if let (Some(Once::Ahead(delay)), true) = (days.once, clauses.times.is_empty()) {
        let at = now.checked_add(delay).map_err(|_| too_far())?;
        return checked(at, now, delay.as_secs() % 60 != 0);
    }
    let times = times_or(clauses, &[USUAL_TIME])?;
    let [time] = times.as_slice() else {
        return Err(ScheduleError::unclear(
            "once is at one time; `every day at 9 and 18` comes again",
        ));
    };
    let date = date_of(clauses, now, *time)?;
    let moment = cron::moment(date.to_datetime(*time), now.time_zone());
    let at = moment.ok_or_else(too_far)?;
    checked(
        at.to_zoned(now.time_zone().clone()),
        now,
        time.second() != 0,
    )
}

fn date_of(clauses: &Clauses, now: &Zoned, time: Time) -> Result<Date, ScheduleError> {
    let (today, days) = (now.date(), &clauses.days);
    let later = |span: Result<Span, jiff::Error>| {
        let date = span.and_then(|span| today.checked_add(span));
        date.map_err(|_| too_far())
    };
    let in_days = |days: i64| later(Span::new().try_days(days));
    let is_over = |date: Date| date.to_datetime(time) <= now.datetime();
    match (days.once, days.week.as_slice(), days.dates.as_slice()) {
        (Some(Once::NextWeek), week @ ([] | [_]), _) => {
            let monday = next_weekday(in_days(1)?, jiff::civil::Weekday::Monday);
            Ok(week
                .first()
                .map_or(monday, |day| next_weekday(monday, *day)))
        }
        (Some(once), _, _) => match once {
            Once::InDays(days) => in_days(days),
            Once::AheadMonths(months) => later(Span::new().try_months(months)),
            Once::Date(date) => Ok(date),
            Once::NextWeekday(day) => Ok(next_weekday(in_days(1)?, day)),
            Once::Ahead(delay) if delay.as_secs() % DAY_S == 0 => in_days(delay.as_secs() / DAY_S),
            Once::Ahead(_) | Once::NextWeek => Err(ScheduleError::unclear(
                "a time of day goes with days, not with hours or minutes",
            )),
        },
        (None, [day], []) => {
            let date = next_weekday(today, *day);
            if is_over(date) {
                date.checked_add(7.days()).map_err(|_| too_far())
            } else {
                Ok(date)
            }
        }
        (None, [], [(day, month)]) => {
            // The 29th of February waits for its year.
            let years = today.year()..=today.year() + LEAP_YEARS_APART;
            let mut dates = years.filter_map(|year| Date::new(year, *month, *day).ok());
            dates.find(|date| !is_over(*date)).ok_or_else(too_far)
        }
        // `at 9` is today, or tomorrow when nine is over.
        (None, [], []) if !days.are_named() && !clauses.times.is_empty() => {
            in_days(i64::from(is_over(today)))
        }
        _ => Err(again_or_not()),
    }
}

fn again_or_not() -> ScheduleError {
    ScheduleError::unclear(
        "it is not clear whether it comes once or again: write `every` before the days, or one date",
    )
}

fn too_far() -> ScheduleError {
    ScheduleError::unclear("that is beyond every calendar")
}

pub(super) fn checked(
    at: Zoned,
    now: &Zoned,
    has_seconds: bool,
) -> Result<Schedule, ScheduleError> {
    let late = now.timestamp().duration_since(at.timestamp());
    if late > LATE {
        return Err(ScheduleError::Past {
            at: told::moment(&at, has_seconds),
        });
    }
    Ok(Schedule::once(&at, has_seconds))
}
