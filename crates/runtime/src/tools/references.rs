//! Brings what people refer to with an `@` besides files: `@diff`, `@staged`, `@git:N` and `@url:ADDRESS`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::{BoxFuture, Changes, References, Tool, ToolContext};
use hermes_tools::ToolPorts;
use serde_json::{Value, json};

use crate::base::Base;
use crate::git::Git;

/// Files whose changes are not shown: those that hold keys.
const WITHOUT_KEYS: [&str; 6] = [
    ":(exclude,glob)**/.env",
    ":(exclude,glob)**/.env.*",
    ":(exclude,glob)**/.envrc",
    ":(exclude,glob)**/.netrc",
    ":(exclude,glob)**/.npmrc",
    ":(exclude,glob)**/id_*",
];

pub(crate) struct SessionReferences {
    home: Option<PathBuf>,
    ports: ToolPorts,
    git: Git,
    /// Reads web pages, under the rules of the settings.
    web: Arc<dyn Tool>,
}

impl SessionReferences {
    pub(crate) fn new(base: &Base, ports: &ToolPorts) -> Self {
        Self {
            home: ports.home.clone(),
            ports: ports.clone(),
            git: Git::new(base),
            web: hermes_tools::page_reader(ports),
        }
    }
}

impl References for SessionReferences {
    fn refuse_file(&self, path: &Path) -> Option<String> {
        hermes_tools::why_not_read(&self.ports, path).map(str::to_owned)
    }

    fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    fn changes<'a>(
        &'a self,
        which: Changes,
        folder: &'a Path,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            if self.ports.private.is_some() {
                // A repository of theirs may say that it lies in one of the owner's.
                return Err("changes are shown to the owner of this Hermes".to_owned());
            }
            changes(&self.git, which, folder).await
        })
    }

    fn page<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let output = self.web.run(json!({"urls": [url]}), &context()).await;
            let output = output.map_err(|error| error.to_string())?;
            page(&output.text)
        })
    }
}

/// Asks git for changes, in a way that runs nothing but git.
pub(crate) async fn changes(git: &Git, which: Changes, folder: &Path) -> Result<String, String> {
    let count;
    let mut args = vec!["-c", "core.fsmonitor=false", "--no-optional-locks"];
    match which {
        Changes::Unstaged => args.push("diff"),
        Changes::Staged => args.extend(["diff", "--staged"]),
        Changes::Commits(commits) => {
            count = format!("-{commits}");
            args.extend(["log", "--patch", "--stat", &count]);
        }
    }
    args.extend(["--no-color", "--no-ext-diff", "--no-textconv", "--", "."]);
    args.extend(WITHOUT_KEYS);
    git.line(folder, &args)
        .await
        .map_err(|error| error.to_string())
}

/// The words of a page in the tool's answer.
fn page(answer: &str) -> Result<String, String> {
    let answer: Value = serde_json::from_str(answer).map_err(|error| error.to_string())?;
    let result = &answer["results"][0];
    let text = |name: &str| result[name].as_str().unwrap_or_default();
    match (text("error"), text("content")) {
        ("", content) => Ok(format!("{}\n\n{content}", text("title")).trim().to_owned()),
        (error, _) => Err(error.to_owned()),
    }
}

fn context() -> ToolContext {
    ToolContext::alone("references", "reference", Path::new("/"))
}
