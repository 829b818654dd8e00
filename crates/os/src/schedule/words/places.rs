//! Where a time counts: zones by their names, their usual abbreviations, their offset, and cities that are no zone's name.

use std::sync::OnceLock;

use jiff::tz::{Offset, TimeZone};

/// What people write for a zone that the database calls otherwise. Abbreviations mean the clocks of the place, which may be
/// an hour ahead in summer: the reading names the zone.
const KNOWN_AS: &[(&str, &str)] = &[
    ("acst", "Australia/Adelaide"),
    ("aedt", "Australia/Sydney"),
    ("aest", "Australia/Sydney"),
    ("akst", "America/Anchorage"),
    ("awst", "Australia/Perth"),
    ("brt", "America/Sao_Paulo"),
    ("bst", "Europe/London"),
    ("cdt", "America/Chicago"),
    ("cest", "Europe/Berlin"),
    ("cet", "Europe/Berlin"),
    ("cst", "America/Chicago"),
    ("edt", "America/New_York"),
    ("eest", "Europe/Athens"),
    ("eet", "Europe/Athens"),
    ("est", "America/New_York"),
    ("hkt", "Asia/Hong_Kong"),
    ("hst", "Pacific/Honolulu"),
    ("ist", "Asia/Kolkata"),
    ("jst", "Asia/Tokyo"),
    ("kst", "Asia/Seoul"),
    ("mdt", "America/Denver"),
    ("msk", "Europe/Moscow"),
    ("mst", "America/Denver"),
    ("nzdt", "Pacific/Auckland"),
    ("nzst", "Pacific/Auckland"),
    ("pdt", "America/Los_Angeles"),
    ("pst", "America/Los_Angeles"),
    ("sgt", "Asia/Singapore"),
];

const CITIES: &[(&str, &str)] = &[
    ("abu_dhabi", "Asia/Dubai"),
    ("ankara", "Europe/Istanbul"),
    ("atlanta", "America/New_York"),
    ("austin", "America/Chicago"),
    ("bangalore", "Asia/Kolkata"),
    ("barcelona", "Europe/Madrid"),
    ("beijing", "Asia/Shanghai"),
    ("bengaluru", "Asia/Kolkata"),
    ("bern", "Europe/Zurich"),
    ("boston", "America/New_York"),
    ("brasilia", "America/Sao_Paulo"),
    ("calgary", "America/Edmonton"),
    ("canberra", "Australia/Sydney"),
    ("cape_town", "Africa/Johannesburg"),
    ("chennai", "Asia/Kolkata"),
    ("cologne", "Europe/Berlin"),
    ("dallas", "America/Chicago"),
    ("delhi", "Asia/Kolkata"),
    ("edinburgh", "Europe/London"),
    ("frankfurt", "Europe/Berlin"),
    ("geneva", "Europe/Zurich"),
    ("hamburg", "Europe/Berlin"),
    ("hanoi", "Asia/Ho_Chi_Minh"),
    ("houston", "America/Chicago"),
    ("hyderabad", "Asia/Kolkata"),
    ("islamabad", "Asia/Karachi"),
    ("kyiv", "Europe/Kyiv"),
    ("kyoto", "Asia/Tokyo"),
    ("las_vegas", "America/Los_Angeles"),
    ("manchester", "Europe/London"),
    ("miami", "America/New_York"),
    ("milan", "Europe/Rome"),
    ("montreal", "America/Toronto"),
    ("mumbai", "Asia/Kolkata"),
    ("munich", "Europe/Berlin"),
    ("nanjing", "Asia/Shanghai"),
    ("new_delhi", "Asia/Kolkata"),
    ("osaka", "Asia/Tokyo"),
    ("ottawa", "America/Toronto"),
    ("philadelphia", "America/New_York"),
    ("porto", "Europe/Lisbon"),
    ("rio_de_janeiro", "America/Sao_Paulo"),
    ("salt_lake_city", "America/Denver"),
    ("san_diego", "America/Los_Angeles"),
    ("san_francisco", "America/Los_Angeles"),
    ("san_jose", "America/Los_Angeles"),
    ("seattle", "America/Los_Angeles"),
    ("shenzhen", "Asia/Shanghai"),
    ("st_petersburg", "Europe/Moscow"),
    ("tel_aviv", "Asia/Jerusalem"),
    ("washington", "America/New_York"),
    ("wellington", "Pacific/Auckland"),
];

/// The names of a zone are at most so many words: `rio de janeiro`.
pub(super) const WORDS_MAX: usize = 3;

/// A zone by any name, `_` for blanks.
pub(super) fn named(name: &str) -> Option<TimeZone> {
    let among = |table: &[(&str, &str)]| {
        let found = table.iter().find(|(known, _)| *known == name)?;
        TimeZone::get(found.1).ok()
    };
    by_itself(name)
        .or_else(|| among(CITIES))
        .or_else(|| of_city(name))
}

/// A zone that no other word can be taken for: it needs no `in` before it.
pub(super) fn by_itself(name: &str) -> Option<TimeZone> {
    if let Some((_, zone)) = KNOWN_AS.iter().find(|(known, _)| *known == name) {
        return TimeZone::get(zone).ok();
    }
    if matches!(name, "utc" | "gmt") {
        return Some(TimeZone::UTC);
    }
    let offset = name.strip_prefix("utc").or(name.strip_prefix("gmt"));
    if let Some(offset) = offset.and_then(offset_of) {
        return Some(TimeZone::fixed(offset));
    }
    let is_found = |zone: &&String| zone.contains('/') && zone.eq_ignore_ascii_case(name);
    let found = known().find(is_found)?;
    TimeZone::get(found).ok()
}

/// `+2`, `-05:30`
fn offset_of(text: &str) -> Option<Offset> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let is_one = (0..=14).contains(&hours) && (0..60).contains(&minutes);
    let seconds = sign * (hours * 3_600 + minutes * 60);
    is_one.then(|| Offset::from_seconds(seconds).ok()).flatten()
}

/// The last part of a name: `tokyo` is `Asia/Tokyo`.
fn of_city(name: &str) -> Option<TimeZone> {
    // Short names would find abbreviations and countries that nobody meant.
    if name.len() < 3 {
        return None;
    }
    let is_city = |zone: &&String| {
        let city = zone.rsplit('/').next().unwrap_or(zone);
        zone.contains('/') && !zone.starts_with("Etc/") && city.eq_ignore_ascii_case(name)
    };
    let found = known().find(is_city)?;
    TimeZone::get(found).ok()
}

/// The names of the database, which are many and never change while we run.
fn known() -> impl Iterator<Item = &'static String> {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let names = jiff::tz::db().available();
        names.map(|zone| zone.to_string()).collect()
    });
    names.iter()
}
