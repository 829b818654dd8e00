//! Judges Python scripts: what goes through the tools is judged there, call by call; what goes around them needs a person.
//!
//! Looks at the words of a script and not at what they mean, so it is a net like the rest of the policy, not a fence.

use hermes_core::Consent;

use super::CommandLists;
use crate::shell::Budget;

/// Modules that run programs or machine code, or load what was not looked at. Any name that holds one counts.
const MODULES: &[&str] = &["subprocess", "ctypes", "importlib", "pexpect"];

/// Functions of `os` that run programs, by how they begin.
const RUNNERS: &[&str] = &[
    "system",
    "popen",
    "posix_spawn",
    "execv",
    "execl",
    "spawnv",
    "spawnl",
];

/// Functions that delete whole folders.
const DELETERS: &[&str] = &["rmtree", "removedirs"];

/// Built-in functions that run text.
const EVALUATORS: &[&str] = &["eval", "exec", "compile", "__import__"];

impl CommandLists {
    /// Says what a person must agree to before this script runs.
    pub fn consent_for_script(&self, code: &str) -> Consent {
        let tokens = tokens(code);
        let Some(word) = word_around_the_tools(&tokens) else {
            return Consent::NotNeeded;
        };
        let commands = texts_in_a_row(&tokens);
        let budget = Budget::default();
        let forbidden =
            commands
                .iter()
                .find_map(|line| match self.consent_within(line, None, &budget) {
                    Consent::Forbidden { reason } => Some(reason),
                    Consent::NotNeeded | Consent::Needed(_) | Consent::Review(_) => None,
                });
        match forbidden {
            Some(reason) => Consent::Forbidden {
                reason: format!("the script holds a command that nobody can allow: {reason}"),
            },
            None => Consent::needed(format!(
                "the script uses `{word}`, which goes around the tools"
            )),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    /// A name with what it is an attribute of: `os.path.join`.
    Word(String),
    /// What a string holds, escapes as they are written.
    Text(String),
    Comma,
    Other,
}

fn word_around_the_tools(tokens: &[Token]) -> Option<&str> {
    let words = tokens.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word.as_str()),
        _ => None,
    });
    let words: Vec<&str> = words.collect();
    let takes_from_os = words
        .windows(3)
        .any(|three| three == ["from", "os", "import"]);
    let goes_around = |word: &&str| {
        let last = word.rsplit('.').next().unwrap_or(word);
        let is_attribute = last.len() < word.len();
        let runs = RUNNERS.iter().any(|runner| last.starts_with(runner));
        MODULES.iter().any(|module| word.contains(module))
            || DELETERS.contains(&last)
            || (EVALUATORS.contains(&last) && !is_attribute)
            || (runs && (is_attribute || takes_from_os) && *word != "platform.system")
    };
    words.into_iter().find(goes_around)
}

/// Returns each string, and strings between commas as one line: `["rm", "-r", "x"]` is a command too.
fn texts_in_a_row(tokens: &[Token]) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    let mut is_open = false;
    for token in tokens {
        match token {
            Token::Text(text) => {
                match rows.last_mut() {
                    Some(row) if is_open => row.extend([" ", text]),
                    _ => rows.push(text.clone()),
                }
                is_open = true;
            }
            Token::Comma => {}
            Token::Word(_) | Token::Other => is_open = false,
        }
    }
    rows
}

fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        if first.is_alphabetic() || first == '_' {
            let is_in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let (word, after) = rest.split_at(rest.find(|c| !is_in_word(c)).unwrap_or(rest.len()));
            rest = after;
            // Otherwise it is the `r`, `b` or `f` before a string.
            if !(word.len() <= 2 && after.starts_with(['"', '\''])) {
                tokens.push(Token::Word(word.to_owned()));
            }
        } else if first == '"' || first == '\'' {
            let (text, after) = string(rest, first);
            tokens.push(Token::Text(text.to_owned()));
            rest = after;
        } else if first == '#' {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else {
            rest = &rest[first.len_utf8()..];
            match first {
                ',' => tokens.push(Token::Comma),
                first if first.is_whitespace() => {}
                _ => tokens.push(Token::Other),
            }
        }
    }
    tokens
}

/// Splits a string literal from what follows it.
fn string(code: &str, quote: char) -> (&str, &str) {
    let triple = quote.to_string().repeat(3);
    let end = if code.starts_with(&triple) {
        triple.as_str()
    } else {
        &triple[..1]
    };
    let inside = &code[end.len()..];
    let mut is_escaped = false;
    for (at, c) in inside.char_indices() {
        if !is_escaped && inside[at..].starts_with(end) {
            return (&inside[..at], &inside[at + end.len()..]);
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    (inside, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn consent_for_script(code: &str) -> Consent {
        CommandLists::default().consent_for_script(code)
    }

    #[test]
    fn what_the_user_refused_for_good_stays_refused_inside_a_script() {
        let lists = CommandLists::new(vec!["git push*".to_owned()], Vec::new(), Vec::new());
        let consent = lists.consent_for_script("import os; os.system('git push origin')");
        assert!(matches!(consent, Consent::Forbidden { .. }), "{consent:?}");
    }

    #[test]
    fn what_goes_through_the_tools_or_computes_is_free() {
        for code in [
            "from hermes_tools import terminal\nprint(terminal('rm -r x'))",
            "import re, json, os\nprint(re.compile('a').findall(open('x').read()), os.path.join('a', 'b'))",
            "import platform\nprint(platform.system())",
            "system = 'solar'  # not os.system\nprint(system, 'subprocess')",
            "text = '''\nimport subprocess\n'''",
            r#"print("it's \" subprocess")"#,
        ] {
            assert_eq!(consent_for_script(code), Consent::NotNeeded, "{code}");
        }
    }

    #[test]
    fn what_goes_around_the_tools_needs_a_person() {
        for code in [
            "import subprocess\nsubprocess.run(['ls'])",
            "import os; os.system('ls')",
            "import os as o; o.popen('ls')",
            "from os import system\nsystem('ls')",
            "import asyncio\nasyncio.create_subprocess_shell('ls')",
            "import shutil; shutil.rmtree('build')",
            "exec('print(1)')",
            "__import__('os').getpid()",
            "f'{os.system(1)}'\nos.execvp('ls', ['ls'])",
        ] {
            let consent = consent_for_script(code);
            assert!(matches!(consent, Consent::Needed(_)), "{code}");
        }
    }

    #[test]
    fn what_nobody_can_allow_stays_forbidden_inside_a_script() {
        for code in [
            "import os; os.system('rm -rf /')",
            "import subprocess\nsubprocess.run(['rm', '-rf', '/'])",
            "import subprocess\nsubprocess.run(\"sudo mkfs.ext4 /dev/sda1\", shell=True)",
        ] {
            let consent = consent_for_script(code);
            assert!(matches!(consent, Consent::Forbidden { .. }), "{code}");
        }
    }

    #[test]
    fn broken_scripts_are_judged_too() {
        for code in ["'", "'''", "\"\\", "r'", "é = 'ü", "#", "\u{0}", "f\"{"] {
            consent_for_script(code);
        }
    }
}
