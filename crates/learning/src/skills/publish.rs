//! Skills made ready for others: a folder that every reader of the format takes, without secrets, and scanned as if it came
//! from a stranger. [`Package::put_on_site`] writes what a plain web server serves; repositories are the runtime's.

use std::fs;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use hermes_os::{Access, Durability};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::error::Doing as _;
use super::folders::SKILL_FILE;
use super::guard::{ScanReport, ScanVerdict, SkillFile, scan};
use super::hub::{FilesThere, Force, safe_path};
use super::library::Skill;
use super::{SkillError, Skills, blocking, document, names};

/// Which description of indices ours goes by.
const SCHEMA: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";
/// Where indices are looked for: as it is now, and as older readers know it.
const NEW_FOLDER: &str = ".well-known/agent-skills";
const OLD_FOLDER: &str = ".well-known/skills";
const INDEX: &str = "index.json";
/// An index that is larger is not one of skills.
const INDEX_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// A value that is shorter stands in texts by chance.
const SECRET_CHARS_MIN: usize = 10;

/// A skill as others get it.
#[derive(Debug, Clone)]
pub struct Package {
    pub name: String,
    pub description: String,
    pub files: Vec<SkillFile>,
    pub report: ScanReport,
}

impl Skills {
    /// Makes a skill ready. What holds a secret is refused: `secrets` are the values that are known to be some.
    pub async fn package(&self, name: &str, secrets: &[String]) -> Result<Package, SkillError> {
        let library = self.library().await;
        let skill = library.named(name)?.clone();
        let package = blocking(move || packaged(&skill)).await?;
        no_secrets(&package.files, secrets)?;
        Ok(package)
    }
}

fn packaged(skill: &Skill) -> Result<Package, SkillError> {
    let candidates = [Some(skill.name.clone()), skill.slash.clone()];
    let mut candidates = candidates.into_iter().flatten();
    let name = candidates.find(|name| document::name_problem(name).is_none());
    let name = name.ok_or_else(|| {
        SkillError::asked(document::name_problem(&skill.name).unwrap_or_default())
    })?;
    let text = fs::read_to_string(&skill.file).doing("read", &skill.file)?;
    let text = document::packaged(&name, &text).map_err(|why| SkillError::Invalid {
        name: skill.name.clone(),
        why,
    })?;
    let mut files = vec![SkillFile {
        path: SKILL_FILE.to_owned(),
        bytes: text.into_bytes(),
    }];
    if skill.has_files {
        files.extend(files_beside(skill)?);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Package {
        name,
        description: skill.description.clone(),
        report: scan(&files),
        files,
    })
}

/// The files beside a skill that go with it; hidden ones stay.
fn files_beside(skill: &Skill) -> Result<Vec<SkillFile>, SkillError> {
    let there = FilesThere::of(&skill.folder);
    if there.is_cut {
        return Err(SkillError::asked(format!(
            "`{}` holds links, or more than a skill may have",
            skill.folder.display()
        ))
        .hint("put real files into it, and large ones elsewhere"));
    }
    let goes_with = |file: &SkillFile| file.path != SKILL_FILE && safe_path(&file.path).is_some();
    Ok(there.files.into_iter().filter(goes_with).collect())
}

fn no_secrets(files: &[SkillFile], secrets: &[String]) -> Result<(), SkillError> {
    let is_secret = |line: &str| {
        let mut known = secrets
            .iter()
            .filter(|secret| secret.len() >= SECRET_CHARS_MIN);
        hermes_core::redact::holds_token(line) || known.any(|secret| line.contains(secret.as_str()))
    };
    for file in files {
        let text = String::from_utf8_lossy(&file.bytes);
        let found = text.lines().position(is_secret);
        if let Some(line) = found {
            return Err(SkillError::asked(format!(
                "line {} of `{}` holds what looks like a key or password, so that nothing is published",
                line + 1,
                file.path
            ))
            .hint("name a variable there instead, and list it in required_environment_variables"));
        }
    }
    Ok(())
}

impl Package {
    /// Why it is not published, if it must not be.
    pub fn refusal(&self, force: Force) -> Option<&'static str> {
        match (self.report.verdict(), force) {
            (ScanVerdict::Dangerous, _) => Some("it holds what no skill needs"),
            (ScanVerdict::Caution, Force::No) => Some(
                "it holds what others would have to look at first; --force publishes it all the same",
            ),
            _ => None,
        }
    }

    /// Writes the skill as a folder of its own into another one. What was in that is replaced.
    pub fn put_into(&self, folder: &Path) -> Result<(), SkillError> {
        let folder = names::within(folder, &self.name)?;
        if folder.join(SKILL_FILE).exists() {
            fs::remove_dir_all(&folder).doing("replace", &folder)?;
        }
        for file in &self.files {
            let path = names::below(&folder, &file.path)?;
            let access = if file.bytes.starts_with(b"#!") {
                Access::Mode(0o755)
            } else {
                Access::Usual
            };
            put(&path, &file.bytes, access)?;
        }
        Ok(())
    }

    /// Adds the skill to the folder of a site: any web server that serves it publishes the skill.
    pub fn put_on_site(&self, site: &Path) -> Result<(), SkillError> {
        let (new, old) = (site.join(NEW_FOLDER), site.join(OLD_FOLDER));
        // Both are read before anything is written: one that is no index is nobody's to replace.
        let (new_index, old_index) = (Index::read(&new)?, Index::read(&old)?);
        self.put_into(&old)?;
        let (kind, url, bytes) = match self.files.as_slice() {
            [only] => (
                "skill-md",
                format!("{}/{SKILL_FILE}", self.name),
                only.bytes.clone(),
            ),
            files => (
                "archive",
                format!("{}.tar.gz", self.name),
                archived(&self.name, files).doing("pack", &new)?,
            ),
        };
        put(&names::below(&new, &url)?, &bytes, Access::Usual)?;
        let digest: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let paths: Vec<&str> = self.files.iter().map(|file| file.path.as_str()).collect();
        old_index.save(json!({
            "name": self.name, "description": self.description, "files": paths,
        }))?;
        new_index.with_schema().save(json!({
            "name": self.name, "type": kind, "description": self.description, "url": url,
            "digest": format!("sha256:{digest}"),
        }))
    }
}

fn put(path: &Path, bytes: &[u8], access: Access) -> Result<(), SkillError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).doing("make the folder", folder)?;
    }
    hermes_os::replace(path, bytes, access, Durability::Synced).doing("write", path)
}

/// The same files make the same archive, so that its digest says whether anything changed.
fn archived(name: &str, files: &[SkillFile]) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for file in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(if file.bytes.starts_with(b"#!") {
            0o755
        } else {
            0o644
        });
        header.set_mtime(0);
        let path = format!("{name}/{}", file.path);
        archive.append_data(&mut header, path, file.bytes.as_slice())?;
    }
    archive.into_inner()?.finish()
}

/// The index of a site. What we do not know in it stays.
struct Index {
    file: std::path::PathBuf,
    fields: Map<String, Value>,
}

impl Index {
    fn read(folder: &Path) -> Result<Self, SkillError> {
        let file = folder.join(INDEX);
        let is_index = |fields: &Map<String, Value>| {
            let skills = fields.get("skills");
            skills.is_none_or(Value::is_array)
        };
        let fields = match fs::metadata(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(Map::new()),
            Ok(data) if data.len() <= INDEX_BYTES_MAX => {
                let text = fs::read_to_string(&file).doing("read", &file)?;
                serde_json::from_str(&text).ok()
            }
            _ => None,
        };
        match fields.filter(is_index) {
            Some(fields) => Ok(Self { file, fields }),
            None => Err(SkillError::asked(format!(
                "`{}` is there, and no index of skills",
                file.display()
            ))
            .hint("move it away, or name another folder")),
        }
    }

    fn with_schema(mut self) -> Self {
        self.fields
            .entry("$schema")
            .or_insert_with(|| SCHEMA.into());
        self
    }

    /// Writes it with one more skill, or another version of one.
    fn save(mut self, skill: Value) -> Result<(), SkillError> {
        let skills = self.fields.entry("skills").or_insert_with(|| json!([]));
        if let Value::Array(skills) = skills {
            skills.retain(|known| known["name"] != skill["name"]);
            skills.push(skill);
            skills.sort_by_key(|known| known["name"].as_str().unwrap_or_default().to_owned());
        }
        let mut text = serde_json::to_string_pretty(&self.fields).unwrap_or_default();
        text.push('\n');
        put(&self.file, text.as_bytes(), Access::Usual)
    }
}
