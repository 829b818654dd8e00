//! `Retry-After`: a number of seconds, or a date.

use std::time::{Duration, SystemTime};

/// Reads how long a server wants us to wait. A date is measured against the server's own `Date`, and without one against
/// `now`, the time since 1970. Some write fractions of seconds, or an `s` behind them. How much of a wait is too much is for
/// callers to say.
pub fn retry_after(text: &str, date: Option<&str>, now: Option<Duration>) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        let is_wait = seconds >= 0.0;
        return is_wait.then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let until = http_date(text)?;
    let now = date.and_then(http_date).or(now)?;
    Some(until.saturating_sub(now))
}

/// Reads a date in any of the three forms of HTTP as the time since 1970.
pub fn http_date(text: &str) -> Option<Duration> {
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    date.duration_since(SystemTime::UNIX_EPOCH).ok()
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
            "1",
            "Sun, 99 Nov 2026 00:00:00 GMT",
            "Sun, 15 Foo 2026 00:00:00 GMT",
            "Tue, 31 Nov 2026 00:00:00 GMT",
        ] {
            assert_eq!(http_date(nonsense), None, "{nonsense}");
        }
    }

    fn check(text: &str, date: &str, now: &str, expected: Option<f64>) {
        let date = Some(date).filter(|date| !date.is_empty());
        let wait = retry_after(text, date, http_date(now));
        assert_eq!(wait, expected.map(Duration::from_secs_f64), "{text}");
    }

    #[test]
    fn seconds_and_dates_are_understood() {
        check("7", "", "", Some(7.0));
        check(" 1.5s ", "", "", Some(1.5));
        let now = "Sun, 06 Nov 1994 08:49:37 GMT";
        check("Sun, 06 Nov 1994 08:49:50 GMT", now, "", Some(13.0));
        check("Sun, 06 Nov 1994 08:49:50 GMT", "", now, Some(13.0));
        check("Sun, 06 Nov 1994 08:00:00 GMT", now, "", Some(0.0));
        let theirs = "Sun, 06 Nov 1994 08:49:49 GMT";
        check("Sun, 06 Nov 1994 08:49:50 GMT", theirs, now, Some(1.0));
    }

    /// Months have as many days as they have.
    #[test]
    fn a_wait_over_the_end_of_a_month_is_as_long_as_it_is() {
        for (date, until) in [
            (
                "Sat, 28 Feb 2026 23:59:50 GMT",
                "Sun, 01 Mar 2026 00:00:10 GMT",
            ),
            (
                "Tue, 29 Feb 2028 23:59:50 GMT",
                "Wed, 01 Mar 2028 00:00:10 GMT",
            ),
            (
                "Thu, 30 Apr 2026 23:59:50 GMT",
                "Fri, 01 May 2026 00:00:10 GMT",
            ),
            (
                "Thu, 31 Dec 2026 23:59:50 GMT",
                "Fri, 01 Jan 2027 00:00:10 GMT",
            ),
        ] {
            check(until, date, "", Some(20.0));
        }
    }

    #[test]
    fn nonsense_is_ignored() {
        let now = "Sun, 06 Nov 1994 08:49:37 GMT";
        check("soon", now, "", None);
        check("Sun, 06 Nov 1994 08:49:50 GMT", "", "", None);
        check("-3", "", "", None);
        check("NaN", "", "", None);
    }
}
