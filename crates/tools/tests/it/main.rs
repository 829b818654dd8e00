//! The built-in tools on real files.

#![expect(
    clippy::unwrap_used,
    reason = "a failed `unwrap` in a helper is a failed test"
)]

mod clarify;
mod contract;
mod edits;
mod exposure;
mod files;
mod fuzzy;
mod patch;
mod process;
mod read_file;
mod reversal;
mod search_files;
mod terminal;
mod tool_search;
mod web_extract;
mod write_file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{
    BoxFuture, CommandExit, CommandOutput, Processes, ShellCommand, Terminal, TerminalError, Tool,
    ToolError,
};
use hermes_testkit::contract::tool::{context, plan};
use hermes_tools::{
    CodePlace, CodeSettings, EditReview, FileLedger, FilePlace, PrivateUrls, ToolLimits, ToolPorts,
    WebSettings, built_in,
};
use serde_json::Value;

/// A terminal that runs nothing: it prints the line it was given, with the folder and the limits.
struct EchoTerminal;

impl Terminal for EchoTerminal {
    fn run(&self, command: ShellCommand) -> BoxFuture<'_, Result<CommandOutput, TerminalError>> {
        Box::pin(async move {
            let cwd = command.workdir.unwrap_or(command.cwd);
            if cwd.ends_with("missing") {
                return Err(TerminalError::NoSuchDirectory { path: cwd });
            }
            let (cwd, timeout) = (cwd.display(), command.timeout.as_secs());
            Ok(CommandOutput {
                text: format!("{} in {cwd} for {timeout} s", command.line),
                omitted_bytes: 0,
                exit: match command.line.strip_prefix("exit ") {
                    Some(code) => CommandExit::Code(code.parse().unwrap()),
                    None => CommandExit::Code(0),
                },
                elapsed: std::time::Duration::ZERO,
            })
        })
    }
}

/// A folder to work in, which is also the home of the user.
struct Place {
    folder: tempfile::TempDir,
    files: FileLedger,
    processes: Arc<process::PaperProcesses>,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            files: FileLedger::default(),
            processes: Arc::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn ports(&self) -> ToolPorts {
        ToolPorts {
            terminal: Arc::new(EchoTerminal),
            processes: Arc::clone(&self.processes) as Arc<dyn Processes>,
            limits: ToolLimits::default(),
            code: CodeSettings::at(CodePlace::Here {
                sockets: self.root().to_owned(),
            }),
            home: Some(self.root().to_owned()),
            secret: vec![self.path(".hermes/auth.json")],
            private: None,
            protected: vec![self.path(".hermes/hermes.db")],
            settings: vec![self.path(".hermes/config.yaml")],
            edit_review: EditReview::default(),
            commands: Arc::new(hermes_policy::CommandLists::default()),
            fence: hermes_tools::ToolFence::Off,
            file_place: FilePlace::here(),
            files: self.files.clone(),
            web: WebSettings {
                private_urls: PrivateUrls::Allowed,
                ..WebSettings::new(self.path("cache/web"))
            },
        }
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let mut tools = built_in(&self.ports()).into_iter();
        tools.find(|tool| tool.spec().name == name).unwrap()
    }

    async fn call(&self, name: &str, arguments: Value) -> Result<String, ToolError> {
        let result = self.tool(name).run(arguments, &context(self.root())).await;
        result.map(|output| output.text)
    }

    /// Returns the answer to a call that must fail.
    async fn answer(&self, name: &str, arguments: Value) -> String {
        match self.call(name, arguments).await {
            Err(ToolError::Answer(answer)) => answer,
            other => panic!("not an answer: {other:?}"),
        }
    }
}
