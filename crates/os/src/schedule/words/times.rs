//! Times of the clock, and the parts of a day that say which nine is meant.

use jiff::civil::Time;

use super::ScheduleError;

/// A part of the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Morning,
    Afternoon,
    Evening,
    Night,
    /// The evening of today: an hour behind midnight would be another day.
    Tonight,
}

impl Part {
    pub(super) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "morning" | "mornings" => Self::Morning,
            "afternoon" | "afternoons" => Self::Afternoon,
            "evening" | "evenings" => Self::Evening,
            "night" | "nights" => Self::Night,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Morning => "in the morning",
            Self::Afternoon => "in the afternoon",
            Self::Evening => "in the evening",
            Self::Night => "at night",
            Self::Tonight => "tonight",
        }
    }

    /// When nobody says when.
    fn usual(self) -> Time {
        match self {
            Self::Morning => Time::constant(9, 0, 0, 0),
            Self::Afternoon => Time::constant(15, 0, 0, 0),
            Self::Evening | Self::Tonight => Time::constant(20, 0, 0, 0),
            Self::Night => Time::constant(22, 0, 0, 0),
        }
    }

    fn has(self, hour: i8) -> bool {
        match self {
            Self::Morning => hour < 12,
            Self::Afternoon => (12..=18).contains(&hour),
            Self::Evening => (16..=23).contains(&hour),
            Self::Night => hour >= 18 || hour <= 5,
            Self::Tonight => hour >= 16,
        }
    }

    fn is_past_midnight(self, time: Time) -> bool {
        self == Self::Night && time.hour() <= 5
    }

    /// Which of the two times a clock with twelve hours means. None when neither is in this part.
    fn of_day(self, time: Time) -> Option<Time> {
        let later = time.hour() % 12 + 12;
        let hour = match (self, time.hour()) {
            (_, 13..) | (Self::Morning, _) => time.hour(),
            (Self::Night, 12) => 0,
            (Self::Night, hour @ 0..=5) => hour,
            (_, 0) => return None,
            _ => later,
        };
        let is_in = self.has(hour);
        is_in.then(|| Time::constant(hour, time.minute(), 0, 0))
    }
}

/// A time that somebody wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) time: Time,
    /// `9` may be in the evening, `9 am` and `17` may not.
    pub(super) is_sure: bool,
    /// `am`, `pm` or a part of the day was said: the clock has twelve hours.
    pub(super) has_half: bool,
    /// `07:00`, as clocks with 24 hours have it.
    pub(super) is_padded: bool,
}

impl Written {
    pub(super) fn surely(time: Time) -> Self {
        Self {
            time,
            is_sure: true,
            has_half: false,
            is_padded: false,
        }
    }

    /// Beside a time with its half of the day, nobody knows which half is meant.
    fn may_be_either(self) -> bool {
        !self.is_sure && !self.is_padded && (1..=12).contains(&self.time.hour())
    }
}

/// The times of a schedule, and the part of the day that they are in.
#[derive(Debug, Default)]
pub(super) struct Times {
    written: Vec<Written>,
    /// Said before its time: `every evening at 7`.
    part: Option<Part>,
    /// `at night` was said behind a time.
    has_night: bool,
}

impl Times {
    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.part.is_none()
    }

    pub(super) fn are_written(&self) -> bool {
        !self.written.is_empty()
    }

    pub(super) fn push(&mut self, time: Written) {
        self.written.push(time);
    }

    /// `in the morning`: behind the time that it is about, or before it.
    pub(super) fn push_part(&mut self, part: Part) -> Result<(), ScheduleError> {
        if self.part.is_some() {
            return Err(ScheduleError::unclear("which part of the day is meant?"));
        }
        self.has_night |= part == Part::Night && !self.written.is_empty();
        let mut open = self.written.iter_mut().filter(|time| !time.is_sure);
        match (open.next(), open.next()) {
            (Some(one), None) => {
                *one = settled(*one, part)?;
                Ok(())
            }
            (Some(_), Some(_)) => Err(ScheduleError::unclear(
                "write `am` or `pm` behind each of the times",
            )),
            (None, _) => match self.written.last() {
                Some(time) => settled(*time, part).map(drop),
                None => {
                    self.part = Some(part);
                    Ok(())
                }
            },
        }
    }

    /// A time of a night that is on the day after the evening.
    pub(super) fn past_midnight(&self) -> Option<Time> {
        let of_night = |written: &Written| match self.part {
            Some(part) => settled(*written, part).ok(),
            None => Some(*written),
        };
        let is_meant = self.part == Some(Part::Night) || self.has_night;
        let mut times = self.written.iter().filter_map(of_night);
        let found = times.find(|written| Part::Night.is_past_midnight(written.time));
        found.filter(|_| is_meant).map(|written| written.time)
    }

    /// The times in order; none when nothing was said.
    pub(super) fn all(&self) -> Result<Vec<Time>, ScheduleError> {
        let mut times = match (self.part, self.written.as_slice()) {
            (None, written) => {
                check_halves(written)?;
                written.iter().map(|written| written.time).collect()
            }
            (Some(part), []) => vec![part.usual()],
            (Some(part), written) => {
                let settled = written.iter().map(|written| settled(*written, part));
                let settled = settled.map(|written| written.map(|written| written.time));
                settled.collect::<Result<Vec<Time>, _>>()?
            }
        };
        times.sort_unstable();
        times.dedup();
        Ok(times)
    }
}

/// `at 7 and 9 pm`: the seven may be in the morning or in the evening.
fn check_halves(written: &[Written]) -> Result<(), ScheduleError> {
    let open = written.iter().find(|written| written.may_be_either());
    let has_half = written.iter().any(|written| written.has_half);
    match open.filter(|_| has_half) {
        Some(open) => {
            let time = open.time.strftime("%-I:%M");
            let time = time.to_string();
            let time = time.trim_end_matches(":00");
            Err(ScheduleError::unclear(format!(
                "is {time} in the morning or the afternoon? (`{time}am` or `{time}pm`)"
            )))
        }
        None => Ok(()),
    }
}

fn settled(written: Written, part: Part) -> Result<Written, ScheduleError> {
    let found = if written.is_sure {
        Some(written.time).filter(|time| part.has(time.hour()))
    } else {
        part.of_day(written.time)
    };
    let time = found.ok_or_else(|| {
        let time = written.time.strftime("%-H:%M");
        ScheduleError::unclear(format!("{time} is not {}", part.name()))
    })?;
    Ok(Written {
        time,
        is_sure: true,
        has_half: true,
        ..written
    })
}
