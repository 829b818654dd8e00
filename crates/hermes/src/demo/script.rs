//! The demo's model: it knows its lines. Everything around it is real.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use hermes_core::{
    Cost, Delta, FinishReason, Finished, Message, Model, ModelError, ModelName, ModelRequest,
    Origin, Role, Usage,
};
use serde_json::{Value, json};

/// Answers by what the user said last and by how far the turn has come, so that a restart changes nothing.
pub struct DemoModel {
    /// Between two words.
    pub pause: Duration,
}

/// What the user says in each act.
pub const FIRST: &str = "Read notes.txt, put the open tasks into tasks.md, and count them.";
pub const SCRIPTED: &str = "Which of my lists mention the laurel, and how long are they?";
pub const LEFT_RUNNING: &str = "Put the kettle on, and count my days meanwhile.";
pub const INTERRUPTED: &str = "Wait for the build to finish.";
pub const CRASHED: &str = "Send the release announcement.";
pub const PATCHED: &str = "The laurel in garden/plan.md wants water every day.";
pub const RECORDS: &str = "Look up in the records what we talked about, twice to be sure.";

pub const DELEGATED: &str = "How many tasks are open in notes.txt, and over how many days?";
/// What its two subagents are told.
const COUNT_TASKS: &str = "Count the open tasks in notes.txt.";
const COUNT_DAYS: &str = "Count the days in notes.txt.";

pub const LIST: &str = "How many tons are in harbour.csv?";
pub const NEXT_LIST: &str = "How many tons are in spring.csv?";
/// The skill that a review writes between the two.
pub const SKILL: &str = "harbour-lists";
const SKILL_TEXT: &str = "---\n\
name: harbour-lists\n\
description: \"Adds up tons in harbour lists. Use when: a .csv with ships and tons is to be summed.\"\n\
---\n\
The tons have decimal commas, and awk drops what follows a comma. Turn them into points first:\n\n\
```sh\n\
tr , . < FILE | LC_ALL=C awk -F';' 'NR > 1 { sum += $3 } END { print sum }'\n\
```\n";

pub const BERTH: &str =
    "My boat is the Halcyon. She lies at berth fourteen, behind the lighthouse.";
pub const RULES: &str = "Read rules.txt, the rules of the harbour.";
pub const NIGHT: &str = "And what do they say about the night?";
pub const WHERE: &str = "Where did I say that my boat lies?";
/// What a summary of these leaves out.
const PLACE: &str = "berth fourteen";
const SUMMARY_TEXT: &str = "## Goal\nThe user wants to know the rules of the harbour.\n\
## State\nrules.txt was read: 240 rules about nets, fish, casting off, and lamps at night.\n";

/// Requests that no person makes.
const LOOK_BACK: &str = "(look back)";
const SUMMARISE: &str = "(summarise)";
/// What the model writes in the second act.
const SCRIPT: &str = "from hermes_tools import read_file, terminal

for name in terminal('ls notes.txt tasks.md').split():
    lines = read_file(name).splitlines()
    found = [line for line in lines if 'laurel' in line]
    print(name, len(lines), 'lines;', found)
print(terminal('date +%A').strip(), 'is a good day to water it')
";

enum ScriptLine {
    Text(&'static str),
    Calls(Vec<(&'static str, Value)>),
}

/// What a request says, as far as the script goes by it.
struct Heard<'a> {
    said: String,
    /// Replies since then.
    step: usize,
    last_result: &'a str,
    knows_skill: bool,
    sees_place: bool,
}

impl<'a> Heard<'a> {
    fn of(request: &ModelRequest<'a>) -> Self {
        let messages = request.messages;
        let user = messages
            .iter()
            .rposition(|message| message.role == Role::User)
            .unwrap_or(0);
        let replies = messages.iter().skip(user);
        let last = messages.last().and_then(Message::tool_result);
        let result_of = |message: &Message| message.tool_result().map(|result| result.text.clone());
        let sees = |message: &Message| {
            let text = result_of(message).unwrap_or_else(|| message.text());
            text.contains(PLACE)
        };
        Self {
            said: said(request, messages.get(user)),
            step: replies
                .filter(|message| message.role == Role::Assistant)
                .count(),
            last_result: last.map_or("", |result| result.text.as_str()),
            knows_skill: request.system.contains(SKILL),
            sees_place: messages.iter().any(sees),
        }
    }
}

fn said(request: &ModelRequest<'_>, last: Option<&Message>) -> String {
    match last {
        Some(_) if request.tools.is_empty() => SUMMARISE.to_owned(),
        Some(last)
            if last.origin == Some(Origin::Notice) && last.text().contains("skill_manage") =>
        {
            LOOK_BACK.to_owned()
        }
        last => last.map(Message::text).unwrap_or_default(),
    }
}

/// What it says about lists, boats and what it has learned.
fn learning_line(heard: &Heard<'_>) -> Option<ScriptLine> {
    let terminal = |command: &str| {
        let command = json!({ "command": command });
        ScriptLine::Calls(vec![("terminal", command)])
    };
    let line = match (heard.said.as_str(), heard.step) {
        (LIST, 0) => {
            terminal("LC_ALL=C awk -F';' 'NR > 1 { sum += $3 } END { print sum }' harbour.csv")
        }
        (LIST, 1) => terminal(
            "tr , . < harbour.csv | LC_ALL=C awk -F';' 'NR > 1 { sum += $3 } END { print sum }'",
        ),
        (LIST, _) => ScriptLine::Text(
            "23.5 tons. My first sum was too small: the tons have decimal commas, and awk drops what follows a comma.",
        ),
        (LOOK_BACK, 0) => ScriptLine::Calls(vec![(
            "skill_manage",
            json!({ "action": "create", "name": SKILL, "content": SKILL_TEXT }),
        )]),
        (LOOK_BACK, _) => ScriptLine::Text("That is all that is worth keeping."),
        (NEXT_LIST, 0) if heard.knows_skill => {
            ScriptLine::Calls(vec![("skill_view", json!({ "name": SKILL }))])
        }
        (NEXT_LIST, 1) => terminal(
            "tr , . < spring.csv | LC_ALL=C awk -F';' 'NR > 1 { sum += $3 } END { print sum }'",
        ),
        (NEXT_LIST, 2) => ScriptLine::Text("5.25 tons, right at the first try."),
        (BERTH, _) => ScriptLine::Text("A fine name for a boat."),
        (RULES, 0) => ScriptLine::Calls(vec![("read_file", json!({ "path": "rules.txt" }))]),
        (RULES, _) => ScriptLine::Text("Many rules: about nets, fish, casting off, and the night."),
        (NIGHT, _) => ScriptLine::Text("A lamp at the mast, or no mooring."),
        (SUMMARISE, _) => ScriptLine::Text(SUMMARY_TEXT),
        (WHERE, 0) if !heard.sees_place => ScriptLine::Calls(vec![(
            "session_search",
            json!({ "query": "my boat lies at berth", "role_filter": "user" }),
        )]),
        (WHERE, 1) if heard.last_result.contains(PLACE) => ScriptLine::Text(
            "At berth fourteen, behind the lighthouse. I no longer saw that, and looked it up.",
        ),
        _ => return None,
    };
    Some(line)
}

fn line(said: &str, step: usize, last_result: &str) -> ScriptLine {
    match (said, step) {
        (FIRST, 0) => ScriptLine::Calls(vec![
            ("read_file", json!({ "path": "notes.txt" })),
            (
                "todo",
                json!({ "todos": [
                    { "id": "1", "content": "Collect the open tasks", "status": "in_progress" },
                    { "id": "2", "content": "Count them", "status": "pending" },
                ]}),
            ),
        ]),
        (FIRST, 1) => ScriptLine::Calls(vec![(
            "write_file",
            json!({ "path": "tasks.md", "content": "# Open tasks\n- [ ] book the train to Delphi\n- [ ] water the laurel\n- [ ] answer Penelope\n" }),
        )]),
        (FIRST, 2) => ScriptLine::Calls(vec![(
            "terminal",
            json!({ "command": "grep -c '\\[ \\]' tasks.md" }),
        )]),
        (FIRST, _) => ScriptLine::Text(
            "Three tasks are open: the train to Delphi, the laurel, and a letter to Penelope. They are in tasks.md.",
        ),
        (SCRIPTED, 0) => ScriptLine::Calls(vec![("execute_code", json!({ "code": SCRIPT }))]),
        (SCRIPTED, _) => {
            ScriptLine::Text("Both do: notes.txt says so on Tuesday, tasks.md as an open task.")
        }
        (LEFT_RUNNING, 0) => ScriptLine::Calls(vec![(
            "terminal",
            json!({ "command": "sleep 1; echo the kettle sings", "background": true }),
        )]),
        (LEFT_RUNNING, 1) => ScriptLine::Calls(vec![
            ("terminal", json!({ "command": "grep -c 'day$' notes.txt" })),
            (
                "process",
                json!({ "action": "wait", "session_id": started(last_result), "timeout": 20 }),
            ),
        ]),
        (LEFT_RUNNING, _) => {
            ScriptLine::Text("Two days, counted while the water boiled. Tea is ready.")
        }
        (INTERRUPTED, 0) => ScriptLine::Calls(vec![(
            "terminal",
            json!({ "command": "echo building; sleep 30" }),
        )]),
        (CRASHED, 0) => ScriptLine::Calls(vec![(
            "terminal",
            json!({ "command": "echo sent >> outbox.txt; sleep 30", "timeout": 60 }),
        )]),
        (CRASHED, 1) => {
            ScriptLine::Calls(vec![("terminal", json!({ "command": "cat outbox.txt" }))])
        }
        (CRASHED, _) if last_result.contains("sent") => ScriptLine::Text(
            "The crash left it open whether the announcement went out. I looked: outbox.txt has it, once, so I did not send it again.",
        ),
        (CRASHED, _) => ScriptLine::Text("The announcement did not go out."),
        (PATCHED, 0) => ScriptLine::Calls(vec![(
            "patch",
            json!({ "path": "garden/plan.md", "old_string": "laurel: on Tuesdays", "new_string": "laurel: every day" }),
        )]),
        (PATCHED, _) => ScriptLine::Text("The plan says so now."),
        (RECORDS, 0 | 1) => ScriptLine::Calls(vec![(
            "mcp__records__conversations_list",
            json!({ "limit": 2 }),
        )]),
        (DELEGATED, 0) => ScriptLine::Calls(vec![(
            "delegate_task",
            json!({ "tasks": [{ "goal": COUNT_TASKS }, { "goal": COUNT_DAYS }] }),
        )]),
        (DELEGATED, _) => ScriptLine::Text(
            "Three tasks are open, over two days. Two subagents counted, side by side.",
        ),
        (COUNT_TASKS, 0) => ScriptLine::Calls(vec![(
            "terminal",
            json!({ "command": "grep -c '(open)' notes.txt" }),
        )]),
        (COUNT_TASKS, _) => ScriptLine::Text("Three tasks are open."),
        (COUNT_DAYS, 0) => ScriptLine::Calls(vec![(
            "terminal",
            json!({ "command": "grep -c 'day$' notes.txt" }),
        )]),
        (COUNT_DAYS, _) => ScriptLine::Text("It has two days."),
        (RECORDS, _) => ScriptLine::Text("Both times the records say the same."),
        _ => ScriptLine::Text("That is not in my script."),
    }
}

/// The id of a process, out of the result that says it was started.
fn started(result: &str) -> &str {
    let after = result.split(" as ").nth(1).unwrap_or_default();
    after.split(';').next().unwrap_or_default()
}

impl Model for DemoModel {
    fn name(&self) -> ModelName {
        ModelName {
            provider: "demo".into(),
            model: "scripted".into(),
        }
    }

    fn context_window(&self) -> Option<u64> {
        Some(128_000)
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let heard = Heard::of(&request);
        let line = learning_line(&heard)
            .unwrap_or_else(|| line(&heard.said, heard.step, heard.last_result));
        let pause = self.pause;
        let deltas = deltas(line, heard.step, self.name());
        let paced = stream::iter(deltas).then(move |delta| async move {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            Ok(delta)
        });
        paced.boxed()
    }
}

fn deltas(line: ScriptLine, step: usize, model: ModelName) -> Vec<Delta> {
    let (mut deltas, reason) = match line {
        ScriptLine::Text(text) => {
            let words = text
                .split_inclusive(' ')
                .map(|word| Delta::Text(word.to_owned()));
            (words.collect::<Vec<_>>(), FinishReason::Stop)
        }
        ScriptLine::Calls(calls) => {
            let calls = calls
                .into_iter()
                .enumerate()
                .flat_map(|(index, (name, arguments))| {
                    [
                        Delta::CallStarted {
                            index,
                            id: format!("call_{step}_{index}"),
                            name: name.to_owned(),
                        },
                        Delta::CallArguments {
                            index,
                            json: arguments.to_string(),
                        },
                    ]
                });
            (calls.collect(), FinishReason::ToolCalls)
        }
    };
    deltas.push(Delta::Finished(Finished {
        reason,
        usage: Usage::default(),
        cost: Cost::Included,
        model,
    }));
    deltas
}

#[cfg(test)]
mod tests {
    use hermes_core::{ResultStatus, ToolResult};
    use hermes_testkit::contract::model::tell;

    use super::*;

    /// The contract suite cannot tell this model what to say; [`tell`] checks what holds whatever it says.
    #[tokio::test]
    async fn every_line_keeps_the_contract_of_a_model() {
        let model = DemoModel {
            pause: Duration::ZERO,
        };
        for said in [
            FIRST,
            SCRIPTED,
            LEFT_RUNNING,
            INTERRUPTED,
            CRASHED,
            PATCHED,
            RECORDS,
            DELEGATED,
            COUNT_TASKS,
            COUNT_DAYS,
            LIST,
            NEXT_LIST,
            BERTH,
            RULES,
            NIGHT,
            WHERE,
            "something else",
        ] {
            let mut messages = vec![Message::user(said)];
            let reason = loop {
                let told = tell(&model, &messages).await;
                let reason = told.end.expect("the demo's model never fails").reason;
                let calls = told.message.calls().cloned().collect::<Vec<_>>();
                messages.push(told.message);
                let result =
                    |call| Message::result(ToolResult::new(call, ResultStatus::Ok, "sent"));
                messages.extend(calls.iter().map(result));
                if reason != FinishReason::ToolCalls {
                    break reason;
                }
            };
            assert_eq!(reason, FinishReason::Stop, "{said}");
        }
    }
}
