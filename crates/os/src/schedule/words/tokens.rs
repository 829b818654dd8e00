//! The words of a schedule, one by one, and what single ones mean.

use jiff::SignedDuration;
use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;

use super::places;
use super::times::Written;

/// Words that only join others. At the end of a schedule something is missing behind them.
const FILLERS: &[&str] = &["the", "of", "on", "and"];
/// Words that may stand anywhere, also at the end.
const POLITE: &[&str] = &["o'clock", "sharp", "please"];

/// Words that begin a clause, so that nothing can be joined to them by `the`, `of` or `on`.
const PREPOSITIONS: &[&str] = &[
    "and", "at", "between", "but", "except", "from", "in", "of", "on", "starting",
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

const NUMBERS: [&str; 13] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Minutes,
    Hours,
    Days,
    Weeks,
    Months,
    Years,
}

impl Unit {
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "s" | "sec" | "secs" | "second" | "seconds" => Self::Seconds,
            "m" | "min" | "mins" | "minute" | "minutes" => Self::Minutes,
            "h" | "hr" | "hrs" | "hour" | "hours" => Self::Hours,
            "d" | "day" | "days" => Self::Days,
            "w" | "wk" | "week" | "weeks" => Self::Weeks,
            "month" | "months" => Self::Months,
            "y" | "year" | "years" => Self::Years,
            _ => return None,
        })
    }

    /// How long so many of them are; months and years have no length.
    pub(super) fn times(self, count: i64) -> Option<SignedDuration> {
        count
            .checked_mul(self.seconds()?)
            .map(SignedDuration::from_secs)
    }

    fn seconds(self) -> Option<i64> {
        Some(match self {
            Self::Seconds => 1,
            Self::Minutes => 60,
            Self::Hours => 3_600,
            Self::Days => 86_400,
            Self::Weeks => 7 * 86_400,
            Self::Months | Self::Years => return None,
        })
    }
}

/// Reads forward through the words.
pub(super) struct Tokens {
    words: Vec<String>,
    at: usize,
}

impl Tokens {
    pub(super) fn of(text: &str) -> Self {
        let lower = text.to_lowercase();
        let lower = lower.trim_end_matches([',', ';', '!', '.']);
        let lower = lower.replace([',', '&'], " and ");
        Self {
            words: lower.split_whitespace().map(str::to_owned).collect(),
            at: 0,
        }
    }

    pub(super) fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(String::as_str)
    }

    /// The word behind the next one.
    pub(super) fn peek_after(&self) -> Option<&str> {
        self.words.get(self.at + 1).map(String::as_str)
    }

    pub(super) fn previous(&self) -> Option<&str> {
        self.words.get(self.at.checked_sub(1)?).map(String::as_str)
    }

    pub(super) fn next(&mut self) -> Option<String> {
        let word = self.words.get(self.at).cloned();
        self.at += usize::from(word.is_some());
        word
    }

    /// Goes on to the next word that says something. A joining word that joins nothing is returned as an error.
    pub(super) fn skip_fillers(&mut self) -> Result<(), String> {
        while let Some(word) = self.peek().filter(|word| is_filler(word)) {
            let next = self.peek_after().unwrap_or_default();
            let joins_nothing = match word {
                "and" => matches!(next, "and" | "of"),
                "the" => PREPOSITIONS.contains(&next) || matches!(next, "the" | "every" | "each"),
                "of" | "on" => PREPOSITIONS.contains(&next),
                _ => false,
            };
            if joins_nothing {
                return Err(word.to_owned());
            }
            self.at += 1;
        }
        Ok(())
    }

    /// A last word that something must follow.
    pub(super) fn dangling(&self) -> Option<&str> {
        let last = self.words.last()?;
        FILLERS.contains(&last.as_str()).then_some(last)
    }

    /// Takes the next word if it means something.
    pub(super) fn take<T>(&mut self, meaning: impl Fn(&str) -> Option<T>) -> Option<T> {
        let found = meaning(self.peek()?)?;
        self.at += 1;
        Some(found)
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.take(|other| (other == word).then_some(())).is_some()
    }

    pub(super) fn take_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.take_word(word))
    }

    /// Takes these words if all of them come, one after another.
    pub(super) fn take_all(&mut self, words: &[&str]) -> bool {
        let taken = self.attempt(|tokens| {
            words
                .iter()
                .all(|word| tokens.take_word(word))
                .then_some(())
        });
        taken.is_some()
    }

    /// Tries something that may take several words, and takes none if it fails.
    pub(super) fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        // Words are parted on the way: `1h30m`.
        let before = (self.at, self.words.clone());
        let found = read(self);
        if found.is_none() {
            (self.at, self.words) = before;
        }
        found
    }

    /// `9`, `9:30`, `9.30`, `9am`, `9 pm`, `nine`, `noon`. A bare number only where a time must stand.
    pub(super) fn time(&mut self, is_bare_fine: bool) -> Option<Written> {
        self.attempt(|tokens| {
            let word = tokens.next()?;
            match word.as_str() {
                "noon" | "midday" => return Some(Written::surely(Time::constant(12, 0, 0, 0))),
                "midnight" => return Some(Written::surely(Time::midnight())),
                _ => {}
            }
            let (digits, half) = half_of_day(&word);
            let half = half.or_else(|| {
                tokens.take(|word| Some(word).filter(|word| is_half(word)).map(str::to_owned))
            });
            let (hour, minute) = match digits.split_once([':', '.']) {
                Some((hour, minute)) if minute.len() == 2 => (hour, Some(minute.parse().ok()?)),
                Some(_) => return None,
                None => (digits, None),
            };
            let is_padded = hour.len() == 2 && hour.starts_with('0');
            let hour = hour_of(hour)?;
            if minute.is_none() && half.is_none() && !is_bare_fine {
                return None;
            }
            let time = Time::new(of_day(hour, half.as_deref())?, minute.unwrap_or(0), 0, 0);
            Some(Written {
                time: time.ok()?,
                is_sure: half.is_some() || hour > 12,
                has_half: half.is_some(),
                is_padded,
            })
        })
    }

    /// `:30`, the minute of an hour.
    pub(super) fn minute(&mut self) -> Option<i8> {
        self.take(|word| {
            let minute = word.strip_prefix(':').filter(|minute| minute.len() == 2)?;
            minute
                .parse()
                .ok()
                .filter(|minute| (0..60).contains(minute))
        })
    }

    /// `30m`, `2 hours`, `an hour`, `1h30m`, `half an hour`; and several of them in a row.
    pub(super) fn duration(&mut self) -> Option<SignedDuration> {
        let mut total = SignedDuration::ZERO;
        while let Some(part) = self.duration_part() {
            total = total.checked_add(part)?;
        }
        (total > SignedDuration::ZERO).then_some(total)
    }

    fn duration_part(&mut self) -> Option<SignedDuration> {
        self.attempt(|tokens| {
            tokens.take_word("and");
            if let Some(part) = tokens.attempt(Self::part_of_unit) {
                return Some(part);
            }
            let (count, unit) = tokens.count_and_unit()?;
            unit.times(count)
        })
    }

    /// `half an hour`, `1.5 hours`
    fn part_of_unit(&mut self) -> Option<SignedDuration> {
        let word = self.next()?;
        let (count, tenths_per_unit) = if word == "half" {
            self.take_any(&["a", "an"]);
            (5, 10)
        } else {
            let split = word.find(|char: char| char.is_ascii_alphabetic());
            let (digits, unit) = word.split_at(split.unwrap_or(word.len()));
            let (whole, tenth) = digits.split_once('.')?;
            if tenth.len() != 1 || whole.len() > 4 {
                return None;
            }
            if !unit.is_empty() {
                self.at -= 1;
                self.words[self.at] = unit.to_owned();
            }
            let (whole, tenth): (i64, i64) = (whole.parse().ok()?, tenth.parse().ok()?);
            (whole * 10 + tenth, 10)
        };
        let seconds = Unit::of(&self.next()?)?.seconds()?;
        let total = count * seconds;
        (total % tenths_per_unit == 0)
            .then(|| SignedDuration::from_secs(total / tenths_per_unit))
            .filter(|part| *part > SignedDuration::ZERO)
    }

    /// `30m`, `2 hours`
    pub(super) fn count_and_unit(&mut self) -> Option<(i64, Unit)> {
        self.attempt(|tokens| {
            let word = tokens.next()?;
            let split = word.find(|char: char| !char.is_ascii_digit());
            if let Some(split) = split.filter(|split| *split > 0) {
                let (count, unit) = word.split_at(split);
                let unit_end = unit
                    .find(|char: char| char.is_ascii_digit())
                    .unwrap_or(unit.len());
                let (unit, rest) = unit.split_at(unit_end);
                let found = (count.parse().ok()?, Unit::of(unit)?);
                if !rest.is_empty() {
                    // `1h30m`: the rest is read next.
                    tokens.at -= 1;
                    tokens.words[tokens.at] = rest.to_owned();
                }
                return Some(found);
            }
            let count = number(&word)?;
            Some((count, Unit::of(&tokens.next()?)?))
        })
    }

    /// A zone by any name, behind `in`.
    pub(super) fn zone(&mut self) -> Option<TimeZone> {
        let left = self.words.len() - self.at;
        (1..=left.min(places::WORDS_MAX)).rev().find_map(|count| {
            let zone = places::named(&self.name(count))?;
            self.at += count;
            self.take_word("time");
            Some(zone)
        })
    }

    /// A zone that stands by itself: `UTC+2`, `Europe/Berlin`, `Berlin time`.
    pub(super) fn zone_by_itself(&mut self) -> Option<TimeZone> {
        let zone = self.attempt(|tokens| {
            let zone = places::by_itself(tokens.peek()?)?;
            tokens.at += 1;
            tokens.take_word("time");
            Some(zone)
        });
        zone.or_else(|| {
            self.attempt(|tokens| {
                let before = tokens.at;
                let zone = tokens.zone()?;
                let is_said = tokens.words[before..tokens.at]
                    .iter()
                    .any(|word| word == "time");
                is_said.then_some(zone)
            })
        })
    }

    fn name(&self, count: usize) -> String {
        self.words[self.at..self.at + count].join("_")
    }

    /// Parts `9-17` and `mon-fri` at the dash.
    pub(super) fn part_range(&mut self) {
        let Some(word) = self.peek() else { return };
        let Some((first, last)) = word.split_once(['-', '–']) else {
            return;
        };
        if first.is_empty() || last.is_empty() || last.contains(['-', '–']) {
            return;
        }
        let parts = [first.to_owned(), "to".to_owned(), last.to_owned()];
        self.words.splice(self.at..=self.at, parts);
    }
}

pub(super) fn is_filler(word: &str) -> bool {
    FILLERS.contains(&word) || POLITE.contains(&word)
}

fn is_half(word: &str) -> bool {
    matches!(word, "am" | "pm" | "a.m." | "p.m." | "a.m" | "p.m")
}

/// `9am` is `9` and `am`.
fn half_of_day(word: &str) -> (&str, Option<String>) {
    let end = word
        .find(|char: char| char.is_ascii_alphabetic())
        .unwrap_or(word.len());
    let (digits, half) = word.split_at(end);
    if is_half(half) && !digits.is_empty() {
        (digits, Some(half.to_owned()))
    } else {
        (word, None)
    }
}

fn hour_of(text: &str) -> Option<i8> {
    let spelled = NUMBERS.iter().position(|name| *name == text);
    if let Some(hour) = spelled {
        return i8::try_from(hour).ok();
    }
    let is_digits = text.len() <= 2 && text.chars().all(|char| char.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

/// What was meant by `0900` or `9h30`, as it is written here.
pub(super) fn misspelled_time(word: &str) -> Option<String> {
    let (hour, minute) = match word.split_once('h') {
        Some((hour, "")) => (hour, "00"),
        Some(parts) => parts,
        None => word.split_at_checked(word.len().checked_sub(2)?)?,
    };
    let is_number = |text: &str| {
        (1..=2).contains(&text.len()) && text.chars().all(|char| char.is_ascii_digit())
    };
    if !is_number(hour) || !is_number(minute) || minute.len() != 2 {
        return None;
    }
    let time = Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()?;
    Some(time.strftime("%H:%M").to_string())
}

fn of_day(hour: i8, half: Option<&str>) -> Option<i8> {
    match half {
        None => Some(hour),
        Some(_) if !(1..=12).contains(&hour) => None,
        Some(half) if half.starts_with('p') => Some(hour % 12 + 12),
        Some(_) => Some(hour % 12),
    }
}

pub(super) fn number(word: &str) -> Option<i64> {
    let spelled = NUMBERS.iter().position(|name| *name == word);
    match (spelled, word) {
        (Some(number), _) => i64::try_from(number).ok().filter(|count| *count > 0),
        (None, "a" | "an") => Some(1),
        (None, digits) => Some(digits)
            .filter(|digits| digits.len() <= 6 && digits.chars().all(|c| c.is_ascii_digit()))?
            .parse()
            .ok()
            .filter(|count| *count > 0),
    }
}

/// A weekday, and whether it is in the plural: `mondays` come again.
pub(super) fn weekday(word: &str) -> Option<(Weekday, bool)> {
    WEEKDAYS.iter().find_map(|(name, day)| {
        let short = word.trim_end_matches('.');
        let is_short = short.len() >= 3 && name.starts_with(short);
        let is_plural = word.strip_suffix('s') == Some(name);
        (is_short || is_plural).then_some((*day, is_plural))
    })
}

pub(super) fn month(word: &str) -> Option<i8> {
    let word = word.trim_end_matches('.');
    let found = MONTHS
        .iter()
        .position(|name| word.len() >= 3 && name.starts_with(word));
    found.and_then(|index| i8::try_from(index + 1).ok())
}

/// `January`
pub(in crate::schedule) fn month_name(number: i8) -> String {
    let index = usize::try_from(number - 1).ok();
    let name = index.and_then(|index| MONTHS.get(index));
    let (first, rest) = name.map_or(("", ""), |name| name.split_at(1));
    format!("{}{rest}", first.to_uppercase())
}

/// `first`, `2nd`; 0 is the last.
pub(super) fn ordinal(word: &str) -> Option<u8> {
    let named = ["last", "first", "second", "third", "fourth", "fifth"];
    if let Some(index) = named.iter().position(|name| *name == word) {
        return u8::try_from(index).ok();
    }
    let digits = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|end| word.strip_suffix(end))?;
    digits.parse().ok().filter(|day| (1..=31).contains(day))
}

/// `24`, `24.`
pub(super) fn day_number(word: &str) -> Option<i8> {
    word.trim_end_matches('.')
        .parse()
        .ok()
        .filter(|day| (1..=31).contains(day))
}
