//! Settings that are known, kept and checked, and that nothing reads yet: files of Hermes Agent hold them, and whoever
//! wrote one should hear that it changes nothing.

use serde_json::Value;

use crate::{
    key::Key,
    layer::Layer,
    origin::Problem,
    suggest,
    yaml::{Content, Node},
};

/// Settings without an effect, and sections of which no setting has one. Whoever gives one an effect takes it off.
pub const UNUSED: &[&str] = &[
    "model.ollama_num_ctx",
    "model.persist_switch_by_default",
    "openrouter",
    "prompt_caching",
    "auxiliary.transient_retries",
    "auxiliary.vision",
    "auxiliary.web_extract",
    "auxiliary.compression.extra_body",
    "auxiliary.approval.extra_body",
    "auxiliary.title_generation.extra_body",
    "auxiliary.background_review.extra_body",
    "agent.service_tier",
    "agent.reasoning_overrides",
    "agent.tool_use_enforcement",
    "agent.intent_ack_continuation",
    "agent.task_completion_guidance",
    "agent.parallel_tool_call_guidance",
    "agent.environment_probe",
    "agent.environment_hint",
    "agent.coding_context",
    "agent.coding_instructions",
    "agent.verify_guidance",
    "agent.verify_on_stop",
    "agent.max_verify_nudges",
    "agent.image_input_mode",
    "agent.local_stream_stale_timeout",
    "agent.gateway_timeout_warning",
    "agent.gateway_notify_interval",
    "agent.gateway_auto_continue_freshness",
    "max_live_sessions",
    "goals",
    "compression.protect_first_n",
    "compression.hygiene_hard_message_limit",
    "compression.in_place",
    "compression.codex_gpt55_autoraise",
    "compression.codex_app_server_auto",
    "context",
    "skills.guard_agent_created",
    "tool_loop_guardrails",
    "terminal.home_mode",
    "terminal.persistent_shell",
    "web.backend",
    "web.search_backend",
    "web.extract_backend",
    "approvals.mcp_reload_confirm",
    "approvals.destructive_slash_confirm",
    "hooks",
    "hooks_auto_accept",
    "security.allow_lazy_installs",
    "privacy",
    "display.interface",
    "display.streaming",
    "display.final_response_markdown",
    "display.skin",
    "display.language",
    "display.inline_diffs",
    "display.file_mutation_verifier",
    "display.turn_completion_explainer",
    "display.resume_display",
    "display.interim_assistant_messages",
    "display.tool_progress_command",
    "display.tool_progress_grouping",
    "display.friendly_tool_labels",
    "display.runtime_footer",
    "display.platforms",
    "sessions",
    "logging.max_size_mb",
    "logging.backup_count",
    "network",
    "browser",
    "clarify",
    "cron.provider",
    "cron.session_db_timeout_seconds",
    "curator.min_idle_hours",
    "curator.consolidate",
    "curator.prune_builtins",
    "curator.backup",
    "honcho",
    "image_gen",
    "kanban",
    "lsp",
    "multiplex_profiles",
    "plugins",
    "prefill_messages_file",
    "profile_routes",
    "reset_triggers",
    "secrets",
    "stt",
    "tts",
    "unauthorized_dm_behavior",
    "updates",
    "video_gen",
    "voice",
    "worktree",
    "worktree_sync",
];

/// The same within every entry of [`PROVIDERS`].
const UNUSED_OF_PROVIDERS: &[&str] = &[
    "rate_limit_delay",
    "discover_models",
    "ssl_ca_cert",
    "ssl_verify",
];

/// Where providers of the user's own stand: by name, and as a list.
const PROVIDERS: [&str; 2] = ["providers", "custom_providers"];

/// The section with a model for each kind of side work. It takes any name, because others know more kinds than we do.
const SIDE_WORK: &str = "auxiliary";

/// Tells whether a setting, or the section it stands in, has no effect.
pub(crate) fn is_unused(key: &Key, defaults: &Node) -> bool {
    let segments = key.segments();
    if let [section, name, ..] = segments
        && section == SIDE_WORK
        && !is_side_work(defaults, name)
    {
        return true;
    }
    if let [section, _, name, ..] = segments
        && PROVIDERS.contains(&section.as_str())
    {
        return UNUSED_OF_PROVIDERS.contains(&name.as_str());
    }
    (1..=segments.len()).any(|depth| UNUSED.contains(&segments[..depth].join(".").as_str()))
}

/// What the files say about settings without an effect, in the order in which they stand there. What they say of
/// built-in values is no news: files that a program wrote hold many of those.
pub(crate) fn unused(layers: &[Layer], defaults: &Node) -> Vec<Problem> {
    let files = layers.iter().filter(|layer| layer.source.file().is_some());
    let in_file = |layer: &Layer| {
        let mut told: Vec<_> = UNUSED
            .iter()
            .filter_map(|name| said(layer, name, defaults))
            .chain(said_of_providers(layer))
            .chain(said_of_side_work(layer, defaults))
            .collect();
        told.sort_by_key(|problem: &Problem| problem.origin.position);
        told
    };
    files.flat_map(in_file).collect()
}

fn said(layer: &Layer, name: &str, defaults: &Node) -> Option<Problem> {
    let path: Vec<String> = name.split('.').map(str::to_owned).collect();
    let node = layer.root.find(&path)?;
    let default = defaults.find(&path).map(Node::to_value);
    if says_nothing_new(&node.to_value(), &default.unwrap_or_default()) {
        return None;
    }
    let message = match node.content {
        Content::Map(_) => format!("the settings of `{name}` have no effect in this version"),
        _ => format!("`{name}` has no effect in this version"),
    };
    Some(Problem {
        message,
        origin: layer.origin(node.at),
        hint: None,
    })
}

fn is_side_work(defaults: &Node, name: &str) -> bool {
    let known = defaults.child(SIDE_WORK);
    known.is_some_and(|known| known.child(name).is_some())
}

/// Models for side work that is not done here.
fn said_of_side_work(layer: &Layer, defaults: &Node) -> Vec<Problem> {
    let section = layer.root.child(SIDE_WORK);
    let entries = section.into_iter().flat_map(Node::entries);
    let unknown = entries.filter(|entry| !is_side_work(defaults, &entry.key));
    let path = [SIDE_WORK.to_owned()];
    unknown
        .map(|entry| Problem {
            message: format!("`{SIDE_WORK}.{}` has no effect in this version", entry.key),
            origin: layer.origin(entry.key_at),
            hint: suggest::nearest(defaults, &path, &entry.key)
                .map(|near| format!("did you mean `{near}`?")),
        })
        .collect()
}

fn said_of_providers(layer: &Layer) -> Vec<Problem> {
    let mut told = Vec::new();
    for section in PROVIDERS {
        let Some(all) = layer.root.child(section) else {
            continue;
        };
        for (provider, entry) in entries(all) {
            let unused = UNUSED_OF_PROVIDERS.iter();
            told.extend(unused.filter_map(|name| {
                let node = entry.child(name).filter(|node| !node.is_null())?;
                Some(Problem {
                    message: format!("`{section}.{provider}.{name}` has no effect in this version"),
                    origin: layer.origin(node.at),
                    hint: hint(name).map(str::to_owned),
                })
            }));
        }
    }
    told
}

/// The entries of a section or a list, with their names or places.
fn entries(node: &Node) -> Vec<(String, &Node)> {
    match &node.content {
        Content::List(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, item)| (at.to_string(), item)).collect()
        }
        _ => {
            let entries = node.entries();
            entries
                .map(|entry| (entry.key.clone(), &entry.value))
                .collect()
        }
    }
}

/// What does the same here.
fn hint(name: &str) -> Option<&'static str> {
    matches!(name, "ssl_ca_cert" | "ssl_verify").then_some(
        "the file that the variable SSL_CERT_FILE names says which certificates are trusted",
    )
}

/// Whether a value repeats what is built in, as far as it goes.
fn says_nothing_new(value: &Value, default: &Value) -> bool {
    match (value, default) {
        (Value::Null, _) => true,
        (Value::Object(fields), Value::Object(known)) => fields
            .iter()
            .all(|(name, value)| says_nothing_new(value, known.get(name).unwrap_or(&Value::Null))),
        (value, default) => value == default,
    }
}
