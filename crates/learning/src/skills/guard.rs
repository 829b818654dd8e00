//! Looks at skills from elsewhere before they are used: what in them could steal, destroy, persist, hide or mislead.
//!
//! A scan is a reading aid and no proof: it finds what is written plainly, and a person decides with what it found before
//! them. Pure; nothing of what is scanned is run. The rules are in `rules`.

mod rules;

use std::sync::OnceLock;

use regex::bytes::{RegexSet, RegexSetBuilder};

use rules::RULES;

/// Files of one skill. Larger ones are programs, and are shown as such.
const FILES_MAX: usize = 50;
const TOTAL_BYTES_MAX: usize = 1024 * 1024;
const FILE_BYTES_MAX: usize = 256 * 1024;
/// Of a line that is shown.
const EXCERPT_CHARS_MAX: usize = 120;
/// More findings say nothing new.
const FINDINGS_MAX: usize = 200;
/// A line is looked at in parts of this length, and only in so many of them: what is longer nobody reads, which is a finding.
const PART_BYTES_MAX: usize = 4_000;
const PARTS_MAX: usize = 8;
/// Letters without a blank that only a program reads.
const BLOB_CHARS_MIN: usize = 400;

/// A file of a skill that is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    /// Below the skill's folder, with `/`.
    pub path: String,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub category: Category,
    pub severity: Severity,
    pub file: String,
    /// From 1; 0 for the whole file.
    pub line: usize,
    pub what: &'static str,
    pub excerpt: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Low,
    Medium,
    High,
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    Exfiltration,
    Injection,
    Destruction,
    Persistence,
    Obfuscation,
    Hidden,
    Execution,
    Structure,
}

/// What a scan says as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScanVerdict {
    Safe,
    /// Something that a person should look at.
    Caution,
    /// Something that no skill needs.
    Dangerous,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanReport {
    pub findings: Vec<Finding>,
}

impl ScanReport {
    pub fn verdict(&self) -> ScanVerdict {
        let worst = self.findings.iter().map(|finding| finding.severity).max();
        match worst {
            Some(Severity::Critical) => ScanVerdict::Dangerous,
            Some(Severity::High) => ScanVerdict::Caution,
            _ => ScanVerdict::Safe,
        }
    }
}

impl ScanVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Caution => "caution",
            Self::Dangerous => "dangerous",
        }
    }
}

impl Category {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exfiltration => "exfiltration",
            Self::Injection => "injection",
            Self::Destruction => "destruction",
            Self::Persistence => "persistence",
            Self::Obfuscation => "obfuscation",
            Self::Hidden => "hidden",
            Self::Execution => "execution",
            Self::Structure => "structure",
        }
    }
}

/// Looks at all files of a skill.
pub fn scan(files: &[SkillFile]) -> ScanReport {
    let mut findings = structure(files);
    for file in files {
        findings.extend(scan_file(file));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings.truncate(FINDINGS_MAX);
    ScanReport { findings }
}

fn finding(category: Category, severity: Severity, file: &str, what: &'static str) -> Finding {
    Finding {
        category,
        severity,
        file: file.to_owned(),
        line: 0,
        what,
        excerpt: String::new(),
    }
}

fn structure(files: &[SkillFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |severity, file: &str, what| {
        findings.push(finding(Category::Structure, severity, file, what));
    };
    if files.len() > FILES_MAX {
        say(Severity::Medium, "", "more than 50 files");
    }
    if files.iter().map(|file| file.bytes.len()).sum::<usize>() > TOTAL_BYTES_MAX {
        say(Severity::High, "", "more than 1 MiB in all");
    }
    for file in files {
        if file.bytes.len() > FILE_BYTES_MAX {
            say(Severity::Medium, &file.path, "a file of more than 256 KiB");
        }
        if is_program(&file.bytes) {
            say(Severity::Critical, &file.path, "a compiled program");
        } else if std::str::from_utf8(&file.bytes).is_err() && !is_picture(&file.path) {
            say(
                Severity::Medium,
                &file.path,
                "no text, so that it cannot be looked at",
            );
        }
    }
    findings
}

fn is_program(bytes: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 6] = [
        b"\x7fELF",
        b"MZ\x90",
        b"\xcf\xfa\xed\xfe",
        b"\xca\xfe\xba\xbe",
        b"\xfe\xed\xfa\xcf",
        b"\0asm",
    ];
    BEGINNINGS.iter().any(|start| bytes.starts_with(start))
}

fn is_picture(path: &str) -> bool {
    const ENDINGS: [&str; 8] = [
        ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf", ".ttf",
    ];
    let path = path.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| path.ends_with(ending))
}

fn scan_file(file: &SkillFile) -> Vec<Finding> {
    let text = String::from_utf8_lossy(&file.bytes);
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for part in parts(line) {
            for rule in matching(part) {
                findings.push(Finding {
                    line: number + 1,
                    excerpt: excerpt(part),
                    ..finding(rule.category, rule.severity, &file.path, rule.what)
                });
            }
        }
        if has_blob(line) {
            findings.push(Finding {
                line: number + 1,
                excerpt: excerpt(line),
                ..finding(
                    Category::Obfuscation,
                    Severity::High,
                    &file.path,
                    "has a long text that only a program reads",
                )
            });
        }
        if let Some(what) = hidden(line) {
            findings.push(Finding {
                line: number + 1,
                excerpt: excerpt(line),
                ..finding(Category::Hidden, Severity::High, &file.path, what)
            });
        }
        if findings.len() > FINDINGS_MAX {
            break;
        }
    }
    findings
}

fn has_blob(line: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    let mut words = line.split(|c: char| !is_letter(c));
    words.any(|word| word.len() >= BLOB_CHARS_MIN)
}

/// The beginning of a line, in parts of bounded length.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    let parts = std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let part = hermes_core::text::head(rest, PART_BYTES_MAX);
        // A character has at most four bytes, so that something is always taken.
        rest = &rest[part.len()..];
        Some(part)
    });
    parts.take(PARTS_MAX)
}

fn matching(line: &str) -> impl Iterator<Item = &'static rules::Rule> {
    static SET: OnceLock<Option<RegexSet>> = OnceLock::new();
    let found = SET
        .get_or_init(set)
        .as_ref()
        .map(|set| set.matches(line.as_bytes()));
    found.into_iter().flatten().map(|number| &RULES[number])
}

fn set() -> Option<RegexSet> {
    let patterns = RULES.iter().map(|rule| rule.pattern);
    RegexSetBuilder::new(patterns).unicode(false).build().ok()
}

/// Characters that people do not see and models read. Joiners inside words of scripts that need them, and of emoji, are fine.
fn hidden(line: &str) -> Option<&'static str> {
    let mut before = ' ';
    for c in line.chars() {
        match c {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                return Some("characters that turn the direction of text around");
            }
            '\u{e0000}'..='\u{e007f}' => return Some("invisible tag characters"),
            '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{180e}' => {
                return Some("characters of no width");
            }
            '\u{200c}' | '\u{200d}' | '\u{feff}' if before.is_ascii() => {
                return Some("characters of no width");
            }
            _ => before = c,
        }
    }
    None
}

fn excerpt(line: &str) -> String {
    let shown: String = line
        .trim()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    hermes_core::text::shorten(&shown, EXCERPT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str) -> (ScanVerdict, Vec<&'static str>) {
        let report = scan(&[SkillFile {
            path: "SKILL.md".into(),
            bytes: text.as_bytes().to_vec(),
        }]);
        let what = report.findings.iter().map(|finding| finding.what).collect();
        (report.verdict(), what)
    }

    #[test]
    fn every_rule_compiles_and_finds_its_own_example() {
        assert!(set().is_some());
        for rule in RULES {
            let found: Vec<_> = matching(rule.example).map(|rule| rule.what).collect();
            assert!(found.contains(&rule.what), "{}: {found:?}", rule.what);
        }
    }

    #[test]
    fn harmless_skills_are_safe() {
        for text in [
            "# Review\n\nRun `git diff` and look at it. Ignore whitespace.",
            "Use `curl -s https://api.github.com/repos/x/y` to read the repository.",
            "Set OPENAI_API_KEY in the environment before you start.",
            "rm -rf build/ cleans up. Schreibe „Überblick“ 👨‍👩‍👧 می‌خواهم.",
            "Write the system prompt of your own bot into prompts/system.md.",
        ] {
            let (verdict, what) = verdict(text);
            assert_eq!(verdict, ScanVerdict::Safe, "{text}: {what:?}");
        }
    }

    #[test]
    fn hidden_characters_programs_and_sizes_are_found() {
        assert_eq!(verdict("do\u{200b} it").0, ScanVerdict::Caution);
        assert_eq!(verdict("a\u{202e}b").0, ScanVerdict::Caution);
        assert_eq!(verdict("x \u{e0041}").0, ScanVerdict::Caution);
        let file = |path: &str, bytes: Vec<u8>| SkillFile {
            path: path.into(),
            bytes,
        };
        let program = scan(&[file("run", b"\x7fELF\x02".to_vec())]);
        assert_eq!(program.verdict(), ScanVerdict::Dangerous);
        let large = scan(&[file("a.md", b"a b\n".repeat(TOTAL_BYTES_MAX / 4 + 1))]);
        assert_eq!(large.verdict(), ScanVerdict::Caution);
        assert_eq!(verdict(&"QUJD".repeat(200)).0, ScanVerdict::Caution);
    }
}
