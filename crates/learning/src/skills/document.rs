//! A skill's text: what its front matter says, and the body behind it. Pure; files are read elsewhere.
//!
//! Read leniently ([`read`]): no text is refused. Written strictly ([`written`]): what comes out passes the validator of
//! agentskills.io.

use serde_json::{Map, Value};

use super::yaml;

/// A name that a person could not read in a list any more.
pub(super) const NAME_CHARS_MAX: usize = 64;
pub(super) const DESCRIPTION_CHARS_MAX: usize = 1_024;
const COMPATIBILITY_CHARS_MAX: usize = 500;
/// Of the path of a file, or the name of a setting.
const PATH_CHARS_MAX: usize = 200;
/// Settings of one skill: they are told with it each time.
const SETTINGS_MAX: usize = 50;

/// What agentskills.io knows at the top of front matter, in the order it is written.
const STANDARD: [&str; 5] = [
    "name",
    "description",
    "license",
    "compatibility",
    "allowed-tools",
];
/// Where everything else stands.
const METADATA: &str = "metadata";
/// Where our own fields stand in the metadata.
const OURS: &str = "hermes";
/// Fields of ours that older skills have at the top.
const OUR_FIELDS: [&str; 11] = [
    "platforms",
    "environments",
    "prerequisites",
    "required_environment_variables",
    "required_credential_files",
    "config",
    "tags",
    "related_skills",
    "requires_tools",
    "requires_toolsets",
    "category",
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Document {
    pub name: Option<String>,
    pub description: String,
    /// The systems it is for; every one if none is named.
    pub platforms: Vec<String>,
    /// Surroundings it is for, such as `docker`; every one if none is named.
    pub environments: Vec<String>,
    pub needs: Needs,
    pub tags: Vec<String>,
    pub related: Vec<String>,
    pub variables: Vec<Variable>,
    /// Files with keys, below the home of Hermes.
    pub credential_files: Vec<String>,
    pub settings: Vec<Setting>,
    pub compatibility: Option<String>,
    /// Where it wants to stand.
    pub category: Option<String>,
    pub body: String,
    /// Everything the front matter says.
    pub fields: Map<String, Value>,
}

/// What must be offered for a skill to be told of, and what must not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    pub tools: Vec<String>,
    pub toolsets: Vec<String>,
    pub fallback_for_tools: Vec<String>,
    pub fallback_for_toolsets: Vec<String>,
}

/// An environment variable that a skill works with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// What it is, and where one gets it.
    pub help: String,
    pub is_optional: bool,
}

/// What a user may set for a skill, in `skills.config`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Below `skills.config`, with dots between its parts.
    pub key: String,
    pub default: Value,
}

/// Why a text cannot be written as a skill.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    #[error(
        "it has no front matter; begin with a line `---`, then `name:` and `description:`, then `---`"
    )]
    NoFrontMatter,
    #[error("its front matter is no YAML ({0}); put the description into double quotes")]
    NoYaml(String),
    #[error("its front matter has no `{0}`")]
    Missing(&'static str),
    #[error("its front matter says `name: {found}`, but the skill is called `{expected}`")]
    OtherName { found: String, expected: String },
    #[error("its description has {found} characters; {DESCRIPTION_CHARS_MAX} are allowed")]
    LongDescription { found: usize },
    #[error("its `compatibility` has {found} characters; {COMPATIBILITY_CHARS_MAX} are allowed")]
    LongCompatibility { found: usize },
    #[error("there is nothing behind its front matter; write what is to be done")]
    NoBody,
}

/// Reads a text. No text is refused: front matter that is no YAML is read line by line, and what it does not say is taken
/// from the body.
pub(super) fn read(text: &str) -> Document {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (fields, body) = match split(&text) {
        Some((front, body)) => (fields(front), body),
        None => (Map::new(), text.as_str()),
    };
    let body = body.trim();
    let front = Front(&fields);
    let said = words(front.get("description"), DESCRIPTION_CHARS_MAX);
    Document {
        name: words(front.get("name"), NAME_CHARS_MAX),
        description: said.unwrap_or_else(|| first_words(body)),
        platforms: platforms(list(front.get("platforms"))),
        environments: list(front.get("environments")),
        needs: Needs {
            tools: list(front.get("requires_tools")),
            toolsets: list(front.get("requires_toolsets")),
            fallback_for_tools: list(front.get("fallback_for_tools")),
            fallback_for_toolsets: list(front.get("fallback_for_toolsets")),
        },
        tags: list(front.get("tags")),
        related: list(front.get("related_skills")),
        variables: variables(&front),
        credential_files: credential_files(&front),
        settings: settings(&front),
        compatibility: words(front.get("compatibility"), COMPATIBILITY_CHARS_MAX),
        category: words(front.get("category"), NAME_CHARS_MAX),
        body: body.to_owned(),
        fields,
    }
}

/// A text as it is written to disk: checked, with front matter as every reader of the format understands it. Fields that
/// the format does not know go into its metadata.
pub(super) fn written(name: &str, text: &str) -> Result<String, Invalid> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    check(name, &text)?;
    Ok(composed(name, &read(&text)))
}

/// A text as others get it: what is read leniently here is written so that everybody reads it, or it is told why not.
pub(super) fn packaged(name: &str, text: &str) -> Result<String, Invalid> {
    let mut document = read(text);
    if document.description.is_empty() {
        return Err(Invalid::Missing("description"));
    }
    let description = document.description.clone().into();
    document
        .fields
        .insert("description".to_owned(), description);
    let text = composed(name, &document);
    check(name, &text)?;
    Ok(text)
}

fn composed(name: &str, document: &Document) -> String {
    let mut fields = Map::new();
    for key in STANDARD {
        let value = document.fields.get(key).cloned().unwrap_or_default();
        let line = words(&value, usize::MAX).map(Value::from);
        fields.insert(key.to_owned(), line.unwrap_or(joined(value)));
    }
    fields.insert("name".to_owned(), name.into());
    fields.insert(METADATA.to_owned(), metadata(&document.fields).into());
    let front = yaml::write(&fields);
    format!("---\n{front}---\n\n{}\n", document.body)
}

/// Checks a text that is to be a skill of this name.
pub(super) fn check(name: &str, text: &str) -> Result<(), Invalid> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (front, body) = split(&text).ok_or(Invalid::NoFrontMatter)?;
    let fields = match yaml::read(front).map_err(Invalid::NoYaml)? {
        Value::Object(fields) => fields,
        _ => return Err(Invalid::Missing("name")),
    };
    let front = Front(&fields);
    match words(front.get("name"), usize::MAX) {
        None => return Err(Invalid::Missing("name")),
        Some(found) if found != name => {
            let expected = name.to_owned();
            return Err(Invalid::OtherName { found, expected });
        }
        Some(_) => {}
    }
    let description = words(front.get("description"), usize::MAX);
    let description = description.ok_or(Invalid::Missing("description"))?;
    let found = description.chars().count();
    if found > DESCRIPTION_CHARS_MAX {
        return Err(Invalid::LongDescription { found });
    }
    let compatibility = words(front.get("compatibility"), usize::MAX).unwrap_or_default();
    let found = compatibility.chars().count();
    if found > COMPATIBILITY_CHARS_MAX {
        return Err(Invalid::LongCompatibility { found });
    }
    if body.trim().is_empty() {
        return Err(Invalid::NoBody);
    }
    Ok(())
}

/// Why a name cannot be that of a new skill.
pub(super) fn name_problem(name: &str) -> Option<String> {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_good = !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.chars().all(is_letter)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    if is_good {
        return None;
    }
    let near = hermes_core::skill::slash_name(name)
        .filter(|near| near != name && name_problem(near).is_none())
        .map(|near| format!("; `{near}` would do"));
    Some(format!(
        "`{}` cannot be the name of a skill: at most {NAME_CHARS_MAX} of a-z, 0-9 and single hyphens between them{}",
        hermes_core::text::shorten(name, NAME_CHARS_MAX),
        near.unwrap_or_default()
    ))
}

/// Front matter, with our own fields wherever they stand.
struct Front<'a>(&'a Map<String, Value>);

impl Front<'_> {
    fn get(&self, key: &str) -> &Value {
        let metadata = self.0.get(METADATA);
        let ours = metadata.and_then(|metadata| metadata.get(OURS)?.get(key));
        let found = self.0.get(key).or(ours);
        let found = found.or_else(|| metadata.and_then(|metadata| metadata.get(key)));
        found.unwrap_or(&Value::Null)
    }
}

/// The metadata of front matter, with what the format does not know at the top.
fn metadata(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut metadata = match fields.get(METADATA) {
        Some(Value::Object(metadata)) => metadata.clone(),
        _ => Map::new(),
    };
    let is_foreign = |key: &&String| !STANDARD.contains(&key.as_str()) && *key != METADATA;
    for key in fields.keys().filter(is_foreign) {
        let value = fields[key].clone();
        if OUR_FIELDS.contains(&key.as_str()) {
            let ours = metadata.entry(OURS).or_insert_with(|| Map::new().into());
            if let Value::Object(ours) = ours {
                ours.entry(key.clone()).or_insert(value);
            }
        } else {
            metadata.entry(key.clone()).or_insert(value);
        }
    }
    metadata
}

/// A list as the one text that the format has there.
fn joined(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            words.join(" ").into()
        }
        value => value,
    }
}

/// Splits at the lines of three hyphens. A first one without a second begins no front matter.
fn split(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

fn fields(front: &str) -> Map<String, Value> {
    match yaml::read(front) {
        Ok(Value::Object(fields)) => fields,
        _ => lines(front),
    }
}

/// `key: value`, line by line: a colon in a description is the usual reason why front matter is no YAML.
fn lines(front: &str) -> Map<String, Value> {
    let is_top = |line: &&str| !line.starts_with([' ', '\t', '#']);
    let fields = front.lines().filter(is_top).filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim().trim_matches(['"', '\'']);
        Some((key.trim().to_owned(), Value::from(value)))
    });
    fields.collect()
}

/// A text on one line.
fn words(value: &Value, chars_max: usize) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    let words = hermes_core::text::shorten(&words.join(" "), chars_max);
    (!words.is_empty()).then_some(words)
}

/// A list of words, or one text with commas between them.
fn list(value: &Value) -> Vec<String> {
    let words: Vec<&str> = match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => text.trim_matches(['[', ']']).split(',').collect(),
        _ => Vec::new(),
    };
    let words = words
        .iter()
        .map(|word| word.trim().trim_matches(['"', '\'']).to_lowercase());
    words.filter(|word| !word.is_empty()).collect()
}

/// Systems by the names Rust has for them; others say `darwin` too.
fn platforms(named: Vec<String>) -> Vec<String> {
    let one = |name: String| match name.as_str() {
        "darwin" | "osx" => "macos".to_owned(),
        "win32" => "windows".to_owned(),
        _ => name,
    };
    named.into_iter().map(one).collect()
}

/// `required_environment_variables`, or `prerequisites.env_vars` as older skills have it.
fn variables(front: &Front<'_>) -> Vec<Variable> {
    let listed = match front.get("required_environment_variables") {
        Value::Array(items) => items.clone(),
        _ => match front.get("prerequisites").get("env_vars") {
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        },
    };
    listed.iter().filter_map(variable).collect()
}

fn variable(item: &Value) -> Option<Variable> {
    let part = |name: &str| item.get(name).and_then(|value| words(value, 300));
    let name = match item {
        Value::String(name) => name.trim().to_owned(),
        _ => part("name")?,
    };
    let is_name = |name: &str| {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.len() <= NAME_CHARS_MAX * 2 && name.chars().all(is_letter)
    };
    is_name(&name).then(|| Variable {
        help: part("help").or_else(|| part("prompt")).unwrap_or_default(),
        is_optional: part("optional").is_some_and(|said| said.eq_ignore_ascii_case("true")),
        name,
    })
}

/// `required_credential_files`: paths, or mappings with a `path`.
fn credential_files(front: &Front<'_>) -> Vec<String> {
    let path = |item: &Value| {
        let path = item.as_str().or_else(|| item.get("path")?.as_str())?.trim();
        let is_path = !path.is_empty() && !path.chars().any(char::is_control);
        (is_path && path.chars().count() <= PATH_CHARS_MAX).then(|| path.to_owned())
    };
    match front.get("required_credential_files") {
        Value::Array(items) => items.iter().filter_map(path).collect(),
        item => path(item).into_iter().collect(),
    }
}

/// `config`: names of settings, or mappings with `key` and `default`; one alone too.
fn settings(front: &Front<'_>) -> Vec<Setting> {
    let setting = |item: &Value| {
        let key = item.as_str().or_else(|| item.get("key")?.as_str())?.trim();
        let is_plain = |part: &str| {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !part.is_empty() && part.chars().all(is_letter)
        };
        let is_key = key.len() <= PATH_CHARS_MAX && key.split('.').all(is_plain);
        is_key.then(|| Setting {
            key: key.to_owned(),
            default: item.get("default").cloned().unwrap_or_default(),
        })
    };
    let mut settings: Vec<Setting> = match front.get("config") {
        Value::Array(items) => items.iter().filter_map(setting).collect(),
        item => setting(item).into_iter().collect(),
    };
    settings.truncate(SETTINGS_MAX);
    settings
}

/// The first line of a body that is no heading.
fn first_words(body: &str) -> String {
    let line = body
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    words(&line.unwrap_or_default().into(), DESCRIPTION_CHARS_MAX).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, name: Option<&str>, description: &str, body: &str) {
        let read = read(text);
        let found = (
            read.name.as_deref(),
            read.description.as_str(),
            read.body.as_str(),
        );
        assert_eq!(found, (name, description, body), "{text:?}");
    }

    #[test]
    fn front_matter_is_read_however_it_is_written() {
        let usual = "---\nname: review\ndescription: looks at code\n---\n# Review\n\nLook.\n";
        let expected = (Some("review"), "looks at code", "# Review\n\nLook.");
        let (name, description, body) = expected;
        check(usual, name, description, body);
        check(&usual.replace('\n', "\r\n"), name, description, body);
        check(&format!("\u{feff}{usual}"), name, description, body);
        let folded = "---\nname: \"review\"\ndescription: >-\n  looks\n  at code\nmetadata:\n  hermes: {tags: [a]}\n--- \n\n# Review\n\nLook.";
        check(folded, name, description, body);
    }

    #[test]
    fn broken_front_matter_is_read_line_by_line() {
        check(
            "---\nname: review\ndescription: Use when: code, or [tests\n---\nLook.",
            Some("review"),
            "Use when: code, or [tests",
            "Look.",
        );
        check("---\n- a\n- b\n---\nLook.", None, "Look.", "Look.");
        let read = read("---\nplatforms: [macos, linux\nname: x\n---\n");
        assert_eq!(read.platforms, ["macos", "linux"]);
    }

    #[test]
    fn what_is_missing_comes_from_the_body() {
        check("# Title\n\nDo it.\n", None, "Do it.", "# Title\n\nDo it.");
        check("---\nname: 7\n---\n", Some("7"), "", "");
        check(
            "---\nname: x\ndescription:\n---\n# T\nDo.",
            Some("x"),
            "Do.",
            "# T\nDo.",
        );
        check(
            "---\nname: never closed\n",
            None,
            "---",
            "---\nname: never closed",
        );
        check("", None, "", "");
        check("---", None, "---", "---");
        check("---\n---\n", None, "", "");
    }

    #[test]
    fn names_and_descriptions_have_a_limit() {
        let read = read(&format!(
            "---\nname: {}\ndescription: {}\n---\n",
            "n".repeat(500),
            "d".repeat(5_000)
        ));
        assert_eq!(read.name.unwrap().chars().count(), NAME_CHARS_MAX);
        assert_eq!(read.description.chars().count(), DESCRIPTION_CHARS_MAX);
    }

    #[test]
    fn platforms_are_a_list_or_one_word() {
        for (written, platforms) in [
            ("[macos, Linux]", vec!["macos", "linux"]),
            ("linux", vec!["linux"]),
            ("\"darwin, windows\"", vec!["macos", "windows"]),
            ("[]", vec![]),
        ] {
            let read = read(&format!("---\nplatforms: {written}\n---\n"));
            assert_eq!(read.platforms, platforms, "{written}");
        }
    }

    #[test]
    fn our_own_fields_are_read_from_the_metadata_and_from_the_top() {
        let text = "---\nname: x\ndescription: d\ntags: [one]\nrequired_environment_variables:\n  - name: KEY\n    \
                    prompt: the key\n    optional: true\n  - OTHER\n  - no name\nmetadata:\n  hermes:\n    \
                    requires_tools: [web_extract]\n    fallback_for_toolsets:\n      - browser\n---\nDo.";
        let read = read(text);
        assert_eq!(read.tags, ["one"]);
        assert_eq!(read.needs.tools, ["web_extract"]);
        assert_eq!(read.needs.fallback_for_toolsets, ["browser"]);
        let variable = |name: &str, help: &str, is_optional| Variable {
            name: name.to_owned(),
            help: help.to_owned(),
            is_optional,
        };
        assert_eq!(
            read.variables,
            [
                variable("KEY", "the key", true),
                variable("OTHER", "", false)
            ]
        );
    }

    #[test]
    fn what_is_written_is_strict_and_says_the_same() {
        let text = "---\nname: x\ndescription: >\n  Use when: it\n  breaks\nversion: 1.0\ntags: [a, b]\nplatforms: [linux]\n\
                    allowed-tools: [terminal, patch]\nmetadata: {author: me}\n---\n\n# X\n\nDo.\n\n";
        let written = written("x", text).unwrap();
        assert_eq!(
            written,
            "---\nname: x\ndescription: \"Use when: it breaks\"\nallowed-tools: terminal patch\nmetadata:\n  author: me\n  \
             version: \"1.0\"\n  hermes:\n    tags:\n      - a\n      - b\n    platforms:\n      - linux\n---\n\n# X\n\nDo.\n"
        );
        let (before, after) = (read(text), read(&written));
        assert_eq!(
            (before.tags, before.platforms, before.body),
            (after.tags, after.platforms, after.body)
        );
        assert_eq!(super::written("x", &written).unwrap(), written);
    }

    #[test]
    fn what_cannot_be_a_skill_is_refused_with_the_reason() {
        let invalid = |text: &str| written("x", text).unwrap_err();
        assert_eq!(invalid("Do."), Invalid::NoFrontMatter);
        assert_eq!(
            invalid("---\ndescription: d\n---\nDo."),
            Invalid::Missing("name")
        );
        assert_eq!(
            invalid("---\nname: x\n---\nDo."),
            Invalid::Missing("description")
        );
        assert_eq!(
            invalid("---\nname: x\ndescription: d\n---\n \n"),
            Invalid::NoBody
        );
        let other = invalid("---\nname: y\ndescription: d\n---\nDo.");
        assert!(other.to_string().contains("called `x`"), "{other}");
        let no_yaml = invalid("---\nname: x\ndescription: a: b\n---\nDo.");
        assert!(matches!(no_yaml, Invalid::NoYaml(_)), "{no_yaml}");
        let long = format!("---\nname: x\ndescription: {}\n---\nDo.", "d".repeat(1_025));
        assert_eq!(invalid(&long), Invalid::LongDescription { found: 1_025 });
    }

    #[test]
    fn a_name_is_plain_and_a_better_one_is_proposed() {
        for good in ["a", "code-review", "k8s", &"n".repeat(64)] {
            assert_eq!(name_problem(good), None, "{good}");
        }
        for bad in [
            "", "../x", "a/b", "A", "-a", "a-", "a--b", "a_b", "a.b", "ä",
        ] {
            assert!(name_problem(bad).is_some(), "{bad}");
        }
        assert!(name_problem(&"n".repeat(65)).is_some());
        assert!(
            name_problem("Code_Review")
                .unwrap()
                .contains("`code-review` would do")
        );
    }
}
