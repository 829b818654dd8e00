//! How schedules are told back, in the same words wherever they came from.

use jiff::Zoned;
use jiff::civil::Time;

/// `Monday`, `Monday and Thursday`
pub(super) fn joined(names: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = names.collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

/// `2nd`; 0 is the last.
pub(super) fn ranked(which: u8) -> String {
    match which {
        0 => "last".to_owned(),
        11..=13 => format!("{which}th"),
        _ => match which % 10 {
            1 => format!("{which}st"),
            2 => format!("{which}nd"),
            3 => format!("{which}rd"),
            _ => format!("{which}th"),
        },
    }
}

/// `09:00 and 18:30`
pub(super) fn times(times: &[Time]) -> String {
    joined(times.iter().map(|time| clock(*time)))
}

/// `09:00`, `09:00:30`
pub(super) fn clock(time: Time) -> String {
    let format = if time.second() == 0 {
        "%H:%M"
    } else {
        "%H:%M:%S"
    };
    time.strftime(format).to_string()
}

/// ` (Europe/Berlin)`
pub(super) fn place(now: &Zoned) -> String {
    format!(" ({})", zone(now))
}

/// `Asia/Tokyo`, `UTC+02:00`
pub(super) fn zone(at: &Zoned) -> String {
    match at.time_zone().iana_name() {
        Some(name) => name.to_owned(),
        None => format!("UTC{}", at.strftime("%:z")),
    }
}

/// `Fri 2026-11-20 08:00 (Asia/Tokyo)`
pub(super) fn moment(at: &Zoned, has_seconds: bool) -> String {
    let format = if has_seconds {
        "%a %Y-%m-%d %H:%M:%S"
    } else {
        "%a %Y-%m-%d %H:%M"
    };
    format!("{} ({})", at.strftime(format), zone(at))
}
