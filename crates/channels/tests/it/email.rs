//! Email, against Postfix and Dovecot.

mod side;

mod against_servers;
mod authheaders;

use std::collections::BTreeMap;
use std::sync::Arc;

use hermes_channels::PLATFORMS;
use hermes_core::{Channel, ChannelPorts, PlatformSettingError, PlatformSettings, Random};
use hermes_testkit::TestClock;
use serde_json::Value;

/// Opens a channel by what settings say.
fn open(settings: &Value) -> Result<Arc<dyn Channel>, PlatformSettingError> {
    let platform = PLATFORMS
        .iter()
        .find(|platform| platform.name == "email")
        .expect("email is one of them");
    let values: BTreeMap<String, Value> =
        serde_json::from_value(settings.clone()).expect("settings");
    let ports = ChannelPorts {
        clock: Arc::new(TestClock::default()),
        random: Arc::new(Random::seeded(1)),
    };
    (platform.open)(&PlatformSettings::new(values), ports)
}
