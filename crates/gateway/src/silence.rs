//! Answers that mean nothing should be sent.

/// What a model answers when there is nothing to say.
pub const SILENT: &str = "[SILENT]";

/// The ways that models have of writing it.
pub(crate) const MARKERS: [&str; 4] = [SILENT, "SILENT", "NO_REPLY", "NO REPLY"];

/// Returns whether an answer says that there is nothing to say. It must be the whole answer: a report that only begins or
/// ends so is a report.
pub fn is_silence(answer: &str) -> bool {
    let answer = answer.trim();
    MARKERS
        .iter()
        .any(|marker| answer.eq_ignore_ascii_case(marker))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_answer_is_silence() {
        for answer in ["[SILENT]", " [silent]\n", "NO_REPLY", "no reply", "Silent"] {
            assert!(is_silence(answer), "{answer}");
        }
        for answer in [
            "",
            "[SILENT] but the disk is full",
            "the disk is full\n[SILENT]",
            "the disk is full\nNO_REPLY",
            "[SILENT].",
        ] {
            assert!(!is_silence(answer), "{answer}");
        }
    }
}
