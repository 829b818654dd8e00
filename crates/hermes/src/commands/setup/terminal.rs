//! Where commands run. The place is tried with a harmless command before anything is saved.

use std::time::Duration;

use hermes_config::{Environment, set};
use hermes_core::Secret;
use serde_json::{Value, json};

use super::{Then, after_failure};
use crate::base::Base;
use crate::commands::interview::{Interview, options};
use crate::failure::Outcome;
use crate::output::note;
use crate::terminals::modal::{TOKEN_ID, TOKEN_SECRET, has_token};
use hermes_runtime::terminals::try_out::{Answered, try_terminal};

/// On a machine that is up.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);
/// The first time, an image is fetched.
const FIRST_START_TIME_MAX: Duration = Duration::from_secs(15 * 60);

const DAYTONA_KEY: &str = "DAYTONA_API_KEY";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backend {
    Local,
    Docker,
    Ssh,
    Singularity,
    Daytona,
    Modal,
}

/// What would be saved.
struct Plan {
    backend: Backend,
    settings: Vec<(&'static str, Value)>,
    /// Variables with keys that are not saved yet.
    keys: Vec<(&'static str, Secret)>,
}

pub(super) async fn interview(base: &Base, interview: &mut Interview) -> Outcome<()> {
    let now = base.settings.string("terminal.backend")?;
    interview.title(&format!("Where should commands run? (now: {now})"));
    loop {
        let backend = interview.choose(options([
            (Backend::Local, "on this machine"),
            (Backend::Docker, "in a Docker container on this machine"),
            (Backend::Ssh, "on another machine, over ssh"),
            (
                Backend::Singularity,
                "in an Apptainer (Singularity) container, which needs no root",
            ),
            (Backend::Daytona, "in a sandbox of the Daytona cloud"),
            (Backend::Modal, "in a sandbox of the Modal cloud"),
        ]))?;
        let plan = ask(base, interview, backend)?;
        if settle(base, interview, &plan).await? {
            return Ok(());
        }
    }
}

/// Asks what a backend needs to know.
fn ask(base: &Base, interview: &mut Interview, backend: Backend) -> Outcome<Plan> {
    let mut plan = Plan {
        backend,
        settings: vec![("terminal.backend", json!(backend.name()))],
        keys: Vec::new(),
    };
    match backend {
        Backend::Local => plan.put("terminal.sandbox", fence(interview)?),
        Backend::Docker => {
            let image = needed(base, interview, "image", "terminal.docker_image", "")?;
            plan.put("terminal.docker_image", image);
        }
        Backend::Ssh => {
            let host = needed(base, interview, "host", "terminal.ssh_host", "")?;
            plan.put("terminal.ssh_host", host);
            note(
                &interview
                    .style
                    .dim("Enter leaves the next three to your ssh settings"),
            );
            let user = optional(base, interview, "user", "terminal.ssh_user")?;
            plan.put("terminal.ssh_user", user);
            plan.settings
                .push(("terminal.ssh_port", port(base, interview)?));
            let key = optional(
                base,
                interview,
                "file of the private key",
                "terminal.ssh_key",
            )?;
            plan.put("terminal.ssh_key", key);
        }
        Backend::Singularity => {
            let (key, usual) = ("terminal.singularity_image", "docker://python:3.13");
            let image = needed(
                base,
                interview,
                "image (docker://… or a .sif file)",
                key,
                usual,
            )?;
            plan.put(key, image);
        }
        Backend::Daytona => {
            if base.variable(DAYTONA_KEY).is_none() {
                let key = secret(interview, "paste Daytona's API key")?;
                plan.keys.push((DAYTONA_KEY, key));
            }
            let image = optional(
                base,
                interview,
                "image (Enter: Daytona's own)",
                "terminal.daytona_image",
            )?;
            plan.put("terminal.daytona_image", image);
        }
        Backend::Modal => {
            if !has_token(base)? {
                let id = secret(interview, "paste the id of a token of Modal's (ak-…)")?;
                let half = secret(interview, "paste its secret (as-…)")?;
                plan.keys.extend([(TOKEN_ID, id), (TOKEN_SECRET, half)]);
            }
            let image = needed(base, interview, "image", "terminal.modal_image", "")?;
            plan.put("terminal.modal_image", image);
        }
    }
    Ok(plan)
}

fn fence(interview: &mut Interview) -> Outcome<String> {
    interview.title("What may they change?");
    let fence = interview.choose(options([
        (
            "project",
            "files of the project only; they read everything but keys and logins",
        ),
        (
            "strict",
            "files of the project only, and they read little else",
        ),
        (
            "off",
            "whatever you may; dangerous commands are asked about first",
        ),
    ]))?;
    Ok(fence.to_owned())
}

/// Asks until something is said; what the settings have, or the usual, is one Enter away.
fn needed(
    base: &Base,
    interview: &mut Interview,
    question: &str,
    key: &str,
    usual: &str,
) -> Outcome<String> {
    let now = base.settings.string(key)?;
    let usual = if now.is_empty() { usual } else { &now };
    loop {
        let answer = interview.line(question, usual)?;
        if !answer.is_empty() {
            return Ok(answer);
        }
        interview.bad("this one is needed; Ctrl-C leaves");
    }
}

fn optional(base: &Base, interview: &mut Interview, question: &str, key: &str) -> Outcome<String> {
    let now = base.settings.string(key)?;
    interview.line(question, &now)
}

fn port(base: &Base, interview: &mut Interview) -> Outcome<Value> {
    let now = base.settings.u64("terminal.ssh_port")?.to_string();
    loop {
        match interview.line("port", &now)?.parse::<u16>() {
            Ok(port) if port > 0 => return Ok(json!(port)),
            _ => interview.bad("a port is a number from 1 to 65535"),
        }
    }
}

fn secret(interview: &mut Interview, question: &str) -> Outcome<Secret> {
    loop {
        let key = interview.secret(question)?;
        if !key.is_empty() && !key.contains(char::is_whitespace) {
            return Ok(Secret::new(key));
        }
        interview.bad("a key is one word without spaces; Ctrl-C leaves");
    }
}

/// Tries a plan and saves it when a command ran there, or when the user insists. False leads back to the choice.
async fn settle(base: &Base, interview: &mut Interview, plan: &Plan) -> Outcome<bool> {
    loop {
        note(&interview.style.dim(match plan.backend {
            Backend::Local | Backend::Ssh => "running a command there …",
            _ => "running a command there; the first time this can take minutes …",
        }));
        match plan.try_out(base).await {
            Ok(Answered { elapsed, system }) => {
                plan.save(base)?;
                let ms = elapsed.as_millis();
                interview.good(&match system.as_str() {
                    "" => format!("a command ran there in {ms} ms; saved"),
                    system => format!("a command ran there ({system}) in {ms} ms; saved"),
                });
                return Ok(true);
            }
            Err(failure) => interview.bad(failure.to_string().trim_start_matches("error: ")),
        }
        match interview.choose(after_failure())? {
            Then::Again => {}
            Then::SaveAnyway => {
                plan.save(base)?;
                return Ok(true);
            }
            Then::Back => return Ok(false),
        }
    }
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::Ssh => "ssh",
            Self::Singularity => "singularity",
            Self::Daytona => "daytona",
            Self::Modal => "modal",
        }
    }
}

impl Plan {
    fn put(&mut self, key: &'static str, value: String) {
        self.settings.push((key, value.into()));
    }

    async fn try_out(&self, base: &Base) -> Outcome<Answered> {
        let deadline = match self.backend {
            Backend::Local | Backend::Ssh => ANSWER_TIME_MAX,
            _ => FIRST_START_TIME_MAX,
        };
        let keys = self.keys.iter();
        let environment = Environment::from_pairs(
            base.environment
                .iter()
                .chain(keys.map(|(name, key)| ((*name).as_ref(), key.expose().as_ref()))),
        );
        Ok(try_terminal(&base.supposing(environment, &self.settings)?, deadline).await?)
    }

    /// Saves keys first: settings that name a place without them would only fail.
    fn save(&self, base: &Base) -> Outcome<()> {
        let put = |key: &str, value: &str| set(&base.home, &base.settings, key, value).map(drop);
        for (name, key) in &self.keys {
            put(name, key.expose())?;
        }
        for (key, value) in &self.settings {
            match value {
                Value::String(text) => put(key, text)?,
                value => put(key, &value.to_string())?,
            }
        }
        Ok(())
    }
}
