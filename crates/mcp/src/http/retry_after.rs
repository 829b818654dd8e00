//! `Retry-After`: a number of seconds, or a date.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// Whoever asks for more gets this much: the next answer will say so again.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Reads how long the server wants us to wait. A date is measured against the server's own `Date`, not our clock.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let wanted = text(RETRY_AFTER)?.trim();
    let seconds = match wanted.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let (until, now) = (seconds_of(wanted)?, seconds_of(text(DATE)?)?);
            until.saturating_sub(now)
        }
    };
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT` as seconds on a scale of its own: good for differences only.
fn seconds_of(date: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, date) = date.split_once(", ")?;
    let mut words = date.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = MONTHS.find(words.next()?)? as u64 / 3;
    let year: u64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(str::parse::<u64>);
    let mut next = || clock.next()?.ok();
    let (hour, minute, second) = (next()?, next()?, next()?);
    // Months of 31 days: a wait over the end of a month may come out too long, and is capped.
    let days = (year * 12 + month) * 31 + day;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(retry_after_value: &'static str, date: &'static str, expected: Option<u64>) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, retry_after_value.parse().unwrap());
        if !date.is_empty() {
            headers.insert(DATE, date.parse().unwrap());
        }
        assert_eq!(
            retry_after(&headers),
            expected.map(Duration::from_secs),
            "{retry_after_value}"
        );
    }

    #[test]
    fn seconds_and_dates_are_understood_and_capped() {
        check("7", "", Some(7));
        check("86400", "", Some(60));
        let now = "Sun, 06 Nov 1994 08:49:37 GMT";
        check("Sun, 06 Nov 1994 08:49:50 GMT", now, Some(13));
        check("Sun, 06 Nov 1994 08:00:00 GMT", now, Some(0));
        check("Sun, 06 Nov 1994 09:49:37 GMT", now, Some(60));
    }

    #[test]
    fn nonsense_is_ignored() {
        check("soon", "Sun, 06 Nov 1994 08:49:37 GMT", None);
        check("Sun, 06 Nov 1994 08:49:50 GMT", "", None);
        check("-3", "", None);
    }
}
