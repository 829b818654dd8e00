//! Names of files below the home of Hermes, the same here and there.

/// Longer ones are nobody's skill.
const NAME_BYTES_MAX: usize = 1024;

/// The folder of skills below the home.
pub(super) const SKILLS: &str = "skills";

/// Folders of skills that stay where they are, as everything hidden does: they are made by programs, and can be made again.
pub(super) const SKIPPED: [&str; 3] = ["node_modules", "venv", "__pycache__"];

/// Marks the copies that are kept when a file was changed on both sides.
pub(super) const COPY: &str = ".remote-copy";

/// A path below the home that cannot lead out of it: `skills/a/run.sh`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(String);

impl Name {
    /// Returns nothing for what is no such path, or could not be written on a line.
    pub(super) fn new(text: &str) -> Option<Self> {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        let is_odd = |c: char| c.is_control() || c == '\\';
        let is_safe =
            text.len() <= NAME_BYTES_MAX && text.split('/').all(is_plain) && !text.contains(is_odd);
        is_safe.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it names a file of a skill that goes there and comes back.
    pub(super) fn is_skill(&self) -> bool {
        let mut parts = self.0.split('/');
        let stays = |part: &str| part.starts_with('.') || SKIPPED.contains(&part);
        parts.next() == Some(SKILLS)
            && self.0.len() > SKILLS.len()
            && !parts.any(stays)
            && !self.0.contains(COPY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_out_of_the_home() {
        for text in [
            "",
            "/etc/passwd",
            "../a",
            "skills/../../a",
            "skills//a",
            "skills/./a",
            "skills/a/",
            "a\nb",
            "a\\b",
            "a\0b",
        ] {
            assert_eq!(Name::new(text), None, "{text:?}");
        }
        assert!(Name::new(&"a".repeat(2000)).is_none());
        assert!(Name::new("skills/ä b/run.sh").is_some());
    }

    #[test]
    fn what_is_hidden_or_made_by_programs_is_no_skill() {
        let is_skill = |text: &str| Name::new(text).unwrap().is_skill();
        assert!(is_skill("skills/a/SKILL.md"));
        for text in [
            "skills",
            "token.json",
            "skillset/a",
            "skills/.hub/lock.json",
            "skills/a/.env",
            "skills/a/node_modules/b",
            "skills/a/__pycache__/b.pyc",
            "skills/a/run.sh.remote-copy",
        ] {
            assert!(!is_skill(text), "{text}");
        }
    }
}
