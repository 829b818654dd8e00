//! What a cron expression says, in words.

use super::{Cron, has};
use crate::schedule::told::{joined, ranked};
use crate::schedule::words::month_name;

/// More times of a day than this are told by their minutes and hours.
const TIMES_MAX: usize = 6;

const WEEK: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

impl Cron {
    /// `every Monday to Friday at 09:00`
    pub(in crate::schedule) fn told(&self) -> String {
        let (days, months) = (self.told_days(), self.told_months());
        match self.told_times() {
            // `at 09:00` goes behind the days, `every hour` before them.
            (true, times) => format!("{}{months} {times}", days.unwrap_or("every day".to_owned())),
            (false, times) => match days {
                Some(days) => format!("{times}, {days}{months}"),
                None => format!("{times}{months}"),
            },
        }
    }

    /// Whether the times are those of a clock, and what they are.
    fn told_times(&self) -> (bool, String) {
        let seconds: Vec<i8> = members(self.seconds, 0, 59);
        let minutes: Vec<i8> = members(self.minutes, 0, 59);
        let hours: Vec<i8> = members(self.hours.set, 0, 23);
        if seconds.len() * minutes.len() * hours.len() <= TIMES_MAX {
            let clock = hours.iter().flat_map(|hour| {
                let minutes = minutes.iter();
                minutes.flat_map(|minute| {
                    let seconds = seconds.iter();
                    seconds.map(|second| clock(*hour, *minute, *second))
                })
            });
            return (true, format!("at {}", joined(clock)));
        }
        let of_hours = match beat(&hours, 24) {
            Some(1) => String::new(),
            _ => format!(" in the hours {}", ranges(&hours)),
        };
        let second = match (seconds.as_slice(), beat(&seconds, 60)) {
            ([0], _) => String::new(),
            (_, Some(beat)) => format!("every {beat} seconds of "),
            _ => format!("at second {} of ", ranges(&seconds)),
        };
        let minutes = match (minutes.as_slice(), beat(&minutes, 60), second.is_empty()) {
            (_, Some(1), _) => "every minute".to_owned(),
            (_, Some(beat), _) => format!("every {beat} minutes"),
            ([minute], None, true) if of_hours.is_empty() => format!("every hour at :{minute:02}"),
            ([minute], None, _) => format!("minute {minute} of every hour"),
            _ => format!("minutes {} of every hour", ranges(&minutes)),
        };
        (false, format!("{second}{minutes}{of_hours}"))
    }

    fn told_days(&self) -> Option<String> {
        let of_month = self.days.of_month.map(|days| {
            let numbers = members(days.set, 1, 31);
            let named = numbers
                .iter()
                .map(|day| format!("the {}", ranked(day.unsigned_abs())))
                .chain(days.last.then(|| "the last day".to_owned()))
                .chain(days.last_workday.then(|| "the last weekday".to_owned()));
            format!("on {} of the month", joined(named))
        });
        let of_week = self.days.of_week.as_ref().map(|week| {
            let days = members(week.set, 0, 6);
            let plain = match days.as_slice() {
                [] => None,
                [1, 2, 3, 4, 5] => Some("every Monday to Friday".to_owned()),
                days => Some(format!(
                    "every {}",
                    joined(days.iter().map(|day| named(*day)))
                )),
            };
            let nth = week.nth.iter().map(|(day, which)| {
                format!("the {} {} of the month", ranked(*which), named(*day as i8))
            });
            joined(plain.into_iter().chain(nth))
        });
        match (of_month, of_week) {
            (Some(month), Some(week)) => Some(format!("{month} and also {week}")),
            (one, other) => one.or(other),
        }
    }

    fn told_months(&self) -> String {
        let months = members(self.months, 1, 12);
        if months.len() == 12 {
            return String::new();
        }
        format!(
            " in {}",
            joined(months.iter().map(|month| month_name(*month)))
        )
    }
}

fn named(day: i8) -> String {
    let index = usize::try_from(day).unwrap_or(0);
    WEEK.get(index).copied().unwrap_or_default().to_owned()
}

fn clock(hour: i8, minute: i8, second: i8) -> String {
    match second {
        0 => format!("{hour:02}:{minute:02}"),
        _ => format!("{hour:02}:{minute:02}:{second:02}"),
    }
}

/// The step of numbers that go round evenly.
fn beat(numbers: &[i8], round: i8) -> Option<i8> {
    let (first, second) = (*numbers.first()?, *numbers.get(1)?);
    let step = second - first;
    let goes_round = first == 0 && round % step == 0;
    let count = usize::try_from(round / step).ok()?;
    let is_even = numbers.windows(2).all(|two| two[1] - two[0] == step);
    (goes_round && is_even && numbers.len() == count).then_some(step)
}

/// `0, 15 and 30`, `9 to 17`
fn ranges(numbers: &[i8]) -> String {
    let mut runs: Vec<(i8, i8)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    joined(runs.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first} to {last}"),
    }))
}

fn members(set: u64, min: i8, max: i8) -> Vec<i8> {
    (min..=max).filter(|number| has(set, *number)).collect()
}
