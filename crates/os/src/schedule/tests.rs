//! Schedules in words and as cron, around clock changes most of all.

use jiff::civil::date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use super::Schedule;
use super::cron::Cron;

/// Where midnight is skipped, an hour comes twice at odd times, half an hour is moved, or a day was left out.
const AWKWARD_ZONES: &[&str] = &[
    "Africa/Cairo",
    "Asia/Beirut",
    "America/Havana",
    "America/Santiago",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "UTC",
];

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

/// Wednesday, 18 November 2026, 10:30 in Berlin.
fn now() -> Timestamp {
    "2026-11-18T10:30:00+01:00".parse().unwrap()
}

fn times(text: &str, zone_name: &str, from: &str, count: usize) -> Vec<String> {
    let from: Timestamp = from.parse().unwrap();
    let schedule = Schedule::read(text, from, &zone(zone_name)).unwrap();
    let upcoming = schedule.upcoming(from, count);
    let shown = upcoming
        .iter()
        .map(|at| at.strftime("%m-%d %H:%M%:z").to_string());
    shown.collect()
}

const IN_BERLIN: &str = "\
every weekday at 9 | every Monday to Friday at 09:00 | Thu 2026-11-19 09:00
weekdays at 9am | every Monday to Friday at 09:00 | Thu 2026-11-19 09:00
weekdays at 9am and 5pm | every Monday to Friday at 09:00 and 17:00 | Wed 2026-11-18 17:00
Monday to Friday at 18:30 | every Monday to Friday at 18:30 | Wed 2026-11-18 18:30
mon-fri 8:30 | every Monday to Friday at 08:30 | Thu 2026-11-19 08:30
from monday to friday at 9 | every Monday to Friday at 09:00 | Thu 2026-11-19 09:00
weekends | every Saturday and Sunday at 09:00 | Sat 2026-11-21 09:00
every weekend at 10 | every Saturday and Sunday at 10:00 | Sat 2026-11-21 10:00
every day except sunday | every Monday, Tuesday, Wednesday, Thursday, Friday and Saturday at 09:00 | Thu 2026-11-19 09:00
every day at 7 but not on weekends | every Monday to Friday at 07:00 | Thu 2026-11-19 07:00
every weekday except friday at 9 | every Monday, Tuesday, Wednesday and Thursday at 09:00 | Thu 2026-11-19 09:00
first Monday of the month at noon | the 1st Monday of the month at 12:00 | Mon 2026-12-07 12:00
first and third monday | the 1st Monday and the 3rd Monday of the month at 09:00 | Mon 2026-12-07 09:00
every second monday of the month | the 2nd Monday of the month at 09:00 | Mon 2026-12-14 09:00
first monday of january at 9 | the 1st Monday in January at 09:00 | Mon 2027-01-04 09:00
last Friday of every month at 17:00 | the last Friday of the month at 17:00 | Fri 2026-11-27 17:00
last weekday of the month | on the last weekday of every month at 09:00 | Mon 2026-11-30 09:00
every second monday at 9 | every 2 weeks on Monday at 09:00 | Mon 2026-11-23 09:00
every other monday | every 2 weeks on Monday at 09:00 | Mon 2026-11-23 09:00
biweekly on friday | every 2 weeks on Friday at 09:00 | Fri 2026-11-20 09:00
every other week on Friday at 16:00 | every 2 weeks on Friday at 16:00 | Fri 2026-11-20 16:00
every third day at 9 | every 3 days at 09:00 | Sat 2026-11-21 09:00
every other day at 9 | every 2 days at 09:00 | Fri 2026-11-20 09:00
every 3 days at 8 | every 3 days at 08:00 | Sat 2026-11-21 08:00
every day in december at 9 | every day in December at 09:00 | Tue 2026-12-01 09:00
every monday in june and july at 9 | every Monday in June and July at 09:00 | Mon 2027-06-07 09:00
every 2 hours between 9 and 17 | every 2 hours from 09:00 to 17:00, every day | Wed 2026-11-18 11:00
every 2 hours between 22 and 6 | every 2 hours from 22:00 to 06:00, every day | Wed 2026-11-18 22:00
every 30 minutes from 9 to 17 on weekdays | every 30 minutes from 09:00 to 17:00, every Monday to Friday | Wed 2026-11-18 11:00
hourly between 9am-5pm | every hour from 09:00 to 17:00, every day | Wed 2026-11-18 11:00
every 4 hours starting at 6am | every 4 hours, one of them at 06:00 | Wed 2026-11-18 14:00
every hour at :30 | every hour at :30, every day | Wed 2026-11-18 11:30
every hour on weekdays | every hour from 00:00 to 23:00, every Monday to Friday | Wed 2026-11-18 11:00
daily at 7:15 and 19:15 | every day at 07:15 and 19:15 | Wed 2026-11-18 19:15
every day | every day at 09:00 | Thu 2026-11-19 09:00
every day at nine | every day at 09:00 | Thu 2026-11-19 09:00
every day at 9.30 | every day at 09:30 | Thu 2026-11-19 09:30
every day at 9 in the morning | every day at 09:00 | Thu 2026-11-19 09:00
every day at 9 a.m. and 5 p.m. | every day at 09:00 and 17:00 | Wed 2026-11-18 17:00
every evening at 7 | every day at 19:00 | Wed 2026-11-18 19:00
every morning | every day at 09:00 | Thu 2026-11-19 09:00
every monday evening | every Monday at 20:00 | Mon 2026-11-23 20:00
every day at midnight | every day at 00:00 | Thu 2026-11-19 00:00
twice a day | every day at 09:00 and 21:00 | Wed 2026-11-18 21:00
twice a day at 8 and 20 | every day at 08:00 and 20:00 | Wed 2026-11-18 20:00
3 times a day | every day at 08:00, 14:00 and 20:00 | Wed 2026-11-18 14:00
once a week | every Monday at 09:00 | Mon 2026-11-23 09:00
once a week on friday at 9 | every Friday at 09:00 | Fri 2026-11-20 09:00
mondays and thursdays at 8 pm | every Monday and Thursday at 20:00 | Thu 2026-11-19 20:00
on the 1st and 15th of every month at 6 | on the 1st and the 15th of every month at 06:00 | Tue 2026-12-01 06:00
on the 15th of every month at 10:30 | on the 15th of every month at 10:30 | Tue 2026-12-15 10:30
every 15th at 9 | on the 15th of every month at 09:00 | Tue 2026-12-15 09:00
last day of the month at 23:30 | on the last day of every month at 23:30 | Mon 2026-11-30 23:30
last day of february at 9 every year | on the last day in February at 09:00 | Sun 2027-02-28 09:00
every year on 24 December at 18:00 | every year on 24 December at 18:00 | Thu 2026-12-24 18:00
every year on 24 December and 1 May | every year on 1 May and 24 December at 09:00 | Thu 2026-12-24 09:00
every 1st and 15th of June at 9 | every year on 1 June and 15 June at 09:00 | Tue 2027-06-01 09:00
every year on 29 february at 9 | every year on 29 February at 09:00 | Tue 2028-02-29 09:00
every week | every Monday at 09:00 | Mon 2026-11-23 09:00
monthly | on the 1st of every month at 09:00 | Tue 2026-12-01 09:00
every quarter | on the 1st in January, April, July and October at 09:00 | Fri 2027-01-01 09:00
every 3 months | on the 1st in March, June, September and December at 09:00 | Tue 2026-12-01 09:00
every 6 months on the 15th at 8 | on the 15th in June and December at 08:00 | Tue 2026-12-15 08:00
tonight | once, on Wed 2026-11-18 20:00 | Wed 2026-11-18 20:00
tonight at 8 | once, on Wed 2026-11-18 20:00 | Wed 2026-11-18 20:00
this evening at 7 | once, on Wed 2026-11-18 19:00 | Wed 2026-11-18 19:00
noon tomorrow | once, on Thu 2026-11-19 12:00 | Thu 2026-11-19 12:00
midnight | once, on Thu 2026-11-19 00:00 | Thu 2026-11-19 00:00
tomorrow morning | once, on Thu 2026-11-19 09:00 | Thu 2026-11-19 09:00
day after tomorrow | once, on Fri 2026-11-20 09:00 | Fri 2026-11-20 09:00
the day after tomorrow at 5pm | once, on Fri 2026-11-20 17:00 | Fri 2026-11-20 17:00
next week | once, on Mon 2026-11-23 09:00 | Mon 2026-11-23 09:00
friday next week at 10 | once, on Fri 2026-11-27 10:00 | Fri 2026-11-27 10:00
next friday at 5pm | once, on Fri 2026-11-20 17:00 | Fri 2026-11-20 17:00
next Wednesday at 12:00 | once, on Wed 2026-11-25 12:00 | Wed 2026-11-25 12:00
friday at 9 | once, on Fri 2026-11-20 09:00 | Fri 2026-11-20 09:00
once on friday at 9 | once, on Fri 2026-11-20 09:00 | Fri 2026-11-20 09:00
at 9 | once, on Thu 2026-11-19 09:00 | Thu 2026-11-19 09:00
at 9 in the evening | once, on Wed 2026-11-18 21:00 | Wed 2026-11-18 21:00
30m | once, on Wed 2026-11-18 11:00 | Wed 2026-11-18 11:00
in 2 hours | once, on Wed 2026-11-18 12:30 | Wed 2026-11-18 12:30
in half an hour | once, on Wed 2026-11-18 11:00 | Wed 2026-11-18 11:00
in 1.5 hours | once, on Wed 2026-11-18 12:00 | Wed 2026-11-18 12:00
90 seconds | once, on Wed 2026-11-18 10:31:30 | Wed 2026-11-18 10:31:30
in 3 days at 9 | once, on Sat 2026-11-21 09:00 | Sat 2026-11-21 09:00
in 2 months at 9 | once, on Mon 2027-01-18 09:00 | Mon 2027-01-18 09:00
24 December at 8 | once, on Thu 2026-12-24 08:00 | Thu 2026-12-24 08:00
29 february | once, on Tue 2028-02-29 09:00 | Tue 2028-02-29 09:00
March 3rd 2027 at 8pm | once, on Wed 2027-03-03 20:00 | Wed 2027-03-03 20:00
2026-12-24T18:00 | once, on Thu 2026-12-24 18:00 | Thu 2026-12-24 18:00
2026-12-24T18:00:30 | once, on Thu 2026-12-24 18:00:30 | Thu 2026-12-24 18:00:30
2026-12-24 18:00 | once, on Thu 2026-12-24 18:00 | Thu 2026-12-24 18:00
2026-12-24T18:00:00Z | once, on Thu 2026-12-24 19:00 | Thu 2026-12-24 19:00
2026-12-24T18:00+09:00[Asia/Tokyo] | once, on Thu 2026-12-24 10:00 | Thu 2026-12-24 10:00
every day at 09:00 and 5 pm | every day at 09:00 and 17:00 | Wed 2026-11-18 17:00
every evening at 7 and 9 | every day at 19:00 and 21:00 | Wed 2026-11-18 19:00
every night at 1 | every day at 01:00 | Thu 2026-11-19 01:00
every friday night at 11 | every Friday at 23:00 | Fri 2026-11-20 23:00
every day at 8, 10 and 12 | every day at 08:00, 10:00 and 12:00 | Wed 2026-11-18 12:00
";

const BEATS: &str = "\
every 2h | every 2 hours | Wed 2026-11-18 12:30
every hour | every hour | Wed 2026-11-18 11:30
every half hour | every 30 minutes | Wed 2026-11-18 11:00
every quarter of an hour | every 15 minutes | Wed 2026-11-18 10:45
every 1h30m | every 1 hour 30 minutes | Wed 2026-11-18 12:00
every 1.5 hours | every 1 hour 30 minutes | Wed 2026-11-18 12:00
every second hour | every 2 hours | Wed 2026-11-18 12:30
every 90 seconds | every 1 minute 30 seconds | Wed 2026-11-18 10:31:30
every 5 hours starting at 6am | every 5 hours from Thu 2026-11-19 06:00 (Europe/Berlin) on | Thu 2026-11-19 06:00
";

const EXPRESSIONS: &str = "\
0 9 * * MON-FRI | every Monday to Friday at 09:00 | Thu 2026-11-19 09:00
@daily | every day at 00:00 | Thu 2026-11-19 00:00
30 0 9 * * * | every day at 09:00:30 | Thu 2026-11-19 09:00:30
*/15 * * * * | every 15 minutes | Wed 2026-11-18 10:45
*/5 9-17 * * 1-5 | every 5 minutes in the hours 9 to 17, every Monday to Friday | Wed 2026-11-18 10:35
30 * * * * | every hour at :30 | Wed 2026-11-18 11:30
0 8 1,15 JAN,JUL * | on the 1st and the 15th of the month in January and July at 08:00 | Fri 2027-01-01 08:00
0 0 13 * FRI | on the 13th of the month and also every Friday at 00:00 | Fri 2026-11-20 00:00
0 12 * * MON#1 | the 1st Monday of the month at 12:00 | Mon 2026-12-07 12:00
0 18 LW * * | on the last weekday of the month at 18:00 | Mon 2026-11-30 18:00
*/20 * * * * * | every 20 seconds of every minute | Wed 2026-11-18 10:30:20
";

const ELSEWHERE: &str = "\
tomorrow at 8 in Tokyo | once, on Thu 2026-11-19 08:00 (Asia/Tokyo) | Thu 2026-11-19 08:00 +09:00
every day at 9 in New York | every day at 09:00 (America/New_York) | Wed 2026-11-18 09:00 -05:00
every day at 9 in San Francisco | every day at 09:00 (America/Los_Angeles) | Wed 2026-11-18 09:00 -08:00
every day at 9 Beijing time | every day at 09:00 (Asia/Shanghai) | Thu 2026-11-19 09:00 +08:00
every day at 9 EST | every day at 09:00 (America/New_York) | Wed 2026-11-18 09:00 -05:00
every day at 9 PST | every day at 09:00 (America/Los_Angeles) | Wed 2026-11-18 09:00 -08:00
every day at 9 CET | every day at 09:00 (Europe/Berlin) | Thu 2026-11-19 09:00 +01:00
every day at 9 UTC+2 | every day at 09:00 (UTC+02:00) | Thu 2026-11-19 09:00 +02:00
every day at 9 in UTC-5:30 | every day at 09:00 (UTC-05:30) | Wed 2026-11-18 09:00 -05:30
every day at 9 UTC | every day at 09:00 (UTC) | Thu 2026-11-19 09:00 +00:00
every day at 9 Asia/Tokyo | every day at 09:00 (Asia/Tokyo) | Thu 2026-11-19 09:00 +09:00
0 9 * * 1-5 in Tokyo | every Monday to Friday at 09:00 (Asia/Tokyo), by cron `0 9 * * 1-5` | Thu 2026-11-19 09:00 +09:00
0 9 * * * UTC | every day at 09:00 (UTC), by cron `0 9 * * *` | Thu 2026-11-19 09:00 +00:00
2026-12-24T18:00[Asia/Tokyo] | once, on Thu 2026-12-24 18:00 (Asia/Tokyo) | Thu 2026-12-24 18:00 +09:00
@daily Europe/London | every day at 00:00 (Europe/London), by cron `@daily` | Thu 2026-11-19 00:00 +00:00
";

const REFUSED: &str = "\
whenever you like | `whenever` is not understood
 | a schedule is missing
every | every what?
each | every what?
every blue moon | `blue` is not understood
every yearly | `yearly` is not understood
yearly | on which day of the year?
annually at 9 | on which day of the year?
every year | on which day of the year?
every year in december | on which day of the year?
every monday at 9 and tuesday at 10 | a job for each
at 9 on monday and at 10 on tuesday | a job for each
every day at 9 and every monday at 10 | it says twice how often
24 December at 9 and 1 May at 10 | a job for each
* * * * * * | at least 10 seconds
0,55 * * * * * | at least 10 seconds
tomorrow at 8 in Atlantis | no time zone is called `atlantis`
every day at 9 Atlantis | `atlantis` is not understood
every day at 9 Berlin | `berlin` is not understood
every weekday at 25 | `25` is not understood
weekday at 9 | `every weekday`
on the 15th at 9 | once or again
every Monday of the month at 9 | which one of the month?
every month on monday | which one of the month?
every 2 hours at 9 | a time of day goes with days
in 2 hours at 9 | a time of day goes with days
tomorrow every day | either once or again and again
once every day tomorrow | either once or again and again
every 5 months | 2, 3, 4, 6 or 12
every 2 years on 1 May | years come one by one
30 February at 9 | there is no 30 February
29 february 2027 | there is no 29 February in 2027
31 april | there is no 31 April
2020-01-01T00:00 | is over
every 1s | at least 10 seconds
every second | at least 10 seconds
every day at 14 in the morning | 14:00 is not in the morning
every day at 9pm in the morning | 21:00 is not in the morning
tonight at 2 | 2:00 is not tonight
every day at 9 and 5 in the evening | `am` or `pm`
every 2 hours between 9 and 5 | in the morning or the afternoon?
every 2 hours between 22 and 6 on weekdays | hours over midnight
every day between 9 and 17 | hours go with hours
every day at 9 starting monday | a first day cannot be named
every day at 9 from tomorrow | hours are written as
every day at 9 until friday | `until` is not understood
every day on the 15th | do not go with how often
daily on monday | do not go with how often
every day on | missing behind `on`
every day at | missing behind `at`
twice a week | on which days?
5 times a day | at which times?
twice a day at 9 | 2 times a day, but 1
every other weekday | goes with a unit
first monday and friday of the month | do not go together
every monday except monday | left out
every monday except friday | left out
first weekday of the month | only the last
0 25 * * * | `25` is no hour
0 9 * * * in Atlantis | is not understood
* * * | is not understood
0 0 31 2 * | never comes
monday and 15th at 9 | do not go together
monday and friday at 9 | once or again
next month | `next` goes with a weekday
jeden Tag um 9 | `jeden` is not understood
morgen um 8 | `morgen` is not understood
montags um 9 | `montags` is not understood
tous les jours à 9h | `tous` is not understood
cada lunes a las 9 | `cada` is not understood
every day um 9 | `um` is not understood
every monday at 8 10 | `10` is not understood
every day at 9 three | `three` is not understood
every day at 7 and 9 pm | `7am` or `7pm`
every day at 9 pm and 7:30 | `7:30am` or `7:30pm`
every friday night at 1 | `every saturday at 1am`
tomorrow at 1 at night | on the day that is named or on the next
every friday night at midnight | on the day that is named or on the next
2026-12-24T18:00[Asia/Atlantis] | no time zone is called `asia/atlantis`
2026-12-24T18:00+01:00[Asia/Tokyo] | do not go together
2026-12-24T18:00+09:00 in Berlin | stands alone
2026-12-24[Asia/Tokyo] | `2026-12-24[asia/tokyo]` is not understood
@reboot | `@hourly`
@every 5m | `@hourly`
every day at 0900 | written as `09:00`
every day at 930 | written as `09:30`
every day at 9h30 | written as `09:30`
every day at 18h | written as `18:00`
every day at 9 uhr | `uhr` is not understood
";

/// What was understood, and the first time; with the offset where `next` has one.
fn check(text: &str, words: &str, next: &str) -> Option<String> {
    let schedule = match Schedule::read(text, now(), &zone("Europe/Berlin")) {
        Ok(schedule) => schedule,
        Err(error) => return Some(format!("{text}: {error}")),
    };
    let upcoming = schedule.upcoming(now(), 1);
    let shown = upcoming.first().map(|at| {
        let clock = super::told::moment(at, schedule.has_seconds);
        let clock = clock.split(" (").next().unwrap_or_default();
        match next.split(' ').count() {
            4 => format!("{clock} {}", at.strftime("%:z")),
            _ => clock.to_owned(),
        }
    });
    let found = (schedule.words(), shown.as_deref().unwrap_or("never"));
    (found != (words, next)).then(|| format!("{text}: {found:?}, not {:?}", (words, next)))
}

/// The rows of a table: what is written, how it is read, and the first time.
fn rows(table: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    table.lines().map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let cell = |index: usize| cells.get(index).copied().unwrap_or_default();
        (cell(0), cell(1), cell(2))
    })
}

fn check_all(table: &str, words: impl Fn(&str, &str) -> String) {
    let wrong = rows(table).filter_map(|(text, told, next)| check(text, &words(text, told), next));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn plain_words_are_understood_and_told_back() {
    check_all(IN_BERLIN, |_, words| format!("{words} (Europe/Berlin)"));
    check_all(BEATS, |_, words| words.to_owned());
}

#[test]
fn a_cron_expression_is_told_in_words() {
    check_all(EXPRESSIONS, |text, words| {
        format!("{words} (Europe/Berlin), by cron `{text}`")
    });
}

#[test]
fn a_place_is_known_by_its_zone_its_city_its_offset_and_its_abbreviation() {
    check_all(ELSEWHERE, |_, words| words.to_owned());
}

#[test]
fn what_cannot_be_read_is_said_with_the_word_and_examples() {
    let wrong = rows(REFUSED).filter_map(|(text, expected, _)| {
        match Schedule::read(text, now(), &zone("Europe/Berlin")) {
            Ok(schedule) => Some(format!("`{text}` is read as `{}`", schedule.words())),
            Err(error) if error.to_string().contains(expected) => None,
            Err(error) => Some(format!("`{text}`, not {expected}: {error}")),
        }
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Words that join others.
const JOINING: &[&str] = &["a", "an", "and", "at", "in", "of", "on", "the"];

/// Words that may go or come without a change, because what they say is so anyhow.
const SO_ANYHOW: &[(&str, &str)] = &[
    ("Monday to Friday at 18:30", "from"),
    ("mon-fri 8:30", "from"),
    ("from monday to friday at 9", "from"),
    ("every day except sunday", "for"),
    ("every weekday except friday at 9", "for"),
    ("every second monday of the month", "every"),
    ("daily at 7:15 and 19:15", "twice"),
    ("every day at 9 a.m. and 5 p.m.", "a.m."),
    ("every day at 9 a.m. and 5 p.m.", "twice"),
    ("every day at 09:00 and 5 pm", "twice"),
    ("tomorrow morning", "morning"),
    ("next friday at 5pm", "next"),
    ("once on friday at 9", "once"),
    ("March 3rd 2027 at 8pm", "2027"),
    ("tomorrow at 8 in Tokyo", "tomorrow"),
    ("every day at 9 CET", "CET"),
];

/// Words that nothing says anyhow.
const INSERTED: &[&str] = &[
    "between", "but", "except", "for", "from", "half", "hour", "minutes", "never", "not", "only",
    "other", "second", "starting", "times", "to", "twice", "until", "without",
];

/// What is understood, with the next times: two that say the same are the same.
fn reading(text: &str) -> Option<(String, Vec<Timestamp>)> {
    let schedule = Schedule::read(text, now(), &zone("Europe/Berlin")).ok()?;
    let upcoming = schedule.upcoming(now(), 5);
    let times = upcoming.iter().map(jiff::Zoned::timestamp);
    Some((schedule.words().to_owned(), times.collect()))
}

#[test]
fn no_word_that_says_something_can_go_or_come_unheard() {
    let cases = [IN_BERLIN, BEATS, ELSEWHERE].concat();
    let mut unheard = Vec::new();
    let is_in_words = |text: &&str| !text.contains(['*', '@']);
    for text in rows(&cases).map(|(text, ..)| text).filter(is_in_words) {
        let words: Vec<&str> = text.split(' ').collect();
        let said = reading(text);
        assert!(said.is_some(), "{text}");
        let is_joining = |word: &str| JOINING.contains(&word);
        let is_known = |word: &str| SO_ANYHOW.contains(&(text, word));
        for (place, word) in words.iter().enumerate() {
            let mut fewer = words.clone();
            fewer.remove(place);
            if !is_joining(word) && !is_known(word) && reading(&fewer.join(" ")) == said {
                unheard.push(format!("{text} without {word}"));
            }
        }
        for place in 0..=words.len() {
            for word in INSERTED {
                let mut more = words.clone();
                more.insert(place, word);
                let more = more.join(" ");
                let is_there = text.split([' ', '-']).any(|known| known == *word);
                let is_free = is_joining(word) || is_there || is_known(word);
                if !is_free && reading(&more) == said {
                    unheard.push(more);
                }
            }
        }
    }
    assert!(unheard.is_empty(), "{unheard:#?}");
}

#[test]
fn no_jumble_of_words_ends_the_process_and_what_is_read_is_ahead() {
    let cases = [IN_BERLIN, BEATS, EXPRESSIONS, ELSEWHERE, REFUSED].concat();
    let odd =
        "999999 months weeks 9.5h 1h30m 24:00 -1 :60 99th 0 ½ é-é - 9-17 a-b-c utc+99 utc+ @ @x";
    let texts = rows(&cases).map(|(text, ..)| text).chain([odd]);
    let words: Vec<&str> = texts.flat_map(str::split_whitespace).collect();
    let mut random = 11;
    let mut pick = |count: usize| next_random(&mut random) as usize % count;
    for _ in 0..4_000 {
        let count = 1 + pick(6);
        let jumble: Vec<&str> = (0..count).map(|_| words[pick(words.len())]).collect();
        let jumble = jumble.join(" ");
        if let Ok(schedule) = Schedule::read(&jumble, now(), &zone("Africa/Cairo"))
            && let Some(next) = schedule.next(now())
        {
            assert!(next > now(), "{jumble}: {next}");
        }
    }
    let far = "in 999999 months";
    assert!(Schedule::read(far, now(), &zone("UTC")).is_err());
    let far = "in 999999 weeks 999999 weeks at 9";
    assert!(Schedule::read(far, now(), &zone("UTC")).is_err());
}

#[test]
fn a_skipped_time_runs_at_the_first_moment_after_it_and_a_repeated_one_once() {
    let spring = "2026-03-28T12:00:00Z";
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", spring, 3),
        [
            "03-29 03:00+02:00",
            "03-30 02:30+02:00",
            "03-31 02:30+02:00"
        ]
    );
    let autumn = "2026-10-24T12:00:00Z";
    assert_eq!(
        times("30 2 * * *", "Europe/Berlin", autumn, 2),
        ["10-25 02:30+02:00", "10-26 02:30+01:00"]
    );
    // Every hour that passes is one, also the second two o'clock.
    assert_eq!(
        times("30 * * * *", "Europe/Berlin", "2026-10-24T23:45:00Z", 3),
        [
            "10-25 02:30+02:00",
            "10-25 02:30+01:00",
            "10-25 03:30+01:00"
        ]
    );
    assert_eq!(
        times("30 * * * *", "Europe/Berlin", "2026-03-29T00:15:00Z", 2),
        ["03-29 01:30+01:00", "03-29 03:30+02:00"]
    );
    // What comes once is no exception.
    assert_eq!(
        times(
            "2027-03-28T02:30",
            "Europe/Berlin",
            "2027-03-01T00:00:00Z",
            1
        ),
        ["03-28 03:00+02:00"]
    );
    assert_eq!(
        times(
            "every 2 days at 2:30",
            "Europe/Berlin",
            "2026-03-27T12:00:00Z",
            2
        ),
        ["03-29 03:00+02:00", "03-31 02:30+02:00"]
    );
    // Midnight is skipped in Cairo: nine o'clock is not touched by it.
    assert_eq!(
        times("0 9 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", 2),
        ["04-24 09:00+03:00", "04-25 09:00+03:00"]
    );
    assert_eq!(
        times("0 0 * * *", "Africa/Cairo", "2026-04-23T12:00:00Z", 1),
        ["04-24 01:00+03:00"]
    );
    // The day that Samoa left out has no nine o'clock.
    assert_eq!(
        times("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z", 2),
        ["12-29 09:00-10:00", "12-31 09:00+14:00"]
    );
}

#[test]
fn names_lists_steps_and_the_last_ones_mean_what_they_say() {
    let next = |text: &str, count| times(text, "UTC", "2026-11-18T10:30:00Z", count);
    assert_eq!(
        next("0 0 L * *", 2),
        ["11-30 00:00+00:00", "12-31 00:00+00:00"]
    );
    assert_eq!(
        next("0 0 * * FRIL", 2),
        ["11-27 00:00+00:00", "12-25 00:00+00:00"]
    );
    assert_eq!(
        next("0 12 * JAN,JUL MON#1", 2),
        ["01-04 12:00+00:00", "07-05 12:00+00:00"]
    );
    assert_eq!(
        next("5/20 10 * * *", 2),
        ["11-18 10:45+00:00", "11-19 10:05+00:00"]
    );
    assert_eq!(
        next("0 0 13 * 5", 3),
        [
            "11-20 00:00+00:00",
            "11-27 00:00+00:00",
            "12-04 00:00+00:00"
        ]
    );
    assert_eq!(next("0 0 * * 7", 1), ["11-22 00:00+00:00"]);
    assert_eq!(next("0 0 29 2 *", 1), ["02-29 00:00+00:00"]);
}

#[test]
fn intervals_do_not_drift() {
    let zone = zone("UTC");
    let schedule = Schedule::read("every 7m", now(), &zone).unwrap();
    let late = now() + 100.minutes();
    assert_eq!(schedule.next(late), Some(now() + 105.minutes()));
}

/// Against the plain definition: every minute of a stretch is looked at.
#[test]
fn the_next_time_is_the_first_minute_that_fits_whatever_clocks_do() {
    let mut random = 7;
    let mut pick = |count: u64| next_random(&mut random) % count;
    for round in 0..400 {
        let zone_name = AWKWARD_ZONES[(round % AWKWARD_ZONES.len() as u64) as usize];
        let zone = zone(zone_name);
        let (minute, hour) = (pick(60), pick(24));
        let days = ["* * *", "* * 1-5", "1,15 * *", "* 3-11 *", "* * SUN#1"];
        let days = days[pick(5) as usize];
        let is_free = pick(3) == 0;
        let text = if is_free {
            format!("{minute} * {days}")
        } else {
            format!("{minute} {hour} {days}")
        };
        let cron = Cron::parse(&text).unwrap();
        let start = date(2026, 1, 1)
            .at(0, 0, 0, 0)
            .to_zoned(zone.clone())
            .unwrap();
        let after = start.timestamp() + (pick(365 * 24 * 60) as i64).minutes();
        let Some(next) = cron.next(after, &zone) else {
            panic!("{text} in {zone_name} after {after}");
        };
        assert!(next > after, "{text} in {zone_name} after {after}: {next}");
        let clock = next.to_zoned(zone.clone());
        let shows_it = clock.minute() as u64 == minute && (is_free || clock.hour() as u64 == hour);
        let jumped = zone
            .preceding(next + 1.second())
            .next()
            .is_some_and(|jump| jump.timestamp() == next);
        assert!(shows_it || jumped, "{text} in {zone_name}: {clock}");
        // Nothing that the clock shows in between was passed over.
        let mut moment = after + 1.minute();
        let span = (next.duration_since(after).as_mins()).min(3 * 24 * 60);
        for _ in 0..span {
            let zoned = moment.to_zoned(zone.clone()).start_of_minute();
            if zoned.timestamp() > after && zoned.timestamp() < next {
                let fits =
                    zoned.minute() as u64 == minute && (is_free || zoned.hour() as u64 == hour);
                let is_second =
                    !is_free && zone.to_ambiguous_timestamp(zoned.datetime()).is_ambiguous();
                assert!(
                    !fits || is_second || !day_fits(days, &zoned),
                    "{text} in {zone_name} after {after} passed {zoned} over for {clock}"
                );
            }
            moment += 1.minute();
        }
    }
}

/// Where clocks change, with the day before it: into a gap, out of one, over midnight, by half an hour.
const CHANGES: &[(&str, &str)] = &[
    ("Europe/Berlin", "2026-03-28"),
    ("Europe/Berlin", "2026-10-24"),
    ("America/New_York", "2026-03-07"),
    ("America/New_York", "2026-10-31"),
    ("Africa/Cairo", "2026-04-23"),
    ("Africa/Cairo", "2026-10-29"),
    ("Asia/Beirut", "2026-03-28"),
    ("Asia/Beirut", "2026-10-24"),
    ("America/Havana", "2026-03-07"),
    ("America/Havana", "2026-10-31"),
    ("America/Santiago", "2026-04-03"),
    ("America/Santiago", "2026-09-05"),
    ("Australia/Lord_Howe", "2026-04-04"),
    ("Australia/Lord_Howe", "2026-10-03"),
    ("Africa/Casablanca", "2026-02-14"),
    ("Africa/Casablanca", "2026-03-21"),
    ("Pacific/Apia", "2011-12-29"),
];

/// What the clock shows at each minute of three days.
fn minutes_of(zone: &TimeZone, from: Timestamp) -> Vec<(Timestamp, jiff::civil::DateTime)> {
    let minutes = (0..3 * 24 * 60).map(|minute| from + i64::from(minute).minutes());
    minutes.map(|at| (at, zone.to_datetime(at))).collect()
}

/// When a job of fixed times runs, by the plain definition: each time once, at the first minute that shows it, or shows a
/// later one of that day.
fn slow(
    minutes: &[(Timestamp, jiff::civil::DateTime)],
    times: &[(i8, i8)],
) -> std::collections::BTreeSet<Timestamp> {
    let mut dates: Vec<_> = minutes.iter().map(|(_, clock)| clock.date()).collect();
    dates.dedup();
    let wanted = dates.into_iter().flat_map(|date| {
        let times = times.iter();
        times.map(move |(hour, minute)| date.at(*hour, *minute, 0, 0))
    });
    let runs = wanted.filter_map(|wanted| {
        let is_it = |(_, clock): &&(Timestamp, jiff::civil::DateTime)| {
            clock.date() == wanted.date() && *clock >= wanted
        };
        minutes.iter().find(is_it).map(|(at, _)| *at)
    });
    runs.collect()
}

#[test]
fn schedules_in_words_and_expressions_agree_with_a_slow_reference_around_clock_changes() {
    for (zone_name, day) in CHANGES {
        let zone = zone(zone_name);
        let day: jiff::civil::Date = day.parse().unwrap();
        let from = day
            .at(12, 0, 0, 0)
            .to_zoned(zone.clone())
            .unwrap()
            .timestamp();
        let minutes = minutes_of(&zone, from);
        let end = from + (3 * 24).hours();
        // Times of the first day that have passed are not those of its slow reading.
        let after_noon = |run: &Timestamp| *run > from && *run < end;
        let runs = |text: &str| {
            let schedule = Schedule::read(text, from, &zone).unwrap();
            let runs = std::iter::successors(schedule.next(from), |last| schedule.next(*last));
            runs.take_while(|run| *run < end).collect::<Vec<_>>()
        };
        for half_hour in 0..48_i8 {
            let (hour, minute) = (half_hour / 2, half_hour % 2 * 30);
            let slow = slow(&minutes, &[(hour, minute), (4, 15)]);
            let slow: Vec<Timestamp> = slow.into_iter().filter(after_noon).collect();
            let words = format!("every day at {hour}:{minute:02} and 4:15");
            let days = format!("every monday to sunday at {hour}:{minute:02} and 4:15");
            for text in [words, days] {
                assert_eq!(runs(&text), slow, "{text} in {zone_name} from {day}");
            }
        }
        // Where the hour is free, every minute that shows it is one.
        for text in ["30 * * * *", "every hour at :30"] {
            let shown = minutes.iter().filter(|(_, clock)| clock.minute() == 30);
            let shown: Vec<_> = shown.map(|(at, _)| *at).filter(after_noon).collect();
            assert_eq!(runs(text), shown, "{text} in {zone_name} from {day}");
        }
    }
}

trait StartOfMinute {
    fn start_of_minute(&self) -> Self;
}

impl StartOfMinute for jiff::Zoned {
    fn start_of_minute(&self) -> Self {
        let seconds = i64::from(self.second());
        self.checked_sub(seconds.seconds()).unwrap()
    }
}

fn day_fits(days: &str, at: &jiff::Zoned) -> bool {
    let weekday = at.weekday().to_sunday_zero_offset();
    match days {
        "* * *" => true,
        "* * 1-5" => (1..=5).contains(&weekday),
        "1,15 * *" => [1, 15].contains(&at.day()),
        "* 3-11 *" => (3..=11).contains(&at.month()),
        _ => weekday == 0 && at.day() <= 7,
    }
}

/// Knuth's linear congruence: any spread will do, and the same one every time.
fn next_random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}
