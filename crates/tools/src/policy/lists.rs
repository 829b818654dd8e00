//! What the user refused or allowed for good: `approvals.deny` and `command_allowlist`.

use std::sync::{PoisonError, RwLock};

use hermes_core::Consent;

use super::{Judge, wildcard};
use crate::shell::Budget;

/// With one of these in a line, a pattern with stars says nothing about what else it runs.
const OPERATORS: &[char] = &['\n', ';', '&', '|', '<', '>', '`', '('];

/// The user's own lists of commands.
#[derive(Debug, Default)]
pub struct CommandLists {
    /// Patterns of commands that never run.
    deny: Vec<String>,
    /// Commands, and patterns of them, that run without a question.
    allow: RwLock<Vec<String>>,
}

impl CommandLists {
    pub fn new(deny: Vec<String>, allow: Vec<String>) -> Self {
        let deny = deny.iter().map(|pattern| pattern.to_lowercase()).collect();
        Self {
            deny,
            allow: RwLock::new(allow),
        }
    }

    /// Says what a person must agree to before this line runs in a shell.
    pub fn consent_for(&self, line: &str) -> Consent {
        self.consent_in(None, line)
    }

    /// Says the same of a line that runs in a folder, where that is known.
    pub fn consent_in(&self, folder: Option<&str>, line: &str) -> Consent {
        self.consent_within(line, folder, &Budget::default())
    }

    /// Says the same with what is left of a budget.
    pub(super) fn consent_within(
        &self,
        line: &str,
        folder: Option<&str>,
        budget: &Budget,
    ) -> Consent {
        let (consent, calls) = Judge::of(line, folder, budget);
        if matches!(consent, Consent::Forbidden { .. }) {
            return consent;
        }
        if let Some(pattern) = self.denied_by(line, &calls) {
            let reason = format!("`{pattern}` in the user's `approvals.deny` refuses it");
            return Consent::Forbidden { reason };
        }
        match self.is_allowed(line) {
            true => Consent::NotNeeded,
            false => consent,
        }
    }

    /// Lets a line run from now on. Returns how the list names it: only this line, whatever stars are in it.
    pub fn allow(&self, line: &str) -> String {
        let entry = wildcard::escape(line.trim());
        let mut allow = self.allow.write().unwrap_or_else(PoisonError::into_inner);
        if !allow.contains(&entry) {
            allow.push(entry.clone());
        }
        entry
    }

    /// Returns the pattern that refuses the line, or one of the commands in it.
    fn denied_by(&self, line: &str, calls: &[String]) -> Option<&str> {
        let texts = std::iter::once(line.trim()).chain(calls.iter().map(String::as_str));
        let texts: Vec<String> = texts.map(str::to_lowercase).collect();
        let denies = |pattern: &&String| texts.iter().any(|text| wildcard::matches(pattern, text));
        self.deny.iter().find(denies).map(String::as_str)
    }

    fn is_allowed(&self, line: &str) -> bool {
        let line = line.trim();
        let exact = wildcard::escape(line);
        let may_match = !line.contains(OPERATORS);
        let allow = self.allow.read().unwrap_or_else(PoisonError::into_inner);
        allow.iter().any(|entry| {
            *entry == line || *entry == exact || (may_match && wildcard::matches(entry, line))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(deny: &[&str], allow: &[&str]) -> CommandLists {
        let owned = |list: &[&str]| list.iter().map(|entry| (*entry).to_owned()).collect();
        CommandLists::new(owned(deny), owned(allow))
    }

    #[track_caller]
    fn check(lists: &CommandLists, line: &str, expected: &str) {
        let kind = match lists.consent_for(line) {
            Consent::NotNeeded => "free",
            Consent::Needed { .. } | Consent::Review(_) => "needed",
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
        check(&lists, "rm -rf *.o", "needed");
        assert_eq!(lists.allow("rm -rf *.o"), "rm -rf [*].o");
        check(&lists, "rm -rf *.o", "free");
        check(&lists, "rm -rf src x.o", "needed");
    }
}
