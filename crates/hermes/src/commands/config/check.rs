//! `hermes config check`: every mistake in the settings files, with its place.

use hermes_config::{
    DotEnv, Environment, Home, LoadError, Settings, Sources, UserConfig, load_environment,
};

use crate::commands::already_told;
use crate::commands::gateway::chats;
use crate::failure::Outcome;
use crate::output::println;

pub(super) fn run(home: &Home, process: &Environment) -> Outcome<()> {
    let problems = problems(home, process);
    problems.iter().try_for_each(|problem| println(problem))?;
    let unused = unused(home, process);
    unused.iter().try_for_each(|unused| println(unused))?;
    if problems.is_empty() {
        println("ok")
    } else {
        Err(already_told())
    }
}

/// Lists what is wrong, one line each; empty when all is well.
pub(crate) fn problems(home: &Home, process: &Environment) -> Vec<String> {
    let mut problems = variable_problems(home);
    let environment = load_environment(process.clone(), home).unwrap_or_else(|_| process.clone());
    problems.extend(setting_problems(home, &environment));
    problems
}

/// What is wrong with `.env`.
pub(crate) fn variable_problems(home: &Home) -> Vec<String> {
    let path = home.dot_env();
    match DotEnv::open(&path) {
        Err(error) => vec![format!("{error} ({})", error.hint())],
        Ok(file) => {
            let problems = file.problems().iter();
            let told = problems
                .map(|problem| format!("{}:{}: {}", path.display(), problem.line, problem.message));
            told.collect()
        }
    }
}

/// What is set for nothing: no mistake, and worth knowing for whoever wonders.
pub(super) fn unused(home: &Home, process: &Environment) -> Vec<String> {
    let environment = load_environment(process.clone(), home).unwrap_or_else(|_| process.clone());
    let Ok(settings) = load(home, &environment) else {
        return Vec::new();
    };
    let unused = settings.unused();
    let unused = unused.iter().map(ToString::to_string);
    unused.chain(chats::oddities(&settings).unused).collect()
}

/// What is wrong with `config.yaml` and the files beside it.
fn setting_problems(home: &Home, environment: &Environment) -> Vec<String> {
    match load(home, environment) {
        Ok(settings) => {
            let problems = settings.problems().iter().map(ToString::to_string);
            let servers = crate::mcp::oddities(&settings);
            let platforms = chats::oddities(&settings).problems;
            let zone = hermes_runtime::zone_problem(&settings);
            problems
                .chain(servers)
                .chain(platforms)
                .chain(zone)
                .collect()
        }
        Err(error) => vec![format!("{error} ({})", error.hint())],
    }
}

fn load(home: &Home, environment: &Environment) -> Result<Settings, LoadError> {
    let working_directory = std::env::current_dir().ok();
    Settings::load(&Sources {
        home,
        environment,
        working_directory: working_directory.as_deref(),
        flags: Vec::new(),
        user_config: UserConfig::Read,
    })
}
