//! The other side: asks the script `sync.sh`, which runs over there, over any transport.

use std::time::Duration;

use hermes_core::Random;

use super::name::{Name, SKIPPED};
use super::plan::{Hash, Hashes, Seen};
use super::{ARCHIVE_BYTES_MAX, FILES_MAX};
use crate::mark::new_mark;
use crate::remote::Transport;
use crate::remote::script::{self, Script, ScriptError};

/// Longest time for one conversation: enough for a full archive over a slow network.
const TIME_MAX: Duration = Duration::from_secs(120);

/// A list of as many files as we would send, with long names.
const LIST_BYTES_MAX: usize = FILES_MAX * 512;

/// Stands between the manifest and what there is.
const SEPARATOR: &str = "\x1e\n";

const HASH_CHARS: usize = 64;

/// A folder over there.
pub(super) struct There<'a> {
    pub(super) transport: &'a dyn Transport,
    /// `~/…` for one below the home there.
    pub(super) folder: &'a str,
    /// Tells this start of Hermes from others.
    pub(super) user: &'a str,
    pub(super) random: &'a Random,
}

impl There<'_> {
    pub(super) async fn look(&self) -> Result<Seen, ScriptError> {
        let said = self.ask("look", &[], LIST_BYTES_MAX).await?;
        let said = String::from_utf8_lossy(&said);
        let (manifest, files) = said.split_once(SEPARATOR).unwrap_or_default();
        Ok(Seen {
            manifest: hashes(manifest),
            files: hashes(files),
        })
    }

    pub(super) async fn put(&self, archive: &[u8]) -> Result<(), ScriptError> {
        self.ask("put", archive, LIST_BYTES_MAX).await.map(drop)
    }

    /// Returns an archive of files.
    pub(super) async fn get(&self, names: &[Name]) -> Result<Vec<u8>, ScriptError> {
        self.ask("get", &lines(names), ARCHIVE_BYTES_MAX).await
    }

    /// Removes files, unless others who may need them are there. Returns what could not be removed.
    pub(super) async fn leave(&self, names: &[Name]) -> Result<String, ScriptError> {
        let left = self.ask("leave", &lines(names), LIST_BYTES_MAX).await?;
        Ok(String::from_utf8_lossy(&left).trim().replace('\n', ", "))
    }

    async fn ask(
        &self,
        task: &str,
        input: &[u8],
        output_bytes_max: usize,
    ) -> Result<Vec<u8>, ScriptError> {
        let mark = new_mark(self.random);
        let bytes = input.len().to_string();
        let words = ["hermes", task, self.folder, &mark, &bytes, self.user];
        let mut args = vec![text()];
        args.extend(words.map(str::to_owned));
        let script = Script {
            args: &args,
            mark: &mark,
            input,
            output_bytes_max,
            time_max: TIME_MAX,
        };
        script::run(self.transport, script).await
    }
}

fn text() -> String {
    let skipped = SKIPPED.map(|folder| format!(" -o -name {folder}")).concat();
    let skipped = format!("-name '.*'{skipped}");
    include_str!("sync.sh").replace("@SKIPPED@", &skipped)
}

/// Writes names, one on each line.
pub(super) fn lines(names: &[Name]) -> Vec<u8> {
    let line = |name: &Name| format!("{}\n", name.as_str());
    names.iter().map(line).collect::<String>().into_bytes()
}

/// Writes hashes as `sha256sum` does.
pub(super) fn manifest<'a>(hashes: impl Iterator<Item = (&'a Name, &'a Hash)>) -> String {
    hashes
        .map(|(name, hash)| format!("{hash}  {}\n", name.as_str()))
        .collect()
}

/// Reads what `sha256sum` writes. Lines that are something else, names that lead elsewhere among them, are passed over.
fn hashes(text: &str) -> Hashes {
    let line = |line: &str| {
        let (hash, name) = line.split_once("  ")?;
        let is_hash = hash.len() == HASH_CHARS && hash.bytes().all(|c| c.is_ascii_hexdigit());
        Some((Name::new(name)?, is_hash.then(|| hash.to_owned())?))
    };
    text.lines().filter_map(line).take(FILES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_without_the_lines_that_lie() {
        let hash = "ab".repeat(HASH_CHARS / 2);
        let text = format!(
            "{hash}  skills/a b\n{hash}  ../etc/passwd\n{hash}  /etc/passwd\nsh: no such program\n\\{hash}  skills/a\\nb\n"
        );
        let read = hashes(&text);
        let names: Vec<&str> = read.keys().map(Name::as_str).collect();
        assert_eq!(names, ["skills/a b"]);
        assert_eq!(manifest(read.iter()), format!("{hash}  skills/a b\n"));
    }
}
