//! Runs a harmless command where the settings say commands run: the only proof that they can.

use std::time::Duration;

use hermes_core::{
    CancellationToken, CommandExit, Pass, Progress, SessionId, ShellCommand, Terminal,
    TerminalError,
};

use crate::base::Base;
use crate::error::{Error, Result};
use crate::layout::one_line;
use crate::terminals::Terminals;

/// Says what answers. That a small system cannot say so is no failure.
const WHO: &str = "uname -sm || true";
/// Enough for a name, or for an error worth reading.
const OUTPUT_BYTES_MAX: usize = 4_000;

/// A place that answered.
pub struct Answered {
    pub elapsed: Duration,
    /// What it calls itself; may be empty.
    pub system: String,
}

/// Tries the terminal of the settings. A failure comes with what to do about it.
pub async fn try_terminal(base: &Base, deadline: Duration) -> Result<Answered> {
    let backend = base.settings.string("terminal.backend")?;
    let terminals = Terminals::to_try(base)?;
    let (elapsed, system) = ask(base, terminals.terminal.as_ref(), WHO, deadline)
        .await
        .map_err(|problem| Error::failed(problem).with_hint(advice(base, &backend)))?;
    Ok(Answered { elapsed, system })
}

/// Runs a line, leaves, and returns what it printed. The error is in words for people.
pub async fn ask(
    base: &Base,
    terminal: &dyn Terminal,
    line: &str,
    deadline: Duration,
) -> Result<(Duration, String), String> {
    let command = ShellCommand {
        session: SessionId::from("hermes-doctor"),
        line: line.to_owned(),
        cwd: base.cwd.clone(),
        workdir: None,
        stdin: Vec::new(),
        pty: false,
        timeout: deadline,
        output_bytes_max: OUTPUT_BYTES_MAX,
        pass: Pass::default(),
        mark: None,
        stop: CancellationToken::new(),
        progress: Progress::default(),
    };
    // The deadline of a command begins when its place is ready; getting it ready must not take for ever either.
    let ran = tokio::time::timeout(deadline, terminal.run(command)).await;
    terminal.leave().await;
    let seconds = deadline.as_secs();
    let output = match ran {
        Ok(Ok(output)) => output,
        // It is the way there that was lost: nothing has run yet that could be.
        Ok(Err(TerminalError::Lost { detail })) => return Err(one_line(&detail)),
        Ok(Err(error)) => return Err(one_line(&error.to_string())),
        Err(_) => return Err(format!("nothing answered within {seconds} s")),
    };
    let text = one_line(&output.text);
    match output.exit {
        CommandExit::Code(0) => Ok((output.elapsed, text)),
        CommandExit::TimedOut => Err(format!("`{line}` did not end within {seconds} s")),
        CommandExit::Code(code) => Err(format!("`{line}` ended with code {code}: {text}")),
        exit => Err(format!("`{line}` ended with {exit:?}: {text}")),
    }
}

/// What usually helps when a place cannot be reached.
fn advice(base: &Base, backend: &str) -> String {
    match backend {
        "ssh" => format!(
            "log in once by hand: `{} true` must work without a password (a key, or ssh-agent)",
            login(base)
        ),
        backend => usual_advice(backend).to_owned(),
    }
}

fn usual_advice(backend: &str) -> &'static str {
    match backend {
        "local" => {
            "try `time bash -lc true`: a start file such as ~/.bashrc may hang, and \
             `hermes config set terminal.auto_source_bashrc false` does without them"
        }
        "docker" => {
            "`docker info` has to work for you: start the engine (`sudo systemctl start docker`, or Docker Desktop), \
             join its group (`sudo usermod -aG docker $USER`, then log in anew), or name its socket in DOCKER_HOST"
        }
        "singularity" | "apptainer" => {
            "check the program and the image: `apptainer exec IMAGE true`"
        }
        "daytona" => "check DAYTONA_API_KEY in `.env`, DAYTONA_API_URL and the network",
        "modal" => {
            "check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET in `.env`, or ~/.modal.toml, and the network"
        }
        _ => "`hermes setup terminal` chooses another place",
    }
}

/// The command that leads to the host of the settings.
fn login(base: &Base) -> String {
    let text = |key: &str| base.settings.string(key).unwrap_or_default();
    let port = base.settings.u64("terminal.ssh_port").unwrap_or(22);
    let key = match text("terminal.ssh_key").as_str() {
        "" => String::new(),
        key => format!(" -i {key}"),
    };
    let user = match text("terminal.ssh_user").as_str() {
        "" => String::new(),
        user => format!("{user}@"),
    };
    let host = text("terminal.ssh_host");
    one_line(&format!("ssh -p {port}{key} {user}{host}"))
}
