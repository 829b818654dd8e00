//! `/busy`: what becomes of words that are sent while a turn runs.

use super::arguments::no_such;
use super::{Done, Then};
use crate::base::Base;
use crate::error::{Error, Result};

/// What a line does that is sent while a turn runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenBusy {
    Queue,
    Steer,
    Interrupt,
}

impl WhenBusy {
    /// What the settings say.
    pub fn of(base: &Base) -> Result<Self> {
        let key = "display.busy_input_mode";
        let text = base.settings.string(key)?;
        Self::parse(&text).ok_or_else(|| {
            Error::failed(format!("`{key}` is `{text}`, which is no mode"))
                .with_hint("modes are queue, steer and interrupt")
        })
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            "queue" => Some(Self::Queue),
            "steer" => Some(Self::Steer),
            "interrupt" => Some(Self::Interrupt),
            _ => None,
        }
    }
}

pub(super) fn busy(arguments: &str) -> Result<Done> {
    let Some(when_busy) = WhenBusy::parse(arguments) else {
        return Err(no_such("/busy", arguments, "queue, steer or interrupt"));
    };
    let told = match when_busy {
        WhenBusy::Queue => "what you send while it works waits for the end of the turn",
        WhenBusy::Steer => "what you send while it works reaches it at once",
        WhenBusy::Interrupt => "what you send while it works stops it and comes next",
    };
    Ok(Done::then(Then::WhenBusy(when_busy)).telling(told))
}
