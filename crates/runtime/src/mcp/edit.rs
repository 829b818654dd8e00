//! `hermes mcp add` and `remove`: servers in the settings. Comments and order of the file stay.

use hermes_config::ConfigFile;
use hermes_mcp::ServerSettings;
use serde_json::{Map, Value, json};

use super::{key, known, unknown};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::{note, println};

pub(super) fn section(
    url: Option<String>,
    mut command: Option<String>,
    mut args: Vec<String>,
    env: &[String],
    header: &[String],
) -> Outcome<Value> {
    if url.is_some() && !args.is_empty() {
        return Err(
            Failure::usage("a server has an address or a command, not both")
                .hint("leave out --url, or what stands behind `--`"),
        );
    }
    if let Some(url) = url
        .as_deref()
        .filter(|url| !url.starts_with("http://") && !url.starts_with("https://"))
    {
        return Err(
            Failure::usage(format!("`{url}` is not an http or https address"))
                .hint("write it with its scheme, such as https://example.org/mcp"),
        );
    }
    if command.is_none() && !args.is_empty() {
        command = Some(args.remove(0));
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

pub(super) fn add(base: &Base, name: &str, section: &Value) -> Outcome<()> {
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
    file.set(&key(name, &[])?, section)?;
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

pub(super) fn remove(base: &Base, name: &str) -> Outcome<()> {
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    if !file.unset(&key(name, &[])?)? {
        let names: Vec<String> = known(base).into_iter().map(|server| server.name).collect();
        return Err(unknown(name, &names));
    }
    file.save()?;
    println(&format!("removed `{name}` from {}", file.path().display()))
}
