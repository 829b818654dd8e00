//! `todo`: the model's own list of steps. The list lives in the conversation: each result holds all of it.

use std::sync::{Arc, LazyLock};

use hermes_core::text::shorten;
use hermes_core::{
    Effect, Exposure, Parallel, Plan, PlanContext, Scripts, Subagents, Surfaces, Tool, ToolError,
    ToolGroup, ToolOutput, ToolSpec,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{BuiltIn, ToolPorts, arguments};

const NAME: &str = "todo";

/// More steps than a turn has; a longer list is a mistake.
const ITEMS_MAX: usize = 256;

/// The list is in every later request, so one item may not be a document.
const CONTENT_CHARS_MAX: usize = 4000;

/// Of an item, this much is told to a model that no longer sees the list.
const REMINDER_CHARS_MAX: usize = 300;

pub(crate) const TOOL: BuiltIn = BuiltIn {
    name: NAME,
    exposure: &EXPOSURE,
    make,
};

static EXPOSURE: Exposure = Exposure {
    group: ToolGroup::Toolset("todo"),
    surfaces: Surfaces::Every,
    subagents: Subagents::All,
    scripts: Scripts::No,
    for_small_models: None,
};

fn make(_ports: &ToolPorts) -> Arc<dyn Tool> {
    Arc::new(Todo)
}

/// One for all conversations.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(spec);

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Your task list for work of three steps or more. Call without `todos` to read it. Give `todos` \
                      to replace the list, or with `merge: true` to update items by id and append new ones. Keep \
                      one item `in_progress`, and mark items `completed` as soon as they are."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "todos": {
                    "type": "array",
                    "description": "Items in order of work",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "string", "description": "Short, unique in the list"},
                            "content": {"type": "string", "description": "What is to be done"},
                            "status": {
                                "type": "string",
                                "enum": ["pending", "in_progress", "completed", "cancelled"],
                                "description": "How far it is",
                            },
                        },
                        // A merge may leave out what stays.
                        "required": ["id"],
                    },
                },
                "merge": {"type": "boolean", "description": "Update instead of replace (default false)"},
            },
            "required": [],
        }),
    }
}

struct Todo;

#[derive(Deserialize)]
struct Arguments {
    todos: Option<Vec<Change>>,
    #[serde(default)]
    merge: bool,
}

/// An item as the model gives it; a merge may leave out what stays.
#[derive(Debug, Default, Deserialize)]
struct Change {
    #[serde(default)]
    id: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Item {
    id: String,
    content: String,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

/// What a call returns.
#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    todos: Vec<Item>,
    summary: Summary,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Summary {
    total: usize,
    pending: usize,
    in_progress: usize,
    completed: usize,
    cancelled: usize,
}

impl Tool for Todo {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn exposure(&self) -> &Exposure {
        &EXPOSURE
    }

    fn reminder(&self, state: &Value) -> Option<String> {
        let items = kept_items(Some(state));
        let open = items.iter().any(|item| item.status.is_open());
        open.then(|| format!("Your task list, as `todo` has it:\n{}", lines(&items)))
    }

    fn prepare(self: Arc<Self>, arguments: &Value, _cx: PlanContext<'_>) -> Plan {
        let arguments = arguments::parse(NAME, arguments);
        // The list is what the conversation says it is; nothing else changes. Two calls at once would start from the same
        // list, and one would be lost.
        Plan::doing(Effect::Read, Parallel::Never, move |cx| {
            Box::pin(async move {
                let items = changed(kept_items(cx.state.as_ref()), arguments?)?;
                let state = json!({ "todos": items });
                Ok(ToolOutput::text(present(items)).keeping(state))
            })
        })
    }
}

impl Status {
    fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// One line for each item: `[in_progress] 2: write the tests`.
fn lines(items: &[Item]) -> String {
    let lines = items.iter().map(|item| {
        let status = json!(item.status);
        let status = status.as_str().unwrap_or_default();
        format!(
            "- [{status}] {}: {}",
            item.id,
            shorten(&item.content, REMINDER_CHARS_MAX)
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads the list that was kept. One that we did not write counts as empty.
fn kept_items(state: Option<&Value>) -> Vec<Item> {
    let items = state.and_then(|state| Vec::deserialize(state.get("todos")?).ok());
    items.unwrap_or_default()
}

fn changed(previous: Vec<Item>, arguments: Arguments) -> Result<Vec<Item>, ToolError> {
    let Some(changes) = arguments.todos else {
        return Ok(previous);
    };
    let start = if arguments.merge {
        previous
    } else {
        Vec::new()
    };
    let items = changes.into_iter().fold(start, |items, change| {
        if arguments.merge {
            merged(items, change)
        } else {
            replaced(items, change)
        }
    });
    if items.len() > ITEMS_MAX {
        return Err(ToolError::Answer(format!(
            "the list would have {} items, more than the {ITEMS_MAX} allowed; join small steps and leave out finished ones",
            items.len()
        )));
    }
    Ok(items)
}

/// Appends an item; an earlier one of the same id gives way to it.
fn replaced(mut items: Vec<Item>, change: Change) -> Vec<Item> {
    let item = Item::new(change);
    items.retain(|other| other.id != item.id);
    items.push(item);
    items
}

/// Updates the item of the same id with what the change says, or appends a new one.
fn merged(mut items: Vec<Item>, change: Change) -> Vec<Item> {
    let id = change.id.trim();
    match items.iter_mut().find(|item| item.id == id) {
        Some(item) => item.update(&change),
        None => items.push(Item::new(change)),
    }
    items
}

impl Item {
    fn new(change: Change) -> Self {
        let or = |text: &str, otherwise: &str| match text.trim() {
            "" => otherwise.to_owned(),
            text => shorten(text, CONTENT_CHARS_MAX),
        };
        Self {
            id: or(&change.id, "?"),
            content: or(&change.content, "(no description)"),
            status: Status::parse(&change.status).unwrap_or(Status::Pending),
        }
    }

    fn update(&mut self, change: &Change) {
        if !change.content.trim().is_empty() {
            self.content = shorten(change.content.trim(), CONTENT_CHARS_MAX);
        }
        if let Some(status) = Status::parse(&change.status) {
            self.status = status;
        }
    }
}

impl Status {
    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "pending" => Some(Self::Pending),
            "in_progress" => Some(Self::InProgress),
            "completed" => Some(Self::Completed),
            "cancelled" => Some(Self::Cancelled),
            _ => None,
        }
    }
}

fn present(items: Vec<Item>) -> String {
    let count = |status| items.iter().filter(|item| item.status == status).count();
    let summary = Summary {
        total: items.len(),
        pending: count(Status::Pending),
        in_progress: count(Status::InProgress),
        completed: count(Status::Completed),
        cancelled: count(Status::Cancelled),
    };
    json!(List {
        todos: items,
        summary
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls the tool on what an earlier call returned and shows the items as `id:content:status`.
    fn call(previous: Option<&str>, arguments: Value) -> (String, Vec<String>) {
        let arguments = arguments::parse(NAME, &arguments).unwrap();
        let kept = previous.map(|text| serde_json::from_str(text).unwrap());
        let text = present(changed(kept_items(kept.as_ref()), arguments).unwrap());
        let list: Value = serde_json::from_str(&text).unwrap();
        let show = |item: &Value| {
            let part = |name: &str| item[name].as_str().unwrap().to_owned();
            [part("id"), part("content"), part("status")].join(":")
        };
        let items = list["todos"].as_array().unwrap().iter().map(show).collect();
        (text, items)
    }

    fn item(id: &str, content: &str, status: &str) -> Value {
        json!({"id": id, "content": content, "status": status})
    }

    #[test]
    fn a_list_is_written_and_read_back() {
        let todos =
            json!({"todos": [item("1", "plan", "completed"), item("2", "build", "in_progress")]});
        let (text, written) = call(None, todos);
        assert_eq!(written, ["1:plan:completed", "2:build:in_progress"]);
        assert_eq!(call(Some(&text), json!({})).1, written);
        assert!(text.ends_with(
            r#""summary":{"total":2,"pending":0,"in_progress":1,"completed":1,"cancelled":0}}"#
        ));
    }

    #[test]
    fn a_new_list_replaces_the_old() {
        let (text, _) = call(None, json!({"todos": [item("1", "old", "pending")]}));
        let (_, items) = call(Some(&text), json!({"todos": [item("2", "new", "pending")]}));
        assert_eq!(items, ["2:new:pending"]);
    }

    #[test]
    fn a_merge_changes_only_what_it_says() {
        let (text, _) = call(
            None,
            json!({"todos": [item("1", "a", "pending"), item("2", "b", "pending")]}),
        );
        let changes = json!([{"id": "1", "status": "completed"}, {"id": "2", "content": "B", "status": "odd"}, item("3", "c", "pending")]);
        let (_, items) = call(Some(&text), json!({"todos": changes, "merge": true}));
        assert_eq!(items, ["1:a:completed", "2:B:pending", "3:c:pending"]);
    }

    #[test]
    fn of_two_items_with_one_id_the_last_stays_where_it_is() {
        let todos = json!([
            item("1", "first", "pending"),
            item("2", "b", "pending"),
            item("1", "last", "pending")
        ]);
        let (_, items) = call(None, json!({"todos": todos}));
        assert_eq!(items, ["2:b:pending", "1:last:pending"]);
    }

    #[test]
    fn missing_parts_get_defaults() {
        let (_, items) = call(None, json!({"todos": [{}]}));
        assert_eq!(items, ["?:(no description):pending"]);
    }

    #[test]
    fn a_list_we_did_not_write_counts_as_empty() {
        for kept in [json!(""), json!({}), json!([1]), json!({"todos": 5})] {
            assert!(kept_items(Some(&kept)).is_empty(), "{kept}");
        }
    }

    #[test]
    fn too_many_items_are_refused() {
        let todos: Vec<Value> = (0..300)
            .map(|n| item(&n.to_string(), "x", "pending"))
            .collect();
        let arguments = arguments::parse(NAME, &json!({"todos": todos})).unwrap();
        let error = changed(Vec::new(), arguments).unwrap_err();
        assert!(error.to_string().contains("300 items"), "{error}");
    }
}
