//! Reads how long a provider wants us to wait.

use std::time::Duration;

use serde_json::Value;

use super::Refusal;

/// The longest wait we tell apart from never. Added to a clock it cannot overflow.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(365 * 86_400);

/// Reads how long to wait, in whichever way the server said it. More than [`RETRY_AFTER_MAX`] is that.
pub(super) fn retry_after(refusal: Refusal<'_>) -> Option<Duration> {
    let millis = refusal
        .retry_after_ms
        .and_then(|text| text.trim().parse::<f64>().ok());
    let wait = match (millis, refusal.retry_after) {
        (Some(millis), _) => seconds(millis / 1000.0),
        (None, Some(text)) => match spelt_seconds(text) {
            Some(secs) => seconds(secs),
            None => {
                let now = refusal.date.and_then(http_date).or(refusal.now);
                Some(http_date(text)?.saturating_sub(now?))
            }
        },
        // Gemini says it only in the body, others only in their words.
        (None, None) => gemini_retry_delay(refusal.body).or_else(|| in_sentence(refusal.body)),
    };
    wait.map(|wait| wait.min(RETRY_AFTER_MAX))
}

/// Reads `7`, `7.5` and `7s`.
fn spelt_seconds(text: &str) -> Option<f64> {
    text.trim().trim_end_matches('s').parse().ok()
}

/// Reads the wait of "please try again in 1m2.5s", as OpenAI and Groq write it.
fn in_sentence(body: &str) -> Option<Duration> {
    let text = body.to_lowercase();
    let (_, rest) = text.split_once("try again in ")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let mut rest = rest[..end.unwrap_or(rest.len())].trim_end_matches('.');
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit());
        let unit_end = unit_end.map_or(rest.len(), |length| digits + length);
        total += number
            * match &rest[digits..unit_end] {
                "ms" => 0.001,
                "s" | "seconds" | "sec" => 1.0,
                "m" | "min" | "minutes" => 60.0,
                "h" | "hours" => 3600.0,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    seconds(total)
}

fn seconds(secs: f64) -> Option<Duration> {
    let secs_max = RETRY_AFTER_MAX.as_secs_f64();
    (secs >= 0.0).then(|| Duration::from_secs_f64(secs.min(secs_max)))
}

/// Says a long wait in its two largest units, rounded down: `27 h 46 min`, `3 d 3 h`.
pub(super) fn in_words(wait: Duration) -> String {
    let minutes = wait.as_secs() / 60;
    let (large, small) = match minutes {
        0 => return format!("{} s", wait.as_secs()),
        1..60 => return format!("{minutes} min"),
        // "27 h" is easier to add to the time of day than "1 d 3 h".
        60..2880 => ((minutes / 60, "h"), (minutes % 60, "min")),
        _ => ((minutes / 1440, "d"), (minutes % 1440 / 60, "h")),
    };
    match small {
        (0, _) => format!("{} {}", large.0, large.1),
        (number, unit) => format!("{} {} {number} {unit}", large.0, large.1),
    }
}

fn gemini_retry_delay(body: &str) -> Option<Duration> {
    let value: Value = serde_json::from_str(body).ok()?;
    let details = value.pointer("/error/details")?.as_array()?;
    let delay = details
        .iter()
        .find_map(|detail| detail["retryDelay"].as_str())?;
    seconds(delay.strip_suffix('s')?.parse().ok()?)
}

/// Reads a date in any of the three forms of HTTP as the time since 1970: `Sun, 15 Nov 2026 21:24:05 GMT`,
/// `Sunday, 15-Nov-26 21:24:05 GMT` and `Sun Nov 15 21:24:05 2026`.
fn http_date(text: &str) -> Option<Duration> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let words: Vec<&str> = text
        .split([' ', '-'])
        .filter(|word| !word.is_empty())
        .collect();
    let [_, first, second, third, fourth, ..] = words[..] else {
        return None;
    };
    let is_old_form = first.parse::<u64>().is_err();
    let (day, month, year, clock) = if is_old_form {
        (second, first, fourth, third)
    } else {
        (first, second, third, fourth)
    };
    let day: u64 = day.parse().ok()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year: u64 = match year.parse().ok()? {
        // Two digits: nobody asks us to wait until the last century.
        short @ 0..100 => 2000 + short,
        year => year,
    };
    let mut clock = clock.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_before(year, month) + day - 1;
    Some(Duration::from_secs(
        days * 86_400 + hour * 3600 + minute * 60 + second,
    ))
}

/// Counts the days from 1970-01-01 to the first of a month; `month` counts from 0.
fn days_before(year: u64, month: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let leap_day = u64::from(is_leap && month >= 2);
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + BEFORE[month as usize] + leap_day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_dates_agree_with_the_calendar() {
        let check = |text, secs| assert_eq!(http_date(text), Some(Duration::from_secs(secs)));
        check("Thu, 01 Jan 1970 00:00:00 GMT", 0);
        check("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400);
        check("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800);
        check("Sun, 15 Nov 2026 21:24:05 GMT", 1_794_777_845);
        check("Sunday, 15-Nov-26 21:24:05 GMT", 1_794_777_845);
        check("Sun Nov 15 21:24:05 2026", 1_794_777_845);
        check("Sun Nov  1 00:00:00 2026", 1_793_491_200);
        for nonsense in [
            "",
            "Sun, 99 Nov 2026 00:00:00 GMT",
            "Sun, 15 Foo 2026 00:00:00 GMT",
            "1",
        ] {
            assert_eq!(http_date(nonsense), None);
        }
    }

    #[test]
    fn a_wait_is_read_in_every_form() {
        let now = http_date("Sun, 15 Nov 2026 21:24:05 GMT");
        let check = |retry_after, date, secs: f64| {
            let refusal = Refusal {
                retry_after,
                date,
                now,
                ..Refusal::default()
            };
            let expected = Some(Duration::from_secs_f64(secs));
            assert_eq!(super::retry_after(refusal), expected, "{retry_after:?}");
        };
        check(Some("7"), None, 7.0);
        check(Some(" 1.5s "), None, 1.5);
        check(Some("Sun, 15 Nov 2026 21:24:35 GMT"), None, 30.0);
        let theirs = Some("Sun, 15 Nov 2026 21:24:34 GMT");
        check(Some("Sun, 15 Nov 2026 21:24:35 GMT"), theirs, 1.0);
        check(Some("Sunday, 15-Nov-26 21:24:35 GMT"), None, 30.0);
        check(Some("Sun Nov 15 21:24:35 2026"), None, 30.0);
        check(Some("Sun, 15 Nov 2026 20:00:00 GMT"), None, 0.0);
    }

    #[test]
    fn a_wait_is_read_from_a_sentence() {
        let check = |words: &str, secs: Option<f64>| {
            assert_eq!(
                in_sentence(words),
                secs.map(Duration::from_secs_f64),
                "{words}"
            );
        };
        check("Please try again in 20s. Visit …", Some(20.0));
        check("please try again in 1m2.5s", Some(62.5));
        check("Try again in 250ms.", Some(0.25));
        check("try again in a while", None);
        check("no", None);
    }
}
