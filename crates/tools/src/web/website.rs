//! Which sites the user does not want to be visited: `security.website_blocklist`.
//!
//! Rules stand in the settings and in files that several homes may share, one in a line. `example.com` means the site and
//! everything below it, `*.example.com` only what is below it. Schemes, ports, paths and a leading `www.` say nothing.
//!
//! A list that cannot be understood blocks everything: whoever keeps one wants sites kept out, and a file that was moved
//! or a line with a slip in it must not let them in unnoticed. The files are read for each call, so a mended list counts
//! at once.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use reqwest::Url;

use super::destination;
use crate::policy::wildcard;

/// Lists of a hundred thousand sites have about three.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What rules of the settings name as their source.
const SETTINGS: &str = "config";

/// Where the rules are. Empty when the user has none, or has switched them off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blocklist {
    pub domains: Vec<String>,
    pub shared_files: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenList {
    #[error("`{path}`, a list of blocked websites, cannot be read: {source}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{path}`, a list of blocked websites, has more than {} MB", FILE_BYTES_MAX / 1024 / 1024)]
    TooLong { path: PathBuf },
    #[error("`{rule}` in {place} is not the name of a website")]
    Rule { rule: String, place: String },
}

/// The rules, read.
#[derive(Debug, Default)]
pub(crate) struct Websites {
    rules: Vec<Rule>,
}

/// Why a site is not visited.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Block {
    pub(crate) host: String,
    pub(crate) rule: String,
    pub(crate) source: String,
}

#[derive(Debug)]
struct Rule {
    /// In lower case, without what says nothing.
    pattern: String,
    source: String,
}

impl Websites {
    pub(crate) fn read(list: &Blocklist) -> Result<Self, BrokenList> {
        let mut websites = Self::default();
        for domain in &list.domains {
            websites.add(domain, SETTINGS, || {
                "`security.website_blocklist.domains`".to_owned()
            })?;
        }
        for path in &list.shared_files {
            let source = path.display().to_string();
            for (at, line) in text(path)?.lines().enumerate() {
                let place = || format!("line {} of `{source}`", at + 1);
                websites.add(line, &source, place)?;
            }
        }
        Ok(websites)
    }

    fn add(
        &mut self,
        line: &str,
        source: &str,
        place: impl Fn() -> String,
    ) -> Result<(), BrokenList> {
        let rule = line.split('#').next().unwrap_or_default().trim();
        if rule.is_empty() {
            return Ok(());
        }
        let pattern = normalised(rule).ok_or_else(|| BrokenList::Rule {
            rule: rule.to_owned(),
            place: place(),
        })?;
        self.rules.push(Rule {
            pattern,
            source: source.to_owned(),
        });
        Ok(())
    }

    /// Returns the first rule against the site of a URL.
    pub(crate) fn block(&self, url: &Url) -> Option<Block> {
        let host = destination::host(url);
        let rule = self.rules.iter().find(|rule| rule.is_about(host))?;
        Some(Block {
            host: host.to_owned(),
            rule: rule.pattern.clone(),
            source: rule.source.clone(),
        })
    }
}

impl Rule {
    fn is_about(&self, host: &str) -> bool {
        if is_pattern(&self.pattern) {
            return wildcard::matches(&self.pattern, host);
        }
        let above = host.strip_suffix(self.pattern.as_str());
        above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
    }
}

fn is_pattern(rule: &str) -> bool {
    rule.contains(['*', '?'])
}

/// Writes a rule as hosts are written. `None` if no host could ever be meant.
fn normalised(rule: &str) -> Option<String> {
    let rule = rule.to_lowercase();
    let rule = rule
        .split_once("://")
        .map_or(rule.as_str(), |(_, rest)| rest);
    let site = if is_pattern(rule.split('/').next()?) {
        pattern_site(rule)?
    } else {
        plain_site(rule)?
    };
    let site = site.strip_prefix("www.").unwrap_or(&site);
    let site = site.trim_matches('.');
    (!site.is_empty()).then(|| site.to_owned())
}

/// The URL parser knows best what a host is, and how one with umlauts is written.
fn plain_site(rule: &str) -> Option<String> {
    let url = Url::parse(&format!("http://{}", rule.trim_start_matches('.'))).ok()?;
    Some(url.host_str()?.to_owned())
}

fn pattern_site(rule: &str) -> Option<String> {
    let site = rule.split('/').next()?;
    let site = match site.rsplit_once(':') {
        Some((site, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => site,
        _ => site,
    };
    let is_sound = |c: char| c.is_ascii_alphanumeric() || "*?.-_".contains(c);
    site.chars().all(is_sound).then(|| site.to_owned())
}

fn text(path: &Path) -> Result<String, BrokenList> {
    let unreadable = |source| BrokenList::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(unreadable)?;
    let mut text = String::new();
    let mut beginning = file.take(FILE_BYTES_MAX + 1);
    beginning.read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        Err(BrokenList::TooLong {
            path: path.to_owned(),
        })
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn websites(domains: &[&str]) -> Websites {
        let list = Blocklist {
            domains: domains.iter().map(ToString::to_string).collect(),
            shared_files: Vec::new(),
        };
        Websites::read(&list).unwrap()
    }

    fn blocks(rule: &str, host: &str) -> bool {
        let url = Url::parse(&format!("https://{host}/a/b")).unwrap();
        websites(&[rule]).block(&url).is_some()
    }

    #[test]
    fn a_rule_means_the_site_and_what_is_below_it() {
        for rule in [
            "example.com",
            "EXAMPLE.com.",
            "https://www.example.com/a/page?x=1",
            "www.example.com",
            "example.com:8443",
            ".example.com",
            "  example.com  # why",
        ] {
            for host in [
                "example.com",
                "www.example.com",
                "a.b.EXAMPLE.com",
                "example.com.",
            ] {
                assert!(blocks(rule, host), "{rule} {host}");
            }
            for host in [
                "example.org",
                "notexample.com",
                "example.com.evil.net",
                "com",
            ] {
                assert!(!blocks(rule, host), "{rule} {host}");
            }
        }
    }

    #[test]
    fn a_star_stands_for_what_is_below() {
        assert!(blocks("*.example.com", "a.example.com"));
        assert!(blocks("*.example.com", "a.b.example.com"));
        assert!(!blocks("*.example.com", "example.com"));
        assert!(blocks("ads*.net", "ads7.net"));
        assert!(blocks("*", "anything.example"));
    }

    #[test]
    fn hosts_are_compared_as_they_are_asked_for() {
        assert!(blocks("bücher.example", "xn--bcher-kva.example"));
        assert!(blocks("xn--bcher-kva.example", "BÜCHER.example"));
        assert!(blocks("127.0.0.1", "0x7f.1"));
        assert!(blocks("[::1]", "[0:0:0:0:0:0:0:1]"));
    }

    #[test]
    fn a_block_says_whose_rule_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shared.txt");
        std::fs::write(&file, "# ours\n\nads.example\r\n*.tracker.example # all\n").unwrap();
        let list = Blocklist {
            domains: vec!["mine.example".to_owned()],
            shared_files: vec![file.clone()],
        };
        let websites = Websites::read(&list).unwrap();
        let block = |url: &str| websites.block(&Url::parse(url).unwrap());
        let found = block("https://x.tracker.example/").unwrap();
        assert_eq!(found.host, "x.tracker.example");
        assert_eq!(found.rule, "*.tracker.example");
        assert_eq!(found.source, file.display().to_string());
        assert_eq!(block("https://mine.example/").unwrap().source, "config");
        assert_eq!(block("https://other.example/"), None);
    }

    #[test]
    fn a_list_that_cannot_be_understood_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("slip"), "good.example\nnot a site\n").unwrap();
        std::fs::write(path("bytes"), b"\xff\xfe\x00").unwrap();
        let broken = |name: &str| {
            let list = Blocklist {
                domains: Vec::new(),
                shared_files: vec![path(name)],
            };
            Websites::read(&list).unwrap_err().to_string()
        };
        assert!(broken("slip").contains("`not a site` in line 2 of"));
        assert!(broken("bytes").contains("cannot be read"));
        assert!(broken("missing").contains("cannot be read"));
    }
}
