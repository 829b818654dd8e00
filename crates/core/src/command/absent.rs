//! Slash commands of Hermes Agent that are not here: people type them from habit, and should hear what to do instead.

const BY_ITSELF: &str = "it is not in this version";
const NOTES: &str = "/learned lists what it learned, /memory and /skills what it keeps";

#[rustfmt::skip]
const ABSENT: &[(&str, &str)] = &[
    ("agents", "the status row shows what runs in the background"),
    ("approve", "answer the question itself, or `hermes approvals` in another terminal"),
    ("background", "ask for it in words: it can give tasks to subagents that work in the background"),
    ("bg", "ask for it in words: it can give tasks to subagents that work in the background"),
    ("blueprint", BY_ITSELF),
    ("browser", BY_ITSELF),
    ("btw", "ask for it in words: it can give tasks to subagents that work in the background"),
    ("bundles", "name several skills one after the other: /ONE /OTHER TEXT"),
    ("codex-runtime", BY_ITSELF),
    ("compose", "Ctrl-G opens your editor"),
    ("cron", "schedules are not in this version yet"),
    ("curator", "`hermes skills curate` looks after skills"),
    ("debug", "`hermes doctor` and `hermes logs` show what is wrong"),
    ("deny", "answer the question itself, or `hermes approvals` in another terminal"),
    ("fast", BY_ITSELF),
    ("footer", "the last row shows the model, the context and the folder"),
    ("goal", BY_ITSELF),
    ("handoff", "chat platforms are not in this version yet"),
    ("indicator", BY_ITSELF),
    ("journey", NOTES),
    ("kanban", BY_ITSELF),
    ("learn", NOTES),
    ("moa", "/model moa:NAME lets a mixture answer"),
    ("plugins", "add tools with MCP servers: `hermes mcp add`"),
    ("prompt", "Ctrl-G opens your editor"),
    ("redraw", "Ctrl-L draws the screen anew"),
    ("reload", "settings and keys are read again with your next message"),
    ("save", "everything is saved already; `hermes sessions export` writes it to a file"),
    ("skin", BY_ITSELF),
    ("snapshot", "/rollback brings files back"),
    ("statusbar", BY_ITSELF),
    ("subgoal", BY_ITSELF),
    ("suggestions", BY_ITSELF),
    ("tasks", "the status row shows what runs in the background"),
    ("timestamps", "`hermes sessions show` has the times"),
    ("update", "put a newer program in the place of this one"),
    ("verbose", "Ctrl-O shows what tools print"),
    ("voice", "speech is not in this version yet"),
    ("whoami", "/status and /profile show who and where you are"),
];

/// What to do instead of a command that Hermes Agent has and nothing here is called.
pub fn instead_of(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let row = ABSENT.iter().find(|(absent, _)| *absent == name);
    row.map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Surface, is_name};

    #[test]
    fn nothing_on_the_list_is_here_and_nothing_stands_twice() {
        for (at, (name, _)) in ABSENT.iter().enumerate() {
            assert!(!is_name(name, Surface::Terminal), "{name}");
            assert_eq!(ABSENT.iter().position(|(other, _)| other == name), Some(at));
        }
        assert!(instead_of("Save").is_some() && instead_of("svae").is_none());
    }
}
