//! Tools that come while a session is open: into the prefix before the first message, into a message after it.

use std::collections::HashSet;
use std::sync::Arc;

use hermes_core::skill::news_behind_words;
use hermes_core::text::shorten;
use hermes_core::{CancellationToken, Event, Message, Notice, Op, Part, Role, Tool, WaitsFor};
use serde_json::json;
use tokio::sync::mpsc;

use super::task::SessionTask;
use crate::history::History;
use crate::tool_source::SessionTools;

/// What the words about new tools begin with: a session that goes on later finds by it what it was told.
const MARK: &str = "Tools that are new in this conversation:";
/// Of a description, this much is told.
const DESCRIPTION_CHARS_MAX: usize = 400;
/// Schemas beyond this are left to `tool_describe`, or to trying.
const SCHEMAS_CHARS_MAX: usize = 16_000;
/// More tools than this are only counted, by server.
const TOLD_MAX: usize = 100;

/// Runs tools that are not listed.
const FINDER: &str = "tool_call";

/// What a session knows of the tools that come from servers.
#[derive(Default)]
pub(super) struct Equipped {
    /// `None` before the first turn.
    version: Option<u64>,
    /// By their names.
    known: HashSet<String>,
    news: Option<Part>,
}

impl Equipped {
    /// Takes what the model has to be told.
    pub(super) fn take_news(&mut self) -> Option<Part> {
        self.news.take()
    }
}

impl SessionTask {
    /// Takes the tools that there are now, once those that are worth waiting for have come. Who interrupts the waiting
    /// goes on without them; where no person does, the turn is stopped.
    pub(super) async fn equip(&mut self, ops: &mut mpsc::Receiver<Op>, stop: &CancellationToken) {
        let Some(tool_source) = self.ports.tool_source.clone() else {
            return;
        };
        let is_first = self.equipped.version.is_none();
        let events = self.events.0.clone();
        let is_interrupted = is_first && self.wait_for(tool_source.ready(&events), ops).await;
        if is_interrupted && !self.settings.is_attended {
            stop.cancel();
        }
        let version = tool_source.version();
        if self.equipped.version.replace(version) == Some(version) {
            return;
        }
        let session_tools = tool_source.session_tools();
        let names = session_tools
            .late
            .iter()
            .map(|tool| tool.spec().name.clone());
        let names: Vec<String> = names.collect();
        match &mut self.unwritten {
            Some(row) => {
                row.prefix = session_tools.prefix.clone();
                self.history.begin_with(session_tools.prefix);
                self.ports.tools = session_tools.tools;
                self.ports.unlisted = session_tools.unlisted;
            }
            None => {
                if is_first {
                    self.equipped.known = told(&self.history);
                    // What it can find it need not be told of.
                    let findable = is_listed(&self.history, FINDER).then(|| names.clone());
                    self.equipped.known.extend(findable.unwrap_or_default());
                }
                self.take_in(session_tools).await;
            }
        }
        self.equipped.known.extend(names);
    }

    /// Waits, and keeps what is said meanwhile. Returns whether the waiting was interrupted.
    async fn wait_for(
        &mut self,
        ready: impl Future<Output = ()>,
        ops: &mut mpsc::Receiver<Op>,
    ) -> bool {
        tokio::pin!(ready);
        loop {
            let op = tokio::select! {
                biased;
                () = &mut ready => return false,
                op = ops.recv() => op,
            };
            match op {
                Some(Op::Interrupt) => return true,
                Some(Op::Say(message) | Op::Steer(message)) => {
                    self.enqueue(message, WaitsFor::NextTurn);
                }
                Some(_) => {}
                None => {
                    // Every handle is dropped, but what was said is still to be done.
                    ready.await;
                    return false;
                }
            }
        }
    }

    /// Makes further tools callable, and notes which of them the model has to be told of.
    async fn take_in(&mut self, session_tools: SessionTools) {
        let news: Vec<Arc<dyn Tool>> = session_tools
            .late
            .iter()
            .filter(|tool| !self.equipped.known.contains(&tool.spec().name))
            .cloned()
            .collect();
        for tool in session_tools
            .tools
            .into_iter()
            .chain(session_tools.unlisted)
        {
            let name = &tool.spec().name;
            let has = |tools: &[Arc<dyn Tool>]| tools.iter().any(|tool| tool.spec().name == *name);
            if !has(&self.ports.tools) && !has(&self.ports.unlisted) {
                self.ports.unlisted.push(tool);
            }
        }
        if news.is_empty() {
            return;
        }
        let servers = servers_of(&news);
        let text = format!("tools have come: {}", servers.join(", "));
        self.tell(Event::Notice {
            notice: Notice::Tools { text },
        });
        let can_find = is_listed(&self.history, FINDER);
        self.equipped.news = Some(Part::text(news_behind_words(&announcement(
            &news, can_find,
        ))));
    }
}

fn is_listed(history: &History, name: &str) -> bool {
    history.prefix.tools.iter().any(|tool| tool.name == name)
}

/// The names of the tools that a conversation was told of before: in its prefix, or in a message.
fn told(history: &History) -> HashSet<String> {
    let listed = history.prefix.tools.iter().map(|tool| tool.name.clone());
    let announced = history.messages().iter().flat_map(names_in);
    listed.chain(announced).collect()
}

fn names_in(message: &Message) -> Vec<String> {
    let text = match message.role {
        Role::User => message.text(),
        _ => return Vec::new(),
    };
    let Some((_, words)) = text.rsplit_once(MARK) else {
        return Vec::new();
    };
    let names = words.lines().filter_map(|line| line.strip_prefix("- `"));
    let names = names.filter_map(|line| line.split_once('`'));
    names.map(|(name, _)| name.to_owned()).collect()
}

/// Counts tools by their servers: `tickets (3)`.
fn servers_of(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for tool in tools {
        let server = tool.exposure().server().unwrap_or(&tool.spec().name);
        match counts.iter_mut().find(|(known, _)| *known == server) {
            Some((_, count)) => *count += 1,
            None => counts.push((server, 1)),
        }
    }
    let shown = counts
        .iter()
        .map(|(server, count)| format!("{server} ({count})"));
    shown.collect()
}

/// Tells the model of tools that its prefix does not have.
fn announcement(tools: &[Arc<dyn Tool>], can_find: bool) -> String {
    let how = if can_find {
        "Call them with `tool_call`, or by their names."
    } else {
        "Call them by their names, as if they had been listed from the beginning."
    };
    let mut text = format!("{MARK}\n{how}\n");
    let mut chars_left = SCHEMAS_CHARS_MAX;
    for tool in tools.iter().take(TOLD_MAX) {
        let spec = tool.spec();
        let description = shorten(&spec.description, DESCRIPTION_CHARS_MAX).replace('\n', " ");
        text.push_str(&format!("- `{}`: {description}", spec.name));
        let schema = json!(spec.parameters).to_string();
        if schema.len() <= chars_left {
            chars_left -= schema.len();
            text.push_str(&format!("; arguments: {schema}"));
        }
        text.push('\n');
    }
    if tools.len() > TOLD_MAX {
        let rest = servers_of(&tools[TOLD_MAX..]).join(", ");
        text.push_str(&format!("and more, which `tool_search` finds: {rest}\n"));
    }
    text
}
