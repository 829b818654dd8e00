//! What the commands of a conversation say, as plain text.

use std::sync::Arc;

use hermes_core::command::{Group, Surface, of};
use hermes_core::{SessionRecord, Tool};
use hermes_mcp::Reloaded;

use super::Here;
use crate::base::Base;
use crate::layout::{Table, one_line, tokens_in, tokens_out};
use crate::setup::Setup;

const REFERENCES: &str = "\
Everything else goes to the model. It can bring things along:
  @PATH, @\"A PATH\"      a file or a folder; @PATH:10-20 these lines of it
  @file:PATH @folder:PATH  the same, said outright
  @diff, @staged         what is changed here and not committed, or about to be
  @git:N                 the last N commits
  @url:ADDRESS           a web page";

/// Enough of a description to know what a tool is for.
const PURPOSE_CHARS_MAX: usize = 80;

pub(super) fn help(surface: Surface) -> String {
    let mut sections = Vec::new();
    for group in Group::ALL {
        let mut table = Table::without_heading();
        for command in of(surface).filter(|command| command.group == group) {
            let name = format!("  /{} {}", command.name, command.arguments);
            let aliases: Vec<_> = command
                .aliases
                .iter()
                .map(|name| format!("/{name}"))
                .collect();
            let aliases = if aliases.is_empty() {
                String::new()
            } else {
                format!(" (also {})", aliases.join(", "))
            };
            table.row([
                name.trim_end().to_owned(),
                format!("{}{aliases}", command.help),
            ]);
        }
        sections.push(format!("{}\n{}", group.title(), table.text()));
    }
    sections.push(REFERENCES.into());
    sections.push(match surface {
        Surface::Terminal => "!COMMAND runs a command of your own; what it prints goes along with your next message. ? in an \
                              empty line shows the keys."
            .into(),
        Surface::Chat => String::new(),
    });
    sections.join("\n\n").trim_end().to_owned()
}

pub(super) fn tools(tools: &[Arc<dyn Tool>]) -> String {
    let mut table = Table::without_heading();
    for tool in tools {
        let spec = tool.spec();
        let purpose = one_line(&spec.description);
        let purpose = hermes_core::text::shorten(&purpose, PURPOSE_CHARS_MAX);
        table.row([one_line(&spec.name), purpose]);
    }
    if tools.is_empty() {
        "this conversation has no tools".into()
    } else {
        table.text()
    }
}

/// What reading the settings again did to the servers.
pub(super) fn reloaded(reloaded: &Reloaded, has_news: bool) -> String {
    let unchanged = if has_news {
        "the settings have not changed, but the tools have; your next message tells the model"
    } else {
        "nothing has changed"
    };
    changes(reloaded).unwrap_or_else(|| unchanged.to_owned())
}

/// What a change of the settings did to the servers; `None` if it was about something else.
pub(super) fn followed<'a>(
    reloaded: &Reloaded,
    warnings: impl Iterator<Item = &'a String>,
) -> Option<String> {
    let warnings = warnings.map(|warning| format!("warning: {warning}"));
    let changes = changes(reloaded);
    let changes =
        changes.map(|changes| format!("the settings of MCP servers have changed: {changes}"));
    let lines: Vec<String> = warnings.chain(changes).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn changes(reloaded: &Reloaded) -> Option<String> {
    let changes = [
        ("started", &reloaded.started),
        ("restarted", &reloaded.restarted),
        ("stopped", &reloaded.stopped),
    ];
    let changes: Vec<String> = changes
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {}", names.join(", ")))
        .collect();
    (!changes.is_empty()).then(|| {
        format!(
            "{}\nthis conversation keeps the tools it began with, and its model is told of new ones with your next \
             message; /new starts one with those there are now",
            changes.join("; ")
        )
    })
}

pub(super) fn status(setup: &Setup, here: &Here, record: Option<&SessionRecord>) -> String {
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("session", here.session.to_string());
    if let Some(title) = record.and_then(|record| record.title.as_deref()) {
        row("title", one_line(title));
    }
    row("model", setup.ports.model.name().to_string());
    // Where the owner keeps things is nobody else's business.
    if !setup.is_for_guest() {
        row("folder", setup.settings.cwd.display().to_string());
    }
    row("tools", setup.ports.tools.len().to_string());
    let messages = record.map_or(0, |record| record.messages);
    row("messages", messages.to_string());
    let turn = if here.is_busy {
        "running"
    } else {
        "waiting for you"
    };
    row("turn", turn.to_owned());
    table.text()
}

/// What a session used, with what its subagents used for it.
pub(super) fn usage(record: &SessionRecord, subagents: &[SessionRecord]) -> String {
    let mut total = record.clone();
    for subagent in subagents {
        total.requests += subagent.requests;
        total.usage += subagent.usage;
        total.calls += subagent.calls;
        let costs = total.cost_micro_usd.zip(subagent.cost_micro_usd);
        total.cost_micro_usd = costs.map(|(sum, more)| sum.saturating_add(more));
    }
    let record = &total;
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("requests", record.requests.to_string());
    row("tokens in", tokens_in(&record.usage));
    row("tokens out", tokens_out(&record.usage));
    row("tool calls", record.calls.to_string());
    let cost = match record.cost_micro_usd {
        Some(micro_usd) => format!("${:.4}", micro_usd as f64 / 1e6),
        None => "unknown: the price of a model is not known".into(),
    };
    row("cost", cost);
    if !subagents.is_empty() {
        row(
            "subagents",
            format!("{}, all counted above", subagents.len()),
        );
    }
    table.text()
}

pub(super) fn config(base: &Base) -> String {
    let mut table = Table::without_heading();
    let mut row = |name: &str, path: std::path::PathBuf| {
        table.row([name.to_owned(), path.display().to_string()]);
    };
    row("settings", base.home.config_yaml());
    row("keys", base.home.dot_env());
    row("conversations", base.home.database());
    row("log", base.home.logs());
    format!("{}\n\n`hermes config` shows and changes them", table.text())
}

pub(super) fn profile(base: &Base) -> String {
    let home = base.home.directory().display();
    match base.home.profile() {
        Some(profile) => format!("profile {profile}, in {home}"),
        None => format!("the default profile, in {home}"),
    }
}

pub(super) fn version() -> String {
    format!("hermes {}", env!("CARGO_PKG_VERSION"))
}
