//! What everything that talks to a model can be told: which model, which session, how careful, how it is shown.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use hermes_core::{ConsentOption, LeavesOut, SessionOptions};
use hermes_runtime::tools::toolsets::TERMINAL;

/// Flags of everything that talks to a model.
#[derive(Debug, Clone, Default, Args)]
pub struct RunFlags {
    /// Use this model, as MODEL or PROVIDER:MODEL
    #[arg(short, long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Ask this provider; `hermes model list` shows the names
    #[arg(long, value_name = "PROVIDER")]
    pub provider: Option<String>,

    /// Offer only these toolsets, separated by commas (`none` for no tools)
    #[arg(short, long, value_name = "A,B", value_delimiter = ',')]
    pub toolsets: Vec<String>,

    /// Let new conversations work by these skills, separated by commas
    #[arg(short, long, value_name = "A,B", value_delimiter = ',')]
    pub skills: Vec<String>,

    /// Resume a session by its id, a beginning of it, or its title; alone, choose one from a list
    #[arg(short, long, value_name = "ID|TITLE", num_args = 0..=1, default_missing_value = "", conflicts_with = "continue_last")]
    pub resume: Option<String>,

    /// Continue the latest session, or the one with this id or title
    #[arg(short = 'c', long = "continue", value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    pub continue_last: Option<String>,

    /// With -c: go on with what a chat platform was last told, such as telegram
    #[arg(long, value_name = "PLATFORM", requires = "continue_last")]
    pub from: Option<String>,

    /// Stay in this folder instead of going to the resumed session's own
    #[arg(long)]
    pub no_restore_cwd: bool,

    /// Work in a new git worktree of this repository
    #[arg(short, long)]
    pub worktree: bool,

    /// Keep a checkpoint of the project before the first change of each turn, for /rollback
    #[arg(long)]
    pub checkpoints: bool,

    /// Run what needs consent without asking; what is forbidden or denied by the settings stays so
    #[arg(long)]
    pub yolo: bool,

    /// Ignore config.yaml: built-in settings only
    #[arg(long)]
    pub ignore_user_config: bool,

    /// Ignore SOUL.md and the project's context files
    #[arg(long)]
    pub ignore_rules: bool,

    /// Ignore config.yaml, SOUL.md and context files: for finding out what is wrong
    #[arg(long)]
    pub safe_mode: bool,

    /// Model requests per turn, at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_turns: Option<u32>,

    /// Write a JSON report of tokens and cost to this file, also when the run fails
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub usage_file: Option<PathBuf>,

    /// Print every event as a line of JSON on standard output
    #[arg(long)]
    pub json: bool,

    /// Talk in plain lines, without a screen that is redrawn: for screen readers and simple terminals
    #[arg(long)]
    pub plain: bool,

    #[command(flatten)]
    pub habits: HabitFlags,
}

/// Flags of Hermes Agent that ask for what happens anyway: scripts and aliases that have them go on working.
#[derive(Debug, Clone, Default, Args)]
pub struct HabitFlags {
    /// Use the terminal interface, which is the only one beside --plain
    #[arg(long, hide = true)]
    pub tui: bool,

    /// The same
    #[arg(long, hide = true)]
    pub cli: bool,

    /// Accept hooks; there are none
    #[arg(long, hide = true)]
    pub accept_hooks: bool,
}

#[derive(Debug, Args)]
pub struct ChatArgs {
    #[command(flatten)]
    pub run: RunFlags,

    /// Answer this and exit
    #[arg(short, long, value_name = "TEXT")]
    pub query: Option<String>,

    /// With -q: only the answer on standard output, the session id on standard error
    #[arg(short = 'Q', long, requires = "query")]
    pub quiet: bool,

    /// Attach an image to the first message
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub image: Vec<PathBuf>,

    /// A word for where this session comes from; `tool` hides it from lists
    #[arg(long, value_name = "TAG")]
    pub source: Option<String>,
}

impl RunFlags {
    /// Joins the flags before and after `chat`; the later ones win.
    pub fn over(self, earlier: Self) -> Self {
        Self {
            model: self.model.or(earlier.model),
            provider: self.provider.or(earlier.provider),
            toolsets: if self.toolsets.is_empty() {
                earlier.toolsets
            } else {
                self.toolsets
            },
            skills: [earlier.skills, self.skills].concat(),
            resume: self.resume.or(earlier.resume),
            continue_last: self.continue_last.or(earlier.continue_last),
            from: self.from.or(earlier.from),
            no_restore_cwd: self.no_restore_cwd || earlier.no_restore_cwd,
            worktree: self.worktree || earlier.worktree,
            checkpoints: self.checkpoints || earlier.checkpoints,
            yolo: self.yolo || earlier.yolo,
            ignore_user_config: self.ignore_user_config || earlier.ignore_user_config,
            ignore_rules: self.ignore_rules || earlier.ignore_rules,
            safe_mode: self.safe_mode || earlier.safe_mode,
            max_turns: self.max_turns.or(earlier.max_turns),
            usage_file: self.usage_file.or(earlier.usage_file),
            json: self.json || earlier.json,
            plain: self.plain || earlier.plain,
            habits: earlier.habits,
        }
    }

    /// What a conversation is asked to be.
    pub fn options(&self) -> SessionOptions {
        SessionOptions {
            model: self.model.clone(),
            provider: self.provider.clone(),
            toolsets: self.toolsets.clone(),
            skills: self.skills.clone(),
            consent: if self.yolo {
                ConsentOption::Allow
            } else {
                ConsentOption::AsSet
            },
            steps_max: self.max_turns,
            checkpoints: self.checkpoints,
            leaves_out: LeavesOut {
                user_config: self.ignores_user_config(),
                rules: self.ignores_rules(),
                servers: self.safe_mode,
            },
            // Whatever its source is called.
            surface: Some(TERMINAL.to_owned()),
            ..SessionOptions::default()
        }
    }

    pub fn ignores_user_config(&self) -> bool {
        self.ignore_user_config || self.safe_mode
    }

    pub fn ignores_rules(&self) -> bool {
        self.ignore_rules || self.safe_mode
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Cli, Command};

    #[test]
    fn flags_may_stand_before_and_after_chat() {
        let cli =
            Cli::try_parse_from(["hermes", "-m", "a", "--yolo", "chat", "-q", "hi", "-m", "b"])
                .unwrap();
        let Some(Command::Chat(chat)) = cli.command else {
            panic!("chat")
        };
        let run = chat.run.over(cli.run);
        assert_eq!((run.model.as_deref(), run.yolo), (Some("b"), true));
    }

    #[test]
    fn continue_takes_a_name_or_none() {
        let name = |args: &[&str]| Cli::try_parse_from(args).unwrap().run.continue_last;
        assert_eq!(name(&["hermes", "-c"]).as_deref(), Some(""));
        assert_eq!(name(&["hermes", "-c", "notes"]).as_deref(), Some("notes"));
        assert_eq!(name(&["hermes"]), None);
    }
}
