//! Keeps large results out of the conversation: the text goes to a file, a preview and its path to the model.

use std::path::{Path, PathBuf};

use hermes_core::{CallId, SessionId, text};

/// What the model sees of a spilled result: enough to decide whether to read on.
const PREVIEW_BYTES: usize = 1_500;
/// No result is spilled below this, however much the turn has already used.
const RESULT_CHARS_FLOOR: usize = 8_000;

/// How much result text a turn may still put into the conversation.
pub(crate) struct TurnBudget {
    chars_left: usize,
}

impl TurnBudget {
    pub(crate) fn new(chars_max: usize) -> Self {
        Self {
            chars_left: chars_max,
        }
    }

    /// Returns how long the next result may be.
    pub(crate) fn allowance(&self, result_chars_max: usize) -> usize {
        result_chars_max.min(self.chars_left.max(RESULT_CHARS_FLOOR))
    }

    pub(crate) fn spend(&mut self, chars: usize) {
        self.chars_left = self.chars_left.saturating_sub(chars);
    }
}

/// Shortens a result that is longer than `chars_max`, saving the whole of it.
pub(crate) async fn fit(text: String, chars_max: usize, file: impl FnOnce() -> PathBuf) -> String {
    // Bytes bound characters, so most results are never counted.
    if text.len() <= chars_max || text.chars().count() <= chars_max {
        return text;
    }
    let file = file();
    match save(&file, &text).await {
        Ok(()) => format!(
            "{preview}\n[… {rest} more bytes. The whole result is in `{file}`: read the parts you need with `read_file`.]",
            preview = text::head(&text, PREVIEW_BYTES),
            rest = text.len() - text::head(&text, PREVIEW_BYTES).len(),
            file = file.display(),
        ),
        Err(error) => format!(
            "{head}\n[… cut: {omitted} bytes are missing, because the whole result could not be saved to `{file}`: {error}]\n{tail}",
            head = text::head(&text, chars_max / 2),
            omitted = text.len().saturating_sub(chars_max),
            file = file.display(),
            tail = text::tail(&text, chars_max / 2),
        ),
    }
}

/// Where a result goes. Call ids come from the model, so only harmless characters of them reach the file system.
pub(crate) fn result_file(folder: &Path, session: &SessionId, call: &CallId) -> PathBuf {
    let harmless = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
    let name: String = call.as_str().chars().filter(harmless).take(64).collect();
    let session: String = session.as_str().chars().filter(harmless).collect();
    folder.join(session).join(format!("{name}.txt"))
}

async fn save(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        tokio::fs::create_dir_all(folder).await?;
    }
    tokio::fs::write(file, text).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_long_result_is_saved_whole_and_previewed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/er/result.txt");
        let long = "é".repeat(10_000);
        let shown = fit(long.clone(), 9_000, || file.clone()).await;
        assert!(
            shown.len() < 2_000 && shown.contains("result.txt"),
            "{shown}"
        );
        assert_eq!(std::fs::read_to_string(file).unwrap(), long);
    }

    #[tokio::test]
    async fn a_result_that_cannot_be_saved_keeps_its_ends() {
        let long = format!("start{}end", "x".repeat(10_000));
        let shown = fit(long, 1_000, || PathBuf::from("/proc/no/such/place.txt")).await;
        assert!(shown.starts_with("start") && shown.ends_with("end") && shown.len() < 1_500);
    }

    #[test]
    fn hostile_call_ids_stay_inside_the_folder() {
        let file = result_file(
            Path::new("/r"),
            &"../../s".into(),
            &"../../etc/passwd".into(),
        );
        assert_eq!(file, Path::new("/r/s/etcpasswd.txt"));
    }

    #[test]
    fn a_turn_that_used_its_budget_gets_the_floor() {
        let mut budget = TurnBudget::new(20_000);
        assert_eq!(budget.allowance(100_000), 20_000);
        budget.spend(19_000);
        assert_eq!(budget.allowance(100_000), RESULT_CHARS_FLOOR);
        assert_eq!(budget.allowance(5_000), 5_000);
    }
}
