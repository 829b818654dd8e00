//! Scripts that do not separate words.
//!
//! An index of words knows nothing of them. Every few neighbouring characters are a word instead: few enough to be found
//! fast, and any part of a sentence is a phrase of them. The last characters of a run are shorter words, so that less than
//! one is the beginning of one wherever it stands.

/// Belongs to a script written without spaces between words, or (Korean) with endings grown to them.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Burmese
        | '\u{1100}'..='\u{11ff}'     // Hangul letters
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{1950}'..='\u{19df}'     // Tai Le, New Tai Lue
        | '\u{1a20}'..='\u{1aaf}'     // Tai Tham
        | '\u{1b00}'..='\u{1b7f}'     // Balinese
        | '\u{3005}'..='\u{3007}'     // Chinese repetition mark, zero
        | '\u{3040}'..='\u{30ff}'     // Japanese syllables
        | '\u{3100}'..='\u{312f}'     // Bopomofo
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'     // Chinese characters
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a980}'..='\u{a9ff}'     // Javanese, more Burmese
        | '\u{aa60}'..='\u{aadf}'     // more Burmese, Tai Viet
        | '\u{ac00}'..='\u{d7af}'     // Hangul
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{20000}'..='\u{3ffff}'
    )
}

/// Belongs to one of them that writes letters rather than syllables or words.
pub(super) fn is_lettered(c: char) -> bool {
    is_unspaced(c) && !matches!(c, '\u{3005}'.. | '\u{1100}'..='\u{11ff}')
        || matches!(c, '\u{a980}'..='\u{a9ff}' | '\u{aa60}'..='\u{aadf}')
}

/// Characters that make a word: where each is a syllable or a word itself, and where each is a letter.
fn piece_chars(c: char) -> usize {
    if is_lettered(c) { 3 } else { 2 }
}

/// Returns a text as the index is to have it; nothing when every script in it separates words.
pub(super) fn pieces_to_index(text: &str) -> Option<String> {
    let is_plain = text.is_ascii() || !text.contains(is_unspaced);
    (!is_plain).then(|| {
        let chars: Vec<char> = text.chars().collect();
        let mut out = String::with_capacity(text.len() * 3);
        runs(&chars).for_each(|run| push(run, run.len(), &mut out));
        out
    })
}

/// Returns a term as the index has it, and whether its last word is only the beginning of one there.
pub(super) fn pieces_to_find(text: &str) -> (String, bool) {
    let chars: Vec<char> = text.chars().collect();
    let mut runs: Vec<&[char]> = runs(&chars).collect();
    // Behind the end of the term its run may go on: only what is whole is known of it.
    let last = runs.pop_if(|run| is_unspaced(run[0]));
    let mut out = String::new();
    runs.into_iter()
        .for_each(|run| push(run, run.len(), &mut out));
    let is_open = last.is_some_and(|run| run.len() < piece_chars(run[0]));
    if let Some(run) = last {
        push(
            run,
            (run.len() + 1).saturating_sub(piece_chars(run[0])).max(1),
            &mut out,
        );
    }
    (out.trim().to_owned(), is_open)
}

/// The pieces of the runs of a text that are whole.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let unspaced = runs(&chars).filter(|run| is_unspaced(run[0]));
    let pieces = unspaced.flat_map(|run| run.windows(piece_chars(run[0]).min(run.len())));
    pieces.map(String::from_iter).collect()
}

/// Splits a text where it changes between kinds of scripts.
fn runs(chars: &[char]) -> impl Iterator<Item = &[char]> {
    let kind = |c: &char| (is_unspaced(*c), is_lettered(*c));
    chars.chunk_by(move |left, right| kind(left) == kind(right))
}

/// Appends a run: as it is, or the pieces that begin with its first `count` characters.
fn push(run: &[char], count: usize, out: &mut String) {
    out.push(' ');
    if !is_unspaced(run[0]) {
        out.extend(run);
        return;
    }
    let size = piece_chars(run[0]);
    for at in 0..count {
        out.push(' ');
        out.extend(&run[at..run.len().min(at + size)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn runs_become_pieces_and_shorter_ones_at_the_end() {
        let check = |text: &str, expected: &[&str]| {
            let pieces = pieces_to_index(text).unwrap_or_default();
            assert_eq!(words(&pieces), expected, "{text}");
        };
        check("Docker, too", &[]);
        check("Café", &[]);
        check("用容器部署", &["用容", "容器", "器部", "部署", "署"]);
        check(
            "用docker部署。好",
            &["用", "docker", "部署", "署", "。", "好"],
        );
        check("ภาษา", &["ภาษ", "าษา", "ษา", "า"]);
    }

    #[test]
    fn every_part_of_a_text_is_a_phrase_of_its_pieces() {
        for (term, expected, is_open) in [
            ("容器部署", "容器 器部 部署", false),
            ("容器", "容器", false),
            ("容", "容", true),
            ("容器docker", "容器 器 docker", false),
            ("docker容", "docker 容", true),
            ("docker", "docker", false),
            ("ภาษา", "ภาษ าษา", false),
            ("ไท", "ไท", true),
        ] {
            let (found, open) = pieces_to_find(term);
            let found = words(&found).join(" ");
            assert_eq!((found.as_str(), open), (expected, is_open), "{term}");
        }
    }

    #[test]
    fn a_sentence_is_made_of_pieces() {
        assert_eq!(pieces("部署docker容器吗"), ["部署", "容器", "器吗"]);
        assert_eq!(pieces("ภาษา"), ["ภาษ", "าษา"]);
        assert_eq!(pieces("容"), ["容"]);
    }
}
