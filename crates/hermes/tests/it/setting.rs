//! A binary with a scripted model behind it.

use std::time::Duration;

use hermes_testkit::process::{Hermes, Terminal};
use hermes_testkit::server::{Script, ScriptedServer};

pub(crate) struct Setting {
    pub(crate) hermes: Hermes,
    pub(crate) server: ScriptedServer,
}

impl Setting {
    /// A home whose model is the script. It is for the conversation alone: no model judges commands.
    pub(crate) async fn new(script: Script) -> Self {
        Self::with(script, "approvals:\n  mode: manual\n").await
    }

    /// A home whose model is the script, with more settings.
    pub(crate) async fn with(script: Script, more: &str) -> Self {
        let server = ScriptedServer::start(script).await;
        let hermes = bare();
        write_config(&hermes, &server.url(), more);
        Self { hermes, server }
    }

    /// A conversation in plain lines.
    pub(crate) fn talk_plainly(&self) -> Terminal {
        self.hermes.clone().args(["--plain"]).spawn_in_terminal()
    }

    pub(crate) fn run(&self, args: &[&str]) -> hermes_testkit::process::Output {
        self.hermes.clone().args(args.iter().copied()).run()
    }
}

/// A home with nothing in it.
pub(crate) fn bare() -> Hermes {
    Hermes::new(env!("CARGO_BIN_EXE_hermes")).deadline(Duration::from_secs(30))
}

pub(crate) fn write_config(hermes: &Hermes, url: &str, more: &str) {
    // A model that names the conversation would take an answer of the script.
    let quiet = if more.contains("auxiliary:") {
        ""
    } else {
        "auxiliary:\n  title_generation: {enabled: false}\n"
    };
    let config = format!(
        "# written by hand\nmodel:\n  provider: custom\n  default: test-model\n  base_url: {url}\n  api_key: sk-test-0123456789abcdef0123\n{more}{quiet}"
    );
    std::fs::write(hermes.home().join("config.yaml"), config).expect("the settings are written");
}
