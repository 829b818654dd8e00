//! The skills of a home: what there is, and a skill as words for the model.
//!
//! `folders` finds files and `front_matter` reads them; here is what they mean together. Everything is read anew each time it
//! is asked for, so that a skill that was just written is there at once.

mod folders;
mod front_matter;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use hermes_core::SessionId;
use hermes_core::command::{Surface, is_name};
use hermes_core::skill::{SkillNames, slash_name};

use crate::base::Base;
use crate::commands::layout::{Table, one_line};
use crate::failure::{Failure, Outcome};
use crate::output::note;
use folders::Found;

/// Enough of a description to choose by.
const SHOWN_CHARS_MAX: usize = 160;
/// Where skills stand that are in no category.
const NO_CATEGORY: &str = "general";

/// Where skills are looked for, and which of them are wanted.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The home's first: its skills go before others of the same name.
    roots: Vec<PathBuf>,
    disabled: Vec<String>,
    fills_in_variables: bool,
}

#[derive(Debug)]
pub struct Skill {
    pub name: String,
    /// How it is called behind a slash; a command of that name takes it away.
    pub slash: Option<String>,
    pub category: String,
    pub description: String,
    /// The name of its folder or file.
    given_name: String,
    platforms: Vec<String>,
    body: String,
    folder: PathBuf,
    /// It has its folder for itself.
    has_files: bool,
}

/// All skills there are.
#[derive(Debug, Default)]
pub struct Library {
    skills: Vec<Skill>,
    categories: BTreeMap<String, String>,
    /// Skills that are not for here, and why.
    hidden: Vec<String>,
    problems: Vec<String>,
}

impl Sources {
    pub fn of(base: &Base) -> Outcome<Self> {
        let settings = &base.settings;
        let home = base.home.directory();
        let folder = |path: &String| match (path.strip_prefix("~/"), base.environment.user_home()) {
            (Some(rest), Some(user)) => user.join(rest),
            _ => home.join(path),
        };
        let external = settings.strings("skills.external_dirs")?;
        let roots = std::iter::once(base.home.skills()).chain(external.iter().map(folder));
        Ok(Self {
            roots: roots.collect(),
            disabled: settings.strings("skills.disabled")?,
            fills_in_variables: settings.bool("skills.template_vars")?,
        })
    }

    /// Reads everything.
    pub fn library(&self) -> Library {
        let mut library = Library::default();
        // Names, and the number of the folder they were first found in.
        let mut taken = HashMap::new();
        for (number, skill_folder) in folders::look_through(&self.roots).into_iter().enumerate() {
            library.problems.extend(skill_folder.problems);
            for (category, description) in skill_folder.categories {
                library.categories.entry(category).or_insert(description);
            }
            for found in skill_folder.found {
                let skill = Skill::of(found);
                match taken.get(&skill.name) {
                    // Another one stands before it on purpose.
                    Some(first) if *first != number => continue,
                    Some(_) => library.problems.push(format!(
                        "{}: another skill is called `{}` too, and goes before it",
                        skill.folder.display(),
                        skill.name
                    )),
                    None => {
                        taken.insert(skill.name.clone(), number);
                        library.add(skill, &self.disabled);
                    }
                }
            }
        }
        library.skills.sort_by(|a, b| a.name.cmp(&b.name));
        library
    }

    /// A skill as words for the model, to stand behind those of the person who named it by its slash name.
    pub fn told(&self, slash: &str, session: &SessionId) -> Outcome<String> {
        let library = self.library();
        let named = |skill: &&Skill| skill.slash.as_deref() == Some(slash);
        let Some(skill) = library.skills.iter().find(named) else {
            return Err(Failure::new(format!("the skill `{slash}` is gone"))
                .hint("/skills lists those there are"));
        };
        let body = self.body(skill, Some(session));
        let why = "The user asks you to work by the skill";
        let whose = "Their own words stand above; what the skill says follows.";
        Ok(told(skill, why, whose, &body))
    }

    /// Skills as notes for whole conversations. Those that are not there are told; none at all is a mistake.
    pub fn preloaded(&self, names: &[String]) -> Outcome<Vec<String>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let library = self.library();
        let (found, missing): (Vec<_>, Vec<_>) = names
            .iter()
            .map(|name| (name, library.called(name)))
            .partition(|(_, skill)| skill.is_some());
        let missing: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
        let complaint = format!("there is no skill `{}`", missing.join("`, `"));
        if found.is_empty() {
            return Err(Failure::usage(complaint).hint("`/skills` in a conversation lists them"));
        }
        if !missing.is_empty() {
            note(&format!("warning: {complaint}"));
        }
        let skills = found.into_iter().filter_map(|(_, skill)| skill);
        Ok(skills.map(|skill| self.preload(skill)).collect())
    }

    fn preload(&self, skill: &Skill) -> String {
        let why = "The user wants this whole conversation to go by the skill";
        told(skill, why, "What it says follows.", &self.body(skill, None))
    }

    fn body(&self, skill: &Skill, session: Option<&SessionId>) -> String {
        if self.fills_in_variables {
            filled_in(&skill.body, &skill.folder, session)
        } else {
            skill.body.clone()
        }
    }
}

impl Library {
    /// The names that can be typed, with what they are for.
    pub fn names(&self) -> SkillNames {
        let named = |skill: &Skill| Some((skill.slash.clone()?, skill.description.clone()));
        SkillNames::new(self.skills.iter().filter_map(named))
    }

    /// The skill of this name, or of this slash name.
    fn called(&self, name: &str) -> Option<&Skill> {
        let slash = name.trim_start_matches('/').to_lowercase();
        let is_called = |skill: &&Skill| {
            skill.slash.as_ref() == Some(&slash) || skill.name.eq_ignore_ascii_case(name)
        };
        self.skills.iter().find(is_called)
    }

    /// The skills by category, or those in which all of the words stand.
    pub fn list(&self, words: &str) -> String {
        let words = words.to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let skills = self.skills.iter().filter(|skill| skill.has(&words));
        let mut categories: BTreeMap<&str, Vec<&Skill>> = BTreeMap::new();
        for skill in skills {
            categories.entry(&skill.category).or_default().push(skill);
        }
        let mut sections: Vec<String> = categories
            .iter()
            .map(|(category, skills)| self.section(category, skills))
            .collect();
        if sections.is_empty() {
            sections.push(if words.is_empty() {
                "no skills; a skill is a folder with a SKILL.md in `skills` of the home (/profile shows where)"
                    .to_owned()
            } else {
                format!("no skill has the words `{}`; /skills lists all", words.join(" "))
            });
        } else {
            sections.push("/NAME [TEXT] uses a skill; /skills WORDS searches".to_owned());
        }
        if words.is_empty() && !self.hidden.is_empty() {
            sections.push(format!("not for here: {}", self.hidden.join(", ")));
        }
        let problems = self.problems.iter().map(|told| format!("warning: {told}"));
        let problems: Vec<String> = problems.collect();
        if !problems.is_empty() {
            sections.push(problems.join("\n"));
        }
        sections.join("\n\n")
    }

    fn section(&self, category: &str, skills: &[&Skill]) -> String {
        let mut table = Table::without_heading();
        for skill in skills {
            let description = one_line(&skill.description);
            let description = hermes_core::text::shorten(&description, SHOWN_CHARS_MAX);
            let (name, note) = match &skill.slash {
                Some(slash) => (format!("/{slash}"), ""),
                None => (one_line(&skill.name), " (has no slash: its name is taken)"),
            };
            table.row([format!("  {name}"), format!("{description}{note}")]);
        }
        let title = match self.categories.get(category) {
            Some(description) if !description.is_empty() => {
                let description =
                    hermes_core::text::shorten(&one_line(description), SHOWN_CHARS_MAX);
                format!("{}: {description}", one_line(category))
            }
            _ => one_line(category),
        };
        format!("{title}\n{}", table.text())
    }

    /// Takes a skill in, if it is wanted here and its name is free.
    fn add(&mut self, mut skill: Skill, disabled: &[String]) {
        if disabled.contains(&skill.name) || disabled.contains(&skill.given_name) {
            return self.hidden.push(format!("{} (disabled)", skill.name));
        }
        let system = std::env::consts::OS;
        if !skill.platforms.is_empty() && !skill.platforms.iter().any(|one| one == system) {
            let platforms = skill.platforms.join(" or ");
            return self
                .hidden
                .push(format!("{} (for {platforms})", skill.name));
        }
        let is_taken = |slash: &str| {
            let others = self
                .skills
                .iter()
                .filter_map(|skill| skill.slash.as_deref());
            is_name(slash, Surface::Terminal) || others.into_iter().any(|other| other == slash)
        };
        skill.slash = skill.slash.filter(|slash| !is_taken(slash));
        self.skills.push(skill);
    }
}

impl Skill {
    fn of(found: Found) -> Self {
        let Found {
            category,
            given_name,
            file,
            document,
        } = found;
        let name = document.name.unwrap_or_else(|| given_name.clone());
        let folder = file.parent().unwrap_or(Path::new("/"));
        Self {
            slash: slash_name(&name).or_else(|| slash_name(&given_name)),
            name,
            category: if category.is_empty() {
                NO_CATEGORY.to_owned()
            } else {
                category
            },
            description: document.description,
            platforms: document.platforms,
            body: document.body,
            has_files: file.ends_with(folders::SKILL_FILE),
            folder: folder.to_owned(),
            given_name,
        }
    }

    fn has(&self, words: &[&str]) -> bool {
        let text = format!("{} {} {}", self.name, self.category, self.description).to_lowercase();
        words.iter().all(|word| text.contains(word))
    }
}

/// What the variables in a skill stand for; a session may not be known yet. Nothing that looks like a command is run.
fn filled_in(body: &str, folder: &Path, session: Option<&SessionId>) -> String {
    let body = body.replace("${HERMES_SKILL_DIR}", &folder.display().to_string());
    match session {
        Some(session) => body.replace("${HERMES_SESSION_ID}", session.as_str()),
        None => body,
    }
}

/// A skill in words: `why` it is told, and `whose` words are around it.
fn told(skill: &Skill, why: &str, whose: &str, body: &str) -> String {
    let folder = skill.folder.display();
    let files = if skill.has_files {
        folders::files_beside(&skill.folder)
    } else {
        Vec::new()
    };
    let files = match files.as_slice() {
        [] => String::new(),
        files => format!(
            "Files beside it, to be read when it refers to them:\n- {}\n",
            files.join("\n- ")
        ),
    };
    format!(
        "{why} `{}`. {whose}\nIts folder: {folder}\n{files}\n{body}",
        skill.name
    )
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

    fn sources(roots: &[&Path]) -> Sources {
        Sources {
            roots: roots.iter().map(|root| root.to_path_buf()).collect(),
            disabled: vec!["off".to_owned()],
            fills_in_variables: true,
        }
    }

    fn skill(name: &str, more: &str, body: &str) -> String {
        format!("---\nname: {name}\n{more}\n---\n{body}")
    }

    fn names(library: &Library) -> Vec<String> {
        let names = library.names();
        names.iter().map(|(name, _)| name.to_owned()).collect()
    }

    #[test]
    fn what_is_disabled_or_for_another_system_is_not_for_here() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(
            root,
            "a/SKILL.md",
            &skill("here", "platforms: [linux, macos]", ""),
        );
        put(root, "b/SKILL.md", &skill("there", "platforms: [beos]", ""));
        put(root, "off/SKILL.md", &skill("named", "", ""));
        put(root, "c/SKILL.md", &skill("off", "", ""));
        let library = sources(&[root]).library();
        assert_eq!(names(&library), ["here"]);
        assert!(
            library
                .list("")
                .contains("not for here: there (for beos), off (disabled), named (disabled)")
        );
    }

    #[test]
    fn the_home_goes_before_other_folders_and_commands_before_skills() {
        let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        put(home.path(), "review/SKILL.md", "Mine.");
        put(
            home.path(),
            "dev/again/SKILL.md",
            &skill("review", "", "Again."),
        );
        put(home.path(), "model/SKILL.md", "Models.");
        put(other.path(), "review/SKILL.md", "Theirs.");
        put(other.path(), "more/SKILL.md", "More.");
        let sources = sources(&[home.path(), other.path()]);
        let library = sources.library();
        assert_eq!(names(&library), ["more", "review"]);
        assert_eq!(library.problems.len(), 1, "{:?}", library.problems);
        assert!(
            library
                .list("model")
                .contains("  model  Models. (has no slash: its name is taken)")
        );
        let told = sources.told("review", &"s1".into()).unwrap();
        // Folders come in order, so that of the category is the first.
        assert!(told.ends_with("\n\nAgain."), "{told}");
    }

    #[test]
    fn a_list_is_by_category_and_a_search_wants_every_word() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, "dev/DESCRIPTION.md", "For developers.");
        put(
            root,
            "dev/lint/SKILL.md",
            &skill("lint", "description: finds slips in code", ""),
        );
        put(
            root,
            "dev/review/SKILL.md",
            &skill("Code Review", "description: looks at code", ""),
        );
        put(root, "standup.md", "Says what was done.");
        let library = sources(&[root]).library();
        assert_eq!(
            library.list(""),
            "dev: For developers.\n  /code-review  looks at code\n  /lint         finds slips in code\n\n\
             general\n  /standup  Says what was done.\n\n\
             /NAME [TEXT] uses a skill; /skills WORDS searches"
        );
        let found = library.list("CODE looks");
        assert!(
            found.contains("/code-review") && !found.contains("/lint"),
            "{found}"
        );
        assert!(
            library
                .list("nothing")
                .starts_with("no skill has the words `nothing`")
        );
        assert!(Library::default().list("").starts_with("no skills;"));
    }

    #[test]
    fn the_model_is_told_the_body_with_its_folder_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let body = "Run ${HERMES_SKILL_DIR}/run.sh in ${HERMES_SESSION_ID}, not !`date`.";
        put(&root, "go/SKILL.md", &skill("go", "", body));
        put(&root, "go/run.sh", "");
        put(&root, "flat.md", body);
        let sources = sources(&[&root]);
        let session = "s1".into();
        let place = root.display();
        assert_eq!(
            sources.told("go", &session).unwrap(),
            format!(
                "The user asks you to work by the skill `go`. Their own words stand above; what the skill says follows.\n\
                 Its folder: {place}/go\nFiles beside it, to be read when it refers to them:\n- run.sh\n\n\
                 Run {place}/go/run.sh in s1, not !`date`."
            )
        );
        let flat = sources.told("flat", &session).unwrap();
        assert!(
            flat.contains(&format!("Run {place}/run.sh")) && !flat.contains("Files beside"),
            "{flat}"
        );
        assert!(sources.told("gone", &session).is_err());
    }
}
