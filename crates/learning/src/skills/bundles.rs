//! Bundles: one name for several skills, `skill-bundles/<name>.yaml` with `name`, `description`, `skills`, `instruction`.

use std::path::Path;

use hermes_core::skill::slash_name;
use serde_json::Value;

use super::yaml;

/// A bundle names a few skills; a larger file is none.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const BUNDLES_MAX: usize = 200;
/// As many skills as one line may name.
const SKILLS_MAX: usize = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// How it is called behind a slash.
    pub slash: String,
    pub description: String,
    pub skills: Vec<String>,
    /// What is said besides the skills.
    pub instruction: Option<String>,
}

/// The bundles of a folder, and what is wrong with those that are none.
pub(super) fn read(folder: &Path) -> (Vec<Bundle>, Vec<String>) {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    let is_yaml = |path: &Path| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        matches!(ending, Some("yaml" | "yml"))
    };
    files.retain(|path| is_yaml(path));
    files.sort();
    let mut bundles = Vec::new();
    let mut problems = Vec::new();
    for file in files.into_iter().take(BUNDLES_MAX) {
        match one(&file) {
            Ok(bundle) => bundles.push(bundle),
            Err(why) => problems.push(format!("{}: {why}", file.display())),
        }
    }
    (bundles, problems)
}

fn one(file: &Path) -> Result<Bundle, String> {
    let data = file.metadata().map_err(|error| error.to_string())?;
    if !data.is_file() || data.len() > FILE_BYTES_MAX {
        return Err(format!("it is no file of at most {FILE_BYTES_MAX} bytes"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let said = yaml::read(&text)?;
    let word = |key: &str| {
        said[key]
            .as_str()
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    let given = file.file_stem().and_then(|stem| stem.to_str());
    let name = word("name").or(given).unwrap_or_default();
    let slash = slash_name(name).ok_or("it has no name that could be typed")?;
    let skills: Vec<String> = match &said["skills"] {
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
    .into_iter()
    .map(str::to_owned)
    .collect();
    if skills.is_empty() || skills.len() > SKILLS_MAX {
        return Err(format!(
            "it names {} skills; 1 to {SKILLS_MAX} are used",
            skills.len()
        ));
    }
    let description = word("description").map(str::to_owned);
    Ok(Bundle {
        slash,
        description: description.unwrap_or_else(|| format!("the skills {}", skills.join(", "))),
        skills,
        instruction: word("instruction").map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_are_read_and_bad_ones_are_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        put(
            "release.yaml",
            "name: My Release\nskills: [review, ship]\ninstruction: Be careful.\n",
        );
        put("empty.yaml", "skills: []\n");
        put("broken.yml", "a: [b");
        put("notes.txt", "skills: [x]");
        let (bundles, problems) = read(folder.path());
        assert_eq!(
            bundles,
            [Bundle {
                slash: "my-release".into(),
                description: "the skills review, ship".into(),
                skills: vec!["review".into(), "ship".into()],
                instruction: Some("Be careful.".into()),
            }]
        );
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(read(&folder.path().join("nowhere")), (vec![], vec![]));
    }
}
