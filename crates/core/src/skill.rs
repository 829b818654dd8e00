//! Skills as slash commands: what they are called, and where in a message they stand; and what else is put behind the
//! words of a person.

use std::collections::BTreeMap;

use crate::reference::ATTACHED;

/// What stands between the words a person typed and the skill that was put behind them.
const MARK: &str = "\n\n--- Skill ---\n\n";

/// What stands between the words of a person and what Hermes tells the model with them.
const NEWS_MARK: &str = "\n\n--- News ---\n\n";

/// The slash names of skills, each with what it is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillNames(BTreeMap<String, String>);

impl SkillNames {
    /// No skills.
    pub const NONE: Self = Self(BTreeMap::new());

    /// Takes descriptions by [`slash_name`].
    pub fn new(skills: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(skills.into_iter().collect())
    }

    /// The names and what they are for, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let skills = self.0.iter();
        skills.map(|(name, description)| (name.as_str(), description.as_str()))
    }

    /// Returns the name as it is kept, if a skill is called so.
    pub fn find(&self, name: &str) -> Option<&str> {
        let (name, _) = self.0.get_key_value(name)?;
        Some(name)
    }
}

/// The skills a prompt tells of, and the tools that a model needs for it to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillIndex {
    /// The tool that loads a skill: without it none is told of.
    pub viewer: &'static str,
    /// The tool that writes skills: without it the model is not told to.
    pub writer: &'static str,
    /// The tool that finds those there is no room for.
    pub finder: &'static str,
    pub lines: Vec<SkillLine>,
}

/// What a prompt says of one skill, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillLine {
    pub name: String,
    pub category: String,
    pub description: String,
    /// How often it was used: those used most stay when there is no room for all.
    pub uses: u64,
    /// Of each group of tools one must be offered.
    pub requires: Vec<Vec<String>>,
    /// Of none of these groups any tool may be offered: the skill stands in for them.
    pub instead_of: Vec<Vec<String>>,
}

/// How a skill is called behind a slash: lower case, hyphens for spaces and underscores, nothing but letters, digits and
/// hyphens. Nothing if nothing is left of its name.
pub fn slash_name(name: &str) -> Option<String> {
    let letters = name
        .trim()
        .chars()
        .flat_map(char::to_lowercase)
        .filter_map(|c| match c {
            ' ' | '_' | '-' => Some('-'),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        });
    let letters: String = letters.collect();
    let words: Vec<&str> = letters.split('-').filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| words.join("-"))
}

/// What goes behind the words a person typed when they name a skill.
pub fn behind_words(skill: &str) -> String {
    format!("{MARK}{skill}")
}

/// What goes behind the words of a person when the model has to be told something with them.
pub fn news_behind_words(news: &str) -> String {
    format!("{NEWS_MARK}{news}")
}

/// Whether a part of a message is what stands there by [`news_behind_words`].
pub fn is_news(part: &str) -> bool {
    part.starts_with(NEWS_MARK)
}

/// What the person typed of a message that may have skills, news, and what it refers to, behind it.
pub fn as_typed(message: &str) -> &str {
    let message = message
        .rsplit_once(NEWS_MARK)
        .map_or(message, |(said, _)| said);
    let message = match message.split_once(ATTACHED) {
        Some((typed, _)) if typed.ends_with("\n\n") => typed.trim_end(),
        _ => message,
    };
    match message.split_once(MARK) {
        Some((typed, _)) if typed.trim_start().starts_with('/') => typed,
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_becomes_one_that_can_be_typed_behind_a_slash() {
        for (name, slash) in [
            ("review", Some("review")),
            ("Code Review", Some("code-review")),
            ("a__b - c", Some("a-b-c")),
            ("C++ & Rust!", Some("c-rust")),
            ("v1.2/x", Some("v12x")),
            ("Überblick", Some("überblick")),
            ("../..", None),
            (" _ ", None),
        ] {
            assert_eq!(slash_name(name).as_deref(), slash, "{name}");
        }
    }

    #[test]
    fn what_was_typed_is_found_again() {
        let sent = format!("/review it{}{}", behind_words("one"), behind_words("two"));
        assert_eq!(as_typed(&sent), "/review it");
        let quoted = format!("what is{}", behind_words("this"));
        assert_eq!(as_typed(&quoted), quoted);
        assert_eq!(as_typed("hello"), "hello");
        let told = format!("{sent}{}", news_behind_words("something is new"));
        assert_eq!(as_typed(&told), "/review it");
        let referring = format!("see @a.txt\n\n{ATTACHED}\n\n`a.txt`: …");
        assert_eq!(as_typed(&referring), "see @a.txt");
    }
}
