//! Discord, against a strict server of our own and against servers of others.

mod side;

mod against_fake;
mod crabline;
mod fake;
mod simcord;

use std::collections::BTreeMap;
use std::sync::Arc;

use hermes_channels::PLATFORMS;
use hermes_core::{
    Channel, ChannelPorts, PlatformSettingError, PlatformSettings, Random, Timestamp,
};
use hermes_testkit::TestClock;
use serde_json::{Value, json};

/// Opens a channel by what settings say.
fn open(settings: &Value) -> Result<Arc<dyn Channel>, PlatformSettingError> {
    let platform = PLATFORMS
        .iter()
        .find(|platform| platform.name == "discord")
        .expect("Discord is one of them");
    let values: BTreeMap<String, Value> =
        serde_json::from_value(settings.clone()).expect("settings");
    let clock = TestClock::default();
    clock.set(now());
    let ports = ChannelPorts {
        clock: Arc::new(clock),
        random: Arc::new(Random::seeded(1)),
    };
    (platform.open)(&PlatformSettings::new(values), ports)
}

/// The time of the machine: the numbers of messages have it in them.
#[expect(clippy::disallowed_methods, reason = "peers have their own clock")]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_millis(since.unwrap().as_millis() as i64)
}

fn open_at(url: &str, token: &str, more: &Value) -> Arc<dyn Channel> {
    let mut settings = json!({"token": token, "api_base_url": url});
    for (key, value) in more.as_object().into_iter().flatten() {
        settings[key] = value.clone();
    }
    open(&settings).expect("settings that are right")
}

/// What people see of a text, without the signs of its markup.
fn shown(content: &str) -> String {
    content.replace("**", "")
}
