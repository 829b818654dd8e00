//! When a conversation is over by itself: after a silence, or with a new day.

use std::collections::BTreeMap;
use std::time::Duration;

use hermes_core::Timestamp;
use hermes_os::calendar::Zone;

/// When conversations are over, by where they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResetPolicy {
    pub rule: ResetRule,
    /// Goes before the kind of chat, which goes before the rule for all.
    pub by_platform: BTreeMap<String, ResetRule>,
    /// By `dm`, `group`, `thread` and so on.
    pub by_kind: BTreeMap<String, ResetRule>,
    /// The chat hears of it.
    pub is_told: bool,
    /// On these platforms it does not.
    pub untold_on: Vec<String>,
    /// Where days begin.
    pub zone: Zone,
}

/// What ends a conversation; nothing by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResetRule {
    /// Nothing was said for longer than this.
    pub idle: Option<Duration>,
    /// This hour of a day came.
    pub daily_hour: Option<u8>,
}

/// Why a conversation was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResetReason {
    Idle(Duration),
    Daily(u8),
}

impl ResetPolicy {
    /// Whether a conversation that was last used then is over.
    pub fn due(
        &self,
        platform: &str,
        kind: &str,
        last_used: Timestamp,
        now: Timestamp,
    ) -> Option<ResetReason> {
        let own = self.by_platform.get(platform);
        let rule = own.or_else(|| self.by_kind.get(kind)).unwrap_or(&self.rule);
        let idle = rule.idle.filter(|idle| now.since(last_used) > *idle);
        if let Some(idle) = idle {
            return Some(ResetReason::Idle(idle));
        }
        let hour = rule.daily_hour?;
        let began = self.zone.latest(hour, now.as_millis())?;
        (last_used.as_millis() < began).then_some(ResetReason::Daily(hour))
    }

    pub fn is_told_on(&self, platform: &str) -> bool {
        self.is_told && !self.untold_on.iter().any(|untold| untold == platform)
    }
}

impl ResetReason {
    /// As the known program names them.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle(_) => "idle",
            Self::Daily(_) => "daily",
        }
    }

    pub(super) fn words(self) -> String {
        match self {
            Self::Idle(idle) => format!("nothing was said here for {}", span(idle)),
            Self::Daily(hour) => format!("a new day began at {hour}:00"),
        }
    }
}

fn span(time: Duration) -> String {
    match time.as_secs() / 60 {
        minutes @ 0..120 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(hours * HOUR)
    }

    #[test]
    fn a_conversation_is_over_after_a_silence_or_with_the_day() {
        // Complaint 15: conversations that never roll over.
        let idle = ResetRule {
            idle: Some(Duration::from_secs(3 * 3600)),
            daily_hour: None,
        };
        let daily = ResetRule {
            idle: None,
            daily_hour: Some(4),
        };
        let policy = |rule| ResetPolicy {
            rule,
            ..ResetPolicy::default()
        };
        let due = |rule, from, to| policy(rule).due("x", "dm", at(from), at(to));
        assert_eq!(due(ResetRule::default(), 0, 1_000_000), None);
        assert_eq!(due(idle, 0, 3), None);
        let reason = ResetReason::Idle(Duration::from_secs(3 * 3600));
        assert_eq!(due(idle, 0, 4), Some(reason));
        assert_eq!(due(daily, 5, 27), None, "from 5:00 to 3:00");
        assert_eq!(due(daily, 5, 28), Some(ResetReason::Daily(4)));
        assert_eq!(due(daily, 3, 4), Some(ResetReason::Daily(4)));
        assert_eq!(due(daily, 4, 5), None);
    }

    #[test]
    fn platforms_go_before_kinds_and_those_before_the_rest() {
        let hours = |hours: u64| ResetRule {
            idle: Some(Duration::from_secs(hours * 3600)),
            daily_hour: None,
        };
        let policy = ResetPolicy {
            rule: hours(1),
            by_kind: BTreeMap::from([("group".to_owned(), hours(2))]),
            by_platform: BTreeMap::from([("quiet".to_owned(), ResetRule::default())]),
            is_told: true,
            untold_on: vec!["quiet".to_owned()],
            zone: Zone::utc(),
        };
        let is_due = |platform, kind, hours| policy.due(platform, kind, at(0), at(hours)).is_some();
        assert!(is_due("x", "dm", 2) && !is_due("x", "group", 2));
        assert!(is_due("x", "group", 3) && !is_due("quiet", "group", 99));
        assert!(policy.is_told_on("x") && !policy.is_told_on("quiet"));
    }
}
