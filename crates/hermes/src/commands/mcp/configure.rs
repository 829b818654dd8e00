//! `hermes mcp configure`: which tools of a server models see. Comments and order of the settings stay.

use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use hermes_config::ConfigFile;
use hermes_core::Random;
use hermes_core::text::shorten;
use hermes_mcp::{Mcp, OfferedTool, ServerSettings};
use serde_json::json;

use super::{key, one};
use crate::base::Base;
use crate::commands::confirm::is_anybody_there;
use crate::commands::layout::one_line;
use crate::failure::{Failure, Outcome};
use crate::mcp::ports;
use crate::output::{note, println};
use crate::style::Style;

/// Enough of a description to know what a tool is for.
const DESCRIPTION_CHARS_MAX: usize = 60;

/// Which tools models see.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Only(Vec<String>),
    AllBut(Vec<String>),
}

impl Choice {
    /// What the flags say; `None` when there are none.
    pub(super) fn of_flags(include: Vec<String>, exclude: Vec<String>, all: bool) -> Option<Self> {
        match (include.is_empty(), exclude.is_empty(), all) {
            (false, ..) => Some(Self::Only(include)),
            (_, false, _) | (.., true) => Some(Self::AllBut(exclude)),
            _ => None,
        }
    }

    /// Who wrote a list of what they want goes on with it; everybody else gets what a server offers later, too.
    fn of_list(tools: &[OfferedTool], settings: &ServerSettings) -> Self {
        let names = |is_wanted: bool| -> Vec<String> {
            let chosen = tools.iter().filter(|tool| tool.is_wanted == is_wanted);
            chosen.map(|tool| tool.name.clone()).collect()
        };
        let wanted = names(true);
        match settings.tools.include.is_empty() || wanted.is_empty() {
            true => Self::AllBut(names(false)),
            false => Self::Only(wanted),
        }
    }
}

pub(super) async fn run(
    base: &Base,
    server: &str,
    choice: Option<Choice>,
    wait: Duration,
) -> Outcome<()> {
    let settings = one(base, server)?;
    let choice = match choice {
        Some(choice) => choice,
        None if !is_anybody_there() => {
            return Err(Failure::usage("nobody is there to choose tools")
                .hint("use --include A,B or --exclude A,B or --all"));
        }
        None => {
            let mut tools = offered(base, settings.clone(), wait).await;
            if tools.is_empty() {
                return Err(Failure::new(format!("`{server}` did not list any tools"))
                    .hint(format!("`hermes mcp doctor {server}` says why")));
            }
            let style = Style::of(&io::stderr(), &base.environment);
            if !ask(&mut tools, style)? {
                return println("nothing was changed");
            }
            Choice::of_list(&tools, &settings)
        }
    };
    save(base, server, &choice)
}

async fn offered(base: &Base, settings: ServerSettings, wait: Duration) -> Vec<OfferedTool> {
    let name = settings.name.clone();
    let settings = ServerSettings {
        enabled: true,
        ..settings
    };
    let mcp = Mcp::start(vec![settings], ports(base, Arc::new(Random::from_system())));
    mcp.tools(wait).await;
    let tools = mcp.offered(&name);
    mcp.shutdown().await;
    tools
}

/// Lets a person switch tools on and off. Returns whether to keep what they chose.
fn ask(tools: &mut [OfferedTool], style: Style) -> Outcome<bool> {
    loop {
        for (number, tool) in (1..).zip(tools.iter()) {
            note(&line(number, tool, style));
        }
        let mut stderr = io::stderr().lock();
        let mut answer = String::new();
        let asked = write!(
            stderr,
            "switch which? (2 or 1,3-5, all, none; Enter saves, q leaves) "
        )
        .and_then(|()| stderr.flush())
        .and_then(|()| io::stdin().read_line(&mut answer));
        drop(stderr);
        let bytes =
            asked.map_err(|error| Failure::new(format!("cannot ask at the terminal: {error}")))?;
        match answer.trim() {
            _ if bytes == 0 => return Ok(false),
            "" => return Ok(true),
            "q" => return Ok(false),
            "all" => tools.iter_mut().for_each(|tool| tool.is_wanted = true),
            "none" => tools.iter_mut().for_each(|tool| tool.is_wanted = false),
            numbers => match parse_numbers(numbers, tools.len()) {
                Some(ranges) => ranges.into_iter().flatten().for_each(|number| {
                    let tool = &mut tools[number - 1];
                    tool.is_wanted = !tool.is_wanted;
                }),
                None => note(&format!("write numbers from 1 to {}", tools.len())),
            },
        }
    }
}

fn line(number: usize, tool: &OfferedTool, style: Style) -> String {
    let mark = match tool.is_wanted {
        true => style.green("[x]"),
        false => "[ ]".to_owned(),
    };
    let description = shorten(&one_line(&tool.description), DESCRIPTION_CHARS_MAX);
    let name = one_line(&tool.name);
    format!("{number:>3} {mark} {name}  {}", style.dim(description))
}

/// Reads `1,3-5`; `None` when a part is no number of the list.
fn parse_numbers(text: &str, count: usize) -> Option<Vec<RangeInclusive<usize>>> {
    let number = |text: &str| {
        let number = text.trim().parse().ok()?;
        (1..=count).contains(&number).then_some(number)
    };
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some(number(first)?..=number(last)?),
        None => number(part).map(|number| number..=number),
    };
    text.split([',', ' '])
        .filter(|part| !part.is_empty())
        .map(range)
        .collect()
}

fn save(base: &Base, server: &str, choice: &Choice) -> Outcome<()> {
    let mut file = ConfigFile::open(&base.home.config_yaml())?;
    let (include, exclude) = (
        key(server, &["tools", "include"])?,
        key(server, &["tools", "exclude"])?,
    );
    let (kept, dropped, names) = match choice {
        Choice::Only(names) => (include, exclude, names),
        Choice::AllBut(names) => (exclude, include, names),
    };
    file.unset(&dropped)?;
    if names.is_empty() {
        file.unset(&kept)?;
    } else {
        file.set(&kept, &json!(names))?;
    }
    file.save()?;
    let what = match choice {
        Choice::Only(names) => format!("only {}", names.join(", ")),
        Choice::AllBut(names) if names.is_empty() => "all tools".to_owned(),
        Choice::AllBut(names) => format!("all tools but {}", names.join(", ")),
    };
    println(&format!(
        "from the next conversation on, models see {what} of `{server}` ({})",
        file.path().display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read_and_others_refused() {
        let read = |text: &str| -> Option<Vec<usize>> {
            parse_numbers(text, 5).map(|ranges| ranges.into_iter().flatten().collect())
        };
        assert_eq!(read("2"), Some(vec![2]));
        assert_eq!(read("1, 3-5"), Some(vec![1, 3, 4, 5]));
        assert_eq!(read("5-3"), Some(vec![]));
        for wrong in ["0", "6", "1-9", "x", "1,x", "-1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

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
            Choice::of_list(&tools, &settings(json!({"include": ["b"]}))),
            Choice::Only(vec!["a".into()])
        );
        assert_eq!(
            Choice::of_list(&tools, &settings(json!({}))),
            Choice::AllBut(vec!["b".into()])
        );
    }
}
