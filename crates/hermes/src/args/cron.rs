//! `hermes cron`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::JsonFlag;

#[derive(Debug, Args)]
pub struct CronArgs {
    #[command(subcommand)]
    pub command: Option<CronCommand>,
}

#[derive(Debug, Subcommand)]
pub enum CronCommand {
    /// List the jobs, how their schedules are read and when they run next; the default
    #[command(visible_alias = "ls", alias = "status")]
    List {
        /// Those that are over, too
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show all of a job
    Show {
        #[command(flatten)]
        job: JobName,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Make a job: `hermes cron add "every weekday at 9" "Summarise my unread mail"`
    #[command(visible_alias = "create")]
    Add {
        /// When: "every 2h", "first Monday of the month at noon", "tomorrow at 8 in Tokyo", "0 9 * * MON-FRI", "30m"
        schedule: String,
        /// What the agent is to do
        #[arg(value_name = "PROMPT", num_args = 0..)]
        prompt: Vec<String>,
        #[command(flatten)]
        options: Box<JobOptions>,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Change a job; what is not named stays
    #[command(alias = "update")]
    Edit {
        #[command(flatten)]
        job: JobName,
        /// When it runs from now on
        #[arg(long, value_name = "WORDS")]
        schedule: Option<String>,
        /// What the agent is to do from now on
        #[arg(long, value_name = "TEXT")]
        prompt: Option<String>,
        #[command(flatten)]
        options: Box<JobOptions>,
        /// One skill more; may be repeated
        #[arg(long, value_name = "NAME", conflicts_with = "skills")]
        add_skill: Vec<String>,
        /// One skill less; may be repeated
        #[arg(long, value_name = "NAME", conflicts_with = "skills")]
        remove_skill: Vec<String>,
        /// No skills
        #[arg(long, conflicts_with_all = ["skills", "add_skill", "remove_skill"])]
        clear_skills: bool,
        /// Ask the agent again, after --no-agent
        #[arg(long, conflicts_with = "no_agent")]
        agent: bool,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Stop a job for now
    Pause {
        #[command(flatten)]
        job: JobName,
    },
    /// Let a job go on
    Resume {
        #[command(flatten)]
        job: JobName,
    },
    /// Run a job as soon as may be, whatever its schedule says
    Run {
        #[command(flatten)]
        job: JobName,
    },
    /// Remove a job; its history stays for a while
    #[command(visible_aliases = ["rm", "delete"])]
    Remove {
        #[command(flatten)]
        job: JobName,
    },
    /// List what ran, how it went and where its result went
    #[command(visible_alias = "runs")]
    History {
        /// Of this job only: its id or name
        job: Option<String>,
        /// So many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        json: JsonFlag,
    },
    /// Show when a job runs next, or what a schedule in words means
    Next {
        /// The id or name of a job, or a schedule
        #[arg(value_name = "JOB|SCHEDULE", required = true, num_args = 1..)]
        what: Vec<String>,
    },
    /// Take over the jobs of Hermes Agent (cron/jobs.json); each comes once, and other commands do it by themselves
    Import,
    /// Run what is due now, once, and wait for it
    Tick,
}

#[derive(Debug, Args)]
pub struct JobName {
    /// Its id, the beginning of it, or its name
    #[arg(value_name = "JOB")]
    pub job: String,
}

/// What a job can be told.
#[derive(Debug, Args)]
pub struct JobOptions {
    /// A name
    #[arg(long)]
    pub name: Option<String>,
    /// Where results go: local (a file), origin, PLATFORM, PLATFORM:CHAT; with commas between
    #[arg(long, value_name = "TARGETS")]
    pub deliver: Option<String>,
    /// How often it runs; 0 for ever
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub repeat: Option<i64>,
    /// A skill to go by; may be repeated
    #[arg(long = "skill", value_name = "NAME")]
    pub skills: Vec<String>,
    /// MODEL or PROVIDER:MODEL; "" for that of the settings
    #[arg(long, value_name = "MODEL")]
    pub job_model: Option<String>,
    /// Toolsets, with commas between; "" for those of the settings
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub job_toolsets: Option<Vec<String>>,
    /// A file in scripts/ of the home that runs first; the agent is shown its output. "" for none
    #[arg(long, value_name = "FILE")]
    pub script: Option<String>,
    /// Only the script runs, and its output is delivered
    #[arg(long)]
    pub no_agent: bool,
    /// A job whose last result the agent is shown; may be repeated
    #[arg(long, value_name = "JOB")]
    pub context_from: Vec<String>,
    /// The folder it works in; "" for none
    #[arg(long, value_name = "FOLDER")]
    pub workdir: Option<PathBuf>,
    /// What becomes of times that were missed
    #[arg(long, value_enum)]
    pub misfire: Option<MisfireName>,
    /// It may begin up to so many seconds later
    #[arg(long, value_name = "SECONDS")]
    pub jitter: Option<u32>,
    /// How often a run that failed is tried again
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// How long a run may take; 0 for what the settings say
    #[arg(long, value_name = "SECONDS")]
    pub max_time: Option<u32>,
    /// What a run may cost; 0 for what the settings say
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<f64>,
    /// Deliver only what you must know, such as errors
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub silent: Option<bool>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum MisfireName {
    /// It runs once for all of them
    Once,
    /// They are left out
    Skip,
    /// It runs for each
    All,
}
