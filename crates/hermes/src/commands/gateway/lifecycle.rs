//! `hermes gateway start|stop|restart`: from outside the process that serves.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use hermes_gateway::presence::{self, Holder};
use hermes_gateway::report::Report;
use hermes_os::ancestry;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::serve::drain_time;
use super::service;
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};

/// For a gateway to be ready, with platforms that answer slowly.
const READY_PATIENCE: Duration = Duration::from_secs(30);
/// For it to end behind what it drains: parts that do not, and stores that close.
const ENDING_PATIENCE: Duration = Duration::from_secs(15);
/// For it to go once it was killed.
const KILLED_PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);
/// A log that grew beyond this is put aside when the gateway is started.
const LOG_BYTES_MAX: u64 = 5 * 1024 * 1024;
/// Of what it said last, when it did not start.
const TOLD_BYTES_MAX: u64 = 2_000;

/// What a gateway in the background prints.
pub(super) fn log_file(base: &Base) -> PathBuf {
    base.home.logs().join("gateway.log")
}

pub(super) async fn start(base: &Base) -> Outcome<()> {
    if let Some(holder) = holder(base).await? {
        return println(&format!(
            "a gateway serves this home already (pid {}); `hermes gateway restart` starts it anew",
            holder.pid
        ));
    }
    let report = if let Some(service) = service::installed(base) {
        service.start(base)?;
        wait_until_ready(base, |_| true, || None).await?
    } else {
        launch(base).await?
    };
    println(&format!("the gateway serves (pid {})", report.pid))?;
    note("`hermes gateway status` shows how it is, `hermes gateway stop` ends it");
    Ok(())
}

/// Starts it in the background, and waits until it is ready.
async fn launch(base: &Base) -> Outcome<Report> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(format!("cannot find my own program: {error}")))?;
    let file = log_file(base);
    let (log, told_before) = open_log(&file).map_err(|error| {
        Failure::new(format!("cannot write `{}`: {error}", file.display()))
            .hint("is the home writable?")
    })?;
    let mut arguments: Vec<&str> = Vec::new();
    if let Some(profile) = base.home.profile() {
        arguments.extend(["-p", profile]);
    }
    arguments.extend(["gateway", "run", "--detached"]);
    // No model works in this process: what it starts may serve.
    ancestry::give_up_name();
    let child = hermes_exec::detach(&program, &arguments, &base.cwd, log);
    let mut child = child
        .map_err(|error| Failure::new(format!("cannot start `{}`: {error}", program.display())))?;
    let has_failed = || {
        let ended = child.try_wait().ok().flatten();
        ended.filter(|status| !status.success())
    };
    match wait_until_ready(base, |_| true, has_failed).await {
        Ok(report) => Ok(report),
        Err(failure) => {
            let told = tail(&file, told_before);
            let told = told.trim();
            if told.is_empty() {
                return Err(failure);
            }
            // It has said itself what is wrong.
            note(told);
            Err(Failure {
                message: String::new(),
                ..failure
            })
        }
    }
}

/// The log, and how long it is already.
fn open_log(file: &Path) -> std::io::Result<(File, u64)> {
    let length = file.metadata().map_or(0, |data| data.len());
    if length > LOG_BYTES_MAX {
        fs::rename(file, file.with_extension("log.1"))?;
    }
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(file)?;
    let length = log.metadata()?.len();
    Ok((log, length))
}

fn tail(file: &Path, from: u64) -> String {
    let read = || {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(
            from.max(length.saturating_sub(TOLD_BYTES_MAX)),
        ))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_default()
}

/// Waits until the right one answers.
async fn wait_until_ready(
    base: &Base,
    is_right: impl Fn(&Report) -> bool,
    mut has_failed: impl FnMut() -> Option<ExitStatus>,
) -> Outcome<Report> {
    let deadline = Instant::now() + READY_PATIENCE;
    loop {
        if let Ok(report) = presence::ask(base.home.directory()).await
            && is_right(&report)
        {
            return Ok(report);
        }
        if let Some(status) = has_failed() {
            let code = status.code().and_then(|code| u8::try_from(code).ok());
            return Err(Failure {
                code: code.filter(|code| *code > 0).unwrap_or(1),
                ..Failure::new(format!("the gateway ended at once ({status})"))
            });
        }
        if Instant::now() > deadline {
            return Err(
                Failure::new("the gateway was started and does not answer yet").hint(format!(
                    "`hermes gateway status` asks again; what it said is in `{}`",
                    log_file(base).display()
                )),
            );
        }
        sleep(LOOK).await;
    }
}

pub(super) async fn stop(base: &Base) -> Outcome<()> {
    if holder(base).await?.is_none() {
        return println("no gateway serves this home");
    }
    end_running(base).await?;
    println("the gateway has ended")
}

/// Ends the gateway that serves this home, if one does: it may end what runs; then it is stopped.
pub(super) async fn end_running(base: &Base) -> Outcome<()> {
    let Some(holder) = holder(base).await? else {
        return Ok(());
    };
    match service::installed(base).filter(|_| holder.service.is_some()) {
        Some(service) => service.stop(base)?,
        None => signal(&holder, Signal::TERM)?,
    }
    note(&format!("ending what runs (pid {}) …", holder.pid));
    let patience = drain_time(base)? + ENDING_PATIENCE;
    if has_gone(base, &holder, patience).await? {
        return Ok(());
    }
    signal(&holder, Signal::KILL)?;
    note("it did not end in time and was killed; the next start goes on with what was cut off");
    if has_gone(base, &holder, KILLED_PATIENCE).await? {
        return Ok(());
    }
    Err(
        Failure::new(format!("process {} does not end", holder.pid)).hint(
            "it may wait for a disk or a network drive that does not answer; `ps` shows its state",
        ),
    )
}

pub(super) async fn restart(base: &Base) -> Outcome<()> {
    let Some(holder) = holder(base).await? else {
        return start(base).await;
    };
    signal(&holder, Signal::USR1)?;
    note(&format!("ending what runs (pid {}) …", holder.pid));
    let patience = drain_time(base)? + ENDING_PATIENCE;
    if !has_gone(base, &holder, patience).await? {
        return Err(Failure::new(format!("process {} does not end", holder.pid))
            .hint("`hermes gateway stop` ends it whatever it does; then `hermes gateway start`"));
    }
    let is_new = |report: &Report| report.started != holder.started;
    let report = wait_until_ready(base, is_new, || None).await?;
    println(&format!("the gateway serves again (pid {})", report.pid))
}

/// Has a gateway that runs read its settings again. False when none does.
pub(super) async fn reload(base: &Base) -> Outcome<bool> {
    match holder(base).await? {
        Some(holder) => signal(&holder, Signal::HUP).map(|()| true),
        None => Ok(false),
    }
}

pub(super) async fn holder(base: &Base) -> Outcome<Option<Holder>> {
    let home = base.home.directory();
    presence::holder(home).await.map_err(|error| {
        Failure::new(format!(
            "cannot tell whether a gateway serves `{}`: {error}",
            home.display()
        ))
        .hint("is the home readable?")
    })
}

/// Waits until another serves, or nobody.
async fn has_gone(base: &Base, holder_before: &Holder, patience: Duration) -> Outcome<bool> {
    let deadline = Instant::now() + patience;
    while holder(base).await?.as_ref() == Some(holder_before) {
        if Instant::now() > deadline {
            return Ok(false);
        }
        sleep(LOOK).await;
    }
    Ok(true)
}

fn signal(holder: &Holder, signal: Signal) -> Outcome<()> {
    let pid = i32::try_from(holder.pid).ok().and_then(Pid::from_raw);
    let sent = pid.map(|pid| kill_process(pid, signal));
    match sent {
        Some(Ok(())) => Ok(()),
        // It ended by itself meanwhile.
        Some(Err(rustix::io::Errno::SRCH)) => Ok(()),
        Some(Err(error)) => Err(Failure::new(format!(
            "cannot signal process {}: {error}",
            holder.pid
        ))
        .hint("it belongs to another user; `sudo` may help")),
        None => Err(Failure::new(format!("{} is no process", holder.pid))),
    }
}
