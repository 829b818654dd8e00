//! `hermes skills`: what skills there are, what was changed in them and by whom, and what waits for consent.

mod hub;
mod publish;

use std::sync::Arc;
use std::time::Duration;

use hermes_core::{Author, Clock as _, LearnedChange, LearningLog, Subject};
use hermes_learning::skills::{Curating, Made, Skill, Skills, Usage};
use hermes_runtime::skills::grants;
use hermes_runtime::{SystemClock, curating, open_store, skills};
use serde_json::{Value, json};

use super::confirm::{Enter, confirm, is_anybody_there};
use super::layout::{Table, age, one_line, print_json};
use crate::args::{JsonFlag, SkillsArgs, SkillsCommand};
use crate::base::Base;
use crate::failure::{Failure, Outcome};
use crate::output::println;
use hermes_runtime::layout::printable;

const COMMAND: &str = "hermes skills";

pub(crate) async fn run(base: &Base, args: SkillsArgs) -> Outcome<()> {
    skills::ship(base)?;
    let command = args.command.unwrap_or(SkillsCommand::List {
        words: Vec::new(),
        json: JsonFlag { json: false },
    });
    match command {
        SkillsCommand::List { words, json } => list(base, &words.join(" "), json.json).await,
        SkillsCommand::Show { name, json } => show(base, &name, json.json).await,
        SkillsCommand::Proposals { json } => proposals(base, json.json),
        SkillsCommand::Accept { number } => {
            let (proposal, _) = logged(base)?.accept(number).await.map_err(told)?;
            println(&format!(
                "done: {}",
                printable(&skills::proposed_summary(&proposal))
            ))
        }
        SkillsCommand::Reject { number } => {
            let proposal = read_only(base)?.reject(number).await.map_err(told)?;
            println(&format!(
                "dropped: {}",
                printable(&skills::proposed_summary(&proposal))
            ))
        }
        SkillsCommand::History { name, json } => history(base, name.as_deref(), json.json).await,
        SkillsCommand::Diff { what } => diff(base, &what).await,
        SkillsCommand::Undo { what } => undo(base, &what).await,
        SkillsCommand::Pin { name } => pin(base, &name, true).await,
        SkillsCommand::Unpin { name } => pin(base, &name, false).await,
        SkillsCommand::Curate { dry_run } => curate(base, dry_run).await,
        SkillsCommand::Archive { name } => archive(base, &name).await,
        SkillsCommand::Restore { name } => restore(base, &name).await,
        SkillsCommand::Allow { name, what, yes } => match (name, what) {
            (Some(name), Some(what)) => allow(base, &name, &what, yes).await,
            _ => println(&grants::listed(base)?),
        },
        SkillsCommand::Disallow { name, what } => {
            let taken = grants::disallow(base, &name, what.as_deref()).await?;
            println(&skills::disallowed(taken))
        }
        SkillsCommand::Browse { json } => hub::search(base, "", json.json).await,
        SkillsCommand::Search { words, json } => {
            hub::search(base, &words.join(" "), json.json).await
        }
        SkillsCommand::Inspect { identifier } => hub::inspect(base, &identifier).await,
        SkillsCommand::Install(args) => hub::install(base, args).await,
        SkillsCommand::Update { name, force, yes } => {
            hub::update(base, name.as_deref(), force, yes).await
        }
        SkillsCommand::Uninstall { name } => hub::uninstall(base, &name).await,
        SkillsCommand::Audit { name } => hub::audit(base, name.as_deref()).await,
        SkillsCommand::Publish(args) => publish::publish(base, args).await,
        SkillsCommand::Tap { command } => hub::tap(base, command),
    }
}

fn told(error: hermes_learning::skills::SkillError) -> Failure {
    hermes_runtime::Error::from(error).into()
}

fn read_only(base: &Base) -> Outcome<Skills> {
    Ok(skills::skills(base, None)?)
}

/// The skills with the log of their changes.
fn logged(base: &Base) -> Outcome<Skills> {
    let log: Arc<dyn LearningLog> = Arc::new(open_store(base)?);
    Ok(skills::skills(base, Some(log))?)
}

async fn list(base: &Base, words: &str, as_json: bool) -> Outcome<()> {
    let skills = read_only(base)?;
    let library = skills.library().await;
    if !as_json {
        return println(&skills::list(&library, words));
    }
    let usage = skills.usage();
    let listed = library.search(words).into_iter().map(|skill| {
        json!({
            "name": skill.name,
            "category": skill.category,
            "description": skill.description,
            "path": skill.file,
            "uses": usage.uses(&skill.name),
            "is_of_agent": usage.is_of_agent(&skill.name),
        })
    });
    print_json(&json!({
        "skills": listed.collect::<Vec<Value>>(),
        "hidden": library.hidden,
        "problems": library.problems,
    }))
}

async fn show(base: &Base, name: &str, as_json: bool) -> Outcome<()> {
    let skills = read_only(base)?;
    let library = skills.library().await;
    let skill = library.named(name).map_err(told)?;
    let usage = skills.usage();
    let record = usage.get(&skill.name).cloned().unwrap_or_default();
    if as_json {
        return print_json(&json!({
            "name": skill.name,
            "category": skill.category,
            "description": skill.description,
            "path": skill.file,
            "files": skill.files(),
            "usage": record,
            "body": skill.body,
        }));
    }
    let mut table = Table::without_heading();
    let mut row = |name: &str, value: String| table.row([name.to_owned(), value]);
    row("name", one_line(&skill.name));
    row("for", one_line(&skill.description));
    row("file", skill.file.display().to_string());
    row("by", whose(skill, &usage).to_owned());
    row(
        "used",
        format!(
            "{} by you, {} by the model",
            record.use_count, record.view_count
        ),
    );
    if record.pinned {
        row("pinned", "yes".to_owned());
    }
    let files = skill.files();
    if !files.is_empty() {
        row("files", one_line(&files.join(", ")));
    }
    println(&format!("{}\n\n{}", table.text(), printable(&skill.body)))
}

fn whose(skill: &Skill, usage: &Usage) -> &'static str {
    let is_edited = usage
        .get(&skill.name)
        .is_some_and(|record| record.edited_by_person);
    match (skill.is_external, usage.is_of_agent(&skill.name)) {
        (true, _) => "others (an external folder)",
        (false, true) if is_edited => "the agent; edited by you, so that it is yours",
        (false, true) => "the agent",
        (false, false) => "you, or an installation",
    }
}

fn proposals(base: &Base, as_json: bool) -> Outcome<()> {
    let proposals = read_only(base)?.proposals();
    if as_json {
        return print_json(&json!(proposals));
    }
    println(&skills::proposals(&proposals, SystemClock.now(), COMMAND))
}

async fn history(base: &Base, name: Option<&str>, as_json: bool) -> Outcome<()> {
    let changes = logged(base)?.history(name).await.map_err(told)?;
    if as_json {
        return print_json(&json!(changes));
    }
    if changes.is_empty() {
        return println("no skill was changed by Hermes");
    }
    let now = SystemClock.now();
    let mut table = Table::new(["CHANGE", "WHEN", "BY", "WHAT"]);
    for change in &changes {
        table.row([
            format!("#{}", change.id),
            age(change.change.at, now),
            author(change.change.author).to_owned(),
            one_line(&format!("{}{}", change.change.summary, state(change))),
        ]);
    }
    println(&format!(
        "{}\n\n{COMMAND} diff '#N' shows one, {COMMAND} undo '#N' takes it back",
        table.text()
    ))
}

fn author(author: Author) -> &'static str {
    match author {
        Author::Person => "you",
        Author::Agent => "agent",
        Author::Review => "review",
        Author::Curator => "curator",
        Author::Hub => "hub",
    }
}

fn state(change: &LearnedChange) -> String {
    match (change.is_finished, change.undone_by) {
        (false, _) => " (cut off by a crash)".to_owned(),
        (true, Some(by)) => format!(" (taken back by #{by})"),
        (true, None) => String::new(),
    }
}

async fn diff(base: &Base, what: &str) -> Outcome<()> {
    if let Ok(number) = what.parse() {
        let proposal = read_only(base)?.proposal(number).map_err(told)?;
        return println(&printable(&skills::proposed_diff(&proposal)));
    }
    let change = match what.strip_prefix('#') {
        Some(_) => numbered(base, what).await?,
        None => {
            let changes = logged(base)?.history(Some(what)).await.map_err(told)?;
            let last = changes.into_iter().next();
            last.ok_or_else(|| Failure::usage(format!("no change of a skill `{what}` is known")))?
        }
    };
    let Subject::Skill { name, path } = &change.change.subject else {
        return Err(Failure::usage(format!("change {what} is not of a skill")));
    };
    let (before, after) = (&change.change.before, &change.change.after);
    println(&printable(&hermes_learning::skills::diff(
        name,
        path,
        before.as_deref(),
        after.as_deref(),
    )))
}

async fn numbered(base: &Base, what: &str) -> Outcome<LearnedChange> {
    let id = what
        .parse()
        .map_err(|_| Failure::usage(format!("`{what}` is no number of a change")))?;
    let found = open_store(base)?.change(id).await?;
    found.ok_or_else(|| Failure::usage(format!("there is no change {what}")))
}

async fn undo(base: &Base, what: &str) -> Outcome<()> {
    let skills = logged(base)?;
    let (change, made) = match what.strip_prefix('#') {
        Some(_) => {
            let id = what
                .parse()
                .map_err(|_| Failure::usage(format!("`{what}` is no number of a change")))?;
            skills.undo(id).await
        }
        None => skills.undo_last(what).await,
    }
    .map_err(told)?;
    let summary = printable(&change.change.summary);
    match made {
        Made::Done { change, .. } => println(&format!("taken back: {summary} (change #{change})")),
        Made::Proposed { number, .. } => println(&format!("proposal {number} waits for you")),
    }
}

async fn pin(base: &Base, name: &str, is_pinned: bool) -> Outcome<()> {
    let skills = read_only(base)?;
    let name = skills.pin(name, is_pinned).await.map_err(told)?;
    let done = if is_pinned {
        "pinned"
    } else {
        "not pinned any more"
    };
    println(&format!("{}: {done}", printable(&name)))
}

async fn archive(base: &Base, name: &str) -> Outcome<()> {
    let skills = logged(base)?;
    let library = skills.library().await;
    let name = library.named(name).map_err(told)?.name.as_str();
    skills.archive(name).await.map_err(told)?;
    let name = printable(name);
    println(&format!(
        "{name}: archived; `{COMMAND} restore {name}` brings it back"
    ))
}

async fn restore(base: &Base, name: &str) -> Outcome<()> {
    let made = logged(base)?.restore(name).await.map_err(told)?;
    let place = match made {
        Made::Done { file, .. } => format!(" in {}", file.display()),
        Made::Proposed { .. } => String::new(),
    };
    println(&format!("{}: back{place}", printable(name)))
}

async fn allow(base: &Base, name: &str, what: &str, yes: bool) -> Outcome<()> {
    // In the environment of every command of an agent's.
    if base.environment.get("HERMES_COMMAND").is_some() {
        return Err(
            Failure::usage("no command of the agent agrees to this for you").hint(
                "run it in a terminal of your own, or type `/skills allow` in the conversation",
            ),
        );
    }
    if !yes && !is_anybody_there() {
        return Err(Failure::usage("nobody is there to agree to it").hint("--yes agrees"));
    }
    let question = format!(
        "Every command of your conversations will be able to read `{}`. Let `{}` have it?",
        printable(what),
        printable(name)
    );
    if !yes && !confirm(&question, Enter::MeansNo)? {
        return println("nothing was allowed");
    }
    let grant = grants::allow(base, name, what).await?;
    println(&skills::allowed(&grant))
}

async fn curate(base: &Base, dry_run: bool) -> Outcome<()> {
    let curating = if dry_run {
        Curating::ToSee
    } else {
        Curating::Really
    };
    let store = Arc::new(open_store(base)?);
    let settings = curating::settings(base, store.as_ref()).await?;
    let log: Arc<dyn LearningLog> = store;
    let skills = skills::skills(base, Some(log))?;
    let curated = skills.curate(curating, &settings).await.map_err(told)?;
    let days = |after: Duration| after.as_secs() / (24 * 60 * 60);
    let (stale_days, archived_days) = (days(settings.stale_after), days(settings.archived_after));
    let would = if dry_run { "would be " } else { "" };
    let mut lines = Vec::new();
    for name in &curated.archived {
        lines.push(format!(
            "{would}archived: {}, unused for {archived_days} days",
            one_line(name)
        ));
    }
    for name in &curated.stale {
        lines.push(format!(
            "{would}marked stale: {}, unused for {stale_days} days",
            one_line(name)
        ));
    }
    for pair in &curated.alike {
        let then = match pair.proposal {
            Some(number) => {
                format!("proposal {number} merges them ({COMMAND} diff {number})")
            }
            None => "ask for them to be merged, or archive one".to_owned(),
        };
        lines.push(format!(
            "nearly the same ({} % of the words): {} and {}; {then}",
            pair.percent,
            one_line(&pair.one),
            one_line(&pair.other)
        ));
    }
    match lines.as_slice() {
        [] => println("nothing to do: every skill of the agent's is in use, and no two are alike"),
        lines => println(&lines.join("\n")),
    }
}
