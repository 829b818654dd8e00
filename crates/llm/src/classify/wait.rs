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
        (None, Some(text)) => hermes_os::retry_after(text, refusal.date, refusal.now),
        // Gemini says it only in the body, others only in their words.
        (None, None) => gemini_retry_delay(refusal.body).or_else(|| in_sentence(refusal.body)),
    };
    wait.map(|wait| wait.min(RETRY_AFTER_MAX))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_in_every_form() {
        let now = hermes_os::http_date("Sun, 15 Nov 2026 21:24:05 GMT");
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
