//! Servers in the settings: added, removed, and which of their tools models see. Comments and order of the file stay.

use hermes_config::{ConfigFile, Key};
use hermes_mcp::{OfferedTool, ServerSettings};
use serde_json::{Map, Value, json};

use super::{one, unknown};
use crate::base::Base;
use crate::error::{Error, Result};

/// What the settings say of a server that is described like this.
pub fn section(
    url: Option<String>,
    mut command: Option<String>,
    mut args: Vec<String>,
    env: &[String],
    header: &[String],
) -> Result<Value> {
    if url.is_some() && !args.is_empty() {
        return Err(
            Error::asked("a server has an address or a command, not both")
                .with_hint("leave out --url, or what stands behind `--`"),
        );
    }
    if let Some(url) = url
        .as_deref()
        .filter(|url| !url.starts_with("http://") && !url.starts_with("https://"))
    {
        return Err(
            Error::asked(format!("`{url}` is not an http or https address"))
                .with_hint("write it with its scheme, such as https://example.org/mcp"),
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

fn pairs(texts: &[String], flag: &str) -> Result<Value> {
    let pair = |text: &String| match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), json!(value))),
        _ => Err(Error::asked(format!("`{flag} {text}` is not NAME=VALUE"))
            .with_hint("write a secret as ${VARIABLE} and set it with `hermes config set`")),
    };
    Ok(Value::Object(
        texts.iter().map(pair).collect::<Result<_>>()?,
    ))
}

/// Adds a server. Returns what to tell of it: what is odd about it, and what comes next.
pub fn add(base: &Base, name: &str, section: &Value) -> Result<(Vec<String>, String)> {
    if base.settings.get(&format!("mcp_servers.{name}")).is_some() {
        return Err(
            Error::asked(format!("there is an MCP server `{name}` already")).with_hint(format!(
                "choose another name, or remove it first: hermes mcp remove {name}"
            )),
        );
    }
    let settings =
        ServerSettings::parse(name, section).map_err(|error| Error::asked(error.to_string()))?;
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    file.set(&key(name, &[])?, section)?;
    file.save()?;
    let next = match settings.oauth {
        Some(_) => format!("log in with `hermes mcp login {name}`"),
        None => format!("try it with `hermes mcp test {name}`"),
    };
    let told = format!("added `{name}` to {}; {next}", file.path().display());
    Ok((settings.warnings, told))
}

/// Removes a server. Returns what to tell of it.
pub fn remove(base: &Base, name: &str) -> Result<String> {
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    if !file.unset(&key(name, &[])?)? {
        let (servers, _) = super::settings(base);
        let names: Vec<String> = servers.into_iter().map(|server| server.name).collect();
        return Err(unknown(name, &names));
    }
    file.save()?;
    Ok(format!("removed `{name}` from {}", file.path().display()))
}

/// Which tools models see.
#[derive(Debug, PartialEq, Eq)]
pub enum ToolChoice {
    Only(Vec<String>),
    AllBut(Vec<String>),
}

impl ToolChoice {
    /// What the flags say; `None` when there are none.
    pub fn of_flags(include: Vec<String>, exclude: Vec<String>, all: bool) -> Option<Self> {
        match (include.is_empty(), exclude.is_empty(), all) {
            (false, ..) => Some(Self::Only(include)),
            (_, false, _) | (.., true) => Some(Self::AllBut(exclude)),
            _ => None,
        }
    }

    /// Who wrote a list of what they want goes on with it; everybody else gets what a server offers later, too.
    pub fn of_list(tools: &[OfferedTool], settings: &ServerSettings) -> Self {
        let names = |is_wanted: bool| -> Vec<String> {
            let chosen = tools.iter().filter(|tool| tool.is_wanted == is_wanted);
            chosen.map(|tool| tool.name.clone()).collect()
        };
        let wanted = names(true);
        if settings.tools.include.is_empty() || wanted.is_empty() {
            Self::AllBut(names(false))
        } else {
            Self::Only(wanted)
        }
    }
}

/// Shows a single tool of a server to models, or hides it. Returns what to tell of it.
pub fn switch(base: &Base, server: &str, tool: &str, is_on: bool) -> Result<String> {
    let tools = one(base, server)?.tools;
    let is_inclusive = !tools.include.is_empty();
    let mut names = if is_inclusive {
        tools.include
    } else {
        tools.exclude
    };
    names.retain(|name| name != tool);
    if is_on == is_inclusive {
        names.push(tool.to_owned());
    }
    if is_inclusive && names.is_empty() {
        return Err(Error::asked(format!(
            "`{tool}` is the only tool of `{server}` that models see"
        ))
        .with_hint(format!(
            "`hermes config set mcp_servers.{server}.enabled false` switches the whole server off"
        )));
    }
    let choice = if is_inclusive {
        ToolChoice::Only(names)
    } else {
        ToolChoice::AllBut(names)
    };
    save(base, server, &choice)
}

/// Keeps which tools of a server models see. Returns what to tell of it.
pub fn save(base: &Base, server: &str, choice: &ToolChoice) -> Result<String> {
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    let (include, exclude) = (
        key(server, &["tools", "include"])?,
        key(server, &["tools", "exclude"])?,
    );
    let (kept, dropped, names) = match choice {
        ToolChoice::Only(names) => (include, exclude, names),
        ToolChoice::AllBut(names) => (exclude, include, names),
    };
    file.unset(&dropped)?;
    if names.is_empty() {
        file.unset(&kept)?;
    } else {
        file.set(&kept, &json!(names))?;
    }
    file.save()?;
    let what = match choice {
        ToolChoice::Only(names) => format!("only {}", names.join(", ")),
        ToolChoice::AllBut(names) if names.is_empty() => "all tools".to_owned(),
        ToolChoice::AllBut(names) => format!("all tools but {}", names.join(", ")),
    };
    Ok(format!(
        "from the next conversation on, models see {what} of `{server}` ({})",
        file.path().display()
    ))
}

/// The place of a server's setting.
fn key(server: &str, inside: &[&str]) -> Result<Key> {
    let names = ["mcp_servers", server]
        .into_iter()
        .chain(inside.iter().copied());
    Key::from_segments(names.map(str::to_owned).collect())
        .ok_or_else(|| Error::asked("the name is empty").with_hint("give the server a name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_wanted_tools_stays_one() {
        let tool = |name: &str, is_wanted| OfferedTool {
            name: name.into(),
            description: String::new(),
            is_wanted,
        };
        let tools = [tool("a", true), tool("b", false)];
        let settings = |tools| {
            let section = json!({"url": "http://x", "tools": tools});
            ServerSettings::parse("s", &section).unwrap()
        };
        assert_eq!(
            ToolChoice::of_list(&tools, &settings(json!({"include": ["b"]}))),
            ToolChoice::Only(vec!["a".into()])
        );
        assert_eq!(
            ToolChoice::of_list(&tools, &settings(json!({}))),
            ToolChoice::AllBut(vec!["b".into()])
        );
    }
}
