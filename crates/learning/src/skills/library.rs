//! All skills of a home and of the folders beside it, as they are now.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use hermes_core::command::{Surface, is_name};
use hermes_core::skill::{SkillLine, SkillNames, slash_name};
use serde_json::Value;

use super::bundles::{self, Bundle};
use super::change::{file_digest, found};
use super::document::{Needs, Setting, Variable};
use super::error::SkillError;
use super::folders::{self, Found};
use super::told::Inline;
use super::usage::Usage;

/// Where skills stand that are in no category.
const NO_CATEGORY: &str = "general";

/// Where skills are looked for, and which of them are wanted.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The home's: its skills go before others of the same name.
    pub home: PathBuf,
    /// Folders of others. Nothing is written there without consent.
    pub external: Vec<PathBuf>,
    /// Files that name several skills at once.
    pub bundles: PathBuf,
    pub disabled: Vec<String>,
    /// What surrounds us, such as `docker`, for skills that are for that only.
    pub environments: Vec<String>,
    pub fills_in_variables: bool,
    /// `skills.config`: what the user set for skills.
    pub config: Value,
    /// `skills.inline_shell`: what runs commands in skills, for those who may have them run.
    pub shell: Option<Inline>,
}

#[derive(Debug, Clone)]
pub struct Skill {
    pub name: String,
    /// How it is called behind a slash; a command of that name takes it away.
    pub slash: Option<String>,
    pub category: String,
    pub description: String,
    pub tags: Vec<String>,
    pub related: Vec<String>,
    pub needs: Needs,
    pub variables: Vec<Variable>,
    /// Files with keys that it needs, below the home of Hermes.
    pub credential_files: Vec<String>,
    pub settings: Vec<Setting>,
    pub compatibility: Option<String>,
    pub body: String,
    /// `SKILL.md`, or the file itself where a skill is one file.
    pub file: PathBuf,
    pub folder: PathBuf,
    /// It has its folder for itself.
    pub has_files: bool,
    /// Whether it is in a folder of others.
    pub is_external: bool,
    /// The name of its folder or file.
    pub(super) given_name: String,
    platforms: Vec<String>,
    environments: Vec<String>,
}

/// All skills there are.
#[derive(Debug, Default)]
pub struct Library {
    pub skills: Vec<Skill>,
    /// Categories that say what they are for.
    pub categories: BTreeMap<String, String>,
    pub bundles: Vec<Bundle>,
    /// Skills that are not for here, and why.
    pub hidden: Vec<String>,
    pub problems: Vec<String>,
}

/// A skill that was asked for by its name.
#[derive(Debug)]
pub enum Lookup<'a> {
    One(&'a Skill),
    /// Several are called so; by `category/name`.
    Several(Vec<String>),
    /// None is; these are spelt alike.
    None(Vec<String>),
}

impl Sources {
    fn roots(&self) -> Vec<PathBuf> {
        let home = std::iter::once(self.home.clone());
        home.chain(self.external.iter().cloned()).collect()
    }

    /// Reads everything.
    pub fn library(&self) -> Library {
        let mut library = Library::default();
        // Names, and the number of the folder they were first found in.
        let mut taken = HashMap::new();
        let home = self.home.canonicalize();
        for (number, skill_folder) in folders::look_through(&self.roots()).into_iter().enumerate() {
            library.problems.extend(skill_folder.problems);
            for (category, description) in skill_folder.categories {
                library.categories.entry(category).or_insert(description);
            }
            for found in skill_folder.found {
                let mut skill = Skill::of(found);
                let real = skill.folder.canonicalize();
                skill.is_external = match (&home, real) {
                    (Ok(home), Ok(real)) => !real.starts_with(home),
                    _ => true,
                };
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
                        library.add(skill, self);
                    }
                }
            }
        }
        library.skills.sort_by(|a, b| a.name.cmp(&b.name));
        let (bundles, problems) = bundles::read(&self.bundles);
        library.problems.extend(problems);
        library.add_bundles(bundles);
        library
    }
}

impl Library {
    /// The names that can be typed, with what they are for.
    pub fn names(&self) -> SkillNames {
        let named = |skill: &Skill| Some((skill.slash.clone()?, skill.description.clone()));
        let bundles = self.bundles.iter();
        let bundles = bundles.map(|bundle| (bundle.slash.clone(), bundle.description.clone()));
        SkillNames::new(self.skills.iter().filter_map(named).chain(bundles))
    }

    /// The skill of this name, or of this slash name.
    pub fn called(&self, name: &str) -> Option<&Skill> {
        let slash = name.trim_start_matches('/').to_lowercase();
        let is_called = |skill: &&Skill| {
            skill.slash.as_ref() == Some(&slash) || skill.name.eq_ignore_ascii_case(name)
        };
        self.skills.iter().find(is_called)
    }

    pub fn bundle(&self, slash: &str) -> Option<&Bundle> {
        self.bundles.iter().find(|bundle| bundle.slash == slash)
    }

    /// The skill that a model or a person means: by its name, its folder, `category/name`, or its slash name.
    pub fn look_up(&self, name: &str) -> Lookup<'_> {
        let name = name.trim().trim_start_matches('/');
        let fits = |skill: &&Skill| {
            let full = format!("{}/{}", skill.category, skill.given_name);
            skill.name.eq_ignore_ascii_case(name)
                || skill.given_name.eq_ignore_ascii_case(name)
                || full.eq_ignore_ascii_case(name)
                || skill.slash.as_deref() == Some(name)
        };
        let found: Vec<&Skill> = self.skills.iter().filter(fits).collect();
        let exact = found.iter().find(|skill| skill.name == name);
        match (exact, found.as_slice()) {
            (Some(skill), _) | (None, [skill]) => Lookup::One(skill),
            (None, []) => {
                let names = self.skills.iter().map(|skill| skill.name.as_str());
                let near = hermes_core::text::nearest(name, names);
                Lookup::None(near.into_iter().map(str::to_owned).collect())
            }
            (None, several) => {
                let full = |skill: &&Skill| format!("{}/{}", skill.category, skill.given_name);
                Lookup::Several(several.iter().map(full).collect())
            }
        }
    }

    /// The skill that a name means, or what to say instead.
    pub fn named(&self, name: &str) -> Result<&Skill, SkillError> {
        found(self, name)
    }

    /// Those in which all of the words stand, in names, descriptions, tags or bodies; the best first. Without words all.
    pub fn search(&self, words: &str) -> Vec<&Skill> {
        let words = words.to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        if words.is_empty() {
            return self.skills.iter().collect();
        }
        let ranked = self.skills.iter().filter_map(|skill| {
            let rank = skill.rank(&words)?;
            Some((rank, skill))
        });
        let mut ranked: Vec<_> = ranked.collect();
        ranked.sort_by_key(|(rank, skill)| (std::cmp::Reverse(*rank), skill.name.clone()));
        ranked.into_iter().map(|(_, skill)| skill).collect()
    }

    /// What a prompt says of them. `members` knows which tools are in a toolset.
    pub fn lines(&self, usage: &Usage, members: impl Fn(&str) -> Vec<String>) -> Vec<SkillLine> {
        let groups = |tools: &[String], toolsets: &[String]| -> Vec<Vec<String>> {
            let alone = tools.iter().map(|tool| vec![tool.clone()]);
            alone
                .chain(toolsets.iter().map(|name| members(name)))
                .collect()
        };
        let lines = self.skills.iter().map(|skill| {
            let needs = &skill.needs;
            SkillLine {
                name: skill.name.clone(),
                category: skill.category.clone(),
                description: skill.description.clone(),
                uses: usage.uses(&skill.name),
                requires: groups(&needs.tools, &needs.toolsets),
                instead_of: groups(&needs.fallback_for_tools, &needs.fallback_for_toolsets),
            }
        });
        lines.collect()
    }

    /// Takes a skill in, if it is wanted here and its name is free.
    fn add(&mut self, mut skill: Skill, sources: &Sources) {
        let Sources {
            disabled,
            environments,
            ..
        } = sources;
        if disabled.contains(&skill.name) || disabled.contains(&skill.given_name) {
            return self.hidden.push(format!("{} (disabled)", skill.name));
        }
        let here = [std::env::consts::OS.to_owned()];
        for (wanted, there) in [
            (&skill.platforms, &here[..]),
            (&skill.environments, environments),
        ] {
            if !wanted.is_empty() && !wanted.iter().any(|one| there.contains(one)) {
                let wanted = wanted.join(" or ");
                return self.hidden.push(format!("{} (for {wanted})", skill.name));
            }
        }
        skill.slash = skill.slash.filter(|slash| !self.is_taken(slash));
        self.skills.push(skill);
    }

    fn add_bundles(&mut self, bundles: Vec<Bundle>) {
        for bundle in bundles {
            if self.is_taken(&bundle.slash) {
                self.problems.push(format!(
                    "the bundle `{}` has no slash: its name is taken",
                    bundle.slash
                ));
            } else {
                self.bundles.push(bundle);
            }
        }
    }

    fn is_taken(&self, slash: &str) -> bool {
        let mut others = self.skills.iter().map(|skill| skill.slash.as_deref());
        is_name(slash, Surface::Terminal) || others.any(|other| other == Some(slash))
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
            tags: document.tags,
            related: document.related,
            needs: document.needs,
            variables: document.variables,
            credential_files: document.credential_files,
            settings: document.settings,
            compatibility: document.compatibility,
            platforms: document.platforms,
            environments: document.environments,
            body: document.body,
            has_files: file.ends_with(folders::SKILL_FILE),
            folder: folder.to_owned(),
            file,
            is_external: false,
            given_name,
        }
    }

    /// What its text says, in short; nothing where it is gone. Who agreed to something for it agreed to this text.
    pub fn digest(&self) -> Option<String> {
        file_digest(&self.file)
    }

    /// The files beside it, by their paths in its folder.
    pub fn files(&self) -> Vec<String> {
        if self.has_files {
            folders::files_beside(&self.folder)
        } else {
            Vec::new()
        }
    }

    /// How well it fits words, if all of them stand somewhere in it: a name says more than a description, and that more
    /// than a body.
    fn rank(&self, words: &[&str]) -> Option<u32> {
        let name = self.name.to_lowercase();
        let described = format!(
            "{} {} {}",
            self.category,
            self.description,
            self.tags.join(" ")
        );
        let described = described.to_lowercase();
        let body = self.body.to_lowercase();
        let mut rank = 0;
        for word in words {
            rank += if name.contains(word) {
                9
            } else if described.contains(word) {
                3
            } else if body.contains(word) {
                1
            } else {
                return None;
            };
        }
        Some(rank)
    }
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

    fn sources(home: &Path, external: &[&Path]) -> Sources {
        Sources {
            home: home.to_owned(),
            external: external.iter().map(|root| root.to_path_buf()).collect(),
            bundles: home.join("../skill-bundles"),
            disabled: vec!["off".to_owned()],
            environments: vec!["docker".to_owned()],
            fills_in_variables: true,
            config: Value::Null,
            shell: None,
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
    fn what_is_disabled_or_for_another_place_is_not_for_here() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(
            root,
            "a/SKILL.md",
            &skill(
                "here",
                "platforms: [linux, macos]\nenvironments: [docker]",
                "",
            ),
        );
        put(root, "b/SKILL.md", &skill("there", "platforms: [beos]", ""));
        put(
            root,
            "d/SKILL.md",
            &skill("boards", "environments: [kanban]", ""),
        );
        put(root, "off/SKILL.md", &skill("named", "", ""));
        put(root, "c/SKILL.md", &skill("off", "", ""));
        let library = sources(root, &[]).library();
        assert_eq!(names(&library), ["here"]);
        assert_eq!(
            library.hidden,
            [
                "there (for beos)",
                "off (disabled)",
                "boards (for kanban)",
                "named (disabled)"
            ]
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
        let library = sources(home.path(), &[other.path()]).library();
        assert_eq!(names(&library), ["more", "review"]);
        assert_eq!(library.problems.len(), 1, "{:?}", library.problems);
        assert_eq!(library.called("model").unwrap().slash, None);
        // Folders come in order, so that of the category is the first.
        assert_eq!(library.called("review").unwrap().body, "Again.");
        assert!(library.called("more").unwrap().is_external);
        assert!(!library.called("review").unwrap().is_external);
    }

    #[test]
    fn a_name_is_looked_up_in_every_way_it_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, "dev/lint/SKILL.md", &skill("Linter", "", "Lint."));
        put(root, "a/same/SKILL.md", &skill("one", "", ""));
        put(root, "b/same/SKILL.md", &skill("two", "", ""));
        let library = sources(root, &[]).library();
        for name in ["Linter", "linter", "/linter", "lint", "dev/lint"] {
            assert!(
                matches!(library.look_up(name), Lookup::One(skill) if skill.name == "Linter"),
                "{name}"
            );
        }
        assert!(
            matches!(library.look_up("same"), Lookup::Several(all) if all == ["a/same", "b/same"])
        );
        assert!(matches!(library.look_up("linte"), Lookup::None(near) if near == ["Linter"]));
        assert!(matches!(library.look_up("../x"), Lookup::None(_)));
    }

    #[test]
    fn a_search_wants_every_word_and_the_best_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let described = |text: &str| format!("description: {text}");
        put(
            root,
            "a/SKILL.md",
            &skill("deploy", &described("ships it"), "Use kubectl."),
        );
        put(
            root,
            "b/SKILL.md",
            &skill("kubectl", &described("asks the cluster"), "Do."),
        );
        put(
            root,
            "c/SKILL.md",
            &skill("other", &described("with kubectl"), "Deploy."),
        );
        let library = sources(root, &[]).library();
        let found = |words: &str| -> Vec<&str> {
            let found = library.search(words).into_iter();
            found.map(|skill| skill.name.as_str()).collect()
        };
        assert_eq!(found("KUBECTL"), ["kubectl", "other", "deploy"]);
        assert_eq!(found("kubectl deploy"), ["deploy", "other"]);
        assert_eq!(found("nothing"), Vec::<&str>::new());
        assert_eq!(found("").len(), 3);
    }

    #[test]
    fn toolsets_that_a_skill_needs_are_written_out_as_their_tools() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let needs = "metadata:\n  hermes:\n    requires_tools: [a]\n    requires_toolsets: [web]\n    fallback_for_tools: [b]";
        put(root, "x/SKILL.md", &skill("x", needs, "Do."));
        let library = sources(root, &[]).library();
        let lines = library.lines(&Usage::default(), |toolset| {
            vec![format!("{toolset}_one"), format!("{toolset}_two")]
        });
        assert_eq!(lines[0].requires, [vec!["a"], vec!["web_one", "web_two"]]);
        assert_eq!(lines[0].instead_of, [vec!["b"]]);
    }
}
