//! Which days a schedule in words means: as fields of cron, and told back.

use jiff::SignedDuration;
use jiff::civil::{Date, Weekday};

use super::ScheduleError;
use super::tokens::month_name;
use crate::schedule::cron;
use crate::schedule::told::{joined, ranked};

pub(super) const WORKDAYS: [Weekday; 5] = [
    Weekday::Monday,
    Weekday::Tuesday,
    Weekday::Wednesday,
    Weekday::Thursday,
    Weekday::Friday,
];
pub(super) const WEEKEND: [Weekday; 2] = [Weekday::Saturday, Weekday::Sunday];

/// The days that were named, of whatever kind.
#[derive(Debug, Default)]
pub(super) struct Days {
    pub(super) week: Vec<Weekday>,
    /// Days that are left out of the others.
    pub(super) except: Vec<Weekday>,
    /// Which one of a month; 0 is the last.
    pub(super) nth: Vec<(u8, Weekday)>,
    pub(super) of_month: Vec<i8>,
    pub(super) has_last: bool,
    pub(super) has_last_workday: bool,
    /// Days of a year: day and month.
    pub(super) dates: Vec<(i8, i8)>,
    pub(super) months: Vec<i8>,
    pub(super) once: Option<Once>,
    /// `of the month`
    pub(super) is_of_month: bool,
    /// A plural or a range: they come again without `every`.
    pub(super) are_several: bool,
}

/// A day that comes once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Once {
    /// So long from now.
    Ahead(SignedDuration),
    AheadMonths(i32),
    /// So many days from today.
    InDays(i64),
    Date(Date),
    /// `next Monday` is never today.
    NextWeekday(Weekday),
    NextWeek,
}

impl Days {
    pub(super) fn has_of_month(&self) -> bool {
        !self.of_month.is_empty() || self.has_last || self.has_last_workday
    }

    /// Whether days are named, and not only months.
    pub(super) fn are_named(&self) -> bool {
        !self.week.is_empty()
            || !self.nth.is_empty()
            || self.has_of_month()
            || !self.dates.is_empty()
            || self.once.is_some()
    }

    /// Days of one kind only: what several kinds mean together is anybody's guess.
    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        let week = !self.week.is_empty();
        // `friday next week` is one day.
        let is_week_of = self.once == Some(Once::NextWeek) && self.week.len() == 1;
        let kinds = [
            week && !is_week_of,
            !self.nth.is_empty(),
            self.has_of_month(),
            !self.dates.is_empty(),
            self.once.is_some(),
        ];
        let months_too = !self.months.is_empty() && (!self.dates.is_empty() || self.once.is_some());
        if kinds.iter().filter(|is_there| **is_there).count() > 1 || months_too {
            return Err(mixed());
        }
        if week && self.is_of_month {
            return Err(ScheduleError::unclear(
                "which one of the month? (`first Monday of the month`)",
            ));
        }
        Ok(())
    }

    /// The last three fields of cron, one for each kind of day, and what they say.
    pub(super) fn crons(&self) -> (Vec<String>, String) {
        let (months, in_months) = self.months();
        if !self.dates.is_empty() {
            return self.yearly();
        }
        if self.has_of_month() {
            return self.monthly(&months, &in_months);
        }
        if !self.nth.is_empty() {
            return self.nths(&months, &in_months);
        }
        let every_day: Vec<Weekday> = WORKDAYS.into_iter().chain(WEEKEND).collect();
        let mut week = match self.week.as_slice() {
            [] => every_day.clone(),
            week => week.to_vec(),
        };
        week.retain(|day| !self.except.contains(day));
        week.sort_unstable_by_key(|day| day.to_monday_zero_offset());
        week.dedup();
        if week == every_day {
            return (
                vec![format!("* {months} *")],
                format!("every day{in_months}"),
            );
        }
        let field: Vec<String> = week.iter().map(|day| cron::name_of(*day)).collect();
        let told = match week.as_slice() {
            days if days == WORKDAYS => "Monday to Friday".to_owned(),
            days => joined(days.iter().map(|day| format!("{day:?}"))),
        };
        (
            vec![format!("* {months} {}", field.join(","))],
            format!("every {told}{in_months}"),
        )
    }

    fn nths(&self, months: &str, in_months: &str) -> (Vec<String>, String) {
        let field = self.nth.iter().map(|(which, day)| match which {
            0 => format!("{}L", cron::name_of(*day)),
            which => format!("{}#{which}", cron::name_of(*day)),
        });
        let field: Vec<String> = field.collect();
        let told = self.nth.iter();
        let told = told.map(|(which, day)| format!("the {} {day:?}", ranked(*which)));
        (
            vec![format!("* {months} {}", field.join(","))],
            format!("{}{}", joined(told), or(in_months, " of the month")),
        )
    }

    fn monthly(&self, months: &str, in_months: &str) -> (Vec<String>, String) {
        let mut days = self.of_month.clone();
        days.sort_unstable();
        days.dedup();
        let lasts = [
            (self.has_last, "L", "the last day"),
            (self.has_last_workday, "LW", "the last weekday"),
        ];
        let lasts: Vec<_> = lasts
            .into_iter()
            .filter(|(is_there, ..)| *is_there)
            .collect();
        let field = days.iter().map(i8::to_string);
        let field: Vec<String> = field
            .chain(lasts.iter().map(|(_, field, _)| (*field).to_owned()))
            .collect();
        let told = days
            .iter()
            .map(|day| format!("the {}", ranked(day.unsigned_abs())))
            .chain(lasts.iter().map(|(.., told)| (*told).to_owned()));
        (
            vec![format!("{} {months} *", field.join(","))],
            format!("on {}{}", joined(told), or(in_months, " of every month")),
        )
    }

    fn yearly(&self) -> (Vec<String>, String) {
        let mut dates = self.dates.clone();
        dates.sort_unstable_by_key(|(day, month)| (*month, *day));
        dates.dedup();
        let fields = dates.iter().map(|(day, month)| format!("{day} {month} *"));
        let told = dates
            .iter()
            .map(|(day, month)| format!("{day} {}", month_name(*month)));
        (fields.collect(), format!("every year on {}", joined(told)))
    }

    /// The field of months, and what it says.
    fn months(&self) -> (String, String) {
        let mut numbers = self.months.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let fields: Vec<String> = numbers.iter().map(i8::to_string).collect();
        if fields.is_empty() {
            return ("*".to_owned(), String::new());
        }
        let names = joined(numbers.iter().map(|number| month_name(*number)));
        (fields.join(","), format!(" in {names}"))
    }
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

pub(super) fn mixed() -> ScheduleError {
    ScheduleError::unclear(
        "these days do not go together: name days of the week, or of the month, or one date",
    )
}
