//! A process with a home of its own, whose model is a script.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt as _;
use hermes_config::Environment;
use hermes_core::{
    Audience, Event, FollowFrom, Op, RunningSession, SessionOptions, TurnEnd, UserMessage,
};
use hermes_runtime::Runtime;
use hermes_runtime::base::Base;
use hermes_testkit::server::{Answer, Request, Script, ScriptedServer};
use tempfile::TempDir;

pub(crate) struct Process {
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) server: ScriptedServer,
    pub(crate) folder: TempDir,
}

impl Process {
    pub(crate) async fn start() -> Self {
        Self::with(Script::always(Answer::text("understood")), "").await
    }

    /// A process whose model is this script, with more settings.
    pub(crate) async fn with(script: Script, more: &str) -> Self {
        let server = ScriptedServer::start(script).await;
        let folder = tempfile::tempdir().unwrap();
        Self::in_home(server, folder, more)
    }

    /// Another process in the same home, once this one has ended.
    pub(crate) async fn restarted(self, more: &str) -> Self {
        let Self {
            runtime,
            server,
            folder,
        } = self;
        runtime.stop().await;
        Self::in_home(server, folder, more)
    }

    fn in_home(server: ScriptedServer, folder: TempDir, more: &str) -> Self {
        let home = folder.path().join("home");
        fs::create_dir_all(&home).unwrap();
        let settings = format!(
            "model: {{provider: custom, base_url: \"{}\", default: usual, api_mode: chat_completions}}\n\
             personalities: {{calm: Speak calmly., loud: SPEAK LOUDLY.}}\n{more}",
            server.url()
        );
        fs::write(home.join("config.yaml"), settings).unwrap();
        let variables = [
            ("HERMES_HOME", home.as_os_str().to_owned()),
            ("HOME", folder.path().as_os_str().to_owned()),
            ("PATH", "/usr/local/bin:/usr/bin:/bin".into()),
        ];
        let options = SessionOptions {
            cwd: Some(folder.path().to_owned()),
            ..SessionOptions::default()
        };
        let environment = Environment::from_pairs(variables);
        let base = Base::in_environment(environment, None, &options).unwrap();
        Self {
            runtime: Runtime::start(Arc::new(base)).unwrap(),
            server,
            folder,
        }
    }

    /// A folder of its own.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// The requests that carry these words.
    pub(crate) fn requests_with(&self, words: &str) -> Vec<Request> {
        let mut requests = self.server.requests();
        requests.retain(|request| String::from_utf8_lossy(&request.body).contains(words));
        requests
    }
}

pub(crate) fn options(source: &str) -> SessionOptions {
    SessionOptions {
        audience: Audience::Nobody,
        source: source.to_owned(),
        ..SessionOptions::default()
    }
}

/// Says something and waits for the end of the turn.
pub(crate) async fn say(session: &RunningSession, words: &str) -> TurnEnd {
    let mut events = session.handle.follow(FollowFrom::Now);
    assert!(session.handle.send(Op::Say(UserMessage::text(words))).await);
    while let Some(followed) = events.next().await {
        if let Some(Event::TurnEnded { end, .. }) = followed.into_event() {
            return end;
        }
    }
    panic!("the session is over before its turn is");
}
