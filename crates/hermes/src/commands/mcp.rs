//! `hermes mcp`: the MCP servers of the settings.

mod login;

use std::sync::Arc;
use std::time::Duration;

use hermes_config::{ConfigFile, Key};
use hermes_core::{Random, text};
use hermes_mcp::{Mcp, ServerSettings, ServerState, ServerStatus, TransportSettings};
use serde_json::{Map, Value, json};

use super::already_told;
use super::layout::{Table, one_line, print_json};
use crate::args::{JsonFlag, McpArgs, McpCommand};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::mcp::{ports, settings};
use crate::output::{note, println};
use crate::style::Style;

use login::Before;

/// For the first list of tools after a login.
const TEST_WAIT: Duration = Duration::from_secs(15);

const NONE_YET: &str = "no MCP servers yet; add one with `hermes mcp add NAME --url URL` or \
     `hermes mcp add NAME --command PROGRAM -- ARGUMENTS`";

pub(crate) async fn run(base: &Base, args: McpArgs) -> Outcome<()> {
    match args.command.unwrap_or(McpCommand::List {
        json: JsonFlag { json: false },
    }) {
        McpCommand::List { json } => list(base, &json),
        McpCommand::Test { server, wait, json } => {
            test(base, server.as_deref(), Duration::from_secs(wait), &json).await
        }
        McpCommand::Add {
            name,
            url,
            command,
            env,
            auth,
            header,
            args,
        } => {
            let mut section = section(url, command, args, &env, &header)?;
            if let Some(auth) = auth {
                section["auth"] = json!(auth);
            }
            add(base, &name, &section)
        }
        McpCommand::Remove { name } => remove(base, &name),
        McpCommand::Login(args) => login::login(base, &args, Before::Keep).await,
        McpCommand::Reauth(args) => login::login(base, &args, Before::Forget).await,
    }
}

fn list(base: &Base, json: &JsonFlag) -> Outcome<()> {
    let servers = known(base);
    if json.json {
        let names: Vec<_> = servers.iter().map(|server| json!({ "name": server.name, "enabled": server.enabled, "at": place(server) })).collect();
        return print_json(&Value::Array(names));
    }
    if servers.is_empty() {
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
    table.print(Style::of(&std::io::stdout(), &base.environment))
}

/// Connects for real, and tells what came of it. Fails when a server is not ready.
async fn test(base: &Base, name: Option<&str>, wait: Duration, json: &JsonFlag) -> Outcome<()> {
    let mut servers = known(base);
    if let Some(name) = name {
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        servers.retain(|server| server.name == name);
        if servers.is_empty() {
            return Err(unknown(name, &names));
        }
    }
    if servers.is_empty() {
        return println(NONE_YET);
    }
    let mcp = Mcp::start(servers, ports(base, Arc::new(Random::from_system())));
    let tools = mcp.tools(wait).await;
    let names: Vec<String> = tools.iter().map(|tool| tool.spec().name.clone()).collect();
    let status = mcp.status();
    mcp.shutdown().await;
    let is_well =
        |server: &ServerStatus| matches!(server.state, ServerState::Ready | ServerState::Disabled);
    if json.json {
        print_json(
            &status
                .iter()
                .map(|server| as_json(server, &names))
                .collect(),
        )?;
    } else {
        let style = Style::of(&std::io::stdout(), &base.environment);
        for server in &status {
            show(server, &names, style)?;
        }
    }
    if status.iter().all(is_well) {
        Ok(())
    } else {
        Err(already_told())
    }
}

fn show(server: &ServerStatus, tools: &[String], style: Style) -> Outcome<()> {
    let state = server.state.to_string();
    let state = match server.state {
        ServerState::Ready => style.green(state),
        ServerState::Disabled => style.dim(state),
        _ => style.red(state),
    };
    let trip = server
        .round_trip
        .map(|time| format!(", {:.1} ms", time.as_secs_f64() * 1e3))
        .unwrap_or_default();
    println(&format!("{}  {state}{trip}", style.bold(&server.name)))?;
    if let Some(error) = &server.last_error {
        println(&format!("  {}", text::printable(error)))?;
    }
    let own = tools_of(&server.name, tools);
    if !own.is_empty() {
        println(&style.dim(format!("  {} tools: {}", own.len(), own.join(", "))))?;
    }
    Ok(())
}

fn as_json(server: &ServerStatus, tools: &[String]) -> Value {
    json!({
        "name": server.name,
        "state": server.state.to_string(),
        "round_trip_ms": server.round_trip.map(|time| time.as_secs_f64() * 1e3),
        "last_error": server.last_error,
        "tools": tools_of(&server.name, tools),
    })
}

fn tools_of<'a>(server: &str, tools: &'a [String]) -> Vec<&'a str> {
    let start = format!(
        "mcp__{}__",
        server.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_")
    );
    tools
        .iter()
        .filter_map(|tool| tool.strip_prefix(&start))
        .collect()
}

fn section(
    url: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: &[String],
    header: &[String],
) -> Outcome<Value> {
    if let Some(url) = url
        .as_deref()
        .filter(|url| !url.starts_with("http://") && !url.starts_with("https://"))
    {
        return Err(
            Failure::usage(format!("`{url}` is not an http or https address"))
                .hint("write it with its scheme, such as https://example.org/mcp"),
        );
    }
    let mut section = Map::new();
    section.extend(url.map(|url| ("url".into(), json!(url))));
    section.extend(command.map(|command| ("command".into(), json!(command))));
    let mut put = |name: &str, value: Value, is_empty: bool| {
        if !is_empty {
            section.insert(name.into(), value);
        }
    };
    put("args", json!(args), args.is_empty());
    put("env", pairs(env, "--env")?, env.is_empty());
    put("headers", pairs(header, "--header")?, header.is_empty());
    Ok(Value::Object(section))
}

fn pairs(texts: &[String], flag: &str) -> Outcome<Value> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), json!(value))),
        _ => Err(Failure::usage(format!("`{flag} {text}` is not NAME=VALUE"))
            .hint("write a secret as ${VARIABLE} and set it with `hermes config set`")),
    };
    Ok(Value::Object(
        texts.iter().map(pair).collect::<Outcome<_>>()?,
    ))
}

fn add(base: &Base, name: &str, section: &Value) -> Outcome<()> {
    if base.settings.get(&format!("mcp_servers.{name}")).is_some() {
        return Err(
            Failure::usage(format!("there is an MCP server `{name}` already")).hint(format!(
                "choose another name, or remove it first: hermes mcp remove {name}"
            )),
        );
    }
    let settings =
        ServerSettings::parse(name, section).map_err(|error| Failure::usage(error.to_string()))?;
    settings
        .warnings
        .iter()
        .for_each(|warning| note(&format!("warning: {warning}")));
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    file.set(&key(name)?, section)?;
    file.save()?;
    let next = match settings.oauth {
        Some(_) => format!("log in with `hermes mcp login {name}`"),
        None => format!("try it with `hermes mcp test {name}`"),
    };
    println(&format!(
        "added `{name}` to {}; {next}",
        file.path().display()
    ))
}

fn remove(base: &Base, name: &str) -> Outcome<()> {
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    if !file.unset(&key(name)?)? {
        let names: Vec<String> = known(base).into_iter().map(|server| server.name).collect();
        return Err(unknown(name, &names));
    }
    file.save()?;
    println(&format!("removed `{name}` from {}", file.path().display()))
}

fn key(name: &str) -> Outcome<Key> {
    let segments = vec!["mcp_servers".to_owned(), name.to_owned()];
    Key::from_segments(segments)
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
