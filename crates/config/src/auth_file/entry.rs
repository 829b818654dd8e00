//! One entry of the pool: how a key is written down, and what is known of it.

use std::time::Duration;

use hermes_core::{Random, Secret, Timestamp};
use serde_json::{Map, Value, json};

/// How long a refused key rests when the entry does not say; other programs leave it to the reader.
const REST_AFTER_AUTH: Duration = Duration::from_secs(5 * 60);
const REST_AFTER_LIMIT: Duration = Duration::from_secs(60 * 60);

const API_KEY: &str = "api_key";
/// Given by hand, rather than by a login or another program.
const MANUAL: &str = "manual";

/// What was refused stands in these fields until it rests no more.
const REFUSAL_FIELDS: [&str; 6] = [
    "last_status",
    "last_status_at",
    "last_error_code",
    "last_error_reason",
    "last_error_message",
    "last_error_reset_at",
];

/// A key that was stored. `Debug` does not print it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    pub provider: String,
    /// Six hexadecimal digits; empty when another program left it out.
    pub id: String,
    pub label: String,
    pub secret: Secret,
    /// Who put it there: `manual`, `env:NAME`, `device_code`, …
    pub source: String,
    /// Whether it is a plain key. Tokens of a login expire and need refreshing, which we cannot do.
    pub is_api_key: bool,
    pub(super) priority: i64,
    /// Where it stands in its provider's list.
    pub(super) position: usize,
    is_dead: bool,
    rests_until: Option<Timestamp>,
    reason: String,
}

/// Whether a key is asked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    Good,
    /// It was refused, and is spared until then.
    Resting {
        until: Timestamp,
        reason: String,
    },
    /// It was refused for good.
    Dead {
        reason: String,
    },
}

/// A refusal by the provider, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub at: Timestamp,
    pub rest: Duration,
    /// Its kind, in a word.
    pub reason: String,
    /// The provider's words, without secrets.
    pub message: String,
}

impl StoredKey {
    pub(super) fn new(provider: &str, secret: &Secret, label: String, priority: i64) -> Self {
        Self {
            provider: provider.to_owned(),
            id: format!("{:06x}", Random::from_system().below(1 << 24)),
            label,
            secret: secret.clone(),
            source: MANUAL.to_owned(),
            is_api_key: true,
            priority,
            position: 0,
            is_dead: false,
            rests_until: None,
            reason: String::new(),
        }
    }

    /// `None` for an entry that holds no key, as those borrowed from the environment.
    pub(super) fn read(provider: &str, position: usize, entry: &Value) -> Option<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let secret = text("access_token");
        let status = text("last_status");
        let reason = ["last_error_message", "last_error_reason"].map(text);
        let reason = reason.into_iter().find(|reason| !reason.is_empty());
        (!secret.is_empty()).then(|| Self {
            provider: provider.to_owned(),
            id: text("id").to_owned(),
            label: text("label").to_owned(),
            secret: Secret::new(secret),
            source: text("source").to_owned(),
            is_api_key: text("auth_type") == API_KEY,
            priority: entry.get("priority").and_then(Value::as_i64).unwrap_or(0),
            position,
            is_dead: status == "dead",
            rests_until: (status == "exhausted")
                .then(|| rests_until(entry))
                .flatten(),
            reason: reason.unwrap_or_default().to_owned(),
        })
    }

    pub(super) fn to_entry(&self) -> Value {
        json!({
            "id": self.id,
            "label": self.label,
            "auth_type": API_KEY,
            "priority": self.priority,
            "source": self.source,
            "access_token": self.secret.expose(),
            "request_count": 0,
        })
    }

    /// Whether requests may be made with it, now or after a rest.
    pub fn is_usable(&self) -> bool {
        self.is_api_key && !self.is_dead
    }

    pub fn state(&self, now: Timestamp) -> KeyState {
        let reason = self.reason.clone();
        match self.rests_until {
            _ if self.is_dead => KeyState::Dead { reason },
            Some(until) if until > now => KeyState::Resting { until, reason },
            _ => KeyState::Good,
        }
    }
}

fn rests_until(entry: &Value) -> Option<Timestamp> {
    let time = |name: &str| entry.get(name).and_then(Value::as_f64).map(from_seconds);
    time("last_error_reset_at").or_else(|| {
        let is_auth = entry.get("last_error_code").and_then(Value::as_i64) == Some(401);
        let rest = if is_auth {
            REST_AFTER_AUTH
        } else {
            REST_AFTER_LIMIT
        };
        Some(later(time("last_status_at")?, rest))
    })
}

/// Notes a refusal in an entry.
pub(super) fn rest(entry: &mut Map<String, Value>, refusal: &Refusal) {
    let mut put = |name: &str, value: Value| {
        entry.insert(name.to_owned(), value);
    };
    put("last_status", "exhausted".into());
    put("last_status_at", seconds(refusal.at).into());
    put("last_error_reason", refusal.reason.clone().into());
    put("last_error_message", refusal.message.clone().into());
    let until = later(refusal.at, refusal.rest);
    put("last_error_reset_at", seconds(until).into());
    // Of an earlier refusal, and by another program; ours tells reasons apart by name.
    entry.shift_remove("last_error_code");
}

/// Forgets a refusal. Returns whether there was one.
pub(super) fn wake(entry: &mut Map<String, Value>) -> bool {
    let status = entry.get("last_status").and_then(Value::as_str);
    let is_refused = matches!(status, Some("exhausted" | "dead"));
    if is_refused {
        for field in REFUSAL_FIELDS {
            entry.shift_remove(field);
        }
    }
    is_refused
}

pub(super) fn holds(entry: &Map<String, Value>, secret: &Secret) -> bool {
    entry.get("access_token").and_then(Value::as_str) == Some(secret.expose())
}

/// The first of `key-1`, `key-2`, … that no key has.
pub(super) fn free_label(there: &[StoredKey]) -> String {
    let mut labels = (1..).map(|number| format!("key-{number}"));
    let is_free = |label: &String| there.iter().all(|key| key.label != *label);
    labels.find(is_free).unwrap_or_default()
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(time.as_millis().saturating_add(millis))
}

/// Times are kept in seconds since 1970, with fractions.
fn seconds(time: Timestamp) -> f64 {
    time.as_millis() as f64 / 1000.0
}

fn from_seconds(seconds: f64) -> Timestamp {
    Timestamp::from_millis((seconds * 1000.0) as i64)
}
