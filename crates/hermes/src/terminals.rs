//! Where commands run, as the settings say: `terminal.*`.

use std::sync::Arc;

use hermes_core::{Processes, Terminal};
use hermes_exec::{Background, Local, ProcessFolder, START_FILES, child_environment};

use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::wiring::SystemClock;

/// A place for commands, and the processes in its background.
pub struct Terminals {
    pub terminal: Arc<dyn Terminal>,
    pub processes: Arc<dyn Processes>,
}

impl Terminals {
    pub fn chosen(base: &Base) -> Outcome<Self> {
        let (terminal, folder) = backend(base)?;
        let processes = Background::new(
            Arc::clone(&terminal),
            folder,
            base.home.processes().join("records"),
            Arc::new(SystemClock),
        );
        Ok(Self {
            terminal,
            processes: Arc::new(processes),
        })
    }
}

fn backend(base: &Base) -> Outcome<(Arc<dyn Terminal>, ProcessFolder)> {
    match base.settings.string("terminal.backend")?.as_str() {
        "local" => Ok((
            Arc::new(local(base)?),
            ProcessFolder::Here(base.home.processes()),
        )),
        other => Err(Failure::usage(format!(
            "`terminal.backend` is `{other}`, which this version cannot run commands on"
        ))
        .hint("known: local")),
    }
}

fn local(base: &Base) -> Outcome<Local> {
    let passthrough = base.settings.strings("terminal.env_passthrough")?;
    let environment = base
        .environment
        .iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = child_environment(environment, &passthrough);
    Ok(Local::new(environment, base.home.shells()).reading(start_files(base)?))
}

/// The files a new shell reads: those the user named, or else the usual ones.
fn start_files(base: &Base) -> Outcome<Vec<String>> {
    let named = base.settings.strings("terminal.shell_init_files")?;
    let reads_usual = base.settings.bool("terminal.auto_source_bashrc")?;
    Ok(match named.is_empty() && reads_usual {
        true => START_FILES.iter().map(ToString::to_string).collect(),
        false => named,
    })
}
