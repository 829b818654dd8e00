//! A skill as words for the model: behind those of a person who named it, for a whole conversation, or because the model
//! asked for it.

use std::path::Path;

use hermes_core::SessionId;

use super::error::SkillError;
use super::library::{Library, Skill, Sources};

/// Skills that a whole conversation goes by.
#[derive(Debug, Default)]
pub struct Preloaded {
    /// For its prompt.
    pub notes: Vec<String>,
    /// The names of those that are there.
    pub names: Vec<String>,
    /// Which of those that were named are not there.
    pub warning: Option<String>,
}

/// What is told for one slash name: a skill, or the skills of a bundle.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    pub text: String,
    /// The skills it is of.
    pub names: Vec<String>,
}

impl Sources {
    /// What stands behind the words of a person who named a skill, or a bundle, by its slash name.
    pub fn told(&self, slash: &str, session: &SessionId) -> Result<Told, SkillError> {
        let library = self.library();
        let by_slash = library
            .skills
            .iter()
            .find(|skill| skill.slash.as_deref() == Some(slash));
        if let Some(skill) = by_slash {
            return Ok(Told {
                text: self.behind_words(skill, session),
                names: vec![skill.name.clone()],
            });
        }
        let Some(bundle) = library.bundle(slash) else {
            return Err(SkillError::asked(format!("the skill `{slash}` is gone"))
                .hint("/skills lists those there are"));
        };
        let mut texts: Vec<String> = bundle.instruction.iter().cloned().collect();
        let mut names = Vec::new();
        for name in &bundle.skills {
            match library.called(name) {
                Some(skill) => {
                    texts.push(self.behind_words(skill, session));
                    names.push(skill.name.clone());
                }
                None => texts.push(format!("(The skill `{name}` of this bundle is not there.)")),
            }
        }
        Ok(Told {
            text: texts.join("\n\n"),
            names,
        })
    }

    fn behind_words(&self, skill: &Skill, session: &SessionId) -> String {
        let why = "The user asks you to work by the skill";
        let whose = "Their own words stand above; what the skill says follows.";
        told(skill, why, whose, &self.body(skill, Some(session)))
    }

    /// Skills as notes for whole conversations. Those that are not there are told; none at all is a mistake.
    pub fn preloaded(&self, names: &[String]) -> Result<Preloaded, SkillError> {
        if names.is_empty() {
            return Ok(Preloaded::default());
        }
        let library = self.library();
        let (found, missing): (Vec<_>, Vec<_>) = names
            .iter()
            .flat_map(|name| with_bundles(&library, name))
            .map(|name| (name.clone(), library.called(&name)))
            .partition(|(_, skill)| skill.is_some());
        let missing: Vec<&str> = missing.iter().map(|(name, _)| name.as_str()).collect();
        let complaint = format!("there is no skill `{}`", missing.join("`, `"));
        if found.is_empty() {
            return Err(SkillError::asked(complaint).hint("`hermes skills list` lists them"));
        }
        let skills: Vec<&Skill> = found.into_iter().filter_map(|(_, skill)| skill).collect();
        Ok(Preloaded {
            notes: skills.iter().map(|skill| self.preload(skill)).collect(),
            names: skills.iter().map(|skill| skill.name.clone()).collect(),
            warning: (!missing.is_empty()).then_some(complaint),
        })
    }

    fn preload(&self, skill: &Skill) -> String {
        let why = "The user wants this whole conversation to go by the skill";
        told(skill, why, "What it says follows.", &self.body(skill, None))
    }

    pub(super) fn body(&self, skill: &Skill, session: Option<&SessionId>) -> String {
        if self.fills_in_variables {
            filled_in(&skill.body, &skill.folder, session)
        } else {
            skill.body.clone()
        }
    }
}

/// The skills of a bundle, or the name itself.
fn with_bundles(library: &Library, name: &str) -> Vec<String> {
    let slash = name.trim_start_matches('/').to_lowercase();
    match library.bundle(&slash) {
        Some(bundle) if library.called(name).is_none() => bundle.skills.clone(),
        _ => vec![name.to_owned()],
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
    let files = match skill.files().as_slice() {
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

    fn sources(root: &Path) -> Sources {
        Sources {
            home: root.join("skills"),
            bundles: root.join("skill-bundles"),
            fills_in_variables: true,
            ..Sources::default()
        }
    }

    #[test]
    fn the_model_is_told_the_body_with_its_folder_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let body = "Run ${HERMES_SKILL_DIR}/run.sh in ${HERMES_SESSION_ID}, not !`date`.";
        put(
            &root,
            "skills/go/SKILL.md",
            &format!("---\nname: go\n---\n{body}"),
        );
        put(&root, "skills/go/run.sh", "");
        put(&root, "skills/flat.md", body);
        let sources = sources(&root);
        let session = "s1".into();
        let place = root.join("skills");
        let place = place.display();
        assert_eq!(
            sources.told("go", &session).unwrap().text,
            format!(
                "The user asks you to work by the skill `go`. Their own words stand above; what the skill says follows.\n\
                 Its folder: {place}/go\nFiles beside it, to be read when it refers to them:\n- run.sh\n\n\
                 Run {place}/go/run.sh in s1, not !`date`."
            )
        );
        let flat = sources.told("flat", &session).unwrap().text;
        assert!(
            flat.contains(&format!("Run {place}/run.sh")) && !flat.contains("Files beside"),
            "{flat}"
        );
        assert!(sources.told("gone", &session).is_err());
    }

    #[test]
    fn a_bundle_is_told_with_its_instruction_and_all_its_skills() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        put(root, "skills/one.md", "First.");
        put(root, "skills/two.md", "Second.");
        put(
            root,
            "skill-bundles/both.yaml",
            "skills: [one, two, three]\ninstruction: In this order.\n",
        );
        let sources = sources(root);
        let told = sources.told("both", &"s".into()).unwrap();
        assert!(
            told.text.starts_with("In this order.\n\nThe user asks"),
            "{}",
            told.text
        );
        assert!(told.text.contains("First.") && told.text.contains("Second."));
        assert!(told.text.contains("`three` of this bundle is not there"));
        assert_eq!(told.names, ["one", "two"]);
        let preloaded = sources.preloaded(&["both".to_owned()]).unwrap();
        assert_eq!(preloaded.names, ["one", "two"]);
        assert_eq!(
            preloaded.warning.as_deref(),
            Some("there is no skill `three`")
        );
        assert!(sources.preloaded(&["nope".to_owned()]).is_err());
    }
}
