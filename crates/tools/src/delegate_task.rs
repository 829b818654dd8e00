//! `delegate_task`: gives tasks to subagents, which work side by side and answer with a summary each.

use std::sync::Arc;

use hermes_core::delegation::DELEGATE_TASK;
use hermes_core::{
    Delegated, Dispatched, Effect, Exposure, Manner, Parallel, Plan, PlanContext, Scripts,
    SubagentRole, SubagentTask, Subagents, Surfaces, Tool, ToolContext, ToolError, ToolGroup,
    ToolOutput, ToolSpec,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{BuiltIn, ToolPorts, arguments};

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: DELEGATE_TASK,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("delegation"),
    surfaces: Surfaces::Every,
    subagents: Subagents::Orchestrators,
    scripts: Scripts::No,
    for_small_models: None,
};

fn make(ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(DelegateTask {
        spec: spec(ports.limits.subagents_max),
    })
}

fn spec(subagents_max: usize) -> ToolSpec {
    let role = json!({
        "type": "string",
        "enum": ["leaf", "orchestrator"],
        "description": "An orchestrator may delegate in turn, if the settings allow it (default leaf)",
    });
    ToolSpec {
        name: DELEGATE_TASK.to_owned(),
        description: format!(
            "Gives work to subagents: agents with a conversation, a shell and steps of their own, which see nothing of \
             yours and return a summary. For work that can be done side by side, or would fill your context with \
             detail; not for a single call. Give one `goal`, or up to {subagents_max} `tasks` that run together. Say \
             everything they need: paths, facts, what to return. Check what they say they did."
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "goal": {"type": "string", "description": "What one subagent is to achieve"},
                "context": {"type": "string", "description": "What it needs to know"},
                "tasks": {
                    "type": "array",
                    "description": "Several tasks, instead of `goal`",
                    "items": {
                        "type": "object",
                        "properties": {
                            "goal": {"type": "string", "description": "What to achieve"},
                            "context": {"type": "string", "description": "What it needs to know"},
                            "role": role,
                        },
                        "required": ["goal"],
                    },
                },
                "role": role,
                "background": {
                    "type": "boolean",
                    "description": "Go on meanwhile; the results arrive as a message later (default false)",
                },
            },
            "required": [],
        }),
    }
}

struct DelegateTask {
    spec: ToolSpec,
}

#[derive(Debug, Default, Deserialize)]
struct Arguments {
    #[serde(default)]
    goal: String,
    #[serde(default)]
    context: String,
    #[serde(default)]
    tasks: Vec<Task>,
    #[serde(default)]
    role: SubagentRole,
    #[serde(default)]
    background: bool,
}

#[derive(Debug, Deserialize)]
struct Task {
    goal: String,
    #[serde(default)]
    context: String,
    role: Option<SubagentRole>,
}

impl Tool for DelegateTask {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn reminder(&self, state: &Value) -> Option<String> {
        let dispatched = Vec::<Dispatched>::deserialize(state).ok()?;
        let lines = dispatched.iter().map(|one| {
            let count = one.sessions.len();
            format!("- delegation {}: {count} at work", one.delegation_id)
        });
        let lines = lines.collect::<Vec<_>>().join("\n");
        let words = "Subagents that work in the background; what they find comes by itself:";
        (!lines.is_empty()).then(|| format!("{words}\n{lines}"))
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = arguments::parse(DELEGATE_TASK, arguments);
        // A call that runs again finds the sessions of its subagents and repeats nothing; what they do has effect
        // classes of its own.
        Plan::doing(Effect::Idempotent, Parallel::Always, move |cx| {
            Box::pin(async move { delegate(arguments?, cx).await })
        })
    }
}

async fn delegate(arguments: Arguments, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let is_background = arguments.background;
    let subagent_tasks = subagent_tasks(arguments)?;
    if cx.stop.is_cancelled() {
        return Err(ToolError::Stopped(
            "stopped before anything was delegated".into(),
        ));
    }
    let goals: Vec<String> = subagent_tasks
        .iter()
        .map(|subagent_task| subagent_task.goal.clone())
        .collect();
    let manner = if is_background {
        Manner::Background
    } else {
        Manner::Foreground
    };
    let delegated = cx.delegates.delegate(subagent_tasks, manner).await;
    let delegated = delegated.map_err(ToolError::Answer)?;
    let kept = match &delegated {
        Delegated::Dispatched(dispatched) => Some(json!(dispatched)),
        Delegated::Done(_) => None,
    };
    let text = present(delegated, &goals, is_background);
    Ok(ToolOutput {
        state: kept,
        ..ToolOutput::text(text)
    })
}

fn subagent_tasks(arguments: Arguments) -> Result<Vec<SubagentTask>, ToolError> {
    let subagent_tasks: Vec<SubagentTask> = if arguments.tasks.is_empty() {
        vec![SubagentTask {
            goal: arguments.goal,
            context: arguments.context,
            role: arguments.role,
        }]
    } else {
        let subagent_task = |task: Task| SubagentTask {
            goal: task.goal,
            context: task.context,
            role: task.role.unwrap_or(arguments.role),
        };
        arguments.tasks.into_iter().map(subagent_task).collect()
    };
    if subagent_tasks
        .iter()
        .any(|subagent_task| subagent_task.goal.trim().is_empty())
    {
        Err(ToolError::Answer(
            "a subagent needs a `goal`; give one, or several `tasks` that each have one".into(),
        ))
    } else {
        Ok(subagent_tasks)
    }
}

fn present(delegated: Delegated, goals: &[String], wanted_background: bool) -> String {
    match delegated {
        Delegated::Done(reports) if wanted_background => json!({
            "results": reports,
            "note": "nothing can arrive later in this session, so this call waited for its subagents",
        }),
        Delegated::Done(reports) => json!({ "results": reports }),
        Delegated::Dispatched(dispatched) => json!({
            "status": "dispatched",
            "mode": "background",
            "count": goals.len(),
            "goals": goals,
            "delegation_id": dispatched.delegation_id,
            "sessions": dispatched.sessions,
            "note": "go on with other work, or end your turn; the results arrive as a message",
        }),
    }
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Result<Vec<SubagentTask>, ToolError> {
        subagent_tasks(arguments::parse(DELEGATE_TASK, &value)?)
    }

    #[test]
    fn one_goal_or_several_tasks_are_given_to_subagents() {
        let one = read(json!({"goal": "g", "context": "c"})).unwrap();
        assert_eq!((one.len(), one[0].context.as_str()), (1, "c"));
        let tasks = json!({
            "goal": "ignored",
            "role": "orchestrator",
            "tasks": [{"goal": "a"}, {"goal": "b", "role": "leaf"}],
        });
        let several = read(tasks).unwrap();
        let roles: Vec<_> = several
            .iter()
            .map(|subagent_task| subagent_task.role)
            .collect();
        assert_eq!(roles, [SubagentRole::Orchestrator, SubagentRole::Leaf]);
    }

    #[test]
    fn a_task_without_a_goal_is_refused() {
        for junk in [
            json!({}),
            json!({"goal": " "}),
            json!({"tasks": [{"goal": ""}]}),
        ] {
            let error = read(junk).unwrap_err();
            assert!(error.to_string().contains("needs a `goal`"), "{error}");
        }
    }
}
