//! `hermes setup`: from nothing to a first answer. Also what a first start shows when no model is there.
//!
//! Every answer is checked with a real request before it is saved, and saved at once: who leaves in the middle loses
//! nothing and can go on later.

mod agent;
mod model;
mod terminal;

use std::path::{Path, PathBuf};

use super::confirm::{Enter, confirm, is_anybody_there};
use super::interview::{Choice, Interview, options};
use super::tools;
use crate::args::{DemoArgs, SetupArgs, SetupSection};
use crate::base::Base;
use crate::demo;
use crate::failure::{Failure, Outcome, code};
use crate::output::note;
use hermes_runtime::models::found as find;
use hermes_runtime::tools::toolsets::TERMINAL;

/// What a first start leads to.
pub(crate) enum Ready {
    /// There is a model now; the settings have to be read again.
    Chat,
    Demo,
}

pub(crate) async fn run(base: &Base, args: &SetupArgs) -> Outcome<()> {
    if args.reset {
        reset(base, args.non_interactive)?;
    }
    if args.non_interactive {
        return without_questions(base, args.section).await;
    }
    let mut interview = interview(base)?;
    match args.section {
        None | Some(SetupSection::Model) => {
            if let Some(Ready::Demo) = model::interview(base, &mut interview, args.quick).await? {
                return demo::run(&DemoArgs::default()).await;
            }
        }
        Some(SetupSection::Terminal) => return terminal::interview(base, &mut interview).await,
        Some(SetupSection::Tools) => return tools::choose(base, TERMINAL),
        Some(SetupSection::Agent) => return agent::interview(base, &mut interview),
        Some(SetupSection::Gateway) => return super::gateway::setup::run(base).await,
    }
    if args.section.is_none() && !args.quick {
        agent::interview(base, &mut interview)?;
    }
    note("\ndone; `hermes` starts a conversation, `hermes doctor` checks everything");
    note(
        "`hermes setup terminal` chooses where commands run, `hermes setup tools` which tools there are, `hermes gateway setup` a chat to talk in",
    );
    Ok(())
}

/// Asks which model should answer from now on.
pub(crate) async fn choose_model(base: &Base) -> Outcome<()> {
    let Some(mut interview) = Interview::begin(&base.environment, "hermes model") else {
        return Ok(());
    };
    match model::interview(base, &mut interview, false).await? {
        Some(Ready::Demo) => demo::run(&DemoArgs::default()).await,
        _ => Ok(()),
    }
}

/// Only a model can be found without asking; the rest is a matter of taste.
async fn without_questions(base: &Base, section: Option<SetupSection>) -> Outcome<()> {
    let instead = match section {
        None | Some(SetupSection::Model) => return model::choose_by_itself(base).await,
        Some(SetupSection::Terminal) => "`hermes config set terminal.backend NAME`",
        Some(SetupSection::Tools) => "`hermes tools enable NAME` and `hermes tools disable NAME`",
        Some(SetupSection::Agent) => "`hermes config set approvals.mode NAME`",
        Some(SetupSection::Gateway) => "`.env` of the home, and `hermes gateway start`",
    };
    Err(
        Failure::usage("nobody but you can answer this part of the setup")
            .hint(format!("leave out --non-interactive, or use {instead}")),
    )
}

/// What to do about something that did not work.
enum Then {
    Again,
    SaveAnyway,
    Back,
}

fn after_failure() -> Vec<Choice<Then>> {
    options([
        (Then::Back, "choose something else"),
        (Then::Again, "try again"),
        (Then::SaveAnyway, "save it anyway"),
    ])
}

/// Asks for a model when there is none and somebody is there to be asked; `None` when nothing is missing.
pub(crate) async fn before_first_chat(base: &Base) -> Outcome<Option<Ready>> {
    if !is_anybody_there() || !find::is_model_missing(base).await? {
        return Ok(None);
    }
    let mut interview = interview(base)?;
    match model::interview(base, &mut interview, true).await? {
        Some(ready) => Ok(Some(ready)),
        None => Err(Failure {
            code: code::FAILED,
            ..Failure::new("no model was chosen")
        }
        .hint("`hermes setup` asks again; `hermes demo` shows what it is like")),
    }
}

fn interview(base: &Base) -> Outcome<Interview> {
    Interview::begin(&base.environment, "hermes setup").ok_or_else(|| {
        Failure::usage("setup asks questions, and nobody is there to answer them").hint(
            "`hermes setup --non-interactive` takes what it finds; `hermes model set` and `hermes config set` \
             choose by hand",
        )
    })
}

/// Puts the settings aside, so that everything is asked anew. Keys and conversations stay.
fn reset(base: &Base, is_decided: bool) -> Outcome<()> {
    let file = base.home.config_yaml();
    if !file.exists() {
        return Ok(());
    }
    let aside = free_name(&file.with_extension("yaml.before-setup"));
    let question = format!("put `{}` aside and begin anew?", file.display());
    if !is_decided && !confirm(&question, Enter::MeansNo)? {
        return Err(Failure::new("nothing was changed"));
    }
    std::fs::rename(&file, &aside).map_err(|error| {
        Failure::new(format!("cannot put `{}` aside: {error}", file.display()))
            .hint("check that the folder is yours and writable")
    })?;
    note(&format!("the settings so far are in `{}`", aside.display()));
    Ok(())
}

/// The path, or the first one with a number behind it that nothing has yet.
fn free_name(path: &Path) -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("{}-{number}", path.display())));
    let mut names = std::iter::once(path.to_owned()).chain(numbered);
    names
        .find(|name| !name.exists())
        .unwrap_or_else(|| path.to_owned())
}
