//! What a home of Hermes Agent holds that this version does not use yet. Nothing of it is changed or removed.

use std::fs;
use std::path::Path;

use hermes_config::Home;

use crate::layout::size;

/// Something that is there and not used.
#[derive(Debug, PartialEq, Eq)]
pub struct Idle {
    /// Its path in the home.
    pub name: &'static str,
    pub text: String,
}

/// A file or folder of Hermes Agent, and what is in it.
struct Known {
    name: &'static str,
    what: &'static str,
}

const fn known(name: &'static str, what: &'static str) -> Known {
    Known { name, what }
}

#[rustfmt::skip]
const KNOWN: &[Known] = &[
    known("state.db", "its conversations"),
    known("sessions", "older conversations"),
    known("cron/jobs.json", "scheduled jobs"),
    known("plugins", "plug-ins"),
    known("shell-hooks-allowlist.json", "hooks that were allowed"),
    known("skins", "colours"),
    known("pairing", "people that chat platforms may let in"),
    known("channel_directory.json", "channels of chat platforms"),
    known("kanban.db", "its board"),
    known(".op.env", "a token of 1Password"),
    known(".hermes_history", "lines that were typed"),
];

/// What of Hermes Agent is used as it is.
const USED: &[(&str, &str)] = &[
    ("config.yaml", "settings"),
    (".env", "keys"),
    ("auth.json", "keys and logins"),
    ("SOUL.md", "who it is"),
    ("memories/MEMORY.md", "what it noted"),
    ("memories/USER.md", "what it noted about you"),
    ("skills", "skills"),
    ("skill-bundles", "bundles of skills"),
    ("scripts", "scripts of jobs"),
    ("webhook_subscriptions.json", "webhooks"),
    ("hooks", "hooks of the gateway"),
];

/// Lists what is there and not used.
pub fn idle(home: &Home) -> Vec<Idle> {
    let found = KNOWN.iter().filter_map(|known| {
        let amount = amount(&home.directory().join(known.name))?;
        Some(Idle {
            name: known.name,
            text: format!("{} ({}, {amount})", known.name, known.what),
        })
    });
    found.collect()
}

/// Lists what is there and used as it is.
pub fn used(home: &Home) -> Vec<String> {
    let is_there = |(name, _): &&(&str, &str)| amount(&home.directory().join(name)).is_some();
    let there = USED.iter().filter(is_there);
    there
        .map(|(name, what)| format!("{name} ({what})"))
        .collect()
}

/// How much is at a path; nothing when it is empty or not there.
fn amount(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    if metadata.is_dir() {
        let is_shown = |entry: &fs::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
        let entries = fs::read_dir(path).ok()?.flatten().filter(is_shown).count();
        return (entries > 0).then(|| match entries {
            1 => "1 entry".to_owned(),
            entries => format!("{entries} entries"),
        });
    }
    (metadata.len() > 0).then(|| size(metadata.len()))
}
