//! How places are asked for skills: repositories at GitHub, sites with an index, ClawHub, skills.sh, single addresses.

use std::path::Path;

use futures_util::future::join_all;
use hermes_core::BoxFuture;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::archive::{self, safe_path};
use super::{FILES_MAX, Fetched, Hit, Hits, Hub, SkillFile, TOTAL_BYTES_MAX, Trust, WebError};
use crate::skills::folders::SKILL_FILE;
use crate::skills::{SkillError, names};

/// Repositories that are asked before any is named, and whose makers answer for what is in them.
pub(super) const TRUSTED_TAPS: [&str; 4] = [
    "anthropics/skills",
    "openai/skills",
    "huggingface/skills",
    "NVIDIA/skills",
];
/// Skills of one place that a search tells of.
const HITS_MAX: usize = 20;
const NEW_INDEX: &str = "/.well-known/agent-skills/index.json";
const OLD_INDEX: &str = "/.well-known/skills";
/// Before the name of a skill of ClawHub.
const CLAWHUB: &str = "clawhub:";
/// What an index lists, at most.
const LISTED_MAX: usize = 5_000;

impl Hub {
    /// Brings a skill from wherever its identifier says.
    pub(super) async fn ask(&self, identifier: &str) -> Result<Fetched, SkillError> {
        if let Some(slug) = identifier.strip_prefix(CLAWHUB) {
            return self.ask_clawhub(slug).await;
        }
        if names::is_address(identifier) {
            return self.ask_url(identifier).await;
        }
        match names::repository(identifier) {
            Some((repo, path)) => self.ask_github(repo, path).await,
            None => Err(SkillError::asked(format!(
                "`{}` names no place that skills come from",
                hermes_core::text::shorten(identifier, 200)
            ))
            .hint("owner/repository/skill, clawhub:NAME, or an https address; `hermes skills search WORDS` finds some")),
        }
    }

    async fn ask_github(&self, repo: &str, path: &str) -> Result<Fetched, SkillError> {
        let tree = self.tree(repo).await?;
        let folders = skill_folders(&tree);
        let fits = |folder: &&String| {
            let last = folder.rsplit('/').next();
            **folder == path || last == Some(path)
        };
        let found: Vec<&String> = match folders.as_slice() {
            [only] if path.is_empty() => vec![only],
            folders => folders.iter().filter(fits).collect(),
        };
        let folder = match found.as_slice() {
            [folder] => (*folder).clone(),
            found => return Err(which(repo, found, &folders)),
        };
        let prefix = match folder.as_str() {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let mut wanted = Vec::new();
        for entry in &tree {
            let Some(below) = entry.path.strip_prefix(&prefix) else {
                continue;
            };
            match entry.kind {
                Kind::File if safe_path(below).is_some() => {
                    wanted.push((entry.path.clone(), below.to_owned()));
                }
                Kind::Link => {
                    return Err(SkillError::Fetch(format!(
                        "`{repo}` has a link at `{}`, which is not followed",
                        entry.path
                    )));
                }
                _ => {}
            }
        }
        let files = self
            .bring(wanted, |path| {
                format!("{}/{repo}/HEAD/{}", self.places.github_raw, encoded(path))
            })
            .await?;
        let name = folder.rsplit('/').next().filter(|name| !name.is_empty());
        let name = name.or_else(|| repo.rsplit('/').next()).unwrap_or_default();
        let is_trusted = TRUSTED_TAPS
            .iter()
            .any(|tap| tap.eq_ignore_ascii_case(repo));
        Ok(Fetched {
            given_name: name.to_owned(),
            files,
            source: "github",
            trust: if is_trusted {
                Trust::Trusted
            } else {
                Trust::Community
            },
        })
    }

    /// The files of a repository.
    async fn tree(&self, repo: &str) -> Result<Vec<Entry>, SkillError> {
        let url = format!(
            "{}/repos/{repo}/git/trees/HEAD?recursive=1",
            self.places.github_api
        );
        let listed = self.json(&url).await?;
        let entries = listed["tree"].as_array().cloned().unwrap_or_default();
        Ok(entries.iter().filter_map(Entry::read).collect())
    }

    async fn ask_url(&self, url: &str) -> Result<Fetched, SkillError> {
        let (address, wanted) = match url.split_once('#') {
            Some((address, name)) => (address, Some(name)),
            None => (url, None),
        };
        let path = address.split(['?', '#']).next().unwrap_or(address);
        let given_name = name_of(path);
        if path.ends_with(".md") {
            let bytes = self.get(address).await?;
            let file = SkillFile {
                path: SKILL_FILE.to_owned(),
                bytes,
            };
            return Ok(Fetched {
                given_name,
                files: vec![file],
                source: "url",
                trust: Trust::Community,
            });
        }
        if archive::is_archive(path) {
            let files = archive::unpack(&self.get(address).await?)?;
            return Ok(Fetched {
                given_name,
                files,
                source: "url",
                trust: Trust::Community,
            });
        }
        self.ask_site(address.trim_end_matches('/'), wanted).await
    }

    /// A site that lists its skills in one of the two known ways.
    async fn ask_site(&self, site: &str, wanted: Option<&str>) -> Result<Fetched, SkillError> {
        let index = format!("{site}{NEW_INDEX}");
        let listed = match self.web.get(&index).await {
            Ok(bytes) => parsed(&index, &bytes)?,
            Err(error) if error.status.is_some() => return self.ask_old_site(site, wanted).await,
            Err(error) => return Err(unreachable(&index, &error)),
        };
        let skill = chosen(site, &listed, wanted)?;
        let word = |key: &str| skill[key].as_str().unwrap_or_default();
        let bytes = self.get(&joined(&index, word("url"))).await?;
        let digest: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let stated = word("digest")
            .trim_start_matches("sha256:")
            .to_ascii_lowercase();
        if !stated.is_empty() && stated != digest {
            return Err(SkillError::Fetch(format!(
                "what `{site}` sent for `{}` is not what its index says (digest)",
                word("name")
            )));
        }
        let files = match word("type") {
            "archive" => archive::unpack(&bytes)?,
            _ => vec![SkillFile {
                path: SKILL_FILE.to_owned(),
                bytes,
            }],
        };
        Ok(Fetched {
            given_name: word("name").to_owned(),
            files,
            source: "well-known",
            trust: Trust::Community,
        })
    }

    async fn ask_old_site(&self, site: &str, wanted: Option<&str>) -> Result<Fetched, SkillError> {
        let index = format!("{site}{OLD_INDEX}/index.json");
        let bytes = self
            .web
            .get(&index)
            .await
            .map_err(|error| match error.status {
                Some(404 | 410) => SkillError::asked(format!("`{site}` lists no skills"))
                    .hint("give the address of a SKILL.md, or of a .zip or .tar.gz with one"),
                _ => unreachable(&index, &error),
            })?;
        let listed = parsed(&index, &bytes)?;
        let skill = chosen(site, &listed, wanted)?;
        let name = skill["name"].as_str().unwrap_or_default().to_owned();
        if safe_path(&name).is_none_or(|path| path.contains('/')) {
            return Err(SkillError::Fetch(format!(
                "`{site}` lists a skill with a name that is none"
            )));
        }
        let names = skill["files"].as_array().cloned().unwrap_or_default();
        let names = names.iter().filter_map(Value::as_str);
        let wanted = names
            .filter(|path| safe_path(path).is_some())
            .map(|path| (path.to_owned(), path.to_owned()))
            .collect();
        let files = self
            .bring(wanted, |path| {
                format!("{site}{OLD_INDEX}/{name}/{}", encoded(path))
            })
            .await?;
        Ok(Fetched {
            given_name: name,
            files,
            source: "well-known",
            trust: Trust::Community,
        })
    }

    async fn ask_clawhub(&self, slug: &str) -> Result<Fetched, SkillError> {
        let api = format!("{}/api/v1", self.places.clawhub);
        let slug = encoded(slug);
        let told = self.json(&format!("{api}/skills/{slug}")).await?;
        let version = told["latestVersion"]["version"]
            .as_str()
            .unwrap_or_default();
        let bytes = self
            .get(&format!(
                "{api}/download?slug={slug}&version={}",
                encoded(version)
            ))
            .await?;
        Ok(Fetched {
            given_name: slug,
            files: archive::unpack(&bytes)?,
            source: "clawhub",
            trust: Trust::Community,
        })
    }

    /// Looks for skills everywhere at once.
    pub async fn search(&self, words: &str, taps: &[String]) -> Result<Hits, SkillError> {
        let words = words.trim();
        let mut asked: Vec<(String, Asking<'_>)> = Vec::new();
        for tap in taps {
            asked.push((tap.clone(), Box::pin(self.search_tap(tap, words))));
        }
        if !words.is_empty() {
            asked.push((
                "skills.sh".to_owned(),
                Box::pin(self.search_skills_sh(words)),
            ));
            asked.push(("ClawHub".to_owned(), Box::pin(self.search_clawhub(words))));
        }
        let (names, asked): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
        let mut hits = Hits::default();
        let mut failed: Vec<(String, Vec<&str>)> = Vec::new();
        for (name, answer) in names.iter().zip(join_all(asked).await) {
            match answer {
                Ok(found) => hits.hits.extend(found.into_iter().take(HITS_MAX)),
                Err(error) => add_failure(&mut failed, name, error.to_string()),
            }
        }
        let count = failed.iter().map(|(_, names)| names.len()).sum::<usize>();
        if count == names.len() && count > 0 {
            return Err(nowhere(&failed));
        }
        let told = failed
            .iter()
            .map(|(why, names)| format!("{}: {why}", names.join(", ")));
        hits.problems = told.collect();
        Ok(hits)
    }

    async fn search_tap(&self, tap: &str, words: &str) -> Result<Vec<Hit>, SkillError> {
        if tap.starts_with("http") {
            return self.search_site(tap, words).await;
        }
        let (repo, below) = names::repository(tap).unwrap_or((tap, ""));
        let tree = self.tree(repo).await?;
        let words = words.to_lowercase();
        let fits = |folder: &String| {
            let is_below = below.is_empty() || Path::new(folder).starts_with(below);
            let folder = folder.to_lowercase();
            is_below && words.split_whitespace().all(|word| folder.contains(word))
        };
        let hits = skill_folders(&tree)
            .into_iter()
            .filter(fits)
            .map(|folder| Hit {
                name: folder.rsplit('/').next().unwrap_or_default().to_owned(),
                identifier: format!("{repo}/{folder}"),
                description: String::new(),
            });
        Ok(hits.collect())
    }

    async fn search_site(&self, site: &str, words: &str) -> Result<Vec<Hit>, SkillError> {
        let site = site.trim_end_matches('/');
        let listed = match self.json(&format!("{site}{NEW_INDEX}")).await {
            Ok(listed) => listed,
            Err(_) => self.json(&format!("{site}{OLD_INDEX}/index.json")).await?,
        };
        let words = words.to_lowercase();
        let hits = listed_skills(&listed).into_iter().map(|skill| {
            let word = |key: &str| skill[key].as_str().unwrap_or_default().to_owned();
            Hit {
                identifier: format!("{site}#{}", word("name")),
                name: word("name"),
                description: word("description"),
            }
        });
        let has_words = |hit: &Hit| {
            let text = format!("{} {}", hit.name, hit.description).to_lowercase();
            words.split_whitespace().all(|word| text.contains(word))
        };
        Ok(hits.filter(has_words).collect())
    }

    async fn search_skills_sh(&self, words: &str) -> Result<Vec<Hit>, SkillError> {
        let url = format!(
            "{}/api/search?q={}&limit={HITS_MAX}",
            self.places.skills_sh,
            encoded(words)
        );
        let found = self.json(&url).await?;
        let hits = listed_skills(&found).into_iter().filter_map(|skill| {
            let id = skill["id"].as_str()?;
            let installs = skill["installs"]
                .as_u64()
                .map(|count| format!("{count} installs at skills.sh"));
            Some(Hit {
                name: skill["name"]
                    .as_str()
                    .or_else(|| id.rsplit('/').next())?
                    .to_owned(),
                identifier: id.to_owned(),
                description: installs.unwrap_or_default(),
            })
        });
        Ok(hits.collect())
    }

    async fn search_clawhub(&self, words: &str) -> Result<Vec<Hit>, SkillError> {
        let url = format!(
            "{}/api/v1/skills?search={}&limit={HITS_MAX}",
            self.places.clawhub,
            encoded(words)
        );
        let found = self.json(&url).await?;
        let items = found["items"].as_array().cloned().unwrap_or_default();
        let hits = items.iter().filter_map(|item| {
            let slug = item["slug"].as_str()?;
            Some(Hit {
                name: slug.to_owned(),
                identifier: format!("{CLAWHUB}{slug}"),
                description: item["summary"].as_str().unwrap_or_default().to_owned(),
            })
        });
        Ok(hits.collect())
    }

    /// Brings several files of one skill.
    async fn bring(
        &self,
        wanted: Vec<(String, String)>,
        url: impl Fn(&str) -> String,
    ) -> Result<Vec<SkillFile>, SkillError> {
        if wanted.len() > FILES_MAX {
            return Err(SkillError::Fetch(format!(
                "the skill has {} files; {FILES_MAX} are allowed",
                wanted.len()
            )));
        }
        let mut files = Vec::new();
        let mut bytes_left = TOTAL_BYTES_MAX;
        for (path, below) in wanted {
            let bytes = self.get(&url(&path)).await?;
            // Nothing more is asked for once it is too much.
            bytes_left = bytes_left.checked_sub(bytes.len()).ok_or_else(|| {
                SkillError::Fetch(format!(
                    "the skill has more than the {TOTAL_BYTES_MAX} bytes that are allowed"
                ))
            })?;
            files.push(SkillFile { path: below, bytes });
        }
        Ok(files)
    }

    async fn get(&self, url: &str) -> Result<Vec<u8>, SkillError> {
        self.web
            .get(url)
            .await
            .map_err(|error| unreachable(url, &error))
    }

    async fn json(&self, url: &str) -> Result<Value, SkillError> {
        parsed(url, &self.get(url).await?)
    }
}

/// Keeps a failure with others of the same words.
fn add_failure<'a>(failed: &mut Vec<(String, Vec<&'a str>)>, name: &'a str, why: String) {
    match failed.iter_mut().find(|(known, _)| *known == why) {
        Some((_, names)) => names.push(name),
        None => failed.push((why, vec![name])),
    }
}

/// What is said when no place answers: usually it is the network here, which is said once.
fn nowhere(failed: &[(String, Vec<&str>)]) -> SkillError {
    let first = failed.first().map(|(why, _)| why.as_str());
    let others = match failed.len() {
        0 | 1 => String::new(),
        more => format!(" (and {} more like it)", more - 1),
    };
    SkillError::Fetch(format!(
        "no place with skills can be reached: {}{others}; is this machine online?",
        first.unwrap_or_default()
    ))
}

/// A place that is being asked.
type Asking<'a> = BoxFuture<'a, Result<Vec<Hit>, SkillError>>;

/// A file of a repository.
struct Entry {
    path: String,
    kind: Kind,
}

enum Kind {
    File,
    Link,
    Other,
}

impl Entry {
    fn read(entry: &Value) -> Option<Self> {
        let kind = match (entry["type"].as_str()?, entry["mode"].as_str()) {
            ("blob", Some("120000")) => Kind::Link,
            ("blob", _) => Kind::File,
            _ => Kind::Other,
        };
        let path = entry["path"].as_str()?.to_owned();
        Some(Self { path, kind })
    }
}

/// The folders of a repository that hold a skill.
fn skill_folders(tree: &[Entry]) -> Vec<String> {
    let folders = tree.iter().filter_map(|entry| {
        let folder = entry.path.strip_suffix(SKILL_FILE)?;
        match folder {
            "" => Some(String::new()),
            folder => folder.strip_suffix('/').map(str::to_owned),
        }
    });
    folders.take(LISTED_MAX).collect()
}

fn which(repo: &str, found: &[&String], all: &[String]) -> SkillError {
    let named = |folders: &mut dyn Iterator<Item = &String>| {
        let names: Vec<&str> = folders.take(HITS_MAX).map(String::as_str).collect();
        names.join(", ")
    };
    match (found.is_empty(), all.is_empty()) {
        (_, true) => SkillError::asked(format!("the repository `{repo}` has no skills")),
        (true, false) => SkillError::asked(format!("which skill of `{repo}`?"))
            .hint(format!("it has {}", named(&mut all.iter()))),
        (false, false) => SkillError::asked(format!("several skills of `{repo}` are called so"))
            .hint(format!("name one of {}", named(&mut found.iter().copied()))),
    }
}

fn listed_skills(listed: &Value) -> Vec<Value> {
    let skills = listed["skills"].as_array().cloned().unwrap_or_default();
    skills.into_iter().take(LISTED_MAX).collect()
}

/// The skill of an index that is meant.
fn chosen(site: &str, listed: &Value, wanted: Option<&str>) -> Result<Value, SkillError> {
    let skills = listed_skills(listed);
    let name = |skill: &Value| skill["name"].as_str().unwrap_or_default().to_owned();
    let found = match (wanted, skills.as_slice()) {
        (None, [only]) => Some(only.clone()),
        (None, _) => None,
        (Some(wanted), skills) => skills.iter().find(|skill| name(skill) == wanted).cloned(),
    };
    found.ok_or_else(|| {
        let names: Vec<String> = skills.iter().take(HITS_MAX).map(name).collect();
        SkillError::asked(format!("which skill of `{site}`?"))
            .hint(format!("{site}#NAME, with one of {}", names.join(", ")))
    })
}

fn parsed(url: &str, bytes: &[u8]) -> Result<Value, SkillError> {
    serde_json::from_slice(bytes)
        .map_err(|error| SkillError::Fetch(format!("what `{url}` sent is no JSON: {error}")))
}

fn unreachable(url: &str, error: &WebError) -> SkillError {
    let host = url.split('/').nth(2).unwrap_or(url);
    SkillError::Fetch(match error.status {
        Some(404) => format!("there is nothing at `{url}`"),
        Some(403 | 429) => format!("`{host}` wants to be asked less often; try again later"),
        Some(status) => format!("`{host}` answered {status}"),
        None => format!("`{host}` cannot be reached: {}", error.message),
    })
}

/// An address as a page with this address means it.
fn joined(base: &str, url: &str) -> String {
    if url.starts_with("https://") || url.starts_with("http://") {
        return url.to_owned();
    }
    let after_scheme = base.find("://").map_or(0, |at| at + 3);
    let host_end = base[after_scheme..]
        .find('/')
        .map_or(base.len(), |at| at + after_scheme);
    if url.starts_with('/') {
        return format!("{}{url}", &base[..host_end]);
    }
    let folder = base
        .rfind('/')
        .filter(|at| *at >= host_end)
        .unwrap_or(base.len());
    format!("{}/{}", &base[..folder], url.trim_start_matches("./"))
}

fn name_of(path: &str) -> String {
    let path = path.trim_end_matches("/SKILL.md");
    let last = path.rsplit('/').next().unwrap_or_default();
    let endings = [".tar.gz", ".tgz", ".zip", ".md"];
    let ending = endings.iter().find_map(|ending| last.strip_suffix(ending));
    ending.unwrap_or(last).to_owned()
}

/// A text as part of a path or a query.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                encoded.push(byte.into());
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_joined_and_encoded() {
        let base = "https://a.example/.well-known/agent-skills/index.json";
        assert_eq!(joined(base, "/x/SKILL.md"), "https://a.example/x/SKILL.md");
        assert_eq!(
            joined(base, "x/SKILL.md"),
            "https://a.example/.well-known/agent-skills/x/SKILL.md"
        );
        assert_eq!(joined(base, "https://b.example/y"), "https://b.example/y");
        assert_eq!(joined("https://a.example", "x"), "https://a.example/x");
        assert_eq!(encoded("a b/ü?"), "a%20b/%C3%BC%3F");
        assert_eq!(name_of("https://a.example/my-skill/SKILL.md"), "my-skill");
        assert_eq!(name_of("https://a.example/my-skill.tar.gz"), "my-skill");
    }
}
