//! Everything that could be wrong, with the fix for each: what `hermes doctor` tells.
//!
//! Loads nothing before it looks: it must work exactly when nothing else can start. Start at [`Examination::run`].

mod checkpoints;
mod commands;
mod files;
mod model;
mod sandbox;
mod servers;
mod system;
mod user_model;

use hermes_config::{
    Environment, Home, LoadError, Problem, Settings, Source, Sources, UserConfig, load_environment,
};
use hermes_core::SessionOptions;

use crate::base::Base;
use crate::error::Result;
use crate::layout::count;
use crate::zones::zone_problem;
use system::find_program;

/// What is looked at, and how closely.
pub struct Examination<'a> {
    pub profile: Option<&'a str>,
    pub options: &'a SessionOptions,
    pub repair: Repair,
    /// Nothing but this machine is asked.
    pub is_offline: bool,
    /// Looks at what the findings are shown on, which only the surface knows.
    pub terminal: fn(&Environment) -> Check,
}

/// What was found, and the environment it was found in.
pub struct Examined {
    pub checks: Vec<Check>,
    pub environment: Environment,
}

impl Examination<'_> {
    pub async fn run(self) -> Result<Examined> {
        let process = Environment::of_process();
        let home = Home::resolve(&process, self.profile)?;
        let mut checks = files::home(&home, self.repair);
        checks.extend(files::variables(&home));
        let environment = load_environment(process.clone(), &home).unwrap_or(process);
        let (settings, found) = load_settings(&home, &environment, self.options);
        checks.extend(found);
        checks.extend(settings.as_ref().and_then(unused));
        checks.extend(settings.as_ref().and_then(zone));
        checks.extend(files::former(&home));
        checks.extend(files::database(&home, self.repair).await);
        checks.push(files::disk_space(&home));
        checks.extend(system::checks(&environment));
        checks.push((self.terminal)(&environment));
        match settings {
            Some(settings) => {
                let cwd = std::env::current_dir();
                let cwd = cwd.unwrap_or_else(|_| home.directory().to_path_buf());
                let base = Base::of(environment.clone(), home, settings, cwd);
                checks.extend(with_settings(&base, self.is_offline).await);
            }
            None => checks.push(not_looked_at()),
        }
        Ok(Examined {
            checks,
            environment,
        })
    }
}

async fn with_settings(base: &Base, is_offline: bool) -> Vec<Check> {
    let mut checks = commands::checks(base, is_offline).await;
    checks.push(checkpoints::check(base).await);
    // A setting that cannot be read was told by `commands`.
    checks.extend(sandbox::check(base).ok());
    let (models, servers, user_model) = tokio::join!(
        model::checks(base, is_offline),
        servers::checks(base, is_offline),
        user_model::checks(base, is_offline)
    );
    checks.extend(model::logins(base));
    checks.extend(models);
    checks.extend(servers);
    checks.extend(user_model);
    checks
}

/// Whether to mend what can be mended without risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    Nothing,
    Safe,
}

/// What was looked at, and how it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    pub text: String,
    /// What to do about it.
    pub fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Good,
    /// Works, but not as it might.
    Doubtful,
    Broken,
}

impl Check {
    pub fn good(name: &'static str, text: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Good,
            text: text.into(),
            fix: None,
        }
    }

    pub fn doubtful(name: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            state: State::Doubtful,
            text: text.into(),
            fix: Some(fix.into()),
        }
    }

    pub fn broken(name: &'static str, text: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            state: State::Broken,
            ..Self::doubtful(name, text, fix)
        }
    }
}

fn load_settings(
    home: &Home,
    environment: &Environment,
    options: &SessionOptions,
) -> (Option<Settings>, Vec<Check>) {
    const NAME: &str = "settings";
    let working_directory = std::env::current_dir().ok();
    let user_config = if options.leaves_out.user_config {
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

/// Every job would run at other times than was meant.
fn zone(settings: &Settings) -> Option<Check> {
    let problem = zone_problem(settings)?;
    let source = settings.origin("timezone")?.source;
    Some(Check::broken("settings", problem, to_mend(&source)))
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
