//! How a gateway is, for people and programs that ask.

use std::path::PathBuf;
use std::sync::Arc;

use hermes_core::{BoxFuture, InboxDepth, OutboxDepth, Timestamp};
use serde::{Deserialize, Serialize};

use crate::chat::supervisor::{ChannelState, ChannelStatus};

/// Says how the gateway is now.
pub type TellReport = Arc<dyn Fn() -> BoxFuture<'static, Report> + Send + Sync>;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub pid: u32,
    pub version: String,
    pub home: PathBuf,
    pub profile: Option<String>,
    pub state: GatewayState,
    pub started: Timestamp,
    /// The service manager that starts it again.
    pub service: Option<String>,
    pub platforms: Vec<PlatformReport>,
    /// What else it serves: `API on http://…`.
    pub serves: Vec<String>,
    /// Turns that run.
    pub turns: usize,
    pub inbox: QueueReport,
    pub outbox: QueueReport,
    /// What could not be delivered at all, of the last days.
    pub undelivered: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatewayState {
    #[default]
    Running,
    /// It takes nothing new, and ends once what runs has ended.
    Draining,
}

/// What waits, and since when the oldest of it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueReport {
    pub waiting: u64,
    pub oldest: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformReport {
    pub platform: String,
    pub account: String,
    pub state: PlatformState,
    pub since: Timestamp,
    /// Who we are there.
    pub name: Option<String>,
    /// When the platform was last heard from, if only with "nothing new".
    pub heard: Option<Timestamp>,
    /// What went wrong last, and what to do about it.
    pub error: Option<String>,
    /// What came last of that which was not taken, and why.
    #[serde(default)]
    pub passed_over: Option<String>,
    /// When it is tried again.
    pub retry: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlatformState {
    Connecting,
    /// The platform has proven it, and is heard from.
    Connected,
    Waiting,
    /// The account is not accepted: a person has to change something.
    Refused,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            pid: 0,
            version: String::new(),
            home: PathBuf::new(),
            profile: None,
            state: GatewayState::Running,
            started: Timestamp::from_millis(0),
            service: None,
            platforms: Vec::new(),
            serves: Vec::new(),
            turns: 0,
            inbox: QueueReport::default(),
            outbox: QueueReport::default(),
            undelivered: 0,
        }
    }
}

impl From<InboxDepth> for QueueReport {
    fn from(depth: InboxDepth) -> Self {
        Self {
            waiting: depth.open,
            oldest: depth.oldest,
        }
    }
}

impl From<OutboxDepth> for QueueReport {
    fn from(depth: OutboxDepth) -> Self {
        Self {
            waiting: depth.open,
            oldest: depth.oldest,
        }
    }
}

impl From<ChannelStatus> for PlatformReport {
    fn from(status: ChannelStatus) -> Self {
        let (state, retry) = match status.state {
            ChannelState::Connecting => (PlatformState::Connecting, None),
            ChannelState::Connected => (PlatformState::Connected, None),
            ChannelState::Waiting { until } => (PlatformState::Waiting, Some(until)),
            ChannelState::Refused { until } => (PlatformState::Refused, Some(until)),
        };
        Self {
            platform: status.platform.to_owned(),
            account: status.account,
            state,
            since: status.since,
            name: status.identity.map(|identity| identity.name),
            heard: status.heard,
            error: status.error,
            passed_over: status.passed_over,
            retry,
        }
    }
}

impl PlatformReport {
    /// `connected as @bot for 2 h, heard from 3 s ago`.
    pub fn words(&self, now: Timestamp) -> String {
        let ago = |at: Timestamp| span(now.since(at).as_secs());
        let error = self.error.as_deref();
        let again = match self.retry {
            Some(at) if at > now => format!("; again in {}", span(at.since(now).as_secs())),
            Some(_) => "; again now".to_owned(),
            None => String::new(),
        };
        let state = match self.state {
            PlatformState::Connected => {
                let name = self.name.as_deref().unwrap_or(&self.account);
                let heard = self
                    .heard
                    .map(|at| format!(", heard from {} ago", ago(at)))
                    .unwrap_or_default();
                format!("connected as {name} for {}{heard}", ago(self.since))
            }
            PlatformState::Connecting => match error {
                Some(error) => format!("connecting; last time: {error}"),
                None => "connecting".to_owned(),
            },
            PlatformState::Waiting => {
                let error = error.unwrap_or("the connection was lost");
                format!("not connected for {}: {error}{again}", ago(self.since))
            }
            PlatformState::Refused => {
                let error = error.unwrap_or("the account is not accepted");
                format!("refused {} ago: {error}{again}", ago(self.since))
            }
        };
        match &self.passed_over {
            Some(what) => format!("{state}; passed over: {what}"),
            None => state,
        }
    }
}

impl Report {
    /// Rows of a name and what is to be said of it.
    pub fn rows(&self, now: Timestamp) -> Vec<(String, String)> {
        let ago = |at: Timestamp| span(now.since(at).as_secs());
        let state = match self.state {
            GatewayState::Running => "running",
            GatewayState::Draining => "ending what runs, and taking nothing new",
        };
        let service = match &self.service {
            Some(service) => format!(", kept by {service}"),
            None => String::new(),
        };
        let state = format!(
            "{state}: pid {}, for {}{service}",
            self.pid,
            ago(self.started)
        );
        let mut rows = vec![("gateway".to_owned(), state)];
        let platforms = self.platforms.iter();
        rows.extend(platforms.map(|one| (one.platform.clone(), one.words(now))));
        if !self.serves.is_empty() {
            rows.push(("serves".to_owned(), self.serves.join(", ")));
        }
        rows.push(("turns".to_owned(), format!("{} running", self.turns)));
        let queue = |queue: &QueueReport| match queue.oldest {
            Some(oldest) => format!("{} waiting, the oldest for {}", queue.waiting, ago(oldest)),
            None => "nothing waits".to_owned(),
        };
        rows.push(("inbox".to_owned(), queue(&self.inbox)));
        let undelivered = match self.undelivered {
            0 => String::new(),
            count => format!("; {count} could not be delivered"),
        };
        rows.push((
            "outbox".to_owned(),
            format!("{}{undelivered}", queue(&self.outbox)),
        ));
        rows
    }

    /// The same as lines for a chat.
    pub fn lines(&self, now: Timestamp) -> String {
        let rows = self.rows(now);
        let rows = rows.iter().map(|(name, words)| format!("{name}: {words}"));
        rows.collect::<Vec<_>>().join("\n")
    }
}

/// `3 s`, `5 min`, `2 h 10 min`, `4 d 3 h`.
fn span(seconds: u64) -> String {
    let two = |whole: u64, unit: &str, rest: u64, small: &str| match rest {
        0 => format!("{whole} {unit}"),
        rest => format!("{whole} {unit} {rest} {small}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn it_says_plainly_what_is_connected_and_what_waits() {
        let platform = |state, error: Option<&str>, retry| PlatformReport {
            platform: "chatter".into(),
            account: "1".into(),
            state,
            since: at(0),
            name: Some("@us".into()),
            heard: Some(at(7_197)),
            error: error.map(str::to_owned),
            passed_over: None,
            retry,
        };
        let report = Report {
            pid: 5,
            service: Some("systemd".into()),
            platforms: vec![
                platform(PlatformState::Connected, None, None),
                platform(
                    PlatformState::Refused,
                    Some("no such key; renew it"),
                    Some(at(7_260)),
                ),
            ],
            inbox: QueueReport {
                waiting: 2,
                oldest: Some(at(7_140)),
            },
            undelivered: 1,
            ..Report::default()
        };
        let told = report.lines(at(7_200));
        for words in [
            "gateway: running: pid 5, for 2 h, kept by systemd",
            "chatter: connected as @us for 2 h, heard from 3 s ago",
            "chatter: refused 2 h ago: no such key; renew it; again in 1 min",
            "inbox: 2 waiting, the oldest for 1 min",
            "outbox: nothing waits; 1 could not be delivered",
        ] {
            assert!(told.contains(words), "{words}\n{told}");
        }
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        assert_eq!(span(90_061), "1 d 1 h");
    }
}
