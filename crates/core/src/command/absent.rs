//! Slash commands of Hermes Agent that are not here: people type them from habit, and should hear what to do instead.

use super::Surface;

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
    ("curator", "`hermes skills curate` looks after skills"),
    ("debug", "`hermes doctor` and `hermes logs` show what is wrong"),
    ("deny", "answer the question itself, or `hermes approvals` in another terminal"),
    ("fast", BY_ITSELF),
    ("footer", "the last row shows the model, the context and the folder"),
    ("goal", BY_ITSELF),
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
];

/// Where a chat has another way than a terminal: it has no keys, no rows and no folder of one's own.
#[rustfmt::skip]
const ABSENT_IN_CHATS: &[(&str, &str)] = &[
    ("agents", "/status shows what runs"),
    ("compose", "write as many lines as you like"),
    ("footer", "/status shows the model, the context and the folder"),
    ("prompt", "write as many lines as you like"),
    ("redraw", "there is no screen to draw here"),
    ("tasks", "/status shows what runs"),
    ("topic", "write in another topic or thread: each has a conversation of its own"),
    ("verbose", "what tools print is in the conversation: `hermes sessions show` on the machine"),
];

/// What to do instead of a command that Hermes Agent has and nothing here is called.
pub fn instead_of(name: &str, surface: Surface) -> Option<&'static str> {
    let name = name.to_lowercase();
    let in_chats = ABSENT_IN_CHATS.iter().filter(|_| surface == Surface::Chat);
    let mut rows = in_chats.chain(ABSENT);
    let row = rows.find(|(absent, _)| *absent == name);
    row.map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::is_name;

    #[test]
    fn nothing_on_the_list_is_here_and_nothing_stands_twice() {
        for (at, (name, _)) in ABSENT.iter().enumerate() {
            assert!(!is_name(name, Surface::Terminal), "{name}");
            assert_eq!(ABSENT.iter().position(|(other, _)| other == name), Some(at));
        }
        let terminal = |name| instead_of(name, Surface::Terminal);
        assert!(terminal("Save").is_some() && terminal("svae").is_none());
    }

    #[test]
    fn no_chat_is_told_of_keys() {
        for (name, _) in ABSENT {
            let told = instead_of(name, Surface::Chat).unwrap();
            let is_terminals = told.contains("Ctrl-") || told.contains(" row ");
            assert!(!is_terminals, "{name}: {told}");
        }
    }
}
