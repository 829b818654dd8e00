//! The skills of a home as the settings want them, and how lists of them look. What skills are is in `hermes-learning`.

pub mod grants;
pub(crate) mod inline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::skill::SkillIndex;
use hermes_core::{Author, BoxFuture, LearningLog, Tool};
use hermes_learning::skills::hub::{Hub, Places, Web, WebError};
use hermes_learning::skills::tools::{self, SkillPorts};
use hermes_learning::skills::{Inline, Library, Proposal, Skill, SkillError, Skills, Sources};
use hermes_tools::{Downloads, TOOLSETS};
use serde_json::Value;

use crate::base::Base;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::layout::{Table, age, one_line};
use crate::shown::insights::{SkillUse, skill_uses};
use crate::tools::web;

/// Enough of a description to choose by.
const SHOWN_CHARS_MAX: usize = 160;

impl From<SkillError> for Error {
    fn from(error: SkillError) -> Self {
        let hint = error.what_next();
        let told = match &error {
            SkillError::Asked { .. } | SkillError::Invalid { .. } => Self::asked(error.to_string()),
            _ => Self::failed(error.to_string()),
        };
        match hint {
            Some(hint) => told.with_hint(hint),
            None => told,
        }
    }
}

/// Where skills are looked for, as the settings say.
pub fn sources(base: &Base) -> Result<Sources> {
    let settings = &base.settings;
    let home = base.home.directory();
    let folder = |path: &String| match (path.strip_prefix("~/"), base.environment.user_home()) {
        (Some(rest), Some(user)) => user.join(rest),
        _ => home.join(path),
    };
    let external = settings.strings("skills.external_dirs")?;
    Ok(Sources {
        home: base.home.skills(),
        external: external.iter().map(folder).collect::<Vec<PathBuf>>(),
        bundles: home.join("skill-bundles"),
        disabled: disabled(base)?,
        environments: environments(base),
        fills_in_variables: settings.bool("skills.template_vars")?,
        config: hermes_config::mask(CONFIG, settings.get(CONFIG).unwrap_or(&Value::Null)),
        shell: None,
    })
}

/// Skills that are off: everywhere, and on this surface.
pub(crate) fn disabled(base: &Base) -> Result<Vec<String>> {
    let settings = &base.settings;
    let mut disabled = settings.strings("skills.disabled")?;
    let here = format!("{DISABLED_ON}.{}", base.surface);
    if settings.get(&here).is_some() {
        disabled.extend(settings.strings(&here)?);
    }
    Ok(disabled)
}

/// What is set for skills; what is a secret in it is theirs no more than anybody's.
const CONFIG: &str = "skills.config";

const DISABLED_ON: &str = "skills.platform_disabled";

/// `skills.inline_shell`: whether commands in skills are run.
pub(crate) fn runs_commands(base: &Base) -> Result<bool> {
    Ok(base.settings.bool("skills.inline_shell")?)
}

/// What surrounds us, for skills that are for that only.
fn environments(base: &Base) -> Vec<String> {
    let is_there = |path: &str| Path::new(path).exists();
    let found = [
        (
            "docker",
            is_there("/.dockerenv") || is_there("/run/.containerenv"),
        ),
        ("s6", is_there("/run/s6")),
        (
            "kanban",
            base.environment.get("HERMES_KANBAN_TASK").is_some(),
        ),
    ];
    let found = found.into_iter().filter(|(_, is_so)| *is_so);
    found.map(|(name, _)| name.to_owned()).collect()
}

/// The skills of a home, to be read and, with a log, changed.
pub fn skills(base: &Base, log: Option<Arc<dyn LearningLog>>) -> Result<Skills> {
    Ok(Skills {
        sources: sources(base)?,
        lock: base.home.locks().join("skills"),
        proposals: base.home.directory().join("pending").join("skills"),
        wants_approval: base.settings.bool("skills.write_approval")?,
        log,
        clock: Arc::new(SystemClock),
    })
}

/// The tools for skills, for a conversation or the review of one.
pub fn tools(
    base: &Base,
    log: Option<Arc<dyn LearningLog>>,
    author: Author,
    inline: Option<Inline>,
) -> Result<Vec<Arc<dyn Tool>>> {
    let mut skills = skills(base, log)?;
    skills.sources.shell = inline;
    Ok(tools::tools(&SkillPorts {
        skills,
        author,
        reach: Arc::new(grants::Reachable::of(base)?),
    }))
}

/// Puts the skills that come with the program into the home, at its first use.
pub fn ship(base: &Base) -> Result<()> {
    Ok(skills(base, None)?.ship()?)
}

/// Where skills come from that are not here.
pub fn hub(base: &Base, log: Option<Arc<dyn LearningLog>>) -> Result<Hub> {
    Ok(Hub {
        skills: skills(base, log)?,
        web: Arc::new(HubWeb(Downloads::new(&web::settings(base)?))),
        places: Places::default(),
    })
}

/// The web as tools reach it: by the same rules, and as much at a time.
pub struct HubWeb(pub Downloads);

impl Web for HubWeb {
    fn get<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<u8>, WebError>> {
        Box::pin(async move {
            self.0.get(url).await.map_err(|error| WebError {
                message: error.message,
                status: error.status,
            })
        })
    }
}

/// What a prompt says of the skills there are now.
pub fn index(base: &Base) -> Result<SkillIndex> {
    ship(base)?;
    Ok(index_of(&sources(base)?))
}

/// The same for whoever has read the settings.
pub fn index_of(sources: &Sources) -> SkillIndex {
    let usage = hermes_learning::skills::Usage::read(&sources.home);
    SkillIndex {
        viewer: tools::VIEWER,
        writer: tools::WRITER,
        finder: tools::FINDER,
        lines: sources.library().lines(&usage, members),
    }
}

/// How often skills were used, and how that came out.
pub fn uses(base: &Base) -> Result<Vec<SkillUse>> {
    let usage = hermes_learning::skills::Usage::read(&sources(base)?.home);
    Ok(skill_uses(&usage))
}

/// The tools of a toolset.
pub fn members(toolset: &str) -> Vec<String> {
    let built_in = TOOLSETS.iter().find(|one| one.name == toolset);
    let mut names = built_in.map(|one| one.tools()).unwrap_or_default();
    if toolset == tools::TOOLSET {
        names.extend(tools::NAMES);
    }
    names.into_iter().map(str::to_owned).collect()
}

/// The skills by category, or those in which all of the words stand.
pub fn list(library: &Library, words: &str) -> String {
    let mut categories: BTreeMap<&str, Vec<&Skill>> = BTreeMap::new();
    for skill in library.search(words) {
        categories.entry(&skill.category).or_default().push(skill);
    }
    let mut sections: Vec<String> = categories
        .iter()
        .map(|(category, skills)| section(library, category, skills))
        .collect();
    let is_all = words.trim().is_empty();
    if is_all && !library.bundles.is_empty() {
        sections.push(bundles(library));
    }
    sections.push(match (sections.is_empty(), is_all) {
        (true, true) => {
            "no skills; a skill is a folder with a SKILL.md in `skills` of the home (/profile shows where)".to_owned()
        }
        (true, false) => {
            format!("no skill has the words `{}`; /skills lists all", one_line(words))
        }
        _ => "/NAME [TEXT] uses a skill; /skills WORDS searches".to_owned(),
    });
    if is_all && !library.hidden.is_empty() {
        sections.push(format!("not for here: {}", library.hidden.join(", ")));
    }
    let problems: Vec<String> = library
        .problems
        .iter()
        .map(|told| format!("warning: {told}"))
        .collect();
    if !problems.is_empty() {
        sections.push(problems.join("\n"));
    }
    sections.join("\n\n")
}

fn section(library: &Library, category: &str, skills: &[&Skill]) -> String {
    let mut table = Table::without_heading();
    let mut skills = skills.to_vec();
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    for skill in skills {
        let description = shown(&skill.description);
        let (name, note) = match &skill.slash {
            Some(slash) => (format!("/{slash}"), ""),
            None => (one_line(&skill.name), " (has no slash: its name is taken)"),
        };
        table.row([format!("  {name}"), format!("{description}{note}")]);
    }
    let title = match library.categories.get(category) {
        Some(description) if !description.is_empty() => {
            format!("{}: {}", one_line(category), shown(description))
        }
        _ => one_line(category),
    };
    format!("{title}\n{}", table.text())
}

fn bundles(library: &Library) -> String {
    let mut table = Table::without_heading();
    for bundle in &library.bundles {
        table.row([format!("  /{}", bundle.slash), shown(&bundle.description)]);
    }
    format!("bundles\n{}", table.text())
}

fn shown(description: &str) -> String {
    hermes_core::text::shorten(&one_line(description), SHOWN_CHARS_MAX)
}

/// Says what a skill was given, and since when commands have it.
pub fn allowed(grant: &grants::Grant) -> String {
    let (what, since) = match &grant.what {
        grants::Needed::Variable(name) => (name, "commands have it from now on"),
        grants::Needed::File(path) => (path, "commands have it from the next conversation on"),
    };
    format!(
        "allowed: {} for {}; {since}, until the skill changes (`hermes skills disallow` takes it back)",
        one_line(what),
        one_line(&grant.skill)
    )
}

pub fn disallowed(taken: usize) -> String {
    match taken {
        0 => "it was not allowed".to_owned(),
        _ => "taken back: commands do not get it any more".to_owned(),
    }
}

/// The proposals that wait, each with its number, and how to answer; `accept` and `reject` are written before a number.
pub fn proposals(proposals: &[Proposal], now: hermes_core::Timestamp, command: &str) -> String {
    if proposals.is_empty() {
        return "no change of a skill waits for you".to_owned();
    }
    let mut table = Table::new(["NUMBER", "WHEN", "SKILL", "WHAT"]);
    for proposal in proposals {
        table.row([
            proposal.number.to_string(),
            age(proposal.at, now),
            one_line(&proposal.edit.skill),
            one_line(&proposed_summary(proposal)),
        ]);
    }
    format!(
        "{}\n\n{command} diff NUMBER shows one, {command} accept NUMBER makes the change, {command} reject NUMBER drops it",
        table.text()
    )
}

/// A proposal as the change it would make.
pub fn proposed_diff(proposal: &Proposal) -> String {
    let diffs = proposal.edits().map(|edit| {
        let (before, after) = (edit.before.as_deref(), edit.after.as_deref());
        hermes_learning::skills::diff(&edit.skill, &edit.path, before, after)
    });
    diffs.collect()
}

/// A proposal as the changes it makes, in words.
pub fn proposed_summary(proposal: &Proposal) -> String {
    let summaries: Vec<&str> = proposal.edits().map(|edit| edit.summary.as_str()).collect();
    summaries.join("; ")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn library(root: &Path) -> Library {
        let sources = Sources {
            home: root.to_owned(),
            ..Sources::default()
        };
        sources.library()
    }

    #[test]
    fn a_list_is_by_category_and_a_search_wants_every_word() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let skill = |name: &str, description: &str| {
            format!("---\nname: {name}\ndescription: {description}\n---\n")
        };
        put(root, "dev/DESCRIPTION.md", "For developers.");
        put(
            root,
            "dev/lint/SKILL.md",
            &skill("lint", "finds slips in code"),
        );
        put(
            root,
            "dev/review/SKILL.md",
            &skill("Code Review", "looks at code"),
        );
        put(root, "dev/model/SKILL.md", &skill("model", "takes a name"));
        put(root, "standup.md", "Says what was done.");
        let library = library(root);
        assert_eq!(
            list(&library, ""),
            "dev: For developers.\n  /code-review  looks at code\n  /lint         finds slips in code\n  \
             model         takes a name (has no slash: its name is taken)\n\n\
             general\n  /standup  Says what was done.\n\n\
             /NAME [TEXT] uses a skill; /skills WORDS searches"
        );
        let found = list(&library, "CODE looks");
        assert!(
            found.contains("/code-review") && !found.contains("/lint"),
            "{found}"
        );
        assert!(list(&library, "nothing").starts_with("no skill has the words `nothing`"));
        assert!(list(&Library::default(), "").starts_with("no skills;"));
    }

    /// A home with these settings, as a conversation from somewhere sees it.
    fn base(root: &Path, settings: &str, source: &str) -> Base {
        put(root, "home/config.yaml", settings);
        let environment = hermes_config::Environment::from_pairs([
            ("HERMES_HOME", root.join("home").into_os_string()),
            ("HOME", root.as_os_str().to_owned()),
        ]);
        let options = hermes_core::SessionOptions {
            cwd: Some(root.to_owned()),
            source: source.to_owned(),
            ..hermes_core::SessionOptions::default()
        };
        Base::in_environment(environment, None, &options).unwrap()
    }

    #[test]
    fn each_surface_leaves_out_skills_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let settings = "skills:\n  disabled: [a]\n  platform_disabled: {cli: [b], telegram: [c]}\n";
        for (source, off) in [
            ("", ["a", "b"].as_slice()),
            ("cli", &["a", "b"]),
            ("telegram", &["a", "c"]),
            ("odd.source", &["a"]),
        ] {
            let base = base(folder.path(), settings, source);
            assert_eq!(sources(&base).unwrap().disabled, off, "{source}");
        }
    }

    #[test]
    fn what_is_set_for_skills_is_known_without_its_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let settings = "skills:\n  config: {wiki: {path: /wiki, token: abcdefgh}}\n";
        let base = base(folder.path(), settings, "cli");
        let wiki = &sources(&base).unwrap().config["wiki"];
        assert_eq!(
            (wiki["path"].as_str(), wiki["token"].as_str()),
            (Some("/wiki"), Some("***"))
        );
        assert!(
            base.settings.problems().is_empty(),
            "{:?}",
            base.settings.problems()
        );
    }

    #[test]
    fn toolsets_have_members() {
        assert_eq!(members("terminal"), ["process", "terminal"]);
        assert_eq!(members("skills"), tools::NAMES);
        assert!(members("browser").is_empty());
    }
}
