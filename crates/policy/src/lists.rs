//! What the user refused or allowed for good: `approvals.deny`, `approvals.allow` and `command_allowlist`.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use hermes_core::{CommandPlace, CommandPolicy, Consent, JudgedCommand, wildcard};

use crate::judge::{Judge, Judged};
use crate::shell::Budget;
use crate::shell::exact;
use crate::{needs, script};

/// The user's own lists of commands.
#[derive(Debug, Default)]
pub struct CommandLists {
    /// Patterns of commands that never run.
    deny: Vec<String>,
    /// Commands, and patterns of them, that run without a question.
    allow: Vec<String>,
    /// The same, each in one folder.
    rules: RwLock<Vec<AllowRule>>,
}

/// A pattern of commands that run in one folder without a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowRule {
    pub pattern: String,
    pub folder: PathBuf,
}

impl CommandLists {
    pub fn new(deny: Vec<String>, allow: Vec<String>, rules: Vec<AllowRule>) -> Self {
        let deny = deny.iter().map(|pattern| pattern.to_lowercase()).collect();
        Self {
            deny,
            allow,
            rules: RwLock::new(rules),
        }
    }

    /// Says what a person must agree to before this line runs in a shell.
    pub fn consent_for(&self, line: &str) -> Consent {
        self.consent_within(line, None, &Budget::default())
    }

    /// Says the same with what is left of a budget.
    pub(super) fn consent_within(
        &self,
        line: &str,
        folder: Option<&str>,
        budget: &Budget,
    ) -> Consent {
        self.consent_of(line, folder, &Judge::of(line, folder, budget))
    }

    fn consent_of(&self, line: &str, folder: Option<&str>, judged: &Judged) -> Consent {
        let consent = judged.consent(folder, line);
        if matches!(consent, Consent::Forbidden { .. }) {
            return consent;
        }
        if let Some(pattern) = self.denied_by(line, judged) {
            let reason = format!("`{pattern}` in the user's `approvals.deny` refuses it");
            return Consent::Forbidden { reason };
        }
        if self.is_allowed(line, judged) {
            Consent::NotNeeded
        } else {
            consent
        }
    }

    /// Returns whether a line runs in a folder without a question, unless it is forbidden.
    pub fn allows(&self, line: &str, folder: &Path) -> bool {
        self.is_allowed_in(folder, line, &Judge::of(line, None, &Budget::default()))
    }

    fn is_allowed_in(&self, folder: &Path, line: &str, judged: &Judged) -> bool {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        let mut rules = rules.iter().filter(|rule| rule.folder == folder);
        self.is_allowed(line, judged) || rules.any(|rule| covers(&rule.pattern, line, judged))
    }

    /// Lets a line, or all of a pattern, run in a folder from now on. Returns the rule. Without a pattern it names only this
    /// line, whatever stars are in it.
    pub fn allow(&self, line: &str, pattern: Option<&str>, folder: &Path) -> AllowRule {
        let exact = || wildcard::escape(line.trim());
        let rule = AllowRule {
            pattern: pattern.map_or_else(exact, str::to_owned),
            folder: folder.to_owned(),
        };
        let mut rules = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        if !rules.contains(&rule) {
            rules.push(rule.clone());
        }
        rule
    }

    /// Returns the pattern that refuses the line, or one of the commands in it. Of a line that is not understood, it is
    /// enough that the pattern's program is in it.
    fn denied_by(&self, line: &str, judged: &Judged) -> Option<&str> {
        let texts = std::iter::once(line.trim()).chain(judged.calls.iter().map(String::as_str));
        let mut texts: Vec<String> = texts.map(str::to_lowercase).collect();
        for call in &judged.calls {
            let words: Vec<String> = call.split_whitespace().map(str::to_lowercase).collect();
            texts.extend(spellings(&words));
        }
        for words in &judged.exactly.calls {
            let words: Vec<String> = words
                .iter()
                .map(|word| word.shown().to_lowercase())
                .collect();
            texts.extend(spellings(&words));
        }
        let is_understood = judged.exactly.reading.is_some();
        let raw = line.to_lowercase();
        let denies = |pattern: &&String| {
            texts.iter().any(|text| wildcard::matches(pattern, text))
                || (!is_understood && names_program_of(pattern, &raw))
        };
        self.deny.iter().find(denies).map(String::as_str)
    }

    fn is_allowed(&self, line: &str, judged: &Judged) -> bool {
        self.allow.iter().any(|entry| covers(entry, line, judged))
    }
}

impl CommandPolicy for CommandLists {
    fn judge(&self, line: &str, place: CommandPlace<'_>) -> JudgedCommand {
        let judged = Judge::of(line, place.folder, &Budget::default());
        let beyond = place
            .fence
            .map(|setting| needs::beyond_fence(line, &judged, setting));
        JudgedCommand {
            consent: self.consent_of(line, place.folder, &judged),
            is_read_only: judged.is_read_only(),
            programs: judged.programs(),
            depends_on_words: judged.depends_on_words(),
            is_allowed: self.is_allowed_in(place.allowed_in, line, &judged),
            beyond: beyond.unwrap_or_default(),
            last_program: judged.last_program(),
        }
    }

    fn consent_for_typed(&self, line: &str, raw: &str) -> Consent {
        let consent = self.consent_for(line);
        match (consent, exact::why_not_typed(raw)) {
            (Consent::NotNeeded | Consent::Needed(_), Some(why)) => {
                Consent::needed(why.to_string())
            }
            (consent, _) => consent,
        }
    }

    fn consent_for_script(&self, code: &str) -> Consent {
        script::consent(self, code)
    }
}

/// Returns whether an entry of a list means a line. A pattern is held against the words of a line that is one plain command;
/// an entry that is the line allows it.
fn covers(entry: &str, line: &str, judged: &Judged) -> bool {
    let line = line.trim();
    let words = judged
        .exactly
        .plain_words()
        .filter(|_| !judged.exactly.hides_program());
    entry == line
        || entry == wildcard::escape(line)
        || words.is_some_and(|words| matches_words(entry, &words))
}

/// Returns the ways to write a call for a pattern: from its program, past options and their values, to each word that may
/// be its subcommand.
fn spellings(words: &[String]) -> Vec<String> {
    let Some((path, args)) = words.split_first() else {
        return Vec::new();
    };
    let program = path.rsplit('/').next().unwrap_or(path);
    let written = |args: &[String]| {
        format!("{program} {}", args.join(" "))
            .trim_end()
            .to_owned()
    };
    let mut spellings = vec![written(args)];
    let mut after_option = false;
    for (at, arg) in args.iter().enumerate().take(OPTIONS_MAX) {
        if arg.starts_with('-') {
            after_option = true;
            continue;
        }
        spellings.push(written(&args[at..]));
        if !after_option {
            break;
        }
        after_option = false;
    }
    spellings
}

/// Words before a subcommand that are looked at.
const OPTIONS_MAX: usize = 24;

/// Returns whether the program of a pattern is a word of a text.
fn names_program_of(pattern: &str, text: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    let program = pattern.split_whitespace().next().unwrap_or_default();
    let program: String = program.chars().take_while(|c| is_letter(*c)).collect();
    !program.is_empty() && text.split(|c| !is_letter(c)).any(|word| word == program)
}

/// Returns whether words are what a pattern describes, word by word. A star at the end stands for any words; elsewhere, stars
/// stay inside a word and do not lead up to another folder.
fn matches_words(pattern: &str, words: &[String]) -> bool {
    let patterns: Vec<&str> = pattern.split_whitespace().collect();
    let one = |pattern: &str, word: &str| {
        let is_upward = word.split('/').any(|part| part == "..");
        pattern == word
            || (wildcard::matches(pattern, word) && !(is_upward && wildcard::is_pattern(pattern)))
    };
    let (patterns, is_open) = match patterns.split_last() {
        Some((&"*", rest)) => (rest, true),
        _ => (patterns.as_slice(), false),
    };
    let fits = if is_open {
        words.len() >= patterns.len()
    } else {
        words.len() == patterns.len()
    };
    fits && patterns
        .iter()
        .zip(words)
        .all(|(pattern, word)| one(pattern, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(deny: &[&str], allow: &[&str]) -> CommandLists {
        let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
        CommandLists::new(owned(deny), owned(allow), Vec::new())
    }

    #[track_caller]
    fn check(lists: &CommandLists, line: &str, expected: &str) {
        let kind = match lists.consent_for(line) {
            Consent::NotNeeded => "free",
            Consent::Needed(_) | Consent::Review(_) => "needed",
            Consent::Forbidden { .. } => "forbidden",
        };
        assert_eq!(kind, expected, "{line}");
    }

    #[test]
    fn what_the_user_denies_never_runs_however_it_is_reached() {
        let lists = lists(&["git push*", "*PRODUCTION*"], &["git push origin main"]);
        for line in [
            "git push origin main",
            "GIT PUSH",
            "cd x && /usr/bin/git push",
            "bash -c 'git push'",
            "sudo -u me git push",
            "deploy --to production",
            "p=push; git $p",
        ] {
            check(&lists, line, "forbidden");
        }
        check(&lists, "git pull", "free");
        check(&lists, "echo 'git push'", "free");
    }

    #[test]
    fn what_the_user_allows_runs_unless_more_runs_with_it() {
        let lists = lists(&[], &["rm -rf build*", "make clean && rm -rf out"]);
        check(&lists, "rm -rf build", "free");
        check(&lists, "rm -rf build-2", "free");
        check(&lists, "make clean && rm -rf out", "free");
        for line in [
            "rm -rf build; rm -rf src",
            "rm -rf build $(rm -rf src)",
            "rm -rf build\nrm -rf src",
            "rm -rf src",
        ] {
            check(&lists, line, "needed");
        }
    }

    #[test]
    fn the_hardline_is_not_on_any_list() {
        let lists = lists(&[], &["*", "rm -rf /"]);
        check(&lists, "rm -rf /", "forbidden");
    }

    #[test]
    fn an_allowed_line_allows_only_itself() {
        let lists = CommandLists::default();
        let here = Path::new("/srv/p");
        assert!(!lists.allows("rm -rf *.o", here));
        let rule = lists.allow("rm -rf *.o", None, here);
        assert_eq!(rule.pattern, "rm -rf [*].o");
        assert!(lists.allows("rm -rf *.o", here));
        assert!(!lists.allows("rm -rf src x.o", here));
    }

    #[test]
    fn an_allowed_pattern_holds_in_its_folder() {
        let lists = CommandLists::default();
        let here = Path::new("/srv/p");
        lists.allow("git push origin main", Some("git push *"), here);
        assert!(lists.allows("git push origin dev", here));
        for (line, folder) in [
            ("git push origin dev", "/srv/q"),
            ("git push origin dev", "/srv/p/sub"),
            ("git push origin dev; rm -rf x", "/srv/p"),
            ("git pull origin", "/srv/p"),
        ] {
            assert!(!lists.allows(line, Path::new(folder)), "{line} in {folder}");
        }
    }
}
