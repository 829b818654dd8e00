//! Cuts the surroundings of a match out of a long text and marks what matched.

use super::query::fold_char;

pub(super) const MATCH_OPEN: &str = ">>>";
pub(super) const MATCH_CLOSE: &str = "<<<";
pub(super) const CUT: &str = "…";

/// Characters shown before the first match, and in all: about forty words.
const BEFORE_CHARS: usize = 60;
const SNIPPET_CHARS: usize = 240;

/// Something to mark.
#[derive(Debug)]
pub(super) struct Needle {
    /// Lower case.
    pub(super) chars: Vec<char>,
    pub(super) edges: Edges,
}

/// Where a needle may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edges {
    Anywhere,
    WholeWord,
    BeginningOfWord,
}

impl Needle {
    fn is_at(&self, folded: &[char], at: usize) -> bool {
        let is_inside = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric());
        let starts = || at == 0 || !is_inside(folded.get(at - 1));
        let ends = || !is_inside(folded.get(at + self.chars.len()));
        let is_edged = || match self.edges {
            Edges::Anywhere => true,
            Edges::WholeWord => starts() && ends(),
            Edges::BeginningOfWord => starts(),
        };
        !self.chars.is_empty() && folded[at..].starts_with(&self.chars) && is_edged()
    }
}

/// Marks every needle near the first one.
pub(super) fn snippet(text: &str, needles: &[Needle]) -> String {
    let chars: Vec<char> = text.chars().collect();
    let folded: Vec<char> = chars.iter().copied().map(fold_char).collect();
    let match_at = |at: usize| {
        let found = needles.iter().filter(|needle| needle.is_at(&folded, at));
        found.map(|needle| needle.chars.len()).max()
    };
    let first = (0..chars.len()).find(|at| match_at(*at).is_some());
    let start = first.unwrap_or(0).saturating_sub(BEFORE_CHARS);
    let end = chars.len().min(start + SNIPPET_CHARS);

    let mut out = String::from(if start > 0 { CUT } else { "" });
    let mut at = start;
    while at < end {
        match match_at(at) {
            Some(length) => {
                let until = end.min(at + length);
                out.push_str(MATCH_OPEN);
                out.extend(&chars[at..until]);
                out.push_str(MATCH_CLOSE);
                at = until;
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    if end < chars.len() {
        out.push_str(CUT);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, needles: &[&str], expected: &str) {
        check_edges(text, needles, Edges::Anywhere, expected);
    }

    fn check_edges(text: &str, needles: &[&str], edges: Edges, expected: &str) {
        let needle = |text: &&str| Needle {
            chars: text.chars().collect(),
            edges,
        };
        let needles: Vec<Needle> = needles.iter().map(needle).collect();
        assert_eq!(snippet(text, &needles), expected);
    }

    #[test]
    fn words_are_marked_only_where_they_are_words() {
        let text = "art, artful party";
        check_edges(text, &["art"], Edges::WholeWord, ">>>art<<<, artful party");
        let expected = ">>>art<<<, >>>art<<<ful party";
        check_edges(text, &["art"], Edges::BeginningOfWord, expected);
    }

    #[test]
    fn matches_are_marked_in_their_own_case() {
        check("Use Docker.", &["docker"], "Use >>>Docker<<<.");
        check("用容器,容器", &["容器"], "用>>>容器<<<,>>>容器<<<");
        check("ab abc", &["ab", "abc"], ">>>ab<<< >>>abc<<<");
        check("none", &["x"], "none");
        check("", &["x"], "");
    }

    #[test]
    fn long_texts_are_cut_around_the_first_match() {
        let text = format!("{}NEEDLE{}", "a".repeat(500), "b".repeat(500));
        let expected = format!(
            "…{}>>>NEEDLE<<<{}…",
            "a".repeat(BEFORE_CHARS),
            "b".repeat(SNIPPET_CHARS - BEFORE_CHARS - 6)
        );
        check(&text, &["needle"], &expected);
    }
}
