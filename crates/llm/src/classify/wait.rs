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
        (None, Some(text)) => match text.trim().parse::<f64>() {
            Ok(secs) => seconds(secs),
            Err(_) => Some(http_date(text)?.saturating_sub(http_date(refusal.date?)?)),
        },
        // Gemini says it only in the body.
        (None, None) => gemini_retry_delay(refusal.body),
    };
    wait.map(|wait| wait.min(RETRY_AFTER_MAX))
}

fn seconds(secs: f64) -> Option<Duration> {
    let secs_max = RETRY_AFTER_MAX.as_secs_f64();
    (secs >= 0.0).then(|| Duration::from_secs_f64(secs.min(secs_max)))
}

/// Says a long wait in its two largest units, rounded down: `27 h 46 min`, `3 d 3 h`.
pub(super) fn in_words(wait: Duration) -> String {
    let minutes = wait.as_secs() / 60;
    let (large, small) = match minutes {
        0..60 => return format!("{minutes} min"),
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

/// Reads `Sun, 15 Nov 2026 21:24:05 GMT` as the time since 1970.
fn http_date(text: &str) -> Option<Duration> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut words = text.split_whitespace().skip(1);
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words
        .next()?
        .split(':')
        .map(|part| part.parse::<u64>().ok());
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
        for nonsense in [
            "",
            "Sun, 99 Nov 2026 00:00:00 GMT",
            "Sun, 15 Foo 2026 00:00:00 GMT",
            "1",
        ] {
            assert_eq!(http_date(nonsense), None);
        }
    }
}
