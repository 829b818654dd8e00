//! What the owner lets skills have: environment variables and files with keys that commands do not get otherwise.
//!
//! Each is agreed to by name, for one skill and the text that it has now: `skill-grants.json` of the home holds the digest of
//! its `SKILL.md`, and what is granted to a text that has changed since is not granted any more. Guests are given nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hermes_config::{Environment, Home};
use hermes_core::Clock as _;
use hermes_exec::{CredentialFile, Granted, is_secret_name};
use hermes_learning::skills::tools::{Reach, Standing};
use hermes_learning::skills::{Skill, file_digest};
use hermes_os::lock::{Sharing, lock};
use hermes_os::{Access, Durability};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::Base;
use crate::clock::SystemClock;
use crate::error::{Error, Result};
use crate::layout::{Table, one_line};

const FILE: &str = "skill-grants.json";
/// What is granted at most: each command looks at every one.
const GRANTS_MAX: usize = 100;
/// Another process writes for milliseconds.
const LOCK_TIME_MAX: Duration = Duration::from_secs(10);
/// Beginnings of variables that are for Hermes itself: its services, and the models that it asks.
const OWN_PREFIXES: [&str; 11] = [
    "ANTHROPIC_",
    "API_SERVER_",
    "CLAUDE_CODE_",
    "CUSTOM_API_",
    "DAYTONA_",
    "GATEWAY_",
    "HERMES_",
    "HONCHO_",
    "MODAL_",
    "OPENAI_",
    "SUDO_",
];
/// Endings of what a bot is known by at a chat platform.
const OWN_ENDINGS: [&str; 3] = ["_BOT_TOKEN", "_APP_TOKEN", "_SIGNING_SECRET"];
/// Sections of the settings in which `key_env` names variables with keys of models.
const SECTIONS_WITH_KEYS: [&str; 6] = [
    "auxiliary",
    "custom_providers",
    "fallback_providers",
    "moa",
    "model",
    "providers",
];

/// Something that a skill needs, and a person let it have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub skill: String,
    #[serde(flatten)]
    pub what: Needed,
    /// The text that it was granted to, and what that said.
    text: PathBuf,
    digest: String,
    at: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Needed {
    /// An environment variable, by its name.
    Variable(String),
    /// A file below the home of Hermes.
    File(String),
}

impl Needed {
    pub fn name(&self) -> &str {
        match self {
            Self::Variable(name) | Self::File(name) => name,
        }
    }
}

impl Grant {
    /// Whether the skill still says what it said then.
    pub fn holds(&self) -> bool {
        file_digest(&self.text).as_ref() == Some(&self.digest)
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    grants: Vec<Grant>,
}

/// Lets commands have something that a skill needs. Who calls this has the word of the owner.
pub async fn allow(base: &Base, name: &str, needed: &str) -> Result<Grant> {
    refuse_guests(base)?;
    let library = super::skills(base, None)?.library().await;
    let skill = library.named(name)?;
    let what = needed_by(base, skill, needed)?;
    let digest = skill.digest().ok_or_else(|| {
        Error::asked(format!(
            "the skill `{}` is too long for it",
            one_line(&skill.name)
        ))
        .with_hint("move parts of it into files beside it")
    })?;
    let grant = Grant {
        skill: skill.name.clone(),
        what,
        text: skill.file.clone(),
        digest,
        at: SystemClock.now().to_iso(),
    };
    change(base, |grants| {
        grants.retain(|one| one.skill != grant.skill || one.what != grant.what);
        grants.push(grant.clone());
        if grants.len() > GRANTS_MAX {
            let message = format!("{GRANTS_MAX} grants are there already");
            return Err(Error::asked(message)
                .with_hint("`hermes skills disallow NAME` takes those of a skill back"));
        }
        Ok(())
    })
    .await?;
    Ok(grant)
}

/// Takes back what a skill was given, or one thing of it. Returns how much that was.
pub async fn disallow(base: &Base, name: &str, needed: Option<&str>) -> Result<usize> {
    refuse_guests(base)?;
    let mut taken = 0;
    change(base, |grants| {
        let before = grants.len();
        grants.retain(|one| {
            let is_it = needed.is_none_or(|needed| one.what.name() == needed);
            !(one.skill.eq_ignore_ascii_case(name) && is_it)
        });
        taken = before - grants.len();
        Ok(())
    })
    .await?;
    Ok(taken)
}

/// What is granted, as a table.
pub fn listed(base: &Base) -> Result<String> {
    let grants = read(&base.home)?;
    if grants.is_empty() {
        return Ok("no skill was given a variable or a file with keys".to_owned());
    }
    let mut table = Table::new(["SKILL", "WHAT", "SINCE", ""]);
    for grant in &grants {
        let kind = match &grant.what {
            Needed::Variable(_) => "variable",
            Needed::File(_) => "file",
        };
        let state = if grant.holds() {
            ""
        } else {
            "not given: the skill has changed since"
        };
        table.row([
            one_line(&grant.skill),
            format!("{kind} {}", one_line(grant.what.name())),
            grant.at.clone(),
            state.to_owned(),
        ]);
    }
    Ok(table.text())
}

/// The variables that commands of this conversation are given, looked up for each.
pub(crate) fn granted(base: &Base) -> Granted {
    if base.person.is_some() {
        return Granted::default();
    }
    let (home, environment) = (base.home.clone(), base.environment.clone());
    let own = OwnNames::of(base);
    Granted::new(move || {
        let grants = read(&home).unwrap_or_default();
        let variables = grants.iter().filter_map(|grant| {
            let Needed::Variable(name) = &grant.what else {
                return None;
            };
            let value = environment.get(name).filter(|value| !value.is_empty())?;
            let is_given = !own.has(name) && grant.holds();
            is_given.then(|| (name.clone(), value.to_owned()))
        });
        variables.collect()
    })
}

/// The files that commands of this conversation are given, as they are named below the home.
pub(crate) fn granted_files(base: &Base) -> Vec<CredentialFile> {
    if base.person.is_some() {
        return Vec::new();
    }
    let grants = read(&base.home).unwrap_or_default();
    let held = grants.into_iter().filter(Grant::holds);
    let files = held.filter_map(|grant| match grant.what {
        Needed::File(path) => CredentialFile::new(&path).ok(),
        Needed::Variable(_) => None,
    });
    files.collect()
}

fn refuse_guests(base: &Base) -> Result<()> {
    if base.person.is_none() {
        return Ok(());
    }
    Err(Error::asked(
        "what skills are given is for the owner of this Hermes to say",
    ))
}

/// What is meant, if the skill asks for it and it may be given.
fn needed_by(base: &Base, skill: &Skill, needed: &str) -> Result<Needed> {
    let is_variable = skill.variables.iter().any(|one| one.name == needed);
    let is_file = skill.credential_files.iter().any(|path| path == needed);
    if is_variable && OwnNames::of(base).has(needed) {
        let message = format!("`{needed}` is for Hermes itself, and is never given to commands");
        return Err(Error::asked(message)
            .with_hint("put a key of its own under another name, and let the skill ask for that"));
    }
    if is_variable {
        return Ok(Needed::Variable(needed.to_owned()));
    }
    if !is_file {
        return Err(asks_for_others(skill, needed));
    }
    let file = CredentialFile::new(needed);
    let found = file.and_then(|file| file.find(base.home.directory()));
    found.map_err(|problem| Error::asked(problem.to_string()))?;
    Ok(Needed::File(needed.to_owned()))
}

fn asks_for_others(skill: &Skill, needed: &str) -> Error {
    let variables = skill.variables.iter().map(|one| one.name.as_str());
    let files = skill.credential_files.iter().map(String::as_str);
    let others: Vec<&str> = variables.chain(files).collect();
    let error = Error::asked(format!(
        "the skill `{}` does not ask for `{}`",
        one_line(&skill.name),
        one_line(needed)
    ));
    match others.as_slice() {
        [] => error.with_hint("it asks for nothing"),
        others => error.with_hint(format!("it asks for {}", one_line(&others.join(", ")))),
    }
}

fn path(home: &Home) -> PathBuf {
    home.directory().join(FILE)
}

fn read(home: &Home) -> Result<Vec<Grant>> {
    let path = path(home);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&path, &error.to_string())),
    };
    let kept: Kept =
        serde_json::from_str(&text).map_err(|error| unreadable(&path, &error.to_string()))?;
    Ok(kept.grants)
}

fn unreadable(path: &Path, why: &str) -> Error {
    Error::failed(format!("cannot understand `{}`: {why}", path.display()))
        .with_hint("move it aside: every skill then has to be allowed what it needs again")
}

async fn change(base: &Base, change: impl FnOnce(&mut Vec<Grant>) -> Result<()>) -> Result<()> {
    let path = path(&base.home);
    let failed = |error: std::io::Error| {
        Error::failed(format!("cannot write `{}`: {error}", path.display()))
    };
    let locks = base.home.locks();
    hermes_os::make_private_folder(&locks).map_err(failed)?;
    let held = lock(&locks.join("skill-grants"), Sharing::Alone, LOCK_TIME_MAX).await;
    let _held = held.map_err(failed)?;
    let mut grants = read(&base.home)?;
    change(&mut grants)?;
    let text = serde_json::to_string_pretty(&Kept { grants })
        .map_err(|error| failed(std::io::Error::other(error)))?;
    hermes_os::replace(&path, text.as_bytes(), Access::Private, Durability::Synced).map_err(failed)
}

/// Variables that are for Hermes itself, whoever asks for them.
#[derive(Debug, Clone)]
struct OwnNames {
    /// Variables with keys of the user's own providers.
    keys: Vec<String>,
    /// Sections of the settings, among them those of chat platforms: `x` has the variables `X_…`.
    sections: Vec<String>,
}

impl OwnNames {
    fn of(base: &Base) -> Self {
        let mut keys = Vec::new();
        for section in SECTIONS_WITH_KEYS {
            if let Some(value) = base.settings.get(section) {
                collect_key_envs(value, &mut keys);
            }
        }
        let platforms = base.settings.get("platforms").and_then(Value::as_object);
        let platforms = platforms
            .into_iter()
            .flat_map(|named| named.keys().cloned());
        let mut sections: Vec<String> = platforms.collect();
        if let Value::Object(all) = base.settings.masked() {
            sections.extend(all.into_iter().map(|(name, _)| name));
        }
        Self { keys, sections }
    }

    fn has(&self, name: &str) -> bool {
        let name = name.to_ascii_uppercase();
        let mut of_providers = hermes_llm::providers::PROVIDERS
            .iter()
            .flat_map(|provider| provider.key_envs);
        let is_of_section = |section: &String| {
            let rest = name.strip_prefix(&section.to_ascii_uppercase());
            is_secret_name(&name) && rest.is_some_and(|rest| rest.starts_with('_'))
        };
        of_providers.any(|own| own.eq_ignore_ascii_case(&name))
            || self.keys.iter().any(|own| own.eq_ignore_ascii_case(&name))
            || OWN_PREFIXES.iter().any(|own| name.starts_with(own))
            || OWN_ENDINGS.iter().any(|own| name.ends_with(own))
            || self.sections.iter().any(is_of_section)
    }
}

fn collect_key_envs(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(named) => {
            for (name, value) in named {
                match value {
                    Value::String(variable) if name == "key_env" => keys.push(variable.clone()),
                    value => collect_key_envs(value, keys),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_key_envs(item, keys)),
        _ => {}
    }
}

/// What commands of a conversation get of what skills need.
pub(crate) struct Reachable {
    home: Home,
    environment: Environment,
    passthrough: Vec<String>,
    own: Arc<OwnNames>,
    is_guest: bool,
}

impl Reachable {
    pub(crate) fn of(base: &Base) -> Result<Self> {
        Ok(Self {
            home: base.home.clone(),
            environment: base.environment.clone(),
            passthrough: base.settings.strings("terminal.env_passthrough")?,
            own: Arc::new(OwnNames::of(base)),
            is_guest: base.person.is_some(),
        })
    }

    fn is_granted(&self, skill: &Skill, what: &Needed) -> bool {
        let grants = read(&self.home).unwrap_or_default();
        let mut of_skill = grants.iter().filter(|one| one.skill == skill.name);
        of_skill.any(|one| one.what == *what && one.text == skill.file && one.holds())
    }

    fn standing(&self, skill: &Skill, what: &Needed) -> Standing {
        match (self.is_guest, self.is_granted(skill, what)) {
            (true, _) => Standing::Never,
            (false, true) => Standing::Given,
            (false, false) => Standing::ToBeAllowed,
        }
    }
}

impl Reach for Reachable {
    fn variable(&self, skill: &Skill, name: &str) -> Standing {
        let is_set = self
            .environment
            .get(name)
            .is_some_and(|value| !value.is_empty());
        let is_passed = self.passthrough.iter().any(|passed| passed == name);
        if !is_set {
            Standing::Missing
        } else if is_passed && !is_secret_name(name) {
            Standing::Given
        } else if self.own.has(name) {
            Standing::Never
        } else {
            self.standing(skill, &Needed::Variable(name.to_owned()))
        }
    }

    fn file(&self, skill: &Skill, path: &str) -> Standing {
        let Ok(file) = CredentialFile::new(path) else {
            return Standing::Never;
        };
        match file.find(self.home.directory()) {
            Err(hermes_exec::CredentialError::Missing { .. }) => Standing::Missing,
            Err(_) => Standing::Never,
            Ok(_) => self.standing(skill, &Needed::File(path.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use hermes_core::SessionOptions;

    use super::*;

    const SKILL: &str = "---\nname: Mail Box\ndescription: d\nrequired_environment_variables: [BOX_API_KEY, OWN_MODEL_KEY]\n\
                         required_credential_files: [box.json, ../x.json, .env]\n---\nDo.\n";

    struct World {
        folder: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let world = Self { folder };
            world.put("skills/box/SKILL.md", SKILL);
            world.put("box.json", "{}");
            world.put(".env", "BOX_API_KEY=s3cret\nOWN_MODEL_KEY=other\n");
            world.put(
                "config.yaml",
                "providers: {mine: {base_url: 'http://x.example', key_env: OWN_MODEL_KEY}}\n",
            );
            world
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.folder.path().join("home").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn base(&self, person: Option<&str>) -> Base {
            let environment = Environment::from_pairs([
                (
                    "HERMES_HOME",
                    self.folder.path().join("home").into_os_string(),
                ),
                ("HOME", self.folder.path().as_os_str().to_owned()),
            ]);
            let options = SessionOptions {
                cwd: Some(self.folder.path().to_owned()),
                person: person.map(str::to_owned),
                ..SessionOptions::default()
            };
            Base::in_environment(environment, None, &options).unwrap()
        }

        /// How it stands with something that the skill asks for.
        fn standing(&self, person: Option<&str>, needed: &str) -> Standing {
            let base = self.base(person);
            let library = super::super::sources(&base).unwrap().library();
            let skill = library.named("Mail Box").unwrap();
            let reach = Reachable::of(&base).unwrap();
            if skill.credential_files.iter().any(|path| path == needed) {
                reach.file(skill, needed)
            } else {
                reach.variable(skill, needed)
            }
        }
    }

    fn variables(base: &Base) -> Vec<(String, String)> {
        granted(base).look_up()
    }

    #[tokio::test]
    async fn what_the_owner_allowed_is_given_for_as_long_as_the_skill_says_the_same() {
        let world = World::new();
        let base = world.base(None);
        assert_eq!(world.standing(None, "BOX_API_KEY"), Standing::ToBeAllowed);
        assert!(variables(&base).is_empty());
        allow(&base, "mail box", "BOX_API_KEY").await.unwrap();
        allow(&base, "box", "box.json").await.unwrap();
        assert_eq!(world.standing(None, "BOX_API_KEY"), Standing::Given);
        assert_eq!(world.standing(None, "box.json"), Standing::Given);
        let expected = [("BOX_API_KEY".to_owned(), "s3cret".to_owned())];
        assert_eq!(variables(&base), expected);
        assert_eq!(granted_files(&base).len(), 1);
        world.put("skills/box/SKILL.md", &SKILL.replace("Do.", "Do more."));
        assert_eq!(world.standing(None, "BOX_API_KEY"), Standing::ToBeAllowed);
        assert!(variables(&base).is_empty() && granted_files(&base).is_empty());
        assert!(listed(&base).unwrap().contains("has changed since"));
        allow(&base, "box", "BOX_API_KEY").await.unwrap();
        assert_eq!(variables(&base), expected);
        assert_eq!(disallow(&base, "Mail Box", None).await.unwrap(), 2);
        assert!(variables(&base).is_empty());
    }

    #[tokio::test]
    async fn guests_are_given_nothing_and_allow_nothing() {
        let world = World::new();
        allow(&world.base(None), "box", "BOX_API_KEY")
            .await
            .unwrap();
        allow(&world.base(None), "box", "box.json").await.unwrap();
        let guest = world.base(Some("anna"));
        assert!(variables(&guest).is_empty() && granted_files(&guest).is_empty());
        for needed in ["BOX_API_KEY", "box.json"] {
            assert_eq!(world.standing(Some("anna"), needed), Standing::Never);
        }
        assert!(allow(&guest, "box", "BOX_API_KEY").await.is_err());
        assert!(disallow(&guest, "Mail Box", None).await.is_err());
    }

    #[tokio::test]
    async fn what_is_for_hermes_itself_is_never_given() {
        let world = World::new();
        let base = world.base(None);
        let own = OwnNames::of(&base);
        for provider in hermes_llm::providers::PROVIDERS {
            for name in provider.key_envs {
                assert!(own.has(name), "{name}");
            }
        }
        for name in [
            "HONCHO_API_KEY",
            "SUDO_PASSWORD",
            "openai_api_key",
            "XYZ_BOT_TOKEN",
            "OWN_MODEL_KEY",
        ] {
            assert!(own.has(name), "{name}");
        }
        assert!(!own.has("BOX_API_KEY"));
        let refused = allow(&base, "box", "OWN_MODEL_KEY").await.unwrap_err();
        assert!(
            refused.to_string().contains("for Hermes itself"),
            "{refused}"
        );
        assert_eq!(world.standing(None, "OWN_MODEL_KEY"), Standing::Never);
        for path in ["../x.json", ".env"] {
            assert!(allow(&base, "box", path).await.is_err(), "{path}");
            assert_eq!(world.standing(None, path), Standing::Never, "{path}");
        }
        // A grant that somebody wrote themselves opens nothing either.
        allow(&base, "box", "BOX_API_KEY").await.unwrap();
        let file = world.folder.path().join("home").join(FILE);
        let forged = fs::read_to_string(&file).unwrap();
        fs::write(&file, forged.replace("BOX_API_KEY", "OWN_MODEL_KEY")).unwrap();
        assert!(variables(&base).is_empty());
    }

    #[tokio::test]
    async fn a_skill_gets_only_what_it_asks_for() {
        let world = World::new();
        let base = world.base(None);
        let refused = allow(&base, "box", "PATH").await.unwrap_err();
        assert!(
            refused.to_string().contains("does not ask for `PATH`"),
            "{refused}"
        );
        assert!(refused.hint().unwrap().contains("BOX_API_KEY"));
        world.put(FILE, "{");
        let broken = allow(&base, "box", "BOX_API_KEY").await.unwrap_err();
        assert!(broken.hint().unwrap().contains("move it aside"), "{broken}");
        assert!(variables(&base).is_empty());
    }
}
