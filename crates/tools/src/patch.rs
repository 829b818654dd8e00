//! `patch`: changes parts of files, one by a quoted text or several by a V4A patch.
//!
//! `fuzzy` finds text that is not quoted to the letter, `v4a` reads patches, `hunks` applies them; all pure. `plan` works
//! out every new content before `commit` writes any.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use hermes_core::{
    Action, Agreement, BoxFuture, Brief, CancellationToken, Effect, Exposure, Parallel, Plan,
    PlanContext, Preview, PreviewContext, Scripts, SessionId, Subagents, Surfaces, Tool,
    ToolContext, ToolError, ToolGroup, ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::edits::{Before, Edit, Edits};
use crate::files::{FileSystems, Files};
use crate::ledger::FileLedger;
use crate::target::Target;
use crate::{BuiltIn, ToolPorts, arguments, blocking, diff, edits};

mod answer;
mod commit;
mod document;
pub mod hunks;
mod plan;
pub mod v4a;

use hermes_core::fuzzy::{Occurrences, Strategy};
use plan::{PatchPlan, Planned, Replacement};
use v4a::Change;

const NAME: &str = "patch";

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: NAME,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("file"),
    surfaces: Surfaces::Every,
    subagents: Subagents::All,
    scripts: Scripts::Yes,
    for_small_models: Some(Brief {
        description: "Replace one text in a file with another.",
        parameters: &["path", "old_string", "new_string"],
        example: None,
    }),
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    let systems = FileSystems::new(ports);
    Arc::new(Patch {
        edits: Edits::of(NAME, ports, &systems),
        systems,
        ledger: ports.files.clone(),
    })
}

/// One for all conversations.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Change parts of files. With `path`, `old_string` and `new_string`: replace one text, which must \
                      occur once (small slips in white space are forgiven). With `mode: patch`: change several files \
                      at once, all or none. Returns a unified diff. Prefer this to rewriting a file or to `sed`."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "mode": {"type": "string", "enum": ["replace", "patch"], "description": "Default: replace"},
                "path": {"type": "string", "description": "replace: absolute, `~/…`, or relative to the working directory"},
                "old_string": {"type": "string", "description": "replace: text of the file, without line numbers, with enough around it to be unique"},
                "new_string": {"type": "string", "description": "replace: what comes instead; empty to delete"},
                "replace_all": {"type": "boolean", "description": "replace: every occurrence (default false)"},
                "patch": {
                    "type": "string",
                    "description": "patch: `*** Update File: P` with hunks of ` context`, `-removed`, `+added` lines, each \
                                    begun by `@@ a line above @@`; `*** Add File: P` with `+` lines; `*** Delete File: P`; \
                                    `*** Move File: P -> Q`",
                },
            },
            "required": [],
        }),
    }
}

struct Patch {
    systems: FileSystems,
    edits: Edits,
    ledger: FileLedger,
}

#[derive(Deserialize)]
struct Arguments {
    mode: Option<String>,
    path: Option<String>,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    patch: Option<String>,
}

/// What a call asks for.
enum Request {
    Replace {
        path: String,
        old: String,
        new: String,
        occurrences: Occurrences,
    },
    Changes(Vec<Change>),
}

impl Request {
    fn new(arguments: Arguments) -> Result<Self, String> {
        let is_patch = match arguments.mode.as_deref() {
            Some("patch") => true,
            Some("replace") => false,
            // Who sends only a patch means it.
            None => arguments.old_string.is_none() && arguments.patch.is_some(),
            Some(other) => return Err(format!("there is no mode `{other}`; use replace or patch")),
        };
        let missing = |name: &str| format!("`{name}` is missing");
        if is_patch {
            let patch = arguments.patch.ok_or_else(|| missing("patch"))?;
            let changes = v4a::parse(&patch).map_err(|error| error.to_string())?;
            return Ok(Self::Changes(changes));
        }
        Ok(Self::Replace {
            path: arguments.path.ok_or_else(|| missing("path"))?,
            old: arguments.old_string.ok_or_else(|| missing("old_string"))?,
            new: arguments.new_string.ok_or_else(|| missing("new_string"))?,
            occurrences: if arguments.replace_all {
                Occurrences::All
            } else {
                Occurrences::TheOnlyOne
            },
        })
    }

    fn read(arguments: &Value) -> Result<Self, ToolError> {
        Self::new(arguments::parse(NAME, arguments)?)
            .map_err(|error| ToolError::Answer(format!("nothing was changed: {error}")))
    }

    fn paths(&self) -> Vec<&str> {
        match self {
            Self::Replace { path, .. } => vec![path],
            Self::Changes(changes) => changes.iter().flat_map(Change::paths).collect(),
        }
    }
}

impl Tool for Patch {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn reviews_changes(&self) -> bool {
        true
    }

    fn prepare(self: Arc<Self>, arguments: &Value, cx: PlanContext<'_>) -> Plan {
        let request = match Request::read(arguments) {
            Ok(request) => Arc::new(request),
            // What cannot be read changes nothing, and says why when it runs.
            Err(error) => {
                return Plan::doing(Effect::Read, Parallel::Never, |_| {
                    Box::pin(async { Err(error) })
                });
            }
        };
        let paths = request.paths();
        let touched = self.systems.on_this_machine(&paths, cx.cwd);
        let parallel = self.systems.parallel(&paths, cx.cwd, Parallel::Writes);
        let call = PatchCall {
            tool: Arc::clone(&self),
            request: Arc::clone(&request),
        };
        Plan {
            consent: self.edits.consent(&paths, cx.cwd),
            changes: touched.clone(),
            touched,
            // Replacing `a` by `aa` a second time makes `aaa`.
            ..Plan::new(Effect::Effect, parallel, call)
        }
    }
}

/// One call, as its arguments were read.
struct PatchCall {
    tool: Arc<Patch>,
    request: Arc<Request>,
}

impl Action for PatchCall {
    fn preview<'a>(
        &'a self,
        cx: PreviewContext<'a>,
    ) -> BoxFuture<'a, Result<Option<Preview>, ToolError>> {
        Box::pin(async move {
            let request = Arc::clone(&self.request);
            let patching = self.tool.patching(request, cx, Agreement::default());
            match blocking::unless_stopped(cx.stop, move || patching.show()).await {
                Some(shown) => shown.map(Some).map_err(ToolError::Answer),
                None => Err(ToolError::Stopped("stopped before it was shown".to_owned())),
            }
        })
    }

    fn run(self: Box<Self>, cx: &ToolContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.tool.patch(self.request, cx).await })
    }
}

impl Patch {
    async fn patch(
        &self,
        request: Arc<Request>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let place = PreviewContext {
            session: &cx.session,
            cwd: &cx.cwd,
            stop: &cx.stop,
        };
        let patching = self.patching(request, place, cx.agreement.clone());
        let pass = self
            .systems
            .pass_to_write(&patching.request.paths(), &cx.cwd);
        let place = (cx.cwd.as_path(), &cx.stop);
        match self.systems.work(place, pass, move || patching.run()).await {
            Some(Ok(Some(text))) => Ok(ToolOutput::text(text)),
            Some(Err(answer)) => Err(ToolError::Answer(answer)),
            Some(Ok(None)) | None => Err(ToolError::Stopped(
                "stopped while patching; each file has either all of its old content or all of the new".to_owned(),
            )),
        }
    }

    fn patching(
        &self,
        request: Arc<Request>,
        cx: PreviewContext<'_>,
        agreement: Agreement,
    ) -> Patching {
        Patching {
            request,
            systems: self.systems.clone(),
            edits: self.edits.clone(),
            agreement,
            files: self.systems.to_write(cx.cwd, cx.stop),
            cwd: cx.cwd.to_owned(),
            ledger: self.ledger.clone(),
            session: cx.session.clone(),
            stop: cx.stop.clone(),
        }
    }
}

/// One call, on a thread that may wait for the disk.
struct Patching {
    request: Arc<Request>,
    systems: FileSystems,
    edits: Edits,
    agreement: Agreement,
    files: Arc<dyn Files>,
    cwd: PathBuf,
    ledger: FileLedger,
    session: SessionId,
    stop: CancellationToken,
}

impl Patching {
    /// Changes the files and says how; an error is written for the model, and `Ok(None)` means that it was stopped.
    fn run(&self) -> Result<Option<String>, String> {
        let targets = self.targets()?;
        for (name, target) in &targets {
            self.edits.check(name, target, &self.agreement)?;
        }
        let _lock = self.ledger.lock(plan::paths_of(&targets));
        let (plan, summary) = self.plan(&targets)?;
        edits::check_seen(&changes(&plan), &self.agreement)?;
        if self.stop.is_cancelled() {
            return Ok(None);
        }
        let stale = self.stale(&plan);
        let _agreed = self.systems.agreed(&self.request.paths(), &self.cwd);
        commit::commit(&plan.files)?;
        self.note(&plan, &stale);
        Ok(Some(present(&plan, &summary, &stale)))
    }

    /// Shows what would change, and changes nothing.
    fn show(&self) -> Result<Preview, String> {
        let targets = self.targets()?;
        let (plan, _) = self.plan(&targets)?;
        Ok(edits::preview(&changes(&plan)))
    }

    fn targets(&self) -> Result<Vec<(String, Target)>, String> {
        let named = self.request.paths().into_iter();
        let found = named.map(|name| {
            let target = Target::asked_for(&self.files, name, &self.cwd)?;
            match self.refuse_showing(&target) {
                Some(refusal) => Err(refusal),
                None => Ok((name.to_owned(), target)),
            }
        });
        found.collect()
    }

    /// The diff and the answers show parts of a file, so what is not read is not patched.
    fn refuse_showing(&self, target: &Target) -> Option<String> {
        let guard = match self.files.guard() {
            Ok(guard) => guard,
            Err(error) => return Some(error.to_string()),
        };
        let refusal = guard.refuse_read(target.asked());
        let refusal = refusal.or_else(|| guard.refuse_read(target.path()));
        refusal.filter(|_| target.exists())
    }

    fn plan(&self, targets: &[(String, Target)]) -> Result<(PatchPlan, String), String> {
        self.planned(targets)
            .map_err(|error| format!("nothing was changed: {error}"))
    }

    fn planned(&self, targets: &[(String, Target)]) -> Result<(PatchPlan, String), String> {
        let mut plan = PatchPlan::read(targets)?;
        let summary = match self.request.as_ref() {
            Request::Replace {
                old,
                new,
                occurrences,
                ..
            } => {
                let replacement = Replacement {
                    old,
                    new,
                    occurrences: *occurrences,
                };
                let (_, target) = targets.first().ok_or("`path` is missing")?;
                let (count, strategy) = plan.replace(target, &replacement)?;
                replaced(count, strategy)
            }
            Request::Changes(changes) => {
                apply_all(&mut plan, changes, targets)?;
                String::new()
            }
        };
        plan.check()?;
        Ok((plan, summary))
    }

    /// Returns the files that others changed since the session knew them.
    fn stale<'a>(&self, plan: &'a PatchPlan) -> Vec<&'a Planned> {
        let is_stale = |file: &&Planned| {
            let path = file.target.path();
            let before = file.before.as_ref();
            before
                .is_some_and(|before| self.ledger.is_stale(&self.session, path, before.meta.stamp))
        };
        plan.files.iter().filter(is_stale).collect()
    }

    /// Remembers what the session now knows. What was stale remains so: the session saw only a part of it.
    fn note(&self, plan: &PatchPlan, stale: &[&Planned]) {
        for file in plan.files.iter().filter(|file| file.is_changed()) {
            let path = file.target.path();
            if stale.iter().any(|stale| stale.target.path() == path) {
                continue;
            }
            match file.target.stamp() {
                Some(stamp) if file.after.is_some() => {
                    self.ledger.note_written(&self.session, path, stamp);
                }
                _ => self.ledger.forget(&self.session, path),
            }
        }
    }
}

/// Applies every change; all that do not fit are told at once.
fn apply_all(
    plan: &mut PatchPlan,
    changes: &[Change],
    targets: &[(String, Target)],
) -> Result<(), String> {
    let mut rest = targets.iter().map(|(_, target)| target.clone());
    let mut errors = Vec::new();
    for change in changes {
        let targets: Vec<Target> = rest.by_ref().take(change.paths().len()).collect();
        errors.extend(plan.apply(change, &targets).err());
    }
    match errors.as_slice() {
        [] => Ok(()),
        [error] => Err(error.clone()),
        errors => Err(format!("\n- {}", errors.join("\n- "))),
    }
}

fn replaced(count: usize, strategy: Strategy) -> String {
    let times = match count {
        1 => String::new(),
        count => format!(", {count} times"),
    };
    match strategy {
        Strategy::Exact => times,
        strategy => format!(
            "{times}; `old_string` was not quoted to the letter (found by {}), so check the diff",
            strategy.name()
        ),
    }
}

/// Says what became of each file, and shows it.
fn present(plan: &PatchPlan, summary: &str, stale: &[&Planned]) -> String {
    let mut lines = Vec::new();
    let mut diffs = String::new();
    for file in plan.files.iter().filter(|file| file.is_changed()) {
        let name = &file.name;
        let source = plan.source(file);
        let before = source.and_then(|source| source.before.as_ref());
        let before = before.map(|before| before.bytes.as_slice());
        match (source, &file.after) {
            (Some(source), Some(_)) if source.name != *name => {
                lines.push(format!("moved `{}` to `{name}`", source.name));
            }
            (Some(_), Some(_)) => lines.push(format!("changed `{name}`{summary}")),
            (None, _) => lines.push(format!("created `{name}`")),
            (Some(_), None) if is_moved(plan, file) => continue,
            (Some(_), None) => {
                lines.push(format!("deleted `{name}`"));
                continue;
            }
        }
        diffs.push_str(&diff::unified(name, before, file.after.as_deref()));
    }
    for file in stale {
        lines.push(format!(
            "[`{}` had been changed on disk since you last read it; the diff is against what was there]",
            file.name
        ));
    }
    format!("{}\n{diffs}", lines.join("\n"))
}

/// Lists what a plan changes, for those who agree to it. A file that is moved is one change.
fn changes(plan: &PatchPlan) -> Vec<Edit<'_>> {
    let changed = plan.files.iter().filter(|file| file.is_changed());
    let shown = changed.filter(|file| file.after.is_some() || !is_moved(plan, file));
    shown
        .map(|file| {
            let source = plan.source(file);
            let before = source.and_then(|source| source.before.as_ref());
            Edit {
                name: &file.name,
                moved_from: source
                    .map(|source| source.name.as_str())
                    .filter(|name| *name != file.name),
                target: &file.target,
                before: before.map_or(Before::NoFile, |before| Before::Content(&before.bytes)),
                after: file.after.as_deref(),
            }
        })
        .collect()
}

/// Whether a file is gone because another, which is told as moved, is what became of it.
fn is_moved(plan: &PatchPlan, file: &Planned) -> bool {
    let mut moved = plan.files.iter().filter(|file| file.before.is_none());
    moved.any(|to| {
        let origin = to.origin.as_ref();
        origin.is_some_and(|origin| origin.path == file.target.path())
    })
}
