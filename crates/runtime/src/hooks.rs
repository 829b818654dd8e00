//! The hooks of a home: `hooks/NAME/HOOK.yaml` says of what a command wants to hear.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hermes_core::text::shorten;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use crate::base::Base;

/// Where the settings of a hook are, in its folder.
const FILE: &str = "HOOK.yaml";
/// The handler of Hermes Agent's hooks.
const HANDLER: &str = "handler.py";
/// More hooks than this are a mistake.
const HOOKS_MAX: usize = 64;
/// A hook is not to hold up whoever waits; `timeout` of its file says otherwise, up to the second.
const TIME: Duration = Duration::from_secs(10);
const TIME_MAX: Duration = Duration::from_secs(60);
/// Of what a hook prints: a verdict is short.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;
/// Hooks that run at a time; what comes beyond is not told to them.
const RUNNING_MAX: usize = 8;
const LOGGED_CHARS_MAX: usize = 300;

/// Calls `handle(event, context)` of a handler, as Hermes Agent does, and prints what it returns.
const CALL_HANDLER: &str = "\
import asyncio, importlib.util, inspect, json, sys
spec = importlib.util.spec_from_file_location('handler', sys.argv[1])
handler = importlib.util.module_from_spec(spec)
spec.loader.exec_module(handler)
said = json.load(sys.stdin)
answer = handler.handle(said['event'], said['context'])
if inspect.isawaitable(answer):
    async def wait():
        return await answer
    answer = asyncio.run(wait())
if answer is not None:
    print(json.dumps(answer))
";

/// One hook of a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub name: String,
    folder: PathBuf,
    /// `agent:end`, `command:*`, `*`.
    pub events: Vec<String>,
    run: Run,
    time: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Run {
    /// A line for the shell.
    Command(String),
    Handler,
}

/// All hooks of a home; read when the gateway starts and when its settings are read again.
pub struct HomeHooks {
    hooks: Mutex<Arc<Vec<Hook>>>,
    folder: PathBuf,
    environment: Vec<(OsString, OsString)>,
    running: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl HomeHooks {
    /// Reads the hooks of a home. What is wrong with some is logged, and they are left out.
    pub fn of(base: &Base) -> Arc<Self> {
        let variables = base.environment.iter();
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut environment = hermes_exec::child_environment(variables, &[]);
        environment.push(("HERMES_HOME".into(), base.home.directory().into()));
        let folder = base.home.directory().join("hooks");
        Arc::new(Self {
            hooks: Mutex::new(Arc::new(read(&folder))),
            folder,
            environment,
            running: Arc::new(Semaphore::new(RUNNING_MAX)),
            tasks: TaskTracker::new(),
        })
    }

    /// Reads them again.
    pub fn reload(&self) {
        *self.hooks() = Arc::new(read(&self.folder));
    }

    pub fn list(&self) -> Arc<Vec<Hook>> {
        Arc::clone(&self.hooks())
    }

    fn hooks(&self) -> MutexGuard<'_, Arc<Vec<Hook>>> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs every hook that wants to hear of an event, one after the other, and returns what each printed.
    pub async fn run(&self, event: &str, input: &Value) -> Vec<String> {
        let mut printed = Vec::new();
        for hook in self.list().iter().filter(|hook| hook.wants(event)) {
            printed.extend(self.run_one(hook, input).await);
        }
        printed
    }

    /// The same, without waiting.
    pub fn run_aside(self: &Arc<Self>, event: String, input: Value) {
        if !self.list().iter().any(|hook| hook.wants(&event)) {
            return;
        }
        let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() else {
            tracing::warn!(event, "too many hooks run: they do not hear of this");
            return;
        };
        let hooks = Arc::clone(self);
        self.tasks.spawn(async move {
            hooks.run(&event, &input).await;
            drop(permit);
        });
    }

    /// Gives those that run a moment to end.
    pub async fn finish(&self, patience: Duration) {
        self.tasks.close();
        let _ = tokio::time::timeout(patience, self.tasks.wait()).await;
    }

    /// What a hook printed; nothing when it failed, which is logged.
    async fn run_one(&self, hook: &Hook, input: &Value) -> Option<String> {
        let (program, arguments) = hook.command();
        let limits = (OUTPUT_BYTES_MAX, hook.time);
        let text = input.to_string();
        let ran = hermes_exec::filter(
            program,
            arguments,
            &self.environment,
            &hook.folder,
            text.as_bytes(),
            limits,
        );
        let name = &hook.name;
        match ran.await {
            Ok(output) if output.status.success() => Some(output.stdout),
            Ok(output) => {
                let said = shorten(output.stderr.trim(), LOGGED_CHARS_MAX);
                tracing::warn!(hook = name, status = %output.status, said, "a hook failed");
                None
            }
            Err(error) => {
                tracing::warn!(hook = name, %error, "a hook did not run to its end");
                None
            }
        }
    }
}

impl Hook {
    fn wants(&self, event: &str) -> bool {
        let kind = event.split(':').next().unwrap_or_default();
        self.events.iter().any(|wanted| {
            wanted == event
                || wanted == "*"
                || wanted
                    .strip_suffix(":*")
                    .is_some_and(|wanted| wanted == kind)
        })
    }

    fn command(&self) -> (&str, Vec<OsString>) {
        match &self.run {
            Run::Command(line) => ("sh", vec!["-c".into(), line.into()]),
            Run::Handler => {
                let handler = self.folder.join(HANDLER);
                (
                    "python3",
                    vec!["-c".into(), CALL_HANDLER.into(), handler.into()],
                )
            }
        }
    }
}

/// The hooks in a folder, in the order of their names.
fn read(folder: &Path) -> Vec<Hook> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let files = folders.iter().filter(|folder| folder.join(FILE).is_file());
    let hooks = files.filter_map(|folder| match read_one(folder) {
        Ok(hook) => Some(hook),
        Err(error) => {
            tracing::warn!(hook = %folder.display(), error, "a hook cannot be used");
            None
        }
    });
    hooks.take(HOOKS_MAX).collect()
}

fn read_one(folder: &Path) -> Result<Hook, String> {
    let text = fs::read_to_string(folder.join(FILE)).map_err(|error| error.to_string())?;
    let said = hermes_config::from_yaml(&text)?;
    let events: Vec<String> = match &said["events"] {
        Value::Array(events) => {
            let events = events.iter().filter_map(Value::as_str);
            events.map(str::to_owned).collect()
        }
        Value::String(event) => vec![event.clone()],
        _ => Vec::new(),
    };
    if events.is_empty() {
        return Err("`events` names nothing that it wants to hear of".to_owned());
    }
    let run = match said["command"].as_str() {
        Some(line) if !line.trim().is_empty() => Run::Command(line.to_owned()),
        _ if folder.join(HANDLER).is_file() => Run::Handler,
        _ => return Err(format!("it has neither `command` nor {HANDLER}")),
    };
    let time = said["timeout"].as_u64().map_or(TIME, Duration::from_secs);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    Ok(Hook {
        name: said["name"].as_str().unwrap_or(&name).to_owned(),
        folder: folder.to_owned(),
        events,
        run,
        time: time.min(TIME_MAX),
    })
}
