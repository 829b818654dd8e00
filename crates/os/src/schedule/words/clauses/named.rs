//! Days that are named: of the week, of the month, of the year, and which one of a month.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;

use super::super::ScheduleError;
use super::super::days::{Once, WEEKEND, WORKDAYS};
use super::super::places;
use super::super::times::Written;
use super::super::tokens::{Tokens, Unit, day_number, month, ordinal, weekday};
use super::{Clauses, Often};

impl Clauses {
    /// `every monday`, `every second monday`, `every first and third friday`, `every 24 December`
    pub(super) fn every_named(&mut self, tokens: &mut Tokens) -> Result<(), ScheduleError> {
        let wrong = |tokens: &Tokens| match tokens.peek() {
            Some(word) => ScheduleError::not_understood(word),
            None => ScheduleError::unclear("every what?"),
        };
        let before = tokens.attempt(ordinals);
        match before.as_deref() {
            // `every second monday` is every other one, unless it is one of a month.
            Some([which]) if *which >= 2 && !is_of_month(tokens) => {
                let has_unit = tokens.peek().is_some_and(|word| {
                    Unit::of(word).is_some() || matches!(weekday(word), Some((_, false)))
                });
                if has_unit {
                    return self.every_so_many(tokens, i64::from(*which));
                }
                self.again(Often::Named)?;
                self.ranked(tokens, &[*which])
            }
            Some(which) => {
                self.again(Often::Named)?;
                self.ranked(tokens, which)
            }
            None => {
                if let Some(number) = tokens.take(|word| match word {
                    "weekday" | "workday" => Some(WORKDAYS.as_slice()),
                    "weekend" => Some(WEEKEND.as_slice()),
                    _ => None,
                }) {
                    self.again(Often::Named)?;
                    self.note_days()?;
                    self.days.week.extend(number);
                    return Ok(());
                }
                // The days first: they tell whether this comes again already.
                let error = wrong(tokens);
                self.again(Often::Named)?;
                let is_taken = self.take_named(tokens)?;
                is_taken.then_some(()).ok_or(error)
            }
        }
    }

    /// `every other day`, `every third week`, `every other monday`
    pub(super) fn every_so_many(
        &mut self,
        tokens: &mut Tokens,
        count: i64,
    ) -> Result<(), ScheduleError> {
        if let Some(unit) = tokens.take(Unit::of) {
            return self.units(count, unit);
        }
        if let Some((day, false)) = tokens.take(weekday) {
            self.units(count, Unit::Weeks)?;
            self.note_days()?;
            self.days.week.push(day);
            return Ok(());
        }
        Err(ScheduleError::unclear(
            "`every other` goes with a unit or a weekday, such as `day`, `week` or `monday`",
        ))
    }

    /// Takes days that are named here. Returns whether there are any.
    pub(super) fn take_named(&mut self, tokens: &mut Tokens) -> Result<bool, ScheduleError> {
        if let Some(word) = tokens.peek()
            && word
                .split_once(['-', '–'])
                .is_some_and(|(first, _)| weekday(first).is_some())
        {
            tokens.part_range();
        }
        if let Some(days) = tokens.take(|word| match word {
            "weekdays" | "workdays" => Some(WORKDAYS.as_slice()),
            "weekends" => Some(WEEKEND.as_slice()),
            _ => None,
        }) {
            self.note_days()?;
            self.days.week.extend(days);
            self.days.are_several = true;
            return Ok(true);
        }
        if let Some((day, is_plural)) = tokens.take(weekday) {
            self.note_days()?;
            self.week_from(tokens, day, is_plural)?;
            return Ok(true);
        }
        if matches!(tokens.peek(), Some("weekday" | "workday" | "weekend")) {
            return Err(ScheduleError::unclear(
                "is it once or again and again? (`every weekday`)",
            ));
        }
        if let Some(which) = tokens.attempt(ordinals) {
            self.ranked(tokens, &which)?;
            return Ok(true);
        }
        self.take_date(tokens)
    }

    /// `mondays`, `monday to friday`
    fn week_from(
        &mut self,
        tokens: &mut Tokens,
        day: Weekday,
        is_plural: bool,
    ) -> Result<(), ScheduleError> {
        self.days.week.push(day);
        self.days.are_several |= is_plural;
        if !tokens.take_any(&["to", "through", "until", "till"]) {
            return Ok(());
        }
        let (last, _) = tokens
            .take(weekday)
            .ok_or_else(|| ScheduleError::unclear("a range of days ends with a weekday"))?;
        let days = day.cycle_forward().skip(1).take(7);
        self.days.week.extend(days.take_while(|day| *day != last));
        self.days.week.push(last);
        self.days.are_several = true;
        Ok(())
    }

    /// What is first, second or last: `first and third Monday`, `last day`, `15th`, `1st and 15th of June`.
    fn ranked(&mut self, tokens: &mut Tokens, which: &[u8]) -> Result<(), ScheduleError> {
        self.note_days()?;
        if let Some((day, is_plural)) = tokens.take(weekday) {
            if which.iter().any(|which| *which > 5) {
                return Err(ScheduleError::unclear(
                    "a month has five such weekdays at most",
                ));
            }
            self.days.are_several |= is_plural;
            self.days
                .nth
                .extend(which.iter().map(|which| (*which, day)));
            return Ok(());
        }
        if tokens.take_any(&["weekday", "workday"]) {
            if which != [0] {
                return Err(ScheduleError::unclear(
                    "the nth working day of a month is not offered, only the last",
                ));
            }
            self.days.has_last_workday = true;
            return Ok(());
        }
        let is_day = tokens.take_any(&["day", "days"]);
        let days = which.iter().filter(|which| **which > 0);
        let days = days.map(|which| i8::try_from(*which).unwrap_or(0));
        let days: Vec<i8> = days.collect();
        let has_last = which.contains(&0);
        if has_last && !is_day {
            return Err(ScheduleError::unclear(
                "the last what? (`last day of the month`, `last Friday of the month`)",
            ));
        }
        if let Some(number) = tokens.attempt(|tokens| {
            tokens.take_any(&["of", "in"]);
            tokens.take(month)
        }) {
            if has_last {
                self.days.has_last = true;
                self.days.of_month.extend(days);
                self.days.months.push(number);
                self.days.is_of_month = true;
                return Ok(());
            }
            return self.on_dates(tokens, &days, number);
        }
        self.days.has_last |= has_last;
        self.days.of_month.extend(days);
        Ok(())
    }

    /// `24 December 2026`, `December 24th`, `2026-12-24T18:00`
    fn take_date(&mut self, tokens: &mut Tokens) -> Result<bool, ScheduleError> {
        if let Some((day, number)) = tokens.attempt(day_and_month) {
            self.note_days()?;
            self.on_dates(tokens, &[day], number)?;
            return Ok(true);
        }
        if let Some((day, number)) = tokens.attempt(month_and_day) {
            self.note_days()?;
            self.on_dates(tokens, &[day], number)?;
            return Ok(true);
        }
        if let Some(found) = tokens.take(date_and_time) {
            let (at, zone) = found?;
            self.once(Once::Date(at.date()))?;
            self.note_times()?;
            self.times.push(Written::surely(at.time()));
            if let Some(zone) = zone {
                self.place(zone)?;
            }
            return Ok(true);
        }
        // What else may stand in one word with a date would be left out without a sign.
        let is_plain = |word: &str| {
            word.chars()
                .all(|char| char.is_ascii_digit() || char == '-')
        };
        match tokens.take(|word| word.parse::<Date>().ok().filter(|_| is_plain(word))) {
            Some(date) => self.once(Once::Date(date)).map(|()| true),
            None => Ok(false),
        }
    }

    /// Days of a month: every year, or with a year behind them one date.
    fn on_dates(
        &mut self,
        tokens: &mut Tokens,
        days: &[i8],
        number: i8,
    ) -> Result<(), ScheduleError> {
        for day in days {
            // A leap year, so that the 29th of February is one.
            if Date::new(2028, number, *day).is_err() {
                let name = super::super::tokens::month_name(number);
                return Err(ScheduleError::unclear(format!(
                    "there is no {day} {name}: the month is shorter"
                )));
            }
        }
        let year = tokens.take(|word| {
            Some(word)
                .filter(|word| word.len() == 4)?
                .parse::<i16>()
                .ok()
        });
        match (days, year) {
            ([day], Some(year)) => {
                let name = super::super::tokens::month_name(number);
                let date = Date::new(year, number, *day).map_err(|_| {
                    ScheduleError::unclear(format!("there is no {day} {name} in {year}"))
                })?;
                self.once(Once::Date(date))
            }
            (_, Some(_)) => Err(super::several()),
            (days, None) => {
                let dates = days.iter().map(|day| (*day, number));
                self.days.dates.extend(dates);
                Ok(())
            }
        }
    }

    /// `January`, `June and July`
    pub(super) fn take_months(&mut self, tokens: &mut Tokens) -> bool {
        let before = self.days.months.len();
        while let Some(number) = tokens.attempt(|tokens| {
            tokens.take_word("and");
            let number = tokens.take(month)?;
            // `june 5` is a date.
            let is_date = tokens
                .peek()
                .is_some_and(|word| day_number(word).is_some() || ordinal(word).is_some());
            (!is_date).then_some(number)
        }) {
            self.days.months.push(number);
        }
        self.days.months.len() > before
    }
}

/// `2026-12-24t18:00`, and the zone in brackets behind it. `None` for what is no date with a time at all.
fn date_and_time(word: &str) -> Option<Result<(DateTime, Option<TimeZone>), ScheduleError>> {
    let (local, zone) = match word.strip_suffix(']').and_then(|word| word.split_once('[')) {
        Some((local, zone)) => (local, Some(zone)),
        None => (word, None),
    };
    let (_, clock) = local.split_once('t')?;
    let at = local.to_uppercase().parse::<DateTime>().ok()?;
    if clock.contains(['+', '-']) {
        return Some(Err(ScheduleError::unclear(
            "a time with an offset stands alone (`2026-12-24T18:00+09:00`); with more words, name the place (`2026-12-24T18:00 in Tokyo`)",
        )));
    }
    let Some(name) = zone else {
        return Some(Ok((at, None)));
    };
    let zone = places::by_itself(name).ok_or_else(|| super::no_such_zone(name));
    Some(zone.map(|zone| (at, Some(zone))))
}

/// `first`, `1st and 15th`
fn ordinals(tokens: &mut Tokens) -> Option<Vec<u8>> {
    tokens.take_word("the");
    let mut which = vec![tokens.take(ordinal)?];
    while let Some(next) = tokens.attempt(|tokens| {
        tokens.take_word("and").then_some(())?;
        tokens.take_word("the");
        tokens.take(ordinal)
    }) {
        which.push(next);
    }
    Some(which)
}

/// Whether what comes is one of a month: `monday of the month`, `day of every month`, `monday in june`.
fn is_of_month(tokens: &mut Tokens) -> bool {
    let mut is_found = false;
    let _: Option<()> = tokens.attempt(|tokens| {
        tokens.next()?;
        is_found = tokens.take_any(&["of", "in"]) && {
            tokens.take_any(&["the", "each", "every", "a"]);
            tokens
                .next()
                .is_some_and(|word| word == "month" || month(&word).is_some())
        };
        None
    });
    is_found
}

/// `24 December`, `24th of December`
fn day_and_month(tokens: &mut Tokens) -> Option<(i8, i8)> {
    let day = tokens.take(day_number)?;
    tokens.take_word("of");
    Some((day, tokens.take(month)?))
}

/// `December 24`, `December the 24th`
fn month_and_day(tokens: &mut Tokens) -> Option<(i8, i8)> {
    let number = tokens.take(month)?;
    tokens.take_word("the");
    let ranked = |word: &str| ordinal(word).and_then(|day| i8::try_from(day).ok());
    let day = tokens.take(|word| day_number(word).or_else(|| ranked(word)))?;
    // `0` is how `last` is written down.
    (day > 0).then_some((day, number))
}
