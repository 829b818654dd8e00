//! Telegram, against a strict server of our own and against servers of others.

mod side;

mod against_fake;
mod crabline;
mod fake;
mod test_api;

use std::collections::BTreeMap;
use std::sync::Arc;

use hermes_channels::PLATFORMS;
use hermes_core::{Channel, ChannelPorts, PlatformSettingError, PlatformSettings, Random};
use hermes_testkit::TestClock;
use serde_json::{Value, json};

/// Opens a channel by what settings say.
fn open(settings: &Value) -> Result<Arc<dyn Channel>, PlatformSettingError> {
    let platform = PLATFORMS
        .iter()
        .find(|platform| platform.name == "telegram")
        .expect("Telegram is one of them");
    let values: BTreeMap<String, Value> =
        serde_json::from_value(settings.clone()).expect("settings");
    let ports = ChannelPorts {
        clock: Arc::new(TestClock::default()),
        random: Arc::new(Random::seeded(1)),
    };
    (platform.open)(&PlatformSettings::new(values), ports)
}

fn open_at(url: &str, token: &str, more: &Value) -> Arc<dyn Channel> {
    let mut settings = json!({"token": token, "base_url": url, "reactions": true});
    for (key, value) in more.as_object().into_iter().flatten() {
        settings[key] = value.clone();
    }
    open(&settings).expect("settings that are right")
}
