//! A skill as words for the model: behind those of a person who named it, for a whole conversation, or because the model
//! asked for it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hermes_core::redact::redact;
use hermes_core::text::shorten;
use hermes_core::{BoxFuture, SessionId};
use serde_json::Value;

use super::blocking;
use super::error::SkillError;
use super::hub::Lock;
use super::library::{Library, Skill, Sources};
use super::usage::Usage;

/// Where a command begins in a text.
const COMMAND: &str = "!`";
/// Commands of one skill that are run, and what each may print.
const COMMANDS_MAX: usize = 20;
const SAID_CHARS_MAX: usize = 4_000;

/// Of a setting of a skill.
const SETTING_CHARS_MAX: usize = 500;

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

/// Runs the commands that stand in skills as !`command`. Whoever implements it judges each, and runs none that somebody would
/// have to agree to.
pub trait InlineShell: Send + Sync {
    /// What a command prints in the folder of its skill, or why it was not run: that stands in its place.
    fn run<'a>(&'a self, line: &'a str, folder: &'a Path, cwd: &'a Path) -> BoxFuture<'a, String>;
}

/// What runs the commands in skills for a conversation, and where that works.
#[derive(Clone)]
pub struct Inline {
    pub shell: Arc<dyn InlineShell>,
    pub cwd: PathBuf,
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl Sources {
    /// What stands behind the words of a person who named a skill, or a bundle, by its slash name.
    pub async fn told(&self, slash: &str, session: &SessionId) -> Result<Told, SkillError> {
        let library = self.read_library().await;
        let by_slash = library
            .skills
            .iter()
            .find(|skill| skill.slash.as_deref() == Some(slash));
        if let Some(skill) = by_slash {
            return Ok(Told {
                text: self.behind_words(skill, session).await,
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
                    texts.push(self.behind_words(skill, session).await);
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

    async fn behind_words(&self, skill: &Skill, session: &SessionId) -> String {
        let why = "The user asks you to work by the skill";
        let whose = "Their own words stand above; what the skill says follows.";
        told(skill, why, whose, &self.body(skill, Some(session)).await)
    }

    /// Skills as notes for whole conversations. Those that are not there are told; none at all is a mistake.
    pub async fn preloaded(&self, names: &[String]) -> Result<Preloaded, SkillError> {
        if names.is_empty() {
            return Ok(Preloaded::default());
        }
        let library = self.read_library().await;
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
        let mut notes = Vec::new();
        for skill in &skills {
            notes.push(self.preload(skill).await);
        }
        Ok(Preloaded {
            notes,
            names: skills.iter().map(|skill| skill.name.clone()).collect(),
            warning: (!missing.is_empty()).then_some(complaint),
        })
    }

    async fn preload(&self, skill: &Skill) -> String {
        let why = "The user wants this whole conversation to go by the skill";
        told(
            skill,
            why,
            "What it says follows.",
            &self.body(skill, None).await,
        )
    }

    async fn read_library(&self) -> Library {
        let sources = self.clone();
        blocking(move || sources.library()).await
    }

    /// What a skill says to a conversation, with what is known here filled in.
    pub(super) async fn body(&self, skill: &Skill, session: Option<&SessionId>) -> String {
        let body = if self.fills_in_variables {
            filled_in(&skill.body, &skill.folder, session)
        } else {
            skill.body.clone()
        };
        let body = self.with_commands_run(skill, body).await;
        match self.settings_of(skill) {
            settings if settings.is_empty() => body,
            settings => format!("{body}\n\nSettings of this skill:\n{}", settings.join("\n")),
        }
    }

    /// The text with what its commands print in their places, where they are run at all.
    async fn with_commands_run(&self, skill: &Skill, body: String) -> String {
        let Some(inline) = self.shell.as_ref().filter(|_| body.contains(COMMAND)) else {
            return body;
        };
        let (sources, asked) = (self.clone(), skill.clone());
        if !blocking(move || sources.may_run_commands_of(&asked)).await {
            return body;
        }
        let mut filled = String::with_capacity(body.len());
        let mut rest = body.as_str();
        let mut commands_left = COMMANDS_MAX;
        while let Some((before, line, after)) = next_command(rest) {
            filled.push_str(before);
            if commands_left == 0 {
                filled.push_str(&format!(
                    "[not run: a skill has at most {COMMANDS_MAX} commands]"
                ));
            } else {
                commands_left -= 1;
                let said = inline.shell.run(line, &skill.folder, &inline.cwd).await;
                filled.push_str(&shorten(&said, SAID_CHARS_MAX));
            }
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    /// Whether the commands in a skill are a person's own, or of one that they agreed to as it is.
    fn may_run_commands_of(&self, skill: &Skill) -> bool {
        if skill.is_external || Usage::read(&self.home).is_of_agent(&skill.name) {
            return false;
        }
        // Books that cannot be read say nothing for it.
        let Ok(books) = Lock::read(&self.home) else {
            return false;
        };
        let installed = books.at(&self.home, &skill.folder);
        installed.is_none_or(|(_, known)| known.is_as_installed(&skill.folder))
    }

    /// What a skill asks the user to set, as it is set; what is a secret is not told.
    fn settings_of(&self, skill: &Skill) -> Vec<String> {
        let lines = skill.settings.iter().map(|setting| {
            let key = &setting.key;
            let mut parts = key.split('.');
            let set = parts.try_fold(&self.config, |at, part| at.get(part));
            let value = set
                .or_else(|| self.config.get(key))
                .filter(|value| !value.is_null());
            let value = match value.unwrap_or(&setting.default) {
                Value::Null => "(not set)".to_owned(),
                Value::String(text) => text.clone(),
                value => value.to_string(),
            };
            let value: Vec<&str> = value.split_whitespace().collect();
            let line = format!("{key} = {}", value.join(" "));
            format!("- {}", shorten(&redact(&line), SETTING_CHARS_MAX))
        });
        lines.collect()
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

/// The next command in a text, with what stands before and after it: on one line, and not empty.
fn next_command(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let start = from + text[from..].find(COMMAND)?;
        let inside = &text[start + COMMAND.len()..];
        let end = inside.find(['`', '\n'])?;
        let line = &inside[..end];
        if inside[end..].starts_with('`') && !line.trim().is_empty() {
            return Some((&text[..start], line.trim(), &inside[end + 1..]));
        }
        from = start + COMMAND.len();
    }
}

/// What the variables in a skill stand for; a session may not be known yet. Commands are run elsewhere, if at all.
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

    #[tokio::test]
    async fn the_model_is_told_the_body_with_its_folder_and_files() {
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
            sources.told("go", &session).await.unwrap().text,
            format!(
                "The user asks you to work by the skill `go`. Their own words stand above; what the skill says follows.\n\
                 Its folder: {place}/go\nFiles beside it, to be read when it refers to them:\n- run.sh\n\n\
                 Run {place}/go/run.sh in s1, not !`date`."
            )
        );
        let flat = sources.told("flat", &session).await.unwrap().text;
        assert!(
            flat.contains(&format!("Run {place}/run.sh")) && !flat.contains("Files beside"),
            "{flat}"
        );
        assert!(sources.told("gone", &session).await.is_err());
    }

    #[tokio::test]
    async fn a_bundle_is_told_with_its_instruction_and_all_its_skills() {
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
        let told = sources.told("both", &"s".into()).await.unwrap();
        assert!(
            told.text.starts_with("In this order.\n\nThe user asks"),
            "{}",
            told.text
        );
        assert!(told.text.contains("First.") && told.text.contains("Second."));
        assert!(told.text.contains("`three` of this bundle is not there"));
        assert_eq!(told.names, ["one", "two"]);
        let preloaded = sources.preloaded(&["both".to_owned()]).await.unwrap();
        assert_eq!(preloaded.names, ["one", "two"]);
        assert_eq!(
            preloaded.warning.as_deref(),
            Some("there is no skill `three`")
        );
        assert!(sources.preloaded(&["nope".to_owned()]).await.is_err());
    }

    #[tokio::test]
    async fn what_the_user_set_for_a_skill_is_told_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let front = "---\nname: wiki\nmetadata:\n  hermes:\n    config:\n      - key: wiki.path\n        default: ~/wiki\n      \
                     - key: wiki.pages\n        default: 3\n      - wiki.tone\n      - key: no key\n---\nWrite.";
        put(root, "skills/wiki/SKILL.md", front);
        let mut sources = sources(root);
        sources.config = serde_json::json!({"wiki": {"path": "/data/wiki", "tone": "sk-proj-0123456789abcdef0123"}});
        let told = sources.told("wiki", &"s".into()).await.unwrap().text;
        assert!(
            told.ends_with(
                "Write.\n\nSettings of this skill:\n- wiki.path = /data/wiki\n- wiki.pages = 3\n- wiki.tone = ***"
            ),
            "{told}"
        );
        let preloaded = sources.preloaded(&["wiki".to_owned()]).await.unwrap();
        assert!(preloaded.notes[0].contains("wiki.path = /data/wiki"));
    }

    /// Says what it was asked to run, and where.
    struct Echo;

    impl InlineShell for Echo {
        fn run<'a>(
            &'a self,
            line: &'a str,
            folder: &'a Path,
            _: &'a Path,
        ) -> BoxFuture<'a, String> {
            Box::pin(async move {
                let folder = folder.file_name().unwrap_or_default().to_string_lossy();
                match line {
                    "long" => "x".repeat(10_000),
                    line => format!("<{line} in {folder}>"),
                }
            })
        }
    }

    fn with_echo(root: &Path) -> Sources {
        Sources {
            shell: Some(Inline {
                shell: Arc::new(Echo),
                cwd: root.to_owned(),
            }),
            ..sources(root)
        }
    }

    #[tokio::test]
    async fn commands_stand_for_what_they_print() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let body = "Now !`date -u` in ${HERMES_SKILL_DIR}, !`` and !`open\nend` `!`; !`long`!";
        put(root, "skills/go/SKILL.md", body);
        let sources = with_echo(root);
        let session = "s".into();
        let told = sources.told("go", &session).await.unwrap().text;
        assert!(told.contains("Now <date -u in go> in /"), "{told}");
        assert!(told.contains("!`` and !`open\nend`"), "{told}");
        assert!(
            told.chars().filter(|c| *c == 'x').count() <= SAID_CHARS_MAX,
            "{told}"
        );
        // Nobody switched it on, or it is for nobody who may.
        let told = super::tests::sources(root)
            .told("go", &session)
            .await
            .unwrap()
            .text;
        assert!(told.contains("Now !`date -u` in"), "{told}");
        put(root, "skills/many.md", &"!`a` ".repeat(COMMANDS_MAX + 1));
        let told = sources.told("many", &session).await.unwrap().text;
        assert_eq!(told.matches("<a in skills>").count(), COMMANDS_MAX);
        assert!(told.contains("at most 20 commands"), "{told}");
    }

    #[tokio::test]
    async fn only_commands_of_a_persons_own_skills_and_of_untouched_installed_ones_are_run() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in [
            "skills/mine",
            "skills/agents",
            "skills/hubs",
            "others/theirs",
        ] {
            put(root, &format!("{path}/SKILL.md"), "!`date`");
        }
        put(
            root,
            "skills/.usage.json",
            r#"{"agents": {"created_by": "agent"}}"#,
        );
        let hash = super::super::hub::FilesThere::of(&root.join("skills/hubs"));
        let hash = super::super::hub::content_hash(&hash.files);
        let books = serde_json::json!({"version": 1, "installed": {
            "called-otherwise": {"install_path": "hubs", "content_hash": hash},
        }});
        put(root, "skills/.hub/lock.json", &books.to_string());
        let sources = Sources {
            external: vec![root.join("others")],
            ..with_echo(root)
        };
        let session = "s".into();
        let runs = async |name: &str| {
            let told = sources.told(name, &session).await.unwrap().text;
            told.contains(&format!("<date in {name}>"))
        };
        assert!(runs("mine").await && runs("hubs").await);
        assert!(!runs("agents").await && !runs("theirs").await);
        put(root, "skills/hubs/scripts/new.sh", "");
        assert!(!runs("hubs").await);
        put(root, "skills/.hub/lock.json", "{");
        assert!(!runs("mine").await);
    }
}
