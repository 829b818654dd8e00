//! `hermes mcp`: the MCP servers of the settings, and Hermes as one.

pub(crate) mod configure;
mod conformance;
mod doctor;
mod edit;
mod login;
mod serve;
mod status;
mod test;

use std::time::Duration;

use hermes_config::Key;
use hermes_core::text;
use hermes_mcp::{ServerSettings, TransportSettings};
use serde_json::json;

use super::already_told;
use super::layout::{OnTerminal as _, Table, one_line, print_json};
use crate::args::{JsonFlag, McpArgs, McpCommand, WaitFlag};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::mcp::{invalid_sections, settings};
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
            let choice = configure::Choice::of_flags(include, exclude, all);
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
            edit::add(base, &name, &section)
        }
        McpCommand::Remove { name } => edit::remove(base, &name),
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

/// The place of a server's setting.
fn key(server: &str, inside: &[&str]) -> Outcome<Key> {
    let names = ["mcp_servers", server]
        .into_iter()
        .chain(inside.iter().copied());
    Key::from_segments(names.map(str::to_owned).collect())
        .ok_or_else(|| Failure::usage("the name is empty").hint("give the server a name"))
}

/// The servers of the settings; what is wrong with the others is told.
fn known(base: &Base) -> Vec<ServerSettings> {
    let (servers, warnings) = settings(base);
    for warning in warnings {
        note(&format!("warning: {warning}"));
    }
    servers
}

/// One server of the settings.
fn one(base: &Base, name: &str) -> Outcome<ServerSettings> {
    let mut servers = known(base);
    match servers.iter().position(|server| server.name == name) {
        Some(at) => Ok(servers.swap_remove(at)),
        None => {
            let names: Vec<String> = servers.into_iter().map(|server| server.name).collect();
            Err(unknown(name, &names))
        }
    }
}

fn unknown(name: &str, names: &[String]) -> Failure {
    let near = text::nearest(name, names.iter().map(String::as_str));
    let hint = match near.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`hermes mcp list` shows what there is".into(),
    };
    Failure::new(format!("there is no MCP server `{name}`")).hint(hint)
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
