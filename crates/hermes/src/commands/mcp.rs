//! `hermes mcp`: the MCP servers of the settings, and Hermes as one.

pub(crate) mod configure;
mod conformance;
mod doctor;
mod login;
mod serve;
mod status;
mod test;

use std::time::Duration;

use hermes_mcp::{ServerSettings, TransportSettings};
use serde_json::json;

use super::already_told;
use super::layout::{OnTerminal as _, Table, one_line, print_json};
use crate::args::{JsonFlag, McpArgs, McpCommand, WaitFlag};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::mcp::{edit, invalid_sections, settings, unknown};
use crate::output::{note, println};
use crate::style::Style;

/// For the first list of tools after a login.
const TEST_WAIT: Duration = Duration::from_secs(15);

const NONE_YET: &str = "no MCP servers yet; add one with `hermes mcp add NAME --url URL` or \
     `hermes mcp add NAME -- PROGRAM ARGUMENTS`";

pub(crate) async fn run(base: &Base, args: McpArgs) -> Outcome<()> {
    match args.command.unwrap_or(McpCommand::List {
        json: JsonFlag { json: false },
    }) {
        McpCommand::List { json } => list(base, &json),
        McpCommand::Status { watch, wait, json } => {
            if watch {
                status::watch(base, &json).await
            } else {
                status::once(base, wait.time(), &json).await
            }
        }
        McpCommand::Test { server, wait, json } => {
            test::run(base, server.as_deref(), wait.time(), &json).await
        }
        McpCommand::Reconnect { server, wait, .. } => {
            let json = JsonFlag { json: false };
            test::run(base, server.as_deref(), wait.time(), &json).await
        }
        McpCommand::Doctor { server, json } => doctor::run(base, server.as_deref(), &json).await,
        McpCommand::Configure {
            server,
            include,
            exclude,
            all,
            wait,
        } => {
            let choice = edit::ToolChoice::of_flags(include, exclude, all);
            configure::run(base, &server, choice, wait.time()).await
        }
        McpCommand::Add {
            name,
            url,
            command,
            env,
            auth,
            header,
            args,
            last_words,
        } => {
            if url.is_none() && command.is_none() && args.is_empty() {
                return Err(nowhere(&name));
            }
            let args = [args, last_words].concat();
            let mut section = edit::section(url, command, args, &env, &header)?;
            if let Some(auth) = auth {
                section["auth"] = json!(auth);
            }
            let (warnings, told) = edit::add(base, &name, &section)?;
            for warning in warnings {
                note(&format!("warning: {warning}"));
            }
            println(&told)
        }
        McpCommand::Remove { name } => println(&edit::remove(base, &name)?),
        McpCommand::Login(args) => login::login(base, &args, login::Before::Keep).await,
        McpCommand::Reauth(args) => login::reauth(base, args).await,
        McpCommand::ConformanceClient { url } => conformance::run(base, &url).await,
        McpCommand::Serve { http } => serve::run(base, http.as_deref()).await,
    }
}

/// A server is somewhere else, or started here.
fn nowhere(name: &str) -> Failure {
    Failure::usage(format!("where is the MCP server `{name}`?")).hint(format!(
        "`hermes mcp add {name} --url URL` for one that answers over HTTP, or \
         `hermes mcp add {name} -- PROGRAM ARGUMENTS` for one that is started here"
    ))
}

impl WaitFlag {
    fn time(self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

fn list(base: &Base, json: &JsonFlag) -> Outcome<()> {
    let servers = known(base);
    let unusable = invalid_sections(base);
    if json.json {
        let server = |server: &ServerSettings| json!({ "name": server.name, "enabled": server.enabled, "at": place(server) });
        let broken = |(name, reason): &(String, String)| json!({ "name": name, "enabled": false, "error": reason });
        let names = servers.iter().map(server);
        return print_json(&names.chain(unusable.iter().map(broken)).collect());
    }
    if servers.is_empty() && unusable.is_empty() {
        return println(NONE_YET);
    }
    let mut table = Table::new(["SERVER", "STATE", "AT"]);
    for server in &servers {
        let state = if server.enabled {
            "enabled"
        } else {
            "disabled"
        };
        table.row([server.name.clone(), state.into(), one_line(&place(server))]);
    }
    for (name, _) in unusable {
        table.row([name, "misconfigured".into(), "–".into()]);
    }
    table.print(Style::of(&std::io::stdout(), &base.environment))
}

/// The servers of the settings; what is wrong with the others is told.
fn known(base: &Base) -> Vec<ServerSettings> {
    let (servers, warnings) = settings(base);
    for warning in warnings {
        note(&format!("warning: {warning}"));
    }
    servers
}

/// One server of the settings; what is wrong with the others is told.
fn one(base: &Base, name: &str) -> Outcome<ServerSettings> {
    let _ = known(base);
    Ok(crate::mcp::one(base, name)?)
}

fn place(server: &ServerSettings) -> String {
    match &server.transport {
        TransportSettings::Stdio { command, args, .. } => {
            let words: Vec<&str> = std::iter::once(command.as_str())
                .chain(args.iter().map(String::as_str))
                .collect();
            words.join(" ")
        }
        TransportSettings::Http { url, .. } => url.to_string(),
    }
}
