//! `hermes gateway run` as programs meet it: the HTTP API of a real process, with what they should and should not send.

mod apart;
mod background;
mod chat;
mod chat_jobs;
mod client;
mod continuity;
mod guests;
mod hooks;
mod hostile;
mod hostile_chats;
mod jobs;
mod lifecycle;
mod mailbox;
mod outbound;
mod owners;
mod peers;
mod people;
mod platform;
mod reload;
mod resets;
mod responses;
mod services;
mod setup;
mod socket_platform;
mod talking;
mod webhooks;
mod webhooks_to_chats;

use std::time::{Duration, Instant};

use hermes_testkit::process::{Hermes, Running};
use hermes_testkit::server::{Answer, Script};

use crate::setting::Setting;
use client::Client;

pub(crate) const KEY: &str = "test-key-0123456789";

/// A gateway in the background.
pub(crate) struct Gateway {
    pub(crate) running: Running,
    pub(crate) client: Client,
}

impl Gateway {
    /// Starts one on a free port.
    pub(crate) fn start(hermes: &Hermes) -> Self {
        let running = hermes
            .clone()
            .env("API_SERVER_KEY", KEY)
            .env("API_SERVER_PORT", "0")
            .args(["gateway", "run"])
            .spawn();
        let url = ready(&running);
        Self {
            running,
            client: Client::new(&url, KEY),
        }
    }
}

/// Waits until it says where the API is.
pub(crate) fn ready(running: &Running) -> String {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let told = running.stdout();
        if let Some((_, rest)) = told.split_once("API on ") {
            return rest
                .split_whitespace()
                .next()
                .unwrap()
                .trim_end_matches(',')
                .to_owned();
        }
        assert!(Instant::now() < deadline, "{told}{}", running.stderr());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A home whose model always says the same, with a gateway.
pub(crate) async fn served(answer: &str) -> (Setting, Gateway) {
    scripted(Script::always(Answer::text(answer))).await
}

pub(crate) async fn scripted(script: Script) -> (Setting, Gateway) {
    let setting = Setting::new(script).await;
    let gateway = Gateway::start(&setting.hermes);
    (setting, gateway)
}
