//! `hermes doctor`: everything that could be wrong, with the fix for each.
//!
//! Loads nothing before it looks: it must work exactly when other commands cannot start.

mod checkpoints;
mod commands;
mod files;
mod model;
mod sandbox;
mod servers;
mod system;
mod terminal;

use std::io;

use hermes_config::{
    Environment, Home, LoadError, Problem, Settings, Source, Sources, UserConfig, load_environment,
};
use serde_json::{Value, json};

use super::already_told;
use super::layout::{count, print_json};
use crate::args::{DoctorArgs, RunFlags};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::println;
use crate::style::Style;
use system::find_program;

pub(crate) async fn run(profile: Option<&str>, flags: &RunFlags, args: &DoctorArgs) -> Outcome<()> {
    let process = Environment::of_process();
    let home = Home::resolve(&process, profile)?;
    let repair = if args.fix {
        Repair::Safe
    } else {
        Repair::Nothing
    };
    let mut checks = files::home(&home, repair);
    checks.extend(files::variables(&home));
    let environment = load_environment(process.clone(), &home).unwrap_or(process);
    let (settings, found) = load_settings(&home, &environment, flags);
    checks.extend(found);
    checks.extend(settings.as_ref().and_then(unused));
    checks.extend(files::former(&home));
    checks.extend(files::database(&home, repair).await);
    checks.push(files::disk_space(&home));
    checks.extend(system::checks(&environment));
    checks.push(terminal::check(&environment));
    if let Some(settings) = settings {
        let cwd = std::env::current_dir().unwrap_or_else(|_| home.directory().to_path_buf());
        let base = Base {
            environment: environment.clone(),
            home,
            settings,
            cwd,
        };
        checks.extend(commands::checks(&base, args.offline).await);
        checks.push(checkpoints::check(&base).await);
        // A setting that cannot be read was told by `commands`.
        checks.extend(sandbox::check(&base).ok());
        let (models, servers) = tokio::join!(
            model::checks(&base, args.offline),
            servers::checks(&base, args.offline)
        );
        checks.extend(model::logins(&base));
        checks.extend(models);
        checks.extend(servers);
    } else {
        checks.push(not_looked_at());
    }
    report(&checks, args, &environment)
}

/// Whether to mend what can be mended without risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repair {
    Nothing,
    Safe,
}

/// What was looked at, and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    name: &'static str,
    state: State,
    text: String,
    /// What to do about it.
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    /// Works, but not as it might.
    Doubtful,
    Broken,
}

impl Check {
    fn good(name: &'static str, text: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Good,
            text: text.into(),
            fix: None,
        }
    }

    fn doubtful(name: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Doubtful,
            text: text.into(),
            fix: Some(fix.into()),
        }
    }

    fn broken(name: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: State::Broken,
            ..Self::doubtful(name, text, fix)
        }
    }

    fn shown(&self, style: Style) -> String {
        let mark = match self.state {
            State::Good => style.green("✓"),
            State::Doubtful => style.yellow("!"),
            State::Broken => style.red("✗"),
        };
        let line = format!("{mark} {}: {}", self.name, self.text);
        match &self.fix {
            Some(fix) => format!("{line}\n    fix: {fix}"),
            None => line,
        }
    }

    fn to_json(&self) -> Value {
        let state = match self.state {
            State::Good => "ok",
            State::Doubtful => "warning",
            State::Broken => "error",
        };
        json!({"check": self.name, "state": state, "text": self.text, "fix": self.fix})
    }
}

fn load_settings(
    home: &Home,
    environment: &Environment,
    flags: &RunFlags,
) -> (Option<Settings>, Vec<Check>) {
    const NAME: &str = "settings";
    let working_directory = std::env::current_dir().ok();
    let user_config = if flags.ignores_user_config() {
        UserConfig::Ignore
    } else {
        UserConfig::Read
    };
    let loaded = Settings::load(&Sources {
        home,
        environment,
        working_directory: working_directory.as_deref(),
        flags: Vec::new(),
        user_config,
    });
    match loaded {
        Err(error) => {
            let fix = match &error {
                LoadError::Read(error) => files::to_make_readable(error),
                error => error.hint().to_owned(),
            };
            (None, vec![Check::broken(NAME, error.to_string(), fix)])
        }
        Ok(settings) if settings.problems().is_empty() => {
            let found = Check::good(NAME, read_from(home, user_config));
            (Some(settings), vec![found])
        }
        Ok(settings) => {
            let problem = |problem: &Problem| {
                Check::doubtful(NAME, problem.to_string(), to_mend(&problem.origin.source))
            };
            let found = settings.problems().iter().map(problem).collect();
            (Some(settings), found)
        }
    }
}

/// Which settings count: those of the file, where there is one.
fn read_from(home: &Home, user_config: UserConfig) -> String {
    let path = home.config_yaml();
    let path = path.display();
    match user_config {
        UserConfig::Ignore => format!("`{path}` is ignored, as asked; built-in settings are used"),
        UserConfig::Read if home.config_yaml().exists() => path.to_string(),
        UserConfig::Read => format!(
            "no `{path}` yet; built-in settings are used (`hermes setup`, or `hermes config set KEY VALUE`, makes one)"
        ),
    }
}

/// Where a wrong setting is put right.
fn to_mend(source: &Source) -> String {
    match source {
        Source::Project(path) | Source::Managed(path) => {
            format!("mend that line of `{}`", path.display())
        }
        Source::User(_) | Source::Variable(_) | Source::Defaults | Source::Flags => {
            "`hermes config edit`".to_owned()
        }
    }
}

/// What needs settings is not to be passed over in silence.
fn not_looked_at() -> Check {
    Check::doubtful(
        "model",
        "not looked at, nor are commands and MCP servers, as the settings cannot be read",
        "mend the settings, then `hermes doctor` again",
    )
}

/// Settings that are there for nothing, in one line: `config check` lists them.
fn unused(settings: &Settings) -> Option<Check> {
    let unused = settings.unused().len() as u64;
    let text = format!(
        "{} without effect in this version",
        count(unused, "setting")
    );
    (unused > 0).then(|| Check::doubtful("settings", text, "`hermes config check` lists them"))
}

fn report(checks: &[Check], args: &DoctorArgs, environment: &Environment) -> Outcome<()> {
    let broken = checks
        .iter()
        .filter(|check| check.state == State::Broken)
        .count();
    if args.json.json {
        print_json(&checks.iter().map(Check::to_json).collect())?;
    } else {
        let style = Style::of(&io::stdout(), environment);
        checks
            .iter()
            .try_for_each(|check| println(&check.shown(style)))?;
    }
    match broken {
        0 => Ok(()),
        _ if args.json.json => Err(already_told()),
        broken => Err(
            Failure::new(format!("{} found", count(broken as u64, "problem")))
                .hint("each line with ✗ says what to do"),
        ),
    }
}
