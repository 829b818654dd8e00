//! The tools that are built in.
//!
//! Each tool is one file with its schema, description, exposure, effect class, parallel safety, limits and code;
//! [`BUILT_IN`] is the one list of them. `toolset` has the groups that their exposures name. [`tool_search`] lets a model
//! find tools that would be too many to list, and [`cronjob`] and [`send_message`] are made where there are jobs and chats. File tools share `files` (those of this machine, or those where commands
//! run), `guard` (which files are out of bounds), `edits` and `diff` (who agrees to a change, and what they see), `ledger`
//! (what a session has read, who writes), `target` (what a write would change), `syntax` and `neighbours`; `web` judges
//! addresses, and fetches what they name.
//!
//! Knows neither where commands run nor what a command line would do: both are ports (`Terminal`, `CommandPolicy`). Who is
//! asked for consent, and when a call runs, is the agent's.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_core::{
    CommandPolicy, Exposure, FenceArea, Fencing, PrivateFolder, Processes, Terminal, Tool,
};

mod clarify;
mod cronjob;
mod delegate_task;
mod execute_code;
pub mod patch;
mod process;
mod read_file;
mod search_files;
mod send_message;
mod terminal;
mod todo;
mod tool_search;
mod web_extract;
mod write_file;

mod toolset;

mod arguments;
mod blocking;
mod diff;
mod documents;
mod edits;
mod files;
mod guard;
mod ledger;
mod lines;
mod neighbours;
mod syntax;
mod target;
mod typed;
mod web;

pub use cronjob::cronjob;
pub use edits::EditReview;
pub use execute_code::{CodeMode, CodePlace, CodeSettings};
pub use files::FilePlace;
pub use ledger::FileLedger;
pub use send_message::send_message;
pub use tool_search::{Catalogue, SearchLimits, finders, tool_search};
pub use toolset::{
    Selection, TOOLSETS, Toolset, UnknownToolset, is_elsewhere, runs_commands, select,
};
pub use web::{Blocklist, DownloadError, Downloads, Names, PrivateUrls, SystemNames, WebSettings};

/// Every built-in tool, in the order models see them.
pub const BUILT_IN: &[BuiltIn] = &[
    clarify::TOOL,
    delegate_task::TOOL,
    execute_code::TOOL,
    patch::TOOL,
    process::TOOL,
    read_file::TOOL,
    search_files::TOOL,
    terminal::TOOL,
    todo::TOOL,
    web_extract::TOOL,
    write_file::TOOL,
];

/// What the file of a tool declares.
#[derive(Clone, Copy)]
pub struct BuiltIn {
    pub name: &'static str,
    pub exposure: &'static Exposure,
    make: fn(&ToolPorts) -> Arc<dyn Tool>,
}

/// Makes all built-in tools; [`select`] says which of them a session offers.
pub fn built_in(ports: &ToolPorts) -> Vec<Arc<dyn Tool>> {
    BUILT_IN.iter().map(|tool| (tool.make)(ports)).collect()
}

/// Makes the tool that reads web pages, for pages that a person refers to.
pub fn page_reader(ports: &ToolPorts) -> Arc<dyn Tool> {
    (web_extract::TOOL.make)(ports)
}

/// Says why tools do not read a file, if so: what it is.
pub fn why_not_read(ports: &ToolPorts, path: &Path) -> Option<&'static str> {
    let guard = guard::Guard::new(ports);
    let guard = match &ports.private {
        Some(private) => guard.fenced(match &ports.fence {
            ToolFence::Held(fencing) | ToolFence::Missing { rules: fencing, .. } => {
                fencing.area(&private.folder)
            }
            // On this machine they have what Hermes keeps for them.
            ToolFence::Off => FenceArea {
                readable: Some(private.open.clone()),
                ..FenceArea::default()
            },
        }),
        None => guard,
    };
    guard.pinned().why_not_read(path)
}

/// What tools need of the world.
#[derive(Clone)]
pub struct ToolPorts {
    pub terminal: Arc<dyn Terminal>,
    pub processes: Arc<dyn Processes>,
    pub limits: ToolLimits,
    pub code: CodeSettings,
    /// The user's home folder: what `~` means, and where their keys are.
    pub home: Option<PathBuf>,
    /// Files and folders of ours that tools neither read nor write: keys and tokens.
    pub secret: Vec<PathBuf>,
    /// What whoever talks sees nothing of; the owner of the home sees all of it but the above.
    pub private: Option<PrivateFolder>,
    /// Files and folders of ours that tools read but do not write: the database, checkpoints.
    pub protected: Vec<PathBuf>,
    /// Settings of ours: tools change them when a person agrees.
    pub settings: Vec<PathBuf>,
    pub edit_review: EditReview,
    /// What command lines would do, and which the user refused or allowed for good.
    pub commands: Arc<dyn CommandPolicy>,
    /// Where the files are that tools read and write.
    pub file_place: FilePlace,
    /// What holds commands and file tools on this machine.
    pub fence: ToolFence,
    /// What sessions know of files; one for all sessions of a process.
    pub files: FileLedger,
    pub web: WebSettings,
}

/// What holds commands and file tools on this machine.
#[derive(Clone, Default)]
pub enum ToolFence {
    /// Nothing need do: commands run elsewhere.
    #[default]
    Off,
    /// Nothing does on this machine, and why. Whatever is not known to look only is asked about, and file tools keep to the
    /// rules that the fence would have.
    Missing {
        why: String,
        rules: Arc<dyn Fencing>,
    },
    /// Leaving it is what people are asked about.
    Held(Arc<dyn Fencing>),
}

/// How much one call may take and return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLimits {
    /// `file_read_max_chars`: about a quarter of these are tokens.
    pub read_chars_max: usize,
    /// `tool_output.max_lines`
    pub read_lines_max: usize,
    /// `tool_output.max_line_length`
    pub line_chars_max: usize,
    /// `tool_output.max_bytes`
    pub output_bytes_max: usize,
    /// `terminal.timeout`: for commands that name none.
    pub command_timeout: Duration,
    /// `delegation.max_concurrent_children`
    pub subagents_max: usize,
    /// The longest a command may ask for: a turn should not hang for an hour.
    pub command_timeout_max: Duration,
    /// `agent.clarify_timeout`: how long a question to the user waits.
    pub clarify_timeout: Duration,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            read_chars_max: 100_000,
            read_lines_max: 2000,
            line_chars_max: 2000,
            output_bytes_max: 50_000,
            command_timeout: Duration::from_secs(180),
            subagents_max: 3,
            command_timeout_max: Duration::from_secs(600),
            clarify_timeout: Duration::from_secs(3600),
        }
    }
}
