//! Keeps large results out of the conversation: the text goes to a file, a preview and its path to the model.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use hermes_core::{CallId, text};

use crate::session::Limits;

/// What the model sees of a spilled result: enough to decide whether to read on.
const PREVIEW_BYTES: usize = 1_500;
/// No result is spilled below this, however much the turn has already used.
pub(crate) const RESULT_CHARS_FLOOR: usize = 8_000;

/// How much result text a turn may still put into the conversation.
pub(crate) struct TurnBudget {
    result_chars_max: usize,
    chars_left: usize,
}

impl TurnBudget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            result_chars_max: limits.result_chars_max,
            chars_left: limits.turn_result_chars_max,
        }
    }

    /// Returns how long the next result may be.
    pub(crate) fn allowance(&self) -> usize {
        self.result_chars_max
            .min(self.chars_left.max(RESULT_CHARS_FLOOR))
    }

    pub(crate) fn spend(&mut self, chars: usize) {
        self.chars_left = self.chars_left.saturating_sub(chars);
    }
}

/// Shortens a result that is longer than `chars_max`, saving the whole of it in the session's folder.
pub(crate) async fn fit(text: String, chars_max: usize, folder: PathBuf, call: &CallId) -> String {
    // Bytes bound characters, so most results are never counted.
    if text.len() <= chars_max || text.chars().count() <= chars_max {
        return text;
    }
    let name = file_name(call);
    let saving = tokio::task::spawn_blocking(move || {
        let saved = save(&folder, &name, &text);
        (saved, text)
    });
    match saving.await {
        Ok((Ok(file), text)) => preview(&text, &file),
        Ok((Err(error), text)) => cut(&text, chars_max, &error.to_string()),
        Err(error) => format!("[The result is lost: {error}]"),
    }
}

/// Shortens a text that is longer than `chars_max` to its beginning and its end, saving the whole of it in the folder.
pub(crate) async fn keep_ends(
    text: String,
    chars_max: usize,
    folder: PathBuf,
    name: &'static str,
) -> String {
    if text.len() <= chars_max || text.chars().count() <= chars_max {
        return text;
    }
    let saving = tokio::task::spawn_blocking(move || {
        let saved = save(&folder, name, &text);
        (saved, text)
    });
    match saving.await {
        Ok((Ok(file), text)) => {
            let place = format!("the whole is in `{}`", file.display());
            ends(&text, chars_max, &place)
        }
        Ok((Err(error), text)) => {
            ends(&text, chars_max, &format!("it could not be saved: {error}"))
        }
        Err(error) => format!("[The text is lost: {error}]"),
    }
}

/// The end is where conclusions are, but the beginning says what they are about.
fn ends(text: &str, bytes_max: usize, note: &str) -> String {
    let tail_bytes = bytes_max / 4;
    let head = text::head(text, bytes_max - tail_bytes);
    let tail = text::tail(text, tail_bytes);
    let omitted = text.len() - head.len() - tail.len();
    format!("{head}\n[… {omitted} bytes are left out here; {note}]\n{tail}")
}

fn preview(text: &str, file: &Path) -> String {
    let head = text::head(text, PREVIEW_BYTES);
    format!(
        "{head}\n[… {rest} more bytes. The whole result is in `{file}`: read the parts you need with `read_file`.]",
        rest = text.len() - head.len(),
        file = file.display(),
    )
}

fn cut(text: &str, chars_max: usize, error: &str) -> String {
    format!(
        "{head}\n[… {omitted} bytes are missing here, because the whole result could not be saved: {error}]\n{tail}",
        head = text::head(text, chars_max / 2),
        omitted = text.len().saturating_sub(chars_max),
        tail = text::tail(text, chars_max / 2),
    )
}

/// Call ids come from the model, so only harmless characters of them reach the file system.
fn file_name(call: &CallId) -> String {
    let harmless = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
    call.as_str().chars().filter(harmless).take(64).collect()
}

/// Writes a new file that only the user can read. Ids come again in later replies, so names get a number.
fn save(folder: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    /// Results of one id. A session with more has other problems.
    const NUMBERS_MAX: u32 = 10_000;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    for number in 1..NUMBERS_MAX {
        let file = match number {
            1 => folder.join(format!("{name}.txt")),
            _ => folder.join(format!("{name}-{number}.txt")),
        };
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file)
        {
            Ok(mut open) => return open.write_all(text.as_bytes()).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many results of this name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn fitted(text: &str, chars_max: usize, folder: &Path) -> String {
        fit(text.to_owned(), chars_max, folder.to_owned(), &"c1".into()).await
    }

    #[tokio::test]
    async fn a_long_result_is_saved_whole_and_previewed() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("deep/er");
        let long = "é".repeat(10_000);
        let shown = fitted(&long, 9_000, &deep).await;
        assert!(shown.len() < 2_000 && shown.contains("c1.txt"), "{shown}");
        assert_eq!(std::fs::read_to_string(deep.join("c1.txt")).unwrap(), long);
    }

    #[tokio::test]
    async fn a_second_result_of_the_same_id_does_not_replace_the_first() {
        let folder = tempfile::tempdir().unwrap();
        for letter in ["a", "b"] {
            fitted(&letter.repeat(2_000), 1_000, folder.path()).await;
        }
        let first = std::fs::read_to_string(folder.path().join("c1.txt")).unwrap();
        let second = std::fs::read_to_string(folder.path().join("c1-2.txt")).unwrap();
        assert!(first.starts_with('a') && second.starts_with('b'));
    }

    #[tokio::test]
    async fn a_long_summary_keeps_its_ends_and_says_where_the_rest_is() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("start{}end", "é".repeat(10_000));
        let place = folder.path().to_owned();
        let shown = keep_ends(long.clone(), 1_000, place, "summary").await;
        assert!(shown.starts_with("start") && shown.ends_with("end") && shown.len() < 1_500);
        assert!(shown.contains("summary.txt"), "{shown}");
        let saved = std::fs::read_to_string(folder.path().join("summary.txt")).unwrap();
        assert_eq!(saved, long);
    }

    #[tokio::test]
    async fn a_result_that_cannot_be_saved_keeps_its_ends() {
        let long = format!("start{}end", "x".repeat(10_000));
        let shown = fitted(&long, 1_000, Path::new("/proc/no/such/place")).await;
        assert!(shown.starts_with("start") && shown.ends_with("end") && shown.len() < 1_500);
    }

    #[test]
    fn hostile_call_ids_stay_inside_the_folder() {
        assert_eq!(file_name(&"../../etc/passwd".into()), "etcpasswd");
    }

    #[test]
    fn a_turn_that_used_its_budget_gets_the_floor() {
        let limits = Limits {
            turn_result_chars_max: 20_000,
            ..Limits::default()
        };
        let mut budget = TurnBudget::new(limits);
        assert_eq!(budget.allowance(), 20_000);
        budget.spend(19_000);
        assert_eq!(budget.allowance(), RESULT_CHARS_FLOOR);
        // A small window has a smaller floor.
        let budget = TurnBudget::new(limits.within(Some(4_096)));
        assert_eq!(budget.allowance(), 4_096);
        assert_eq!(TurnBudget::new(limits.within(None)).allowance(), 20_000);
    }
}
