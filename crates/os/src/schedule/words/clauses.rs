//! The clauses of a schedule in words. Each word is taken by one of them, and what does not fit the others is refused.

mod named;

use jiff::SignedDuration;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use super::ScheduleError;
use super::days::{Days, Once, WEEKEND, WORKDAYS};
use super::times::{Part, Times};
use super::tokens::{Tokens, Unit, number, weekday};

#[derive(Debug, Default)]
pub(super) struct Clauses {
    often: Option<Often>,
    pub(super) days: Days,
    pub(super) times: Times,
    /// `between 9 and 17`
    pub(super) window: Option<(Time, Time)>,
    /// `starting at 6`
    pub(super) start: Option<Time>,
    /// `at :30` of an hour
    pub(super) minute: Option<i8>,
    pub(super) zone: Option<TimeZone>,
    /// `once`, and no `a day` behind it.
    is_once: bool,
    order: Order,
}

/// Days and times that alternate are several schedules: `monday at 9 and tuesday at 10`.
#[derive(Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Open,
    /// The times belong to the days before them.
    DaysThenTimes,
    /// The days belong to the times before them.
    TimesThenDays,
}

/// How often it comes again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Often {
    Interval(SignedDuration),
    Day,
    /// So many times a day.
    PerDay(usize),
    /// Every so many days, from two on.
    Days(i32),
    Week,
    Weeks(i32),
    Month,
    Months(i8),
    Quarter,
    Year,
    /// On the days that are named.
    Named,
}

impl Clauses {
    pub(super) fn read(text: &str) -> Result<Self, ScheduleError> {
        let mut tokens = Tokens::of(text);
        let missing =
            |word: &str| ScheduleError::unclear(format!("something is missing behind `{word}`"));
        if let Some(word) = tokens.dangling() {
            return Err(missing(word));
        }
        let mut clauses = Self::default();
        loop {
            tokens.skip_fillers().map_err(|word| missing(&word))?;
            let Some(word) = tokens.peek().map(str::to_owned) else {
                break;
            };
            if !clauses.take(&mut tokens, &word)? {
                return Err(ScheduleError::not_understood(&word));
            }
        }
        clauses.days.check()?;
        Ok(clauses)
    }

    /// How often it comes again; `None` when it comes once.
    pub(super) fn often(&self) -> Result<Option<Often>, ScheduleError> {
        let days = &self.days;
        let comes_again = days.are_several || days.is_of_month || !days.nth.is_empty();
        let often = self.often.or(comes_again.then_some(Often::Named));
        if often.is_some() && (days.once.is_some() || self.is_once) {
            return Err(ScheduleError::unclear(
                "it is either once or again and again",
            ));
        }
        Ok(often)
    }

    fn again(&mut self, often: Often) -> Result<(), ScheduleError> {
        let joined = match (self.often, often) {
            (None, often) => often,
            (Some(known), often) if known == often => known,
            (Some(Often::Day), Often::Named) => return Err(twice()),
            (Some(known), Often::Named) => known,
            // `every 15th of every month`, `the last friday of every month`
            (Some(Often::Named), Often::Day) => return Err(twice()),
            (Some(Often::Named), often) => often,
            _ => return Err(twice()),
        };
        self.often = Some(joined);
        Ok(())
    }

    fn once(&mut self, once: Once) -> Result<(), ScheduleError> {
        self.note_days()?;
        if self.days.once.replace(once).is_some() {
            return Err(super::days::mixed());
        }
        Ok(())
    }

    /// Days are named now.
    fn note_days(&mut self) -> Result<(), ScheduleError> {
        match (&self.order, self.times.are_written()) {
            (Order::DaysThenTimes, _) => Err(several()),
            (_, true) => {
                self.order = Order::TimesThenDays;
                Ok(())
            }
            (_, false) => Ok(()),
        }
    }

    /// Times are written now.
    fn note_times(&mut self) -> Result<(), ScheduleError> {
        if self.order == Order::TimesThenDays {
            return Err(several());
        }
        if self.days.are_named() {
            self.order = Order::DaysThenTimes;
        }
        Ok(())
    }

    /// Takes the clause that begins here. Returns whether there is one.
    fn take(&mut self, tokens: &mut Tokens, word: &str) -> Result<bool, ScheduleError> {
        let before = [
            "every",
            "each",
            "in",
            "at",
            "@",
            "between",
            "from",
            "next",
            "this",
            "once",
            "twice",
            "starting",
            "beginning",
            "except",
            "but",
            "excluding",
        ];
        if !before.contains(&word) {
            return self.take_word(tokens, word);
        }
        tokens.next();
        match word {
            "every" | "each" => self.every(tokens)?,
            "in" => self.ahead_or_place(tokens)?,
            "at" | "@" => self.at(tokens)?,
            "between" | "from" => self.between(tokens, word)?,
            "next" => self.next(tokens)?,
            "this" => self.this(tokens)?,
            "once" => self.so_often(tokens, 1)?,
            "twice" => self.so_often(tokens, 2)?,
            "starting" | "beginning" => self.starting(tokens)?,
            word => self.except(tokens, word)?,
        }
        Ok(true)
    }

    /// What stands behind `every`.
    fn every(&mut self, tokens: &mut Tokens) -> Result<(), ScheduleError> {
        if tokens.take_word("other") {
            return self.every_so_many(tokens, 2);
        }
        if tokens.take_word("quarter") {
            let is_hour = tokens.take_all(&["of", "an", "hour"]) || tokens.take_word("hour");
            return self.again(if is_hour {
                Often::Interval(SignedDuration::from_mins(15))
            } else {
                Often::Quarter
            });
        }
        // `every second monday` has no seconds in it.
        let is_rank = tokens.peek() == Some("second")
            && tokens.peek_after().is_some_and(|word| {
                word == "and" || Unit::of(word).is_some() || weekday(word).is_some()
            });
        if !is_rank && let Some(unit) = tokens.take(Unit::of) {
            return self.units(1, unit);
        }
        if let Some(part) = tokens.take(Part::of) {
            self.again(Often::Day)?;
            return self.times.push_part(part);
        }
        if let Some((count, unit)) = tokens.attempt(|tokens| {
            let found = tokens.count_and_unit()?;
            // `every 1 hour and 30 minutes` is one duration.
            let goes_on = tokens.attempt(|tokens| tokens.duration());
            goes_on.is_none().then_some(found)
        }) {
            return self.units(count, unit);
        }
        if let Some(interval) = tokens.duration() {
            return self.again(Often::Interval(interval));
        }
        if let Some(time) = tokens.time(false) {
            self.again(Often::Day)?;
            self.note_times()?;
            self.times.push(time);
            return Ok(());
        }
        self.every_named(tokens)
    }

    /// Every so many of a unit.
    fn units(&mut self, count: i64, unit: Unit) -> Result<(), ScheduleError> {
        let few = |max: i64| Some(count).filter(|count| *count <= max);
        let often = match (unit, count) {
            (Unit::Days, 1) => Some(Often::Day),
            (Unit::Weeks, 1) => Some(Often::Week),
            (Unit::Months, 1) => Some(Often::Month),
            (Unit::Months, 2 | 3 | 4 | 6) => i8::try_from(count).ok().map(Often::Months),
            (Unit::Months, 12) | (Unit::Years, 1) => Some(Often::Year),
            (Unit::Months | Unit::Years, _) => {
                return Err(ScheduleError::unclear(
                    "several months at a time are 2, 3, 4, 6 or 12, and years come one by one",
                ));
            }
            (Unit::Days, _) => {
                few(3_660).and_then(|days| i32::try_from(days).ok().map(Often::Days))
            }
            (Unit::Weeks, _) => {
                few(520).and_then(|weeks| i32::try_from(weeks).ok().map(Often::Weeks))
            }
            (unit, count) => unit.times(count).map(Often::Interval),
        };
        self.again(often.ok_or_else(|| ScheduleError::unclear("that is too long a time"))?)
    }

    /// `in 30 minutes`, `in 3 days at 9`, `in the morning`, `in Tokyo`, `in January`
    fn ahead_or_place(&mut self, tokens: &mut Tokens) -> Result<(), ScheduleError> {
        let with_article = tokens.attempt(|tokens| {
            tokens.take_word("the");
            tokens.take(Part::of)
        });
        if let Some(part) = with_article {
            return self.times.push_part(part);
        }
        if let Some(months) = tokens.attempt(|tokens| match tokens.count_and_unit()? {
            (count, Unit::Months) => i32::try_from(count).ok(),
            _ => None,
        }) {
            return self.once(Once::AheadMonths(months));
        }
        if let Some(delay) = tokens.duration() {
            return self.once(Once::Ahead(delay));
        }
        if self.take_months(tokens) {
            return Ok(());
        }
        let word = tokens.peek().map(str::to_owned);
        match (tokens.zone(), word) {
            (Some(zone), _) => self.place(zone),
            (None, Some(word)) => Err(no_such_zone(&word)),
            (None, None) => Err(ScheduleError::unclear("`in` goes with a time or a place")),
        }
    }

    fn place(&mut self, zone: TimeZone) -> Result<(), ScheduleError> {
        if self.zone.replace(zone).is_some() {
            return Err(ScheduleError::unclear("only one place can be named"));
        }
        Ok(())
    }

    fn at(&mut self, tokens: &mut Tokens) -> Result<(), ScheduleError> {
        if let Some(minute) = tokens.minute() {
            let is_second = self.minute.replace(minute).is_some();
            return if is_second { Err(several()) } else { Ok(()) };
        }
        if tokens.take_word("night") {
            return self.times.push_part(Part::Night);
        }
        if self.take_times(tokens, true)? {
            return Ok(());
        }
        match tokens.peek() {
            Some(word) => Err(ScheduleError::not_understood(word)),
            None => Err(ScheduleError::unclear("something is missing behind `at`")),
        }
    }

    fn take_times(
        &mut self,
        tokens: &mut Tokens,
        is_bare_fine: bool,
    ) -> Result<bool, ScheduleError> {
        let mut is_any = false;
        while let Some(time) = tokens.attempt(|tokens| {
            let is_joined = tokens.take_word("and");
            tokens.take_word("at");
            // A number further on must be told from what is to be done then: `at 8 10 ideas for the blog`.
            let time = tokens.time(is_bare_fine && (is_joined || !is_any))?;
            // And from a day of the month.
            let is_date = is_joined && tokens.peek().is_some_and(is_month);
            (!is_date).then_some(time)
        }) {
            self.note_times()?;
            self.times.push(time);
            is_any = true;
        }
        Ok(is_any)
    }

    /// `between 9 and 17`, `from 9am to 5pm`, `from monday to friday`
    fn between(&mut self, tokens: &mut Tokens, word: &str) -> Result<(), ScheduleError> {
        tokens.part_range();
        if word == "from" && tokens.peek().is_some_and(|word| weekday(word).is_some()) {
            let before = self.days.week.len();
            self.take_named(tokens)?;
            let is_range = self.days.are_several && self.days.week.len() > before + 1;
            let unclear =
                || ScheduleError::unclear("a range of days is written as `Monday to Friday`");
            return is_range.then_some(()).ok_or_else(unclear);
        }
        let read = |tokens: &mut Tokens| {
            let first = tokens.time(true)?;
            let is_joined = tokens.take_any(&["and", "to", "until", "till", "-"]);
            let last = tokens.time(true)?;
            is_joined.then_some((first, last))
        };
        let unclear = || ScheduleError::unclear("hours are written as `between 9 and 17`");
        let (first, last) = tokens.attempt(read).ok_or_else(unclear)?;
        if last.time <= first.time && !last.is_sure && first.time.hour() <= 12 {
            let hour = last.time.hour();
            return Err(ScheduleError::unclear(format!(
                "is {hour} in the morning or the afternoon? (`{}` or `{hour}am`)",
                hour + 12
            )));
        }
        if self.window.replace((first.time, last.time)).is_some() {
            return Err(several());
        }
        Ok(())
    }

    fn next(&mut self, tokens: &mut Tokens) -> Result<(), ScheduleError> {
        if tokens.take_word("week") {
            return self.once(Once::NextWeek);
        }
        match tokens.take(weekday) {
            Some((day, false)) => self.once(Once::NextWeekday(day)),
            _ => Err(ScheduleError::unclear(
                "`next` goes with a weekday or with `week`",
            )),
        }
    }

    /// `this evening`, `this friday`
    fn this(&mut self, tokens: &mut Tokens) -> Result<(), ScheduleError> {
        if let Some(part) = tokens.take(Part::of) {
            self.once(Once::InDays(0))?;
            return self.times.push_part(part);
        }
        let is_day = tokens.peek().is_some_and(|word| weekday(word).is_some());
        if is_day && self.take_named(tokens)? {
            return Ok(());
        }
        Err(ScheduleError::unclear(
            "`this` goes with a weekday or a part of the day",
        ))
    }

    /// `once a week`, `twice a day`, `3 times a day`; `once` alone means no more than that.
    fn so_often(&mut self, tokens: &mut Tokens, count: i64) -> Result<(), ScheduleError> {
        let per = tokens.attempt(|tokens| {
            let is_per = tokens.take_any(&["a", "an", "per", "each", "every"]);
            tokens.take(|word| match word {
                "daily" => Some(Unit::Days),
                "weekly" => Some(Unit::Weeks),
                "monthly" => Some(Unit::Months),
                "yearly" => Some(Unit::Years),
                word => Unit::of(word).filter(|_| is_per),
            })
        });
        match (count, per) {
            (1, Some(unit)) => self.units(1, unit),
            (1, None) if matches!(tokens.peek(), Some("every" | "each")) => Ok(()),
            (1, None) => {
                self.is_once = true;
                Ok(())
            }
            (2..=3, Some(Unit::Days)) => self.again(Often::PerDay(count.unsigned_abs() as usize)),
            (_, Some(Unit::Days)) => Err(ScheduleError::unclear(
                "at which times? (`every day at 6, 12, 18 and 22`, or `every 6 hours`)",
            )),
            _ => Err(ScheduleError::unclear(
                "on which days? (`every monday and thursday at 9`)",
            )),
        }
    }

    fn starting(&mut self, tokens: &mut Tokens) -> Result<(), ScheduleError> {
        tokens.take_any(&["at", "from"]);
        let Some(time) = tokens.time(true) else {
            return Err(ScheduleError::unclear(
                "a first day cannot be named: `starting at` goes with a time, and hours (`every 4 hours starting at 6am`)",
            ));
        };
        if self.start.replace(time.time).is_some() {
            return Err(several());
        }
        Ok(())
    }

    /// `except sunday`, `but not on weekends`
    fn except(&mut self, tokens: &mut Tokens, word: &str) -> Result<(), ScheduleError> {
        let is_not = match word {
            "but" => tokens.take_word("not"),
            _ => tokens.take_word("for"),
        };
        let before = self.days.except.len();
        // `but on sunday` could mean the opposite.
        if word == "but" && !is_not && tokens.peek() == Some("on") {
            return Err(ScheduleError::unclear(
                "write `but not on` before days that are left out",
            ));
        }
        while let Some(days) = tokens.attempt(|tokens| {
            tokens.take_any(&["and", "or"]);
            tokens.take_word("on");
            tokens.take(|word| match word {
                "weekends" | "weekend" => Some(WEEKEND.to_vec()),
                "weekdays" | "workdays" => Some(WORKDAYS.to_vec()),
                word => weekday(word).map(|(day, _)| vec![day]),
            })
        }) {
            self.days.except.extend(days);
        }
        if self.days.except.len() == before {
            return Err(ScheduleError::unclear(
                "days of the week can be left out: `every day except sunday`",
            ));
        }
        Ok(())
    }

    fn take_word(&mut self, tokens: &mut Tokens, word: &str) -> Result<bool, ScheduleError> {
        match word {
            "daily" => self.again(Often::Day)?,
            "hourly" => self.again(Often::Interval(SignedDuration::from_hours(1)))?,
            "nightly" => {
                self.again(Often::Day)?;
                self.times.push_part(Part::Night)?;
            }
            "weekly" => self.again(Often::Week)?,
            "biweekly" | "fortnightly" => self.again(Often::Weeks(2))?,
            "monthly" => self.again(Often::Month)?,
            "quarterly" => self.again(Often::Quarter)?,
            "yearly" | "annually" => self.again(Often::Year)?,
            "today" => self.once(Once::InDays(0))?,
            "tonight" => {
                self.once(Once::InDays(0))?;
                self.times.push_part(Part::Tonight)?;
            }
            "tomorrow" => self.once(Once::InDays(1))?,
            "month" if tokens.previous() == Some("the") => self.days.is_of_month = true,
            _ => return self.take_other(tokens, word),
        }
        tokens.next();
        Ok(true)
    }

    fn take_other(&mut self, tokens: &mut Tokens, word: &str) -> Result<bool, ScheduleError> {
        if tokens.take_all(&["day", "after", "tomorrow"]) {
            self.once(Once::InDays(2))?;
            return Ok(true);
        }
        if let Some(part) = tokens.take(Part::of) {
            if word.ends_with('s') {
                self.again(Often::Day)?;
            }
            let has_day = self.days.are_named() || self.often.is_some();
            if !has_day && !self.times.are_written() {
                return Err(ScheduleError::unclear(format!(
                    "which {word}? (`this {word}`, `every {word}`)"
                )));
            }
            self.times.push_part(part)?;
            return Ok(true);
        }
        if let Some(count) = tokens.attempt(|tokens| {
            let count = tokens.take(number)?;
            tokens.take_word("times").then_some(count)
        }) {
            self.so_often(tokens, count.max(2))?;
            return Ok(true);
        }
        if self.take_named(tokens)? || self.take_times(tokens, false)? || self.take_months(tokens) {
            return Ok(true);
        }
        // A duration alone is a delay.
        if let Some(delay) = tokens.duration() {
            self.once(Once::Ahead(delay))?;
            return Ok(true);
        }
        match tokens.zone_by_itself() {
            Some(zone) => self.place(zone).map(|()| true),
            None => Ok(false),
        }
    }
}

fn is_month(word: &str) -> bool {
    super::tokens::month(word).is_some()
}

fn no_such_zone(name: &str) -> ScheduleError {
    ScheduleError::unclear(format!(
        "no time zone is called `{name}` (names are those of the IANA database, such as `Europe/Berlin`, or their cities)"
    ))
}

fn twice() -> ScheduleError {
    ScheduleError::unclear("it says twice how often it comes")
}

fn several() -> ScheduleError {
    ScheduleError::unclear(
        "days with times of their own are schedules of their own: make a job for each (`every monday at 9`)",
    )
}
