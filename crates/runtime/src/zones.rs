//! The setting `timezone`: where days begin and jobs have their times. A name that no zone has moves all of them, so whoever
//! goes by it says so.

use hermes_config::Settings;
use hermes_core::text::nearest;
use hermes_os::calendar::{UnknownZone, Zone};

use crate::base::Base;

const SETTING: &str = "timezone";

/// `timezone`: a name of the IANA database; the machine's where it is empty, or no zone has the name.
pub fn zone_or_system(base: &Base) -> Zone {
    named(&base.settings).unwrap_or_else(|_| Zone::of_system())
}

/// What is wrong with it, with its place and the names that may be meant.
pub fn zone_problem(settings: &Settings) -> Option<String> {
    let unknown = named(settings).err()?;
    let place = settings.origin(SETTING);
    let place = place.map_or_else(String::new, |place| format!("{place}: "));
    let near = near(&unknown.name);
    let hint = if near.is_empty() {
        "names are those of the IANA database, such as `Europe/Berlin`".to_owned()
    } else {
        format!("did you mean {}?", near.join(" or "))
    };
    Some(format!(
        "{place}{SETTING}: {unknown}, so times are those of this machine; {hint}"
    ))
}

fn named(settings: &Settings) -> Result<Zone, UnknownZone> {
    match settings.optional_string(SETTING) {
        Ok(Some(name)) if !name.trim().is_empty() => Zone::named(name.trim()),
        _ => Ok(Zone::of_system()),
    }
}

/// Names that are written nearly so, whole or by their city.
fn near(name: &str) -> Vec<String> {
    let names = Zone::names();
    let whole = nearest(name, names.iter().map(String::as_str));
    let found = if whole.is_empty() {
        let city = |zone: &&String| {
            let city = zone.rsplit('/').next().unwrap_or_default();
            !nearest(name, [city]).is_empty()
        };
        names
            .iter()
            .filter(city)
            .take(3)
            .map(String::as_str)
            .collect()
    } else {
        whole
    };
    found.iter().map(|name| format!("`{name}`")).collect()
}
