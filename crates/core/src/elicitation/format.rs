//! The few shapes of text that a form may ask for.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextFormat {
    Email,
    Uri,
    /// `2026-11-15`
    Date,
    /// `2026-11-15T09:30:00Z`
    DateTime,
}

impl TextFormat {
    /// Checks that a text has this shape; it does not find out whether the address exists.
    pub(super) fn check(self, text: &str) -> Result<(), String> {
        let (is_right, expected) = match self {
            Self::Email => (is_email(text), "an email address"),
            Self::Uri => (
                is_uri(text),
                "a complete address, such as https://example.org",
            ),
            Self::Date => (is_date(text), "a date, such as 2026-11-15"),
            Self::DateTime => (is_date_time(text), "a time, such as 2026-11-15T09:30:00Z"),
        };
        if is_right {
            Ok(())
        } else {
            Err(format!("it must be {expected}"))
        }
    }

    pub fn example(self) -> &'static str {
        match self {
            Self::Email => "name@example.org",
            Self::Uri => "https://example.org",
            Self::Date => "2026-11-15",
            Self::DateTime => "2026-11-15T09:30:00Z",
        }
    }
}

fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else {
        return false;
    };
    let is_plain = |part: &str| !part.is_empty() && !part.contains(|c: char| c.is_whitespace());
    is_plain(name) && !name.contains('@') && is_plain(host) && !host.starts_with('.')
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let in_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(in_scheme)
        && !rest.is_empty()
        && !rest.contains(|c: char| c.is_whitespace())
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    let has_shape =
        digits(year, 4).is_some() && digits(month, 2).is_some() && digits(day, 2).is_some();
    has_shape && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let Some(zone_at) = time.find(['Z', 'z', '+', '-']) else {
        return false;
    };
    let (time, zone) = time.split_at(zone_at);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_zone = match zone.split_at(1) {
        ("Z" | "z", "") => true,
        ("+" | "-", offset) => is_clock(offset, &[23, 59]),
        _ => false,
    };
    let is_fraction = !fraction.is_empty() && fraction.chars().all(|c| c.is_ascii_digit());
    // A minute may have a leap second.
    is_date(date) && is_clock(time, &[23, 59, 60]) && is_fraction && is_zone
}

/// Returns whether a text is numbers of two digits between colons, none above its limit.
fn is_clock(text: &str, limits: &[u32]) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    parts.len() == limits.len()
        && parts
            .iter()
            .zip(limits)
            .all(|(part, limit)| digits(part, 2).is_some_and(|number| number <= *limit))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let is_right = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    is_right.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: TextFormat, right: &[&str], wrong: &[&str]) {
        for text in right {
            assert_eq!(format.check(text), Ok(()), "{text}");
        }
        for text in wrong {
            assert!(format.check(text).is_err(), "{text}");
        }
        assert_eq!(format.check(format.example()), Ok(()));
    }

    #[test]
    fn each_format_knows_its_own() {
        check(
            TextFormat::Email,
            &["a@b", "first.last+tag@example.org"],
            &["a", "@b", "a@", "a b@c", "a@b@c", "a@.b"],
        );
        check(
            TextFormat::Uri,
            &["https://example.org/a?b", "mailto:a@b", "urn:isbn:1"],
            &["example.org", "://a", "1http://a", "http:", "http://a b"],
        );
        check(
            TextFormat::Date,
            &["2024-02-29", "2000-02-29", "2026-12-31"],
            &[
                "2026-02-29",
                "1900-02-29",
                "2026-13-01",
                "2026-00-10",
                "2026-1-1",
                "26-01-01",
                "é026-01-01",
            ],
        );
        check(
            TextFormat::DateTime,
            &["2026-11-15T09:30:00Z", "2026-11-15t09:30:00.25+02:00"],
            &[
                "2026-11-15",
                "2026-11-15T09:30:00",
                "2026-11-15T25:00:00Z",
                "2026-11-15T09:30Z",
                "2026-11-15T09:30:00.Z",
                "2026-11-15T09:30:00Zx",
            ],
        );
    }
}
