//! `cronjob`: jobs that run by themselves at set times, made and changed by the model.

use std::sync::{Arc, OnceLock};

use hermes_core::schedule::CRON_SOURCE;
use hermes_core::{
    BoxFuture, Effect, Exposure, JobDesk, JobDraft, JobError, JobReading, Parallel, Plan,
    PlanContext, Scripts, Subagents, Surfaces, Tool, ToolContext, ToolError, ToolGroup, ToolOutput,
    ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments;

const NAME: &str = "cronjob";

/// What is known of a call that was stopped.
const STOPPED: &str = "stopped; it may have been done or not: `list` shows the jobs there are";

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset(NAME),
    // A job does not make jobs.
    surfaces: Surfaces::Except(&[CRON_SOURCE]),
    // What they make would outlive them.
    subagents: Subagents::None,
    scripts: Scripts::No,
    for_small_models: None,
};

/// The tool over the jobs of a home. Without a desk it is only looked at.
pub fn cronjob(desk: Option<Arc<dyn JobDesk>>) -> Arc<dyn Tool> {
    Arc::new(Cronjob { desk })
}

fn spec() -> &'static ToolSpec {
    static SPEC: OnceLock<ToolSpec> = OnceLock::new();
    SPEC.get_or_init(|| ToolSpec {
        name: NAME.to_owned(),
        description: "Jobs that run by themselves at set times, each in a new conversation that knows only its prompt. \
                      Tell the user how the schedule was read and when it runs next."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["create", "list", "update", "pause", "resume", "run", "remove"],
                    "description": "What to do",
                },
                "job_id": text("Id or name; not for create and list"),
                "schedule": text("`every weekday at 9`, `every 2h`, `tomorrow at 8 in Tokyo`; `30m` is once"),
                "prompt": text("Everything the agent must know then"),
                "name": text("Short"),
                "deliver": text("origin (default in a chat), local, PLATFORM[:CHAT]; comma list"),
                "repeat": {"type": "integer", "description": "How often"},
                "skills": texts("Skills"),
                "script": text("File in scripts/ that runs first"),
                "no_agent": {"type": "boolean", "description": "Script only"},
                "context_from": texts("Jobs whose results are shown"),
                "model": text("[PROVIDER:]MODEL"),
                "enabled_toolsets": texts("Toolsets"),
                "workdir": text("Folder"),
                "silent": {"type": "boolean", "description": "Tell only of trouble"},
                "retries": {"type": "integer", "description": "Tries more"},
            },
            "required": ["action"],
        }),
    })
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn texts(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

struct Cronjob {
    desk: Option<Arc<dyn JobDesk>>,
}

#[derive(Deserialize)]
struct Arguments {
    action: String,
    job_id: Option<String>,
    schedule: Option<String>,
    prompt: Option<String>,
    name: Option<String>,
    deliver: Option<String>,
    repeat: Option<i64>,
    skills: Option<Vec<String>>,
    script: Option<String>,
    no_agent: Option<bool>,
    context_from: Option<Vec<String>>,
    model: Option<String>,
    enabled_toolsets: Option<Vec<String>>,
    workdir: Option<String>,
    silent: Option<bool>,
    retries: Option<u32>,
}

impl Tool for Cronjob {
    fn spec(&self) -> &ToolSpec {
        spec()
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let effect = match arguments::text(arguments, "action") {
            Some("list") => Effect::Read,
            Some("create" | "run") => Effect::Effect,
            _ => Effect::Idempotent,
        };
        let arguments = arguments::parse::<Arguments>(NAME, arguments);
        Plan::doing(effect, Parallel::Never, move |cx: &ToolContext| {
            Box::pin(async move { self.act(arguments?, cx).await })
                as BoxFuture<'_, Result<ToolOutput, ToolError>>
        })
    }
}

impl Cronjob {
    async fn act(&self, arguments: Arguments, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        tokio::select! {
            answer = self.answer(arguments, cx) => Ok(ToolOutput::text(answer?.to_string())),
            () = cx.stop.cancelled() => Err(ToolError::Stopped(STOPPED.to_owned())),
        }
    }

    async fn answer(&self, arguments: Arguments, cx: &ToolContext) -> Result<Value, ToolError> {
        let unreachable = || ToolError::Answer("jobs cannot be reached from here".to_owned());
        let desk = self.desk.as_ref().ok_or_else(unreachable)?;
        let action = arguments.action.clone();
        if action == "list" {
            let jobs = desk.list().await.map_err(told)?;
            return Ok(json!({"jobs": jobs.iter().map(shown).collect::<Vec<_>>()}));
        }
        if action == "create" {
            let draft = draft(arguments, Some(cx));
            return desk.add(draft).await.map(|job| shown(&job)).map_err(told);
        }
        let missing = || ToolError::Answer(format!("`{action}` needs `job_id`; `list` shows them"));
        let name = arguments.job_id.clone().ok_or_else(missing)?;
        let job = match action.as_str() {
            "update" => desk.edit(&name, draft(arguments, None)).await,
            "pause" => desk.pause(&name).await,
            "resume" => desk.resume(&name).await,
            "run" => desk.run(&name).await,
            "remove" => {
                let removed = desk.remove(&name).await.map_err(told)?;
                return Ok(json!({"removed": removed.id, "name": removed.name}));
            }
            other => {
                return Err(ToolError::Answer(format!(
                    "there is no action `{other}`; create, list, update, pause, resume, run or remove"
                )));
            }
        };
        job.map(|job| shown(&job)).map_err(told)
    }
}

fn draft(arguments: Arguments, made_in: Option<&ToolContext>) -> JobDraft {
    JobDraft {
        name: arguments.name,
        prompt: arguments.prompt,
        schedule: arguments.schedule,
        skills: arguments.skills,
        model: arguments.model,
        toolsets: arguments.enabled_toolsets,
        workdir: arguments.workdir.map(Into::into),
        script: arguments.script,
        no_agent: arguments.no_agent,
        context_from: arguments.context_from,
        deliver: arguments.deliver,
        repeat: arguments.repeat,
        silent: arguments.silent,
        retries: arguments.retries,
        created_in: made_in.map(|cx| cx.session.clone()),
        ..JobDraft::default()
    }
}

fn told(error: JobError) -> ToolError {
    ToolError::Answer(format!("{error}. {}", error.hint()))
}

fn shown(reading: &JobReading) -> Value {
    let JobReading {
        job,
        reading,
        upcoming,
        notes,
    } = reading;
    let mut shown = json!({
        "job_id": job.id,
        "name": job.spec.name,
        "state": job.state.as_str(),
        "schedule": job.spec.schedule,
        "reading": reading.as_ref().map_or_else(|why| format!("not understood: {why}"), Clone::clone),
        "next_runs": upcoming,
        "deliver": job.spec.targets(),
    });
    if !notes.is_empty() {
        shown["notes"] = json!(notes);
    }
    if job.failures > 0 {
        shown["failed_in_a_row"] = json!(job.failures);
    }
    shown
}
